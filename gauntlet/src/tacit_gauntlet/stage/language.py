"""The question language as a case meets it: statements read, refused or written, and expressions tried on rows.

Statements are about one made-up table of visits. A trial has its rows in a DuckDB of its own, and reads no others.
"""

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from tacit import typed_sql as sql
from tacit.engine.expression import to_sql
from tacit.engine.translations import TRANSLATIONS
from tacit.errors import QueryRefused
from tacit.query import nodes
from tacit.query import nodes as kinds
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.sql import expressions
from tacit.query.sql.questions import parse_query, parse_question
from tacit.query.sql.rows import parse_expression
from tacit.query.typecheck import canonical, column_kinds
from tacit.tables import open_source
from tacit.tables.schema import ROW, ColumnFacts, Declaration
from tacit_gauntlet.frame.place import is_spark, rows_at
from tacit_gauntlet.stage.payloads import VISITS
from tacit_gauntlet.stage.table import placed

# what the functions below take and give
Kind = kinds.Kind
Query = nodes.Query
Expression = nodes.Expression

TEXT = kinds.TEXT
_PLACE = "place_of_row"


def read(text: str) -> Query:
    """Return a statement about the visits as a question; what is no question is refused."""
    return parse_query(text, VISITS)


def asked(text: str) -> Query | None:
    """Return a statement as a question, or nothing where it is refused."""
    try:
        return read(text)
    except QueryRefused:
        return None


def is_refused(text: str) -> bool:
    """Return whether a statement is refused, of one SELECT or several."""
    try:
        parse_question(text, VISITS)
    except QueryRefused:
        return True
    return False


def filter_of(text: str) -> Expression:
    """Return an expression over the visits."""
    return parse_expression(text, VISITS)


def kinds_of_visits() -> Mapping[str, Kind]:
    """Return the types of the visits' columns."""
    return column_kinds(VISITS)


def functions_known() -> set[str]:
    """Return the functions that the language has."""
    return set(FUNCTIONS)


def functions_translated() -> set[str]:
    """Return the functions that the engine runs."""
    return set(TRANSLATIONS)


def functions_in(query: Query) -> set[str]:
    """Return the functions that a question uses."""
    return set().union(*(nodes.functions_of(part) for part in _parts(query)))


def columns_in(query: Query) -> set[str]:
    """Return the columns that a question reads."""
    return set().union(*(nodes.columns_of(part) for part in _parts(query)))


def _parts(query: Query) -> list[Expression]:
    measured = [output.aggregate.expression for output in query.outputs]
    return [part for part in (query.where, *(key.expression for key in query.keys), *measured) if part is not None]


def written(expression: Expression) -> str:
    """Return an expression as SQL."""
    return expressions.show(expression)


def is_itself(name: str) -> Expression:
    """Return the expression that a column has its own name as its value."""
    return nodes.Call("=", (nodes.Column(name), kinds.value_of(name)))


def comes_back(name: str, names: list[str]) -> bool:
    """Return whether that expression, written as SQL, is read again as what it was, in a table of such columns."""
    table = Declaration("hostile", ROW, {each: ColumnFacts("text") for each in names})
    whole: Expression = canonical(is_itself(name), dict.fromkeys(names, TEXT))
    try:
        return parse_expression(written(whole), table) == whole
    except QueryRefused:
        return False


def trial(expressions: Mapping[str, Expression], rows: pa.Table, kinds: Mapping[str, Kind]) -> dict[str, list[Any]]:
    """Return each expression's value on each row, as plain Python values in the rows' order."""
    if rows_at() is not None:
        return _trial_elsewhere(expressions, rows, kinds)
    return _trial_here(expressions, rows, kinds)


def trial_under(
    setting: str, expressions: Mapping[str, Expression], rows: pa.Table, kinds: Mapping[str, Kind]
) -> dict[str, list[Any]]:
    """Return the same in a DuckDB with a setting that a user's own connection may have."""
    return _trial_here(expressions, rows, kinds, setting)


def _trial_elsewhere(
    expressions: Mapping[str, Expression], rows: pa.Table, kinds: Mapping[str, Kind]
) -> dict[str, list[Any]]:
    """Return the same of rows that another engine holds; those that it cannot hold are tried here."""
    from tacit_gauntlet.stage.postgres_rows import sendable
    from tacit_gauntlet.stage.spark_rows import evaluated

    address = rows_at() or ""
    can = [True] * len(rows) if is_spark(address) else sendable(rows)
    there = rows.filter(pa.array(can, pa.bool_()))
    words = placed(there.append_column(_PLACE, pa.array(range(len(there)), pa.int64())))
    if isinstance(words["source"], pa.Table):
        return _trial_here(expressions, rows, kinds)
    source = open_source(words["source"], {}, spark=words.get("spark"))
    asked = {name: to_sql(each, source.table, kinds) for name, each in expressions.items()}
    asked[_PLACE] = source.table[_PLACE]
    if is_spark(address):
        found = evaluated(source, asked).sort_by(_PLACE)
    else:
        with source.moment():
            found = source.fetch(source.table.select(**asked)).sort_by(_PLACE)
    here = _trial_here(expressions, rows.filter(pa.array([not each for each in can], pa.bool_())), kinds)
    merged: dict[str, list[Any]] = {}
    for name in expressions:
        stored, others = iter(found[name].to_pylist()), iter(here[name])
        merged[name] = [next(stored if each else others) for each in can]
    return merged


def _trial_here(
    expressions: Mapping[str, Expression], rows: pa.Table, kinds: Mapping[str, Kind], setting: str = "TimeZone = 'UTC'"
) -> dict[str, list[Any]]:
    table = sql.Lent(rows)
    asked = table.select(**{name: to_sql(each, table, kinds) for name, each in expressions.items()})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"SET {setting}")
        found = sql.Connection(connection).to_arrow(asked)
    return {name: found[name].to_pylist() for name in expressions}
