"""The question of a form: the builder's choices become one SELECT, and the same question as Python.

So all pages ask the same way, and the SQL shown is the SQL asked. Text that people type into a filter becomes a value
in SQL's quotes.
"""

import re
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
PART_WORDS = {"year": "year", "month": "month", "week": "week", "day": "day"}
TOTALS_WORDS = {"": "no totals", "rollup": "totals", "cube": "totals of every column"}
# the comparisons of a filter: words, and its SQL of a column and a value
COMPARISONS = {
    "is": ("is", "{x} = {v}"),
    "not": ("is not", "{x} <> {v}"),
    "in": ("is one of", "{x} IN ({v})"),
    "least": ("is at least", "{x} >= {v}"),
    "most": ("is at most", "{x} <= {v}"),
    "above": ("is above", "{x} > {v}"),
    "below": ("is below", "{x} < {v}"),
    "has": ("contains", "{x} LIKE {v} ESCAPE '!'"),
    "empty": ("is empty", "{x} IS NULL"),
    "given": ("is not empty", "{x} IS NOT NULL"),
}
WITHOUT_COLUMN = ("count", "people")
ANY_COLUMN = ("filled", "distinct")
NUMBERS = frozenset({"int", "float", "decimal"})
NUMERIC = NUMBERS | {"bool"}
TIMES = frozenset({"date", "timestamp"})
_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?", re.ASCII)
_STEP = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)

Columns = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Chosen:
    """The choices on the ask page, as typed: shown again after every outcome."""

    mode: str = "build"
    shown: tuple[tuple[str, str], ...] = (("count", ""),)
    by: tuple[tuple[str, str], ...] = ()  # columns, each with the part of a time or the width of a bin, if any
    filters: tuple[tuple[str, str, str], ...] = ()  # column, comparison, value
    where: str = ""
    totals: str = ""
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

    def texts(name: str, length: int) -> list[str]:
        found = [str(each) for each in given.getlist(name)]
        return [*found, *[""] * length][:length]

    whats = texts("what", len(given.getlist("what")))
    pairs = [pair for pair in zip(whats, texts("of", len(whats)), strict=True) if pair[0] in AGGREGATES]
    columns = texts("column", len(given.getlist("column")))
    rows = zip(columns, texts("is", len(columns)), texts("value", len(columns)), strict=True)
    by = dict.fromkeys(each for each in texts("by", len(given.getlist("by"))) if each)
    return Chosen(
        mode="sql" if text("mode") == "sql" else "build",
        shown=tuple(pairs[:ROWS_MAX]) or (("count", ""),),
        by=tuple((each, text(f"part {each}") or text(f"step {each}")) for each in by),
        filters=tuple((column, how, value) for column, how, value in rows if column and how in COMPARISONS)[:ROWS_MAX],
        where=text("where"),
        totals=text("totals") if text("totals") in TOTALS_WORDS else "",
        sql=str(given.get("sql") or "").replace("\r\n", "\n"),
        epsilon=text("epsilon"),
        error=text("error"),
    )


def sql_of(chosen: Chosen, table: str, unit: str, columns: Columns) -> str:
    """Return the SELECT that a form asks: a typed one as it was typed."""
    if chosen.mode == "sql":
        return chosen.sql
    keys = [_key_sql(name, how, columns) for name, how in chosen.by]
    shown = [_shown_sql(what, of, unit) for what, of in chosen.shown]
    lines = [f"SELECT {', '.join([*keys, *shown])}", f"FROM {quoted(table)}"]
    conditions = [_filter_sql(*each, columns) for each in chosen.filters]
    conditions += [f"({chosen.where})" if conditions else chosen.where] if chosen.where else []
    lines += [f"WHERE {' AND '.join(conditions)}"] if conditions else []
    places = ", ".join(str(place + 1) for place in range(len(keys)))
    grouped = f"{chosen.totals.upper()} ({places})" if chosen.totals else places
    lines += [f"GROUP BY {grouped}"] if keys else []
    return "\n".join(lines)


def python_of(chosen: Chosen, table: str, spending: Mapping[str, str], sql: str) -> str:
    """Return the same question in Python, of a table that tacit.connect or tacit.table opened."""
    cost = ", ".join(f"{name}={value!r}" for name, value in spending.items())
    is_plain = not (chosen.filters or chosen.totals or any(how for _, how in chosen.by))
    if chosen.mode == "sql" or not is_plain:
        return f"{_variable(table)}.sql({sql!r}).answer({cost})"
    parts = [_variable(table)]
    parts += [f".where({chosen.where!r})"] if chosen.where else []
    parts += [f".group_by({', '.join(repr(name) for name, _ in chosen.by)})"] if chosen.by else []
    asked = [AGGREGATES[what][1].format(name=repr(of)) for what, of in chosen.shown]
    return "".join(parts) + f".agg({', '.join(asked)}).answer({cost})"


@dataclass(frozen=True)
class Group:
    """A column to group by, as the page offers it: `how` is "part" for times, "step" for numbers that need bins."""

    name: str
    how: str
    begins: str = ""  # the width of a bin to begin with


