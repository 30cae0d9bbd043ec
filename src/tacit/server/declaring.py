"""Tables declared over HTTP: a request becomes exactly the lines that a curator would write in the catalog.

The catalog's own reader parses and opens the lines, so a declaration is refused in the same words and leaves the same
entry by either way. Then the catalog has them, for the next start and for everyone who
reads the file. Sources are files under folders that were allowed when the server was started, or tables of a PostgreSQL
server that the catalog names already.
"""

import fcntl
import glob
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from tacit.asking import Catalog, left_record, what_is_left
from tacit.errors import InvalidParameter
from tacit.files import read_small
from tacit.hold import hold_text
from tacit.json_wire import scalar_from
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.options import TABLE, TEXT
from tacit.server.access import Verb, require
from tacit.server.curating import Act, add_act
from tacit.server.desk import Desk
from tacit.server.problems import Problem
from tacit.server.replies import Who
from tacit.tables import (
    BYTES_MAX,
    CatalogEntry,
    CatalogFile,
    catalog_from,
    open_source,
    without_password,
)

_DATABASE = re.compile(r"(?P<path>.+\.(?:duckdb|ddb|db))(?P<table>\?table=.+)?", re.IGNORECASE | re.DOTALL)
_POSTGRES = re.compile(r"postgres(ql)?://", re.IGNORECASE)
CURATE: Verb = "curate"
OPTIONS = {"name": TEXT} | {name: each.document for name, each in TABLE.items()}
_declaring = threading.Lock()
_ENDINGS = (".parquet", ".pq", ".csv", ".duckdb")
FILES_MAX = 200


def add_declaring_route(app: FastAPI, desk: Desk, who: Who) -> None:
    """Add the route by which a curator declares a table."""

    summary = "Declare a table, for life: as a line in the catalog would"
    add_act(app, desk, who, Act("tables", summary, OPTIONS, ("name", "source", "unit"), declare))


