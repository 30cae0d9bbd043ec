"""How a loss is divided: exactly, to the least sum of squared relative errors, and as weights say."""

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.accounting.cost import pure_epsilon, zcdp
from tacit.asking import Table
from tacit.plan.plan import Plan
from tacit.plan.split import EVEN_LEAST, rounded_shares, standard_deviation
from tacit_gauntlet.stage.table import bounded_plan


@pytest.fixture(scope="module")
def visits() -> Table:
    rows = pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1, 2], "y": [0.5, 1.5]})
    return tacit.table(
        rows, unit="id", budget=tacit.epsilon(100, delta="1e-6"), ledger=":memory:",
        rows_per_unit=3, groups_per_unit=2, most_rows_per_unit=1,
        columns={"x": {"between": (0, 100)}, "y": {"between": (-1, 1)}},
    )  # fmt: skip


def shares(plan: Plan) -> list[Fraction]:
    return [each.share for each in (*plan.releases, *plan.quantiles)]


ASKED: dict[str, Any] = {
    "x": tacit.mean("x"),
    "y": tacit.sum("y"),
    "people": tacit.count_units(),
    "q": tacit.median("x"),
}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_shares_add_up_to_the_whole_and_so_does_what_is_charged(visits: Table, noise: str) -> None:
    plan = visits.group_by("g", keys=["a", "b"]).agg(**ASKED).plan(epsilon=1, noise=noise).plan
    assert sum(shares(plan)) == 1
    if noise == "laplace":
        assert sum(pure_epsilon(event) or Fraction(9) for event in plan.events) == 1
    else:
        parts = [zcdp(event).rho for event in plan.events]
        by_share = [zcdp(each.event).rho / each.share for each in plan.releases]
        assert max(by_share) / min(by_share) - 1 < Fraction(1, 10**9)  # the same rho for the same share
        assert sum(parts) <= max(by_share) * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(("noise", "power"), [("laplace", 2), ("gaussian", 1)])
def test_no_other_division_has_smaller_squared_relative_errors(visits: Table, noise: str, power: int) -> None:
    """Relative errors of count of units and sum, in rows: known by hand, so the best division is too."""
    asked = {"people": tacit.count_units(), "y": tacit.sum("y")}
    found = shares(bounded_plan(visits.agg(**asked), noise=noise))
    # one unit moves the count by 1 and the sum, relative to its rows at the end of the range, by 3
    sizes = {"laplace": (9, 1), "gaussian": (9, 1)}[noise]

    def total(first: Fraction) -> Fraction:
        return sizes[0] / first**power + sizes[1] / (1 - first) ** power

    for moved in (Fraction(2, 1000), Fraction(-2, 1000)):
        assert total(found[0] + moved) > total(found[0])


def test_an_even_division_would_err_more(visits: Table) -> None:
    """The mutant: every release the same share."""
    plan = bounded_plan(visits.agg(people=tacit.count_units(), y=tacit.sum("y")), noise="laplace")
    assert shares(plan)[0] > Fraction(6, 10)


def test_weights_choose_what_matters(visits: Table) -> None:
    question = visits.agg(**ASKED)
    usual = dict(zip(["x", "y", "people", "q"], shares(question.plan(epsilon=1).plan), strict=True))
    chosen = question.plan(epsilon=1, weights={"q": 100}).plan
    assert sum(shares(chosen)) == 1
    assert shares(chosen)[-1] > usual["q"]
    (row,) = question.answer(epsilon=1, weights={"q": 100}).to_dicts()
    assert row["q"] is not None


@pytest.mark.parametrize("weights", [{"nobody": 1}, {"x": 0}, {"x": -1}, 3])
def test_weights_that_mean_nothing_are_refused(visits: Table, weights: Any) -> None:
    with pytest.raises(tacit.InvalidParameter):
        visits.agg(**ASKED).plan(epsilon=1, weights=weights)


