"""Whatever the disk does, an answer that left is in the ledger and paid for (L03)."""

import os
from contextlib import suppress
from fractions import Fraction
from unittest.mock import patch

import pytest

from tacit.auditing.gauntlet.ledger_stage import TENTH, again, ask, register
from tacit.errors import LedgerError
from tacit.ledger import open_ledger
from tacit.ledger.sqlite import SqliteStore
from tacit.privacy.loss import PureLoss
from tests.ledger.faulty_disk import Disk, FaultyConnection, PowerCut

LIVES = 2


@pytest.fixture(autouse=True)
def other_disks_are_quick(monkeypatch):
    """The ledger is on a disk in memory; the real one, with key and anchor, need not be waited for."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    monkeypatch.setattr("os.fdatasync", lambda descriptor: None)


def opened(disk, path):
    return open_ledger(path, connect=lambda name: FaultyConnection(disk, name))


def live_and_die(disk, path, *, errors: bool) -> list:
    """Answer questions until the power goes; return the receipts of the answers that left."""
    left = []
    share = disk.random.choice([0.02, 0.1, 0.3]) if errors else 0.0
    disk.arm(operations=disk.random.randrange(1, 40), error_share=share, full=disk.random.random() < 0.5)
    ledger = None
    with suppress(PowerCut, LedgerError):
        ledger = opened(disk, path)
        table = again(ledger)
        for turn in range(12):
            with suppress(LedgerError):
                left.append(ask(ledger, table, f"{disk.random.random()} {turn}"))
    if ledger is not None:
        ledger._store._connection = None  # gone with the process: nothing more reaches the disk
    disk.lose_power()
    return left


def faults_of(seed, tmp_path) -> list[str]:
    """Return what a seed's disk broke, over a few lives of the process."""
    disk = Disk(seed)
    path = tmp_path / f"{seed}" / "ledger.db"
    os.environ["TACIT_HOME"] = str(path.parent)
    with opened(disk, path) as ledger:
        register(ledger, PureLoss(Fraction(1000)))
    answers, spent = [], Fraction(0)
    for life in range(LIVES):
        answers += live_and_die(disk, path, errors=seed % 2 == 0)
        try:
            with opened(disk, path) as ledger:
                ledger.verify()
                entries = {entry.number: entry for entry in ledger.entries()}
                now = ledger.spent(again(ledger)).epsilon
        except LedgerError as error:
            return [f"life {life}: did not restart: {error}"]
        lost = [one for one in answers if entries.get(one.number) is None or entries[one.number].hash != one.hash]
        charges = sum(entry.kind == "charge" for entry in entries.values())
        if lost or now < spent or now != charges * TENTH or charges < len(answers):
            return [f"life {life}: {len(lost)} answers lost, spent {spent} then {now} in {charges} charges"]
        spent = now
    return []


def first_fault(seeds, tmp_path) -> str:
    for seed in seeds:
        for fault in faults_of(seed, tmp_path):
            return f"seed {seed}: {fault}"
    return ""


@pytest.mark.parametrize("block", range(4))
def test_no_answer_is_lost_on_a_faulty_disk(block, tmp_path):
    assert first_fault(range(block * 125, (block + 1) * 125), tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_no_answer_is_lost_on_ten_thousand_faulty_disks(block, tmp_path):
    assert first_fault(range(block * 500, (block + 1) * 500), tmp_path) == ""


def test_a_disk_that_is_not_synced_in_full_is_caught(tmp_path):
    """The mutant: synchronous=NORMAL, which syncs the log only now and then."""
    prepare = SqliteStore._prepare

    def less_careful(self, connection):
        prepare(self, connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    with patch.object(SqliteStore, "_prepare", less_careful):
        assert first_fault(range(40), tmp_path).startswith("seed ")


def test_a_full_disk_is_said_to_be_full_and_the_ledger_goes_on_once_it_is_not(tmp_path):
    disk = Disk(1)
    with opened(disk, tmp_path / "ledger.db") as ledger:
        table = register(ledger)
        disk.arm(operations=10**9, error_share=1.0, full=True)
        with pytest.raises(LedgerError, match=r"disk is full; nothing was answered(.|\n)*free some space"):
            ask(ledger, table, "q")
        disk.arm(operations=10**9)
        assert ask(ledger, table, "q") is not None
        assert ledger.spent(table).epsilon == TENTH
