"""Typed SQL: relations as values in Python, written as DuckDB's SQL when they are run.

    rows = Lent(pyarrow.table({"ward": ["a", "b", "a"], "age": [61, 40, 35]}))
    old = rows.filter(rows["age"] > 38).group_by("ward").agg(people=rows.count())
    connected().to_arrow(old)

No cast raises, every name and text is quoted in one place, and the type of every value is known before it is run.
"""

from tacit.typed_sql.selects import Connection, Lent, Relation, Stored, connected, sql_of
from tacit.typed_sql.types import Type, decimal
from tacit.typed_sql.values import (
    Typed,
    cases,
    coalesce,
    dense_rank,
    function,
    greatest,
    interval,
    least,
    literal,
    null,
    quoted,
    row_number,
    struct,
    text_of,
    window,
)
