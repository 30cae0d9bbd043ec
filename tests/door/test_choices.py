"""Histograms, rankings and counts of different values: right, bounded per unit, and charged for what they show."""

from collections import Counter
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.accounting.cost import zcdp
from tacit.asking import Question, Table
from tacit.plan.groups import sensitivity_of
from tacit.plan.plan import Distinct
from tacit.privacy.loss import ExponentialChoice, PureChoice
from tacit.selection.selection import TopK
from tacit_gauntlet.stage.table import bounded_plan

Row = tuple[Any, str | None, float | None, int | None]
CITIES = ["Aa", "Bb", "Cc", "Dd"]
NAN = float("nan")


def table(rows: list[Row], **declared: Any) -> Table:
    kinds = {"id": pa.int64(), "city": pa.string(), "x": pa.float64(), "k": pa.int64()}
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    made = pa.table({name: pa.array(list(values), kinds[name]) for name, values in zip(kinds, columns, strict=True)})
    usual: dict[str, Any] = {"unit": "id", "budget": tacit.epsilon(10**6, delta="1e-6"), "ledger": ":memory:"}
    usual |= {"rows_per_unit": 3, "groups_per_unit": 2, "most_rows_per_unit": 1}
    usual |= {"columns": {"x": {"between": (0, 10)}}, "name": "t"}
    return tacit.table(made, accept_large_delta=True, **(usual | declared))


