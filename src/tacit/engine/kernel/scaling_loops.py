"""The kernel's loops for vectors: gather each unit's cells, scale them into their caps, add up
(docs/proofs/scaling.md).

Whole numbers of 64 bits only: a number that would not fit is cut to CELL_MOST before it is multiplied, and a unit with
more than CELLS_AT_ONCE cells ends the loops. No row is sorted: a table with one word for each key finds a row's cell,
so the time is linear in the rows. A function is given only the arrays that it uses: passing one costs numba time to
compile. A cell is a column of words: its rows, its key, and counted and total of each limb, as in the sums of `loops`.
The cells of some units are gathered first, and then computed together, word by word.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from tacit.engine.kernel.coding_loops import loop, mix, part_of_loops
from tacit.engine.kernel.loops import NULL_WORD, BoundingRule, by_unit, smallest, split

# As in tacit.plan: the loops are compiled with what they name.
WEIGHT_BITS = 24
ONE = 1 << WEIGHT_BITS
CELL_MOST = 1 << 38
BINS = 128
# Squares have at most 40 binary digits, so that those of this many cells add up within 64 bits.
CELLS_AT_ONCE = 1 << 22
ROOT_BITS = 20
# So many cells are gathered before they are computed: they stay in cache.
BATCH_CELLS = 1 << 10
LIMB_BITS = 31
LIMB = (1 << LIMB_BITS) - 1

# What a vector has for each cell. CENTRED is of values of one limb, WIDE of two.
ROWS, UNITS, COUNTED, CENTRED, WIDE = 0, 1, 2, 3, 4
# How kept and cut are added up.
NO_TOTALS, ABSOLUTE, SIGNED = 0, 1, 2
# What becomes of a unit: it is added after scaling, or it is put into bins.
SCALED, PROFILED = 0, 1
# The lines of an array with a column for each vector, as in `tacit.plan.Vector`. AT is the word of a cell that counts
# the rows where the vector's column is not NULL. HIGH and LOW are the limbs of the centre; for CENTRED, all of it is
# LOW. JOINT is the first of the vectors that have one weight; if PROFILED, that have the same numbers. TAIL is in fine
# steps.
KIND, AT, HIGH, LOW, SHIFT, NORM, CAP, JOINT, TOTALS, TAIL, TAIL_SHIFT = range(11)


class Result(NamedTuple):
    """The output of the loops."""

    sums: Any  # (key, sum) int64, if SCALED: units and each vector
    totals: Any  # (vector, 2) int64: kept and cut
    people: Any  # (vector, bin) int64, if PROFILED


class CellRoom(NamedTuple):
    """Where the cells of units are gathered."""

    cell_of: Any  # (key,) int64: the last cell of each key, counted from the first cell there ever was
    base: Any  # (1,) int64: the first cell of this batch, counted so
    cells: Any  # (word, cell) int64
    ends: Any  # (unit,) int64: where each unit's cells end
    orders: Any  # (cell,) uint64


@loop
def sum_vectors(
    rows: Any, skip: Any, bits: Any, rule: BoundingRule, task: Any, vectors: Any, cell_of: Any, base: Any, out: Result
) -> Any:
    """Add up whole units; return False if one has too many cells. `cell_of` and `base` begin as -1 and 0."""
    parted, starts = split(rows, skip, bits)
    most = np.int64(1)
    for part in range(1 << bits):
        most = max(most, starts[part + 1] - starts[part])
    cells: Any = min(most, len(cell_of), CELLS_AT_ONCE)  # of one unit
    count = vectors.shape[1]
    room = CellRoom(
        cell_of,
        base,
        np.empty((2 + 2 * (rows.shape[1] - rule.first), BATCH_CELLS + cells), np.int64),
        np.empty(BATCH_CELLS, np.int64),
        np.empty(cells if rule.groups_most < cells else 0, np.uint64),
    )
    fine, weight = np.empty((count, BATCH_CELLS + cells), np.int64), np.empty((count, BATCH_CELLS), np.int64)
    for part in range(1 << bits):
        some = parted[starts[part] : starts[part + 1]]
        places, ends, units = by_unit(some, rule.first)
        unit = np.int64(0)
        while unit < units:
            begin = unit
            unit = _gather(some, rule, places, ends, unit, units, room)
            if unit < 0:
                return False
            for vector in range(count):
                if task == SCALED or vectors[JOINT, vector] == vector:
                    _fill(vectors, vector, room.cells, fine[vector], np.int64(0), room.ends[unit - begin - 1])
            if task == SCALED:
                _scale_units(vectors, fine, room.ends, unit - begin, weight, out.totals)
                _add_cells(room.cells, fine, room.ends[unit - begin - 1], out.sums)
            else:
                _put_into_bins(vectors, fine, room.ends, unit - begin, out.people)
    return True


# --- cells ---


@part_of_loops
def _gather(rows: Any, rule: BoundingRule, places: Any, ends: Any, unit: Any, units: Any, room: CellRoom) -> Any:
    """Add up the rows of units by key until the batch is full; return the next unit, -1 if one has too many cells."""
    base, cells, first = room.base[0], room.cells, rule.first
    count, held = np.int64(0), np.int64(0)
    begin = np.int64(0 if unit == 0 else ends[unit - 1])
    while unit < units and count < BATCH_CELLS:
        start, end = count, np.int64(ends[unit])
        for place in range(begin, end):
            row = places[place]
            key = np.int64(rows[row, 2])
            cell = room.cell_of[key] - base
            if cell < start:
                if count - start == CELLS_AT_ONCE:
                    return np.int64(-1)
                cell = count
                count += 1
                room.cell_of[key] = base + cell
                cells[0, cell] = 0
                cells[1, cell] = key
                for word in range(2, len(cells)):
                    cells[word, cell] = 0
            _add_to_cell(rows, row, first, cells, cell)
        if count - start > rule.groups_most:
            left = _drop(rows, rule, places[begin], room, start, count)
            base += count - left  # the cells of this unit are not the next one's
            count = left
        room.ends[held] = count
        held += 1
        unit += 1
        begin = end
    room.base[0] = base + count
    return unit


@part_of_loops
def _add_to_cell(rows: Any, row: Any, first: Any, cells: Any, cell: Any) -> None:
    cells[0, cell] += 1
    for column in range(rows.shape[1] - first):
        value = rows[row, first + column]
        if value != NULL_WORD:
            cells[2 + 2 * column, cell] += 1
            cells[3 + 2 * column, cell] += np.int64(value)


@part_of_loops
def _drop(rows: Any, rule: BoundingRule, row: Any, room: CellRoom, first: Any, end: Any) -> Any:
    """Leave in a unit's cells the groups that come first, as `loops` does; return where its cells end."""
    cells = room.cells
    unit = np.uint64(rows[row, 0]) | (np.uint64(rows[row, 1]) << np.uint64(32))
    last, tied_rank = _last_group(rule, unit, cells[1, first:end], room.orders)
    left = first
    for cell in range(first, end):
        key = cells[1, cell]
        order = mix(unit, rule.key_hash[key])
        if order < last or (order == last and rule.key_rank[key] <= tied_rank):
            for word in range(len(cells)):
                cells[word, left] = cells[word, cell]
            left += 1
    return left