@given(st.lists(st.floats(1e-9, 1e9), min_size=2, max_size=100))
def test_shares_are_whole_thousandths_that_add_up_and_none_is_tiny(sizes: list[float]) -> None:
    found = rounded_shares(sizes)
    assert sum(found) == 1
    assert all((share * 1000).denominator == 1 for share in found)
    assert min(found) >= EVEN_LEAST / len(sizes)


def test_the_count_that_shows_private_keys_gets_no_less_than_the_others(visits: Table) -> None:
    plan = bounded_plan(visits.group_by("g").agg(x=tacit.mean("x"), y=tacit.sum("y")), noise="laplace")
    assert plan.threshold is not None
    assert shares(plan)[plan.threshold.release] >= Fraction(333, 1000)


def test_rows_beside_a_column_are_counted_with_it_and_units_only_show_which_groups_there_are() -> None:
    rows = pa.table({"g": ["a"], "x": [1]})
    table = tacit.table(
        rows, name="t", unit=tacit.ROW, budget=tacit.epsilon(1, delta="1e-6"), ledger=":memory:",
        columns={"x": {"between": (0, 100)}},
    )  # fmt: skip
    plan = bounded_plan(table.group_by("g").agg(n=tacit.count(), m=tacit.mean("x")))
    assert plan.threshold is not None
    joint, units = plan.releases
    assert [part.kind for part in joint.parts] == ["missing", "below", "above"]
    assert {output.release for output in plan.outputs} == {0}
    assert [part.kind for part in units.parts] == ["units"]
    assert plan.threshold.release == 1
    assert units.share < Fraction(1, 4)
    assert plan.threshold.least <= 101


@pytest.mark.parametrize(("groups", "kind"), [(1, "laplace"), (2, "laplace"), (5, "gaussian"), (20, "gaussian")])
def test_private_keys_get_the_noise_that_is_better_for_both_threshold_and_answers(groups: int, kind: str) -> None:
    rows = pa.table({"id": [1], "g": ["a"], "x": [1]})
    table = tacit.table(
        rows, unit="id", budget=tacit.epsilon(1, delta="1e-6"), ledger=":memory:",
        rows_per_unit=2, most_rows_per_unit=1, groups_per_unit=groups, columns={"x": {"between": (0, 100)}},
    )  # fmt: skip
    question = table.group_by("g").mean("x")

    def cost(noise: str | None) -> float:  # how high the threshold is, times how far a mean strays
        plan = bounded_plan(question, noise=noise)
        assert plan.threshold is not None
        return plan.threshold.least * standard_deviation(plan.releases[0].noise, plan.releases[0].scale)

    assert {release.noise for release in bounded_plan(question).releases} == {kind}
    assert cost(None) == min(cost("laplace"), cost("gaussian"))


def test_a_unit_in_five_private_groups_gets_a_threshold_below_a_hundred() -> None:
    rows = pa.table({"id": [1], "g": ["a"], "x": [1]})
    table = tacit.table(
        rows, unit="id", budget=tacit.epsilon(1, delta="1e-6"), ledger=":memory:",
        rows_per_unit=2, most_rows_per_unit=1, groups_per_unit=5, columns={"x": {"between": (0, 100)}},
    )  # fmt: skip
    threshold = bounded_plan(table.group_by("g").mean("x")).threshold
    assert threshold is not None
    assert threshold.least < 100  # Laplace noise, which strays less, would need 156


@pytest.mark.filterwarnings("ignore::tacit.LargeEpsilonWarning")
@pytest.mark.parametrize("far", [1, 2, 64, 10**6, 2**40])
def test_every_epsilon_is_answered_at_once(far: int) -> None:
    rows = pa.table({"id": [1, 2], "x": [1, 2]})
    for power in (-9, -5, -2, 0, 1, 3, 6, 12, 15):
        epsilon = Fraction(10) ** power
        table = tacit.table(
            rows, unit="id", budget=tacit.epsilon(10**15), ledger=":memory:", rows_per_unit=far, groups_per_unit=1
        )
        (release,) = table.count().plan(epsilon=epsilon).plan.releases
        assert (pure_epsilon(release.event) or Fraction(0)) <= epsilon
        assert len(table.count().answer(epsilon=epsilon).rows) == 1
