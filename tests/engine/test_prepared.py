"""A question asked again is read by the SQL that was kept for it, and no other question is."""

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import col
from tacit.engine import prepared
from tacit.tables import parquet
from tacit.tables.source import Source
from tests.engine.exact import SALT, as_table, by_key, exact_of, on_path, question

ROWS = [(1, "a", 3, 0.5), (2, "a", 4, 1.5), (3, "b", None, 2.5)]


@pytest.fixture
def compiled(monkeypatch):
    """The relations that were compiled, one after another."""
    found, compile_now = [], Source.compiled
    monkeypatch.setattr(Source, "compiled", lambda *given: (found.append(given[1]), compile_now(*given))[1])
    return found


def rows_of(table=None, **declared):
    return tacit.table(
        as_table(ROWS) if table is None else table,
        unit=tacit.ROW,
        budget=tacit.epsilon(1000, delta=1e-6),
        ledger=":memory:",
        columns={"x": {"between": (0, 10)}} | declared,
    )


def sums_of(asked, epsilon=1):
    exact = asked.session.engine.aggregate(asked.plan(epsilon=epsilon).plan, SALT)
    return {key: {name: each[at] for name, each in exact.sums.items()} for at, key in enumerate(exact.keys)}


def test_the_same_rows_at_another_price_are_read_by_the_same_sql(compiled):
    asked = rows_of().group_by("g", keys=["a", "b"]).sum("x")
    first = sums_of(asked)
    assert sums_of(asked, epsilon=2) == first
    assert len(compiled) == 1


@pytest.mark.usefixtures("kernel")
def test_so_are_those_of_the_kernel_whatever_the_salt(compiled):
    asked = question(as_table(ROWS * 5), rows_per_unit=1)
    found = [exact_of(asked, path="kernel", salt=salt) for salt in ("1", "2", "1")]
    assert found[0] == found[2]
    assert len(compiled) == 1
    plan = asked.plan(epsilon=1).plan
    with on_path("kernel"):
        again = by_key(question(as_table(ROWS * 5), rows_per_unit=1).session.engine.aggregate(plan, "2"))
    assert again == found[1]


def test_other_keys_filters_and_types_of_constants_are_other_questions(compiled):
    table = rows_of(pa.table({"g": ["a", "b"], "x": [1, 3], "t": [True, False]}))
    wanted = [
        (table.group_by("g", keys=["a"]).count(), {("a",): 1}),
        (table.group_by("g", keys=["b", "z"]).count(), {("b",): 1, ("z",): 0}),
        (table.group_by("g", keys=["a"]).count(), {("a",): 1}),
        (table.where("x = 1").count(), {(): 1}),
        (table.where("x = 3").count(), {(): 1}),
        (table.where("x < 1.5").count(), {(): 1}),
        (table.where("t = TRUE").count(), {(): 1}),
        (table.count(), {(): 2}),
    ]
    for asked, rows in wanted * 2:
        assert {key: sums["rows"] for key, sums in sums_of(asked).items()} == rows


def test_a_shape_without_the_filter_would_be_seen(monkeypatch):
    monkeypatch.setattr(prepared, "_shape", lambda plan, purpose: "one shape")
    table = rows_of()
    assert sums_of(table.where("x IS NOT NULL").count())[()]["rows"] == 2
    assert sums_of(table.count())[()]["rows"] == 2  # and there are three


def test_only_the_last_few_are_kept(monkeypatch, compiled):
    monkeypatch.setattr(prepared, "KEPT_MOST", 2)
    table = rows_of()
    asked = [table.where(f"x {compared} 1").count() for compared in ("<", ">", "=")]
    for each in (*asked, asked[2], asked[0]):
        sums_of(each)
    assert len(compiled) == 4  # the first was let go of


def sql_of(asked):
    """The SQL of a question as its engine has prepared it, and as it is compiled for itself alone."""
    engine, plan = asked.session.engine, asked.plan(epsilon=1).plan
    alone = prepared.PreparedRelations(engine.source, engine._kinds)
    return [each.get(plan, "rows", engine._rows).sql for each in (engine._prepared, alone)]


