"""tacit.audit: it finds published faults, never a correct mechanism, and has a clear word for every odd callable."""

import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest

import tacit
import tacit_gauntlet as gauntlet
from tacit.auditing import outcome
from tacit.auditing.function_audit import Claim, audit, judge
from tacit.auditing.lower_bound import gaussian_draws, gaussian_mu
from tacit.errors import InvalidParameter
from tacit.noise.bits import Keystream
from tacit_gauntlet.frame.mutant import all_mutants

ONE = Claim(Fraction(1), Fraction(0), Fraction("0.999999"))


def rng_of(seed: int):
    return np.random.default_rng(seed)


def on_a_grid(values):
    """Values on a public lattice, so that only the law of the noise can tell inputs apart."""
    return np.round(values * 2**20) / 2**20


def laplace_of(scale: float, seed: int = 1):
    rng = rng_of(seed)
    return lambda exact, n: on_a_grid(exact + rng.laplace(scale=scale, size=n))


# ---- what it must find ---------------------------------------------------------------------------------------------


def test_a_tenth_too_little_laplace_noise_is_found_in_120_000_draws():
    """Power: about 4 standard deviations above the claim for continuous noise (docs/proofs/auditing.md)."""
    found = audit(laplace_of(0.9), 0, 1, epsilon=1, batch=True)
    assert found.violated
    assert 1 < found.demonstrated < 1 / 0.9 + 0.01
    assert found.event.startswith("x is")


def test_naive_floating_laplace_is_found_by_its_low_bits():
    """Inverse of the distribution function in floats, added to the input: what every textbook prints."""
    rng = rng_of(2)

    def naive(exact: float, n: int):
        u = rng.random(n) - 0.5
        return exact - np.sign(u) * np.log1p(-2 * np.abs(u))

    found = audit(naive, 0.0, 1.0, epsilon=1, draws=20_000, batch=True)
    assert found.violated
    assert found.demonstrated > 4
    assert "lowest set bit" in found.event


def test_a_sum_of_four_float_terms_is_found_by_outputs_that_are_impossible_on_the_other_input():
    """The law is exactly Laplace, and its floats still give the input away: about a fifth at 0 cannot be had at 1."""
    rng = rng_of(3)

    def four_terms(exact: float, n: int):
        a, b, c, d = rng.random((4, n))
        return exact - (np.log1p(-a) * np.cos(np.pi * b) + np.log1p(-c) * np.cos(np.pi * d))

    found = audit(four_terms, 0.0, 1.0, epsilon=1, draws=20_000, batch=True)
    assert found.violated
    best = found.tested[0]
    assert best.tally.rarer == 0
    assert 0.19 < best.tally.likelier / best.tally.likelier_draws < 0.23


def test_a_gaussian_a_tenth_too_narrow_is_found_in_as_many_draws_as_its_bound_needs():
    epsilon, delta = Fraction(3), Fraction(1, 10**6)
    needed = gaussian_draws(epsilon, delta)
    assert needed < 140_000
    rng, sigma = rng_of(4), 1 / gaussian_mu(epsilon, delta)

    def gaussian(exact: float, n: int):
        return on_a_grid(exact + 0.9 * sigma * rng.normal(size=n))

    assert audit(gaussian, 0, 1, epsilon=3, delta=1e-6, draws=needed, noise="gaussian", batch=True).violated
    assert not audit(gaussian, 0, 1, epsilon=3, delta=1e-6, draws=needed, batch=True).violated


# bug -> (scores that rise, scores that fall, yeses paid for)
WRONG_SPARSE_VECTORS = {
    "sparse vector: noisy scores released": (20, 1, 1),
    "sparse vector: no noise on scores": (3, 3, 3),
    "sparse vector: no end": (16, 16, 1),
    "sparse vector: exact threshold": (12, 1, 1),
    "sparse vector: noise for one yes": (8, 8, 8),
    "sparse vector: no end, half the noise": (3, 3, 1),
}


@pytest.mark.parametrize("wrong", [None, *WRONG_SPARSE_VECTORS])
def test_the_published_wrong_sparse_vectors_are_found_and_the_right_one_is_not(wrong: str | None):
    gauntlet.load()
    plants = {mutant.name: mutant.plant for mutant in all_mutants()}
    rise, fall, paid = WRONG_SPARSE_VECTORS[wrong] if wrong else (8, 8, 8)

    def answers(row, n: int):
        given = tacit.AboveThreshold(threshold=1, epsilon=2, answers=paid)._answers(np.array(row), n, Keystream())
        shown = np.full((n, len(row)), -99)  # it had ended
        for place, each in enumerate(given):
            shown[place, : len(each)] = each
        return shown

    scores = (0,) * rise + (1,) * fall, (1,) * rise + (0,) * fall
    with plants[wrong]() if wrong else nullcontext():
        draws = 90_000 if rise in (8, 12) else 30_000  # enough to be 6 standard deviations above the claim, or more
        assert audit(answers, *scores, epsilon=2, draws=draws, batch=True).violated is bool(wrong)


