"""Above threshold: the exact law keeps epsilon for every pattern of answers, and a watch gives its yeses once."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, TacitError
from tacit.noise.bits import Keystream
from tacit.numbers import working_precision
from tacit.selection.sparse_vector import Split, split_epsilon
from tacit_gauntlet.stage.selection import above_threshold_law


def losses(split: Split, *, paid: int, monotone: bool):
    """The loss of noes before all the yeses, for scores that move as far as the terms allow."""
    for noes, start in product((0, 2, 8), (0, 1)):
        answers = (False,) * noes + (True,) * paid
        one = (start,) * len(answers)
        other = (start + 1,) * len(answers)
        if not monotone:
            one, other = (tuple(start + (answer == side) for answer in answers) for side in (True, False))
        with working_precision(96):
            chances = [
                above_threshold_law(
                    scores, answers, threshold=1, threshold_rate=split.threshold_rate, score_rate=split.score_rate
                )
                for scores in (one, other)
            ]
            yield float(abs((chances[0] / chances[1]).log()).mid())


@pytest.mark.parametrize("paid", [1, 3])
@pytest.mark.parametrize("monotone", [True, False])
def test_S3_no_pattern_of_answers_loses_more_than_epsilon(paid, monotone):
    mechanism = tacit.AboveThreshold(threshold=1, epsilon=2, answers=paid, monotone=monotone)
    assert 0.5 < max(losses(mechanism.split, paid=paid, monotone=monotone)) <= 2


def test_S3_all_of_epsilon_is_spent_by_noes_and_a_yes_that_move_apart():
    assert max(losses(tacit.AboveThreshold(threshold=1, epsilon=2).split, paid=1, monotone=False)) > 1.95


@pytest.mark.parametrize(("reach", "answers"), [(1, 3), (2, 1)])
def test_S3_mutant_noise_for_one_way_or_for_one_yes_loses_more(reach, answers):
    assert max(losses(split_epsilon(Fraction(2), 1, reach, answers), paid=3, monotone=False)) > 2


def test_S3_only_the_yes_is_paid_for():
    quiet = tacit.AboveThreshold(threshold=10**6, epsilon=1)
    assert quiet.release(np.zeros(100_000, dtype=int)).sum() == 0
    assert quiet.loss == tacit.epsilon(1)


def test_S3_it_ends_with_the_last_yes_paid_for():
    mechanism = tacit.AboveThreshold(threshold=500, epsilon=1, answers=2)
    assert mechanism.release([0, 10**4, 0, 10**4, 10**4]).tolist() == [False, True, False, True]
    assert mechanism.release([0, 10**4, 0]).tolist() == [False, True, False]


def test_S3_the_split_adds_up_to_epsilon():
    for monotone, moves in ((True, 1), (False, 1), (False, 7)):
        mechanism = tacit.AboveThreshold(threshold=0, epsilon=1, answers=3, monotone=monotone, sensitivity=moves)
        split, reach = mechanism.split, moves if monotone else 2 * moves
        assert split.threshold_rate * moves + split.score_rate * 3 * reach == 1


def test_S3_the_error_holds_at_its_confidence():
    mechanism, runs = tacit.AboveThreshold(threshold=0, epsilon=1), 4000
    far = mechanism.error(confidence=0.9, questions=5)
    rows = mechanism._answers(np.array([-far - 1] * 4 + [far + 1]), runs, Keystream())
    right = sum(row.tolist() == [False] * 4 + [True] for row in rows)
    assert right > 0.9 * runs
    assert mechanism.error(confidence=0.9, questions=1000) > far


def test_a_watch_answers_one_score_at_a_time():
    watch = tacit.AboveThreshold(threshold=500, epsilon=1, answers=2).watch()
    assert [watch.release(score) for score in (0, 10**4, np.int64(3), 10**4)] == [False, True, False, True]
    with pytest.raises(BudgetExceeded, match="has given the 2 yes answers it paid for"):
        watch.release(0)


def test_a_watch_cannot_be_copied():
    watch = tacit.AboveThreshold(threshold=0, epsilon=1).watch()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TacitError, match="cannot be copied or pickled"):
            attempt(watch)
    assert "noisy" not in repr(watch)


def test_a_forked_watch_answers_nothing():
    watch = tacit.AboveThreshold(threshold=0, epsilon=1).watch()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            watch.release(10**6)
            os.write(write, b"answered")
        except TacitError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"refused"
    assert watch.release(10**6)


def test_threads_share_the_yeses():
    watch = tacit.AboveThreshold(threshold=0, epsilon=1, answers=10).watch()

    def ask(_):
        try:
            return watch.release(10**6)
        except BudgetExceeded:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert sum(answer is True for answer in pool.map(ask, range(40))) == 10


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"answers": 0}, "answers must be a whole number"),
        ({"answers": 1.5}, "answers must be a whole number"),
        ({"threshold": float("nan")}, "threshold must be a finite number"),
        ({"threshold": 10**30}, "threshold must lie within"),
        ({"epsilon": -1}, "epsilon must be above 0"),
    ],
)
def test_terms_that_break_a_rule_are_refused(arguments, rule):
    with pytest.raises(InvalidParameter, match=rule):
        tacit.AboveThreshold(**({"threshold": 1, "epsilon": 1} | arguments))


def test_scores_that_are_no_scores_are_refused():
    mechanism = tacit.AboveThreshold(threshold=1, epsilon=1)
    for wrong in ([], [1.5], "text", 5):
        with pytest.raises(InvalidParameter):
            mechanism.release(wrong)
    with pytest.raises(InvalidParameter, match="whole numbers"):
        mechanism.watch().release(0.5)


def test_floats_on_a_grid_and_what_they_hold_is_never_refused():
    mechanism = tacit.AboveThreshold(threshold="0.5", epsilon=1, sensitivity="0.01", step="0.01", answers=2)
    assert mechanism.release([np.nan, -np.inf, np.inf, 100.0]).tolist() == [False, False, True, True]
    assert "Above threshold 0.5" in mechanism.explain()
