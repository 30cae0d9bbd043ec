"""The same cells in files as other programs write them, and the exact integers that such files are answered with."""

import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tacit import count, count_distinct, mean, median
from tacit import sum as sum_of
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Size
from tacit_gauntlet.stage.engine import Way, exact_on
from tacit_gauntlet.stage.odd_cells import BAD_TEXTS
from tacit_gauntlet.stage.table import Question, protected

Write = Callable[[pa.Table, str], None]


NAN, INF = float("nan"), float("inf")


PEOPLE = 24


IN_RANGE = (0, 30)


# What statistics of these columns say; distinct, so that a lie can be put in their place.
LEAST, GREATEST, LACKING_LEAST = 0.25, 29.75, 0.375


INT_LEAST, INT_GREATEST = 1_000_003, 2_000_003


def odd_rows() -> pa.Table:
    """Return rows of two cells a person, in which every type has its odd cells and most cells are plain."""
    turns = range(2 * PEOPLE)
    floats = [LEAST, GREATEST, NAN, 12.5, 3.0, NAN, 7.5]
    lacking = [LACKING_LEAST, 28.5, NAN, None, 9.0]
    wild = [1.5, -INF, NAN, INF, -0.0, 5e-324, 1.7e308, None]
    keys = [2.0, 0.0, NAN, 1.0, -0.0]
    wholes = [INT_LEAST, INT_GREATEST, 1_500_000]
    texts = [b"a", b"", b"a\x00b", "é".encode(), "e\u0301".encode(), None, *BAD_TEXTS, b"z" * 40]
    days = [0, 19_000, None, 2**31 - 1, -(2**31), 2_932_897]
    times = [0, 10**15, None, 2**62, -(2**62)]
    units = [float(turn // 2) if turn % 8 else NAN for turn in turns]

    def every(cells: list[Any]) -> list[Any]:
        return [cells[turn % len(cells)] for turn in turns]

    return pa.table(
        {
            "id": pa.array([turn // 2 for turn in turns], pa.int64()),
            "u": pa.array(units, pa.float64()),
            "x": pa.array(every(floats), pa.float64()),
            "y": pa.array(every(lacking), pa.float64()),
            "h": pa.array(every(wild), pa.float32()),
            "k": pa.array(every(keys), pa.float64()),
            "i": pa.array(every(wholes), pa.int64()),
            "n": pa.array(every([2**64 - 1, 2**63, 5, None]), pa.uint64()),
            "b": pa.array(every([True, False, None]), pa.bool_()),
            "g": pa.array(every(texts), pa.binary()).view(pa.string()),
            "d": pa.array(every(days), pa.int32()).view(pa.date32()),
            "t": pa.array(every(times), pa.int64()).view(pa.timestamp("us")),
        }
    )


def _by_arrow(**words: Any) -> Write:
    return lambda rows, path: pq.write_table(rows, path, **words)


def _by_duckdb(options: str) -> Write:
    def write(rows: pa.Table, path: str) -> None:
        with duckdb.connect() as link:
            link.register("given", rows.set_column(9, "g", rows["g"].cast(pa.binary())))
            text = "CASE WHEN encode(decode(g, 'replace')) = g THEN decode(g, 'replace') END"  # it has no other text
            link.execute(f"COPY (SELECT * REPLACE ({text} AS g) FROM given) TO '{path}' (FORMAT parquet{options})")

    return write


def _lying(rows: pa.Table, path: str) -> None:
    """Write a file whose statistics say what its cells are not: a narrow range, other ends, and no NULL."""
    pq.write_table(rows, path, use_dictionary=False)
    whole = Path(path).read_bytes()
    (size,) = struct.unpack("<I", whole[-8:-4])
    foot = whole[-8 - size :]
    nulls = struct.pack("<d", LACKING_LEAST) + b"\x16"  # how many are NULL follows, in Thrift's way
    lies = [
        (struct.pack("<d", LEAST), struct.pack("<d", 7.0)),
        (struct.pack("<d", GREATEST), struct.pack("<d", 8.0)),
        (struct.pack("<q", INT_LEAST), struct.pack("<q", 1_400_000)),
        (struct.pack("<q", INT_GREATEST), struct.pack("<q", 1_600_000)),
        (nulls + bytes([2 * rows["y"].null_count]), nulls + b"\x00"),
    ]
    for true, lie in lies:
        if true not in foot:
            raise ValueError("the file does not have the statistics that were to be changed")
        foot = foot.replace(true, lie)
    Path(path).write_bytes(whole[: -8 - size] + foot)


WRITERS: Mapping[str, Write] = {
    "Arrow": _by_arrow(),
    "Arrow, small row groups": _by_arrow(row_group_size=5, version="1.0", use_deprecated_int96_timestamps=True),
    "Arrow, no statistics": _by_arrow(write_statistics=False, version="2.4"),
    "Arrow, plain pages with an index": _by_arrow(
        use_dictionary=False, write_page_index=True, data_page_size=64, compression="gzip", data_page_version="2.0"
    ),
    "Arrow, deltas and split bytes": _by_arrow(
        use_dictionary=False,
        compression="zstd",
        column_encoding={
            "id": "DELTA_BINARY_PACKED",
            "i": "DELTA_BINARY_PACKED",
            "x": "BYTE_STREAM_SPLIT",
            "k": "BYTE_STREAM_SPLIT",
            "g": "DELTA_BYTE_ARRAY",
        },
    ),
    "Arrow, Bloom filters": _by_arrow(bloom_filter_options={"x": {"ndv": 9}, "i": {"ndv": 9}}, row_group_size=12),
    "DuckDB": _by_duckdb(""),
    "DuckDB, small row groups": _by_duckdb(", ROW_GROUP_SIZE 2048, COMPRESSION uncompressed, PARQUET_VERSION v2"),
    "statistics that lie": _lying,
}


QUICK = ("Arrow", "statistics that lie")


def questions(source: Any, size: Size) -> Iterator[Question]:
    """Yield what is asked of every file: each way in which a statistic could drop, keep or break a row."""
    table, by_float = protected(source), protected(source, unit="u")
    yield table.agg(n=count(), x=mean("x", between=IN_RANGE), y=count("y"), i=sum_of("i", between=(0, 3_000_000)))
    yield table.where("i > 1700000 AND x IS NULL").count()
    yield table.group_by("k").count()
    yield by_float.sum("x", between=(-10, 30))
    if size == "quick":
        return
    yield table.where("x >= 9.0 AND i < 1100000").agg(h=mean("h", between=(-2, 2)), d=count("d"), t=count("t"))
    yield table.where("y IS NULL").median("x", between=IN_RANGE)
    yield table.group_by("k", keys=[0.0, 1.0, 2.0, None]).agg(x=median("x", between=IN_RANGE), n=count("n"))
    yield table.where("n IS NULL OR b").group_by("g").agg(n=count(), y=sum_of("y", between=IN_RANGE))
    yield table.group_by("d").agg(t=count("t"), b=count("b"))
    yield table.group_by("k").agg(n=count_distinct("i", per_unit=2))


def outcomes(source: Any, size: Size, way: Way) -> list[Any]:
    """Return the exact table of every question, groups in no order, or what it failed with."""
    found: list[Any] = []
    for question in questions(source, size):
        try:
            exact = exact_on(question, way)
        except TacitError as error:
            found.append(str(error))
            continue
        values = {column: [each.tolist() for each in groups] for column, groups in exact.values.items()}
        lines = [
            (key, [sums[at] for sums in exact.sums.values()], [groups[at] for groups in values.values()])
            for at, key in enumerate(exact.keys)
        ]
        found.append(sorted(lines, key=repr))
    return found
