"""Expressions evaluated on a small made-up table in a DuckDB of its own, for tests and audits of the translation.

It is given its rows and reads no others.
"""

from collections.abc import Mapping
from typing import Any

import duckdb
import ibis
import pyarrow as pa

from tacit.engine.expression import to_ibis
from tacit.query.kind import Kind
from tacit.query.nodes import Expression


def trial(expressions: Mapping[str, Expression], rows: pa.Table, kinds: Mapping[str, Kind]) -> dict[str, list[Any]]:
    """Return each expression's value on each row, as plain Python values in the rows' order."""
    table = ibis.table(ibis.Schema.from_pyarrow(rows.schema), name="made_up")
    asked = table.select(**{name: to_ibis(each, table, kinds) for name, each in expressions.items()})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("made_up", rows)
        found = connection.sql(ibis.to_sql(asked, dialect="duckdb")).to_arrow_table()
    return {name: found[name].to_pylist() for name in expressions}
