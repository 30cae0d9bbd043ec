"""Cells that an engine fails on: text that is not UTF-8, times beyond what microseconds can count, decimals with more
digits than their type has, whole numbers of 128 bits.

Each must read as NULL, wherever it is held and whatever the column is used for. A file or a line that one person made
odd must change nothing about another person's rows.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.asking import Question
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Size
from tacit_gauntlet.stage.table import Cells, added, exact_cells, protected

QUICK = ("decimal128(38, 0)", "dictionary", "text view", "timestamp[ms]", "timestamp[s, tz=UTC]")
FAR = 2**62  # in any unit but nanoseconds beyond the years that can be told
BAD_TEXTS: list[bytes | None] = [b"\xff", b"half of \xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"]
TIMES = (
    pa.timestamp("s"),
    pa.timestamp("ms"),
    pa.timestamp("us"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ms", "Europe/Zurich"),
    pa.timestamp("us", "UTC"),
)
DECIMALS = (pa.decimal128(38, 0), pa.decimal128(36, 2), pa.decimal128(18, 4), pa.decimal128(5, 2))


def decimals(cells: list[int | None], kind: pa.DataType) -> pa.Array:
    """Return decimals by the whole numbers that stand for them, which need not fit."""
    known = pa.array([0 if cell is None else 1 for cell in cells], pa.uint8()).cast(pa.bool_())
    width = kind.byte_width
    content = b"".join((cell or 0).to_bytes(width, "little", signed=True) for cell in cells)
    return pa.Array.from_buffers(kind, len(cells), [known.buffers()[1], pa.py_buffer(content)])


def too_long(digits: int) -> list[int]:
    """Return whole numbers of more digits in the bytes that Parquet has for so many."""
    bits = next(bits for bits in range(7, 128, 8) if 2**bits > 10**digits)
    return [10**digits, -(10**digits), 2**bits - 1, -(2**bits)]


def _texts(cells: list[bytes | None]) -> Iterator[tuple[str, pa.Array]]:
    """Yield the cells in every form in which text is held."""
    small = pa.array(cells, pa.binary())
    yield "text", small.view(pa.string())
    yield "dictionary", small.view(pa.string()).dictionary_encode()
    yield "large text", small.cast(pa.large_binary()).view(pa.large_string())
    yield "text view", small.cast(pa.binary_view()).view(pa.string_view())


def odd_columns() -> Iterator[tuple[str, pa.Array, pa.Array]]:
    """Yield columns with cells that do not fit, and the same columns with NULL in their place."""
    good: list[bytes | None] = [b"a", b"\xc3\xa9", b"a", None]
    for (name, odd), (_, plain) in zip(_texts(good + BAD_TEXTS), _texts(good + [None] * len(BAD_TEXTS)), strict=True):
        yield name, odd, plain
    for kind in TIMES:
        counts = [0, 86_400, 0, None, FAR, -FAR, FAR, -FAR]
        near = [count if count is None or abs(count) < FAR else None for count in counts]
        yield str(kind), *(pa.array(each, pa.int64()).view(kind) for each in (counts, near))
    for kind in DECIMALS:
        fine: list[int | None] = [0, 300, 0, None]
        odd_ones: list[int | None] = [*too_long(kind.precision)]
        yield str(kind), decimals(fine + odd_ones, kind), decimals(fine + [None] * len(odd_ones), kind)


def _uses(source: Any, size: Size) -> Iterator[Question]:
    table, as_unit = protected(source), protected(source, unit="c")
    yield table.group_by("c").count_units()
    yield as_unit.group_by("g").count()
    if size == "full":
        yield table.where("c IS NOT NULL").count()
        yield table.count("c")
        yield as_unit.count_units()


def odd_cells_that_tell(size: Size) -> list[str]:
    """Return where a table with odd cells fails, or counts them as anything but NULL."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, odd, plain in odd_columns():
            if size == "quick" and name not in QUICK:
                continue
            table, wanted = _with_column(odd), _outcomes(_with_column(plain), size)
            if _outcomes(table, size) != wanted:
                wrong.append(f"{name} in a frame")
            if getattr(odd.type, "unit", None) == "s":
                continue  # Parquet has no seconds
            path, sound = Path(folder) / "odd.parquet", Path(folder) / "sound.parquet"
            pq.write_table(table, path)
            pq.write_table(_with_column(plain), sound)
            if _outcomes(str(path), size) != _outcomes(str(sound), size):
                wrong.append(f"{name} in Parquet")
    if _huge_outcomes(f"({-(2**127)})::HUGEINT", f"({2**127 - 1})::HUGEINT") != _huge_outcomes("NULL", "NULL"):
        wrong.append("HUGEINT in DuckDB")
    return wrong


