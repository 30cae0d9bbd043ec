"""A question asked again is read by the SQL that was kept for it, and no other question is."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.engine import prepared
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
    assert sums_of(table.where("x = 3").count())[()]["rows"] == 1
    assert sums_of(table.count())[()]["rows"] == 1  # and there are three


def test_only_the_last_few_are_kept(monkeypatch, compiled):
    monkeypatch.setattr(prepared, "KEPT_MOST", 2)
    table = rows_of()
    asked = [table.where(f"x > {least}").count() for least in range(3)]
    for each in (*asked, asked[2], asked[0]):
        sums_of(each)
    assert len(compiled) == 4  # the first was let go of


def test_the_sql_path_makes_anew_what_has_the_salt_in_it(compiled):
    asked = question(as_table(ROWS))
    for salt in ("1", "2"):
        exact_of(asked, path="sql", salt=salt)
    assert compiled == []


def test_text_in_parquet_is_handed_over_anew_each_time(tmp_path, compiled):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"g": ["a", "b", "b"], "h": ["x", "x", "y"], "x": [1, 2, 3]}), path)
    table = rows_of(path)
    for name, wanted in (("g", {("a",): 1, ("b",): 2}), ("h", {("x",): 2, ("y",): 1}), ("g", {("a",): 1, ("b",): 2})):
        asked = table.group_by(name, keys=sorted(key[0] for key in wanted)).count()
        assert {key: sums["rows"] for key, sums in sums_of(asked).items()} == wanted
    assert [each is None for each in compiled] == [False] * 3  # asked for, and not kept
