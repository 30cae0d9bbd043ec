"""`tacit serve` under load, on loopback: plans, stored and fresh answers a second, how long each takes, and its start.

Load comes from wrk (Debian's package), and once from the product's own client. Processor times are of all processes of
the server: on a machine that others use too, they say more than rates do.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Absent, Figure, Seconds

ROWS = 100_000
HOLD = "100ms"
TURNS = 96
STORED = 48  # clients at once
FRESH = 64
ANALYSTS = 4
SECONDS = 6
PAINTS = 9
SERVING = "import sys; from tacit.cli.app import main; main(['serve', '--port', '0', *sys.argv[1:]])"
CATALOG = f"""
ledger = "ledger.db"
[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = {{ epsilon = 1000000 }}
hold = "{HOLD}"
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1
[tables.visits.columns.ward]
keys = ["A", "B", "C"]
[tables.visits.columns.days]
between = [0, 30]
"""
# wrk's script: one of `many` questions, in the name of one analyst after the other, each after a pause
SCRIPT = """
local tokens = {%s}
local n = 0
delay = function() return math.random(0, %d) end
request = function()
  n = n + 1
  local body = '{"sql":"SELECT ward, COUNT(*) AS n FROM visits WHERE days <> ' .. (%d + n %% %d)
    .. ' GROUP BY ward","epsilon":"0.1"}'
  local headers = {["Authorization"] = "Bearer " .. tokens[n %% #tokens + 1]}
  return wrk.format("POST", "/api/v1/tables/visits/%s", headers, body)
end
"""
FEW, ENDLESS = 50, 1_000_000_000


def results() -> Iterator[Figure | Seconds | Absent]:
    """Start a server, and yield what it does under load."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_tables(home)
        tokens = people(home, ANALYSTS)
        yield Seconds("start, with its tables open", min(_start_seconds(home) for _ in range(3)), 2.0)
        with serving(home) as server:
            if shutil.which("wrk") is None:
                yield Absent("plans, stored and fresh answers a second", "wrk is not installed (Debian's package)")
            else:
                yield from _under_load(server, tokens)
            yield from _by_client(server, tokens)
            yield from _pages(server, tokens[0])


@dataclass(frozen=True)
class Server:
    """A running server: its address and its process."""

    address: str
    process: int
    postgres: str = ""  # the address of PostgreSQL's protocol

    def processor_seconds(self) -> float:
        """Return the processor time of its processes so far."""
        children = Path(f"/proc/{self.process}/task/{self.process}/children").read_text().split()
        ticks = 0
        for pid in (str(self.process), *children):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """What one run of wrk found."""

    rate: float
    median: float
    refused: int
    processor: float  # seconds of the server's for each request


def _under_load(server: Server, tokens: list[str]) -> Iterator[Figure | Seconds]:
    one = tokens[:1]
    _loaded(server, one, "plan", FEW, connections=8, seconds=3)  # the loops are loaded meanwhile
    few = _loaded(server, one, "plan", FEW, connections=8)
    yield Figure("plans a second", few.rate, least=300)
    yield Seconds("processor time of a plan", few.processor)
    yield Seconds("a plan, half are quicker", _loaded(server, one, "plan", FEW, connections=2).median, 0.010)
    each = _loaded(server, one, "plan", ENDLESS, connections=8)
    yield Figure("plans a second, no two alike", each.rate)
    yield Seconds("processor time of a plan, no two alike", each.processor)
    _loaded(server, tokens, "questions", 1, connections=TURNS, seconds=10)  # every thread opens its tables
    stored = _loaded(server, tokens, "questions", 1, connections=STORED)
    yield Figure("stored answers a second", stored.rate, least=200)
    yield Seconds(f"a stored answer, half are quicker (held {HOLD})", stored.median)
    yield Seconds("processor time of a stored answer", stored.processor)
    _loaded(server, tokens, "questions", ENDLESS, connections=4, seconds=8)  # and the loops are in use
    # clients that ask at moments of their own: in lockstep, all would wait for the same tick
    fresh = _loaded(server, tokens, "questions", ENDLESS, connections=FRESH, seconds=12, pause=1000)
    yield Figure("fresh answers a second, 10⁵ rows", fresh.rate, least=50)
    yield Seconds(f"a fresh answer, half are quicker (held {HOLD})", fresh.median)
    yield Seconds("processor time of a fresh answer", fresh.processor)
    flood = _loaded(server, tokens, "questions", 1, connections=50 * 8, seconds=5)
    began = time.monotonic()
    with urllib.request.urlopen(f"{server.address}/health", timeout=60) as reply:
        reply.read()
    yield Seconds("health, after 400 connections at once", time.monotonic() - began, 1.0)
    yield Figure("answers a second, to 400 connections", flood.rate - flood.refused / 5)


def _by_client(server: Server, tokens: list[str]) -> Iterator[Figure]:
    """The product's own client, one thread for each analyst: it waits for each answer before it asks again."""
    import tacit

    done: list[int] = []
    until = time.monotonic() + SECONDS

    def ask(number: int) -> None:
        visits = tacit.connect(server.address, token=tokens[number])["visits"]
        while time.monotonic() < until:
            visits.where(f"days <> {40 + number * 100_000 + len(done)}").group_by("ward").count().answer(epsilon="0.1")
            done.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(ANALYSTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    yield Figure(f"fresh answers a second to {ANALYSTS} clients that wait", len(done) / SECONDS)


def _pages(server: Server, token: str) -> Iterator[Figure | Seconds | Absent]:
    """How soon a browser paints the page on which one asks, and how much it is sent for it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        yield Absent("first paint of a page", "Chromium is not installed (Debian's package)")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        page.goto(f"{server.address}/sign-in")
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_selector("a.button.main")
        paints, sizes = [], []
        for _ in range(PAINTS):
            sent: list[int] = []
            page.on("response", lambda reply, sent=sent: sent.append(len(reply.body())))
            page.goto(f"{server.address}/tables/visits", wait_until="networkidle")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            sizes.append(sum(sent))
        browser.close()
    yield Seconds("first paint of the page that asks, half are sooner", statistics.median(paints), 0.1)
    yield Figure("what that page is sent, in kilobytes", max(sizes) / 1000, most=40)


def _loaded(
    server: Server, tokens: list[str], verb: str, many: int, *, connections: int, seconds: int = SECONDS, pause: int = 0
) -> Load:
    """Return what wrk finds: with a stored answer it is one question, and the first is fresh.

    Each of its clients waits up to `pause` milliseconds, at random, before it asks again.
    """
    start = 100 if many == 1 else int(time.monotonic() * 1000) * 1000 if many == ENDLESS else 0
    script = SCRIPT % (", ".join(f'"{each}"' for each in tokens), pause, start, many, verb)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = server.processor_seconds()
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency", "--timeout", "60", "-s", file.name]
        found = subprocess.run([*wrk, server.address], check=True, capture_output=True, text=True).stdout
    used = server.processor_seconds() - before
    requests = max(int(_number(r"(\d+) requests in", found)), 1)
    return Load(
        rate=_number(r"Requests/sec:\s+([\d.]+)", found),
        median=_seconds(found),
        refused=int(_number(r"Non-2xx or 3xx responses: (\d+)", found)),
        processor=used / requests,
    )


def _number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    return 0.0 if found is None else float(found[1])


def _seconds(text: str) -> float:
    found = re.search(r"50%\s+([\d.]+)(us|ms|s)", text)
    return float("nan") if found is None else float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[found[2]]


@contextmanager
def serving(home: Path, *words: str) -> Iterator[Server]:
    # as it is where it was installed: modules are compiled to bytecode once
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(home / "bytecode")}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING, "--turns", str(TURNS), *words],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a line for each request
        text=True,
        env={**os.environ, **compiled},
    )
    try:
        lines = (
            [] if process.stdout is None else [process.stdout.readline() for _ in range(1 + ("--postgres" in words))]
        )
        yield Server(lines[0].split()[-1], process.pid, *(each.split()[-1] for each in lines[1:]))
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _start_seconds(home: Path) -> float:
    began = time.monotonic()
    with serving(home):
        return time.monotonic() - began


def write_tables(home: Path) -> None:
    number = np.arange(ROWS)
    columns = {"patient": number, "ward": np.array(list("ABC"))[number % 3], "days": number % 30}
    pq.write_table(pa.table(columns), home / "visits.parquet")
    (home / "tacit.toml").write_text(CATALOG)


def people(home: Path, number: int) -> list[str]:
    """Return a token of each of so many analysts."""
    from tacit.ledger import open_ledger

    with open_ledger(home / "ledger.db") as ledger:
        names = [f"analyst {each}" for each in range(number)]
        for name in names:
            ledger.add_person(name)
        return [ledger.new_token(name) for name in names]
