"""A count that runs on: its days, the most that one unit may add, and the whole numbers that days are weighed with.

All of it is public. The exact vector of a stream has a number for each day t: the sum over all days s up to t of
c(t - s) times the rows that day s counts. The coefficients c are those of (1 - x)^(-1/2), the square root of the
running sum, in whole steps, so that the move of one unit is a whole number too (docs/proofs/streams.md).
"""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from tacit.numbers import Integers
from tacit.query import Expression
from tacit.tables import begin_in_utc, zone_of

# A coefficient counts steps of 2^-STEP_BITS.
STEP_BITS = 20
# The most days of one stream.
DAYS_MOST = 20_000
# Digits that the recurrence of coefficients keeps beyond a step.
_GUARD_BITS = 60
_DAY = timedelta(days=1)


@lru_cache(maxsize=8)
def root_of_running_sum(days: int) -> Integers:
    """Return the coefficients of (1 - x)^(-1/2) in steps of 2^-STEP_BITS, falling, made with whole numbers only."""
    fine, half = 1 << STEP_BITS + _GUARD_BITS, 1 << _GUARD_BITS - 1
    found = np.empty(days, dtype=np.int64)
    for place in range(days):
        found[place] = fine + half >> _GUARD_BITS
        fine = fine * (2 * place + 1) // (2 * place + 2)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class DaysInRow:
    """The moments from `begin` to before `end`: days of 24 hours, the first with index `first`, or one other day."""

    begin: datetime
    end: datetime
    first: int
    are_whole: bool  # whether all of them have 24 hours


@dataclass(frozen=True)
class RunningPlan:
    """The rows that a stream counts: of each unit the first `rows_per_unit` in the order of their days."""

    unit: str | None  # None: every row is a unit
    where: Expression | None
    column: Expression  # a date or a time
    since: date
    days: int
    rows_per_unit: int
    zone: str | None = None
    is_instant: bool = False  # whether times are instants, read in UTC; otherwise they are what clocks show

    @property
    def coefficients(self) -> Integers:
        """The whole numbers by which a day's rows are weighed on that day and on those after it."""
        return root_of_running_sum(self.days)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the stream in L2: all its rows on the first day."""
        return self.rows_per_unit**2 * sum(int(each) ** 2 for each in self.coefficients)

    def day(self, index: int) -> date:
        """Return a day by its index."""
        return self.since + index * _DAY

    def over(self, index: int) -> datetime:
        """Return the moment in UTC at which a day is over; without a zone, when it is over everywhere."""
        midnight = datetime.combine(self.day(index) + _DAY, datetime.min.time())
        return midnight + _DAY / 2 if self.zone is None else begin_in_utc(midnight, zone_of(self.zone))

    def days_over(self, time: datetime) -> int:
        """Return how many days are over at a moment in UTC."""
        low, high = 0, self.days
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.over(middle) <= time else (low, middle)
        return low

    @cached_property
    def rows_of_days(self) -> tuple[DaysInRow, ...]:
        """All days in order, in UTC for instants and otherwise as clocks show them, without days that a zone skips."""
        midnights = [datetime.combine(self.day(index), datetime.min.time()) for index in range(self.days + 1)]
        if not self.is_instant or self.zone is None:
            return (DaysInRow(midnights[0], midnights[-1], 0, are_whole=True),)
        zone = zone_of(self.zone)
        found: list[DaysInRow] = []
        for index, (begin, end) in enumerate(pairwise(begin_in_utc(each, zone) for each in midnights)):
            is_whole = end - begin == _DAY
            if is_whole and found and found[-1].are_whole:
                found[-1] = replace(found[-1], end=end)
            elif begin < end:
                found.append(DaysInRow(begin, end, index, is_whole))
        return tuple(found)