ROWS: list[Row] = [
    (i, "AaAaAaAaBbBbBbCcCcDd"[2 * (i % 10) : 2 * (i % 10) + 2], float(i % 13), i // 10 % 5) for i in range(120)
]
ODD: list[Row] = [(500, None, None, None), (501, "Aa", NAN, 1), (502, "Aa", -5.0, 2), (503, "Bb", float("inf"), 3)]


def test_a_histogram_counts_rows_between_edges_and_what_lies_outside_at_the_ends() -> None:
    found = table(ROWS + ODD).histogram("x", [0, 2.5, 5, 10]).answer(epsilon=10_000).to_dicts()
    values = [min(max(x, 0), 10) for _, _, x, _ in ROWS + ODD if x is not None and x == x]
    assert [(row["x_from"], row["count"]) for row in found] == [
        (0, sum(value < 2.5 for value in values)),
        (Fraction(5, 2), sum(2.5 <= value < 5 for value in values)),
        (5, sum(value >= 5 for value in values)),
    ]


def test_even_bins_divide_the_declared_range() -> None:
    found = table(ROWS).histogram("k", 3, between=(0, 6)).answer(epsilon=10_000).to_dicts()
    counts = Counter(k // 2 for *_, k in ROWS if k is not None)
    assert [(row["k_from"], row["count"]) for row in found] == [(0, counts[0]), (2, counts[1]), (4, counts[2])]
    thirds = table(ROWS).histogram("x", 3).answer(epsilon=10_000).to_dicts()
    assert [float(row["x_from"]) for row in thirds] == pytest.approx([0, 10 / 3, 20 / 3])
    assert sum(row["count"] for row in thirds) == len(ROWS)


def test_bins_are_public_so_empty_ones_are_shown_and_a_pure_budget_is_enough() -> None:
    plan = table([], budget=tacit.epsilon(5)).histogram("x", 5).plan(epsilon=1).plan
    assert plan.threshold is None
    assert plan.public_keys is not None
    assert len(plan.public_keys) == 5


@pytest.mark.parametrize("bins", [0, 1000, [1], [2, 1], "wide", [0, "x"]])
def test_bins_that_mean_nothing_are_refused(bins: Any) -> None:
    with pytest.raises((tacit.QueryRefused, tacit.InvalidParameter)):
        table(ROWS).histogram("x", bins)


def test_even_bins_need_a_public_range() -> None:
    with pytest.raises(tacit.QueryRefused, match="between"):
        table(ROWS).histogram("k", 3)


def test_the_most_common_of_public_keys_is_chosen_and_no_count_is_shown() -> None:
    question = table(ROWS).top("city", 2, keys=CITIES)
    counts = Counter(city for _, city, _, _ in ROWS)
    answer = question.answer(epsilon=1000)
    assert [row["city"] for row in answer.to_dicts()] == [city for city, _ in counts.most_common(2)]
    assert answer.names == ["city", "rank"]
    assert table(ROWS).mode("city", keys=CITIES).answer(epsilon=1000).to_dicts() == [
        {"city": counts.most_common(1)[0][0], "rank": 1}
    ]


def test_other_keys_are_ranked_by_their_shown_counts() -> None:
    found = table(ROWS).top("city", 2).answer(epsilon=1000).to_dicts()
    assert [row["city"] for row in found] == ["Aa", "Bb"]
    assert found[0]["count_units"] == 48


@pytest.mark.parametrize("bounds", [{"rows_per_unit": 1, "groups_per_unit": 1}, {"rows_per_unit": 9}, {}])
def test_the_mode_is_the_value_that_most_units_have_whatever_the_bounds(bounds: Any) -> None:
    """Aa has the most rows, of three units; each of the others has Bb once, and most of them Cc too; 20 have Dd."""
    rows: list[Row] = [(i, "Aa", 1.0, 1) for i in range(3) for _ in range(200)]
    rows += [(i, city, 1.0, 1) for i in range(3, 63) for city in ("Bb", *(["Cc"] if i < 53 else []))]
    rows += [(i, "Dd", 1.0, 1) for i in range(3, 23)]
    asked = table(rows, **({"groups_per_unit": None} | bounds))
    assert asked.mode("city", keys=CITIES).answer(epsilon=1000).to_dicts() == [{"city": "Bb", "rank": 1}]
    assert units(asked) == [3, 60, 50, 20]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_ranking_is_charged_as_its_rounds_whatever_the_number_of_groups(neighbours: Any) -> None:
    asked = table(ROWS, neighbours=neighbours, groups_per_unit=4).top("city", 2, keys=CITIES)
    choice = asked.plan(epsilon=1).plan.choice
    assert choice is not None
    assert choice.monotone is (neighbours == "add-remove")
    assert asked.plan(epsilon=1).plan.events == (PureChoice(Fraction(1, 2)),) * 2
    by_rho = asked.plan(epsilon=1, noise="gaussian").plan
    assert all(isinstance(event, ExponentialChoice) for event in by_rho.events)
    assert sum(zcdp(event).rho for event in by_rho.events) < zcdp(PureChoice(Fraction(1))).rho
    assert "units stay secret" in str(asked.plan(epsilon=1))


def test_one_unit_moves_every_count_behind_a_ranking_by_at_most_one_and_none_the_other_way() -> None:
    newcomer: list[Row] = [(999, city, 1.0, 1) for city in CITIES for _ in range(9)]
    before, after = (units(table(rows, groups_per_unit=3)) for rows in (ROWS, ROWS + newcomer))
    moves = [b - a for a, b in zip(before, after, strict=True)]
    assert moves == [1, 1, 1, 1]  # the bound on groups is for counts that are shown
    # the mutant: rows in place of units would move by the row bound, which the choice does not pay for
    rows_before, rows_after = (rows_of(table(each, groups_per_unit=3)) for each in (ROWS, ROWS + newcomer))
    assert max(b - a for a, b in zip(rows_before, rows_after, strict=True)) == 3


def units(asked: Table) -> list[int]:
    question = asked.top("city", 2, keys=CITIES)
    return list(question.session.engine.aggregate(question.plan(epsilon=1).plan, "00").sums["units"])


def rows_of(asked: Table) -> list[int]:
    question = asked.group_by("city", keys=CITIES).count()
    return list(question.session.engine.aggregate(bounded_plan(question), "00").sums["rows"])


def test_a_ranking_follows_the_law_of_its_mechanism() -> None:
    """Two keys a lead apart: the worse one wins with the mechanism's own chance; false alarm below 1e-9."""
    rows: list[Row] = [(i, "Aa" if i < 3 else "Bb", 1.0, 1) for i in range(5)]
    question = table(rows).mode("city", keys=["Aa", "Bb"])
    plan, engine = question.plan(epsilon=1).plan, question.session.engine
    from tacit.release.noisy import release

    exact = engine.aggregate(plan, "00")
    runs = 2_000
    wins = sum(release(plan, exact).keys[0][0] == "Bb" for _ in range(runs))
    chance = 2.718281828459045**-1 / 2  # permute-and-flip, one unit behind at epsilon 1
    assert abs(wins - runs * chance) < 6.5 * (runs * chance * (1 - chance)) ** 0.5
    assert TopK(k=1, epsilon=1, monotone=True).terms.rate == 1


@pytest.mark.parametrize(("k", "keys"), [(4, CITIES), (0, CITIES), (1, ["Aa"])])
def test_a_choice_of_all_or_nothing_is_refused(k: int, keys: list[str]) -> None:
    with pytest.raises((tacit.QueryRefused, tacit.InvalidParameter)):
        table(ROWS).top("city", k, keys=keys).plan(epsilon=1)


def distinct(asked: Table, per_unit: int | None = None) -> Question:
    return asked.group_by("city", keys=CITIES).count_distinct("k", per_unit=per_unit)


def exact_distinct(question: Question) -> list[int]:
    return list(question.session.engine.aggregate(question.plan(epsilon=1).plan, "00").sums["distinct_0"])


def test_different_values_are_counted_without_null_and_nan() -> None:
    values = [len({k for _, city, _, k in ROWS + ODD if city == name and k is not None}) for name in CITIES]
    assert exact_distinct(distinct(table(ROWS + ODD))) == values
    whole = table(ROWS + ODD).count_distinct("x")
    assert exact_distinct(whole) == [len({x for _, _, x, _ in ROWS + ODD if x is not None and x == x})]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_one_unit_moves_counts_of_different_values_by_at_most_its_bound_in_each_group(neighbours: Any) -> None:
    heavy: list[Row] = [(999, city, 1.0, 1000 + k) for city in CITIES for k in range(20)]
    other: list[Row] = [(999, city, 1.0, 2000 + k) for city in CITIES[2:] for k in range(20)]
    start = ROWS + other if neighbours == "replace" else ROWS
    before, after = (distinct(table(rows, neighbours=neighbours), 4) for rows in (start, ROWS + heavy))
    plan = before.plan(epsilon=1).plan
    (release,) = plan.releases
    moves = [abs(b - a) for a, b in zip(exact_distinct(before), exact_distinct(after), strict=True)]
    assert sum(moves) <= release.sensitivity.l1
    assert sum(move * move for move in moves) <= release.sensitivity.l2_squared
    assert max(moves) == release.sensitivity.linf == 4
    if neighbours == "add-remove":
        assert sum(moves) == release.sensitivity.l1 == 8
    # the mutants: a bound of one value, or of one group
    parts, wanted = release.parts, (Distinct(plan.distincts[0].expression, 1),)
    narrow = sensitivity_of(parts, (), wanted, rows_per_unit=3, groups_per_unit=2, neighbours=neighbours)
    alone = sensitivity_of(parts, (), plan.distincts, rows_per_unit=3, groups_per_unit=1, neighbours="add-remove")
    assert sum(moves) > narrow.l1
    assert sum(moves) > alone.l1 or neighbours == "replace"


def test_the_bound_is_stated_or_the_rows_bound_or_refused_in_words() -> None:
    assert distinct(table(ROWS)).plan(epsilon=1).plan.distincts[0].per_unit == 3
    with pytest.raises(tacit.QueryRefused, match="per_unit=5"):
        table(ROWS, rows_per_unit=None, most_rows_per_unit=None).count_distinct("k").plan(epsilon=1, learn=False)
    each = table(ROWS, unit=tacit.ROW).count_distinct("city").plan(epsilon=1).plan
    assert each.distincts[0].per_unit == 1


def test_sql_counts_different_values_too() -> None:
    asked = table(ROWS)
    written = asked.sql("SELECT COUNT(DISTINCT k) AS n FROM t", per_unit={"n": 2})
    assert written.query.outputs == asked.agg(n=tacit.count_distinct("k", per_unit=2)).query.outputs
    with pytest.raises(tacit.QueryRefused, match="no COUNT"):
        asked.sql("SELECT COUNT(*) AS n FROM t", per_unit={"n": 2})
    (row,) = written.answer(epsilon=1000).to_dicts()
    assert row["n"] == 5


def test_counts_of_different_values_keep_company_with_others() -> None:
    question = table(ROWS).agg(n=tacit.count(), d=tacit.count_distinct("k"), m=tacit.median("x"), v=tacit.variance("x"))
    (row,) = question.answer(epsilon=3000).to_dicts()
    assert (row["n"], row["d"]) == (120, 5)


def test_private_keys_have_their_different_values() -> None:
    found = table(ROWS).group_by("city").count_distinct("k").answer(epsilon=3000).to_dicts()
    assert [(row["city"], row["count_distinct_k"]) for row in found] == [(city, 5) for city in CITIES]


def test_a_histogram_without_a_range_or_with_too_many_bins_says_which_it_is() -> None:
    for column, bins, words in [
        ("k", 20, "needs a declared public range of 'k'"),
        ("x", 201, "at most 200 bins, not 201"),
    ]:
        with pytest.raises(tacit.QueryRefused, match=words) as refused:
            table(ROWS).histogram(column, bins)
        assert ("at most" in str(refused.value)) == (bins > 200)
