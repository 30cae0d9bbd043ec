"""Quantiles are drawn from the same kept rows on both paths: the kernel hands on the values of the rows it adds up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.engine.kernel import loops, summing
from tacit.engine.kernel.coding import OverMemory
from tacit.engine.kernel.summing import Bounded, Columns, sum_batches
from tacit.engine.relation import grouped
from tacit.query.frame import count, count_units, mean, median, quantile
from tests.engine.exact import SALT, as_table, on_path, question

pytestmark = pytest.mark.usefixtures("kernel")
several = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
UNBOUNDED = {"rows_per_unit": 50, "groups_per_unit": 50}
XS = st.sampled_from([None, -(2**63), 0, 3, 10, 2**63 - 1])
YS = st.sampled_from([None, float("nan"), float("-inf"), -5.0, -0.0, 0.3, 4.999, 1e300])
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), XS, YS), max_size=30)
EVERYTHING = {"n": count(), "x_mean": mean("x"), "middle": median("x"), "high": quantile("y", 0.9)}


def drawn_from(asked, *, path, salt=SALT):
    """Return {key: {column: the values in steps}} and the exact sums' names."""
    plan = asked.plan(epsilon=1).plan
    with on_path(path):
        assert asked.session.engine.path_of(plan) == path
        exact = asked.session.engine.aggregate(plan, salt)
    values = {
        key: {column: each[at].tolist() for column, each in exact.values.items()} for at, key in enumerate(exact.keys)
    }
    sums = {key: {name: each[at] for name, each in exact.sums.items()} for at, key in enumerate(exact.keys)}
    return values, sums


@settings(several, max_examples=5)
@given(ROWS)
def test_same_values_as_sql_where_nothing_is_over_its_bound(rows):
    for words in ({}, {"by": ()}, {"by": ("x", "g")}, {"keys": ["b", None, "z"]}):
        asked = question(as_table(rows), EVERYTHING, **UNBOUNDED, **words)
        assert drawn_from(asked, path="kernel") == drawn_from(asked, path="sql")


def test_quantiles_alone_of_public_groups_need_no_sums():
    asked = question(as_table([(1, "a", 3, 0.5)]), {"middle": median("x")}, keys=["a", "b"])
    values, sums = drawn_from(asked, path="kernel")
    assert (values, sums) == drawn_from(asked, path="sql")
    assert values == {("a",): {0: [3]}, ("b",): {0: []}}
    assert sums == {("a",): {}, ("b",): {}}


def test_a_range_however_wide_is_drawn_from_in_words():
    rows = as_table([(n, "ab"[n % 2], 2**62 - n, 0.0) for n in range(50)])
    asked = question(rows, {"middle": median("x"), "people": count_units()}, x={"between": (0, 2**62)})
    assert all(column.height < 2**30 for column in asked.plan(epsilon=1).plan.measured)
    assert drawn_from(asked, path="kernel") == drawn_from(asked, path="sql")


people = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("abcdef"), st.sampled_from([None, 1, 2, 9]), st.just(0.0)), max_size=60
)


@several
@given(people, st.sampled_from([(1, 1), (2, 2), (1, 5), (3, 1)]), st.integers(0, 2**32))
def test_what_is_handed_on_is_what_is_added_up(rows, bounds, salt):
    asked = {"n": count(), "x_mean": mean("x"), "middle": median("x")}
    words = {"rows_per_unit": bounds[0], "groups_per_unit": bounds[1]}
    question_asked = question(as_table(rows), asked, **words)
    plan = question_asked.plan(epsilon=1).plan
    (drawn,) = {draw.column for draw in plan.quantiles}
    values, sums = drawn_from(question_asked, path="kernel", salt=str(salt))
    for key, each in sums.items():
        assert len(values[key][drawn]) == each[f"counted_{drawn}"]
        assert sum(values[key][drawn]) == each[f"total_{drawn}"]


@several
@given(people, people, st.sampled_from([(1, 1), (2, 2), (3, 1)]), st.integers(0, 2**32))
def test_a_unit_that_is_added_leaves_the_values_of_others_as_they_were(crowd, mine, bounds, salt):
    words = {"rows_per_unit": bounds[0], "groups_per_unit": bounds[1], "keys": list("abcdef")}
    mine = [(9, *row[1:]) for row in mine]
    both, one, others = (
        drawn_from(question(as_table(rows), {"middle": median("x")}, **words), path="kernel", salt=str(salt))[0]
        for rows in (mine + crowd, mine, crowd)
    )
    assert both == {key: {0: sorted(one[key][0] + others[key][0])} for key in both}


SCHEMA = pa.schema([("unit", pa.int64()), ("g", pa.string()), ("x", pa.uint32())])


def handed_on(rows_most, memory=1 << 30):
    cells = {"unit": [7] * 6, "g": ["a"] * 6, "x": [5, 5, 5, 5, 8, 8]}
    batch = pa.RecordBatch.from_pydict(cells, schema=SCHEMA)
    columns = Columns("unit", ["g"], [["x"]], None, [0])
    found = sum_batches([batch], SCHEMA, columns, Bounded(rows_most, 1, "5a"), memory=memory)
    return sorted(found.drawn[0][1].tolist())


def test_rows_that_tie_are_handed_on_as_often_as_they_are_kept():
    for rows_most in range(1, 8):
        kept = handed_on(rows_most)
        assert len(kept) == min(rows_most, 6)
        assert (kept.count(5) <= 4, kept.count(8) <= 2) == (True, True)


def test_a_kernel_that_hands_on_every_row_is_caught(monkeypatch):
    sum_rows = loops.sum_rows

    def unbounded(rows, starts, skip, bits, rule, out):
        sum_rows(rows, starts, skip, bits, rule, out)
        out.kept[: len(rows), 0], out.kept[: len(rows), 1:] = rows[:, 2], rows[:, rule.drawn]
        out.count[0] = len(rows)

    monkeypatch.setattr(loops, "sum_rows", unbounded)
    assert len(handed_on(2)) == 6  # which the tests above would see


def test_values_that_pass_their_share_of_memory_are_for_another_path(monkeypatch):
    monkeypatch.setattr(summing, "KEPT_COPIES", 1 << 60)
    with pytest.raises(OverMemory):
        handed_on(2)


def test_values_are_sorted_within_their_groups():
    rng = np.random.default_rng(5)
    places, values = rng.integers(0, 7, 200), rng.integers(0, 2**30, 200)
    found = grouped(places, values, groups=8)
    assert [each.tolist() for each in found] == [sorted(values[places == place].tolist()) for place in range(8)]
