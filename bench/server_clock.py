"""Whether the time of an answer tells what the rows are: pairs of questions to two tables, over HTTP, in real time.

Two tables differ by one person with very many rows, by one with very long texts, by all of their rows, or by a source
that fails. Each pair asks both the same, in an order by chance, and whoever watches guesses from the two times which
table was which. With a `hold` the guess is a coin's. Without one (a millisecond) the same guess shows what it hides.
"""

import json
import random
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Figure
from bench.server import Server, people, serving
from tacit.hold import read_hold
from tacit_gauntlet.stage.statistic import clopper_pearson_upper

WITHOUT = "1ms"  # no hold to speak of
WITHOUT_PAIRS = 100
GUESS_MOST = 0.55  # of 1,000 pairs a coin's is above it one time in eight
LARGE, SMALL = 1_000_000, 100_000
TEXTS_OF_ONE, TEXT = 200, "x" * 20_000
WARDS = np.array(list("ABC"))
TABLE = """
[tables.{name}]
source = "{name}.parquet"
unit = "patient"
budget = {{ epsilon = 1000000 }}
hold = "{hold}"
rows_per_unit = 2
groups_per_unit = 2
most_rows_per_unit = 2
[tables.{name}.columns.ward]
keys = ["A", "B", "C"]
"""


@dataclass
class Kind:
    """Two tables that differ in one thing, and the times that answers about them took."""

    what: str
    tables: tuple[str, str]  # the second is the one to be told
    where: str
    hold: str
    clients: int
    pairs: int
    took: list[tuple[float, float]] = field(default_factory=list)

    @property
    def right(self) -> int:
        """How often the better of two guesses is right: that the second table's answer is the later, or the sooner."""
        later = sum(second > first for first, second in self.took)
        return max(later, len(self.took) - later)

    def missed(self) -> tuple[int, int]:
        """Return how many answers about each table missed their first tick."""
        every = float(read_hold(self.hold) or 0)
        first, second = (sum(pair[each] > 1.5 * every for pair in self.took) for each in (0, 1))
        return first, second


def kinds() -> list[Kind]:
    """Return every kind of pair; a hold is long enough for as many questions at once as there are clients."""
    return [
        Kind("10⁵ of 10⁶ rows are one's", ("light", "heavy"), "days <> {number}", "1200ms", 4, 1000),
        Kind("10⁴ of 10⁵ rows are one's", ("short", "heavier"), "days <> {number}", "300ms", 6, 2000),
        Kind("one has long texts", ("short", "long"), "UPPER(note) <> 'N{number}'", "1200ms", 6, 1000),
        Kind("no row at all", ("short", "empty"), "days <> -{number}", "300ms", 6, 1000),
        Kind("the source fails", ("short", "broken"), "days < {number}", "1200ms", 6, 1000),
    ]


def results() -> Iterator[Figure]:
    """Measure every kind with its hold, and a few pairs without."""
    for kind in map(measured, kinds()):
        share = kind.right / len(kind.took)
        most = clopper_pearson_upper(kind.right, len(kind.took), alpha=0.05)
        yield Figure(f"{kind.what}: guesses right, of {len(kind.took)}", share)
        yield Figure(f"{kind.what}: guesses right, at most (95 %)", most, most=GUESS_MOST)
        for which, missed in zip(("first", "second"), kind.missed(), strict=True):
            yield Figure(f"{kind.what}: later than a tick, {which} table", missed)
        bare = measured(replace(kind, hold=WITHOUT, pairs=WITHOUT_PAIRS, took=[]))
        yield Figure(f"{kind.what}: guesses right without a hold", bare.right / len(bare.took))


def measured(kind: Kind) -> Kind:
    """Return a kind with the times of its pairs, asked of one server by several clients at once."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name in kind.tables:
            pq.write_table(_rows(name), home / f"{name}.parquet")
        tables = [TABLE.format(name=name, hold=kind.hold) for name in kind.tables]
        (home / "tacit.toml").write_text("\n".join(['ledger = "ledger.db"', *tables]))
        tokens = people(home, kind.clients)
        with serving(home) as server:
            _asked(server, tokens, replace(kind, pairs=8 * kind.clients, took=[]), first=10**6)  # it opens its tables
            if "broken" in kind.tables:  # its schema can still be read, and its rows cannot
                written = (home / "broken.parquet").read_bytes()
                (home / "broken.parquet").write_bytes(
                    b"PAR1" + bytes(len(written) // 2) + written[len(written) // 2 + 4 :]
                )
            _asked(server, tokens, kind, first=10**7)
    return kind


def _asked(server: Server, tokens: list[str], kind: Kind, *, first: int) -> None:
    """Ask every pair of a kind, by several clients at once; no question is asked twice."""

    def ask(client: int) -> None:
        chance = random.Random(client)
        for number in range(first + client, first + kind.pairs, kind.clients):
            took = {}
            for name in chance.sample(kind.tables, 2):
                time.sleep(chance.random() / 50)  # so that clients ask at moments of their own
                took[name] = _seconds(server, tokens[client], name, kind.where.format(number=number))
            kind.took.append((took[kind.tables[0]], took[kind.tables[1]]))

    clients = [threading.Thread(target=ask, args=(each,)) for each in range(kind.clients)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()


def _seconds(server: Server, token: str, table: str, where: str) -> float:
    sql = f"SELECT ward, COUNT(*) AS n FROM {table} WHERE {where} GROUP BY ward"
    request = urllib.request.Request(
        f"{server.address}/api/v1/tables/{table}/questions",
        json.dumps({"sql": sql, "epsilon": "0.1"}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    began = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=600) as reply:
            reply.read()
    except urllib.error.HTTPError as failed:
        failed.read()
        if failed.code != 500:  # it was charged, and failed
            raise
    return time.perf_counter() - began


def _rows(name: str) -> pa.Table:
    number = np.arange(LARGE if name in ("light", "heavy") else 0 if name == "empty" else SMALL)
    patient, notes = number // 2, np.full(len(number), "well", dtype=object)
    if name in ("heavy", "heavier"):
        patient[: len(number) // 10] = 0
    if name == "long":
        patient[:TEXTS_OF_ONE] = 0
        notes[:TEXTS_OF_ONE] = TEXT
    texts = {"ward": WARDS[number % 3].astype(object), "note": notes}
    return pa.table(
        {"patient": patient, "days": number % 30, **{n: pa.array(t, pa.string()) for n, t in texts.items()}}
    )
