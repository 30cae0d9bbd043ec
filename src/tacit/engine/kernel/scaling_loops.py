"""The kernel's loops for vectors: gather each unit's cells, scale them into their caps, add up.

The integers are those of docs/proofs/scaling.md.
Whole numbers of 64 bits only. What would not fit is cut to CELL_MOST before it is multiplied; a unit with more than
CELLS_AT_ONCE cells ends the loops, and another path takes over. No row is sorted: a table with one word for each key
says which cell of the unit at hand a row belongs to, so the time is linear in the rows, whoever has them. Where bounds
are given too, rows and groups are dropped first, by the rule of `loops`.

A cell is a line of words: its rows, its key, and counted and total of each limb, as in the sums of `loops`.
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
    joint: Any  # the first of the vectors that have one weight
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
    """Where a unit is worked on."""

    cell_of: (
        Any  # (key,) int64: a key's cell among all cells there ever were; those of the unit at hand begin at `base`
    )
    base: Any  # (1,) int64
    cells: Any  # (cell, word) int64
    fine: Any  # (vector, cell) int64
    weight: Any  # (vector,) int64
    before: Any  # (vector,) int64: the total of all of a unit's cells
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
    cells = min(most, len(cell_of), CELLS_AT_ONCE)
    drops = rule.rows_most < most or rule.groups_most < cells
    count = len(vectors.kind)
    room = Room(
        cell_of,
        base,
        np.empty((cells, 2 + 2 * (rows.shape[1] - rule.first)), np.int64),
        np.empty((count, cells), np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(most if drops else 0, np.uint64),
        np.empty(most if drops else 0, np.int32),
        np.empty(cells if drops else 0, np.bool_),
        np.empty(cells + 1 if drops else 0, np.int64),
    )
    for part in range(1 << bits):
        some = parted[starts[part] : starts[part + 1]]
        if len(some) and not _sum_part(some, rule, vectors, room, out):
            return False
    return True


@numba.njit
def _sum_part(rows: Any, rule: Rule, vectors: Vectors, room: Room, out: Result) -> Any:
    places, ends, units = by_unit(rows, rule.first)
    begin = 0
    for unit in range(units):
        end = ends[unit]
        if end - begin == 1:
            _begin_cell(room.cells[0], np.int64(rows[places[begin], 2]))
            _add_to_cell(rows, rule, places[begin], room.cells[0])
            hand_on(rows, rule, places[begin], 1, out)
            count, is_cut = 1, False
        else:
            count = _gather(rows, rule, places[begin:end], room)
            if count < 0:
                return False
            is_cut = _exceeds(rule, room, end - begin, count)
            if is_cut:
                _total_before(vectors, room, count)
                count = _drop(rows, rule, places[begin:end], room, count, out)
            else:
                for place in range(begin, end if len(rule.drawn) else begin):
                    hand_on(rows, rule, places[place], 1, out)
        if vectors.task == PROFILED:
            _put_into_bins(vectors, room, count, out)
        else:
            _add_unit(vectors, room, count, is_cut, out)
        begin = end
    return True


# --- a unit's cells ---


@numba.njit
def _gather(rows: Any, rule: Rule, places: Any, room: Room) -> Any:
    """Add up a unit's rows by key, and return how many cells it has: -1 if too many."""
    base, count = room.base[0], 0
    for place in range(len(places)):
        row = places[place]
        key = np.int64(rows[row, 2])
        cell = room.cell_of[key] - base
        if cell < 0:
            if count == len(room.cells):
                return -1
            cell = count
            room.cell_of[key] = base + cell
            _begin_cell(room.cells[cell], key)
            count += 1
        _add_to_cell(rows, rule, row, room.cells[cell])
    room.base[0] = base + count
    return count


@numba.njit
def _begin_cell(cell: Any, key: Any) -> None:
    cell[0] = 0
    cell[1] = key
    for word in range(2, len(cell)):
        cell[word] = 0


@numba.njit
def _add_to_cell(rows: Any, rule: Rule, row: Any, cell: Any) -> None:
    cell[0] += 1
    for column in range(rows.shape[1] - rule.first):
        value = rows[row, rule.first + column]
        if value != NULL_WORD:
            cell[2 + 2 * column] += 1
            cell[3 + 2 * column] += np.int64(value)


