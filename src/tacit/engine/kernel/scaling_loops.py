"""The kernel's loops for vectors: gather each unit's cells, scale them into their caps, add up.

The integers are those of docs/proofs/scaling.md.
Whole numbers of 64 bits only. What would not fit is cut to CELL_MOST before it is multiplied; a unit with more than
CELLS_AT_ONCE cells ends the loops, and another path takes over. No row is sorted: a table with one word for each key
says which cell of the unit at hand a row belongs to, so the time is linear in the rows, whoever has them. Where bounds
are given too, rows and groups are dropped first, by the rule of `loops`.

A cell is a column of words: its rows, its key, and counted and total of each limb, as in the sums of `loops`. The cells
of some units are gathered first, and then computed together, word by word.
"""

from math import sqrt
from typing import Any, NamedTuple

import numba
import numpy as np

from tacit.engine.kernel.coding_loops import mix
from tacit.engine.kernel.loops import NULL_WORD, Rule, add_first_rows, by_unit, hand_on, smallest, split

# As in tacit.plan: the loops are compiled with what they name.
WEIGHT_BITS = 24
ONE = 1 << WEIGHT_BITS
CELL_MOST = 1 << 38
BINS = 64
# Squares have at most 40 binary digits, so that those of this many cells add up within 64 bits.
CELLS_AT_ONCE = 1 << 22
ROOT_BITS = 20
# So many cells are gathered before they are computed: they stay in cache.
BATCH_CELLS = 1 << 10
LIMB_BITS = 31
LIMB = (1 << LIMB_BITS) - 1

# What a vector has for each cell. CENTRED is of values of one limb, WIDE of two.
ROWS, UNITS, COUNTED, MISSING, CENTRED, WIDE = 0, 1, 2, 3, 4, 5
# How kept and cut are added up.
NO_TOTALS, ABSOLUTE, SIGNED = 0, 1, 2
# What becomes of a unit: it is added after scaling; as it is, with totals of what was dropped; or it is put into bins.
SCALED, DROPPED, PROFILED = 0, 1, 2


class Vectors(NamedTuple):
    """What is computed of each unit; one number for each vector, as in `tacit.plan.Vector`."""

    task: Any  # SCALED, DROPPED or PROFILED
    kind: Any
    at: Any  # the word of a cell that counts the rows where the vector's column is not NULL
    centre: Any  # (vector, 2): the centre's high and low limb; for CENTRED, all of it is the low one
    shift: Any
    norm: Any
    cap: Any
    joint: Any  # the first of the vectors that have one weight; if PROFILED, that have the same numbers
    totals: Any
    tail: Any  # in fine steps
    tail_shift: Any


class Result(NamedTuple):
    """The output of the loops."""

    sums: Any  # (key, sum) int64: units and each vector if SCALED; if DROPPED, the sums of `loops`
    kept: Any  # the words of kept rows that quantiles are drawn from, as in `loops`
    count: Any
    totals: Any  # (vector, 2) int64: kept and cut
    people: Any  # (vector, bin) int64, if PROFILED


class Room(NamedTuple):
    """Where units are worked on."""

    cell_of: Any  # (key,) int64: the last cell of each key, counted from the first cell there ever was
    base: Any  # (1,) int64: the first cell of this batch, counted so
    cells: Any  # (word, cell) int64
    ends: Any  # (unit,) int64: where each unit's cells end
    is_cut: Any  # (unit,) bool: whether any of its rows were dropped
    before: Any  # (vector, unit) int64: the total of all cells of such a unit
    fine: Any  # (vector, cell) int64
    weight: Any  # (vector, unit) int64
    orders: Any  # (row,) uint64
    spare: Any  # (row,) int32
    is_kept: Any  # (cell,) bool
    starts: Any  # (cell + 1,) int64


