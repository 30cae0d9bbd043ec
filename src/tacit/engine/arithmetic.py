"""Exact whole-number arithmetic in SQL for scaling. Sums, which DuckDB makes in 128 bits, are cut to a public limit
before they are stored in 64 (`narrowed`), and limits are applied before a product is made: nothing raises on any
row."""

from tacit import typed_sql as sql
from tacit.plan import BINS, CELL_MOST, LARGEST_LEAST, WEIGHT_BITS, Vector

ONE = 1 << WEIGHT_BITS
# A longer vector has the weight 0 under any cap, as this one has.
LENGTH_MOST = (CELL_MOST << WEIGHT_BITS) + 1
# The squares of a long vector are those of its sizes in this many binary digits, rounded up.
SQUARED_BITS = 20
WIDE = "decimal(38, 0)"
# A shift by more is the same for every number that occurs here.
_SHIFT_MOST = 120

# An integer in binary digits.
_in_binary = sql.function("bin", "string")


def whole(value: int) -> sql.Typed:
    """Return a public number as a 64-bit integer."""
    return sql.literal(value, "int64")


def narrowed(value: sql.Typed) -> sql.Typed:
    """Return a number that is known to fit 64 bits as a 64-bit integer."""
    return value.cast("int64")


def signed_as(size: sql.Typed, value: sql.Typed) -> sql.Typed:
    return sql.cases((value < 0, -size), else_=size)


def fine_steps(steps: sql.Typed, shift: int) -> sql.Typed:
    """Return a sum of steps in fine steps, towards 0, within CELL_MOST; the sum may have 128 bits."""
    size = steps.abs()
    if shift < 0:
        size = narrowed(sql.least(size >> min(-shift, _SHIFT_MOST), whole(CELL_MOST)))
    else:
        most = max(1, CELL_MOST >> shift)  # from here on, shifting gives CELL_MOST or more
        size = narrowed(sql.least(size, whole(most)))
        size = size * whole(CELL_MOST // most)
    return signed_as(size, steps)


def coarse_bits(top: sql.Typed) -> sql.Typed:
    """Return how many binary digits of a vector's sizes are left out before they are squared, from the largest one."""
    return sql.greatest(bit_length(top) - whole(SQUARED_BITS), whole(0))


def square(size: sql.Typed, coarse: sql.Typed) -> sql.Typed:
    """Return the square of a size without its last digits, rounded up: at most 2^40."""
    up = (whole(1) << coarse) - whole(1)
    short = (size + up) >> coarse
    return short * short


def root_length(squares: sql.Typed, coarse: sql.Typed) -> sql.Typed:
    """Return the least whole number with a square of at least a sum of squares, its last digits put back; a float is
    within 1."""
    wide, near = squares.cast(WIDE), squares.cast("float64").sqrt().floor().cast("int64")
    tries = [near - whole(1), near, near + whole(1)]
    enough = [(each.cast(WIDE) * each.cast(WIDE) >= wide, each) for each in tries]
    root = sql.cases((squares == 0, whole(0)), *enough, else_=near + whole(2))
    return root << coarse


def sum_length(sizes: sql.Typed) -> sql.Typed:
    return narrowed(sql.least(sizes, whole(LENGTH_MOST)))


def weight_within(length: sql.Typed, cap: int) -> sql.Typed:
    """Return the weight of a vector of this length: in full up to the cap."""
    return sql.cases((length > whole(cap), whole(cap << WEIGHT_BITS) // length), else_=whole(ONE))


def scaled(fine: sql.Typed, weight: sql.Typed) -> sql.Typed:
    """Return what a unit adds, towards 0: a size of 2^38 times a weight of 2^24 is within 64 bits."""
    return signed_as((fine.abs() * weight) >> WEIGHT_BITS, fine)


def kept_and_cut(kept: sql.Typed, rest: sql.Typed, vector: Vector) -> tuple[sql.Typed, sql.Typed]:
    """Return what a unit adds to the two totals, from what was left of its vector and what was taken."""
    most = whole(vector.total_most)
    within = narrowed(_clipped(kept, most))
    taken = _clipped(narrowed(_clipped(rest, most)), most - within.abs())
    shift = min(vector.tail_shift, 63)  # a shift by more leaves nothing either
    return signed_as(within.abs() >> shift, within), signed_as(taken.abs() >> shift, taken)


def _clipped(value: sql.Typed, most: sql.Typed) -> sql.Typed:
    return sql.cases((value > most, most), (value < -most, -most), else_=value)


def bit_length(size: sql.Typed) -> sql.Typed:
    """Return how many binary digits a whole number has: none for 0."""
    return sql.cases((size == 0, whole(0)), else_=_in_binary(size).length().cast("int64"))


def length_bin(length: sql.Typed) -> sql.Typed:
    """Return the bin of a length in a profile of two bins an octave; NULL for 0."""
    below = sql.greatest(length - whole(1), whole(0))
    place = bit_length(below) + bit_length(below // whole(3))
    return sql.cases((length > 0, sql.least(place, whole(BINS - 1))))


def octave(size: sql.Typed) -> sql.Typed:
    """Return floor(log2 size) of a float above 0, counted from LARGEST_LEAST and within the bins: exact, by digits."""
    reach = -LARGEST_LEAST
    small = bit_length((size * float(1 << reach)).floor().cast("int64")) - whole(1)
    large = bit_length((size * 2.0).floor().cast("int64")) + whole(reach - 2)
    ends = (size >= 2.0 ** (reach - 1), whole(2 * reach - 1)), (size >= 2.0 ** (reach - 2), whole(2 * reach - 2))
    return sql.cases(*ends, (size >= 0.5, large), (size * float(1 << reach) >= 1.0, small), else_=whole(0))
