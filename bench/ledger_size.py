"""What a ledger's size costs: a question among thousands of tables, a verification, and many writers on PostgreSQL."""

import hashlib
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path

from bench.measure import Ratio, best_of_each

FEW, MANY = 100, 4_000
# Two more levels of the state's tree are read, and nothing else.
TABLES_LIMIT = 1.5
ENTRIES = 60_000
# A verification fetches, hashes, follows and adds up; bare is hashing and parsing alone.
VERIFY_LIMIT = 2.0
WRITERS = 32
WRITERS_LIMIT = 1.0
WRITING_SECONDS = 3.0


def results() -> Iterator[Ratio]:
    """Yield each cost against its baseline in the same run."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-bench-")))
        os.environ["TACIT_HOME"] = str(home)
        yield _among_tables(home)
        yield _verified(home)
        from bench.ledger import _postgres

        address = _postgres(stack)
        if address is not None:
            yield _written_together(address)


def _among_tables(home: Path) -> Ratio:
    """Open a ledger, open one of its tables and charge a question, by a process that knows nothing of it yet."""
    paths = [_with_tables(home / f"{tables}.db", tables) for tables in (MANY, FEW)]
    numbers = itertools.count()
    jobs = [partial(_ask_one, path, numbers) for path in paths]
    many, few = best_of_each(*jobs, repeats=15)
    return Ratio(f"open and ask, {MANY} tables and {FEW}", many, few, TABLES_LIMIT)


def _with_tables(path: Path, tables: int) -> Path:
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import PureLoss

    def register(number: int) -> None:
        name = f"table {number}"
        ledger.register(name=name, declaration={"unit": "id"}, source=name, budget=PureLoss(Fraction(10**6)))

    with open_ledger(path) as ledger, ThreadPoolExecutor(64) as many:
        list(many.map(register, range(tables)))
    return path


def _ask_one(path: Path, numbers: Iterator[int]) -> None:
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import LaplaceNoise

    event = LaplaceNoise(scale=Fraction(100), sensitivity=Fraction(1))
    with open_ledger(path) as ledger:
        table = ledger.register(name="table 7", declaration={"unit": "id"}, source="table 7")
        ledger.reserve(table, [event], question_key=str(next(numbers)))


def _verified(home: Path) -> Ratio:
    """Verify a long ledger, against hashing and parsing the same texts and nothing else; in processor time."""
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import PureLoss
    from tacit_gauntlet.stage.ledger import fill, noon

    with open_ledger(home / "long.db", clock=noon) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=PureLoss(Fraction(10**6)))
        fill(ledger, table, ENTRIES // 2)
        bodies = [entry.body for entry in ledger.entries()]

        def bare() -> None:
            hash = ""
            for body in bodies:
                hash = hashlib.sha256(f"{hash}\n{body}".encode()).hexdigest()
                json.loads(body)

        ours, baseline = (min(_processor_time(job) for _ in range(3)) for job in (ledger.verify, bare))
    return Ratio("verify, an entry, against hash and parse", ours / len(bodies), baseline / len(bodies), VERIFY_LIMIT)


def _processor_time(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _written_together(address: str) -> Ratio:
    """Charge by many processes on one PostgreSQL ledger and by one, and compare the time of a charge."""
    from tacit_gauntlet.stage.postgres_server import fresh_schema

    rates = {writers: [0.0] for writers in (WRITERS, 1)}
    for _ in range(3):
        for writers, found in rates.items():
            found.append(_rate(fresh_schema(address), writers))
    many, one = (1 / max(found) for found in rates.values())
    return Ratio(f"charge, PostgreSQL, {WRITERS} processes and one", many, one, WRITERS_LIMIT)


def _rate(where: str, writers: int) -> float:
    """Return how many charges a second so many processes make, once each has made a few."""
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import PureLoss

    with open_ledger(where) as ledger:
        ledger.register(name="pay", declaration={"unit": "id"}, budget=PureLoss(Fraction(10**9)))
    ready, gate = os.pipe(), os.pipe()
    children = []
    for writer in range(writers):
        child = os.fork()
        if child == 0:
            try:
                _write(where, writer, ready[1], gate[0])
            except BaseException:  # noqa: BLE001 (a child of a fork must end here)
                os._exit(70)
            os._exit(0)
        children.append(child)
    waiting = writers
    while waiting:
        waiting -= len(os.read(ready[0], waiting))
    with open_ledger(where) as ledger:
        before = ledger.length()
        start = time.monotonic()
        os.write(gate[1], b"x" * writers)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        seconds, made = time.monotonic() - start, ledger.length() - before
    for end in (*ready, *gate):
        os.close(end)
    if any(codes):
        raise RuntimeError("a writer failed")
    return made / seconds


def _write(where: str, writer: int, ready: int, gate: int) -> None:
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import LaplaceNoise

    event = LaplaceNoise(scale=Fraction(100), sensitivity=Fraction(1))
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"})
        for turn in itertools.count():
            if turn == 3:  # what is compiled and planned at first use is not what is measured
                os.write(ready, b"r")
                os.read(gate, 1)
                until = time.monotonic() + WRITING_SECONDS
            if turn > 3 and time.monotonic() >= until:
                return
            name = f"{writer} {turn}"
            ledger.reserve(table, [event], question_key=name, request_id=name)