@numba.njit(cache=True, nogil=True)
def sum_vectors(
    rows: Any, skip: Any, bits: Any, rule: Rule, vectors: Vectors, cell_of: Any, base: Any, out: Result
) -> Any:
    """Add up whole units; return whether it was done: not where a unit has too many cells.

    `cell_of` and `base` are kept from call to call; they begin as -1 for each key, and 0.
    """
    parted, starts = split(rows, skip, bits)
    most = 1
    for part in range(1 << bits):
        most = max(most, starts[part + 1] - starts[part])
    cells = min(most, len(cell_of), CELLS_AT_ONCE)  # of one unit
    drops = rule.rows_most < most or rule.groups_most < cells
    count = len(vectors.kind)
    room = Room(
        cell_of,
        base,
        np.empty((2 + 2 * (rows.shape[1] - rule.first), BATCH_CELLS + cells), np.int64),
        np.empty(BATCH_CELLS, np.int64),
        np.zeros(BATCH_CELLS, np.bool_),
        np.empty((count, BATCH_CELLS), np.int64),
        np.empty((count, BATCH_CELLS + cells), np.int64),
        np.empty((count, BATCH_CELLS), np.int64),
        np.empty(most if drops else 0, np.uint64),
        np.empty(most if drops else 0, np.int32),
        np.empty(cells if drops else 0, np.bool_),
        np.empty(cells + 1 if drops else 0, np.int64),
    )
    for part in range(1 << bits):
        some = parted[starts[part] : starts[part + 1]]
        places, ends, units = by_unit(some, rule.first)
        unit = 0
        while unit < units:
            begin = unit
            unit = _gather(some, rule, places, ends, unit, units, vectors, room, out)
            if unit < 0:
                return False
            _add_units(vectors, room, unit - begin, out)
    return True


# --- cells ---


@numba.njit
def _gather(
    rows: Any, rule: Rule, places: Any, ends: Any, unit: Any, units: Any, vectors: Vectors, room: Room, out: Result
) -> Any:
    """Add up the rows of units by key, from `unit` on, until the batch is full; return the next unit.

    Return -1 if a unit has too many cells.
    """
    base, cells, first = room.base[0], room.cells, rule.first
    count, held, begin = 0, 0, 0 if unit == 0 else ends[unit - 1]
    while unit < units and count < BATCH_CELLS:
        start, end = count, ends[unit]
        for place in range(begin, end):
            row = places[place]
            key = np.int64(rows[row, 2])
            cell = room.cell_of[key] - base
            if cell < start:
                if count - start == CELLS_AT_ONCE:
                    return -1
                cell = count
                count += 1
                room.cell_of[key] = base + cell
                cells[0, cell] = 0
                cells[1, cell] = key
                for word in range(2, len(cells)):
                    cells[word, cell] = 0
            cells[0, cell] += 1
            for column in range(rows.shape[1] - first):
                value = rows[row, first + column]
                if value != NULL_WORD:
                    cells[2 + 2 * column, cell] += 1
                    cells[3 + 2 * column, cell] += np.int64(value)
        room.is_cut[held] = _exceeds(rule, cells, start, count, end - begin)
        if room.is_cut[held]:
            for vector in range(len(vectors.kind)):
                _fill(vectors, vector, room, start, count)
                room.before[vector, held] = _total(room.fine[vector], start, count, vectors.totals[vector])
            left = _drop(rows, rule, places[begin:end], room, base, start, count, out)
            base += count - left  # the cells of this unit are not the next one's
            count = left
        elif len(rule.drawn):
            for place in range(begin, end):
                hand_on(rows, rule, places[place], 1, out)
        room.ends[held] = count
        held += 1
        unit += 1
        begin = end
    room.base[0] = base + count
    return unit


@numba.njit
def _exceeds(rule: Rule, cells: Any, start: Any, end: Any, rows: Any) -> Any:
    """Whether a unit has more groups, or more rows in one, than it may have."""
    if end - start > rule.groups_most:
        return True
    if rows > rule.rows_most:
        for cell in range(start, end):
            if cells[0, cell] > rule.rows_most:
                return True
    return False


