"""Audit a question by its plan on made-up neighbouring tables: no row is read, and the audit is free.

First the plan runs without noise, which is deterministic, so that one pair is enough. A published leak is nearly always
in the glue: a unit that moves a sum farther than was declared, a row that makes a query fail, a key that appears.
Shapes, errors and logs must be equal, and exact sums, values and counts within what the plan declares.

Then the real release is drawn many times from the pair that is farthest apart, and the loss that can be demonstrated is
held against the one it would cost.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tacit.auditing.function_audit import Claim, judge
from tacit.auditing.neighbours import MadeTables, make_tables, written_facts
from tacit.auditing.outcome import draw_releases, more_people, only_groups
from tacit.auditing.result import AuditResult
from tacit.engine import ExecutionPath, open_engine
from tacit.errors import EngineError, InvalidParameter, json_text
from tacit.exact import UNITS, ExactTable, GroupedSteps, added_to_levels
from tacit.numbers import Number, confidence_meaning, whole
from tacit.plan import NoisyRelease, Plan, PlannedLevel, QuantileDraw, Sensitivity
from tacit.query import Query
from tacit.release import NoisyTable, release
from tacit.tables import Declaration, open_source

if TYPE_CHECKING:
    from tacit.asking import Question


SALT = "5a17"
NORMS = ("l0", "l1", "l2_squared", "linf")

Cells = Mapping[tuple[Any, ...], int]  # (key, part) -> an exact integer


@dataclass(frozen=True)
class Distance:
    """How far two vectors are apart."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


def distance(left: Cells, right: Cells) -> Distance:
    """Return the exact distances between two vectors of cells."""
    moves = [abs(left.get(place, 0) - right.get(place, 0)) for place in left.keys() | right.keys()]
    moved = [move for move in moves if move]
    return Distance(len(moved), sum(moved), sum(move * move for move in moved), max(moved, default=0))


def beyond(before: Cells, after: Cells, declared: Sensitivity) -> list[str]:
    """Return every norm in which two vectors are farther apart than declared."""
    moved = distance(before, after)
    return [
        f"{norm} {getattr(moved, norm)} > {getattr(declared, norm)}"
        for norm in NORMS
        if getattr(moved, norm) > getattr(declared, norm)
    ]


