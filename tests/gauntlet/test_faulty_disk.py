"""A full disk is said to be full. That no disk loses an answer is the gauntlet's case L03."""

import pytest

from tacit.errors import LedgerError
from tacit_gauntlet.ledger.disk import first_fault, opened
from tacit_gauntlet.ledger.mutants import synced_now_and_then
from tacit_gauntlet.stage.disk import Disk
from tacit_gauntlet.stage.ledger import TENTH, ask, quick_real_disk, register


@pytest.fixture(autouse=True)
def other_disks_are_quick():
    with quick_real_disk():
        yield


def test_the_seed_of_a_disk_that_loses_an_answer_is_named_and_fails_again(tmp_path):
    with synced_now_and_then():
        found = first_fault(range(40), tmp_path)
        seed = int(found.removeprefix("seed ").split(":")[0])
        assert first_fault([seed], tmp_path / "again")[:20] == found[:20]
    assert first_fault([seed], tmp_path / "sound") == ""


def test_a_full_disk_is_said_to_be_full_and_the_ledger_goes_on_once_it_is_not(tmp_path):
    disk = Disk(1)
    with opened(disk, tmp_path / "ledger.db") as ledger:
        table = register(ledger)
        disk.arm(operations=10**9, error_share=1.0, full=True)
        with pytest.raises(LedgerError, match=r"disk is full; no answer was given(.|\n)*free some space"):
            ask(ledger, table, "q")
        disk.arm(operations=10**9)
        assert ask(ledger, table, "q") is not None
        assert ledger.spent(table).epsilon == TENTH
