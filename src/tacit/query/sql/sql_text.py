"""Writes expressions as SQL text, which is parsed to the same tree again; and default names of columns: avg_days for
AVG(days)."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokens import Tokenizer

from tacit.query.kind import scale_of
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.evaluation import to_text
from tacit.query.language.functions import Notation, Pen
from tacit.query.nodes import Aggregate, Call, Column, Expression, Query, Scalar, Value

# The most characters of SQL in an expression's name.
NAME_MOST = 60
_KEYWORDS = frozenset(Tokenizer.KEYWORDS)


def show(expression: Expression) -> str:
    """Return the expression as SQL text.

    >>> show(Call("<", (Column("age"), Value(18, "int"))))
    'age < 18'
    """
    if isinstance(expression, Column):
        return show_name(expression.name)
    if isinstance(expression, Value):
        return show_value(expression.value)
    return _notation(expression).write(expression, Pen(show, _bracketed))


def name_of(expression: Expression) -> str:
    """Return a column's own name, or an expression as SQL, cut short and without a condition that another is not NULL.

    >>> name_of(Column("Price per CD")), name_of(Call("/", (Column("amount"), Column("cds"))))
    ('Price per CD', 'amount / cds')
    """
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Call) and expression.function == "case" and len(expression.arguments) == 3:
        first, then, otherwise = expression.arguments
        if isinstance(first, Call) and first.function == "is_null" and then == Value(None, "null"):
            return name_of(otherwise)
    text = show(expression)
    return text if len(text) <= NAME_MOST else f"{text[: NAME_MOST - 1]}…"


def show_name(name: str) -> str:
    """Return a name as SQL: plain if it is a lower-case word, otherwise quoted."""
    plain = name.isascii() and name.isidentifier() and name.lower() == name and name.upper() not in _KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def show_value(value: Scalar) -> str:
    """Return a constant as SQL text."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        digits = repr(value)
        return digits if "e" in digits else digits + "e0"
    if isinstance(value, Fraction):
        return to_text(value, scale_of(value))
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return str(value) if isinstance(value, int) else f"DATE '{value.isoformat()}'"


def _bracketed(expression: Expression) -> str:
    text = show(expression)
    atomic = not isinstance(expression, Call) or (text.endswith(")") and not _notation(expression).is_operator)
    return text if atomic and not text.startswith("-") else f"({text})"


def _notation(call: Call) -> Notation:
    record = FUNCTIONS.get(call.function)
    return Notation() if record is None else record.notation


# --- default names of columns ---

_LETTERS_MOST = 40
_TEXT_MOST = 120


def aggregate_name(word: str, asked: Aggregate, columns: Sequence[str]) -> str:
    """Return the name of an aggregate by the word it was asked with and its columns: avg_days, count, corr_age_days.

    >>> aggregate_name("avg", Aggregate("mean", Column("days")), ["days"])
    'avg_days'
    """
    if asked.kind in ("count_units", "count_distinct"):
        word = f"{word}_distinct"
    if word == "quantile" and asked.fraction is not None:  # days_p90, as in Python
        percent = f"{float(asked.fraction * 100):g}".replace(".", "_")
        return f"{'_'.join(columns) or word}_p{percent}"
    return "_".join([word, *columns])


def text_name(node: exp.Expr) -> str:
    """Return a name made of the words of an expression: year_day for YEAR(day)."""
    words = re.sub(r"[^0-9a-z]+", "_", node.sql().lower()).lstrip("_0123456789")
    return words[:_LETTERS_MOST].strip("_") or "expression"


def aggregate_text(word: str, asked: Aggregate, unit: str | None = None) -> str:
    """Return an aggregate as it is written in SQL, to name one that is not shown."""
    parts = [show(part) for part in (asked.expression, asked.other) if part is not None]
    inside = ", ".join(parts) or "*"
    if asked.kind == "count_units":
        inside = f"DISTINCT {unit}"
    elif asked.kind == "count_distinct":
        inside = f"DISTINCT {inside}"
    elif word == "quantile" and asked.fraction is not None:
        inside += f", {float(asked.fraction):g}"
    text = f"{word.upper()}({inside})"
    return text if len(text) <= _TEXT_MOST else f"{text[: _TEXT_MOST - 2]}…)"


_KIND_WORDS = {
    "count_units": "count",
    "count_distinct": "count",
    "mean": "avg",
    "std": "stddev",
    "covariance": "covar_pop",
    "correlation": "corr",
    "top": "top",
}


def question_text(query: Query, unit: str | None = None) -> str:
    """Return a question in one line, as SQL would ask it; with its rows, unless they are one plain table."""
    asked = {}
    for output in query.outputs:
        kind = output.aggregate.kind
        asked[output.name] = aggregate_text(_KIND_WORDS.get(kind, kind), output.aggregate, unit)
    shown = {each.name: show(each.expression) for each in query.after.shown}
    keys = {key.name: show(key.expression) for key in query.keys}

    def item(name: str) -> str:
        written = shown.get(name) or asked.get(name) or keys.get(name) or show_name(name)
        return written if written in (name, show_name(name)) else f"{written} AS {show_name(name)}"

    items = ", ".join(item(name) for name in query.columns or (*keys, *asked))
    parts = [f"SELECT {'DISTINCT ' * query.after.distinct}{items}"]
    about = "" if query.relation is None else " (joined, or by unit)"
    parts.append(f"FROM {show_name(query.table)}{about}")
    parts += [] if query.where is None else [f"WHERE {show(query.where)}"]
    others = ["OTHER()"] if query.other else []
    parts += [f"GROUP BY {', '.join([*keys.values(), *others])}"] if keys else []
    parts += [] if query.after.having is None else [f"HAVING {show(query.after.having)}"]
    parts += [] if query.after.qualify is None else [f"QUALIFY {show(query.after.qualify)}"]
    order = ", ".join(show(each.expression) + " DESC" * each.descending for each in query.after.order)
    parts += [f"ORDER BY {order}"] if order else []
    parts += [] if query.after.limit is None else [f"LIMIT {query.after.limit}"]
    parts += [f"OFFSET {query.after.offset}"] if query.after.offset else []
    return " ".join(parts)


def unique(name: str, taken: Collection[str]) -> str:
    """Return an unused name, with a number if needed: avg, avg_2; the names of its two ends are kept free too."""

    def is_free(tried: str) -> bool:
        ends = (tried, f"{tried}_low", f"{tried}_high")
        return not any(end in taken for end in ends) and not any(
            tried in (f"{each}_low", f"{each}_high") for each in taken
        )

    if is_free(name):
        return name
    number = 2
    while not is_free(f"{name}_{number}"):
        number += 1
    return f"{name}_{number}"
