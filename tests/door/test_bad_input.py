"""Bad input: what is wrong with the question is said before a row is read; what is odd in the rows changes nothing."""

import datetime as dt
import time
import warnings

import pyarrow as pa
import pytest

from tacit.auditing.gauntlet.table_stage import protected
from tacit.errors import QueryRefused, TacitError
from tacit.query.frame import count, mean

HOSTILE = [
    "quote'\"`",
    "new\nline",
    "tab\t",
    "😀",
    "'; DROP TABLE t; --",
    "\\",
    "%",
    "\x00",
    "a" * 1000,
    " ",
    "NULL",
    "=1+1",
]
KEYWORDS = [
    "select",
    "group",
    "order",
    "unit",
    "k0",
    "x0",
    "rows",
    "count",
    "one",
    "key_place",
    "protected",
    "Ω",
    "a b",
]


def test_an_unknown_column_is_answered_with_the_one_that_was_meant():
    table = protected(pa.table({"id": [1], "income": [1], "ward": ["a"]}))
    for ask in (
        lambda: table.mean("incme", between=(0, 1)),
        lambda: table.where("incom > 1"),
        lambda: table.group_by("incomes"),
        lambda: table.sql("SELECT AVG(incme) FROM t"),
    ):
        with pytest.raises(QueryRefused, match="did you mean 'income'"):
            ask()
    with pytest.raises(QueryRefused, match="did you mean 'id'"):
        protected(pa.table({"id": [1]}), unit="idd")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(g) FROM t",
        "SELECT SUM(day) FROM t",
        "SELECT COUNT(*) FROM t WHERE x = 'a'",
        "SELECT COUNT(*) FROM t WHERE day > 5",
        "SELECT COUNT(*) FROM t WHERE g + 1 > 2",
    ],
)
def test_wrong_types_are_refused(text):
    table = protected(pa.table({"id": [1], "g": ["a"], "x": [1], "day": [dt.date(2020, 1, 1)]}))
    with pytest.raises(QueryRefused, match="hint:"):
        table.sql(text)


def test_strings_of_any_kind_are_keys_and_constants():
    rows = pa.table({"id": range(len(HOSTILE) * 50), "g": HOSTILE * 50})
    table = protected(rows)
    answer = table.group_by("g", keys=HOSTILE).count().answer(epsilon=50)
    assert [row["g"] for row in answer.to_dicts()] == HOSTILE
    assert all(abs(row["count"] - 50) < 5 for row in answer.to_dicts())
    found = table.group_by("g").count_units().answer(epsilon=50)
    assert {row["g"] for row in found.to_dicts()} == set(HOSTILE)
    for text in HOSTILE:
        if "\x00" in text:
            continue
        quoted = "'" + text.replace("'", "''") + "'"
        assert abs(table.where(f"g = {quoted}").count().answer(epsilon=50).rows[0]["count"] - 50) < 5
    assert str(found)
    assert found._repr_html_()
    assert found.to_csv()


def test_columns_named_like_keywords_or_like_ours_are_columns():
    rows = pa.table({"id": range(40)} | {name: [1] * 40 for name in KEYWORDS})
    table = protected(rows)
    for name in KEYWORDS:
        quoted = '"' + name + '"'
        asked = table.sql(
            f"SELECT {quoted}, COUNT(*) AS n, AVG({quoted}) AS m FROM t GROUP BY {quoted}", between={"m": (0, 2)}
        )
        (row,) = asked.answer(epsilon=50).to_dicts()
        assert abs(row["n"] - 40) < 5
        assert (
            table.where(f"{quoted} = 1")
            .derive(total=f"{quoted} + 1")
            .group_by("total", keys=[2])
            .count()
            .answer(epsilon=50)
        )


EMPTY = {
    "empty table": [],
    "no row after WHERE": [(1, "a", -5, 1.0)],
    "all null": [(1, None, None, None)] * 10,
    "rows of nobody": [(None, "a", 5, 1.0)] * 10,
    "one heavy unit": [(1, "abc"[n % 3], 5, 1.0) for n in range(3000)],
    "usual": [(n, "a", 5, 1.0) for n in range(100)],
}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_whatever_the_rows_the_answer_has_its_normal_shape(noise):
    schema = pa.schema([("id", pa.int64()), ("g", pa.string()), ("x", pa.int64()), ("y", pa.float64())])
    shapes = set()
    for rows in EMPTY.values():
        table = protected(
            pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            asked = table.where("x > 0").group_by("g", keys=["a", "b"]).agg(n=count(), m=mean("y", between=(0, 2)))
            answer = asked.answer(epsilon=1, noise=noise)
            private = (
                table.where("x > 0")
                .group_by("g")
                .agg(n=count(), m=mean("y", between=(0, 2)))
                .answer(epsilon=1, noise=noise)
            )
            whole = table.where("x > 0").count("y").answer(epsilon=1, noise=noise)
        shapes.add(
            (
                str(answer.to_arrow().schema),
                len(answer),
                str(private.to_arrow().schema),
                str(whole.to_arrow().schema),
                len(whole),
            )
        )
    assert len(shapes) == 1


def test_a_hundred_thousand_groups_are_answered_in_seconds():
    n = 100_000
    table = protected(pa.table({"id": range(n), "g": range(n)}), rows_per_unit=1, groups_per_unit=1)
    start = time.process_time()
    public = table.group_by("g", keys=list(range(n))).count().answer(epsilon=1)
    private = table.group_by("g").count().answer(epsilon=1)
    assert len(public) == n
    assert len(private) < 100
    assert time.process_time() - start < 20


def test_no_bad_input_gives_a_bare_exception():
    table = protected(pa.table({"id": [1], "x": [1]}))
    for bad in (
        "",
        "SELECT",
        "SELECT * FROM t",
        "SELECT x FROM t",
        "DROP TABLE t",
        "x" * 30_000,
        "(" * 500,
        "\x00",
        "SELECT COUNT(*) FROM u",
    ):
        for ask in (table.sql, table.where):
            with pytest.raises(TacitError):
                ask(bad)
