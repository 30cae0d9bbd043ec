"""The kernel's loops, compiled by numba: scatter rows by unit, bound each unit in cache, add up.

Whole numbers only. Rows and groups are kept by the rule of SQL, with another hash: groups in the order of (hash of unit
and key; key), rows in the order of (hash of unit, key and values; values). Hashes are of values and a salt, never of
codes; units are compared whole. A row is a line of 32-bit words: the unit's hash (two words), the key's code, the
unit's code if it has one, and the values from word `first` on; a value of NULL_WORD is NULL.
"""

from typing import Any, NamedTuple

import numpy as np

from tacit.engine.kernel.coding_loops import loop, mix, part_of_loops

NULL_WORD = np.uint32(0xFFFFFFFF)
# Up to this many kept groups are found in one pass, without sorting all groups.
FEW = 64


class BoundingRule(NamedTuple):
    """How the rows of one question are bounded and added up."""

    first: Any  # the word of a row's first value: 4 where units have codes, else 3
    key_hash: Any  # (key,) uint64: a hash of each key's value
    key_rank: Any  # (key,) int64: where each key is in the order of keys
    rows_most: Any
    groups_most: Any


@loop
def scatter(hashes: Any, codes: Any, keys: Any, values: Any, bits: Any, starts: Any, rows: Any) -> None:
    """Write rows with listed keys, sorted by the top bits of their units' hashes, and where each part begins."""
    shift = np.uint64(64 - bits)
    at = np.zeros((1 << bits) + 1, np.int64)
    for row in range(len(hashes)):
        if keys[row] >= 0:
            at[np.int64(hashes[row] >> shift) + 1] += 1
    for part in range(1 << bits):
        at[part + 1] += at[part]
    for part in range(len(at)):  # numba takes a second to compile `starts[:] = at`
        starts[part] = at[part]
    first = rows.shape[1] - values.shape[0]
    for row in range(len(hashes)):
        if keys[row] < 0:
            continue
        word = hashes[row]
        place = at[np.int64(word >> shift)]
        at[np.int64(word >> shift)] = place + 1
        rows[place, 0] = np.uint32(word & np.uint64(0xFFFFFFFF))
        rows[place, 1] = np.uint32(word >> np.uint64(32))
        rows[place, 2] = np.uint32(keys[row])
        if first == 4:
            rows[place, 3] = np.uint32(codes[row])
        for column in range(values.shape[0]):
            rows[place, first + column] = values[column, row]


@loop
def sum_rows(rows: Any, starts: Any, skip: Any, bits: Any, rule: BoundingRule, sums: Any) -> None:
    """Bound whole units and add them up by key, in (key, sum) int64: rows, units, and counted and total of each value.

    Part p is rows[starts[p] : starts[p + 1]]. Parts are first split by the `bits` of their units' hashes after the top
    `skip`, so that the added rows stay in cache.
    """
    for part in range(len(starts) - 1):
        parted, ends = split(rows[starts[part] : starts[part + 1]], skip, bits)
        for piece in range(1 << bits):
            some = parted[ends[piece] : ends[piece + 1]]
            if len(some):
                _sum_part(some, rule, sums)


@part_of_loops
def split(rows: Any, skip: Any, bits: Any) -> Any:
    """Return the rows sorted by some bits of their units' hashes, and where each part begins, with the end."""
    at = np.zeros((1 << bits) + 1, np.int64)
    if bits == 0:
        at[1] = len(rows)
        return rows, at
    shift, mask = 32 - skip - bits, (1 << bits) - 1
    for row in range(len(rows)):
        at[((np.int64(rows[row, 1]) >> shift) & mask) + 1] += 1
    for part in range(1 << bits):
        at[part + 1] += at[part]
    starts = at.copy()
    parted = np.empty_like(rows)
    for row in range(len(rows)):
        part = (np.int64(rows[row, 1]) >> shift) & mask
        place = at[part]
        at[part] = place + 1
        for word in range(rows.shape[1]):
            parted[place, word] = rows[row, word]
    return parted, starts