@numba.njit
def _drop(rows: Any, rule: Rule, places: Any, room: Room, base: Any, first: Any, end: Any, out: Result) -> Any:
    """Leave in a unit's cells the groups and rows that come first, as `loops` does; return where its cells end."""
    cells = room.cells
    _keep_groups(rows, rule, places, room, first, end)
    room.starts[0] = 0
    for cell in range(first, end):
        room.starts[cell - first + 1] = room.starts[cell - first] + cells[0, cell]
    for place in range(len(places)):  # cell after cell; starts become where the cells end
        cell = room.cell_of[np.int64(rows[places[place], 2])] - base - first
        room.spare[room.starts[cell]] = places[place]
        room.starts[cell] += 1
    left, begin = first, np.int64(0)
    for cell in range(first, end):
        stop = room.starts[cell - first]
        if room.is_kept[cell - first]:
            is_cut = stop - begin > rule.rows_most
            cells[0, left] = rule.rows_most if is_cut else stop - begin
            cells[1, left] = cells[1, cell]
            for word in range(2, len(cells)):
                cells[word, left] = 0 if is_cut else cells[word, cell]
            if is_cut:
                add_first_rows(rows, rule, room.spare[begin:stop], room.orders, cells[:, left], out)
            elif len(rule.drawn):
                for place in range(begin, stop):
                    hand_on(rows, rule, room.spare[place], 1, out)
            left += 1
        begin = stop
    return left


@numba.njit
def _keep_groups(rows: Any, rule: Rule, places: Any, room: Room, first: Any, end: Any) -> None:
    """Mark the groups that come first in the order of (hash, key)."""
    count, keys = end - first, room.cells[1, first:end]
    if count <= rule.groups_most:
        room.is_kept[:count] = True
        return
    unit = np.uint64(rows[places[0], 0]) | (np.uint64(rows[places[0], 1]) << np.uint64(32))
    for cell in range(count):
        room.orders[cell] = mix(unit, rule.key_hash[keys[cell]])
    last = smallest(room.orders, 0, count, rule.groups_most)
    tied = rule.groups_most
    for cell in range(count):
        room.is_kept[cell] = mix(unit, rule.key_hash[keys[cell]]) < last
        if room.is_kept[cell]:
            tied -= 1
    while tied > 0:  # nearly always once
        best = np.int64(-1)
        for cell in range(count):
            is_tied = not room.is_kept[cell] and mix(unit, rule.key_hash[keys[cell]]) == last
            if is_tied and (best < 0 or rule.key_rank[keys[cell]] < rule.key_rank[keys[best]]):
                best = np.int64(cell)
        room.is_kept[best] = True
        tied -= 1


# --- vectors ---


@numba.njit
def _fill(vectors: Vectors, vector: Any, room: Room, begin: Any, end: Any) -> None:
    """Compute a vector's numbers in fine steps, towards 0, within CELL_MOST."""
    kind, at, shift = vectors.kind[vector], vectors.at[vector], vectors.shift[vector]
    cells, fine = room.cells, room.fine[vector]
    high, low = vectors.centre[vector, 0], vectors.centre[vector, 1]
    if kind == WIDE:
        for cell in range(begin, end):
            counted = cells[at, cell]
            fine[cell] = _fine_of_limbs(
                cells[at + 1, cell] - high * counted, cells[at + 3, cell] - low * counted, shift
            )
        return
    if kind == ROWS:
        fine[begin:end] = cells[0, begin:end]
    elif kind == UNITS:
        fine[begin:end] = 1
    elif kind == COUNTED:
        fine[begin:end] = cells[at, begin:end]
    elif kind == MISSING:
        for cell in range(begin, end):
            fine[cell] = cells[0, cell] - cells[at, cell]
    else:
        for cell in range(begin, end):
            fine[cell] = cells[at + 1, cell] - low * cells[at, cell]
    if shift < 0:
        for cell in range(begin, end):
            size = min(abs(fine[cell]) >> -shift, CELL_MOST)
            fine[cell] = size if fine[cell] >= 0 else -size
    else:
        most = CELL_MOST >> shift
        for cell in range(begin, end):
            size = abs(fine[cell]) << shift if abs(fine[cell]) <= most else np.int64(CELL_MOST)
            fine[cell] = size if fine[cell] >= 0 else -size


