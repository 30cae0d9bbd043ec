"""What the server's tests share: a small catalog, a desk with the test's own clock, and a client in this process."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tacit.catalog_file import read_catalog
from tacit.ledger import Person, name_key, open_ledger
from tacit.ledger.roles import ScramKeys, kept_hashes, scram_salt
from tacit.server import Desk, make_app
from tests.server.reply_check import check_reply

CATALOG = """
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = { epsilon = 20 }
hold = "2s"
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1

[tables.visits.columns.ward]
keys = ["A", "B", "C"]

[tables.visits.columns.days]
between = [0, 30]

[tables.pay]
source = "pay.parquet"
unit = "person"
budget = { epsilon = 5 }
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1

[tables.pay.columns.income]
between = [0, 1000]
"""

SERVING = "import sys; from tacit.cli.app import main; main(['serve', '--port', '0', *sys.argv[1:]])"

PEOPLE = {
    "tacit_ada": Person("ada", "curator"),
    "tacit_ben": Person("ben", "analyst", ("visits",)),
    "tacit_cleo": Person("cleo", "analyst", ("visits", "pay")),
    "tacit_audit": Person("dora", "auditor"),
    "tacit_audit_pay": Person("emil", "auditor", ("pay",)),
}


@dataclass(frozen=True)
class Book:
    """Tokens and people in memory."""

    people: Mapping[str, Person] = field(default_factory=lambda: dict(PEOPLE))

    def whose(self, secret: str) -> Person | None:
        return self.people.get(secret)

    def holder(self, id: str) -> Person | None:
        return self.people.get(f"tacit_{id}")

    def scram(self, name: str) -> ScramKeys:
        own = {secret for secret, person in self.people.items() if name_key(person.name or "") == name_key(name)}
        return ScramKeys(scram_salt(name), {each.removeprefix("tacit_"): scram_keys(each, name) for each in own})


@cache
def scram_keys(secret: str, name: str) -> tuple[bytes, bytes]:
    _, stored, server = kept_hashes(secret, name).split(":")
    return bytes.fromhex(stored), bytes.fromhex(server)


@dataclass
class Clock:
    """A clock that moves when somebody sleeps, and notes how long they did."""

    time: float = 1000.0
    slept: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)  # half-way, before what was computed is written

    def now(self) -> float:
        return self.time

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.time += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@dataclass(frozen=True)
class House:
    """A desk, its clock, and requests to it."""

    desk: Desk
    clock: Clock
    folder: Path

    def send(self, method: str, path: str, token: str | None = "tacit_ada", **given: Any) -> httpx.Response:
        headers = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **given.pop("headers", {})}

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=make_app(self.desk))
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, path, headers=headers, **given)

        reply = asyncio.run(exchange())
        check_reply(method, path, reply)
        return reply

    def ask(
        self, asked: Mapping[str, Any], token: str = "tacit_ada", key: str | None = None, table: str = "visits"
    ) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.send("POST", f"/api/v1/tables/{table}/questions", token, json=asked, headers=headers)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a catalog of two tables."""
    write_folder(tmp_path)
    return tmp_path


def write_folder(folder: Path) -> None:
    """Write a catalog of two tables, and their rows."""
    count = 600
    visits = {
        "patient": list(range(count)),
        "ward": ["A", "B", "C"] * (count // 3),
        "days": [1, 2, 3, 4] * (count // 4),
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    pq.write_table(pa.table({"person": list(range(50)), "income": [10] * 50}), folder / "pay.parquet")
    (folder / "tacit.toml").write_text(CATALOG)


@pytest.fixture
def open_house(folder: Path) -> Iterator[Callable[..., House]]:
    """Open a desk on the folder; a second one is another replica, with the same ledger."""
    opened: list[House] = []

    def open_it(**options: Any) -> House:
        clock = Clock()
        file = read_catalog(folder / "tacit.toml")
        given = {"tokens": Book(), "now": clock.now, "sleep": clock.sleep, "wait": clock.wait, **options}
        opened.append(House(Desk(file, open_ledger(file.ledger), **given), clock, folder))
        return opened[-1]

    yield open_it
    for each in opened:
        each.desk.close()
        each.desk.ledger.close()


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    """A desk with the test's own clock."""
    return open_house()


@pytest.fixture
def serving(folder: Path) -> Iterator[Callable[..., tuple[str, str, "subprocess.Popen[str]"]]]:
    """Start `tacit serve` in the folder; return its address, its token and its process."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> tuple[str, str, "subprocess.Popen[str]"]:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVING, *words], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        token, address = (process.stdout.readline().split()[-1] for _ in range(2))
        return address, token, process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture
def certificate(tmp_path: Path) -> dict[str, str]:
    """The files of a certificate of this test's own, and its key."""
    key, name = Ed25519PrivateKey.generate(), x509.Name([])
    days = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2100)]
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, *days).sign(key, None)
    (tmp_path / "c.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (tmp_path / "k.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return {"certificate": str(tmp_path / "c.pem"), "key": str(tmp_path / "k.pem")}
