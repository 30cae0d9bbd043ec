"""The same cells in files as other programs write them: what is answered may not depend on who wrote the file.

A Parquet file says more than its cells: the least and the greatest of a column, how many are NULL, which values a page
cannot have. Writers leave NaN out of it, and nothing checks it. Two files with the same cells must give the same exact
integers as a frame with these cells, whatever else the files say.
"""

import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.door import Question, Table
from tacit.engine.engine import Engine
from tacit.engine.engine import Path as Way
from tacit.errors import TacitError
from tacit.query.frame import count, count_distinct, mean, median
from tacit.query.frame import sum as sum_of
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.odd_cells import BAD_TEXTS
from tacit_gauntlet.stage.table import SALT, pandas, plan_of, protected, too_far

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
        plan = plan_of(question)
        taken: Way = "sql" if plan.distincts else way
        try:
            exact = Engine(question.session.engine._source, path=taken).aggregate(plan, SALT)
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


def files_that_tell(size: Size, way: Way = "sql", writers: Mapping[str, Write] | None = None) -> list[str]:
    """Return the writers whose files are not answered as a frame with the same cells is."""
    told, rows = [], odd_rows()
    wanted = outcomes(rows, size, "sql")
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (WRITERS if writers is None else writers).items():
            if size == "quick" and name not in QUICK:
                continue
            path = str(Path(folder) / "rows.parquet")
            write(rows, path)
            if outcomes(path, size, way) != wanted:
                told.append(name)
    return told


@case("S22", title="the same cells are answered alike, whatever else their file says of them", feature="engine")
def same_cells(size: Size) -> Evidence:
    told = files_that_tell(size)
    tried = len(QUICK) if size == "quick" else len(WRITERS)
    return Evidence(passed=not told, details={"ways to write a file": tried, "not answered alike": told})


# Ids that are easily taken for each other, as cells of a frame; no two of one line are one person.
CONFUSABLE: tuple[tuple[Any, Any], ...] = (
    (b"M\xfcller".decode("utf-8", "surrogateescape"), b"M\xe9ller".decode("utf-8", "surrogateescape")),
    ("\udcff", "?"),
    ("\ud800", "\ufffd"),
    ("a\x00b", "a"),
    ("\u00e9", "e\u0301"),
    ("a", "a "),
    (b"\xff", b"\xfe"),
    ([1] * 2000 + [2] + [1] * 2000, [1] * 4001),
    ("z" * 40_000 + "1", "z" * 40_000 + "2"),
)


def ids_taken_for_each_other(size: Size) -> list[str]:
    """Return the pairs of ids of which one more person moves a sum by more than one person may."""
    told = []
    for one, other in CONFUSABLE if size == "full" else CONFUSABLE[:3]:
        for cells in ([one, other], [other, one]) if size == "full" else ([one, other],):
            ids = ["p", *cells]
            frames = [
                pandas().DataFrame({"id": pandas().Series(ids[:many], dtype=object), "x": [0, -10, 10][:many]})
                for many in (2, 3)
            ]
            before, after = (protected(each, rows_per_unit=1).sum("x", between=(-10, 10)) for each in frames)
            if any(too_far(before, after, salt=f"{turn:032x}") for turn in range(4)):
                told.append(repr(cells[0])[:20])
    return told


def times_taken_for_each_other() -> list[str]:
    """Return the types of which two ids are read as one, so that one more person moves a sum by two people's share."""
    told = []
    kinds = {"nanoseconds": pa.timestamp("ns"), "days in milliseconds": pa.date64(), "months": None}
    for name, kind in kinds.items():
        asked = []
        for many in (2, 3):
            cells: dict[str, Any] = {"id": pa.array([10**9, 1, 2][:many], pa.int64()), "x": [0, -10, 10][:many]}
            with suppress(TacitError):  # refused, before any charge
                asked.append(_typed(cells, kind).sum("x", between=(-10, 10)))
        if asked and any(too_far(*asked, salt=f"{turn:032x}") for turn in range(4)):
            told.append(name)
    return told


def _typed(cells: dict[str, Any], kind: pa.DataType | None) -> Table:
    """Protect rows whose ids are times, or a month and thirty days in DuckDB's own intervals."""
    if kind is not None:
        return protected(pa.table({**cells, "id": cells["id"].view(kind)}), rows_per_unit=1)
    link = duckdb.connect()
    link.register("given", pa.table(cells))
    spans = "CASE id WHEN 1 THEN INTERVAL 1 MONTH WHEN 2 THEN INTERVAL 30 DAY ELSE INTERVAL 9 DAY END"
    link.execute(f"CREATE TABLE t AS SELECT {spans} AS id, x FROM given")
    return protected((link, "t"), rows_per_unit=1)


@case("S23", title="ids that look alike are not taken for one person", feature="tables")
def ids_stay_apart(size: Size) -> Evidence:
    told = ids_taken_for_each_other(size) + times_taken_for_each_other()
    return Evidence(passed=not told, details={"taken for one": told})
