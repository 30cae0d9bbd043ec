"""PostgreSQL's catalog entry of a table: its columns, how each is sent and read by its type, and whether it may be
asked.

A cell without a meaning here is sent as NULL: infinite dates, years beyond 1 to 9999, texts of more than 32 KiB.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tacit.errors import QueryRefused
from tacit.tables.cells import TEXT_BYTES_MAX, CellReading, reading_of
from tacit.tables.connection import LISTED, listed_names, name_parts
from tacit.typed_sql import quoted, text_of

VERSION_LEAST = 120000
DIGITS_MOST = 38
# Characters of a text that surely has no more than TEXT_BYTES_MAX bytes.
SHORT = TEXT_BYTES_MAX // 4
# Encodings of which every stored text can be sent as UTF-8: in others one cell could make every question fail.
ENCODINGS = frozenset({"UTF8"})
# The Arrow type in which a cell is sent, and the type as which the server may compare it with a constant.
PLAIN_TYPES = {
    "int2": (pa.int16(), "int"),
    "int4": (pa.int32(), "int"),
    "int8": (pa.int64(), "int"),
    "bool": (pa.bool_(), "bool"),
    "float4": (pa.float32(), ""),
    "float8": (pa.float64(), ""),
    "uuid": (pa.uuid(), ""),
    "date": (pa.date32(), "date"),
    "timestamp": (pa.timestamp("us"), ""),
    "timestamptz": (pa.timestamp("us", "UTC"), ""),
}
TEXT_TYPES = ("text", "varchar", "bpchar", "name")
TIME_TYPES = ("date", "timestamp", "timestamptz")

_SERVER = """
SELECT current_setting('server_version_num')::int4 AS version, current_setting('server_encoding') AS encoding,
    current_database()::text AS database,
    CASE WHEN has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')
    THEN (SELECT system_identifier::text FROM pg_control_system()) END AS system,
    coalesce(inet_server_addr()::text, 'local') || ':' || current_setting('port') AS place
"""
_TABLES = """
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
    c.relpersistence::text AS lasts, coalesce(a.amname = 'heap', false) AS heap, row_security_active(c.oid) AS hidden,
    has_any_column_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE') AS readable
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am a ON a.oid = c.relam
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""
_FAMILY = """
WITH RECURSIVE below AS (
    SELECT inhrelid FROM pg_inherits WHERE inhparent = {0}
    UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON i.inhparent = below.inhrelid
), above AS (
    SELECT inhparent FROM pg_inherits WHERE inhrelid = {0}
    UNION SELECT i.inhparent FROM pg_inherits i JOIN above ON i.inhrelid = above.inhparent)
SELECT count(*)::int8 AS children, count(*) FILTER (WHERE relkind NOT IN ('r', 'p'))::int8 AS foreigners,
    coalesce(string_agg(oid::text, ' '), '') AS below,
    (SELECT coalesce(string_agg(inhparent::oid::text, ' '), '') FROM above) AS above
FROM below JOIN pg_class ON oid = inhrelid
"""
# A domain is read as its base type.
_COLUMNS = """
WITH RECURSIVE own AS (
    SELECT attnum, attname::text AS name, atttypid AS type, atttypmod AS digits, attgenerated::text AS made,
        format_type(atttypid, atttypmod) AS shown, has_column_privilege(attrelid, attnum, 'SELECT') AS readable
    FROM pg_attribute WHERE attrelid = {0} AND attnum > 0 AND NOT attisdropped
), based AS (
    SELECT own.*, t.typtype, t.typname, t.typnamespace, t.typbasetype, t.typtypmod
    FROM own JOIN pg_type t ON t.oid = own.type
    UNION ALL
    SELECT b.attnum, b.name, t.oid, CASE WHEN b.digits = -1 THEN b.typtypmod ELSE b.digits END, b.made, b.shown,
        b.readable, t.typtype, t.typname, t.typnamespace, t.typbasetype, t.typtypmod
    FROM based b JOIN pg_type t ON t.oid = b.typbasetype WHERE b.typtype = 'd'
)
SELECT name, typname::text AS type, digits, made, shown, readable, typtype::text AS form,
    typnamespace = 'pg_catalog'::regnamespace AS ours
FROM based WHERE typtype <> 'd' ORDER BY attnum
"""