def declare(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Declare a table: its lines are added to the catalog once they were read, opened and registered."""
    name, source = record.get("name"), record.get("source")
    if not isinstance(name, str) or not isinstance(source, str):
        raise InvalidParameter('name and source must be text\nhint: {"name": "visits", "source": "visits.parquet"}')
    require(curator, CURATE, name)
    options = {word: value for word, value in record.items() if word not in ("name", "source") and value is not None}
    path = desk.file.path
    with _declaring, _locked(path.parent):
        before = _text_of(path)
        known = catalog_from(path, before, may_be_empty=True)
        if name in {*known.tables, *known.public, *desk.file.tables}:
            raise InvalidParameter(
                f"'{name}' is declared already\nhint: give another name; a next version is written in the catalog"
            )
        safe = allowed_source(source, desk.sources, known)
        text = before.rstrip("\n") + "\n\n" + lines(name, safe, options)
        wanted = catalog_from(path, text)
        _require_writable(path)
        table = Catalog(wanted, desk.ledger)[name]  # opened, and registered in the ledger
        _replace(path, text)
        desk.look_again()
    return {
        "name": name,
        "declaration": table.frame.declaration.record(),
        "hold": hold_text(desk.hold_of(name)),
        "budget": left_record(what_is_left(table.session, curator.name)),
        "lines": lines(name, without_password(source), options),
    }


def columns_of(desk: Desk, source: str) -> dict[str, str]:
    """Return the names and types of a source's columns, from its schema; no row is read."""
    allowed = allowed_source(source, desk.sources, desk.file)
    opened = open_source(allowed if "://" in allowed else str(desk.file.path.parent / allowed), {})
    return {column: facts.type for column, facts in opened.columns.items()}


def files_under(desk: Desk) -> list[str]:
    """Return the files that tables may be declared of, as a declaration names them."""
    base = desk.file.path.parent
    found = [path for folder in desk.sources for path in sorted(folder.iterdir()) if path.suffix in _ENDINGS]
    return [os.path.relpath(path, base) for path in found[:FILES_MAX]]


# ---- sources ---------------------------------------------------------------------------------------------------------


def allowed_source(source: str, folders: Sequence[Path], catalog: CatalogFile) -> str:
    """Return a source as the catalog may have it, or refuse it in one sentence that does not depend on existing
    files."""
    if "\0" in source or not source:
        raise _not_allowed()
    if "://" in source:
        return _known_address(source, (*catalog.tables.values(), *catalog.public.values()))
    matched = _DATABASE.fullmatch(source)
    path = source if matched is None else matched["path"]
    whole = str(catalog.path.parent / path)
    found = glob.glob(whole) if glob.has_magic(path) else [whole]
    fixed = whole if not glob.has_magic(path) else whole[: re.search(r"[*?\[]", whole).start()]  # type: ignore[union-attr]
    inside = [os.path.dirname(fixed) if glob.has_magic(path) else fixed, *found]
    if not all(_is_under(each, folders) for each in inside):
        raise _not_allowed()
    return source


def _is_under(path: str, folders: Iterable[Path]) -> bool:
    """Return whether a path, all links followed, is inside of a folder."""
    real = os.path.realpath(path)
    roots = [os.path.realpath(folder) for folder in folders]
    return any(os.path.commonpath([real, root]) == root for root in roots)


def _known_address(source: str, entries: Iterable[CatalogEntry]) -> str:
    """Return the address of a table on a server that the catalog names already, with the catalog's own password."""
    base, table = _split(source)
    if _POSTGRES.match(source) is None or len(table) != 1 or without_password(source) != source:
        raise _not_allowed()
    for entry in entries:
        known, _ = _split(entry.source)
        if _POSTGRES.match(entry.source) is not None and without_password(known) == base:
            return f"{known}{'&' if '?' in known else '?'}{table[0]}"
    raise _not_allowed()


def _split(address: str) -> tuple[str, list[str]]:
    """Return an address without its table, and the words that name one."""
    place, _, asked = address.partition("?")
    words = [word for word in asked.split("&") if word]
    rest = [word for word in words if word.partition("=")[0] != "table"]
    return "?".join(filter(None, (place, "&".join(rest)))), [word for word in words if word not in rest]


def _not_allowed() -> InvalidParameter:
    return InvalidParameter(
        "this source is not one from which tables may be declared here"
        "\nhint: a file under a folder of `tacit serve --sources DIR`, or a table of a server that the catalog has"
    )


# ---- the catalog's lines ---------------------------------------------------------------------------------------------


def lines(name: str, source: str, options: Mapping[str, Any]) -> str:
    """Return a table's lines in a catalog.

    >>> print(lines("visits", "visits.parquet", {"unit": "id", "columns": {"age": {"between": [0, 120]}}}), end="")
    [tables."visits"]
    "source" = "visits.parquet"
    "unit" = "id"
    "columns" = {"age" = {"between" = [0, 120]}}
    """
    written = {"source": source, **options}
    return "\n".join(
        [f"[tables.{_value(name)}]", *(f"{_value(word)} = {_value(v)}" for word, v in written.items()), ""]
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith("$"):
        return str(scalar_from(value).isoformat()) if next(iter(value)) in ("$date", "$timestamp") else _refuse()
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(word)} = {_value(each)}' for word, each in value.items())}}}"
    return _refuse()


def _refuse() -> str:
    raise InvalidParameter(
        'a declaration has text, whole numbers, true, false, lists and objects\nhint: amounts are text, such as "0.5"'
    )


# ---- the catalog's file ----------------------------------------------------------------------------------------------


def _text_of(path: Path) -> str:
    try:
        return read_small(path, bytes_max=BYTES_MAX)
    except (OSError, ValueError):
        raise _unwritable() from None


def _require_writable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise _unwritable()


def _unwritable() -> Problem:
    detail = "the server's catalog cannot be written, so no table can be declared over HTTP"
    return Problem("unavailable", 503, detail, "declare it in the catalog, and start the server again")


def _replace(path: Path, text: str) -> None:
    """Write the whole catalog, or leave it unchanged."""
    draft = path.with_name(f".{path.name}.{fresh_bytes(8).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.stat().st_mode & 0o777)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise _unwritable() from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes on this machine from declaring at the same time."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
