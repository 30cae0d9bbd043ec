"""Reports on the wire and in files: JSON lines, compact bytes, and rows of Parquet, by the file name's ending.

A header names the survey, then come records of one length, with any content. Reading is strict, with a fixed reason for
each rejection, and in pieces, so that a file of any length needs little memory; usual lines are parsed in bulk.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.client import ID_BYTES, Report, Reports, is_token
from tacit.local.survey import VERSION, Survey, survey_of
from tacit.numbers import read_json

MALFORMED = "malformed"
WRONG_VERSION = "wrong version"
WRONG_SURVEY = "wrong survey"
WRONG_EPOCH = "wrong epoch"
OUT_OF_RANGE = "out of range"
DUPLICATE = "duplicate"
NO_TOKEN = "no token"  # noqa: S105 (a reason, not a secret)
OVER_CAP = "over the cap"
REASONS = (MALFORMED, WRONG_VERSION, WRONG_SURVEY, WRONG_EPOCH, OUT_OF_RANGE, DUPLICATE, NO_TOKEN, OVER_CAP)

MAGIC = b"TACITLR\x01"
LINE_MAX = 1 << 24
HEADER_MAX = 1 << 26

_HEX = np.full(256, 255, dtype=np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)


@dataclass(frozen=True)
class Read:
    """The result of reading: well-formed reports, and the number of rejected ones by reason."""

    reports: Reports
    rejected: Counter[str] = field(default_factory=Counter)


def header_line(survey: Survey) -> str:
    """Return the header as one line of JSON."""
    return json.dumps(survey.header(), ensure_ascii=False, separators=(",", ":"))


def report_line(report: Report) -> str:
    record: dict[str, Any] = {
        "v": report.version,
        "survey": report.survey,
        "epoch": report.epoch,
        "id": report.id.hex(),
        "data": report.payload.hex(),
    }
    if report.token is not None:
        record["token"] = report.token
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def report_lines(reports: Reports) -> str:
    """Return reports as lines of JSON, each ending in a newline."""
    if reports.tokens is not None:
        return "".join(report_line(report) + "\n" for report in reports)
    before, between, after = _template(reports.survey)
    ids, data = reports.ids.tobytes().hex(), reports.payloads.tobytes().hex()
    size = 2 * reports.survey.protocol.payload_bytes
    return "".join(
        f"{before}{ids[32 * i : 32 * i + 32]}{between}{data[size * i : size * i + size]}{after}\n"
        for i in range(len(reports))
    )


def read_header(line: bytes) -> Survey:
    """Return the survey that a file's first line describes."""
    try:
        header = read_json(line) if len(line) <= HEADER_MAX else None
    except ValueError:
        header = None
    return survey_of(header)


def read_lines(survey: Survey, lines: Iterable[bytes]) -> Read:
    """Return the reports among lines, without their newlines, and count the rest by reason."""
    before, between, after = (part.encode() for part in _template(survey))
    size = 2 * survey.protocol.payload_bytes
    length = len(before) + 2 * ID_BYTES + len(between) + size + len(after)
    plain: list[bytes] = []
    odd: list[bytes] = []
    for line in lines:
        (plain if len(line) == length and not survey.tokens else odd).append(line)
    table = np.frombuffer(b"".join(plain), dtype=np.uint8).reshape(len(plain), length)
    starts = np.cumsum([0, len(before), 2 * ID_BYTES, len(between), size, len(after)])
    parts = [table[:, start:stop] for start, stop in pairwise(starts)]
    good = np.ones(len(plain), dtype=np.bool_)
    for part, text in zip(parts[0::2], (before, between, after), strict=True):
        good &= (part == np.frombuffer(text, dtype=np.uint8)).all(axis=1)
    ids, fine_ids = _from_hex(parts[1])
    payloads, fine_payloads = _from_hex(parts[3])
    good &= fine_ids & fine_payloads
    odd += [plain[index] for index in np.flatnonzero(~good)]
    found, rejected = _read_odd(survey, odd)
    rows = [np.frombuffer(report.id, dtype=np.uint8) for report in found]
    more = [np.frombuffer(report.payload, dtype=np.uint8) for report in found]
    tokens = tuple(report.token or "" for report in found) if survey.tokens else None
    reports = Reports(survey, np.vstack([ids[good], *rows]), np.vstack([payloads[good], *more]), tokens)
    return Read(reports, rejected)


def to_bytes(reports: Reports) -> bytes:
    """Return reports in the compact form: a mark, the header's length and the header, then ids and payloads."""
    if reports.tokens is not None:
        raise InvalidParameter("the compact form cannot hold tokens\nhint: write JSON lines")
    header = header_line(reports.survey).encode()
    records = np.hstack([reports.ids, reports.payloads])
    return MAGIC + len(header).to_bytes(4, "little") + header + records.tobytes()


def mismatch(found: Survey, wanted: Survey | None) -> str | None:
    """Return the reason why reports of one survey are not another's, or None."""
    if wanted is None or found == wanted:
        return None
    return WRONG_SURVEY if found.tag != wanted.tag else WRONG_EPOCH