@dataclass(frozen=True, repr=False)
class Trace:
    """A run of a plan on a made-up table: its sums, its release, its failure, its log."""

    exact: ExactTable | None
    noisy: NoisyTable | None
    failed: bool
    logged: tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """The findings of a replay: the number of compared pairs of tables, and the rule broken in each."""

    pairs: int
    broken: tuple[str, ...]
    farthest: str  # the newcomer that moved the sums most
    moved: float  # the largest part of a declared sensitivity that any newcomer used

    @property
    def passed(self) -> bool:
        """Whether everything stayed within what the plan declares."""
        return not self.broken

    def lines(self) -> list[str]:
        """Return the finding as lines to print."""
        if self.passed:
            return [
                f"REPLAY OK: {self.pairs} pairs of neighbouring tables; shapes, errors and logs are equal, and no sum"
                f" moved farther than declared (at most {self.moved:.0%} of it: {self.farthest})"
            ]
        return [
            f"REPLAY BROKEN in {len(self.broken)} places, in {self.pairs} pairs of tables",
            *(f"  {what}" for what in self.broken[:8]),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


Traces = Mapping[str | None, Trace]  # by newcomer; None: without any


def trace_all_and_alone(plan: Plan, declaration: Declaration, made: MadeTables) -> tuple[Traces, Traces]:
    """Return the runs of a plan on the crowd, with each newcomer or without; and the same without the crowd."""
    together: dict[str | None, pa.Table] = {name: made.with_newcomer(name) for name in (None, *made.newcomers)}
    alone = {("alone", name): made.alone(name) for name in together}
    traces = _trace_tables(plan, declaration, {**together, **alone})
    return {name: traces[name] for name in together}, {name: traces["alone", name] for name in together}


def _trace_tables(plan: Plan, declaration: Declaration, tables: Mapping[Any, pa.Table]) -> dict[Any, Trace]:
    """Return the runs of a plan on tables, all on the path that questions of the first would take now."""
    path = open_engine(open_source(next(iter(tables.values())), written_facts(declaration))).path_of(plan)
    return {name: run_plan(plan, declaration, table, path=path) for name, table in tables.items()}


def replay(plan: Plan, declaration: Declaration, query: Query) -> Replay:
    """Return what becomes of a plan's exact tables when one made-up unit comes, goes or is replaced."""
    return compare_traces(plan, *trace_all_and_alone(plan, declaration, make_tables(declaration, query)))


def compare_traces(plan: Plan, traces: Traces, alone: Traces | None = None) -> Replay:
    """Return the differences between the runs on every pair of neighbours.

    `alone` has the runs without the crowd: others' counts are compared, and a newcomer with an empty table.
    """
    broken, most, farthest = [], 0.0, "nobody"
    if all(trace.failed for trace in traces.values()):
        broken.append("the question fails on every table; no pair was compared")
    pairs = [(pair_name(*pair), traces[pair[0]], traces[pair[1]]) for pair in pairs_of(plan, traces)]
    for name, own in (alone or {}).items():
        if alone is not None and name is not None:
            broken += [f"{name}: {what}" for what in _others_moved(plan, traces[None], own, traces[name])]
            pairs.append((f"{name}, in a table of no other rows", alone[None], own))
    for name, before, after in pairs:
        broken += [f"{name}: {what}" for what in differences(plan, before, after)]
        used = share_used(plan, before, after)
        if used > most:
            most, farthest = used, name
    return Replay(len(pairs), tuple(broken), farthest, most)


def pairs_of(plan: Plan, traces: Traces) -> list[tuple[str | None, str | None]]:
    """Return the pairs of tables that are neighbours: a unit comes, or where units are replaced becomes another."""
    before: list[str | None] = list(traces) if plan.neighbours == "replace" else [None]
    return [(one, other) for one in before for other in traces if other is not None and one != other]


def pair_name(before: str | None, after: str | None) -> str:
    return str(after) if before is None else f"{before} becomes {after}"


def run_plan(plan: Plan, declaration: Declaration, table: pa.Table, *, path: ExecutionPath | None = None) -> Trace:
    """Return the result of a plan on a table of ours, on the given path of the engine."""
    heard = _Ear()
    logger = logging.getLogger("tacit")
    logger.addHandler(heard)
    try:
        exact = open_engine(open_source(table, written_facts(declaration)), path=path).aggregate(plan, SALT)
        return Trace(exact, release(plan, exact), failed=False, logged=tuple(heard.lines))
    except EngineError:
        return Trace(None, None, failed=True, logged=tuple(heard.lines))
    finally:
        logger.removeHandler(heard)


class _Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an entry as it would be written."""
        self.lines.append(self.format(record))


def differences(plan: Plan, before: Trace, after: Trace) -> list[str]:
    """Return what two neighbouring tables give away without noise, or move too far."""
    found = []
    if before.failed != after.failed:
        found.append("the question fails on one of the tables")
    if before.logged != after.logged:
        found.append("the log differs")
    if before.exact is None or after.exact is None or before.noisy is None or after.noisy is None:
        return found
    if plan.public_keys is not None and plan.choice is None and _noisy_shape(before.noisy) != _noisy_shape(after.noisy):
        found.append("the shape of the answer differs")
    return found + exact_differences(plan, before.exact, after.exact)


def exact_differences(plan: Plan, before: ExactTable, after: ExactTable) -> list[str]:
    """Return the positions at which the exact tables of two neighbours are farther apart than the plan declares."""
    found = []
    if plan.public_keys is not None and list(before.keys) != list(after.keys):
        found.append("the public groups differ")
    for name, each, one, other in vectors_of(plan, before, after):
        found += [f"{name}: {what}" for what in beyond(one, other, each.sensitivity)]
    for draw in plan.quantiles:
        found += _values_beyond(plan, before, after, draw)
    if plan.choice is not None:
        found += _units_beyond(before, after, monotone=plan.choice.monotone)
    return found


def vectors_of(
    plan: Plan, before: ExactTable, after: ExactTable
) -> Iterator[tuple[str, NoisyRelease, dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]]]:
    """Yield each release with its name and the integers of both tables that its noise is added to."""
    for place, each in enumerate(plan.releases):
        yield f"release {place}", each, cells_of(plan, before, place), cells_of(plan, after, place)
    for level in plan.levels:
        for place, each in enumerate(level.releases):
            one, other = (level_cells(plan, exact, level, place) for exact in (before, after))
            yield f"totals of keys {level.kept}, release {place}", each, one, other
    for each in plan.totals:
        yield "totals of kept and cut rows", each, _totals(each, plan, before), _totals(each, plan, after)


def _others_moved(plan: Plan, crowd: Trace, own: Trace, both: Trace) -> list[str]:
    """Units' contributions do not depend on other units, so the sums of a crowd and of a newcomer add up."""
    if crowd.exact is None or own.exact is None or both.exact is None:
        return []
    found = []
    for place, each in enumerate(plan.releases):
        if each.parts[0].kind == "distinct":  # a value that the crowd has too is not counted twice
            continue
        one, other, total = (cells_of(plan, exact, place) for exact in (crowd.exact, own.exact, both.exact))
        added = {cell: one.get(cell, 0) + other.get(cell, 0) for cell in one.keys() | other.keys()}
        if {cell: value for cell, value in added.items() if value} != total:
            found.append(f"release {place}: others' rows changed with the newcomer")
    for each in plan.totals:
        one, other, total = (_totals(each, plan, exact) for exact in (crowd.exact, own.exact, both.exact))
        if any(one[part] + other[part] != total[part] for part in total):
            found.append("totals of kept and cut rows: others' rows changed with the newcomer")
    return found


def _totals(each: NoisyRelease, plan: Plan, exact: ExactTable) -> dict[tuple[Any, ...], int]:
    """Return the exact totals of the whole table that one release adds noise to, by part."""
    return {(part.kind,): exact.part(part, plan)[0] for part in each.parts}


def cells_of(plan: Plan, exact: ExactTable, place: int) -> dict[tuple[Any, ...], int]:
    """Return the integers that one release adds noise to, by key and part; zeros are left out."""
    cells = {}
    for index, part in enumerate(plan.releases[place].parts):
        for key, value in zip(exact.keys, exact.part(part, plan), strict=True):
            if value:
                cells[(*key, index)] = value
    return cells


def level_cells(plan: Plan, exact: ExactTable, level: PlannedLevel, place: int) -> dict[tuple[Any, ...], int]:
    """Return the totals of a level that one release adds noise to, by key and part; zeros are left out."""
    cells: dict[tuple[Any, ...], int] = {}
    for index, part in enumerate(level.releases[place].parts):
        keys, values = added_to_levels(level.kept, exact.keys, exact.part_values(part, plan))
        cells |= {(*key, index): value for key, value in zip(keys, values.tolist(), strict=True) if value}
    return cells


def share_used(plan: Plan, before: Trace, after: Trace) -> float:
    """Return the largest part of a release's declared sensitivity that two tables are apart."""
    if before.exact is None or after.exact is None:
        return 0.0
    used = [0.0]
    for place, each in enumerate(plan.releases):
        moved = distance(cells_of(plan, before.exact, place), cells_of(plan, after.exact, place))
        used.append(moved.l1 / each.sensitivity.l1)
    for draw in plan.quantiles:
        changed = _changed(before.exact, after.exact, draw.column).values()
        most = sum(changed) if draw.of == "people" else max(changed, default=0)
        used.append(most / (draw.per_unit(plan.rows_per_unit) * _side_count(plan)))
    if plan.choice is not None:
        units = zip(before.exact.sums[UNITS], after.exact.sums[UNITS], strict=True)
        used.append(sum(abs(new - old) for old, new in units) / max(1, len(before.exact)))
    return max(used)


def _noisy_shape(noisy: NoisyTable) -> tuple[Any, ...]:
    return noisy.keys, tuple(tuple(len(part) for part in each) for each in noisy.parts)


def _side_count(plan: Plan) -> int:
    return 2 if plan.neighbours == "replace" else 1


def _changed(before: ExactTable, after: ExactTable, column: int) -> dict[tuple[Any, ...], int]:
    """Return for each group the number or the weight of values that only one of two tables has."""
    sides = []
    for exact in (before, after):
        values = exact.values.get(column)
        counted = () if values is None else (_value_counts(values, group) for group in range(len(values)))
        sides.append({tuple(key): each for key, each in zip(exact.keys, counted, strict=values is not None)})
    changed = {}
    for key in sides[0].keys() | sides[1].keys():
        one, other = (side.get(key, Counter()) for side in sides)
        count = sum(((one - other) + (other - one)).values())
        if count:
            changed[key] = count
    return changed


def _value_counts(values: GroupedSteps, group: int) -> Counter[int]:
    """Return the number of each value in a group, or their total weight."""
    steps = values[group].tolist()
    if values.weights is None:
        return Counter(steps)
    weighed: Counter[int] = Counter()
    for step, weight in zip(steps, values.weights[values.starts[group] : values.ends[group]].tolist(), strict=True):
        weighed[step] += weight
    return weighed


def _values_beyond(plan: Plan, before: ExactTable, after: ExactTable, draw: QuantileDraw) -> list[str]:
    """Check a quantile: its score hides a bounded number of rows in a bounded number of groups, or a bounded weight."""
    changed = _changed(before, after, draw.column)
    if draw.of == "people":
        weight, most = sum(changed.values()), draw.per_unit(plan.rows_per_unit) * _side_count(plan)
        return [] if weight <= most else [f"values of weight {weight} changed, {most} is declared"]
    rows, groups = plan.rows_per_unit * _side_count(plan), plan.groups_per_unit * _side_count(plan)
    found = [] if len(changed) <= groups else [f"quantiles of {len(changed)} groups changed, {groups} are declared"]
    most = max(changed.values(), default=0)
    return found if most <= rows else [*found, f"{most} values of a group changed, {rows} are declared"]


def _units_beyond(before: ExactTable, after: ExactTable, *, monotone: bool) -> list[str]:
    """A choice hides counts that move by one, and if declared so, all in one direction."""
    moves = [new - old for old, new in zip(before.sums[UNITS], after.sums[UNITS], strict=True)]
    found = [] if all(abs(move) <= 1 for move in moves) else ["a count that ranks keys moved by more than 1"]
    if monotone and any(move > 0 for move in moves) and any(move < 0 for move in moves):
        found.append("counts that rank keys moved both ways")
    return found


# ---- the audit of a question -----------------------------------------------------------------------------------------


DRAWS = 40_000
DRAWS_OF_SLOW = 2_000
GROUPS_MOST = 4


@dataclass(frozen=True)
class QuestionAudit:
    """The findings about a question: the replay of its plan, and the loss that its noisy answers demonstrate."""

    replay: Replay
    result: AuditResult
    pair: str  # which made-up newcomer the draws are about

    @property
    def violated(self) -> bool:
        """Whether the replay broke or the answers showed more than the loss they would cost."""
        return self.result.violated or not self.replay.passed

    def lines(self) -> list[str]:
        """Return the finding as lines to print."""
        findings = [*self.replay.lines(), *self.result.lines()]
        return [
            *findings,
            f"The tables are made up from the declaration and the question; the draws are about: {self.pair}.",
            "No row was read and no charge was made.",
        ]

    def to_json(self) -> str:
        """Return the finding as JSON."""
        found = {"pairs": self.replay.pairs, "broken": list(self.replay.broken), "moved": self.replay.moved}
        record = {"violated": self.violated, "replay": found, "pair": self.pair, "draws": self.result.to_dict()}
        return json_text(record)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return the picture of the draws, written to `path` if one is given."""
        return self.result.plot(path)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


def audit_question(
    question: "Question",
    *,
    epsilon: Number,
    delta: Number | None = None,
    noise: str | None = None,
    draws: int | None = None,
    confidence: Number = "0.999999",
) -> QuestionAudit:
    """Return what replay and sampling find about a question, on made-up neighbouring tables; free, and no row is read.

    >>> import pandas as pd, tacit
    >>> people = pd.DataFrame({"person": [1, 2], "city": ["A", "B"]})
    >>> table = tacit.table(people, unit="person", rows_per_unit=1, budget=tacit.epsilon(1), ledger=":memory:")
    >>> tacit.audit_question(table.count(), epsilon=1, draws=2_000).violated
    False
    """
    if not (hasattr(question, "plan") and hasattr(question, "query")):
        raise InvalidParameter(
            f"an audit is of a question, not of a {type(question).__name__}"
            "\nhint: tacit.audit_question(table.count(), epsilon=1)"
        )
    plan = question.plan(epsilon, delta, noise=noise).only_plan
    return audit_plan(
        plan, question.session.declaration, question.query, draws=draws, confidence=confidence_meaning(confidence)
    )


def audit_plan(
    plan: Plan, declaration: Declaration, query: Query, *, draws: int | None, confidence: Fraction
) -> QuestionAudit:
    """Return what replay and sampling find about a plan."""
    made = make_tables(declaration, query)
    traces, alone = trace_all_and_alone(plan, declaration, made)
    replayed = compare_traces(plan, traces, alone)
    one, other = max(pairs_of(plan, traces), key=lambda pair: share_used(plan, traces[pair[0]], traces[pair[1]]))
    usual = DRAWS_OF_SLOW if plan.quantiles or plan.choice else DRAWS
    count = usual if draws is None else whole(draws, name="draws", least=100)
    claim = Claim(plan.spend.epsilon, getattr(plan.loss, "delta", Fraction(0)), confidence)
    gaussian = plan.noise == "gaussian" and not plan.quantiles and plan.threshold is None and plan.choice is None
    sides = _telling_tables(plan, traces[one], traces[other])
    outputs = [["the question failed"] * count if side is None else draw_releases(plan, side, count) for side in sides]
    result = judge(outputs[0], outputs[1], claim, noise="gaussian" if gaussian else None)
    return QuestionAudit(replayed, result, pair_name(one, other))


def _telling_tables(plan: Plan, before: Trace, after: Trace) -> tuple[ExactTable | None, ExactTable | None]:
    """Return the two exact tables to draw from: only groups in which they differ, and enough people to be shown."""
    if before.exact is None or after.exact is None or plan.choice is not None:
        return before.exact, after.exact
    groups = _moved_groups(plan, before, after)
    one, other = only_groups(before.exact, groups), only_groups(after.exact, groups)
    if plan.threshold is None or plan.quantiles or plan.distincts:
        return one, other
    return more_people(one, other, 2 * plan.threshold.least)


def _moved_groups(plan: Plan, before: Trace, after: Trace) -> list[tuple[Any, ...]]:
    """Return a few groups in which the two tables differ; the others have the same law on both."""
    if before.exact is None or after.exact is None:
        return []
    moved: dict[tuple[Any, ...], int] = {}
    for place in range(len(plan.releases)):
        sides = [cells_of(plan, trace.exact, place) for trace in (before, after) if trace.exact is not None]
        for cell in sides[0].keys() | sides[1].keys():
            change = abs(sides[0].get(cell, 0) - sides[1].get(cell, 0))
            if change:
                moved[cell[:-1]] = moved.get(cell[:-1], 0) + change
    listed = sorted(moved, key=lambda key: -moved[key])
    keys = [tuple(key) for key in [*before.exact.keys, *after.exact.keys]]
    return list(dict.fromkeys(listed or keys))[:GROUPS_MOST]
