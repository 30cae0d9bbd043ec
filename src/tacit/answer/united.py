"""The answer to a compound question: the rows of all its levels and branches as one table. Post-processing only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from tacit.answer.answer import (
    Answer,
    AnswerInfo,
    AnswerRows,
    View,
    answer_of,
    computed_view,
    released_view,
    rolled_up,
)
from tacit.answer.columns import (
    CONSISTENT,
    column_type,
    cut_to_possible,
    made_consistent,
    noisy_columns,
    parts_of_outputs,
    uncut_columns,
)
from tacit.answer.disclosure import bounds_lines, bounds_record
from tacit.answer.moments import NoisyColumn
from tacit.answer.text import advice_of, is_picked, joined, question_notes, reading_of
from tacit.answer.totals import ADDED_UP, HELD, LEFT_ALONE, Level, agreeing_columns, fitted_levels
from tacit.plan import Plan, PlannedOutput
from tacit.query import Aside, Compound, PostProcessing, apply_postprocessing, grouping_name
from tacit.release import NoisyTable

Released = Sequence[tuple[Plan, NoisyTable]]


@dataclass(frozen=True)
class AsideRelease:
    """The releases of an aside of a SELECT: of a mode for each level, otherwise one."""

    aside: Aside
    parts: Released


@dataclass(frozen=True)
class BranchRelease:
    """The releases of one SELECT: the plan and the noisy table of each of its levels, or one of all that add up."""

    keys: tuple[str, ...]  # of all levels
    levels: tuple[tuple[str, ...], ...]
    plans: tuple[Plan, ...]
    noisy: tuple[NoisyTable, ...]
    after: PostProcessing
    is_plain: bool
    adds_up: bool  # its levels are released together, and are of the same rows
    asides: tuple[AsideRelease, ...] = ()


def make_compound_answer(
    compound: Compound,
    released: Sequence[BranchRelease],
    facts: AnswerInfo,
    *,
    consistent: bool = False,
) -> Answer:
    """Return the rows of all branches, after the common post-processing."""
    views = [_branch_view(each, facts.confidence, consistent=consistent) for each in released]
    view = views[0] if len(views) == 1 else _union(compound, views)
    notes = [note for each in released for note in _notes(each, facts.confidence, alone=len(released) == 1)]
    notes += [note for each in views for note in each.notes]
    parts = [both for each in released for both in (*_both(each), *_beside(each))]
    bounds = [bounds_record(*both, facts.confidence) for both in parts]
    plans = [plan for plan, _ in parts]
    picked = any(is_picked(plan, each.after) for each in released for plan in each.plans)
    picked = picked or (len(views) > 1 and compound.after.picks_by_noise(list(view.kinds)))
    levels = tuple(dict.fromkeys(level for each in views for level in each.lower_levels))
    read = replace(view, lower_levels=levels)
    stated = replace(
        facts,
        notes=(*dict.fromkeys(notes), *((CONSISTENT,) if consistent else ()), *facts.notes),
        reading=reading_of(list(zip(plans, bounds, strict=True)), read, facts.confidence, picked=picked),
        advice=joined([*advice_of(plans, view), facts.advice]),
        bounds={"parts": bounds} if any(bounds) else {},
    )
    first = released[0]
    columns = tuple(name for name, _ in compound.columns) or tuple(each.name for each in first.after.shown)
    columns = columns or (*first.keys, *(output.name for output in first.plans[0].outputs))
    return answer_of(view, columns, stated)


def _both(branch: BranchRelease) -> list[tuple[Plan, NoisyTable]]:
    return list(zip(branch.plans, branch.noisy, strict=True))


def _beside(branch: BranchRelease) -> list[tuple[Plan, NoisyTable]]:
    return [both for each in branch.asides for both in each.parts]


def _branch_view(branch: BranchRelease, confidence: Fraction, *, consistent: bool) -> View:
    """Return the rows of one SELECT: those of all its levels, after its post-processing."""
    both = _both(branch)
    fitted: dict[Fraction, list[Level]] = {}
    places = [tuple(sorted(map(branch.keys.index, level))) for level in branch.levels]
    if branch.adds_up:
        both = [(each.plan, each.noisy) for each in fitted_levels(*both[0], places, confidence)]

    def of_levels(level: Fraction) -> list[list[NoisyColumn]]:
        if branch.adds_up:
            if level not in fitted:
                fitted[level] = fitted_levels(branch.plans[0], branch.noisy[0], places, level)
            found = agreeing_columns(fitted[level], places, level)
        else:
            found = [uncut_columns(plan, noisy, level) for plan, noisy in both]
        found = [cut_to_possible(plan, each) for (plan, _), each in zip(both, found, strict=True)]
        if not consistent:
            return found
        return [made_consistent(plan, each) for (plan, _), each in zip(both, found, strict=True)]

    @cache
    def columns_at(level: Fraction) -> list[NoisyColumn]:
        rows = sum(len(noisy.keys) for _, noisy in both)
        given = [_repeated(column, rows) for column, _ in _aside_numbers(branch, level)]
        found = [_order_key(_joined_columns(columns), order) for columns in zip(*of_levels(level), strict=True)]
        return [*found, *given]

    each_level = [
        released_view(plan, noisy, columns, confidence)
        for (plan, noisy), columns in zip(both, of_levels(confidence), strict=True)
    ]
    stacked = _with_asides(branch, both, _stacked(branch, each_level), confidence)
    order = range(len(stacked.rows)) if branch.is_plain else _totals_first(stacked, branch.keys)
    released = stacked if branch.is_plain else replace(stacked, rows=[stacked.rows[at] for at in order])
    outputs = [output.name for output in branch.plans[0].outputs]
    outputs += [column.name for column, _ in _aside_numbers(branch, confidence)]
    if branch.after.shown:
        parts = parts_of_outputs(branch.plans[0])
        view = computed_view(outputs, branch.after, released, columns_at, confidence, parts)
    else:
        kept = apply_postprocessing(released.rows, branch.after)
        view = replace(released, rows=kept, rolled=rolled_up(kept, {key: key for key in branch.keys}))
    if branch.is_plain:
        return view
    held = [HELD] if branch.plans[0].public_totals else []
    return replace(view, notes=(*view.notes, ADDED_UP if branch.adds_up else LEFT_ALONE, *held))


def _aside_numbers(branch: BranchRelease, confidence: Fraction) -> list[tuple[NoisyColumn, tuple[PlannedOutput, Plan]]]:
    """Return the numbers that SELECTs in brackets give, under the names of their columns, each with its output."""
    found = []
    for each in branch.asides:
        for plan, noisy in () if each.aside.is_mode else each.parts:
            columns = {column.name: column for column in noisy_columns(plan, noisy, confidence)}
            outputs = {output.name: output for output in plan.outputs}
            found += [(replace(columns[own], name=name), (outputs[own], plan)) for name, own in each.aside.columns]
    return found


def _repeated(column: NoisyColumn, rows: int) -> NoisyColumn:
    return NoisyColumn(column.name, column.values * rows, column.low * rows, column.high * rows)


def _with_asides(branch: BranchRelease, both: Released, view: View, confidence: Fraction) -> View:
    """Return rows with the columns that asides give them."""
    if not branch.asides:
        return view
    added: dict[str, list[Any]] = {}
    types, kinds = dict(view.types), dict(view.kinds)
    for each in branch.asides:
        if each.aside.is_mode:
            name = each.aside.columns[0][0]
            types[name] = each.parts[0][0].keys[-1].type
            added[name] = [
                value
                for (_, level), part in zip(both, each.parts, strict=True)
                for value in _modes(level, *part, confidence)
            ]
    for column, (output, plan) in _aside_numbers(branch, confidence):
        kinds[column.name] = output.kind
        for end, values in (("", column.values), ("_low", column.low), ("_high", column.high)):
            types[column.name + end] = column_type(output, plan)
            added[column.name + end] = [values[0]] * len(view.rows)
    rows = [dict(row) | {name: values[at] for name, values in added.items()} for at, row in enumerate(view.rows)]
    return replace(view, rows=rows, types=types, kinds=kinds)


def _modes(level: NoisyTable, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> list[Any]:
    """Return for each group of a level the value with the largest noisy count in it; None if none is shown."""
    (counts,) = uncut_columns(plan, noisy, confidence)
    best: dict[Any, tuple[Any, Any]] = {}
    for (*group, value), count in zip(noisy.keys, counts.values, strict=True):
        known = best.get(tuple(group))
        if known is None or count > known[0]:
            best[tuple(group)] = count, value
    return [best.get(tuple(key), (None, None))[1] for key in level.keys]


def _joined_columns(columns: Sequence[NoisyColumn]) -> NoisyColumn:
    values, low, high = (
        tuple(each for column in columns for each in getattr(column, end)) for end in ("values", "low", "high")
    )
    return NoisyColumn(columns[0].name, values, low, high)


def _stacked(branch: BranchRelease, levels: Sequence[View]) -> View:
    """Return the rows of all levels, NULL for a key that is rolled up, with a GROUPING column for each key."""
    if branch.is_plain:
        return levels[0]
    lower = frozenset.intersection(*(view.lower for view in levels))
    types: dict[str, str] = {}
    for view in levels:
        types |= view.types
    types |= {grouping_name(key): "int" for key in branch.keys}
    rows: list[dict[str, Any]] = []
    for level, view in zip(branch.levels, levels, strict=True):
        missing: dict[str, Any] = {key: None for key in branch.keys if key not in level}
        missing |= {grouping_name(key): int(key not in level) for key in branch.keys}
        rows += [dict(row) | missing for row in view.rows]
    return View(
        rows,
        types,
        levels[0].kinds,
        lower,
        shown=(*branch.keys, *levels[0].kinds),
        others=tuple(dict.fromkeys(each for view in levels for each in view.others)),
    )


def _totals_first(view: View, keys: Sequence[str]) -> list[int]:
    """Return the places of rows with each total before the groups inside it, and groups in their own order.

    The group of all that are not shown is the last one.
    """
    rows = view.rows
    ranks: list[dict[Any, int]] = [{} for _ in keys]
    for row in rows:
        for key, rank in zip(keys, ranks, strict=True):
            if not row[grouping_name(key)]:
                rank.setdefault(row[key], len(rank) + 1)

    def rank_of(row: Mapping[str, Any], key: str, rank: Mapping[Any, int]) -> int:
        if row[grouping_name(key)]:
            return 0
        return len(rows) + 1 if row[key] is None and key in view.others else rank[row[key]]

    def order(at: int) -> list[int]:
        return [rank_of(rows[at], key, rank) for key, rank in zip(keys, ranks, strict=True)]

    return sorted(range(len(rows)), key=order)


def _order_key(column: NoisyColumn, order: Sequence[int]) -> NoisyColumn:
    values, low, high = (tuple([ends[at] for at in order]) for ends in (column.values, column.low, column.high))
    return NoisyColumn(column.name, values, low, high)


def _union(compound: Compound, views: Sequence[View]) -> View:
    """Return the rows of all branches, by the names of the first one's columns."""
    wanted = dict(compound.columns)
    noisy = [
        name
        for at, name in enumerate(wanted)
        if any(view.shown[at] in view.kinds for view in views) and wanted[name] in ("int", "decimal", "float")
    ]
    rows: list[dict[str, Any]] = []
    for view in views:
        own = dict(zip(wanted, view.shown, strict=True))
        for row in view.rows:
            found: dict[str, Any] = {}
            for name, its_name in own.items():
                found[name] = row[its_name]
                if name in noisy:
                    ends = ("_low", "_high") if its_name in view.kinds else ("", "")
                    found |= {f"{name}_low": row[its_name + ends[0]], f"{name}_high": row[its_name + ends[1]]}
            rows.append(found)
    types: dict[str, str] = dict(wanted)
    types |= {f"{name}{end}": wanted[name] for name in noisy for end in ("_low", "_high")}
    kinds = {name: _kind(at, views) for at, name in enumerate(wanted) if name in noisy}
    kept = apply_postprocessing(rows, compound.after)
    columns = {name: [row[name] for row in kept] for name in types}
    return View(AnswerRows(columns), types, kinds, frozenset(), shown=tuple(wanted))


def _kind(at: int, views: Sequence[View]) -> str:
    kinds = {view.kinds[view.shown[at]] for view in views if view.shown[at] in view.kinds}
    return kinds.pop() if len(kinds) == 1 else "computed"


def _notes(branch: BranchRelease, confidence: Fraction, *, alone: bool) -> list[str]:
    """Return the facts about each level; a fact about all of them once."""
    found: list[tuple[str, list[str]]] = []
    for level, (plan, noisy) in zip(branch.levels, _both(branch), strict=not branch.adds_up):
        lines = [*bounds_lines(plan, bounds_record(plan, noisy, confidence)), *question_notes(plan, branch.after)]
        found.append((f"By {', '.join(level)}" if level else "In all", lines))
    for each in branch.asides:
        label = ", ".join(name for name, _ in each.aside.columns)
        for plan, noisy in each.parts:
            lines = [*bounds_lines(plan, bounds_record(plan, noisy, confidence)), *question_notes(plan, plan.after)]
            found.append((label, lines))
    common = [line for line in found[0][1] if all(line in lines for _, lines in found)]
    own = [
        line if branch.is_plain and alone and not branch.asides else f"{label}: {line}"
        for label, lines in found
        for line in lines
        if line not in common
    ]
    return [*own, *common]