KEYED = {"g": pa.array(["a", "b", "a"]), "x": [1, 2, 3], "d": pa.array([0, 1, 9000], pa.date32())}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=2, max_size=4), st.lists(st.text(max_size=9), min_size=2)
)
def test_constants_that_are_compared_are_filled_in_as_they_would_be_compiled(numbers, texts):
    table = rows_of(pa.table(KEYED), x={"between": (0, 10), "keys": [1, 2, 3]})
    days = st_days(numbers)
    for number, text, day in zip(numbers, texts, days, strict=False):
        for where in (
            (col("x") != number) & (col("g") == text.replace("\0", "")),
            (col("d") >= day) | (col("x") < number) & (col("x") > -1),
        ):
            kept, compiled_alone = sql_of(table.where(where).group_by("x").count())
            assert kept == compiled_alone


def st_days(numbers):
    return [date(1970, 1, 1) + timedelta(number % 10_000) for number in numbers]


def test_questions_that_differ_in_a_constant_are_compiled_twice_and_then_no_more(compiled):
    table = rows_of(pa.table(KEYED))
    found = [sums_of(table.where(f"x > {least} AND g <> 'b'").count())[()]["rows"] for least in range(4)]
    assert found == [2, 1, 1, 0]
    assert len(compiled) == 2


def test_equal_constants_and_different_ones_are_two_shapes(compiled):
    table = rows_of(pa.table(KEYED))
    for one, other, rows in ((1, 1, 1), (1, 3, 2), (3, 3, 1), (2, 1, 2), (2, 2, 1)):
        assert sums_of(table.where(f"x = {one} OR x = {other}").count())[()]["rows"] == rows
    assert len(compiled) == 4


def test_a_constant_whose_digits_decide_a_type_is_compiled_as_it_is(compiled):
    table = rows_of(pa.table({"x": [1, 2], "m": pa.array([Decimal("1.5"), Decimal(20)], pa.decimal128(4, 1))}))
    found = [sums_of(table.where(f"m > {least}").count())[()]["rows"] for least in (1, 10, 100)]
    assert found == [2, 1, 0]
    assert len(compiled) == 3


@pytest.mark.parametrize("written", [prepared.FIRST_INT, prepared.FIRST_INT + 1])
def test_a_constant_that_looks_like_a_mark_is_none(written):
    table = rows_of(pa.table({"x": [1, written]}))
    asked = [table.where(f"x <> {number} AND x + 0 < {written} + 1").count() for number in (written, 5, 1, written)]
    assert [sums_of(each)[()]["rows"] for each in asked] == [1, 2, 1, 1]


def test_a_shape_that_forgets_a_constant_would_be_seen(monkeypatch):
    monkeypatch.setattr(prepared, "_filled", lambda pieces, constants: "".join(pieces[::2]))
    table = rows_of(pa.table(KEYED))
    found = [sums_of(table.where(f"x > {least}").count())[()]["rows"] for least in range(3)]
    assert found == [3, 2, 1]  # it is not the kept SQL, so it is not used


def test_the_sql_path_makes_anew_what_has_the_salt_in_it(compiled):
    asked = question(as_table(ROWS))
    for salt in ("1", "2"):
        exact_of(asked, path="sql", salt=salt)
    assert compiled == []


def test_text_in_parquet_is_read_by_sql_that_is_kept(tmp_path, monkeypatch, compiled):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"g": ["a", "b", "b"], "h": ["x", "x", "y"], "x": [1, 2, 3]}), path)
    monkeypatch.setattr(parquet, "VIEWS_MOST", 1)
    table = rows_of(path)
    of_g, of_h = ("g", {("a",): 1, ("b",): 2}), ("h", {("x",): 2, ("y",): 1})
    for name, wanted in (of_g, of_h, of_g, of_h):
        asked = table.group_by(name, keys=sorted(key[0] for key in wanted)).count()
        assert {key: sums["rows"] for key, sums in sums_of(asked).items()} == wanted
    assert len(compiled) == 3  # there is a view for the first columns; the others are handed over anew each time
    pq.write_table(pa.table({"g": ["a", "a", "b"], "h": ["x", "x", "y"], "x": [1, 2, 3]}), path)
    asked = table.group_by("g", keys=["a", "b"]).count()
    assert {key: sums["rows"] for key, sums in sums_of(asked).items()} == {("a",): 2, ("b",): 1}
    assert len(compiled) == 3