def groups_of(columns: Columns, unit: str) -> list[Group]:
    """Return the columns to group by: texts first, then times, then numbers with bins."""
    found = []
    for name, column in columns.items():
        kind = column["type"]
        how = "part" if kind in TIMES else "step" if kind in NUMBERS and not column["keys"] else ""
        if name != unit:
            found.append(Group(name, how, _bin_of(column) if how == "step" else ""))
    return sorted(found, key=lambda each: ("", "part", "step").index(each.how))


def _bin_of(column: Mapping[str, Any]) -> str:
    """Return a width that cuts a declared range into about ten bins; empty without a range.

    >>> _bin_of({"between": ["0", "120"], "type": "int"}), _bin_of({"between": ["0", "8"], "type": "int"})
    ('10', '1')
    """
    if not column["between"]:
        return "" if column["type"] == "int" else "1"
    low, high = (float(each) for each in column["between"])
    wide = max((high - low) / 12, 1e-9)
    power = 10.0 ** (len(f"{wide:.0f}") - 1) if wide >= 1 else 1.0
    nice = next((each * power for each in (1, 2, 5, 10) if each * power >= wide), 10 * power)
    return f"{nice:g}"


def quoted(name: str) -> str:
    """Return a name in SQL's quotes, with any characters."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text as a value in SQL, with any characters."""
    return "'" + text.replace("'", "''") + "'"


def _key_sql(name: str, how: str, columns: Columns) -> str:
    kind = columns.get(name, {}).get("type")
    if how in PART_WORDS and kind in TIMES:
        return f"DATE_TRUNC('{how}', {quoted(name)}) AS {quoted(f'{how} of {name}')}"
    if kind in NUMBERS and _STEP.fullmatch(how) and float(how) > 0:
        bins = f"{quoted(name)} // {how}" if kind == "int" and how.isdigit() else f"FLOOR({quoted(name)} / {how})"
        return f"{bins} * {how} AS {quoted(f'{name} in steps of {how}')}"
    return quoted(name)


def _filter_sql(column: str, how: str, value: str, columns: Columns) -> str:
    kind = str(columns.get(column, {}).get("type"))
    form = COMPARISONS[how][1]
    if how == "in":
        written = ", ".join(_literal(each.strip(), kind) for each in value.split(",") if each.strip()) or "NULL"
    elif how == "has":
        written = text_literal("%" + re.sub(r"[!%_]", r"!\g<0>", value) + "%")
    else:
        written = _literal(value, kind)
    return form.replace("{x}", quoted(column)).replace("{v}", written)


def sql_of_key(key: Any, column: Mapping[str, Any]) -> str:
    """Return a known group as SQL has it: a number, a truth, or a text in quotes."""
    return "NULL" if key is None else _literal(str(key), str(column["type"]))


def _literal(value: str, kind: str) -> str:
    """Return a value as SQL has it for a column of this type; one that does not fit is a text, which SQL refuses."""
    if kind in NUMBERS and _NUMBER.fullmatch(value):
        return value
    if kind == "bool" and value.lower() in ("true", "false", "yes", "no"):
        return "TRUE" if value.lower() in ("true", "yes") else "FALSE"
    return f"{kind.upper()} {text_literal(value)}" if kind in TIMES else text_literal(value)


def _shown_sql(what: str, of: str, unit: str) -> str:
    written = AGGREGATES[what][0].format(x=quoted(of), unit=quoted(unit))
    name = {"count": "count", "people": "people"}.get(what, f"{what}_{of}")
    return f"{written} AS {quoted(name)}"


def _variable(name: str) -> str:
    return name if name.isidentifier() else "table"


def columns_for(what: str, columns: Columns, unit: str) -> Sequence[str]:
    """Return the columns that an aggregate may be of."""
    if what in WITHOUT_COLUMN:
        return ()
    return [name for name, each in columns.items() if name != unit and (what in ANY_COLUMN or each["type"] in NUMERIC)]


def first_question(number: str, columns: Columns, unit: str) -> Chosen:
    """Return the rows, and the mean of a number if one is named, by the first column with listed groups."""
    shown = (("count", ""), *((("mean", number),) if number in columns_for("mean", columns, unit) else ()))
    listed = [(each.name, "") for each in groups_of(columns, unit) if not each.how and columns[each.name]["keys"]]
    return Chosen(shown=shown, by=tuple(listed[:1]))


def examples_of(table: str, columns: Columns, unit: str, *, finds: bool) -> list[str]:
    """Return three questions about a table: people by a text, a mean by it, rows along a time or in bins.

    `finds` is whether the budget can find groups in the data; without it only listed groups are asked for.
    """
    groups = [each for each in groups_of(columns, unit) if finds or columns[each.name]["keys"]]
    texts = [(each.name, "") for each in groups if not each.how]
    steps = [each for each in groups if each.how == "part" or (each.how and columns[each.name]["between"])]
    along = [(each.name, "month" if each.how == "part" else each.begins) for each in steps]
    numbers = [name for name in columns_for("mean", columns, unit) if columns[name]["type"] in NUMBERS]
    number = next((name for name in numbers if columns[name]["type"] != "int"), "".join(numbers[:1]))
    asked = [Chosen(shown=(("people", ""),), by=tuple(texts[:1]))]
    asked.append(Chosen(shown=(("mean", number),) if number else (("count", ""),), by=tuple(texts[:1])))
    asked.append(Chosen(shown=(("count", ""),), by=tuple((along + texts[1:])[:1])))
    return list(dict.fromkeys(sql_of(each, table, unit, columns) for each in asked))
