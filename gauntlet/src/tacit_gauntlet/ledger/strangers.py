"""A whole ledger in another's place, and answers that somebody else paid for (L22, L23).

Both are in order by themselves: the ledger is signed by the right key, the answer is in the record. What is wrong is
where they are found.
"""

import os
import shutil
from fractions import Fraction
from pathlib import Path

from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger import Ledger, StoredAnswer, open_ledger
from tacit.privacy.event import PureChoice
from tacit.privacy.loss import PureLoss
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import TENTH, again, ask, private_home, refused, register

BUDGET = PureLoss(TENTH)


@case("L22", title="another ledger of the same key is put in the place of a spent one", feature="ledger")
def put_in_place(_: Size) -> Evidence:
    """Copied over it, moved there or linked to: it is refused, and the spent one put back is as it was."""
    with private_home() as home:
        spent, other, kept = home / "spent.db", home / "other.db", home / "kept.db"
        with open_ledger(spent) as ledger:
            ask(ledger, register(ledger, BUDGET), "the one question")
        with open_ledger(other) as ledger:
            register(ledger, BUDGET, name="something else")
        spent.rename(kept)
        shutil.copy(other, spent)
        checks = {"a copy": _is_refused(spent)}
        spent.unlink()
        spent.symlink_to(other)
        checks["a link"] = _is_refused(spent)
        checks["a link, from its own folder"] = _is_refused(Path(os.path.relpath(spent)))
        spent.unlink()
        other.rename(spent)
        checks["the other itself"] = _is_refused(spent)
        kept.replace(spent)
        with open_ledger(spent) as ledger:
            checks["the spent one is spent"] = ask(ledger, register(ledger, BUDGET), "a second question") is None
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"ways": len(checks), "answered": "; ".join(failed) or "none"})


def _is_refused(path: Path) -> bool:
    def answer() -> None:
        with open_ledger(path) as ledger:
            ask(ledger, register(ledger, BUDGET), "a second question")

    return refused(answer, LedgerError)


@case("L23", title="an analyst with a budget asks for answers that others paid for", feature="ledger")
def paid_by_others(_: Size) -> Evidence:
    """What an analyst is shown adds up to no more than their budget, whoever asked first and wherever it was stored."""
    with private_home() as home, open_ledger(home / "ledger.db") as ledger:
        table = register(ledger, PureLoss(Fraction(100)))
        for turn in range(5):
            ask(ledger, table, f"question {turn}", epsilon=Fraction(1), analyst="ann")
        checks = {"those without one share": _shown(ledger, 5, "cid") == 5}
        ledger.grant("pay", PureLoss(Fraction(2)), analyst="bob", reason="two")
        ledger.grant("pay", PureLoss(TENTH), analyst="dan", period="day", reason="a tenth a day")
        checks["bob"] = _shown(ledger, 5, "bob") == 2
        checks["bob has again what he had"] = _shown(ledger, 5, "bob") == 2
        checks["dan"] = _shown(ledger, 5, "dan") == 0
        ledger.grant("pay", PureLoss(Fraction(1)), analyst="*", reason="one each")
        checks["each"] = _shown(ledger, 5, "eve") == 1
        ledger.verify()
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": "; ".join(failed) or "none"})


def _shown(ledger: Ledger, questions: int, analyst: str) -> int:
    """Return how many of the questions, each of epsilon 1, an analyst is answered."""
    table, shown = again(ledger), 0
    for turn in range(questions):
        key = f"question {turn}"
        try:
            found = ledger.reserve(table, [PureChoice(Fraction(1))], question_key=key, analyst=analyst)
        except BudgetExceeded:
            continue
        shown += 1
        if not isinstance(found, StoredAnswer):
            found.commit('"an answer"')
    return shown
