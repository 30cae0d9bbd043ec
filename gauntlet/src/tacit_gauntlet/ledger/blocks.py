"""Blocks: what one person in a block loses, counted from rows, never passes the budget of a block (L42)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations_with_replacement, count, permutations, product
from zoneinfo import ZoneInfo

import pyarrow as pa

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError
from tacit_gauntlet.frame.case import Evidence, Size, case

HALF = Fraction(1, 2)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
# The first midnight of two months, in UTC: clocks in St John's showed that of November 2009 twice, and in Asunción that
# of October 2017 never.
ZONES = {
    "Europe/Berlin": ("2026-10-31T23:00", "2026-11-30T23:00"),
    "America/St_Johns": ("2009-11-01T02:30", "2009-12-01T03:30"),
    "America/Asuncion": ("2017-10-01T04:00", "2017-11-01T03:00"),
}
QUICK = (("America/St_Johns", "add-remove"), ("Europe/Berlin", "replace"))
Reads = Callable[[datetime], bool]


@case("L42", title="one person in a block loses at most the budget of a block, by rows", feature="ledger")
def blocks(size: Size) -> Evidence:
    """Ask a question around two midnights until it is refused, and then another; count the losses by rows."""
    faults, answered = [], 0
    for zone, neighbours in QUICK if size == "quick" else product(ZONES, ("add-remove", "replace")):
        begin, end = map(datetime.fromisoformat, ZONES[zone])
        moments = [begin - TICK, begin, begin + TICK, begin + 9 * DAY, end - TICK, end, end + DAY]
        as_texts = not _refused_as_texts(zone, neighbours, moments)
        for pair in permutations(_questions(begin, end), 2):
            table = _table(zone, neighbours, moments, as_texts=as_texts)
            charged = [reads for condition, reads in pair for _ in range(_asked_until_refused(table, condition))]
            answered += len(charged)
            faults += [f"{zone}, {neighbours}: {fault}" for fault in _faults(zone, neighbours, moments, charged)]
            try:
                table.session.ledger.verify()
            except LedgerError as problem:
                faults.append(str(problem))
    return Evidence(answered > 0 and not faults, {"answered": answered, "faults": "; ".join(faults[:4]) or "none"})


def _questions(begin: datetime, end: datetime) -> list[tuple[str, Reads]]:
    month = f"at >= '{begin}' AND at < '{end}'"
    return [
        (month, lambda at: begin <= at < end),
        (f"at BETWEEN '{begin}' AND '{begin + TICK}'", lambda at: begin <= at <= begin + TICK),
        (f"at > '{begin + DAY}' AND at < '{end - DAY}'", lambda at: begin + DAY < at < end - DAY),
        (f"at >= '{end}' AND at < '{end + 9 * DAY}'", lambda at: end <= at < end + 9 * DAY),
        (f"({month}) OR x = 0", lambda _: True),
        (f"at = '{end - TICK}'", lambda at: at == end - TICK),
    ]


def _refused_as_texts(zone: str, neighbours: str, moments: Sequence[datetime]) -> bool:
    """Return whether the same times are refused as texts with an offset, of which only UTC's clocks are known."""
    try:
        _table(zone, neighbours, moments, as_texts=True)
    except InvalidParameter:
        return True
    return False


def _table(zone: str, neighbours: str, moments: Sequence[datetime], *, as_texts: bool) -> tacit.Table:
    times = [each.replace(tzinfo=UTC) for each in moments]
    at = pa.array(map(str, times)) if as_texts else pa.array(times, pa.timestamp("us", "UTC"))
    rows = pa.table({"who": [*range(len(moments))], "at": at, "x": [0] * len(moments)})
    return tacit.table(
        rows,
        name="visits",
        unit="who",
        budget=tacit.epsilon(1),
        ledger=tacit.TRYOUT,
        neighbours=neighbours,  # type: ignore[arg-type]
        columns={"at": {"type": "timestamp"}} if as_texts else None,
        rows_per_unit=1,
        block={"column": "at", "every": "month", "zone": zone},
    )


def _asked_until_refused(table: tacit.Table, condition: str) -> int:
    """Ask about the rows of a condition, in other words each time, and return how often there was an answer."""
    for turn in count():
        try:
            table.where(f"({condition}) AND x <> {turn + 1}").count().answer(epsilon=HALF, accept_noise=True)
        except BudgetExceeded:
            return turn
    raise AssertionError


def _faults(zone: str, neighbours: str, moments: Sequence[datetime], charged: Sequence[Reads]) -> list[str]:
    """Return whose losses pass the budget: of a person in one month, in several, or replaced by another's rows."""
    faults = []
    for first, second in combinations_with_replacement(moments, 2):
        lost = sum((HALF for reads in charged if reads(first) or reads(second)), Fraction(0))
        if lost > (1 if neighbours == "replace" else len({_month(first, zone), _month(second, zone)})):
            faults.append(f"{lost} lost by rows at {first} and {second}")
    return faults


def _month(at: datetime, zone: str) -> str:
    """Return the last month that clocks of a zone have shown by a moment: it never goes back."""
    minutes = (at - timedelta(minutes=back) for back in range(0, 26 * 60, 10))
    shown = [each.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for each in (at, *minutes)]
    return max(f"{each:%Y-%m}" for each in shown)
