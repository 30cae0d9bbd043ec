"""Disks that tear, lose and refuse writes, under a real SQLite: ten thousand of them, by seed (L03).

Needs apsw, whose SQLite can be given a disk of one's own. Each seed is a disk; a seed that loses
an answer is named, and fails again when it is tried again.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import tacit
from tacit.errors import LedgerError
from tacit_gauntlet.frame.case import Attack, Evidence, Size, case
from tacit_gauntlet.stage.disk import Disk, FaultyConnection, PowerCut
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Ledger,
    Receipt,
    again,
    ask,
    lose_connection,
    open_at,
    private_home,
    quick_real_disk,
    register,
)

LIVES = 2
# More than ten thousand disks are seven cases, so that each ends in time.
SEEDS_EACH = 1500
PARTS = {
    f"L03{letter}": range(place * SEEDS_EACH, (place + 1) * SEEDS_EACH) for place, letter in enumerate(["", *"bcdefg"])
}
QUICK = 50
# A home keeps a mark of each of its ledgers: with thousands of them, opening one would take its time.
SEEDS_A_HOME = 10


def _attack_of(seeds: range) -> Attack:
    def attack(size: Size) -> Evidence:
        tried = seeds if size == "full" else seeds[:QUICK]
        with private_home() as home, quick_real_disk():
            fault = first_fault(tried, home)
        return Evidence(
            not fault, {"disks": len(tried), "seeds": f"{tried[0]} to {tried[-1]}", "fault": fault or "none"}
        )

    return attack


for _id, _seeds in PARTS.items():
    _title = f"whatever a disk does, no answer that left is lost (seeds {_seeds[0]} to {_seeds[-1]})"
    case(_id, title=_title, feature="ledger")(_attack_of(_seeds))


def first_fault(seeds: Iterable[int], folder: Path) -> str:
    """Return what the first faulty disk broke, with its seed, or nothing; TACIT_HOME is in the folder from here on."""
    for seed in seeds:
        os.environ["TACIT_HOME"] = str(folder / f"home{seed // SEEDS_A_HOME}")
        fault = fault_of(seed, folder / f"{seed}.db")
        if fault:
            return f"seed {seed}: {fault}"
    return ""


def fault_of(seed: int, path: Path) -> str:
    """Return what a seed's disk broke, over a few lives of the process: a lost answer, or a charge that shrank."""
    disk = Disk(seed)
    with opened(disk, path) as ledger:
        register(ledger, tacit.epsilon(Fraction(1000)))
    answers: list[Receipt] = []
    spent = Fraction(0)
    for life in range(LIVES):
        answers += live_and_die(disk, path, errors=seed % 2 == 0)
        try:
            with opened(disk, path) as ledger:
                ledger.verify()
                hashes = {entry.number: entry.hash for entry in ledger.entries()}
                charges = sum(entry.kind == "charge" for entry in ledger.entries())
                now = ledger.spent(again(ledger)).epsilon or Fraction(0)
        except LedgerError as error:
            return f"life {life}: did not restart: {error}"
        lost = [one for one in answers if hashes.get(one.number) != one.hash]
        if lost or now < spent or now != charges * TENTH or charges < len(answers):
            return f"life {life}: {len(lost)} answers lost, spent {spent} then {now} in {charges} charges"
        spent = now
    return ""


def live_and_die(disk: Disk, path: Path, *, errors: bool) -> list[Receipt]:
    """Answer questions until the power goes; return the receipts of the answers that left."""
    left = []
    share = disk.random.choice([0.02, 0.1, 0.3]) if errors else 0.0
    disk.arm(operations=disk.random.randrange(1, 40), error_share=share, full=disk.random.random() < 0.5)
    ledger: Any = None
    with suppress(PowerCut, LedgerError):
        ledger = opened(disk, path)
        table = again(ledger)
        for turn in range(12):
            with suppress(LedgerError):
                receipt = ask(ledger, table, f"{disk.random.random()} {turn}")
                if receipt is not None:
                    left.append(receipt)
    if ledger is not None:
        lose_connection(ledger)  # gone with the process: nothing more reaches the disk
    disk.lose_power()
    return left


def opened(disk: Disk, path: Path) -> Ledger:
    """Return the ledger that is on a faulty disk."""
    return open_at(path, connect=lambda name: FaultyConnection(disk, name))
