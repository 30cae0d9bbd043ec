"""Reconstruction: exact counts, k-anonymous tables and fixed small noise give a secret column back; a budget does not.

The secrets are fresh fair coins in each run. Under a pure epsilon for each of them, the number of right guesses of any
attack is at most a Binomial(people, e^epsilon/(1 + e^epsilon)), so the tests raise a false alarm with chance 10⁻⁹.
"""

import json
import secrets
from fractions import Fraction

import numpy as np
import pytest

from tacit.accounting.convert import explain
from tacit.errors import InvalidParameter
from tacit.noise.laplace import DiscreteLaplace
from tacit_classroom.attacks import made_up, reconstruct, reconstruction
from tacit_classroom.attacks.answerers import (
    budgeted_answers,
    direct_answers,
    exact_answers,
    k_anonymous_answers,
    random_questions,
    small_noise_answers,
)
from tacit_classroom.attacks.people import PLACES, People
from tacit_classroom.attacks.reconstruction import least_squares, linear_program, share_right, solvers_named
from tacit_gauntlet.stage.statistic import binomial_at_least, binomial_at_most

FALSE_ALARM = 1e-9
ONE = Fraction(1)
SOLVERS = pytest.mark.parametrize("solve", [least_squares, linear_program])


@pytest.fixture
def people() -> People:
    """1,000 people whose secrets are fair coins, other ones in every run."""
    return made_up(1_000, seed=secrets.randbelow(10**9))


@pytest.fixture
def questions():
    return random_questions(140, seed=7)


def recovered(people, questions, answers, solve):
    return share_right(people, solve(questions, answers, people.sizes))


def chance_of(people, share, epsilon):
    """Return the chance of so many right guesses, or more, for the best attack there is on this epsilon."""
    return binomial_at_least(round(share * len(people)), len(people), explain(epsilon).one.accuracy)


@SOLVERS
def test_exact_counts_give_every_secret_back(people, questions, solve):
    assert recovered(people, questions, exact_answers(people, questions), solve) == 1


@SOLVERS
def test_k_anonymous_tables_give_at_least_99_percent_back(people, questions, solve):
    answers = k_anonymous_answers(people, questions, k=5)
    assert np.isnan(answers).any()  # something was hidden
    assert recovered(people, questions, answers, solve) >= 0.99


def test_fixed_small_noise_gives_at_least_99_percent_back_to_the_linear_program(people, questions):
    """Up to ± 2 on each count: a program errs on one secret in thousands, so ten in 1,000 have no such chance."""
    answers = small_noise_answers(people, questions, spread=2)
    assert recovered(people, questions, answers, linear_program) >= 0.99


def test_fixed_small_noise_gives_at_least_99_percent_back_to_least_squares(people, questions):
    """Up to ± 1: an estimate's standard deviation is 0.14, the threshold 0.5 away: one secret in 3,000 is wrong."""
    answers = small_noise_answers(people, questions, spread=1)
    assert recovered(people, questions, answers, least_squares) >= 0.99


@SOLVERS
def test_the_same_questions_through_a_budget_of_1_stay_below_the_bound(people, questions, solve):
    few = questions.first(20)
    share = recovered(people, few, budgeted_answers(people, few, epsilon=ONE), solve)
    assert chance_of(people, share, 1) > FALSE_ALARM


def test_the_same_questions_through_a_budget_of_1_stay_near_a_guess(people, questions):
    """40 counts at a scale of 40 tell of a place with a standard deviation of 18: some 51 % can be expected."""
    few = questions.first(40)
    share = recovered(people, few, budgeted_answers(people, few, epsilon=ONE), least_squares)
    assert binomial_at_least(round(share * 1_000), 1_000, 0.53) > FALSE_ALARM


def test_the_most_direct_questions_reach_the_bound_and_do_not_pass_it(people):
    share = share_right(people, direct_answers(people, epsilon=ONE))
    assert chance_of(people, share, 1) > FALSE_ALARM
    assert binomial_at_most(round(share * len(people)), len(people), explain(1).one.accuracy) > FALSE_ALARM