@numba.njit
def _fine_of_limbs(high: Any, low: Any, shift: Any) -> Any:
    """Return (high · 2^LIMB_BITS + low) in fine steps; what is cut is cut by the high limb first."""
    high += low >> LIMB_BITS
    low &= LIMB
    is_negative = high < 0
    if is_negative:  # its size, in limbs again
        high, low = (-high, np.int64(0)) if low == 0 else (-high - 1, LIMB + 1 - low)
    if shift <= -LIMB_BITS:
        size = min(high >> (-shift - LIMB_BITS), CELL_MOST)
    elif high > CELL_MOST >> min(LIMB_BITS + shift, 62):
        size = np.int64(CELL_MOST)
    elif shift < 0:
        size = min((high << (LIMB_BITS + shift)) + (low >> -shift), CELL_MOST)
    else:
        low += high << LIMB_BITS
        size = low << shift if low <= CELL_MOST >> shift else np.int64(CELL_MOST)
    return -size if is_negative else size


@numba.njit
def _length(fine: Any, begin: Any, end: Any, norm: Any) -> Any:
    """Return the L1 norm, or a whole number at or just above the L2 norm."""
    if norm == 1:
        return _total(fine, begin, end, ABSOLUTE)
    most = np.int64(0)
    for cell in range(begin, end):
        most = max(most, abs(fine[cell]))
    coarse = 0
    while most >> coarse >= 1 << ROOT_BITS:
        coarse += 1
    up, squares = (1 << coarse) - 1, np.int64(0)
    for cell in range(begin, end):
        size = (abs(fine[cell]) + up) >> coarse
        squares += size * size
    return _root_above(squares) << coarse


@numba.njit
def _root_above(square: Any) -> Any:
    """Return the least whole number whose square is at least this one; the float is where the search begins."""
    root = np.int64(sqrt(square))
    while root * root < square:
        root += 1
    while root > 0 and (root - 1) * (root - 1) >= square:
        root -= 1
    return root


@numba.njit
def _total(fine: Any, begin: Any, end: Any, kind: Any) -> Any:
    added = np.int64(0)
    if kind == ABSOLUTE:
        for cell in range(begin, end):
            added += abs(fine[cell])
    else:
        for cell in range(begin, end):
            added += fine[cell]
    return added


@numba.njit
def _add_units(vectors: Vectors, room: Room, units: Any, out: Result) -> None:
    """Compute the vectors of a batch of units, and add them to what they belong to."""
    count = room.ends[units - 1]
    for vector in range(len(vectors.kind)):
        if vectors.task != PROFILED or vectors.joint[vector] == vector:
            _fill(vectors, vector, room, 0, count)
    if vectors.task == PROFILED:
        _put_into_bins(vectors, room, units, out)
        return
    if vectors.task == SCALED:
        _scale_units(vectors, room, units)
    for vector in range(len(vectors.kind)):
        if vectors.totals[vector] != NO_TOTALS:
            _add_totals(vectors, vector, room, units, out.totals[vector])
    _add_cells(vectors.task, room.cells, room.fine, count, out.sums)


@numba.njit
def _add_cells(task: Any, cells: Any, fine: Any, count: Any, sums: Any) -> None:
    """Add cells to the sums of their keys."""
    for cell in range(count):
        key = cells[1, cell]
        if task == SCALED:
            sums[key, 0] += 1
            for vector in range(len(fine)):
                sums[key, 1 + vector] += fine[vector, cell]
        else:
            sums[key, 0] += cells[0, cell]
            sums[key, 1] += 1
            for word in range(2, len(cells)):
                sums[key, word] += cells[word, cell]