def check_report(report: Report, survey: Survey) -> str | None:
    """Return the reason why a report does not belong to this survey, judged only by its form, or None."""
    if report.version != VERSION:
        return WRONG_VERSION
    if report.survey != survey.tag:
        return WRONG_SURVEY
    if report.epoch != survey.epoch:
        return WRONG_EPOCH
    if len(report.id) != ID_BYTES or len(report.payload) != survey.protocol.payload_bytes:
        return MALFORMED
    if (report.token is not None) != survey.tokens:
        return NO_TOKEN if survey.tokens else MALFORMED
    return None


def _template(survey: Survey) -> tuple[str, str, str]:
    """Return the text before the id, between id and data, and after the data, in every line without a token."""
    epoch = json.dumps(survey.epoch, ensure_ascii=False)
    return f'{{"v":{VERSION},"survey":"{survey.tag}","epoch":{epoch},"id":"', '","data":"', '"}'


def _from_hex(text: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return rows of hexadecimal digits as bytes, and the rows with other characters."""
    digits: NDArray[np.uint8] = _HEX[text]
    fine = np.asarray((digits < 16).all(axis=1), dtype=np.bool_)
    values: NDArray[np.uint8] = np.left_shift(digits[:, 0::2], 4, dtype=np.uint8)
    values |= digits[:, 1::2] & np.uint8(15)
    return values, fine


def _read_odd(survey: Survey, lines: list[bytes]) -> tuple[list[Report], Counter[str]]:
    """Read lines one by one: those with tokens, and those that are wrong, for the reason why."""
    found, rejected = [], Counter[str]()
    for line in lines:
        report = _parse(line)
        reason = MALFORMED if report is None else check_report(report, survey)
        if report is None or reason is not None:
            rejected[reason or MALFORMED] += 1
        else:
            found.append(report)
    return found, rejected


def _parse(line: bytes) -> Report | None:
    """Return the report on a line, of any survey and version; None unless a client would write exactly this line."""
    try:
        record = read_json(line) if len(line) <= LINE_MAX else None
        if not isinstance(record, dict):
            return None
        token = record.get("token")
        if not isinstance(record["v"], int) or isinstance(record["v"], bool) or not (token is None or is_token(token)):
            return None
        report = Report(
            record["survey"],
            record["epoch"],
            bytes.fromhex(record["id"]),
            bytes.fromhex(record["data"]),
            token,
            record["v"],
        )
        return report if report_line(report).encode() == line else None
    except (ValueError, KeyError, TypeError):
        return None


# ---- files -----------------------------------------------------------------------------------------------------------


HEADER_KEY = b"tacit"
PIECE_BYTES = 1 << 22
PIECE_ROWS = 1 << 16
LINE_BYTES_MAX = 1 << 27


def write_reports(reports: Reports, path: str | Path) -> None:
    """Write reports to a file, in the form that the file name's ending chooses."""
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
    """Yield the reports of the compact form in pieces; a record that is cut short is malformed."""
    written = read_header(_header_of(file, file.read(4)))
    reason = mismatch(written, survey) or (NO_TOKEN if survey.tokens else None)
    size = ID_BYTES + written.protocol.payload_bytes
    while piece := file.read(size * PIECE_ROWS):
        count, rest = divmod(len(piece), size)
        rejected = Counter({MALFORMED: 1}) if rest else Counter[str]()
        if reason is not None:
            yield Read(_none(survey), rejected + Counter({reason: count}))
            continue
        table = np.frombuffer(piece, dtype=np.uint8, count=count * size).reshape(count, size)
        yield Read(Reports(survey, table[:, :ID_BYTES], np.ascontiguousarray(table[:, ID_BYTES:])), rejected)


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
        raise InvalidParameter("this is not a Parquet file of local reports") from None


def _parquet_survey(file: Any) -> Survey:
    header = (file.schema_arrow.metadata or {}).get(HEADER_KEY)
    if header is None:
        raise InvalidParameter("this Parquet file lacks a header of local reports")
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
    wanted = {"id": ID_BYTES, "data": survey.protocol.payload_bytes}
    rows = batch.to_pylist()
    good = [
        row
        for row in rows
        if all(isinstance(row[name], bytes) and len(row[name]) == size for name, size in wanted.items())
        and (not survey.tokens or bool(row["token"]))
    ]
    ids, payloads = (
        np.frombuffer(b"".join(row[name] for row in good), dtype=np.uint8).reshape(len(good), size)
        for name, size in wanted.items()
    )
    tokens = tuple(row["token"] for row in good) if survey.tokens else None
    return Read(Reports(survey, ids, payloads, tokens), +Counter({MALFORMED: len(rows) - len(good)}))


def _none(survey: Survey) -> Reports:
    tokens = () if survey.tokens else None
    return Reports(
        survey, np.empty((0, ID_BYTES), np.uint8), np.empty((0, survey.protocol.payload_bytes), np.uint8), tokens
    )


def _existing(path: str | Path) -> Path:
    place = Path(path)
    if not place.is_file():
        raise InvalidParameter(f"no file exists at {place}\nhint: give a file that `tacit local report` wrote")
    return place
