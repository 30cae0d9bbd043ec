"""Twenty rounds of a model over ten million rows of fourteen columns, within 1 GB; and two hundred columns.

The whole way is measured: charge, coding from Parquet, counts, coarser bins, rounds with noise, the ledger's entry.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Figure, Result, Seconds

ROWS, WIDE_ROWS = 10**7, 10**5
NUMBERS, TEXTS, WIDE = 6, 8, 200
PIECE = 1 << 19
KEYS = 12
ROUNDS = 20
DISK_LEAST = 4 << 30

LEARN = """
import json, sys, time
from bench.learning_large import learn, opened
from bench.measure import peak_bytes
from tacit.engine.kernel import compiled

compiled.compile_now()
learn(opened(sys.argv[2], sys.argv[3], int(sys.argv[4])), int(sys.argv[4]))  # loads everything there is to load
before = peak_bytes()
table = opened(sys.argv[1], sys.argv[3], int(sys.argv[4]))
start, worked = time.perf_counter(), time.process_time()
learn(table, int(sys.argv[4]))
print(json.dumps([time.perf_counter() - start, time.process_time() - worked, peak_bytes() - before]))
"""


def results() -> Iterator[Result]:
    """Yield the times and the peaks above what few rows take; nothing where the disk has no room for the table."""
    if shutil.disk_usage(tempfile.gettempdir()).free < DISK_LEAST:
        return
    columns = NUMBERS + TEXTS
    for words, rows, wide, unit in (
        ("10^7 rows of 14 columns", ROWS, columns, ""),
        ("10^7 rows of 14 columns, by person", ROWS, columns, "person"),
        ("10^5 rows of 200 columns", WIDE_ROWS, WIDE, "person"),
    ):
        with people(rows, wide) as (path, few):
            seconds, worked, peak = learned(path, few, unit, wide)
        yield Seconds(f"{ROUNDS} rounds, {words}", seconds, limit=15)
        yield Seconds(f"{ROUNDS} rounds, {words}, processor time", worked, limit=30)
        yield Figure(f"{ROUNDS} rounds, {words}, peak in GB", peak / 10**9, most=1)


def learned(path: Path, few: Path, unit: str, columns: int) -> tuple[float, float, int]:
    """Return the time, the processor time and the peak in bytes of a fresh process."""
    ran = subprocess.run(
        [sys.executable, "-c", LEARN, str(path), str(few), unit, str(columns)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env={name: value for name, value in os.environ.items() if name != "TACIT_KERNEL"},
    )
    seconds, worked, peak = json.loads(ran.stdout)
    return seconds, worked, peak


@contextmanager
def people(rows: int, columns: int) -> Iterator[tuple[Path, Path]]:
    """Lend made-up people as Parquet files: all of them, and a few."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "people.parquet", Path(folder) / "few.parquet"
        for path, length in zip(paths, (rows, 1000), strict=True):
            write_people(path, length, columns)
        yield paths


def write_people(path: Path, rows: int, columns: int) -> None:
    """Write people with numbers, words and a target, piece by piece."""
    rng = np.random.default_rng(1)
    writer = None
    for start in range(0, rows, PIECE):
        length = min(PIECE, rows - start)
        cells: dict[str, pa.Array] = {"person": pa.array(np.arange(start, start + length))}
        for index, name in enumerate(names_of(columns)):
            if index < NUMBERS:
                cells[name] = pa.array(rng.integers(0, 1000, length) if index % 2 else rng.gamma(2, 100, length))
            else:
                places = pa.array((rng.geometric(0.3, length) - 1) % KEYS, pa.int8())
                cells[name] = pa.DictionaryArray.from_arrays(places, words_of(name)).cast(pa.string())
        cells["buys"] = pa.array(np.where(rng.random(length) < 0.3, "yes", "no"))
        table = pa.table(cells)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def names_of(columns: int) -> list[str]:
    """Return the names of so many features: numbers first."""
    return [f"{'number' if index < NUMBERS else 'word'}_{index}" for index in range(columns)]


def words_of(name: str) -> list[str]:
    """Return the public list of a column."""
    return [f"{name} {place}" for place in range(KEYS)]


def opened(path: str, unit: str, columns: int):
    """Open a table in a ledger of its own."""
    import tacit

    declared = {name: {"between": (0, 1000)} for name in names_of(columns)[:NUMBERS]}
    return tacit.table(
        path,
        unit=unit or tacit.ROW,
        budget=tacit.epsilon(1, delta=1e-6),
        columns=declared,
        name="people",
        ledger=tacit.TRYOUT,
    )


def learn(table, columns: int) -> None:
    """Learn counts, then rounds of residuals of a model that is moved by each."""
    from fractions import Fraction

    from tacit.learning import noise_for, train
    from tacit.plan import UNIT, ClassTarget, CodedPlan, Scores, count_moves_squared

    coded = [_coded(table, name) for name in (*names_of(columns), "buys")]
    unit = table.session.declaration.unit
    plan = CodedPlan(unit if isinstance(unit, str) else None, None, tuple(coded))
    moves = ROUNDS * (columns + 1) * (UNIT // 2) ** 2
    wanted = [(count_moves_squared(columns + 1), Fraction(1, 20)), (moves, Fraction(19, 20))]
    events, asked = noise_for(table.session, 1, None, wanted)

    def steps(rounds):
        rounds.counts()
        rounds.use_bins([None if size <= 32 else np.arange(size) * 32 // size for size in rounds.sizes])
        tables = [np.zeros((1, size), dtype=np.int64) for size in rounds.sizes[:-1]]
        ends = np.cumsum([table.shape[1] for table in tables])
        for _ in range(ROUNDS):
            target = ClassTarget(columns, (0, 1, -1))
            scores = Scores((*tables, None), np.zeros(1, dtype=np.int64), "logistic", target, UNIT // 2)
            moved = np.sign(rounds.residuals(scores))[: ends[-1]] * 100
            tables = [table + part for table, part in zip(tables, np.split(moved, ends[:-1]), strict=True)]
        return [table.tolist() for table in tables]

    train(
        table, plan, events, asked=asked, key="bench", words="bench", steps=steps, encode=json.dumps, decode=json.loads
    )


def _coded(table, name: str):
    from tacit.plan import STEPS_MOST, CodedColumn, measured_column
    from tacit.query import Aggregate, Column

    if not name.startswith("number"):
        return CodedColumn(name, Column(name), listed=("no", "yes") if name == "buys" else tuple(words_of(name)))
    grid = measured_column(Aggregate("mean", Column(name)), table.session.declaration, steps_most=STEPS_MOST)
    edges = sorted({int(edge) for edge in np.linspace(0, grid.height + 1, 256)})
    return CodedColumn(name, Column(name), measured=grid, edges=tuple(edges))