@numba.njit
def _scale_units(vectors: Vectors, room: Room, units: Any) -> None:
    """Scale units by the largest weights for which none of their vectors is longer than its cap."""
    room.weight[:, :units] = ONE
    for vector in range(len(vectors.kind)):
        weight = room.weight[vectors.joint[vector]]
        _weigh(room.fine[vector], room.ends, units, vectors.norm[vector], vectors.cap[vector], weight)
    for vector in range(len(vectors.kind)):
        if vectors.totals[vector] != NO_TOTALS:
            _total_before(vectors, vector, room, units)
        _scale(room.fine[vector], room.ends, units, room.weight[vectors.joint[vector]])


@numba.njit
def _weigh(fine: Any, ends: Any, units: Any, norm: Any, cap: Any, weight: Any) -> None:
    """Lower the weights of units to the largest for which a vector is no longer than its cap."""
    begin = np.int64(0)
    for unit in range(units):
        length = _length(fine, begin, ends[unit], norm)
        if length > cap:
            weight[unit] = min(weight[unit], (cap << WEIGHT_BITS) // length)
        begin = ends[unit]


@numba.njit
def _scale(fine: Any, ends: Any, units: Any, weight: Any) -> None:
    begin = np.int64(0)
    for unit in range(units):
        share = weight[unit]
        if share < ONE:
            for cell in range(begin, ends[unit]):
                size = abs(fine[cell]) * share >> WEIGHT_BITS
                fine[cell] = size if fine[cell] >= 0 else -size
        begin = ends[unit]


@numba.njit
def _total_before(vectors: Vectors, vector: Any, room: Room, units: Any) -> None:
    """Add up what units have before they are scaled; of those that were cut this is known."""
    fine, kind, begin = room.fine[vector], vectors.totals[vector], np.int64(0)
    for unit in range(units):
        if not room.is_cut[unit]:
            room.before[vector, unit] = _total(fine, begin, room.ends[unit], kind)
        begin = room.ends[unit]


@numba.njit
def _add_totals(vectors: Vectors, vector: Any, room: Room, units: Any, totals: Any) -> None:
    """Add what units have left and what was taken from them, of each unit together never more than the tail."""
    tail, shift = vectors.tail[vector], vectors.tail_shift[vector]
    fine, kind, begin = room.fine[vector], vectors.totals[vector], np.int64(0)
    for unit in range(units):
        added = _total(fine, begin, room.ends[unit], kind)
        before = room.before[vector, unit] if vectors.task == SCALED or room.is_cut[unit] else added
        kept = max(-tail, min(added, tail))
        rest = tail - abs(kept)
        # rows that are dropped may have cancelled others: what is added up without signs is still never negative
        least = 0 if kind == ABSOLUTE else -rest
        cut = max(least, min(before - added, rest))
        totals[0] += abs(kept) >> shift if kept >= 0 else -(abs(kept) >> shift)
        totals[1] += abs(cut) >> shift if cut >= 0 else -(abs(cut) >> shift)
        begin = room.ends[unit]


@numba.njit
def _put_into_bins(vectors: Vectors, room: Room, units: Any, out: Result) -> None:
    """Count units in the one bin of each profile that their vector's length is in."""
    for vector in range(len(vectors.kind)):
        fine, norm, begin = room.fine[vectors.joint[vector]], vectors.norm[vector], np.int64(0)
        for unit in range(units):
            length = _length(fine, begin, room.ends[unit], norm)
            begin = room.ends[unit]
            if length > 0:
                place = 0
                while length >> (place + 1) > 0:
                    place += 1
                out.people[vector, min(place, BINS - 1)] += 1
