"""Opens a table of Spark: its schema, its name in the catalog, and that executors can compute; no row is read.

Only Spark Connect's interface is used, so that shared clusters work. Views and DataFrames may compute across rows: only
stored tables are opened, of formats in which no cell makes Spark fail.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tacit.errors import InvalidParameter, QueryRefused
from tacit.tables.elsewhere import Elsewhere
from tacit.tables.formats import no_warnings, open_elsewhere
from tacit.tables.schema import WrittenFacts
from tacit.tables.source import Source, refuse_duplicates

_HERE = re.compile(r"spark://(?P<name>.+)", re.DOTALL)
_THERE = re.compile(r"(?P<server>sc://[^?]+)\?table=(?P<name>.+)", re.DOTALL)
STORED = frozenset({"MANAGED", "EXTERNAL"})
# In these no cell makes Spark fail, if the file itself is sound.
FORMATS = frozenset({"parquet", "orc", "delta", "iceberg", "hudi"})
DETAILS = "# detailed table information"
COMPUTES = ("row filter", "column masks", "# row filter", "# column masks")
KINDS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
# A longer decimal is checked by Spark, cell by cell, against the digits of its type.
DIGITS_READ_AS_THEY_ARE = 18
_DIGITS = re.compile(r"decimal\((?P<digits>\d+),(?P<scale>\d+)\)")
RETRIES = 5  # which take about 17 seconds
PADDED = "__CHAR_VARCHAR_TYPE_STRING"
# Dates and times of Parquet files keep their stored numbers, also before 1582.
AS_WRITTEN = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


@dataclass(frozen=True)
class SparkTable:
    """A stored table of Spark: the session that reads it, its full name, and its columns of padded text."""

    session: Any
    name: str
    padded: frozenset[str]
    format: str
    columns: tuple[tuple[str, str], ...]  # the name and type of each, as when it was opened

    def rows(self, columns: tuple[str, ...]) -> Any:
        """Return a DataFrame of these columns, each cell as it is or NULL, named c0 and on: pyspark takes a point in a
        name as a field access."""
        reader = self.session.read
        for option, value in AS_WRITTEN.items() if self.format == "parquet" else ():
            reader = reader.option(option, value)
        # as text: functions of pyspark belong to the kind of session that was made last, which may be another
        read = [f"{self._read(name)} AS c{at}" for at, name in enumerate(columns)]
        return reader.table(self.name).selectExpr(*read)

    def _read(self, name: str) -> str:
        """Return how a column is read: padded text without its blanks; a short decimal, at whose digits Spark fails in
        Arrow, as NULL if it has more than its type."""
        if name in self.padded:
            return f"rtrim({_quoted(name)})"
        digits = _DIGITS.fullmatch(dict(self.columns)[name])
        if digits is None or int(digits["digits"]) > DIGITS_READ_AS_THEY_ARE:
            return _quoted(name)
        most = f"CAST('{'9' * int(digits['digits'])}e-{digits['scale']}' AS {digits[0]})"
        return f"CASE WHEN {_quoted(name)} BETWEEN -{most} AND {most} THEN {_quoted(name)} END"

    @staticmethod
    def mapped(rows: Any, task: Any, columns: str) -> Any:
        """Return the result of a task on the Arrow batches of a DataFrame; it runs when the result is taken."""
        with no_warnings():  # pyspark warns of whichever pandas there is, which must not end a question
            return rows.mapInArrow(task, columns)

    def refuse_changes(self) -> None:
        """Refuse if the table is gone, or has other columns than when it was opened; reads no row."""
        try:
            with _few_retries(self.session):
                columns = _columns_of_schema(self.session.table(self.name).schema)
        except Exception:  # noqa: BLE001 - for any reason, it cannot be read
            raise QueryRefused(
                f"Spark does not have a table {self.name} any more, or does not answer, so no charge was "
                "made\nhint: check the session, or open the table again"
            ) from None
        if columns != self.columns:
            raise QueryRefused(
                f"the Spark table {self.name} no longer has the columns it was opened with, so no charge was made"
                "\nhint: open the table again, with a new version="
            )


def open_spark(address: str, session: Any, written: Mapping[str, WrittenFacts]) -> Source:
    """Return the source that stands for a stored table of Spark."""
    name, session = _session(address, session)
    found = _stored_in_catalog(session, name)
    full = ".".join(map(_quoted, (found.catalog or "spark_catalog", *(found.namespace or ()), found.name)))
    format, location = _format(session, full)
    frame = session.table(full)
    if frame.isStreaming:
        raise QueryRefused(f"{full} is a stream\nhint: give a stored table")
    fields = list(frame.schema.fields)
    refuse_duplicates([field.name for field in fields])
    doubtful = _doubtful_decimals(found, format, fields, written)
    kinds = {field.name: None if field.name in doubtful else _arrow_kind(field.dataType) for field in fields}
    others = {field.name: field.dataType.simpleString() for field in fields if kinds[field.name] is None}
    schema = pa.schema([(each, kind) for each, kind in kinds.items() if kind is not None])
    if not len(schema):
        raise QueryRefused(f"no column of {full} can be read\nhint: convert a column to text or a number")
    padded = frozenset(field.name for field in fields if str(field.metadata.get(PADDED, "")).startswith("char"))
    table = SparkTable(session, full, padded, format, _columns_of_schema(frame.schema))
    elsewhere = Elsewhere(schema, table, session)
    return open_elsewhere(
        elsewhere, written, stem=found.name, identity=f"spark:{full.lower()}:{location}", others=others
    )


def _session(address: str, session: Any) -> tuple[str, Any]:
    try:
        import pyspark  # noqa: F401 - whether it is there
    except ImportError:
        raise InvalidParameter("tables of Spark need pyspark\nhint: pip install 'tacit[spark]'") from None
    there = _THERE.fullmatch(address)
    if there is not None:
        if session is not None:
            raise InvalidParameter("an address of a Spark server makes its own session\nhint: leave out spark=")
        return there["name"], _session_on(there["server"])
    here = _HERE.fullmatch(address)
    if here is None:
        raise InvalidParameter(
            "this address of Spark names no table"
            "\nhint: spark://catalog.schema.table with spark=session, or sc://host:15002?table=catalog.schema.table"
        )
    if session is None:
        raise InvalidParameter(
            "a table of Spark is read in a session of yours\nhint: tacit.table('spark://clinic.visits', spark=session)"
        )
    return here["name"], session


_sessions: dict[str, Any] = {}  # one for each address, so that tables of one server can be read together
_connecting = threading.RLock()


def _session_on(server: str) -> Any:
    """Return this process's session on a Spark Connect server: the one it has, if the server still knows it."""
    try:
        with no_warnings():
            # not the builder of pyspark.sql: it would have sessions of the other kind stop working in this process
            from pyspark.sql.connect.session import SparkSession
    except Exception:  # noqa: BLE001 - pyspark has another error for missing packages
        raise InvalidParameter(
            "addresses of Spark Connect need packages that are missing here\nhint: pip install 'tacit[spark]'"
        ) from None
    with _connecting:
        try:
            _refuse_ended(_sessions[server])
        except Exception:  # noqa: BLE001 - missing, or forgotten by its server
            _sessions.pop(server, None)
        try:
            if server not in _sessions:
                session = SparkSession.builder.remote(server).create()
                _refuse_ended(session)
                _sessions[server] = session
        except Exception:  # noqa: BLE001 - for any reason, there is no session
            raise QueryRefused(
                "the Spark server does not answer\nhint: check the address, and that Spark Connect runs there:"
                " sc://host:15002?table=catalog.schema.table"
            ) from None
        return _sessions[server]


