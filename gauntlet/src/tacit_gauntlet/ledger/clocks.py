"""A clock that is wrong by decades: nothing is written at its time, and setting it right re-opens nothing (L19)."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import open_ledger
from tacit.privacy.loss import PureLoss
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import TENTH, ask, charge, private_home, refused, register

TODAY = datetime(2026, 3, 10, 12, tzinfo=UTC)
WRONG = datetime(2099, 1, 1, tzinfo=UTC)


@case("L19", title="one reading of a clock that is decades ahead", feature="ledger")
def far_ahead(size: Size) -> Evidence:  # noqa: ARG001 (the nine checks are the full size)
    """It is refused before anything is written; where it was believed, the curator's word ends it, and no more."""
    now = [TODAY]
    with private_home() as home, open_ledger(home / "ledger.db", clock=lambda: now[0]) as ledger:
        table = register(ledger, PureLoss(Fraction(100)))
        ledger.grant("pay", PureLoss(TENTH), period="day", reason="a tenth a day")
        before = ledger.length()
        now[0] = WRONG
        checks = {"a reading of 2099 is refused": refused(lambda: charge(ledger, table, "in 2099"), LedgerError)}
        checks["and nothing is written"] = ledger.length() == before
        now[0] = TODAY
        checks["today goes on"] = ask(ledger, table, "today") is not None
        checks["and today is used up"] = ask(ledger, table, "today again") is None
        now[0] = TODAY + timedelta(days=3)
        checks["a later day has room"] = ask(ledger, table, "later") is not None
        now[0] = TODAY + timedelta(days=1)
        checks["no way back over closed days"] = refused(lambda: ledger.correct_clock("back"), InvalidParameter)
        now[0] = WRONG
        ledger.correct_clock("the curator believes it")
        checks["2099 has room of its own"] = ask(ledger, table, "in 2099") is not None
        now[0] = TODAY + timedelta(days=3, hours=1)
        checks["2099 keeps today closed"] = ask(ledger, table, "frozen") is None
        ledger.correct_clock("it was the battery")
        checks["what today spent is spent"] = ask(ledger, table, "more") is None
        now[0] = TODAY + timedelta(days=4)
        checks["the next day has room"] = ask(ledger, table, "next") is not None
        ledger.verify()
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": "; ".join(failed) or "none"})