@numba.njit
def _exceeds(rule: Rule, room: Room, rows: Any, count: Any) -> Any:
    """Whether a unit has more groups, or more rows in one, than it may have."""
    if count > rule.groups_most:
        return True
    if rows > rule.rows_most:
        for cell in range(count):
            if room.cells[cell, 0] > rule.rows_most:
                return True
    return False


@numba.njit
def _drop(rows: Any, rule: Rule, places: Any, room: Room, count: Any, out: Result) -> Any:
    """Leave in the cells the groups and rows that come first, as `loops` does; return how many cells are left."""
    _keep_groups(rows, rule, places, room, count)
    base = room.base[0] - count
    room.starts[0] = 0
    for cell in range(count):
        room.starts[cell + 1] = room.starts[cell] + room.cells[cell, 0]
    for place in range(len(places)):  # cell after cell; starts end up as where the cells end
        cell = room.cell_of[np.int64(rows[places[place], 2])] - base
        room.spare[room.starts[cell]] = places[place]
        room.starts[cell] += 1
    left, begin = 0, np.int64(0)
    for cell in range(count):
        end = room.starts[cell]
        if room.is_kept[cell]:
            line = room.cells[left]
            for word in range(len(line)):
                line[word] = room.cells[cell, word]
            if end - begin > rule.rows_most:
                _begin_cell(line, line[1])
                line[0] = rule.rows_most
                add_first_rows(rows, rule, room.spare[begin:end], room.orders, line, out)
            elif len(rule.drawn):
                for place in range(begin, end):
                    hand_on(rows, rule, room.spare[place], 1, out)
            left += 1
        begin = end
    return left


@numba.njit
def _keep_groups(rows: Any, rule: Rule, places: Any, room: Room, count: Any) -> None:
    """Mark the groups that come first in the order of (hash, key)."""
    if count <= rule.groups_most:
        room.is_kept[:count] = True
        return
    unit = np.uint64(rows[places[0], 0]) | (np.uint64(rows[places[0], 1]) << np.uint64(32))
    for cell in range(count):
        room.orders[cell] = mix(unit, rule.key_hash[room.cells[cell, 1]])
    last = smallest(room.orders, 0, count, rule.groups_most)
    tied = rule.groups_most
    for cell in range(count):
        room.is_kept[cell] = mix(unit, rule.key_hash[room.cells[cell, 1]]) < last
        if room.is_kept[cell]:
            tied -= 1
    while tied > 0:  # nearly always once
        best = np.int64(-1)
        for cell in range(count):
            key = room.cells[cell, 1]
            is_tied = not room.is_kept[cell] and mix(unit, rule.key_hash[key]) == last
            if is_tied and (best < 0 or rule.key_rank[key] < rule.key_rank[room.cells[best, 1]]):
                best = np.int64(cell)
        room.is_kept[best] = True
        tied -= 1


# --- vectors ---


@numba.njit
def _fine(vectors: Vectors, vector: Any, cell: Any) -> Any:
    """Return a cell's number in fine steps, towards 0, within CELL_MOST."""
    kind, at, shift = vectors.kind[vector], vectors.at[vector], vectors.shift[vector]
    if kind == ROWS:
        steps = cell[0]
    elif kind == UNITS:
        steps = np.int64(1)
    elif kind == COUNTED:
        steps = cell[at]
    elif kind == MISSING:
        steps = cell[0] - cell[at]
    elif kind == CENTRED:
        steps = cell[at + 1] - vectors.centre[vector, 1] * cell[at]
    else:
        high = cell[at + 1] - vectors.centre[vector, 0] * cell[at]
        return _fine_of_limbs(high, cell[at + 3] - vectors.centre[vector, 1] * cell[at], shift)
    size = abs(steps)
    if shift < 0:
        size = min(size >> -shift, CELL_MOST)
    elif size <= CELL_MOST >> shift:
        size = size << shift
    else:
        size = CELL_MOST
    return size if steps >= 0 else -size


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
def _length(fine: Any, count: Any, norm: Any) -> Any:
    """Return the L1 norm, or a whole number at or just above the L2 norm."""
    if norm == 1:
        added = np.int64(0)
        for cell in range(count):
            added += abs(fine[cell])
        return added
    most = np.int64(0)
    for cell in range(count):
        most = max(most, abs(fine[cell]))
    coarse = 0
    while most >> coarse >= 1 << ROOT_BITS:
        coarse += 1
    up, squares = (1 << coarse) - 1, np.int64(0)
    for cell in range(count):
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
def _total(fine: Any, count: Any, kind: Any) -> Any:
    added = np.int64(0)
    for cell in range(count):
        added += abs(fine[cell]) if kind == ABSOLUTE else fine[cell]
    return added