def _refuse_ended(session: Any) -> None:
    """Ask the server something that is not kept here, such as its version would be."""
    with _few_retries(session):
        if session.is_stopped or not session.range(1).schema:
            raise ConnectionError("the session has ended")


@contextmanager
def _few_retries(session: Any) -> Iterator[None]:
    """Have a server of Spark Connect asked a few times if it does not answer, not for minutes; one thread at a time."""
    if not type(session).__module__.startswith("pyspark.sql.connect"):  # of another session pyspark refuses `client`
        yield
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy

    client = session.client
    with _connecting:
        usual = client.get_retry_policies()
        client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
        try:
            yield
        finally:
            client.set_retry_policies(usual)


def _stored_in_catalog(session: Any, name: str) -> Any:
    """Return what the catalog says of a table; refuse what is not stored."""
    try:
        found = session.catalog.getTable(name)
    except Exception:  # noqa: BLE001 - for any reason, there is no such table
        raise QueryRefused(
            f"Spark does not have a table {name!r}\nhint: give its full name: 'spark://catalog.schema.table'"
        ) from None
    if found.isTemporary or found.tableType not in STORED:
        raise QueryRefused(
            f"{name!r} is a {'temporary view' if found.isTemporary else str(found.tableType).lower().replace('_', ' ')}"
            " of Spark, which may compute across rows: one person could change others' rows"
            "\nhint: store it (CREATE TABLE … AS SELECT …), or ask the table it is made from"
        )
    return found