def test_an_error_on_one_input_alone_is_found():
    rng = rng_of(5)

    def fails(rows):
        if 42 in rows:
            raise ZeroDivisionError("quoting row 42")
        return float(on_a_grid(len(rows) + rng.laplace()))

    found = audit(fails, [1, 42], [1], epsilon=1, draws=2_000)
    assert found.violated
    assert "raised ZeroDivisionError" in found.event
    assert "quoting" not in str(found)


@pytest.mark.parametrize("odd", [math.nan, math.inf, None, "sorry", (1.0, 2.0), {"a": 1}])
def test_an_odd_output_on_one_input_alone_is_found(odd):
    rng = rng_of(6)
    found = audit(lambda here: odd if here and rng.random() < 0.5 else 1.0, True, False, epsilon=1, draws=2_000)
    assert found.violated


def test_ragged_lists_are_told_apart_by_their_length():
    rng = rng_of(7)
    found = audit(lambda n: [0.0] * (n + int(rng.random() < 0.1)), 3, 4, epsilon=1, draws=2_000)
    assert found.violated


def test_a_row_in_the_clear_with_chance_delta_is_found_above_that_delta_alone():
    rng = rng_of(8)

    def named(secret: str):
        return secret if rng.random() < 0.05 else ""

    assert audit(named, "Ann", "Bob", epsilon=1, delta=0.01, draws=8_000).violated
    assert not audit(named, "Ann", "Bob", epsilon=1, delta=0.05, draws=8_000).violated


def test_vectors_are_told_apart_by_a_learned_score_where_no_coordinate_does():
    rng = rng_of(9)

    def spread(move, n):
        return on_a_grid(np.array(move) / 4 + rng.laplace(scale=0.6, size=(n, 4)))

    found = audit(spread, [0, 0, 0, 0], [1, 1, 1, 1], epsilon=1, batch=True)
    assert found.violated


# ---- what it must not find -----------------------------------------------------------------------------------------


def false_alarms(runs: int, draws: int, seed: int) -> int:
    """How many of so many audits of correct mechanisms say violated."""
    rng = rng_of(seed)
    mechanisms = [
        lambda exact, n: exact + np.rint(rng.geometric(1 - math.exp(-1), n) - rng.geometric(1 - math.exp(-1), n)),
        lambda exact, n: on_a_grid(exact + rng.laplace(size=n)),
        lambda exact, n: (rng.random(n) < (1 / (1 + math.e))) ^ bool(exact),
        lambda exact, n: on_a_grid(np.array([exact, 0]) + rng.laplace(size=(n, 2))),
    ]
    return sum(judge(mechanisms[run % 4](0, draws), mechanisms[run % 4](1, draws), ONE).violated for run in range(runs))


def test_no_correct_mechanism_is_flagged_in_many_runs():
    assert false_alarms(runs=12, draws=2_000, seed=10) == 0


@pytest.mark.slow
def test_no_correct_mechanism_is_flagged_in_a_thousand_runs_at_full_size():
    assert false_alarms(runs=1000, draws=120_000, seed=11) == 0


@pytest.mark.slow
def test_a_tenth_too_little_noise_is_found_with_power_of_at_least_99_percent():
    """If the power were 0.99, 300 runs would all succeed with chance 0.05, and at most 5 fail but for 0.03."""
    missed = sum(
        not judge(*(laplace_of(0.9, seed)(side, 120_000) for side in (0, 1)), ONE).violated for seed in range(300)
    )
    assert missed == 0


# ---- odd callables -------------------------------------------------------------------------------------------------


def test_a_callable_without_noise_has_a_plain_verdict():
    same = audit(len, [1, 2], [3, 4], epsilon=1, draws=200)
    assert not same.violated
    assert same.deterministic
    assert "NO NOISE" in str(same)
    different = audit(len, [1, 2], [3], epsilon=1, draws=2_000)
    assert different.violated
    assert different.deterministic
    assert "means that no ε holds" in str(different)


