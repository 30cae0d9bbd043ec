"""Where noise enters: every part gets its own, keys are shown by their noisy counts, and the record keeps it all."""

from datetime import date
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import LedgerError
from tacit.exact import ExactTable
from tacit.query.frame import count, count_units
from tacit.release import NoisyTable, release
from tacit.release import noisy as noisy_module
from tacit_gauntlet.stage.table import bounded_plan, plan_of, protected

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False),
    st.fractions(),
    st.text(),
    st.dates(),
    st.datetimes(),
)


def private_plan(**declared):
    table = protected(pa.table({"id": [1], "g": ["a"]}), **declared)
    return plan_of(table.group_by("g").agg(n=count(), u=count_units()))


@given(st.lists(st.tuples(SCALARS, SCALARS), max_size=5), st.integers(-(2**100), 2**100))
def test_a_stored_answer_is_read_back_as_it_was(keys, number):
    table = NoisyTable(tuple(keys), (((number,) * len(keys),),))
    again = NoisyTable.from_json(table.to_json())
    assert again == table
    assert [[type(part) for part in key] for key in again.keys] == [[type(part) for part in key] for key in keys]


def test_a_stored_answer_of_a_newer_version_is_refused():
    with pytest.raises(LedgerError, match="newer version"):
        NoisyTable.from_json('{"format": 2, "keys": [], "parts": []}')


def test_an_exact_table_prints_as_withheld():
    assert repr(ExactTable([("secret",)], {"rows": [4711]})) == "ExactTable(withheld)"
    assert "4711" not in str(ExactTable([("secret",)], {"rows": [4711]}))


def test_the_threshold_is_inclusive(monkeypatch):
    plan = private_plan()
    least = plan.threshold.least
    monkeypatch.setattr(noisy_module, "_add_noise", lambda each, plan, exact: [exact.part(p, plan) for p in each.parts])
    exact = ExactTable([("below",), ("at",), ("above",)], {"rows": [9, 9, 9], "units": [least - 1, least, least + 1]})
    assert release(plan, exact).keys == (("above",), ("at",))


def test_shown_groups_are_in_the_order_of_their_keys_and_not_of_rows(monkeypatch):
    plan = private_plan()
    monkeypatch.setattr(noisy_module, "_add_noise", lambda each, plan, exact: [exact.part(p, plan) for p in each.parts])
    names = ["b", None, "a", "C", ""]
    exact = ExactTable([(name,) for name in names], {"rows": [9] * 5, "units": [10**6] * 5})
    assert [key for (key,) in release(plan, exact).keys] == [None, "", "C", "a", "b"]


def test_every_part_of_every_group_gets_noise_of_its_own():
    table = protected(pa.table({"id": [1], "g": [1]}))
    plan = bounded_plan(
        table.group_by("g", keys=list(range(200))).agg(n=count(), u=count_units()), epsilon=Fraction(1, 10**6)
    )
    zeros = ExactTable([(place,) for place in range(200)], {"rows": [0] * 200, "units": [0] * 200})
    first, second = release(plan, zeros), release(plan, zeros)
    drawn = [value for table in (first, second) for each in table.parts for part in each for value in part]
    # 800 draws of a scale of four million: two are equal with a chance of about 4 %, forty never
    assert len(set(drawn)) > 760


def test_keys_of_every_type_are_kept_and_sorted():
    keys = [(date(2020, 1, 2),), (date(2020, 1, 1),), (None,)]
    table = NoisyTable(tuple(keys), ())
    assert NoisyTable.from_json(table.to_json()).keys == tuple(keys)
