"""Counts that run on: charged once, before a row is read, and released day after day.

Each day's number is drawn once, from the rows as they are when it is released, and stored in the ledger before it is
shown. The whole stream is one Gaussian event: a person's rows move all its numbers together by no more than the event
hides, if rows of released days stay as they were (docs/proofs/streams.md).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from tacit.accounting import NoiseLoss, noise_delta
from tacit.answer import Answer, AnswerInfo, RunningTotals, loss_record
from tacit.asking.paying import Payment, failing_alike
from tacit.asking.request import left_record, what_is_left
from tacit.asking.session import Session, noise_for
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean, printable
from tacit.hold import holding, past_the_charge, wait_to_write
from tacit.ledger import Fit, Receipt, Step
from tacit.numbers import Number, brief, confidence_meaning, from_text, to_text, whole
from tacit.plan import DAYS_MOST, RunningPlan
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import Column
from tacit.release import release_integers
from tacit.tables import RowBlocks, blocks_between, zone_of

if TYPE_CHECKING:
    from tacit.asking.protected_table import Table

FORMAT = 1
_EXAMPLE = "visits.running('day', until='2028-12-31').count_units()"
_DAY = timedelta(days=1)
# The loss of a person with fewer rows is found to this part of an epsilon.
LOSS_STEPS = 1 << 10


@dataclass(frozen=True, repr=False)
class RunningRows:
    """The days of a table: ask how many units there are by then, or how many rows."""

    session: Session
    plan: RunningPlan  # of the days since `since`; without it, since the day of the start
    since: date | None
    until: date

    def count_units(self) -> "Running":
        """Return the running count of units: each counts once, on the first of its days."""
        return Running(self, 1, "total_units")

    def count(self, *, rows_per_unit: int | None = None) -> "Running":
        """Return the running count of rows: of each unit the first `rows_per_unit`, in the order of their days."""
        declared = self.session.declaration.rows_per_unit
        if self.plan.unit is None:
            return Running(self, 1, "total_rows")
        cap = declared if rows_per_unit is None else whole(rows_per_unit, name="rows_per_unit")
        if not isinstance(cap, int):
            raise QueryRefused(
                "a running count of rows needs the most rows that one unit counts for: a cap of k takes k times the"
                " noise\nhint: running('day', until=...).count(rows_per_unit=2), or count_units()"
            )
        return Running(self, cap, "total_rows")


@dataclass(frozen=True, repr=False)
class RunningCost:
    """The plan of a running count, printed as text: free, and no row is read."""

    text: str
    rows: RunningPlan
    events: tuple[GaussianNoise, ...]
    asked: NoiseLoss
    fit: Fit | None = None

    @property
    def loss(self) -> ApproximateLoss:
        """The cost of starting it; its steps are free."""
        return ApproximateLoss(self.asked.epsilon, self.asked.delta)

    def __str__(self) -> str:
        return printable(self.text, keeping="\n")

    __repr__ = __str__


@dataclass(frozen=True)
class Started:
    """A stream that was charged: its days, its noise, and where the ledger has it."""

    rows: RunningPlan
    event: GaussianNoise
    asked: NoiseLoss
    receipt: Receipt

    @classmethod
    def read(cls, wanted: RunningPlan, text: str, receipt: Receipt) -> "Started":
        """Return the stream that `record` wrote; `wanted` has its rows, and perhaps another first day."""
        record = json.loads(text)["running"]
        rows = replace(wanted, since=date.fromisoformat(record["since"]), days=record["days"])
        event = GaussianNoise(from_text(record["sigma"]), from_text(record["squared"]))
        return cls(rows, event, NoiseLoss(*map(from_text, record["asked"])), receipt)


def record(cost: RunningCost) -> str:
    """Return a stream's days and noise as the ledger keeps them: all of it is public."""
    event, asked = cost.events[0], (cost.asked.epsilon, cost.asked.delta, cost.asked.of_keys)
    kept = {"since": cost.rows.since.isoformat(), "days": cost.rows.days, "rows_per_unit": cost.rows.rows_per_unit}
    noise = {"sigma": to_text(event.sigma), "squared": to_text(event.sensitivity_squared)}
    return json.dumps({"format": FORMAT, "running": {**kept, **noise, "asked": [*map(to_text, asked)]}})


class _Draw:
    """Whether the numbers of a step may be known outside: from then on a refusal by the ledger is public."""

    is_released = False


