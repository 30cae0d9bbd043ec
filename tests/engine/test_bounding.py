"""Bounding: what is kept of a unit depends on that unit and the salt, is what the bounds allow, and is fair."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.query.frame import count, count_units, mean
from tacit.query.frame import sum as sum_of
from tacit_gauntlet.stage.table import added, exact_cells

SCHEMA = pa.schema([("id", pa.string()), ("g", pa.string()), ("x", pa.int64()), ("y", pa.float64())])
UNITS = st.sampled_from(["a", "A", "b", "", "c ", "c", None])
GROUPS = st.sampled_from(["p", "P", "q", "", None, "r", "s"])
XS = st.one_of(st.none(), st.integers(-3, 8), st.sampled_from([2**63 - 1, -(2**63)]))
YS = st.sampled_from([None, float("nan"), float("inf"), -0.0, 0.0, 5e-324, 1.5, -9.0])
ROWS = st.lists(st.tuples(UNITS, GROUPS, XS, YS), max_size=25)
small = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def as_table(rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def everything(table, keys=None):
    return table.group_by("g", keys=keys).agg(n=count(), x=mean("x"), y=sum_of("y"), c=count("y"), u=count_units())


def sums(engine, rows, *, salt="00", keys=None, **bounds):
    ranges = {"x": {"between": (0, 5)}, "y": {"between": (-2, 2)}}
    return exact_cells(everything(engine(as_table(rows), columns=ranges, **bounds), keys), salt=salt)


@small
@given(rows=ROWS, newcomer=st.lists(st.tuples(GROUPS, XS, YS), max_size=8), data=st.data())
def test_adding_a_unit_leaves_every_other_units_rows_as_they_were(engine, rows, newcomer, data):
    mine = [("newcomer", *row) for row in newcomer]
    together = data.draw(st.permutations(rows + mine))
    without, alone, both = (sums(engine, each) for each in (rows, mine, together))
    assert [added(left, right) for left, right in zip(without, alone, strict=True)] == both


@small
@given(rows=ROWS)
def test_units_add_up_one_by_one(engine, rows):
    """The whole is the sum of each unit on its own, so nothing is shared between units; nobody's rows are nothing."""
    total = sums(engine, [])
    for unit in {row[0] for row in rows} - {None}:
        alone = sums(engine, [row for row in rows if row[0] == unit])
        total = [added(left, right) for left, right in zip(total, alone, strict=True)]
    assert sums(engine, rows) == total


@small
@given(rows=ROWS)
def test_a_public_list_of_keys_is_applied_before_bounding(engine, rows):
    listed = ["p", "q", None]
    inside = [row for row in rows if row[1] in listed]
    assert sums(engine, rows, keys=listed) == sums(engine, inside, keys=listed)
    unbounded = {"groups_per_unit": 10, "rows_per_unit": 100}
    assert sums(engine, inside, keys=listed, **unbounded) == sums(engine, inside, **unbounded)


@pytest.mark.parametrize(("rows_per_unit", "groups_per_unit"), [(1, 1), (2, 3), (5, 2), (100, 100)])
def test_each_unit_has_just_what_its_bounds_allow(engine, rows_per_unit, groups_per_unit):
    rows = [(f"u{unit}", f"g{turn % 4}", 1, 1.0) for unit in range(30) for turn in range(12)]
    cells = sums(engine, rows, rows_per_unit=rows_per_unit, groups_per_unit=groups_per_unit)
    units = sum(value for place, value in cells[-1].items())
    counted = sum(value for place, value in cells[0].items()) // 5  # every row's parts add up to the height of x
    assert units == 30 * min(groups_per_unit, 4)
    assert counted == units * min(rows_per_unit, 3)


def test_which_row_and_group_is_kept_is_fair_and_changes_with_the_salt(engine):
    """2,000 units with rows 0 to 3 in groups a to d: each is kept as often as another (false alarm 1e-6)."""
    rows = [(f"u{unit}", "abcd"[value], value, 0.0) for unit in range(2000) for value in range(4)]
    one_group = [(unit, "a", x, y) for unit, _, x, y in rows]
    kept = {}
    for salt in ("00", "01"):
        groups = sums(engine, rows, salt=salt, rows_per_unit=1, groups_per_unit=1)[-1]
        kept[salt] = [groups[(name, "units")] for name in "abcd"]
        assert stats.chisquare(kept[salt]).pvalue > 1e-6
        above = sums(engine, one_group, salt=salt, rows_per_unit=1, groups_per_unit=1)[0][("a", "above")]
        assert abs(above - 3000) < 300  # a fair choice of 0 to 3 is 1.5 on average; 6 standard deviations are 300
    assert kept["00"] != kept["01"]


def test_float_units_are_compared_by_value_and_nan_is_nobody(engine):
    nan = float("nan")
    rows = pa.table({"id": [0.0, -0.0, nan, None, 1.5, float("inf")], "g": ["p"] * 6})
    (cells,) = exact_cells(engine(rows).group_by("g").count_units())
    assert cells == {("p", "units"): 3}


@pytest.mark.parametrize(
    "units", [pa.array([1, 1, 2], pa.uint64()), pa.array([b"a", b"a", b"b"]), pa.array([True, True, False])]
)
def test_units_of_every_type_are_kept_apart(engine, units):
    (cells,) = exact_cells(engine(pa.table({"id": units, "g": ["p"] * 3})).group_by("g").count_units())
    assert cells == {("p", "units"): 2}


def test_without_a_unit_column_every_row_counts_once(engine):
    from tacit.tables.schema import ROW

    rows = pa.table({"id": [1, 1, None], "g": ["p", "p", "q"], "x": [1, None, 9]})
    table = engine(rows, unit=ROW, rows_per_unit=None, groups_per_unit=None, columns={"x": {"between": (0, 5)}})
    parts, units = exact_cells(table.group_by("g").agg(n=count(), x=sum_of("x")))
    assert parts == {("p", "missing"): 5, ("p", "below"): 4, ("p", "above"): 1, ("q", "above"): 5}
    assert units == {("p", "units"): 2, ("q", "units"): 1}