def test_a_budget_that_spends_three_times_what_it_says_is_caught(people):
    share = share_right(people, direct_answers(people, epsilon=Fraction(3)))
    assert chance_of(people, share, 1) < FALSE_ALARM


def test_a_budget_without_noise_is_caught(people, questions, monkeypatch):
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, n: np.zeros(n, dtype=np.int64))
    few = questions.first(24)
    share = recovered(people, few, budgeted_answers(people, few, epsilon=ONE), least_squares)
    assert chance_of(people, share, 1) < FALSE_ALARM


@SOLVERS
def test_where_every_answer_is_hidden_nothing_comes_back(people, questions, solve):
    hidden = k_anonymous_answers(people, questions, k=PLACES + 1)
    assert np.isnan(hidden).all()
    assert binomial_at_least(round(recovered(people, questions, hidden, solve) * 1_000), 1_000, 0.5) > FALSE_ALARM


@SOLVERS
def test_people_who_share_a_place_are_not_told_apart_but_counted(questions, solve):
    """Three in every place, one of them with a yes: the count comes back, and the guess is right for two of three."""
    number = np.arange(300)
    people = People("trios", number // 60, number // 3 % PLACES, number % 3 == 0)
    estimates = solve(questions, exact_answers(people, questions), people.sizes)
    assert np.allclose(estimates, people.exact_yes, atol=1e-6)
    assert share_right(people, estimates) == pytest.approx(2 / 3)
    assert people.told_apart == 0


def test_the_seed_decides_people_and_questions_and_never_noise():
    people, questions = made_up(100, seed=3), random_questions(5, seed=3)
    assert (made_up(100, seed=3).exact_secret == people.exact_secret).all()
    assert (random_questions(5, seed=3).inside == questions.inside).all()
    assert (made_up(100, seed=4).exact_secret != people.exact_secret).any()
    once, again = (budgeted_answers(people, questions, epsilon=ONE) for _ in range(2))
    assert (once != again).any()
    once, again = (small_noise_answers(people, questions, spread=2) for _ in range(2))
    assert (once != again).any()


def test_without_scipy_least_squares_remains_and_a_program_is_refused(monkeypatch):
    monkeypatch.setattr("tacit_classroom.attacks.reconstruction.find_spec", lambda _: None)
    assert list(solvers_named(None)) == ["least squares"]
    with pytest.raises(InvalidParameter, match=r"pip install 'tacit\[attacks\]'"):
        solvers_named("linear")


@pytest.mark.parametrize(
    "words",
    [
        {"rows": 1},
        {"rows": 10**7},
        {"questions": 0},
        {"questions": 10**6},
        {"epsilon": 0},
        {"epsilon": 10**6},
        {"k": 0},
        {"spread": 0},
        {"solver": "magic"},
        {"seed": -1},
    ],
)
def test_an_attack_that_makes_no_sense_is_refused(words):
    with pytest.raises(InvalidParameter):
        reconstruct(**words)


def test_the_result_is_data_a_table_and_a_sentence(monkeypatch):
    monkeypatch.setattr(reconstruction, "EPSILONS", (Fraction(1), Fraction(30)))
    monkeypatch.setattr(reconstruction, "SHARES", (Fraction(1, 4),))
    heard = []
    found = reconstruct(rows=200, questions=24, progress=lambda what, share: heard.append((what, share)))
    assert found.share("exact") == 1
    assert {point.at for point in found.by_epsilon} == {1.0, 30.0}
    assert str(found).splitlines()[-1] == found.sentence
    assert json.loads(json.dumps(found.record()))["sentence"] == found.sentence
    assert all(0 < share <= 1 for _, share in heard)
    assert len({what for what, _ in heard}) == 5


def test_without_curves_there_is_nothing_to_plot(tmp_path):
    found = reconstruct(rows=40, questions=2, curves=False, solver="squares")
    with pytest.raises(InvalidParameter, match="curves=True"):
        found.plot(tmp_path / "attack.png")