@part_of_loops
def _sum_part(rows: Any, rule: BoundingRule, sums: Any) -> None:
    """Bound and add up each unit of a part."""
    places, ends, units = by_unit(rows, rule.first)
    orders = np.empty(len(rows), np.uint64)
    spare = np.empty(len(rows), np.uint32)
    best = np.empty(rule.groups_most if rule.groups_most <= FEW else 0, np.uint64)
    begin = np.int64(0)
    for unit in range(units):
        end, at, groups = np.int64(ends[unit]), begin, 0
        stop = end
        if end - begin > 1:
            stop = begin + _put_groups_in_order(
                rows, rule.key_hash, rule.key_rank, places[begin:end], orders, spare, best
            )
        while at < stop and groups < rule.groups_most:
            key, first = rows[places[at], 2], at
            at += 1
            while at < stop and rows[places[at], 2] == key:
                at += 1
            most = min(at - first, rule.rows_most)
            if at - first > most:
                put_first_rows_first(rows, rule.first, rule.key_hash, rule.rows_most, places[first:at], orders)
            sums[key, 0] += most
            sums[key, 1] += 1
            # no view of an array and no tuple of arrays: for each group they would take longer than its sums
            _add_rows(rows, rule.first, places, first, most, key, sums)
            groups += 1
        begin = end


@part_of_loops
def _add_rows(rows: Any, first: Any, places: Any, begin: Any, count: Any, key: Any, sums: Any) -> None:
    for place in range(begin, begin + count):
        for column in range(rows.shape[1] - first):
            value = rows[places[place], first + column]
            if value != NULL_WORD:
                sums[key, 2 + 2 * column] += 1
                sums[key, 3 + 2 * column] += np.int64(value)


@part_of_loops
def by_unit(rows: Any, first: Any) -> Any:
    """Return the rows' places sorted by unit, where each unit's end, and how many units there are."""
    mask = 15
    while mask + 1 < 2 * len(rows):
        mask = 2 * mask + 1
    slots = np.full(mask + 1, -1, np.int32)
    unit_of = np.empty(len(rows), np.int32)
    one_row = np.empty(len(rows), np.uint32)
    ends = np.zeros(len(rows) + 1, np.int32)
    units = 0
    for row in range(len(rows)):
        slot = np.int64(rows[row, 0]) & mask
        while True:
            unit = slots[slot]
            if unit < 0:
                unit = np.int32(units)
                slots[slot] = unit
                one_row[unit] = row
                units += 1
                break
            other = one_row[unit]
            same = rows[other, 0] == rows[row, 0] and rows[other, 1] == rows[row, 1]
            if same and (first == 3 or rows[other, 3] == rows[row, 3]):
                break
            slot = (slot + 1) & mask
        unit_of[row] = unit
        ends[unit + 1] += 1
    for unit in range(units):
        ends[unit + 1] += ends[unit]
    places = one_row  # no longer needed for its first purpose
    for row in range(len(rows)):
        unit = unit_of[row]
        places[ends[unit]] = row
        ends[unit] += 1
    return places, ends, units


@part_of_loops
def _put_groups_in_order(
    rows: Any, key_hash: Any, key_rank: Any, places: Any, orders: Any, spare: Any, best: Any
) -> Any:
    """Put a unit's rows in the order of their groups; return how many: others are of groups that are not kept."""
    word = np.uint64(rows[places[0], 0]) | (np.uint64(rows[places[0], 1]) << np.uint64(32))
    count = np.int64(len(places))
    for place in range(count):
        orders[place] = mix(word, key_hash[rows[places[place], 2]])
    if len(best) and count > 4 * len(best):  # most groups will not be kept: leave them out before sorting
        held = _first_orders(orders, count, best)
        last, first = best[held - 1], np.int64(0)
        for place in range(count):
            if orders[place] <= last:
                orders[first] = orders[place]
                places[first] = places[place]
                first += 1
        count = first
        if not _by_order(rows, places, orders, spare, best[:held], count):
            _sort(rows, key_rank, places, orders, count)
    else:
        _sort(rows, key_rank, places, orders, count)
    return count


@part_of_loops
def _first_orders(orders: Any, count: Any, best: Any) -> Any:
    """Put the smallest distinct orders into `best`, rising, and return their number: its size, or all of them."""
    held: Any = np.int64(0)
    for place in range(count):
        order = orders[place]
        if held == len(best) and order >= best[held - 1]:
            continue
        at = held
        while at > 0 and best[at - 1] > order:
            at -= 1
        if at > 0 and best[at - 1] == order:
            continue
        held = min(held + 1, len(best))
        for other in range(held - 1, at, -1):
            best[other] = best[other - 1]
        best[at] = order
    return held


