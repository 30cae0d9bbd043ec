"""The question of a form: the builder's choices become one SELECT, and the same question as Python.

So all pages ask the same way, and the SQL shown is the SQL asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData

ROWS_MAX = 8


# verb of the builder -> (SQL of a column x, Python); verbs without a column come first
AGGREGATES: dict[str, tuple[str, str]] = {
    "count": ("COUNT(*)", "tacit.count()"),
    "people": ("COUNT(DISTINCT {unit})", "tacit.count_units()"),
    "mean": ("AVG({x})", "tacit.mean({name})"),
    "sum": ("SUM({x})", "tacit.sum({name})"),
    "median": ("MEDIAN({x})", "tacit.median({name})"),
    "p90": ("QUANTILE({x}, 0.9)", "tacit.quantile({name}, 0.9)"),
    "std": ("STDDEV({x})", "tacit.std({name})"),
    "min": ("MIN({x})", "tacit.min({name})"),
    "max": ("MAX({x})", "tacit.max({name})"),
    "filled": ("COUNT({x})", "tacit.count({name})"),
    "distinct": ("COUNT(DISTINCT {x})", "tacit.count_distinct({name})"),
}
WHAT_WORDS = {
    "count": "number of rows",
    "people": "number of people",
    "mean": "mean of",
    "sum": "sum of",
    "median": "median of",
    "p90": "90th percentile of",
    "std": "standard deviation of",
    "min": "low end of",
    "max": "high end of",
    "filled": "number of values of",
    "distinct": "number of different",
}
ROLE_WORDS = ("analyst", "curator", "auditor")
PART_WORDS = {"year": "year", "month": "month", "week": "week", "day": "day"}
WITHOUT_COLUMN = ("count", "people")
NUMERIC = frozenset({"int", "float", "decimal", "bool"})
TIMES = frozenset({"date", "timestamp"})
PARTS = tuple(PART_WORDS)


@dataclass(frozen=True)
class Chosen:
    """The choices on the ask page, as typed: shown again after every outcome."""

    mode: str = "build"
    shown: tuple[tuple[str, str], ...] = (("count", ""),)
    by: tuple[str, ...] = ()
    where: str = ""
    sql: str = ""
    epsilon: str = ""
    error: str = ""

    @property
    def spends(self) -> bool:
        """Whether an amount to spend is filled in."""
        return bool(self.error or self.epsilon)

    @property
    def spending(self) -> dict[str, str]:
        """Return the amount to spend, as the API takes it; an error wins, since it defines the amount."""
        name, written = ("error", self.error) if self.error else ("epsilon", self.epsilon)
        return {name: written} if written else {}


def chosen_from(form: FormData | Mapping[str, Any]) -> Chosen:
    """Return a form's choices; unknown words are left out."""
    given = form if isinstance(form, FormData) else FormData(form)

    def text(name: str) -> str:
        return str(given.get(name) or "").strip()

    whats, columns = [str(each) for each in given.getlist("what")], [str(each) for each in given.getlist("of")]
    pairs = [(what, of) for what, of in zip(whats, [*columns, *[""] * len(whats)], strict=False) if what in AGGREGATES]
    mode = "sql" if text("mode") == "sql" else "build"
    by = tuple(dict.fromkeys(str(each) for each in given.getlist("by") if str(each)))
    return Chosen(
        mode,
        tuple(pairs[:ROWS_MAX]) or (("count", ""),),
        by,
        text("where"),
        text("sql"),
        text("epsilon"),
        text("error"),
    )


def sql_of(chosen: Chosen, table: str, unit: str) -> str:
    """Return the SELECT that a form asks."""
    if chosen.mode == "sql":
        return chosen.sql
    keys = [_key_sql(each) for each in chosen.by]
    shown = [_shown_sql(what, of, unit) for what, of in chosen.shown]
    lines = [f"SELECT {', '.join([*keys, *shown])}", f"FROM {quoted(table)}"]
    lines += [f"WHERE {chosen.where}"] if chosen.where else []
    lines += [f"GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}"] if keys else []
    return "\n".join(lines)


def python_of(chosen: Chosen, table: str, spending: Mapping[str, str]) -> str:
    """Return the same question in Python, of a table that tacit.connect or tacit.table opened."""
    cost = ", ".join(f"{name}={value!r}" for name, value in spending.items())
    if chosen.mode == "sql" or any("|" in each for each in chosen.by):
        return f"{_variable(table)}.sql({sql_of(chosen, table, 'unit')!r}).answer({cost})"
    parts = [_variable(table)]
    parts += [f".where({chosen.where!r})"] if chosen.where else []
    parts += [f".group_by({', '.join(map(repr, chosen.by))})"] if chosen.by else []
    asked = [AGGREGATES[what][1].format(name=repr(of)) for what, of in chosen.shown]
    return "".join(parts) + f".agg({', '.join(asked)}).answer({cost})"


def by_choices(columns: Mapping[str, Mapping[str, Any]], unit: str) -> list[tuple[str, str, str]]:
    """Return what one may group by: (value, column, part of a time)."""
    choices: list[tuple[str, str, str]] = []
    for name, column in columns.items():
        if name == unit:
            continue
        if column["type"] in TIMES:
            choices += [(f"{name}|{part}", name, part) for part in PARTS]
        else:
            choices.append((name, name, ""))
    return choices


def quoted(name: str) -> str:
    """Return a name in SQL's quotes, with any characters."""
    return '"' + name.replace('"', '""') + '"'


def _key_sql(by: str) -> str:
    name, _, part = by.rpartition("|")
    if part not in PARTS or not name:
        return quoted(by)
    return f"DATE_TRUNC('{part}', {quoted(name)}) AS {quoted(f'{part}_of_{name}')}"


def _shown_sql(what: str, of: str, unit: str) -> str:
    written = AGGREGATES[what][0].format(x=quoted(of), unit=quoted(unit))
    name = {"count": "count", "people": "people"}.get(what, f"{what}_{of}")
    return f"{written} AS {quoted(name)}"


def _variable(name: str) -> str:
    return name if name.isidentifier() else "table"


def columns_for(what: str, columns: Mapping[str, Mapping[str, Any]], unit: str) -> Sequence[str]:
    """Return the columns that an aggregate may be of."""
    if what in WITHOUT_COLUMN:
        return ()
    any_kind = what in ("filled", "distinct")
    return [name for name, each in columns.items() if name != unit and (any_kind or each["type"] in NUMERIC)]
