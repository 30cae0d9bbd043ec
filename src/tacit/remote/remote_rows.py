"""Made-up rows and running counts of a table on a server, with the words of those that are here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tacit.answer import Answer, Printed
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.numbers import Number
from tacit.options import MADE_ROWS, REPORT, RUNNING, as_sent
from tacit.query import Frame, show
from tacit.remote.http import Reply, Wire, path_of

if TYPE_CHECKING:
    from tacit.learning import MadeRows


@dataclass(frozen=True, repr=False)
class RemotePlan(Printed):
    """A plan that was made on a server; printed as text."""

    text: str
    loss: str
    fits: bool

    def __str__(self) -> str:
        return printable(self.text, keeping="\n")


def plan_in(reply: Reply) -> RemotePlan:
    record = reply.record
    return RemotePlan(record["text"], record["loss"]["text"], record["fits"])


def where_of(frame: Frame) -> str | None:
    """Return the filter of a table as it travels; refuse groups and derived columns."""
    if frame.keys or frame.derived:
        raise QueryRefused(
            "made-up rows and running counts are of the whole table\nhint: leave out group_by and derive; where is fine"
        )
    return None if frame.where is None else show(frame.where)


@dataclass(frozen=True, repr=False)
class RemoteSynthesis:
    """Make rows with `visits.synthesize(epsilon=1)`; `.plan(epsilon=1)` is free, as here (`Table.synthesize`)."""

    wire: Wire
    table: str
    where: str | None

    def __call__(self, epsilon: Number = 1, delta: Number | None = None, **words: Any) -> "MadeRows":
        """Return made-up rows after the server has charged for them: all rows, tables and reports are then free."""
        from tacit.learning import MadeRows

        asked = self._asked(epsilon, delta, **words)
        text = self.wire.send("POST", path_of("tables", self.table, "made-rows"), asked).record["made"]
        return MadeRows.read(text, elsewhere=partial(self._report, asked))

    def _report(self, asked: Mapping[str, Any], epsilon: Number, delta: Number | None) -> Mapping[str, Any]:
        """Charge for a report of these rows on the server, and return the pairs that it measured."""
        more = as_sent({"report_epsilon": epsilon, "report_delta": delta}, REPORT)
        path = path_of("tables", self.table, "made-rows", "report")
        found: Mapping[str, Any] = self.wire.send("POST", path, {**asked, **more}).record
        return found

    def plan(self, epsilon: Number = 1, delta: Number | None = None, **words: Any) -> RemotePlan:
        """Return what the rows would be made of, their noise and their cost: free, and no row is read."""
        path = path_of("tables", self.table, "made-rows", "plan")
        return plan_in(self.wire.send("POST", path, self._asked(epsilon, delta, **words)))

    def _asked(
        self,
        epsilon: Number,
        delta: Number | None,
        *,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        target: str | None = None,
        rules: Iterable[str] = (),
        once: Sequence[str] | None = None,
        order: str | None = None,
        learn: Any = None,
    ) -> dict[str, Any]:
        dates = {name: ends for name, ends in columns.items() if ends} if isinstance(columns, Mapping) else None
        asked = {
            "columns": columns,
            "dates": dates or None,
            "target": target,
            "rules": rules,
            "once": once,
            "order": order,
            "where": self.where,
            "epsilon": epsilon,
            "delta": delta,
            "learn": learn,
        }
        return as_sent(asked, MADE_ROWS)

    def __repr__(self) -> str:
        return "synthesize(epsilon=1, columns=None, target=None): made-up rows; .plan(epsilon=1) is free"


@dataclass(frozen=True, repr=False)
class RemoteRunning:
    """A count that runs on, on a server: `plan` it, `start` it for its cost, and `step` when days are over, free."""

    wire: Wire
    table: str
    asked: Mapping[str, Any]
    answered: Callable[[Reply], Answer]

    def count_units(self) -> "RemoteRunning":
        """Return the running count of units: each counts once, on the first of its days."""
        return self

    def count(self, *, rows_per_unit: int | None = None) -> "RemoteRunning":
        """Return the running count of rows: of each unit the first `rows_per_unit`, in the order of their days."""
        if rows_per_unit is None:
            raise InvalidParameter("on a server, say how many rows of one unit count\nhint: count(rows_per_unit=1)")
        return replace(self, asked={**self.asked, "rows_per_unit": rows_per_unit})

    def plan(self, epsilon: Number, delta: Number | None = None) -> RemotePlan:
        """Return the cost of starting, and how far each total will be off: free, and no row is read."""
        return plan_in(self._send("plan", epsilon=epsilon, delta=delta))

    def start(self, epsilon: Number, delta: Number | None = None) -> "RemoteRunning":
        """Charge for all days at once; started again at the same price, it is free."""
        self._send("start", epsilon=epsilon, delta=delta)
        return self

    def step(self, *, confidence: Number = 0.95) -> Answer:
        """Release the days that are over by the ledger's clock, and return all totals so far: free."""
        return self._totals("step", confidence)

    def show(self, *, confidence: Number = 0.95) -> Answer:
        """Return the totals of all released days again: free, and no row is read."""
        return self._totals("show", confidence)

    def _totals(self, verb: str, confidence: Number) -> Answer:
        return self.answered(self._send(verb, confidence=confidence))

    def _send(self, verb: str, **more: Any) -> Reply:
        return self.wire.send(
            "POST", path_of("tables", self.table, "running", verb), as_sent({**self.asked, **more}, RUNNING)
        )

    def __repr__(self) -> str:
        return printable(f"<running count of {self.table}; .plan(epsilon=1) is free, .start(epsilon=1) is charged>")