def _huge_outcomes(*cells: str) -> list[Any]:
    """What a table holds whose numbers are of 128 bits, where some have no opposite and no decimal has their digits."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE huge AS SELECT range AS id, range::HUGEINT AS c FROM range(5)")
        for place, cell in enumerate(cells):
            connection.execute(f"INSERT INTO huge VALUES ({9 + place}, {cell})")
        table = protected((connection, "huge"))
        try:
            return [
                exact_cells(table.where("-c < -3").count()),
                exact_cells(table.group_by("c", keys=[1, 2]).count()),
                exact_cells(table.derive(d="ABS(c)").sum("d", between=(0, 9))),
                exact_cells(table.group_by("c").count_units()),
            ]
        except TacitError as error:
            return [str(error)]


def _with_column(column: pa.Array) -> pa.Table:
    return pa.table({"id": range(len(column)), "g": ["x", "y"] * (len(column) // 2), "c": column})


def _outcomes(source: Any, size: Size) -> list[Any]:
    try:
        return [exact_cells(question) for question in _uses(source, size)]
    except TacitError as error:
        return [str(error)]


HEADER = b"id,g,x\n"
LINES = b"".join(b'%d,"g %d",%d\n' % (line // 2, line // 2 % 3, line % 7) for line in range(12))  # two of a person
# Lines that one person may have made: what an engine reads past their end moves other people's rows.
ODD_LINES = [
    b'77,"never closed,5\n',
    b'77,"closed" twice",5\n',
    b'77,plain "quotes" inside,5\n',
    b'77,"a, ""b""",5\n',
    b"77,too few\n",
    b"77,far,too,many,5\n",
    b"77,a\x00b,5\n",
    b"77,a\rb,5\n",
    b"77,\xff,5\n",
    b"\n",
    b'"\n',
    b"77," + b"long" * 1_000_000 + b",5\n",
    b"77,crlf,5\r\n",
    b"77,half of what divides no line,5\x01\x02\x03\n",
    b"77,backslash \\\n",
    b"# 77,comment,5\n",
    b"77,crlf with one more,5\r\r\n",
]


def odd_lines_that_move_others(size: Size) -> list[str]:
    """Return the lines that change what is counted of other lines, put first, in the middle, or last and unended."""
    moved = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        for end in (b"\n", b"\r\n"):
            header, lines = (text.replace(b"\n", end) for text in (HEADER, LINES))
            without, middle = _counted(path, header + lines), lines.index(end, len(lines) // 2) + len(end)
            for line in ODD_LINES if size == "full" or end == b"\n" else ODD_LINES[-1:]:
                alone = _counted(path, header + line)
                wanted = [added(left, right) for left, right in zip(without, alone, strict=True)]
                texts = [lines[:middle] + line + lines[middle:], line + lines, lines + line.rstrip(b"\n")]
                for text in texts if size == "full" else texts[:1]:
                    if _counted(path, header + text) != wanted:
                        moved.append(repr(line[:30]))
                        break
    return moved


def _counted(path: Path, content: bytes) -> list[Cells]:
    path.write_bytes(content)
    table = protected(str(path), columns={"x": {"type": "int", "between": (0, 9)}})
    return exact_cells(
        table.sql("SELECT g, COUNT(*) AS n, SUM(x) AS x, COUNT(DISTINCT id) AS people FROM t GROUP BY g")
    )