@dataclass(frozen=True, repr=False)
class Running:
    """A count that runs on: `plan` it for free, `start` it for its cost, and `step` when days are over, free."""

    of: RunningRows
    rows_per_unit: int
    name: str

    @property
    def session(self) -> Session:
        """The session that pays and reads."""
        return self.of.session

    def plan(self, epsilon: Number, delta: Number | None = None, *, analyst: str | None = None) -> RunningCost:
        """Return the cost of starting, and how far each total will be off: free, and no row is read."""
        session, rows = self.session, self._rows()
        if rows.over(rows.days - 1) <= session.ledger.time:
            raise InvalidParameter(f"until is over: {self.of.until}\nhint: give a day to come, such as {_EXAMPLE}")
        events, asked = noise_for(session, epsilon, delta, [(rows.moves_squared, Fraction(1))], only_adds=True)
        payer = self._payer(rows)
        fit = session.ledger.fit(payer.registered, events, asked=asked, analyst=analyst)
        cost = RunningCost("", rows, events, asked, fit)
        return replace(cost, text="\n".join(self._lines(cost)))

    def start(self, epsilon: Number, delta: Number | None = None, *, analyst: str | None = None) -> "Running":
        """Charge for all days at once, before a row is read; started again at the same price, it is free.

        Rows are read by `step`.
        """
        known = self._found(analyst)
        cost = self.plan(epsilon, delta, analyst=analyst) if known is None else None
        if cost is not None:
            payer = self._payer(cost.rows)
            session = self.session
            session.ledger.require_may_ask(payer.registered, session.asker(analyst))
            payment = Payment(
                cost.events, self._key, asked=cost.asked, loss=cost.asked, analyst=analyst, words=self.words
            )
            with holding(session.hold), payer.spend(payment) as charge:
                if charge.stored is None:
                    charge.keep(record(cost))
            known = self._started(analyst)
        if known is not None and not self._is_at(known, epsilon, delta):
            raise InvalidParameter(
                f"this running count was started on {known.receipt.time[:10]} at ε = {brief(known.asked.epsilon)}, and"
                " goes on at that\nhint: step() releases the days that are over"
            )
        return self

    def step(self, *, analyst: str | None = None, confidence: Number = 0.95) -> Answer:
        """Release the days that are over, and return all totals so far; refuse if another day is not over yet.

        Each day's number is drawn once and stored before it is shown. A step is free: the start was charged for it.
        """
        level, session, started = confidence_meaning(confidence), self.session, self._started(analyst)
        session.ledger.require_may_ask(session.registered, session.asker(analyst))
        session.engine.refuse_changes()
        charge = started.receipt.charge
        with holding(session.hold):
            known = session.ledger.steps(charge)
            first, end = known[-1].end if known else 0, started.rows.days_over(session.ledger.time)
            if first >= end:
                raise InvalidParameter(_not_over(started.rows, first))
            past_the_charge()
            draw = _Draw()
            with failing_alike(draw):
                exact = session.engine.running(started.rows, first, end)
                noisy = release_integers(exact, started.event)
                draw.is_released = True
                wait_to_write()  # the entry has a time, which is public
                session.ledger.add_step(charge, first=first, end=end, text=json.dumps(noisy))
            steps = session.ledger.steps(charge)  # another process may have been quicker
        return self._answer(started, steps, level, analyst)

    def show(self, *, analyst: str | None = None, confidence: Number = 0.95) -> Answer:
        """Return the totals of all released days again: free, and no row is read."""
        level, started = confidence_meaning(confidence), self._started(analyst)
        self.session.ledger.require_may_ask(self.session.registered, self.session.asker(analyst))
        return self._answer(started, self.session.ledger.steps(started.receipt.charge), level, analyst)

    def __repr__(self) -> str:
        return printable(f"<{self.words}; .plan(epsilon=1) is free, .start(epsilon=1) is charged, .step() is free>")

    # ---- The stream in the ledger.

    def _rows(self) -> RunningPlan:
        """Return the rows of this count, from today on without a first day."""
        plan, today = self.of.plan, self.session.ledger.time
        zone = zone_of("UTC" if plan.zone is None else plan.zone)
        since = self.of.since or today.replace(tzinfo=zone_of("UTC")).astimezone(zone).date()
        days = (self.of.until - since).days + 1
        if days < 1:
            raise InvalidParameter(
                f"until is over: {self.of.until}\nhint: give a day to come, such as {_EXAMPLE}"
                if self.of.since is None
                else f"since must not be after until\nhint: {_EXAMPLE}"
            )
        if days > DAYS_MOST:
            raise InvalidParameter(f"a running count has at most {DAYS_MOST:,} days\nhint: give an earlier until")
        return replace(plan, since=since, days=days, rows_per_unit=self.rows_per_unit)

    @property
    def _key(self) -> str:
        """The key of the stream: all that its numbers depend on, but the rows, the noise and the price."""
        plan = self.of.plan
        parts = (
            FORMAT,
            plan.where,
            plan.column,
            plan.zone,
            plan.is_instant,
            self.of.since,
            self.of.until,
            self.rows_per_unit,
        )
        return f"running {hashlib.sha256(repr(parts).encode('utf-8', 'surrogatepass')).hexdigest()}"

    def _found(self, analyst: str | None) -> Started | None:
        session = self.session
        stored = session.ledger.recall(session.registered, question_key=session.key_of(self._key), analyst=analyst)
        if stored is None:
            return None
        wanted = replace(self.of.plan, rows_per_unit=self.rows_per_unit)
        return Started.read(wanted, stored.answer, stored.receipt)

    def _started(self, analyst: str | None) -> Started:
        found = self._found(analyst)
        if found is None:
            raise InvalidParameter(
                "this running count was not started yet, on this version of the table; no row was read"
                "\nhint: start(epsilon=1) charges for all of its days at once"
            )
        return found

    def _is_at(self, known: Started, epsilon: Number, delta: Number | None) -> bool:
        _, asked = noise_for(self.session, epsilon, delta, [(known.rows.moves_squared, Fraction(1))], only_adds=True)
        return asked.epsilon == known.asked.epsilon and (delta is None or asked.delta == known.asked.delta)

    def _payer(self, rows: RunningPlan) -> Session:
        """Return the session, charged only for the blocks that the days are in, if they are of the same column."""
        session, block = self.session, self.session.declaration.block
        if block is None:
            return session
        names = None
        if rows.column == Column(block.column):
            ends = rows.rows_of_days[0].begin, rows.rows_of_days[-1].end - timedelta(microseconds=1)
            low, high = ends if rows.is_instant else (rows.since, rows.day(rows.days - 1))
            names = blocks_between(block, low, high)
        return replace(session, registered=replace(session.registered, blocks=names, stamp=session.stamp()))

    # ---- Words.

    @property
    def _unit(self) -> str:
        return self.of.plan.unit or "row"

    @property
    def words(self) -> str:
        """The count in words."""
        what = "rows" if self.name == "total_rows" else "units"
        return f"running count of {what} of {self.session.declaration.name} by {self._column}, until {self.of.until}"

    @property
    def _column(self) -> str:
        column = self.of.plan.column
        return column.name if isinstance(column, Column) else "day"

    def _counts(self) -> str:
        if self.of.plan.unit is None:
            return "each row, on its day"
        if self.name == "total_units":
            return f"each {self._unit} once, on the first of its days"
        rows = "row" if self.rows_per_unit == 1 else f"{self.rows_per_unit:,} rows"
        return f"of each {self._unit} the first {rows}, in the order of days"

    def _lines(self, cost: RunningCost) -> list[str]:
        rows, (event,) = cost.rows, cost.events
        strays = RunningTotals(rows.coefficients, event.sigma).errors(rows.days, Fraction(95, 100))
        zone = "" if rows.zone is None else f", {rows.zone}"
        fit = cost.fit
        return [
            f"Plan for a {self.words}: free, and no row is read.",
            f"Counts: {self._counts()}.",
            f"Days: {rows.since} to {rows.day(rows.days - 1)} ({rows.days:,}{zone}). Rows of other days, and rows"
            f" without {self._column}, do not count.",
            f"Cost: {cost.loss}, charged once, at the start. Every step is free.",
            *self._costs_of_people(cost),
            f"Expected error (95 % of totals are within): ± {strays[0]:,.0f} on the first day, ± {strays[-1]:,.0f} on"
            " the last.",
            f"Protects {self.session.protected}, if rows of released days stay as they were: each step reads all days"
            " anew.",
            *([] if fit is None or fit.short is None else [f"Refused now: {fit.short}."]),
        ]

    def _costs_of_people(self, cost: RunningCost) -> list[str]:
        """Return the losses of people with fewer rows than the cap, at the same delta."""
        if self.rows_per_unit == 1:
            return [f"One {self._unit} counts once at most, and so costs no more than this with any number of rows."]
        (event,), shown = cost.events, sorted({1, 2, self.rows_per_unit // 2} - {0, self.rows_per_unit})
        losses = {rows: _loss_of(event, Fraction(rows, self.rows_per_unit), cost.asked) for rows in shown}
        words = ", ".join(f"{rows:,} {'row' if rows == 1 else 'rows'} ε {brief(loss)}" for rows, loss in losses.items())
        most = f"{self.rows_per_unit:,} or more ε {brief(cost.asked.epsilon)}"
        return [f"One {self._unit} loses by its rows, at the same δ: {words}, {most}."]

    def _answer(self, started: Started, steps: Sequence[Step], level: Fraction, analyst: str | None) -> Answer:
        session, rows = self.session, started.rows
        noisy = [number for step in steps for number in json.loads(step.text)]
        last = steps[-1] if steps else None
        receipt = started.receipt
        where: Mapping[str, Any] = {"ledger": receipt.ledger, "entry": receipt.number, "hash": receipt.hash}
        level_words = f"{float(level) * 100:g} %"
        cap = (
            f" Rows beyond {self.rows_per_unit:,} of one {self._unit} are not counted."
            if self.name == "total_rows"
            else ""
        )
        paid = f"ε {brief(started.asked.epsilon)}, δ {brief(started.asked.delta)}"
        info = AnswerInfo(
            loss=loss_record(ApproximateLoss(started.asked.epsilon, started.asked.delta)),
            left=left_record(what_is_left(session, analyst)),
            unit=session.protected,
            neighbours="add or remove one" if session.declaration.neighbours == "add-remove" else "replace one",
            confidence=level,
            durable=receipt.durable,
            free=True,
            version=session.registered.version,
            receipt={**where, "time": receipt.time if last is None else last.time},
            notes=(
                *session.block_notes,
                f"Counts {self._counts()}; days from {rows.since} on.",
                f"The start was charged {paid} for all days to {rows.day(rows.days - 1)} (entry {receipt.number}).",
                "Each day's number was drawn once, from the rows as they were at its step. A total never changes.",
                "The promise and the intervals hold for rows that stay as they were once their day is released.",
            ),
            reading=f"Each interval holds its day's total with {level_words} probability, if rows of earlier days"
            f" stayed as they were.{cap if self.of.plan.unit else ''}",
            advice=f"All days were charged together at the start: {paid}.",
        )
        return RunningTotals(rows.coefficients, started.event.sigma).answer(
            (self._column, self.name),
            [rows.day(index) for index in range(len(noisy))],
            noisy,
            info,
            partial(session.ledger.certificate, receipt.number),
        )


def running_rows(
    table: "Table", column: str, *, until: object, since: object = None, zone: str | None = None
) -> RunningRows:
    """Return the days of a table, or refuse columns, days and tables that cannot run on, without reading a row."""
    session, frame = table.session, table.frame
    declared, source = session.declaration, session.engine.source
    if session.relation is not None or frame.keys or frame.derived:
        raise QueryRefused(
            "a running count is of a stored table, perhaps filtered, without groups, joins and derived columns"
            f"\nhint: {_EXAMPLE}, or visits.where(\"ward = 'A'\").running(...)"
        )
    if source.elsewhere is not None:
        raise QueryRefused("tables in Spark have no running counts\nhint: read the rows from files, or from PostgreSQL")
    if not isinstance(column, str) or column not in declared.columns:
        raise QueryRefused(f"the table lacks a column '{column}'{did_you_mean(str(column), declared.columns)}")
    kind, block = declared.columns[column].type, declared.block
    if kind not in ("date", "timestamp"):
        raise QueryRefused(
            f"a running count needs a column of dates or times, and '{column}' is {kind}\nhint: {_EXAMPLE}"
        )
    if zone is None and isinstance(block, RowBlocks) and block.column == column:
        zone = block.zone
    if zone is None and kind == "timestamp":
        raise QueryRefused(
            f"the times of '{column}' need a zone: it decides on which day a moment is, and when a day is over"
            "\nhint: running('day', until='2028-12-31', zone='Europe/Berlin')"
        )
    if zone is not None:
        zone_of(zone)
    period = session.registered.period
    if period is not None and block is None:
        raise QueryRefused(
            f"this budget is new each {period}, and a running count is charged once and answers in later ones"
            "\nhint: a budget for life, or for each block of the rows"
        )
    end = _day(until, "until")
    begin = None if since is None else _day(since, "since")
    unit = declared.unit_column
    plan = RunningPlan(
        unit, frame.where, Column(column), begin or end, 1, 1, zone, is_instant=column in source.instants
    )
    return RunningRows(session, plan, begin, end)


def _day(written: object, name: str) -> date:
    if isinstance(written, date) and not isinstance(written, datetime):
        return written
    try:
        return date.fromisoformat(written)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a day\nhint: {name}='2028-12-31'") from None


def _not_over(rows: RunningPlan, first: int) -> str:
    """Return why a step has nothing to release: public."""
    if first == rows.days:
        return f"all days to {rows.day(first - 1)} are released; this count is over\nhint: show() returns them again"
    return (
        f"{rows.day(first)} is not over: its total can be released from {rows.over(first):%Y-%m-%d %H:%M} UTC on, by"
        " the ledger's clock; no row was read\nhint: show() returns the days before it"
    )


def _loss_of(event: GaussianNoise, part: Fraction, asked: NoiseLoss) -> Fraction:
    """Return an epsilon, rounded up, that holds at the same delta for people with this part of the cap's rows."""
    moved = replace(event, sensitivity_squared=event.sensitivity_squared * part**2)
    low, high = 0, LOSS_STEPS
    while high - low > 1:
        middle = (low + high) // 2
        holds = noise_delta((moved,), asked.epsilon * middle / LOSS_STEPS) <= asked.delta
        low, high = (low, middle) if holds else (middle, high)
    return asked.epsilon * high / LOSS_STEPS
