"""Vectors of variances, covariances and correlations: sums of squares and products about centres that were learned.

A variance is three vectors with one weight: the rows, the sums about the centre, and the sums of squares about it. A
covariance has the rows with both columns not NULL, the sums of both and the sums of their products; a correlation has
the squares of both as well. A square is an expression of its row like any other, so its sums are scaled, profiled and
added up as all sums are, on every path, and the same proof holds (docs/proofs/scaling.md).
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, log2

from tacit.plan.bounds.facts import Facts, Grouping, Subject
from tacit.plan.bounds.scaling import Vector
from tacit.plan.bounds.vectors import (
    MOMENTS_OF_ONE,
    Grid,
    ValueColumn,
    Wanted,
    WantedVector,
    count_vector,
    profiles_of,
    value_columns,
    wanted_vectors,
)
from tacit.plan.plan import Measured, planned
from tacit.query import Aggregate, Call, Expression, Output, Query, Value

# The largest binary digits of the square of a believed value in its own steps; its grid goes further by the same
# factor as a value's own. A float tells all of its steps apart.
SQUARE_BITS = 36
SQUARES_MOST = 1 << 48
NOTHING = Value(None, "null")


def all_vectors(query: Query, grouping: Grouping, facts: Facts) -> Wanted | None:
    """Return all vectors of a question, those of its moments included; None if a fact is missing."""
    wanted = wanted_vectors(query, grouping, facts)
    if wanted is None:
        return None
    for column, outputs in value_columns(query, grouping):
        asked = [output for output in outputs if output.aggregate.kind in MOMENTS_OF_ONE]
        if asked:
            _add_square(wanted, column, asked, facts)
    for columns, outputs in paired_columns(query, grouping):
        if not _add_pair(wanted, columns, outputs, facts):
            return None
    return wanted


def paired_columns(query: Query, grouping: Grouping) -> Iterator[tuple[tuple[ValueColumn, ValueColumn], list[Output]]]:
    """Yield each pair of expressions with moments, and their outputs."""
    found: dict[tuple[object, ...], list[Output]] = {}
    for output in query.outputs:
        aggregate = output.aggregate
        if aggregate.kind in ("covariance", "correlation"):
            key = (aggregate.expression, aggregate.between, aggregate.step, aggregate.other, aggregate.other_between)
            found.setdefault(key, []).append(output)
    for outputs in found.values():
        yield _sides_of_product(outputs[0].aggregate, grouping), outputs


def _sides_of_product(aggregate: Aggregate, grouping: Grouping) -> tuple[ValueColumn, ValueColumn]:
    other = replace(aggregate, expression=aggregate.other, between=aggregate.other_between, step=None)
    one, two = (replace(each, other=None, other_between=None) for each in (aggregate, other))
    return ValueColumn(one, grouping, about_zero=False), ValueColumn(two, grouping, about_zero=False)


# ---- Expressions.


def _distance(column: ValueColumn, grid: Grid) -> Expression:
    """Return how far a row's value is from the centre, as a float; a range given by hand clamps it first."""
    value = column.expression if column.type == "float" else Call("cast_float", (column.expression,))
    if column.between is not None:
        low, high = (Value(float(end), "float") for end in column.between)
        value = Call("case", (Call("<", (value, low)), low, Call(">", (value, high)), high, value))
    centre = (grid.measured.low + grid.centre) * grid.measured.step
    return Call("-", (value, Value(float(centre) + 0.0, "float")))


def _where_known(column: ValueColumn, other: ValueColumn) -> Expression:
    """Return an expression, NULL in rows with the other one NULL."""
    return Call("case", (Call("is_null", (other.expression,)), NOTHING, column.expression))