@part_of_loops
def _last_group(rule: BoundingRule, unit: Any, keys: Any, orders: Any) -> Any:
    """Return the hash and rank of the last of a unit's groups that are kept; keys with one hash differ in rank."""
    for cell in range(len(keys)):
        orders[cell] = mix(unit, rule.key_hash[keys[cell]])
    last = smallest(orders, len(keys), rule.groups_most)
    tied = rule.groups_most
    for cell in range(len(keys)):
        if mix(unit, rule.key_hash[keys[cell]]) < last:
            tied -= 1
    rank = np.int64(-1)
    for _ in range(tied):  # nearly always once
        best = np.int64(-1)
        for cell in range(len(keys)):
            other = rule.key_rank[keys[cell]]
            is_tied = other > rank and mix(unit, rule.key_hash[keys[cell]]) == last
            if is_tied and (best < 0 or other < best):
                best = other
        rank = best
    return last, rank


# --- vectors ---


@part_of_loops
def _fill(vectors: Any, vector: Any, cells: Any, fine: Any, begin: Any, end: Any) -> None:
    """Compute a vector's numbers in fine steps, towards 0, within CELL_MOST."""
    kind, at, shift = vectors[KIND, vector], vectors[AT, vector], vectors[SHIFT, vector]
    high, low = vectors[HIGH, vector], vectors[LOW, vector]
    most = CELL_MOST >> max(shift, 0)
    for cell in range(begin, end):
        if kind == WIDE:
            counted = cells[at, cell]
            fine[cell] = _fine_of_limbs(
                cells[at + 1, cell] - high * counted, cells[at + 3, cell] - low * counted, shift
            )
            continue
        if kind == ROWS:
            steps = cells[0, cell]
        elif kind == UNITS:
            steps = np.int64(1)
        elif kind == COUNTED:
            steps = cells[at, cell]
        else:
            steps = cells[at + 1, cell] - low * cells[at, cell]
        size = abs(steps) >> -shift if shift < 0 else abs(steps)
        size = size << max(shift, 0) if size <= most else np.int64(CELL_MOST)
        fine[cell] = size if steps >= 0 else -size


