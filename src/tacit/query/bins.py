"""Histograms and rankings as questions: bins become public keys of a CASE, and the most common keys a ranking."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tacit.errors import QueryRefused
from tacit.privacy.number import decimal_meaning, is_long, whole
from tacit.query.check import check
from tacit.query.frame import Asked, Frame, add_derived, add_keys, add_where, make_query
from tacit.query.nodes import After, Ordering, Query
from tacit.tables.schema import RowUnit, read_between

BINS_MAX = 200
# Edges that are no short decimals are rounded to so many digits after the point.
EDGE_DIGITS = 9


def binned(frame: Frame, column: str, bins: object, between: object = None) -> Query:
    """Return the question how many rows fall in each bin of a column; rows without a value are in none."""
    if not isinstance(column, str):
        raise QueryRefused(f"a column is named by text, not {type(column).__name__}\nhint: histogram('age', 10)")
    if frame.keys:
        raise QueryRefused("a histogram groups by its bins\nhint: leave group_by out, or filter with where first")
    edges = _edges(frame, column, bins, between)
    written = f'"{column}"' if column in frame.declaration.columns else column
    cases = [f"WHEN {written} < {_text(high)} THEN {_text(low)}" for low, high in pairwise(edges[:-1])]
    name = f"{column}_from"
    last = _text(edges[-2])
    filtered = add_where(frame, f"{written} IS NOT NULL")
    derived = add_derived(
        filtered, {name: f"CASE {' '.join(cases)} ELSE {last} END" if cases else f"{last} + 0 * {written}"}
    )
    keyed = add_keys(derived, [name], [_key(edge) for edge in edges[:-1]])
    return make_query(keyed, {"count": Asked("count")})


def ranked(frame: Frame, column: str, best: int, keys: object = None) -> Query:
    """Return the question for the values that most units have: of public keys their order, of others the counts."""
    if frame.keys:
        raise QueryRefused("a ranking is of the whole table\nhint: leave group_by out, or filter with where first")
    most = whole(best, name="k")
    keyed = add_keys(frame, [column], keys)
    facts = frame.declaration.columns.get(column)
    public = keyed.public_keys is not None or (facts is not None and facts.keys is not None)
    if public:
        return make_query(keyed, {"rank": Asked("top", best=most)})
    counted = Asked("count") if isinstance(frame.declaration.unit, RowUnit) else Asked("count_units")
    query = make_query(keyed, {counted.kind: counted})
    after = After(order=(Ordering(counted.kind, descending=True),), limit=most)
    return check(replace(query, after=after), frame.declaration)


def _edges(frame: Frame, column: str, bins: object, between: object) -> list[Fraction]:
    """Return the edges of the bins, rising."""
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        edges = [decimal_meaning(edge, name="an edge") for edge in bins]
        if any(is_long(edge) for edge in edges):
            raise QueryRefused("an edge has more digits than any column holds\nhint: bins=[0, 18, 65, 120]")
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)) or len(edges) > BINS_MAX + 1:
            raise QueryRefused(f"edges rise, and are 2 to {BINS_MAX + 1}\nhint: bins=[0, 18, 65, 120]")
        return edges
    count: int = whole(bins, name="bins")
    facts = frame.declaration.columns.get(column)
    known = facts.between if facts is not None else None
    found = known if between is None else read_between(column, between)
    if found is None or count > BINS_MAX:
        raise QueryRefused(
            f"{count} even bins of '{column}' need its public range, and are at most {BINS_MAX}"
            f"\nhint: histogram('{column}', 10, between=(0, 100)), or give the edges: bins=[0, 18, 65, 120]"
        )
    low, high = found
    edges = [_short(low + (high - low) * place / count) for place in range(count + 1)]
    if any(one >= two for one, two in pairwise(edges)):
        raise QueryRefused(f"the range of '{column}' is too narrow for {count} bins\nhint: give fewer, or the edges")
    return edges


def _short(edge: Fraction) -> Fraction:
    return Fraction(round(edge * 10**EDGE_DIGITS), 10**EDGE_DIGITS)


def _text(edge: Fraction) -> str:
    """Return an edge as SQL writes it: one that is no short decimal is rounded to EDGE_DIGITS digits."""
    if edge.denominator == 1:
        return str(edge)
    steps = round(edge * 10**EDGE_DIGITS)
    whole_part, rest = divmod(abs(steps), 10**EDGE_DIGITS)
    return f"{'-' * (steps < 0)}{whole_part}.{rest:0{EDGE_DIGITS}d}".rstrip("0")


def _key(edge: Fraction) -> Any:
    return int(edge) if edge.denominator == 1 else Fraction(_text(edge))