@numba.njit
def _total_before(vectors: Vectors, room: Room, count: Any) -> None:
    """Add up all of a unit's cells, before any are dropped."""
    for vector in range(len(vectors.kind)):
        if vectors.totals[vector] != NO_TOTALS:
            _fill(vectors, vector, room, count)
            room.before[vector] = _total(room.fine[vector], count, vectors.totals[vector])


@numba.njit
def _fill(vectors: Vectors, vector: Any, room: Room, count: Any) -> None:
    for cell in range(count):
        room.fine[vector, cell] = _fine(vectors, vector, room.cells[cell])


@numba.njit
def _add_unit(vectors: Vectors, room: Room, count: Any, is_cut: Any, out: Result) -> None:
    """Add what scaling leaves of a unit to its groups, and what it left and took to the totals."""
    _weigh(vectors, room, count, is_cut)
    for vector in range(len(vectors.kind)):
        weight = room.weight[vectors.joint[vector]]
        if weight < ONE:
            for cell in range(count):
                fine = room.fine[vector, cell]
                size = abs(fine) * weight >> WEIGHT_BITS
                room.fine[vector, cell] = size if fine >= 0 else -size
        if vectors.totals[vector] != NO_TOTALS:
            _add_totals(vectors, vector, _total(room.fine[vector], count, vectors.totals[vector]), room, out)
    for cell in range(count):
        line, sums = room.cells[cell], out.sums[room.cells[cell, 1]]
        if vectors.task == SCALED:
            sums[0] += 1
            for vector in range(len(vectors.kind)):
                sums[1 + vector] += room.fine[vector, cell]
        else:
            sums[0] += line[0]
            sums[1] += 1
            for word in range(2, len(line)):
                sums[word] += line[word]


@numba.njit
def _weigh(vectors: Vectors, room: Room, count: Any, is_cut: Any) -> None:
    """Compute a unit's vectors, and the largest weights for which none is longer than its cap."""
    for vector in range(len(vectors.kind)):
        _fill(vectors, vector, room, count)
        if vectors.totals[vector] != NO_TOTALS and not is_cut:
            room.before[vector] = _total(room.fine[vector], count, vectors.totals[vector])
        joint = vectors.joint[vector]
        if joint == vector:
            room.weight[vector] = ONE
        if vectors.task == SCALED:
            length = _length(room.fine[vector], count, vectors.norm[vector])
            if length > vectors.cap[vector]:
                room.weight[joint] = min(room.weight[joint], (vectors.cap[vector] << WEIGHT_BITS) // length)


@numba.njit
def _add_totals(vectors: Vectors, vector: Any, added: Any, room: Room, out: Result) -> None:
    """Add what a unit has left and what was taken from it, together never more than the tail."""
    tail, shift = vectors.tail[vector], vectors.tail_shift[vector]
    kept = max(-tail, min(added, tail))
    rest = tail - abs(kept)
    cut = max(-rest, min(room.before[vector] - added, rest))
    out.totals[vector, 0] += abs(kept) >> shift if kept >= 0 else -(abs(kept) >> shift)
    out.totals[vector, 1] += abs(cut) >> shift if cut >= 0 else -(abs(cut) >> shift)


@numba.njit
def _put_into_bins(vectors: Vectors, room: Room, count: Any, out: Result) -> None:
    """Count a unit in the one bin of each profile that its vector's length is in."""
    for vector in range(len(vectors.kind)):
        _fill(vectors, vector, room, count)
        length = _length(room.fine[vector], count, vectors.norm[vector])
        if length > 0:
            place = 0
            while length >> (place + 1) > 0:
                place += 1
            out.people[vector, min(place, BINS - 1)] += 1