def test_a_callable_that_always_raises_is_an_error_for_the_caller():
    with pytest.raises(InvalidParameter, match="raised KeyError on every draw"):
        audit(lambda d: {}[d], 0, 1, epsilon=1, draws=200)


def test_a_batch_of_the_wrong_length_or_kind_or_that_raises_is_an_error_for_the_caller():
    for wrong in (lambda d, n: [1.0], lambda d, n: "text", lambda d, n: 7, lambda d, n: {}[d]):
        with pytest.raises(InvalidParameter, match=r"batch|at once"):
            audit(wrong, 0, 1, epsilon=1, draws=200, batch=True)


def test_an_output_that_cannot_be_compared_is_an_error_for_the_caller():
    with pytest.raises(InvalidParameter, match="returned a object"):
        audit(lambda d: object(), 0, 1, epsilon=1, draws=200)


@pytest.mark.parametrize(
    "words",
    [
        {"epsilon": -1},
        {"epsilon": "much"},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "draws": 10},
        {"epsilon": 1, "confidence": 1},
        {"epsilon": 1, "noise": "laplace"},
        {"epsilon": 1, "noise": "gaussian"},
        {"epsilon": 1, "seconds": 0},
    ],
)
def test_bad_words_are_refused(words):
    with pytest.raises(InvalidParameter):
        audit(lambda d: d, 0, 1, **words)


def test_what_is_no_function_is_refused():
    with pytest.raises(InvalidParameter, match="fn must be a function"):
        audit(3, 0, 1, epsilon=1)


class Ticking:
    """A clock that moves by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_slow_callable_is_audited_with_bets_for_the_time_given(monkeypatch):
    monkeypatch.setattr(outcome, "clock", Ticking())
    rng = rng_of(13)
    found = audit(lambda exact: float(on_a_grid(exact + 0.2 * rng.laplace())), 0, 1, epsilon=1, seconds=900)
    assert found.method == "bets"
    assert found.draws < 2_000
    assert found.violated
    assert 1 < found.demonstrated < 5


def test_a_slow_batch_is_asked_for_as_many_draws_as_fit(monkeypatch):
    clock = Ticking()
    monkeypatch.setattr(outcome, "clock", clock)
    rng = rng_of(16)
    found = audit(lambda exact, n: on_a_grid(exact + rng.laplace(size=n)), 0, 1, epsilon=1, seconds=20, batch=True)
    assert found.draws == 2_000  # a hundred pairs took a second
    assert "2,000 of the 120,000 draws" in str(found)


def test_a_slow_correct_callable_is_not_flagged(monkeypatch):
    monkeypatch.setattr(outcome, "clock", Ticking())
    rng = rng_of(14)
    found = audit(lambda exact: float(on_a_grid(exact + rng.laplace())), 0, 1, epsilon=1, seconds=300)
    assert found.method == "bets"
    assert not found.violated


# ---- what it says --------------------------------------------------------------------------------------------------


def test_a_result_says_the_same_in_words_json_and_numbers():
    import json

    found = audit(laplace_of(0.5), 0, 1, epsilon=1, draws=4_000, batch=True)
    record = json.loads(found.to_json())
    assert record["violated"] is found.violated is True
    assert record["claimed"] == {"epsilon": 1.0, "delta": 0.0}
    assert f"{found.demonstrated:.4g}" in str(found)
    assert found.event in str(found)
    assert found.verdict.startswith("VIOLATED")
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as shown:
        console.print(found)
    assert found.event in shown.get()


@pytest.mark.parametrize(
    "outputs",
    [laplace_of(0.5), lambda d, n: ["yes" if x < 0.9 - 0.8 * d else "no" for x in rng_of(15).random(n)]],
    ids=["numbers", "text"],
)
def test_a_result_is_drawn_with_both_histograms_and_both_losses(outputs, tmp_path):
    found = audit(outputs, 0, 1, epsilon=1, draws=4_000, batch=True)
    spec = found.plot().to_dict()
    histograms, losses = spec["hconcat"]
    rows = next(iter(spec["datasets"].values())) if "datasets" in spec else histograms["data"]["values"]
    assert {"d0", "d1"} <= {row.get("input") for row in rows}
    assert "ε" in str(losses)
    path = found.plot(tmp_path / "audit.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_page_with_a_picture_needs_no_network_and_runs_no_output(tmp_path):
    found = audit(lambda d, n: ["</script><b>"] * n if d else ["no"] * n, 0, 1, epsilon=1, draws=400, batch=True)
    page = found.plot(tmp_path / "audit.html").read_text()
    assert "</script><b>" not in page
    assert 'src="http' not in page