@dataclass(frozen=True)
class PostgresColumn:
    """A column that can be read: the SQL that sends it, the Arrow type it comes in, and how that is read."""

    name: str
    sql: str
    sent: pa.DataType
    reading: CellReading
    type: str  # int, bool, date or text if the server may compare it with a constant; otherwise ""


@dataclass(frozen=True)
class TableFacts:
    """The catalog's facts about a table; equal facts mean that its rows are read in the same way."""

    schema: str
    name: str
    oid: int
    columns: Mapping[str, PostgresColumn]
    others: Mapping[str, str]
    is_plain: bool  # a heap without children, with rows on its own pages
    is_utf8: bool
    identity: str
    # by its number, and by those of tables that it is a part of or that are parts of it: they have rows in common
    aliases: tuple[str, ...] = field(default=(), compare=False)

    @property
    def full_name(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"


def find_table(link: Any, name: str | None) -> TableFacts:
    """Return what the catalog says of the table that a name means, or refuse it with the reason."""
    server = link.rows(_SERVER)[0]
    _refuse_server(server)
    if name is None:
        raise QueryRefused(
            "this address is of a whole database: name one of its tables"
            f"\nhint: …?table=clinic.visits; its tables: {_tables_of(link)}"
        )
    found = _table_named(link, name)
    _refuse_table(found)
    family = link.rows(_FAMILY.format(found["oid"]))[0]
    if family["foreigners"]:
        raise QueryRefused(
            f"a part of '{found['name']}' is a foreign table, in which one cell can make every question "
            "fail\nhint: detach that part, or copy the rows into a table of this database"
        )
    columns, others = _columns_sent(link, found["oid"])
    if not columns:
        raise QueryRefused(f"no column of '{found['name']}' can be read\nhint: convert a column to text or a number")
    place = f"postgresql:{server['system'] or server['place']}:{quoted(server['database'])}"
    return TableFacts(
        schema=found["schema"],
        name=found["name"],
        oid=found["oid"],
        columns=columns,
        others=others,
        is_plain=found["kind"] == "r" and found["heap"] and not family["children"],
        is_utf8=server["encoding"] == "UTF8",
        identity=f"{place}:{quoted(found['schema'])}.{quoted(found['name'])}",
        aliases=tuple(f"{place}:{oid}" for oid in (found["oid"], *family["above"].split(), *family["below"].split())),
    )


def _refuse_server(server: Mapping[str, Any]) -> None:
    if server["version"] < VERSION_LEAST:
        raise QueryRefused("this PostgreSQL is older than 12\nhint: use PostgreSQL 12 to 18")
    if server["encoding"] not in ENCODINGS:
        raise QueryRefused(
            f"this database's encoding is {server['encoding']}, in which a text may be stored that cannot be sent: one"
            " cell could make every question fail\nhint: use a database with ENCODING 'UTF8'"
        )


def _table_named(link: Any, name: str) -> dict[str, Any]:
    """Return the one table of that name: as it is written, or in small letters, as PostgreSQL reads names."""
    parts = name_parts(name)
    if not 1 <= len(parts) <= 2 or "\0" in name or not _NAME.fullmatch(name):
        raise QueryRefused(f'{name!r} is not the name of a table\nhint: clinic.visits, or "Clinic"."Visits"')
    for wanted in (parts, [part.lower() for part in parts]):
        schema = f" AND n.nspname = {text_of(wanted[0])}" if len(wanted) == 2 else ""
        found = link.rows(f"{_TABLES} AND c.relname = {text_of(wanted[-1])}{schema}")
        if len(found) > 1:
            schemas = ", ".join(sorted(map(_name_written, found)))
            raise QueryRefused(f"more than one schema has a table {name!r}\nhint: name one of {schemas}")
        if found:
            return dict(found[0])
    raise QueryRefused(f"this PostgreSQL database has no table {name!r}\nhint: its tables: {_tables_of(link)}")


_PLAIN = re.compile(r"\w+")
_NAME = re.compile(r'(?:"(?:[^"]|"")+"|[^."]+)(?:\.(?:"(?:[^"]|"")+"|[^."]+))?')


def _tables_of(link: Any) -> str:
    found = link.rows(f"{_TABLES} AND c.relkind IN ('r', 'p') ORDER BY n.nspname, c.relname LIMIT {LISTED + 1}")
    return listed_names(list(map(_name_written, found)))


def _name_written(found: Mapping[str, Any]) -> str:
    """Return a table's name for an address: quoted if it would otherwise be parsed differently."""
    return ".".join(each if _PLAIN.fullmatch(each) else quoted(each) for each in (found["schema"], found["name"]))


_REASONS = {
    "v": (
        "a view, which may compute across rows: one person could change others' rows",
        "ask the table it is made from",
    ),
    "m": (
        "a materialised view, which may compute across rows: one person could change others' rows",
        "ask the table it is made from",
    ),
    "f": ("a foreign table, in which one cell can make every question fail", "ask the server that has its rows"),
}


def _refuse_table(found: Mapping[str, Any]) -> None:
    name = found["name"]
    if found["kind"] in _REASONS:
        reason, instead = _REASONS[found["kind"]]
        raise QueryRefused(
            f"'{name}' is {reason}\nhint: store it as a table (CREATE TABLE … AS SELECT …), or {instead}"
        )
    if found["lasts"] == "t":
        raise QueryRefused(f"'{name}' is a temporary table of one connection\nhint: store it as a lasting table")
    if not found["readable"]:
        raise QueryRefused(f"this user may not read '{name}'\nhint: GRANT SELECT on it, or connect as another user")
    if found["hidden"]:
        raise QueryRefused(
            f"row security is in force on '{name}' for this user: a policy hides rows, and may compute across "
            "them\nhint: connect as a user that sees all rows (BYPASSRLS), or copy the rows into another table"
        )


def _columns_sent(link: Any, oid: int) -> tuple[dict[str, PostgresColumn], dict[str, str]]:
    columns, others = dict[str, PostgresColumn](), dict[str, str]()
    for found in link.rows(_COLUMNS.format(oid)):
        if found["made"] not in ("", "s"):  # a stored one is a cell like another
            others[found["name"]] = "a generated column"
        elif not found["readable"]:
            others[found["name"]] = "a column that this user may not read"
        elif (column := _column_sent(found)) is not None:
            columns[column.name] = column
        else:
            others[found["name"]] = found["shown"]
    return columns, others


def _column_sent(found: Mapping[str, Any]) -> PostgresColumn | None:
    """Return how a column is sent and read, or None if some cell of its type could not be."""
    name, kind, digits = found["name"], found["type"], found["digits"]
    cell = quoted(name)
    if found["form"] == "e":
        return _sent(name, f"{cell}::text", pa.string(), "text")
    if not found["ours"] or found["form"] != "b":
        return None
    if kind in PLAIN_TYPES:
        own = f"{cell}::{kind}"
        within = f"{own} >= '0001-01-01'::{kind} AND {own} < '10000-01-01'::{kind}"
        return _sent(name, f"CASE WHEN {within} THEN {own} END" if kind in TIME_TYPES else own, *PLAIN_TYPES[kind])
    if kind in TEXT_TYPES:  # char(n) loses its blanks
        is_short = kind == "name" or 4 <= digits <= SHORT
        return _sent(name, f"{cell}::text" if is_short else _at_most(f"{cell}::text"), pa.string(), "text")
    if kind == "bytea":
        return _sent(name, _at_most(cell, "::bytea"), pa.binary(), "")
    return _number_column(name, digits) if kind == "numeric" else None


def _at_most(cell: str, kind: str = "") -> str:
    """Return SQL that counts a cell's bytes before it is sent."""
    return f"CASE WHEN octet_length({cell}) <= {TEXT_BYTES_MAX} THEN {cell}{kind} END"


def _sent(name: str, sql: str, sent: pa.DataType, meant: str) -> PostgresColumn | None:
    reading = reading_of(name, sent)
    return None if reading is None else PostgresColumn(name, sql, sent, reading, meant)


def _number_column(name: str, modifier: int) -> PostgresColumn | None:
    """An exact number, sent as its digits: a decimal if its type says how many; otherwise the nearest float."""
    digits, scale = (modifier - 4 >> 16) & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    is_exact = modifier >= 4 and 0 <= scale <= digits <= DIGITS_MOST
    read = f"TRY_CAST(decode({quoted(name)}, 'replace') AS {f'DECIMAL({digits}, {scale})' if is_exact else 'DOUBLE'})"
    reading = CellReading(name, pa.binary(), read, rounds=not is_exact)
    # of 131,072 digits at most, of which 32 KiB are sent
    text = f"{quoted(name)}::numeric::text"
    return PostgresColumn(name, text if is_exact else _at_most(text), pa.string(), reading, "")
