"""What a question is to do is bounded by public facts: for one row, for all groups, and by how long a text may be."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import QueryRefused
from tacit.query.frame import correlation, count, mean, variance
from tacit.query.nodes import FLOAT, TEXT, Call, Column, Value
from tacit.query.typecheck import STEPS_MAX, limit_cells, steps, text_bytes
from tacit.tables.cells import TEXT_BYTES_MAX
from tacit_gauntlet.stage.table import bounded_plan, exact_table, plan_of, protected

KINDS = {"t": TEXT, "x": FLOAT}
T = Column("t")
ROWS = pa.table({"id": range(4), "t": ["a"] * 4, "x": [1.0] * 4})


def text(value):
    return Value(value, "text")


@pytest.mark.parametrize(
    ("expression", "most"),
    [
        (T, TEXT_BYTES_MAX),
        (Column("x"), 0),
        (text("é"), 2),
        (Call("concat", (text("ab"), text("c"))), 3),
        (Call("concat", (T, T)), TEXT_BYTES_MAX),
        (Call("substring", (T, Value(1, "int"), Value(10, "int"))), 40),
        (Call("substring", (T, Value(5, "int"))), TEXT_BYTES_MAX),
        (Call("replace", (text("aaaa"), text("a"), text("bbb"))), 12),
        (Call("case", (Call("=", (T, text("x"))), text("abc"), text(""))), 3),
        (Call("cast_text", (Column("x"),)), 50),
        (Call("length", (T,)), 0),
    ],
)
def test_how_long_a_text_can_be(expression, most):
    assert text_bytes(expression, KINDS) == most


@pytest.mark.parametrize(
    ("pattern", "times"),
    [("%abc%", 1), ("abc", 1), ("%ab_de%fg%", 5), ("_%_", 1), ("%" + "a" * 100 + "_%", 101)],
)
def test_a_pattern_with_underscores_may_be_tried_at_every_place(pattern, times):
    assert steps([Call("like", (T, text(pattern)))], KINDS) == times * TEXT_BYTES_MAX


def test_what_is_there_twice_counts_once():
    lower = Call("lower", (T,))
    both = [Call("=", (lower, text("a"))), Call("like", (lower, text("%a%")))]
    assert steps(both, KINDS) == 3 * TEXT_BYTES_MAX
    assert steps([*both, *both], KINDS) == 3 * TEXT_BYTES_MAX


def test_steps_of_all_expressions_are_added_and_those_of_a_filter_for_each_time_rows_are_read():
    words = " OR ".join(f"t LIKE '%{place}%'" for place in range(STEPS_MAX // TEXT_BYTES_MAX // 2 + 1))
    table = protected(ROWS)
    table.where(words).count()
    with pytest.raises(QueryRefused, match="reads a row's texts too many times"):
        table.where(words).median("x", between=(0, 9))
    with pytest.raises(QueryRefused, match="reads a row's texts too many times"):
        table.where(words).count(f"CASE WHEN {words.replace('%', '%.')} THEN 1 END")


def test_a_chain_too_long_to_read_is_refused_by_name():
    for number in (100, 900):
        with pytest.raises(QueryRefused, match="deep"):
            protected(ROWS).sum("+".join(["x"] * number), between=(0, 9))
        with pytest.raises(QueryRefused, match="deep"):
            protected(ROWS).sql(f"SELECT SUM({'+'.join(['x'] * number)}) AS s FROM t")


@pytest.mark.parametrize(("groups", "outputs"), [(50_000, 100), (1_000_000, 5)])
def test_listed_groups_and_aggregates_have_a_limit_together(groups, outputs):
    query = protected(ROWS).agg(**{f"m{place}": mean("x", between=(0, 9 + place)) for place in range(outputs)}).query
    limit_cells(query, groups)
    with pytest.raises(QueryRefused, match="are too many for one question"):
        limit_cells(query, groups + 1)


def test_the_limit_on_groups_is_looked_at_before_a_charge():
    table = protected(ROWS)
    asked = {f"m{place}": variance(f"x + {place}", between=(0, 9)) for place in range(26)}
    plan_of(table.group_by("x", keys=range(100)).agg(**asked))
    with pytest.raises(QueryRefused, match="5,000 groups are too many"):
        plan_of(table.group_by("x", keys=range(5_000)).agg(**asked))
    asked = {
        f"c{place}": correlation("x", f"x + {place + 1}", between=(0, 9), other_between=(0, 9)) for place in range(51)
    }
    with pytest.raises(QueryRefused, match="without a public list are too many"):
        plan_of(table.group_by("x").agg(**asked))


LONG = ["p" * size for size in (TEXT_BYTES_MAX, TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX + 2)]


def held(folder):
    rows = pa.table({"t": [*LONG, "q"]})
    pq.write_table(rows, folder / "t.parquet")
    (folder / "t.csv").write_text("t,u\n" + "".join(f"{cell},1\n" for cell in [*LONG, "q"]))
    link = duckdb.connect()
    link.register("given", rows)
    link.execute("CREATE TABLE t AS SELECT * FROM given")
    binary = pa.table({"t": pa.array([*(cell.encode() for cell in LONG), b"q"], pa.binary())})
    return {
        "frame": rows,
        "Parquet": str(folder / "t.parquet"),
        "CSV": str(folder / "t.csv"),
        "DuckDB": (link, "t"),
        "bytes": binary,
    }


@pytest.mark.parametrize("where", ["frame", "Parquet", "CSV", "DuckDB", "bytes"])
def test_ids_longer_than_a_text_may_be_are_nobody_and_not_one_person(where, tmp_path):
    table = protected(held(tmp_path)[where], unit="t")
    assert exact_table(table.count_units()).sums["units"] == [2]


def test_text_is_never_made_longer_than_it_may_be():
    half = "b" * (TEXT_BYTES_MAX // 2)
    table = protected(pa.table({"id": range(3), "t": [half, half + "b", "é" * (TEXT_BYTES_MAX // 4)]}))
    for made, known in (("t || t", 2), ("REPLACE(t, 'b', 'cc')", 2), ("REPLACE(t, 'é', 'ééé')", 2), ("t || 'c'", 3)):
        asked = table.agg(n=count(made))
        assert exact_table(asked, plan=bounded_plan(asked)).sums["counted_0"] == [known]


@pytest.mark.parametrize("many", [51, 500])
def test_a_long_chain_of_named_selects_is_refused_before_it_is_read(many):
    named = [f"c{n} AS (SELECT * FROM {'t' if not n else f'c{n - 1}'})" for n in range(many - 1)]
    sql = f"WITH {', '.join(named)} SELECT COUNT(*) AS n FROM c{many - 2}"
    with pytest.raises(QueryRefused, match="more than 50 SELECTs"):
        protected(ROWS, name="t").sql(sql)


def test_a_chain_of_named_selects_is_read_up_to_the_limit():
    named = [f"c{n} AS (SELECT * FROM {'t' if not n else f'c{n - 1}'})" for n in range(49)]
    assert protected(ROWS, name="t").sql(f"WITH {', '.join(named)} SELECT COUNT(*) AS n FROM c48") is not None