def _product_vector(one: Grid, two: Grid, distances: tuple[Expression, Expression]) -> Grid:
    """Return the product of two distances on a separate grid, about 0; a square is never below it."""
    largest = one.largest * two.largest
    coarse = ceil(log2(largest)) - SQUARE_BITS
    is_exact = coarse <= 0 and one.measured.off == two.measured.off == 0  # on the product of both grids
    coarse = 0 if is_exact else coarse
    step = one.measured.step * two.measured.step * Fraction(2) ** coarse
    low = 0 if distances[0] == distances[1] else -SQUARES_MOST
    off = Fraction(0) if is_exact else step / 2
    measured = Measured(Call("*", distances), "float", step, low, SQUARES_MOST, off=off)
    return Grid(measured, -low, max(largest / 2.0**coarse, 1.0))


# ---- Vectors.


def _add_square(wanted: Wanted, column: ValueColumn, outputs: list[Output], facts: Facts) -> None:
    """Add the squares of a column beside the sums that are there already."""
    grid = column.grid(facts)
    if grid is None:
        raise ValueError("a column has its grid before its squares are added")
    sums = wanted.place_of_sums(outputs[0].name)
    distance = _distance(column, grid)
    at = _add_products(wanted, _product_vector(grid, grid, (distance, distance)), (sums, sums), outputs)
    place = wanted.vectors[sums].vector.column
    wanted.outputs |= {output.name: planned(output, at, place or 0) for output in outputs}


def _add_pair(wanted: Wanted, columns: tuple[ValueColumn, ValueColumn], outputs: list[Output], facts: Facts) -> bool:
    """Add the vectors of two columns, of the rows with both not NULL; False if a grid is not known yet."""
    grids = [column.grid(facts) for column in columns]
    one, two = grids
    if one is None or two is None:
        return False
    masked = (_where_known(columns[0], columns[1]), _where_known(columns[1], columns[0]))
    distances = (_distance(columns[0], one), _distance(columns[1], two))
    places, sums, counting = [], [], None
    for column, grid, expression in zip(columns, (one, two), masked, strict=True):
        wanted.used += column.known(facts)
        measured = replace(grid.measured, expression=expression)
        wanted.measured.append(measured)
        places.append(len(wanted.measured) - 1)
        if counting is None:
            counting = wanted.add(count_vector(wanted, "counted", (), (measured,), places[0]))
        vector = Vector("centred", 0, centre=grid.centre)
        subject = Subject(wanted.grouping, (measured,), profiles_of(wanted.grouping, vector))
        made = WantedVector(
            "centred",
            replace(vector, column=places[-1]),
            subject,
            signed=True,
            rows=counting,
            of_mean=True,
            safe=grid.largest,
        )
        sums.append(wanted.add(made, beside=counting))
    at = _add_products(wanted, _product_vector(one, two, distances), (sums[0], sums[1]), outputs)
    if any(output.aggregate.kind == "correlation" for output in outputs):
        for place, (grid, distance) in enumerate(zip((one, two), distances, strict=True)):
            known = Call("case", (Call("is_null", (columns[1 - place].expression,)), NOTHING, distance))
            _add_products(wanted, _product_vector(grid, grid, (known, known)), (sums[place], sums[place]), outputs)
    wanted.outputs |= {output.name: planned(output, at, *places) for output in outputs}
    return True


def _add_products(wanted: Wanted, grid: Grid, factors: tuple[int, int], outputs: list[Output]) -> int:
    """Add the sums of products of two columns that have their sums already, and return the index."""
    wanted.measured.append(grid.measured)
    vector = Vector("centred", 0, centre=grid.centre)
    made = WantedVector(
        "centred",
        replace(vector, column=len(wanted.measured) - 1),
        Subject(wanted.grouping, (grid.measured,), profiles_of(wanted.grouping, vector)),
        tuple(output.name for output in outputs),
        signed=factors[0] != factors[1],
        rows=wanted.vectors[factors[0]].rows,
        of_mean=True,
        safe=grid.largest,
        factors=factors,
    )
    return wanted.add(made, beside=made.rows)
