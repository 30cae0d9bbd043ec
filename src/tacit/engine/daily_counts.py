"""Reads a count that runs on: how many rows each day counts, and the weighed sums of days, exact and secret.

Of each unit the first rows count, in the order of their days, up to the plan's limit: a unit's part of a day depends
on its own rows of that day and of days before it. So rows of later days change nothing that was read before.
"""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa

from tacit import typed_sql as sql
from tacit.engine.expression import constant, to_sql
from tacit.engine.relation import UNIT, belongs_to_someone, unit_value
from tacit.exact import ExactIntegers
from tacit.numbers import Integers
from tacit.plan import RunningPlan
from tacit.query import Kind, Value, columns_of

DAY, COUNTED = "day", "counted"
_ROWS, _SO_FAR = "rows", "so_far"


def columns_counted(plan: RunningPlan) -> frozenset[str]:
    """Return the columns that a plan's expressions name."""
    return columns_of(plan.column) | columns_of(plan.where)


def running_relation(plan: RunningPlan, table: sql.Relation, kinds: Mapping[str, Kind]) -> sql.Relation:
    """Return how many rows count on each day that has any, by the day's index."""
    conditions = [] if plan.where is None else [to_sql(plan.where, table, kinds)]
    if plan.unit is not None:
        conditions.append(belongs_to_someone(unit_value(table, plan.unit, kinds)))
    kept = table.filter(conditions) if conditions else table
    columns = {DAY: _day_index(plan, to_sql(plan.column, kept, kinds))}
    if plan.unit is None:
        dated = kept.select(**columns)
        dated = dated.filter(dated[DAY].notnull())
        return dated.group_by(DAY).agg(**{COUNTED: dated.count().cast("int64")})
    dated = kept.select(**columns, **{UNIT: unit_value(kept, plan.unit, kinds)})
    dated = dated.filter(dated[DAY].notnull())
    if plan.rows_per_unit == 1:
        first = dated.group_by(UNIT).agg(**{DAY: dated[DAY].min()})
        return first.group_by(DAY).agg(**{COUNTED: first.count().cast("int64")})
    daily = dated.group_by(UNIT, DAY).agg(**{_ROWS: dated.count().cast("int64")})
    before = daily[_ROWS].sum().over(sql.window(group_by=[UNIT], order_by=[daily[DAY]])).cast("int64")
    added = daily.select(DAY, _ROWS, **{_SO_FAR: before})
    most = sql.literal(plan.rows_per_unit, "int64")
    counted = sql.least(added[_SO_FAR], most) - sql.least(added[_SO_FAR] - added[_ROWS], most)
    capped = added.select(DAY, **{COUNTED: counted})
    return capped.group_by(DAY).agg(**{COUNTED: capped[COUNTED].sum().cast("int64")})


def _day_index(plan: RunningPlan, when: sql.Typed) -> sql.Typed:
    """Return the index of a moment's day, NULL for a moment outside of all days."""
    time = when.cast("timestamp(6)")
    branches: list[tuple[sql.Typed, sql.Typed]] = []
    for days in plan.rows_of_days:
        begin, end = _time_constant(days.begin), _time_constant(days.end)
        index = sql.literal(days.first, "int64")
        if days.are_whole:  # clocks of a zone are off by whole seconds
            late = days.begin - days.begin.replace(hour=0, minute=0, second=0, microsecond=0)
            moved = time + sql.interval(seconds=-int(late.total_seconds())) if late else time
            index = index + moved.days_since(_time_constant(days.begin - late))
        branches.append(((time >= begin) & (time < end), index))
    return sql.cases(*branches, else_=sql.null("int64"))


def _time_constant(when: datetime) -> sql.Typed:
    return constant(Value(when, "timestamp")).value


def counted_days(plan: RunningPlan, found: pa.Table) -> Integers:
    """Return how many rows count on each day, from the rows of the relation."""
    exact_days = np.zeros(plan.days, dtype=np.int64)
    exact_days[found.column(DAY).to_numpy()] = found.column(COUNTED).to_numpy()
    return exact_days


def weighed_days(plan: RunningPlan, exact_days: Integers, first: int, end: int) -> ExactIntegers:
    """Return the stream's exact numbers of the days from `first` to before `end`.

    A table has fewer than 2^42 rows, and a coefficient is at most 2^20, so that the sums fit 64 bits.
    """
    falling = plan.coefficients[::-1]
    sums = [int(falling[plan.days - 1 - day :] @ exact_days[: day + 1]) for day in range(first, end)]
    return ExactIntegers(np.array(sums, dtype=np.int64), plan.moves_squared)