def _format(session: Any, full: str) -> tuple[str, str]:
    """Return the format of a stored table, and its place; refuse formats and policies that cells can stop."""
    described = [
        (str(row["col_name"]).strip().lower(), str(row["data_type"]))
        for row in session.sql(f"DESCRIBE TABLE EXTENDED {full}").collect()
    ]
    names = [name for name, _ in described]
    facts = dict(described[names.index(DETAILS) :] if DETAILS in names else ())  # before it are columns
    if any(name in COMPUTES for name in names if name.startswith("#")) or any(name in COMPUTES for name in facts):
        raise QueryRefused(
            f"{full} has a row filter or a column mask, which computes when rows are read"
            "\nhint: ask as a user to whom it does not apply, or store what they may see as a table"
        )
    format = facts.get("provider", "").lower()
    if format not in FORMATS:
        raise QueryRefused(
            f"{full} is stored as {format or 'a format without a name'}, in which one cell can make Spark fail"
            f"\nhint: copy it into a table of one of these formats: {', '.join(sorted(FORMATS))}"
        )
    return format, facts.get("location", "")


def _arrow_kind(kind: Any) -> pa.DataType | None:
    """Return the Arrow type in which a column comes; None if some cell of it could not be read."""
    if kind.typeName() == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    return KINDS.get(kind.typeName().partition(" ")[0].partition("(")[0])


def _doubtful_decimals(
    found: Any, format: str, fields: list[Any], written: Mapping[str, WrittenFacts]
) -> frozenset[str]:
    """Return the columns of long decimals in files that others may have written; refuse other types for them.

    Spark fails at a cell with more than DIGITS_READ_AS_THEY_ARE digits; a declared decimal is vouched for.
    """
    if format != "parquet" or found.tableType != "EXTERNAL":
        return frozenset()
    decimals = [field for field in fields if field.dataType.typeName() == "decimal"]
    doubtful = {each.name for each in decimals if each.dataType.precision > DIGITS_READ_AS_THEY_ARE}
    for name in sorted(doubtful & written.keys()):
        if written[name].type != "decimal":
            raise QueryRefused(
                f"'{name}' is a decimal of more than {DIGITS_READ_AS_THEY_ARE} digits in Parquet files from"
                " outside of Spark, and one cell with more digits than its type would make Spark fail"
                f"\nhint: if what writes the files checks that, say so: columns={{'{name}': {{'type': 'decimal'}}}};"
                " if not, store the table in Spark (CREATE TABLE … AS SELECT …)"
            )
    return frozenset(doubtful - written.keys())


def _columns_of_schema(schema: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in schema.fields)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
