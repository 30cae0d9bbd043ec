"""Rows of a case in a PostgreSQL server: a table of the same types and cells, where PostgreSQL can hold them."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.types as pat
from psycopg import sql

from tacit_gauntlet.stage.postgres_server import server, server_programs

SCHEMA = "made_up"
NAME_BYTES = 63  # a longer name is cut off
_numbers = itertools.count()


@contextmanager
def rows_in_postgres() -> Iterator[str]:
    """Start a server, and yield its address; refuse where PostgreSQL is not installed."""
    programs = server_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed here (apt-get install postgresql)")
    with server(programs) as address:
        with writer(address) as link:
            link.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
        yield address


def writer(address: str) -> Any:
    """Return a connection that writes."""
    return psycopg.connect(address, autocommit=True)


def held(rows: pa.Table, address: str) -> str | None:
    """Return the address of a new table with these rows, or None where PostgreSQL has no such type or cell."""
    types = [_type(field.type) for field in rows.schema]
    if not types or None in types or not all(0 < len(name.encode()) <= NAME_BYTES for name in rows.schema.names):
        return None
    try:
        lines = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    except (ValueError, OverflowError):  # a date that Python does not have
        return None
    if any(isinstance(cell, str) and not _is_sendable(cell) for line in lines for cell in line):
        return None
    name = f"t{os.getpid()}_{next(_numbers)}"
    table = sql.Identifier(SCHEMA, name)
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(kind or ""))
        for field, kind in zip(rows.schema, types, strict=True)
    ]
    with writer(address) as link:
        link.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
        link.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(columns)))
        try:
            with link.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
                for line in lines:
                    copy.write_row(line)
        except psycopg.DataError:  # a decimal of more digits than its type has
            return None
    return f"{address}{'&' if '?' in address else '?'}table={SCHEMA}.{name}"


def sendable(rows: pa.Table) -> list[bool]:
    """Return of each row whether PostgreSQL can hold its texts."""
    lines = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    return [all(not isinstance(cell, str) or _is_sendable(cell) for cell in line) for line in lines]


def _is_sendable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _type(kind: pa.DataType) -> str | None:
    while pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_decimal128(kind):
        return f"numeric({kind.precision}, {kind.scale})" if kind.scale >= 0 else None
    if pat.is_timestamp(kind):
        return None if kind.unit == "ns" else "timestamp" if kind.tz is None else "timestamptz"
    return next((name for known, name in _TYPES if kind == known), None)


_TYPES: tuple[tuple[Any, str], ...] = (
    (pa.bool_(), "bool"),
    (pa.int8(), "int2"),
    (pa.int16(), "int2"),
    (pa.int32(), "int4"),
    (pa.int64(), "int8"),
    (pa.uint8(), "int2"),
    (pa.uint16(), "int4"),
    (pa.uint32(), "int8"),
    (pa.float32(), "float4"),
    (pa.float64(), "float8"),
    (pa.string(), "text"),
    (pa.large_string(), "text"),
    (pa.binary(), "bytea"),
    (pa.date32(), "date"),
    (pa.uuid(), "uuid"),
)