@part_of_loops
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


@part_of_loops
def _length(fine: Any, begin: Any, end: Any, norm: Any) -> Any:
    """Return the L1 norm, or a whole number at or just above the L2 norm."""
    if norm == 1:
        return _vector_total(fine, begin, end, np.int64(ABSOLUTE))
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


@part_of_loops
def _root_above(square: Any) -> Any:
    """Return the least whole number whose square is at least this one; the float is where the search begins."""
    root = np.int64(sqrt(square))
    while root * root < square:
        root += 1
    while root > 0 and (root - 1) * (root - 1) >= square:
        root -= 1
    return root


@part_of_loops
def _vector_total(fine: Any, begin: Any, end: Any, kind: Any) -> Any:
    added = np.int64(0)
    if kind == ABSOLUTE:
        for cell in range(begin, end):
            added += abs(fine[cell])
    else:
        for cell in range(begin, end):
            added += fine[cell]
    return added


@part_of_loops
def _add_cells(cells: Any, fine: Any, count: Any, sums: Any) -> None:
    for cell in range(count):
        key = cells[1, cell]
        sums[key, 0] += 1
        for vector in range(len(fine)):
            sums[key, 1 + vector] += fine[vector, cell]


@part_of_loops
def _scale_units(vectors: Any, fine: Any, ends: Any, units: Any, weight: Any, totals: Any) -> None:
    """Scale units by the largest weights for which none of their vectors is longer than its cap; add up totals."""
    for vector in range(vectors.shape[1]):
        for unit in range(units):
            weight[vector, unit] = ONE
    for vector in range(vectors.shape[1]):
        joint, cap, begin = vectors[JOINT, vector], vectors[CAP, vector], np.int64(0)
        for unit in range(units):
            length = _length(fine[vector], begin, ends[unit], vectors[NORM, vector])
            if length > cap:
                weight[joint, unit] = min(weight[joint, unit], (cap << WEIGHT_BITS) // length)
            begin = ends[unit]
    for vector in range(vectors.shape[1]):
        begin, kind, own = np.int64(0), vectors[TOTALS, vector], fine[vector]
        for unit in range(units):
            end, share = ends[unit], weight[vectors[JOINT, vector], unit]
            had = _vector_total(own, begin, end, kind) if kind != NO_TOTALS else np.int64(0)
            if share < ONE:
                for cell in range(begin, end):
                    size = abs(own[cell]) * share >> WEIGHT_BITS
                    own[cell] = size if own[cell] >= 0 else -size
            if kind != NO_TOTALS:
                _add_totals(vectors, vector, _vector_total(own, begin, end, kind), had, totals)
            begin = end


@part_of_loops
def _add_totals(vectors: Any, vector: Any, added: Any, before: Any, totals: Any) -> None:
    """Add what a unit has left and what was taken from it, together never more than the tail."""
    tail, shift = vectors[TAIL, vector], vectors[TAIL_SHIFT, vector]
    kept = max(-tail, min(added, tail))
    rest = tail - abs(kept)
    cut = max(-rest, min(before - added, rest))
    totals[vector, 0] += abs(kept) >> shift if kept >= 0 else -(abs(kept) >> shift)
    totals[vector, 1] += abs(cut) >> shift if cut >= 0 else -(abs(cut) >> shift)


@part_of_loops
def _put_into_bins(vectors: Any, fine: Any, ends: Any, units: Any, people: Any) -> None:
    """Count units in the one bin of each profile that their vector's length is in."""
    for vector in range(vectors.shape[1]):
        begin = np.int64(0)
        for unit in range(units):
            length = _length(fine[vectors[JOINT, vector]], begin, ends[unit], vectors[NORM, vector])
            begin = ends[unit]
            if length > 0:
                place = 0
                for below in (length - 1, (length - 1) // 3):
                    while below > 0:
                        place += 1
                        below >>= 1
                people[vector, min(place, BINS - 1)] += 1
