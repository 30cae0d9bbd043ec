"""The declared sensitivity is the largest move there is: never less, found by trying all, and no more than needed."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.plan.groups import sensitivity_of
from tacit.plan.plan import Measured, Part
from tacit.query.nodes import Column

JOINT = (Part("missing", 0), Part("below", 0), Part("above", 0))
SHAPES = {
    "rows": (Part("rows"),),
    "units": (Part("units"),),
    "total": (Part("total", 0),),
    "two parts": JOINT[1:],
    "three parts": JOINT,
    "counted": (Part("counted", 0),),
}


def measured(low, high):
    return (Measured(Column("x"), "int", Fraction(1), low, high),)


def row_of(parts, value, low, high):
    """What one row adds to each part; a value of None is NULL."""
    known = value is not None
    adds = {
        "rows": 1,
        "counted": int(known),
        "missing": 0 if known else high - low,
        "below": high - value if known else 0,
        "above": value - low if known else 0,
        "total": value if known else 0,
    }
    return tuple(adds[part.kind] for part in parts)


def contributions(parts, low, high, rows):
    """Every vector one unit can add to one group, having at most `rows` rows there."""
    if parts[0].kind == "units":
        return {(0,), (1,)}
    values = [None, *range(low, high + 1)]
    found = set()
    for size in range(rows + 1):
        for chosen in combinations_with_replacement(values, size):
            each = [row_of(parts, value, low, high) for value in chosen]
            found.add(tuple(map(sum, zip(*each, strict=True))) if each else (0,) * len(parts))
    return found


def furthest(vectors, groups):
    """The largest L1, squared L2 and L∞ when each of some groups moves by one of the vectors."""
    l1 = max(sum(map(abs, vector)) for vector in vectors)
    l2 = max(sum(part * part for part in vector) for vector in vectors)
    return l1 * groups, l2 * groups, max(abs(part) for vector in vectors for part in vector)


@pytest.mark.parametrize("name", SHAPES)
@given(low=st.integers(-4, 3), height=st.integers(1, 4), rows=st.integers(1, 3), groups=st.integers(1, 4))
def test_add_or_remove_moves_exactly_as_far_as_declared(name, low, height, rows, groups):
    parts, high = SHAPES[name], low + height
    if name == "counted":
        low, high = 0, 1
    declared = sensitivity_of(
        parts, measured(low, high), rows_per_unit=rows, groups_per_unit=groups, neighbours="add-remove"
    )
    found = furthest(contributions(parts, low, high, rows), groups)
    assert (declared.l1, declared.l2_squared, declared.linf) == found
    assert declared.l0 == groups * len(parts)


@pytest.mark.parametrize("name", SHAPES)
@given(low=st.integers(-3, 2), height=st.integers(1, 3), rows=st.integers(1, 2), groups=st.integers(1, 3))
def test_replacing_moves_no_further_than_declared(name, low, height, rows, groups):
    """Old and new rows in the same groups, or in others: every split of g groups into shared and separate is tried."""
    parts, high = SHAPES[name], low + height
    if name == "counted":
        low, high = 0, 1
    declared = sensitivity_of(
        parts, measured(low, high), rows_per_unit=rows, groups_per_unit=groups, neighbours="replace"
    )
    each = contributions(parts, low, high, rows)
    moves = {tuple(new - old for old, new in zip(*pair, strict=True)) for pair in product(each, each)}
    apart, same = furthest(each, 1), furthest(moves, 1)
    furthest_l1 = max(shared * same[0] + 2 * (groups - shared) * apart[0] for shared in range(groups + 1))
    furthest_l2 = max(shared * same[1] + 2 * (groups - shared) * apart[1] for shared in range(groups + 1))
    assert furthest_l1 <= declared.l1
    assert furthest_l2 == declared.l2_squared
    assert same[2] == declared.linf
