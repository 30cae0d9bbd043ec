"""Tables with odd people, nothing declared but unit and budget: every question is answered, in its promised form."""

import math
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.errors import QueryRefused
from tests.kept.stage import standing_still

BIG = tacit.epsilon(50, delta=1e-6)


def opened(columns, *, unit="id", budget=BIG, **declared):
    frame = pa.table(columns)
    return tacit.table(frame, name="odd", unit=unit, budget=budget, ledger=tacit.TRYOUT, **declared)


def people(count, rows_each=3):
    """Return ids, groups and values of so many people, in whole numbers, the same everywhere."""
    ids = [person for person in range(count) for _ in range(rows_each)]
    return {"id": ids, "g": [at % 4 for at in range(len(ids))], "x": [at * 7919 % 101 for at in range(len(ids))]}


def heavy(count):
    """Return people with three rows each, and one who has as many as all of them, in one group."""
    table = people(count)
    return {
        "id": [*table["id"], *([10**9] * len(table["id"]))],
        "g": [*table["g"], *([0] * len(table["g"]))],
        "x": [*table["x"], *([100] * len(table["x"]))],
    }


TABLES = {
    "nobody": {"id": pa.array([], pa.int64()), "g": pa.array([], pa.int64()), "x": pa.array([], pa.float64())},
    "one person": {"id": [1], "g": [0], "x": [5.0]},
    "thirty people": people(30),
    "all equal": {"id": list(range(3000)), "g": [0] * 3000, "x": [7] * 3000},
    "one person with all rows": {"id": [1] * 3000, "g": [at % 4 for at in range(3000)], "x": list(range(3000))},
    "a heavy person in one group": heavy(1000),
    "everyone in every group": {
        "id": [person for person in range(1000) for _ in range(4)],
        "g": [group for _ in range(1000) for group in range(4)],
        "x": [1.5] * 4000,
    },
    "zeros": {**people(1000), "x": [0] * 3000},
    "all negative": {**people(1000), "x": [-5.0 - at % 7 for at in range(3000)]},
    "infinite, not a number, missing": {
        **people(1000),
        "x": [(1.0, math.inf, -math.inf, math.nan, None)[at % 5] for at in range(3000)],
    },
    "decimals": {**people(1000), "x": pa.array([Decimal(at % 97) / 100 for at in range(3000)], pa.decimal128(9, 2))},
    "booleans": {**people(1000), "x": [at % 3 == 0 for at in range(3000)]},
    "years": {**people(1000), "x": [2000 + at % 20 for at in range(3000)]},
    "tiny floats": {**people(1000), "x": [1e-12 * (at % 50) for at in range(3000)]},
    "huge floats": {**people(1000), "x": [1e300 * (at % 3 - 1) for at in range(3000)]},
    "people without a name": {**people(1000), "id": [None if at % 2 else at // 3 for at in range(3000)]},
}
# tables of which one like it is asked anyway
ALIKE = ("thirty people", "all equal", "zeros", "all negative", "tiny floats", "years", "everyone in every group")
EACH = [pytest.param(name, marks=pytest.mark.slow if name in ALIKE else ()) for name in TABLES]
NUMERIC = [each for each in EACH if each.values != ("booleans",)]


def is_whole_answer(answer):
    """Whether every number has ends that hold it, none of them infinite or NaN."""
    for row in answer.to_dicts():
        for name in answer.aggregates:
            low, value, high = (row[f"{name}{end}"] for end in ("_low", "", "_high"))
            known = [each for each in (low, value, high) if each is not None]
            assert all(math.isfinite(each) for each in known), (name, low, value, high)
            assert known == sorted(known), (name, low, value, high)
    assert str(answer)
    return True


def is_whole_answer_or_no_group(question, *, is_empty):
    """Whether groups are found and answered, or none is large enough: of few people the noise decides."""
    try:
        return is_whole_answer(question.answer(epsilon=1, accept_noise=True)) and not is_empty
    except QueryRefused as refused:
        return "no group by 'g' has about" in str(refused)


@pytest.mark.parametrize("name", EACH)
def test_counts_sums_and_means_are_answered(name):
    table = opened(TABLES[name])
    asked = {"n": tacit.count(), "k": tacit.count("x"), "u": tacit.count_units()}
    if name != "booleans":
        asked |= {"s": tacit.sum("x"), "m": tacit.mean("x")}
    assert is_whole_answer(table.group_by("g", keys=[0, 1, 2, 3]).agg(**asked).answer(epsilon=1, accept_noise=True))
    assert is_whole_answer_or_no_group(table.group_by("g").agg(**asked), is_empty=name == "nobody")


@pytest.mark.parametrize(
    "name", ["nobody", "one person with all rows", "infinite, not a number, missing", "huge floats"]
)
def test_one_number_is_answered(name):
    asked = {"n": tacit.count(), "s": tacit.sum("x"), "m": tacit.mean("x"), "u": tacit.count_units()}
    assert is_whole_answer(opened(TABLES[name]).agg(**asked).answer(epsilon=1, accept_noise=True))


@pytest.mark.parametrize(
    "name", ["nobody", "one person", "thirty people", "zeros", "all negative", "years", "decimals"]
)
def test_other_aggregates_are_answered(name):
    table = opened(TABLES[name]).group_by("g", keys=[0, 1, 2, 3])
    assert is_whole_answer(table.agg(q=tacit.median("x")).answer(epsilon=1, accept_noise=True))
    assert is_whole_answer(
        table.agg(v=tacit.std("x"), d=tacit.count_distinct("x")).answer(epsilon=1, accept_noise=True)
    )


MOMENTS = {
    "v": tacit.variance("x"),
    "s": tacit.std("x"),
    "c": tacit.covariance("x", "g"),
    "r": tacit.correlation("g", "x"),
}


@pytest.mark.parametrize(
    "name",
    ["one person with all rows", "infinite, not a number, missing", "huge floats", "decimals"],
)
def test_spreads_of_whoever_is_there_are_answered(name):
    table = opened(TABLES[name])
    assert is_whole_answer(table.group_by("g", keys=[0, 1, 2, 3]).agg(**MOMENTS).answer(epsilon=1, accept_noise=True))
    assert is_whole_answer(table.agg(s=tacit.std("x")).answer(epsilon=1, accept_noise=True))


@pytest.mark.parametrize("name", ["thirty people", "a heavy person in one group"])
@pytest.mark.parametrize(
    "declared",
    [{"budget": tacit.epsilon(50)}, {"neighbours": "replace"}, {"budget": tacit.rho(20)}],
    ids=["pure", "replace", "rho"],
)
def test_other_promises_are_kept(name, declared):
    table = opened(TABLES[name], **declared).group_by("g", keys=[0, 1, 2, 3])
    asked = table.agg(n=tacit.count(), m=tacit.mean("x"))
    assert is_whole_answer(asked.answer(epsilon=1, accept_noise=True))
    tiny = asked.answer(epsilon=0.01, accept_noise=True)
    assert is_whole_answer(tiny)
    assert tiny.facts.loss["epsilon"] == pytest.approx(0.01)


@pytest.mark.parametrize("name", NUMERIC)
def test_rows_that_are_people_have_a_learned_range(name):
    table = opened(TABLES[name], unit=tacit.ROW)
    asked = {"n": tacit.count(), "s": tacit.sum("x"), "m": tacit.mean("x")}
    assert is_whole_answer(table.group_by("g", keys=[0, 1]).agg(**asked).answer(epsilon=1, accept_noise=True))


def test_too_few_people_are_told_before_the_charge_and_get_the_safe_cap():
    with standing_still():  # by chance, noise looks like people
        answer = opened(TABLES["one person"]).group_by("g", keys=[0, 1]).count().answer(epsilon=0.5)
        assert "oo few people" in str(answer)


def test_dates_count_and_are_not_added_up():
    table = opened({**people(100), "x": [datetime(2020, 1, 1 + at % 28) for at in range(300)]})  # noqa: DTZ001
    assert is_whole_answer(table.agg(n=tacit.count("x")).answer(epsilon=1, accept_noise=True))
    with pytest.raises(tacit.QueryRefused):
        table.mean("x").answer(epsilon=1)


def test_learning_and_answering_cost_the_epsilon_of_the_call():
    table = opened(people(1000))
    before = table.left.laplace
    table.group_by("g", keys=[0, 1, 2, 3]).agg(n=tacit.count(), m=tacit.mean("x")).answer(epsilon=1, noise="laplace")
    assert Fraction(99, 100) < before - table.left.laplace <= Fraction(1)


@pytest.mark.parametrize("declared", [{"rows_per_unit": 1}, {}], ids=["declared", "learned"])
def test_rows_and_people_are_one_release_if_everyone_has_one_row(declared):
    # of 5,000 people with one row each a profile tells no more than one row, but with probability below 1e-9
    table = opened({"id": list(range(5000)), "g": [n % 3 for n in range(5000)]}, **declared)
    asked = table.group_by("g", keys=[0, 1, 2]).agg(n=tacit.count(), u=tacit.count_units())
    table.learn(epsilon=20, by=["g"], keys=[0, 1, 2])
    answer = asked.answer(epsilon=1)
    assert [row["n"] for row in answer.to_dicts()] == [row["u"] for row in answer.to_dicts()]
    assert len(asked.plan(epsilon=1).plan.releases) == 1
