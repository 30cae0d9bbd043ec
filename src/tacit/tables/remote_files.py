"""Files that stay elsewhere: Parquet and CSV at s3://, gs:// and https:// addresses, read in ranges by obstore.

An object is known by its address, and a version of it by its ETag, or else the time it was written. Within one moment
every read is of one version, which each request names: if the object is replaced meanwhile, the question ends in the
fixed words. Before a charge only names, sizes and schemas are read. Of Parquet only the columns of a
question travel; CSV is copied into a private folder while it is read.
"""

import fnmatch
import glob
import io
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.store import from_url

from tacit import typed_sql as sql
from tacit.errors import InvalidParameter, QueryRefused
from tacit.memory import spill_folder
from tacit.tables.cells import CellReading, hand
from tacit.tables.connection import lock, our_connection
from tacit.tables.formats import CSV, HEADER_BYTES_MAX, csv_rows, read_header
from tacit.tables.parquet_files import PARQUET, batches_of, schema_of
from tacit.tables.source import Source, Store, WantedRows, described
from tacit.typed_sql import quoted

RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
CSV_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class RemoteObject:
    """One version of an object, which every request for a part of it names."""

    store: Any = field(compare=False)
    path: str
    size: int = field(compare=False)
    wanted: tuple[str, Any]  # an option of obstore's get: if_match with the ETag, or if_unmodified_since with the time

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to before `end`, or fail if this version is not there any more."""
        return b"" if start >= end else self._got({"range": (start, end)}).bytes().to_bytes()

    def chunks(self) -> Any:
        """Return all bytes, some at a time."""
        return self._got({})

    def _got(self, options: dict[str, Any]) -> Any:
        wanted: Any = {**options, **dict([self.wanted])}
        return obstore.get(self.store, self.path, options=wanted)

    def opened(self) -> "RangeReader":
        return RangeReader(self)


class RangeReader(io.RawIOBase):
    """An object as a file to read: each read is one request."""

    def __init__(self, object: RemoteObject) -> None:
        super().__init__()
        self._object, self._place = object, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._object.size}[whence]
        return self._place

    def read(self, size: int = -1) -> bytes:
        end = self._object.size if size < 0 else min(self._object.size, self._place + size)
        found = self._object.part(self._place, end)
        self._place += len(found)
        return found


def remote_files(address: str) -> "RemoteFiles":
    """Return the files at an address, or refuse it with the reason; their schema is read, and no row."""
    parts = urlsplit(address)
    scheme, host, key = parts.scheme.lower(), parts.netloc.lower(), parts.path.lstrip("/")
    if scheme in ("http", "https") and (parts.query or "@" in parts.netloc or glob.has_magic(key)):
        raise InvalidParameter(
            f"an address of {scheme}:// is of one file, without ?, @ or *"
            "\nhint: https://host/visits.parquet; files that need a key to read are given as s3:// or gs://"
        )
    if scheme == "http" and parts.hostname not in LOOPBACK:
        raise InvalidParameter("rows would travel unprotected over http://\nhint: give an address of https://")
    if PurePosixPath(key).suffix.lower() not in PARQUET | CSV:
        raise QueryRefused(
            f"{address!r} does not end like a Parquet or CSV file\nhint: s3://bucket/visits/*.parquet, or one file"
        )
    options: Any = {"client_options": {"allow_http": True}} if scheme == "http" else {}
    try:
        store = from_url(f"{scheme}://{host}", retry_config=RETRIES, **options)
    except Exception:  # noqa: BLE001 - its text may have a key of the environment
        raise QueryRefused(f"{address!r} cannot be opened\nhint: check the address and its credentials") from None
    return RemoteFiles(store, f"{scheme}://{host}/{key}", key)


@dataclass(eq=False)
class RemoteFiles:
    """The objects at one address, with the columns that they had when they were opened; a `Store`."""

    store: Any
    address: str
    pattern: str
    columns: Any = None  # as schema_of or read_header gives them, the same of each
    _turn: Any = field(default_factory=threading.RLock, repr=False)
    _deep: int = 0
    _moment: "tuple[RemoteObject, ...] | None" = None
    _checked: "set[RemoteObject]" = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        try:
            found = self._listed()
            self.columns = self._columns(found[0])
            same = all(self._is_same(each) for each in found)
        except QueryRefused:
            raise
        except FileNotFoundError:
            raise QueryRefused(f"no file exists at {self.address!r}\nhint: check the address") from None
        except Exception:  # noqa: BLE001 - a server's text is not ours
            raise QueryRefused(
                f"{self.address!r} cannot be read as the format of its ending"
                "\nhint: check the address and its credentials (AWS_ACCESS_KEY_ID, …), and that the file is complete"
            ) from None
        if not same:
            raise QueryRefused(
                "these files do not have the same columns and types\nhint: give files with the same schema"
            )

    @property
    def is_parquet(self) -> bool:
        return PurePosixPath(self.pattern).suffix.lower() in PARQUET

    def refuse_changes(self) -> None:
        """Refuse if a file is gone, or has other columns than when it was opened; reads no row."""
        try:
            is_same = all(self._is_same(each) for each in self._listed())
        except Exception:  # noqa: BLE001 - for any reason, it cannot be read
            raise QueryRefused(
                f"the file at {self.address!r} is gone or cannot be read, so no charge was made\nhint: put it back, or"
                " open the table again"
            ) from None
        if not is_same:
            raise QueryRefused(
                f"the file at {self.address!r} no longer has the columns it was opened with, so no charge was made"
                "\nhint: open the table again, with a new version="
            )

    @contextmanager
    def moment(self, _beside: Sequence[Store]) -> Iterator[None]:
        """Hold what is read inside to one version of each file: the one that is there at the first read."""
        with self._turn:
            self._deep += 1
            try:
                yield
            finally:
                self._deep -= 1
                if not self._deep:
                    self._moment = None

    def wanting(self, _wanted: WantedRows | None) -> AbstractContextManager[None]:
        """Leave out no row: a file's statistics are not believed."""
        return nullcontext()

    def read(self, readings: Sequence[CellReading]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these columns, of the versions of this moment."""
        found = self._moment or self._listed()
        if self._deep:
            self._moment = found
        if not all(self._is_same(each) for each in found):
            raise OSError("the file has other columns")
        if self.is_parquet:
            yield from batches_of(found, readings)
        else:
            yield from self._csv_batches(found, readings)

    def _csv_batches(
        self, objects: Sequence[RemoteObject], readings: Sequence[CellReading]
    ) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(dir=spill_folder()) as folder:
            paths = [str(Path(folder) / f"{place}.csv") for place in range(len(objects))]
            for path, each in zip(paths, objects, strict=True):
                with open(path, "wb") as file:
                    file.writelines(each.chunks())
            with closing(our_connection()) as backend:
                lock(backend, paths, streams=True)
                names, delimiter = self.columns
                named = ", ".join(quoted(each.name) for each in readings)
                rows = f"SELECT {named} FROM ({csv_rows(paths, names, delimiter)})"  # noqa: S608 - of names, quoted
                yield from backend.con.sql(rows).to_arrow_reader(CSV_BATCH_ROWS)

    def _listed(self) -> tuple[RemoteObject, ...]:
        """Return the objects that are there now, in one order."""
        if not glob.has_magic(self.pattern):
            return (self._object(obstore.head(self.store, self.pattern)),)
        folder = re.split(r"[*?\[]", self.pattern)[0].rpartition("/")[0]
        depth = self.pattern.count("/")
        metas = [meta for batch in obstore.list(self.store, prefix=folder or None) for meta in batch]
        found = [
            self._object(meta)
            for meta in metas
            if meta["path"].count("/") == depth and fnmatch.fnmatchcase(meta["path"], self.pattern)
        ]
        if not found:
            raise FileNotFoundError(self.pattern)
        return tuple(sorted(found, key=lambda each: each.path))

    def _object(self, meta: Any) -> RemoteObject:
        etag = meta["e_tag"]
        wanted = ("if_unmodified_since", meta["last_modified"]) if etag is None else ("if_match", etag)
        return RemoteObject(self.store, meta["path"], meta["size"], wanted)

    def _columns(self, object: RemoteObject) -> Any:
        if self.is_parquet:
            return schema_of(object)
        with tempfile.NamedTemporaryFile(dir=spill_folder()) as file:
            file.write(object.part(0, min(object.size, HEADER_BYTES_MAX)))
            file.flush()
            return read_header(file.name)

    def _is_same(self, object: RemoteObject) -> bool:
        """Return whether an object has the columns of the first one; each version is looked at once."""
        if object not in self._checked and self._columns(object) == self.columns:
            self._checked.add(object)
        return object in self._checked

    def into(self, backend: sql.Connection, name: str) -> Source:
        """Return the source that these files are in a connection of ours; reads no row."""
        if self.is_parquet:
            found, _ = self.columns
        else:
            names, _ = self.columns
            found = {each: CellReading(each, pa.string(), quoted(each)) for each in names}
        readings = [each for each in found.values() if isinstance(each, CellReading)]
        others = {column: kind for column, kind in found.items() if isinstance(kind, str)}
        if not readings:
            raise QueryRefused("no column of these files can be read\nhint: convert a column to text or a number")
        handed = hand(backend, name, self.read, readings, frozenset())
        stem = PurePosixPath(self.pattern).stem.strip("*?[]") or "data"
        source = described(
            backend.table(name),
            backend,
            {},
            stem=stem,
            identity=f"object:{self.address}",
            others=others,
            readings=readings,
        )
        return replace(source, files=(handed,), opened=(self,), stores=(self,))
