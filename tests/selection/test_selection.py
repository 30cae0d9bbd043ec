"""Choosing the best: each mechanism's exact law keeps its promise and its charge, and bad input is refused."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from flint import arb

import tacit
from tacit.accounting.cost import zcdp
from tacit.errors import InvalidParameter
from tacit.noise.bits import Keystream
from tacit.numbers import ball, working_precision
from tacit.privacy.loss import ExponentialChoice, PureChoice
from tacit.selection.scores import SelectionTerms
from tacit_gauntlet.stage.selection import (
    exponential_law,
    log_ratio,
    noisy_max_law,
    permute_and_flip_law,
    renyi_divergence,
    top_k_law,
)
from tacit_gauntlet.stage.statistic import FALSE_ALARM, chi_square_fit

LAWS = {
    tacit.NoisyMax: noisy_max_law,
    tacit.Exponential: exponential_law,
    tacit.PermuteAndFlip: permute_and_flip_law,
}
EXACT = arb(10) ** -30


@pytest.fixture(autouse=True)
def precision():
    with working_precision(128):
        yield


def worst_loss(kind, monotone: bool) -> arb:
    """The largest loss over all moves of three small scores by at most 1."""
    mechanism = kind(epsilon=1, monotone=monotone)
    moves = (0, 1) if monotone else (-1, 0, 1)
    law = cache(lambda scores: LAWS[kind](scores, mechanism.terms.rate))
    losses = [
        log_ratio(law(scores), law(moved))
        for scores in ((0, -1, -1),)
        for move in product(moves, repeat=3)
        if (moved := tuple(score + step for score, step in zip(scores, move, strict=True))) != scores
    ]
    return max(losses, key=lambda loss: float(loss.mid()))


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("monotone", [True, False])
def test_S1_the_place_alone_is_epsilon_dp_for_every_move_of_the_scores(kind, monotone):
    assert worst_loss(kind, monotone) <= 1 + EXACT


@pytest.mark.parametrize("kind", LAWS)
def test_S1_mutant_noise_for_one_way_loses_more_on_scores_that_move_both_ways(kind, monkeypatch):
    monkeypatch.setattr(SelectionTerms, "reach", property(lambda self: self.moves))
    assert worst_loss(kind, monotone=False) > 1.2


def test_S1_permute_and_flip_spends_all_of_epsilon_and_noisy_max_nears_it():
    flips, noisy = tacit.PermuteAndFlip(epsilon=1).terms.rate, tacit.NoisyMax(epsilon=1, monotone=True).terms.rate
    loss = log_ratio(permute_and_flip_law((0, -5), flips), permute_and_flip_law((-1, -4), flips))
    assert abs(loss - 1) < EXACT
    assert log_ratio(noisy_max_law((0, -99), noisy), noisy_max_law((0, -98), noisy)) > 0.98


@pytest.mark.parametrize("candidates", [2, 100, 10**6])
def test_S1_the_loss_does_not_grow_past_epsilon_with_the_number_of_candidates(candidates):
    # one candidate raised, all others lowered: the exponential mechanism's worst move, in closed form
    weight = ball(-tacit.Exponential(epsilon=10).terms.rate * 2).exp()
    loss = (candidates / (1 + (candidates - 1) * weight)).log()
    assert loss < 10


def test_S1_permute_and_flip_is_never_farther_from_the_best_than_the_exponential_mechanism():
    rate = Fraction(1, 2)
    for scores in ((0, 0), (0, -1, -1, -1), (0, -3, -4, -9), (0, -6, -6, -6, -6)):
        distances = [max(scores) - score for score in scores]
        for cut in set(distances):  # the whole law of the shortfall, not only its mean
            flip, weigh = (
                sum((p for p, d in zip(law(scores, rate), distances, strict=True) if d >= cut and d), arb(0))
                for law in (permute_and_flip_law, exponential_law)
            )
            assert flip <= weigh + EXACT


def test_S1_each_is_charged_what_it_costs():
    assert tacit.Exponential(epsilon=1).event == ExponentialChoice(Fraction(1))
    assert zcdp(tacit.Exponential(epsilon=1).event).rho == Fraction(1, 8)
    assert tacit.PermuteAndFlip(epsilon=1).event == PureChoice(Fraction(1))
    assert tacit.NoisyMax(epsilon=1).event == PureChoice(Fraction(1))
    assert str(tacit.NoisyMax(epsilon="0.1").loss) == "ε = 0.1"


def renyi_of(law, order: Fraction) -> arb:
    rate = Fraction(1, 2)
    return renyi_divergence(law((0, 0), rate), law((-1, 1), rate), order)


def test_S1_the_exponential_mechanism_keeps_an_eighth_of_epsilon_squared():
    assert all(renyi_of(exponential_law, order) <= ball(order / 8) for order in (Fraction(101, 100), Fraction(2)))


def test_S1_mutant_permute_and_flip_breaks_an_eighth_of_epsilon_squared():
    assert renyi_of(permute_and_flip_law, Fraction(101, 100)) > ball(Fraction(101, 800))


@pytest.mark.parametrize("kind", LAWS)
def test_what_is_drawn_follows_the_law(kind):
    mechanism, scores, draws = kind(epsilon=1), (2, 1, 1, -1), 4000
    bits, steps = Keystream(), np.array(scores)
    seen = np.bincount([mechanism._pick(steps, bits) for _ in range(draws)], minlength=4)
    expected = [draws * float(chance.mid()) for chance in LAWS[kind](scores, mechanism.terms.rate)]
    assert chi_square_fit(seen.tolist(), expected) > FALSE_ALARM


@pytest.mark.parametrize("kind", LAWS)
def test_a_law_adds_up_to_one(kind):
    assert abs(sum(LAWS[kind]((3, 1, 1, -2), Fraction(1, 3)), arb(0)) - 1) < EXACT


def test_S2_which_is_the_most_common_costs_far_less_than_all_the_counts():
    names = 10_000  # a person may touch every one of them
    every_count = tacit.Laplace(sensitivity=names, epsilon=1).error(coordinates=names)
    the_best = tacit.NoisyMax(epsilon=1, monotone=True).error(candidates=names)
    assert the_best == 12
    assert every_count > 5000 * the_best


# ---- top k ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("by", "law"), [("permute-and-flip", permute_and_flip_law), ("exponential", exponential_law)])
def test_S1_top_k_is_epsilon_dp_in_all(by, law):
    mechanism = tacit.TopK(k=2, epsilon=1, by=by)
    one, other = (
        list(top_k_law(scores, 2, lambda left: law(left, mechanism.round.terms.rate)).values())
        for scores in ((0, 0, 0), (1, -1, -1))
    )
    assert log_ratio(one, other) <= 1
    assert len(mechanism.events) == 2
    assert sum(event.epsilon for event in mechanism.events) == mechanism.event.epsilon == 1


def test_S1_top_k_by_the_exponential_mechanism_costs_less_in_zcdp():
    rho = {
        by: sum(zcdp(event).rho for event in tacit.TopK(k=4, epsilon=1, by=by).events)
        for by in ("exponential", "permute-and-flip")
    }
    assert rho["exponential"] == Fraction(1, 32) < rho["permute-and-flip"]


def test_top_k_gives_different_places_best_first():
    scores = [0, 5000, 10_000, 2500]
    assert tacit.TopK(k=3, epsilon=1).release(scores) == [2, 1, 3]
    assert sorted(tacit.TopK(k=4, epsilon="0.01").release(scores)) == [0, 1, 2, 3]


# ---- words and refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ([], "no scores"),
        ([5], "at least 2 candidates"),
        ([1.0, 2.0], "whole numbers"),
        (np.array([1.0, np.nan]), "whole numbers"),
        ([1, float("inf")], "whole numbers"),
        ([[1, 2], [3, 4]], "one row|whole number"),
        (np.ones((2, 2), dtype=int), "one row"),
        ([True, False], "whole number"),
        (["a", "b"], "whole number"),
        ("ab", "a list or an array"),
        (7, "a list or an array"),
        (np.array([1 + 2j, 0]), "a list or an array"),
    ],
)
def test_scores_that_are_no_scores_are_refused_by_their_kind(kind, given, rule):
    with pytest.raises(InvalidParameter, match=rule):
        kind(epsilon=1).release(given)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number"),
        ({"epsilon": 1, "sensitivity": -1}, "sensitivity must be above 0"),
        ({"epsilon": 1, "sensitivity": 0.5}, "sensitivity must be at least 1"),
        ({"epsilon": 1, "monotone": 1}, "monotone must be True or False"),
        ({"epsilon": 1, "step": 0}, "step must be above 0"),
        ({"epsilon": 1, "step": "1e-400"}, "step must lie between"),
        ({"epsilon": 10**8}, "between 1/10"),
        ({"epsilon": "1e-30"}, "between 1/10"),
    ],
)
def test_terms_that_break_a_rule_are_refused(kind, arguments, rule):
    with pytest.raises(InvalidParameter, match=rule):
        kind(**arguments)


def test_k_beyond_the_candidates_is_refused():
    with pytest.raises(InvalidParameter, match="k must be at most the number of candidates, 2, not 3"):
        tacit.TopK(k=3, epsilon=1).release([1, 2])
    for k in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="k must be a whole number"):
            tacit.TopK(k=k, epsilon=1)
    with pytest.raises(InvalidParameter, match="by must be one of"):
        tacit.TopK(k=1, epsilon=1, by="gumbel")


@pytest.mark.parametrize("kind", [*LAWS, lambda **terms: tacit.TopK(k=3, **terms)])
def test_it_says_what_it_does(kind):
    words = kind(epsilon=11, sensitivity="0.25", step="0.125", monotone=True).explain()
    assert "ε = 11" in words
    assert "at most 0.25, all in one direction" in words
    assert "grid of step 0.125" in words
    assert "Warning" in words
    assert "candidates" in words


def test_no_mechanism_assumes_that_all_scores_move_in_one_direction():
    for kind in (tacit.NoisyMax, tacit.Exponential, tacit.PermuteAndFlip):
        assert kind(epsilon=1).terms.monotone is False
        assert kind(epsilon=1).terms.rate * 2 == kind(epsilon=1, monotone=True).terms.rate
    assert tacit.TopK(k=2, epsilon=1).terms.monotone is False