@part_of_loops
def _by_order(rows: Any, places: Any, orders: Any, spare: Any, best: Any, count: Any) -> Any:
    """Put rows in the order of their groups by counting, faster than by sorting; return whether it was done: not where
    two groups tie. Every order is one of `best`."""
    at = np.zeros(len(best) + 1, np.int64)
    key = np.empty(len(best), np.uint32)
    for place in range(count):
        low, high = 0, len(best) - 1
        while low < high:
            middle = (low + high) // 2
            if best[middle] < orders[place]:
                low = middle + 1
            else:
                high = middle
        if at[low + 1] == 0:
            key[low] = rows[places[place], 2]
        elif key[low] != rows[places[place], 2]:
            for other in range(place):  # they are orders again
                orders[other] = best[orders[other]]
            return False
        at[low + 1] += 1
        orders[place] = np.uint64(low)
    for group in range(len(best)):
        at[group + 1] += at[group]
    for place in range(count):
        bucket = np.int64(orders[place])
        spare[at[bucket]] = places[place]
        at[bucket] += 1
    for place in range(count):
        places[place] = spare[place]
    return True


@part_of_loops
def _sort(rows: Any, rank: Any, places: Any, orders: Any, count: Any) -> None:
    """Sort by (order, rank of the key), by insertion at ever smaller gaps."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for start in range(gap, count):
            order, row, at = orders[start], places[start], start
            while at >= gap and (
                orders[at - gap] > order
                or (orders[at - gap] == order and rank[rows[places[at - gap], 2]] > rank[rows[row, 2]])
            ):
                orders[at] = orders[at - gap]
                places[at] = places[at - gap]
                at -= gap
            orders[at] = order
            places[at] = row
        gap //= 3


@part_of_loops
def put_first_rows_first(rows: Any, first: Any, key_hash: Any, most: Any, places: Any, orders: Any) -> None:
    """Put those of a group's rows first that come first by (hash, values); `orders` is room to work in."""
    for place in range(len(places)):
        orders[place] = _row_hash(rows, first, key_hash, np.int64(places[place]))
    last = smallest(orders, len(places), most)
    done = np.int64(0)
    for place in range(len(places)):
        if _row_hash(rows, first, key_hash, np.int64(places[place])) < last:
            places[done], places[place] = places[place], places[done]
            done += 1
    while done < most:  # nearly always once: rows that tie are identical
        best = np.int64(-1)
        for place in range(done, len(places)):
            row = np.int64(places[place])
            if _row_hash(rows, first, key_hash, row) == last and (best < 0 or _compare(rows, first, row, best) < 0):
                best = row
        for place in range(done, len(places)):
            row = np.int64(places[place])
            if done < most and _row_hash(rows, first, key_hash, row) == last and _compare(rows, first, row, best) == 0:
                places[done], places[place] = places[place], places[done]
                done += 1


@part_of_loops
def smallest(words: Any, end: Any, count: Any) -> Any:
    """Return the count-th smallest of the words before `end`, which are put in another order."""
    wanted = count - 1
    low, high = np.int64(0), end - 1
    while low < high:
        pivot = words[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while words[left] < pivot:
                left += 1
            while words[right] > pivot:
                right -= 1
            if left <= right:
                words[left], words[right] = words[right], words[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return words[wanted]


@part_of_loops
def _row_hash(rows: Any, first: Any, key_hash: Any, row: Any) -> Any:
    word = np.uint64(rows[row, 0]) | (np.uint64(rows[row, 1]) << np.uint64(32))
    order = mix(word, key_hash[rows[row, 2]])
    for column in range(first, rows.shape[1]):
        order = mix(order, np.uint64(rows[row, column]))
    return order


@part_of_loops
def _compare(rows: Any, first: Any, one: Any, two: Any) -> Any:
    for column in range(first, rows.shape[1]):
        if rows[one, column] != rows[two, column]:
            return -1 if rows[one, column] < rows[two, column] else 1
    return 0
