"""Files of reports: written whole or in pieces, read in pieces, so that a file of any length needs little memory.

The ending says which form: .jsonl lines of JSON, .parquet rows with the header in the schema, anything else the
compact form.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.report import ID_BYTES, Reports
from tacit.local.survey import Survey
from tacit.local.wire import (
    HEADER_MAX,
    MAGIC,
    MALFORMED,
    Read,
    from_bytes,
    header_line,
    mismatch,
    read_header,
    read_lines,
    report_lines,
    to_bytes,
)

HEADER_KEY = b"tacit"
PIECE_BYTES = 1 << 22
PIECE_ROWS = 1 << 16
LINE_BYTES_MAX = 1 << 27


def write_reports(reports: Reports, path: str | Path) -> None:
    """Write reports to a file, in the form its ending says."""
    place = Path(path)
    if place.suffix == ".parquet":
        _write_parquet(reports, place)
    elif place.suffix in (".jsonl", ".json"):
        place.write_text(header_line(reports.survey) + "\n" + report_lines(reports))
    else:
        place.write_bytes(to_bytes(reports))


def read_survey(path: str | Path) -> Survey:
    """Return the survey that a file's header describes."""
    place = _existing(path)
    if place.suffix == ".parquet":
        return _parquet_survey(_open_parquet(place))
    with place.open("rb") as file:
        start = file.read(len(MAGIC) + 4)
        if start[: len(MAGIC)] == MAGIC:
            return read_header(_header_of(file, start[len(MAGIC) :]))
        return read_header((start + file.readline(HEADER_MAX + 1)).rstrip(b"\n"))


def read_pieces(path: str | Path, survey: Survey) -> Iterator[Read]:
    """Yield the reports of a file in pieces; reports of another survey or epoch are counted as such."""
    place = _existing(path)
    if place.suffix == ".parquet":
        yield from _parquet_pieces(_open_parquet(place), survey)
        return
    with place.open("rb") as file:
        start = file.read(len(MAGIC))
        if start == MAGIC:
            yield from _binary_pieces(file, survey)
        else:
            yield from line_pieces(file, survey, start)


def line_pieces(file: IO[bytes], survey: Survey, start: bytes = b"") -> Iterator[Read]:
    """Yield the reports of JSON lines in pieces, after the header line, which is skipped; empty lines are too."""
    left, skipped = start, False
    while True:
        more = file.read(PIECE_BYTES)
        lines = (left + more).split(b"\n")
        left = lines.pop()[:LINE_BYTES_MAX] if more else b""  # a longer line is malformed, however it goes on
        if not skipped and lines:
            skipped, lines = True, lines[1:]
        yield read_lines(survey, [line for line in lines if line])
        if not more:
            return


def _binary_pieces(file: IO[bytes], survey: Survey) -> Iterator[Read]:
    length = file.read(4)
    header = _header_of(file, length)
    said = read_header(header)
    size = ID_BYTES + said.protocol.payload_bytes
    head = MAGIC + length + header
    while piece := file.read(size * PIECE_ROWS):
        yield from_bytes(head + piece, survey)


def _header_of(file: IO[bytes], length: bytes) -> bytes:
    """Return the header of the compact form, read up to the most that one may have."""
    return file.read(min(int.from_bytes(length, "little"), HEADER_MAX + 1))


def _write_parquet(reports: Reports, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = reports.survey.protocol.payload_bytes
    columns = {
        "id": _fixed(reports.ids, ID_BYTES),
        "data": _fixed(reports.payloads, size),
    }
    if reports.tokens is not None:
        columns["token"] = pa.array(reports.tokens, pa.string())
    table = pa.table(columns).replace_schema_metadata({HEADER_KEY: header_line(reports.survey).encode()})
    pq.write_table(table, path)


def _fixed(rows: NDArray[np.uint8], size: int) -> Any:
    import pyarrow as pa

    buffer = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    return pa.Array.from_buffers(pa.binary(size), len(rows), [None, buffer])


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException):
        raise InvalidParameter("this is no Parquet file of local reports") from None


def _parquet_survey(file: Any) -> Survey:
    try:
        header = (file.schema_arrow.metadata or {})[HEADER_KEY]
    except KeyError:
        raise InvalidParameter("this Parquet file has no header of local reports") from None
    return read_header(header)


def _parquet_pieces(file: Any, survey: Survey) -> Iterator[Read]:
    reason = mismatch(_parquet_survey(file), survey)
    names = set(file.schema_arrow.names)
    if names != {"id", "data"} | ({"token"} if survey.tokens else set()) and reason is None:
        raise InvalidParameter("this Parquet file does not have the columns of local reports: id and data")
    for batch in file.iter_batches(batch_size=PIECE_ROWS):
        if reason is not None:
            yield Read(_none(survey), Counter({reason: batch.num_rows}))
            continue
        yield _parquet_batch(batch, survey)


def _parquet_batch(batch: Any, survey: Survey) -> Read:
    size = survey.protocol.payload_bytes
    rows = batch.to_pylist()
    good = [
        row
        for row in rows
        if isinstance(row["id"], bytes)
        and isinstance(row["data"], bytes)
        and len(row["id"]) == ID_BYTES
        and len(row["data"]) == size
        and (not survey.tokens or bool(row["token"]))
    ]
    ids = np.frombuffer(b"".join(row["id"] for row in good), dtype=np.uint8).reshape(len(good), ID_BYTES)
    payloads = np.frombuffer(b"".join(row["data"] for row in good), dtype=np.uint8).reshape(len(good), size)
    tokens = tuple(row["token"] for row in good) if survey.tokens else None
    rejected = Counter({MALFORMED: len(rows) - len(good)}) if len(good) < len(rows) else Counter[str]()
    return Read(Reports(survey, ids, payloads, tokens), rejected)


def _none(survey: Survey) -> Reports:
    tokens = () if survey.tokens else None
    return Reports(
        survey, np.empty((0, ID_BYTES), np.uint8), np.empty((0, survey.protocol.payload_bytes), np.uint8), tokens
    )


def _existing(path: str | Path) -> Path:
    place = Path(path)
    if not place.is_file():
        raise InvalidParameter(f"there is no file {place}\nhint: give a file that `tacit local report` wrote")
    return place
