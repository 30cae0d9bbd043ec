"""What a refusal says of what was charged; and shares of an analyst's own budget, of a summary too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.asking.request import Request
from tacit.errors import BudgetExceeded, QueryRefused
from tacit.ledger import open_ledger
from tests.server.conftest import House

LEARNS = """
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = { epsilon = 4, delta = 1e-6 }
"""


@pytest.fixture
def learning(folder: Path, open_house: Callable[..., House]) -> House:
    """A server with a table of which nothing is declared."""
    (folder / "tacit.toml").write_text(LEARNS)
    return open_house()


def test_a_refusal_before_anything_is_charged_says_that_nothing_was(learning: House) -> None:
    reply = learning.ask({"sql": "SELECT AVG(days) AS d FROM visits", "epsilon": "9"})
    assert (reply.status_code, reply.json()["type"]) == (402, "urn:tacit:no-room"), reply.text
    assert "no charge was made" in reply.json()["title"]


def test_a_refusal_after_something_was_learned_says_that_it_is_charged(
    learning: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else takes what is left between what is learned and the question's own charge."""

    def taken(*_: Any, **__: Any) -> None:
        raise BudgetExceeded(
            "the budget of 'visits' has no room; no charge was made and no row was read\nhint: ask for less"
        )

    monkeypatch.setattr(Request, "charged", taken)
    reply = learning.ask({"sql": "SELECT AVG(days) AS d FROM visits", "epsilon": "1"})
    assert (reply.status_code, reply.json()["type"]) == (402, "urn:tacit:refused-after-learning")
    assert "are charged" in reply.json()["title"]
    assert reply.json()["error"] == "BudgetExceeded"
    assert any(entry.kind == "fact" for entry in learning.desk.ledger.entries())


def test_an_analyst_with_a_smaller_delta_finds_keys_for_their_own_share(folder: Path) -> None:
    with open_ledger(folder / "own.db") as ledger:
        visits = tacit.table(
            str(folder / "visits.parquet"),
            unit="patient",
            budget=tacit.epsilon(4, delta=1e-6),
            rows_per_unit=1,
            groups_per_unit=1,
            ledger=ledger,
        )
        ledger.grant("visits", tacit.epsilon(1, delta=1e-9), analyst="ben", reason="a smaller delta")
        asked = visits.group_by("ward").count()
        report = asked.plan(epsilon=1, analyst="ben")
        assert report.fit is not None
        assert report.fit.short is None
        assert asked.answer(epsilon=1, analyst="ben").columns == ("ward", "count")
        # of the table's own budget the share is as it was
        assert asked.plan(epsilon=1).plan.spend.delta > report.plan.spend.delta
        ledger.grant("visits", tacit.epsilon(1), analyst="cleo", reason="no delta at all")
        with pytest.raises(QueryRefused, match="hint: "):
            asked.plan(epsilon=1, analyst="cleo")
