"""Statements made up from a grammar, the same ones every time: mostly nearly right, some hostile."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

Thing = TypeVar("Thing")

_ROWS = (
    "age",
    "days",
    "note",
    "ward",
    "cost",
    "day",
    "patient_id",
    "blob",
    "missing",
    '"age"',
    "visits.age",
    "v.age",
    "NULL",
)
_VALUES = (
    "1",
    "-1",
    "0.5",
    "1e3",
    "'a'",
    "'2011-01-31'",
    "DATE '2011-01-31'",
    "TRUE",
    "NULL",
    "''",
    "9223372036854775808",
    "?",
)
_OPERATORS = (
    "=",
    "<>",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "AND",
    "OR",
    "LIKE",
    "||",
    "<<",
    "IS",
    "IN",
    "~",
    "=>",
    "::",
)
_FUNCTIONS = (
    "LOWER",
    "TRIM",
    "COALESCE",
    "NULLIF",
    "SQRT",
    "READ_TEXT",
    "COUNT",
    "SUM",
    "ERROR",
    "QUERY",
    "COLUMNS",
    "IF",
    "ROUND",
    "LENGTH",
    "GREATEST",
    "DATE_DIFF",
    "DATE_TRUNC",
    "SUBSTRING",
    "YEAR",
)
_TYPES = ("INT", "TEXT", "DECIMAL(10, 2)", "DATE", "JSON", "INT[]", "DECIMAL", "VARCHAR(3)")
_TAILS = (
    "LIMIT 5",
    "ORDER BY 1",
    "ORDER BY n DESC",
    "HAVING n > 1",
    "OFFSET 1",
    "FETCH FIRST 1 ROWS ONLY",
    "FOR UPDATE",
    ";",
    "; DROP TABLE visits",
    "-- note",
    "UNION SELECT 1",
)
_NOISE = (
    "(",
    ")",
    ",",
    "'",
    '"',
    "$$",
    "/*",
    "*/",
    "--",
    "\\",
    "\x00",
    "SELECT",
    "FROM",
    "{",
    "}",
    "[",
    "]",
    ";",
    "🙂",
    "@",
    "#",
)


class Chooser:
    """Choices that look arbitrary and are the same for the same name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def number(self, below: int) -> int:
        """Return a whole number from 0 up to `below`, excluded."""
        self._count += 1
        digest = hashlib.sha256(f"{self._name}/{self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % below

    def one(self, options: Sequence[Thing]) -> Thing:
        """Return one of some things."""
        return options[self.number(len(options))]

    def some(self, options: Sequence[Thing], most: int) -> list[Thing]:
        """Return at least one and at most so many of some things, each at most once."""
        left, found = list(options), list[Thing]()
        for _ in range(1 + self.number(min(most, len(left)))):
            found.append(left.pop(self.number(len(left))))
        return found


def statements(number: int) -> Iterator[str]:
    """Return that many statements about visits."""
    for place in range(number):
        choose = Chooser(f"statement {place}")
        made = _statement(choose)
        yield _spoiled(made, choose) if choose.number(3) == 0 else made


def _statement(choose: Chooser) -> str:
    hostile = choose.number(3) == 0
    row = _expression if hostile else _number
    key = row(choose, 2)
    picked = [f"{key} AS k"] if choose.number(2) else []
    aggregates = ("COUNT(*) AS n", "COUNT(DISTINCT patient_id) AS p", "SUM({}) AS s", "AVG({}) AS a", "COUNT({}) AS c")
    others = ("*", "{} AS x", "MAX({}) AS m")
    picked.append(choose.one(aggregates + others if hostile else aggregates).format(row(choose, 2)))
    tables = ("visits", "visits v", "VISITS", "other", "visits, visits", "(SELECT 1)")
    text = f"SELECT {', '.join(picked)} FROM {choose.one(tables if hostile else tables[:1])}"
    if choose.number(2):
        text += f" WHERE {(_expression if hostile else _condition)(choose, 3)}"
    if len(picked) == 2 or choose.number(3) == 0:
        groups = ("k", "1", key, "ward", "ROLLUP (k)", "ALL")
        text += f" GROUP BY {choose.one(groups if hostile or len(picked) == 1 else groups[:3])}"
    return text + (f" {choose.one(_TAILS)}" if hostile and choose.number(2) else "")


def _number(choose: Chooser, depth: int) -> str:
    """A sound number."""
    form = choose.number(8) if depth else choose.number(2)
    if form < 2:
        return choose.one(("age", "days", "cost", "1", "0.5", "1e3", "-7") if form else ("age", "days"))
    left = _number(choose, depth - 1)
    if form == 2:
        return f"CASE WHEN {_condition(choose, depth - 1)} THEN {left} ELSE {_number(choose, depth - 1)} END"
    if form == 3:
        return f"CAST({left} AS INT) % {choose.one(('10', 'age', '0'))}"
    if form == 4:
        shape = choose.one(("COALESCE(CAST(note AS FLOAT), {})", "LEAST({}, LENGTH(note))", "ROUND({}, -1)"))
        return shape.format(left)
    if form == 5:
        return choose.one(("EXTRACT(DOW FROM day)", "DATE_DIFF('week', day, DATE '2011-01-31')", f"FLOOR({left} / 10)"))
    return f"({left} {choose.one(('+', '-', '*', '/'))} {_number(choose, depth - 1)})"


def _condition(choose: Chooser, depth: int) -> str:
    """A sound condition."""
    form = choose.number(6) if depth else 0
    if form < 2:
        return f"{_number(choose, max(depth - 1, 0))} {choose.one(('=', '<>', '<', '>='))} {_number(choose, 0)}"
    if form == 2:
        text = choose.one(("LOWER(TRIM(note))", "SUBSTRING(note || ward, 1, 3)"))
        return f"{text} {choose.one(('LIKE', '=', '<'))} 'a%'"
    if form == 3:
        return choose.one(
            (
                "ward IN ('A', 'B')",
                "day > '2011-01-31'",
                "day + INTERVAL 1 MONTH > day",
                "note IS NOT NULL",
                "age BETWEEN 18 AND 65",
            )
        )
    left = _condition(choose, depth - 1)
    return f"NOT ({left})" if form == 4 else f"({left} {choose.one(('AND', 'OR'))} {_condition(choose, depth - 1)})"


def _expression(choose: Chooser, depth: int) -> str:
    form = choose.number(9) if depth else choose.number(2)
    if form == 0:
        return choose.one(_ROWS)
    if form == 1:
        return choose.one(_VALUES)
    left = _expression(choose, depth - 1)
    if form in (2, 3, 4):
        return f"({left} {choose.one(_OPERATORS)} {_expression(choose, depth - 1)})"
    if form == 5:
        return f"{choose.one(_FUNCTIONS)}({left}{', ' + _expression(choose, depth - 1) if choose.number(2) else ''})"
    if form == 6:
        return f"CASE WHEN {left} THEN {_expression(choose, depth - 1)} END"
    if form == 7:
        return f"CAST({left} AS {choose.one(_TYPES)})"
    return choose.one(("{} IS NULL", "{} IN (1, 2)", "{} BETWEEN 1 AND 2", "NOT {}", "{} LIKE 'a%'")).format(left)


def _spoiled(text: str, choose: Chooser) -> str:
    """A word dropped, doubled or replaced by noise."""
    words = text.split(" ")
    place = choose.number(len(words))
    fate = choose.number(3)
    words[place : place + 1] = [[], [words[place]] * 2, [choose.one(_NOISE)]][fate]
    return " ".join(words)
