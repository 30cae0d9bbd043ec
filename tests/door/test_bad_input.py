"""Bad input: what is wrong with the question is said before a row is read; what is odd in the rows changes nothing."""

import datetime as dt
import time
import warnings
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tacit.answer.text import PICKED
from tacit.errors import QueryRefused, TacitError
from tacit.privacy.loss import epsilon
from tacit.query.frame import count, mean
from tacit_gauntlet.stage.table import protected

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


ODD_NUMBERS = [
    "1e400",
    "1e-400",
    "9" * 5000,
    10**400,
    1e308 * 10,
    float("nan"),
    Decimal("NaN"),
    Decimal("1e400"),
    -1,
    0,
]
ODD_THINGS = ["x", "", None, [], {}, np.array([1, 2]), np.datetime64("2020-01-01"), True, b"1", 2j, object(), "0x10"]
ODD = [pytest.param(odd, id=f"{place} {repr(odd)[:12]}") for place, odd in enumerate(ODD_NUMBERS + ODD_THINGS)]


@pytest.mark.parametrize("odd", ODD)
def test_every_odd_argument_is_an_error_of_ours_or_means_something(odd):
    rows = pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0], "k": [1, 2], "d": [dt.date(2020, 1, 1)] * 2})
    table = protected(rows, columns={"x": {"between": (0, 5)}}, budget=epsilon(10, delta="1e-6"))
    both = table.agg(n=count(), m=mean("x"))
    for ask in (
        lambda: both.plan(epsilon=1, weights={"n": odd}),
        lambda: both.plan(epsilon=1, weights=odd),
        lambda: both.plan(error=odd, for_groups_of=100),
        lambda: both.plan(error={"n": odd, "m": odd}, for_groups_of=100),
        lambda: both.plan(error=f"{odd}%", for_groups_of=100),
        lambda: both.plan(error="5%", for_groups_of=odd),
        lambda: both.plan(epsilon=odd),
        lambda: both.plan(epsilon=1, delta=odd, confidence=odd, noise=odd),
        lambda: table.mean("x", between=(0, odd), step=odd).plan(epsilon=1),
        lambda: table.mean(odd, between=odd).plan(epsilon=1),
        lambda: table.quantile("x", [odd]).plan(epsilon=1),
        lambda: table.histogram("x", [0, odd]).plan(epsilon=1),
        lambda: table.top("g", odd, keys=["a", "b"]).plan(epsilon=1),
        lambda: table.count_distinct("g", per_unit=odd).plan(epsilon=1),
        *(lambda name=name: table.group_by(name, keys=[odd]).count().plan(epsilon=1) for name in "gxkd"),
        lambda: table.group_by("g", "k", keys=[("a", odd)]).count().plan(epsilon=1),
        lambda: table.group_by("k", keys=odd).count().plan(epsilon=1),
        lambda: table.sql("SELECT SUM(x * 2) AS s FROM t", between=odd).plan(epsilon=1),
        lambda: table.sql("SELECT COUNT(DISTINCT g) AS s FROM t", per_unit={"s": odd}).plan(epsilon=1),
        *(lambda word=word: protected(rows, **{word: odd}) for word in ("neighbours", "population", "version", "unit")),
        *(
            lambda fact=fact: protected(rows, columns={"k": {fact: odd}})
            for fact in ("between", "step", "keys", "type")
        ),
        lambda: protected(rows, columns={"k": {"keys": [odd]}}),
    ):
        with suppress(TacitError):
            ask()


def test_an_answer_says_that_its_rows_were_picked_by_noise():
    table = protected(pa.table({"id": [1, 2], "g": ["a", "b"]}), columns={"g": {"keys": ["a", "b", "c"]}})
    asked = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    for tail, picked in (
        ("", False),
        ("ORDER BY n", False),
        ("HAVING g <> 'a'", False),
        ("ORDER BY g LIMIT 2", False),
        ("HAVING n > -20", True),
        ("HAVING g = 'a' OR n > 10", True),
        ("ORDER BY n DESC LIMIT 2", True),
    ):
        answer = table.sql(f"{asked} {tail}").answer(epsilon=1)
        assert (PICKED in str(answer), PICKED in answer.facts.reading, PICKED in answer._repr_html_()) == (picked,) * 3


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
        assert abs(row["n"] - 40) < 35  # at this epsilon more has a chance below 1e-20
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


def test_a_unit_written_as_a_word_is_told_how_to_write_it():
    with pytest.raises(QueryRefused, match=r"no column 'row' for the unit\nhint: unit=tacit.ROW, or --unit ROW"):
        protected(pa.table({"id": [1]}), unit="row")
