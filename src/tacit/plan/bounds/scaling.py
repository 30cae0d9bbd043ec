"""Scaling: what one unit adds is made smaller as a whole, by one integer weight, until it is within a public cap.

A *cell* is what one unit has in one group. A `Vector` has one whole number for each cell of a unit: its rows, or a sum
about a centre. A unit whose vector is longer than the cap counts for less, in all its cells alike; nothing is dropped
and nothing is picked at random. `Profile` is how a cap is learned: how many units have a vector of about which length.

All numbers are whole. A vector is in *fine steps*: a step (a row, or the step of a column's grid) is 2^shift of them.
The integers themselves are stated in docs/proofs/scaling.md, and every execution path gives the same ones.
"""

from dataclasses import dataclass, field
from typing import Literal

VectorKind = Literal["rows", "units", "counted", "centred"]

# A weight is a whole number of 2^-WEIGHT_BITS.
WEIGHT_BITS = 24
# A cap has about this many binary digits in fine steps.
CAP_BITS = 20
# No cell counts for more than this many fine steps, so that a weight times a cell is within 64 bits.
CELL_MOST = 1 << 38
# One unit adds at most 2^TOTAL_BITS fine steps to kept and cut, whatever the tail cap is.
TOTAL_BITS = 62
# As many rows or groups of a unit as it likes, in a plan that scales instead.
UNBOUNDED = 1 << 62
# The bins of a profile, two an octave: their upper ends are 1, 2, 3, 4, 6, 8, 12, 16, 24 ... fine steps, 2^b and 3·2^b.
# So the bin of a length is bit_length(length - 1) + bit_length((length - 1) // 3).
BINS = 128
# The bins of a profile of largest values: octaves from 2^-64 to 2^64, for values above 0 and then for those below.
LARGEST_BINS = 256
LARGEST_LEAST = -64


@dataclass(frozen=True)
class Outlook:
    """What learned facts foretell of a vector, in its own steps: for plans and error bars, never for privacy."""

    people: float  # about how many have any
    mass: float  # about how much all of them have together
    kept: float  # about which share of it is within the cap
    scaled: float  # about how many people are scaled down
    beyond_most: float  # about how many people have more than the cap, or the tail of totals, at most
    excess: float  # about how much they have beyond it
    tail_cap: float = 0.0  # what nobody is believed to have more than; the tail of totals may be less
    lost: float = 0.0  # about how much the cap takes from all people together
    lost_most: float = 0.0  # about how much it takes at most
    excess_most: float = 0.0  # about how much people have beyond the tail of totals at most
    one_sign: bool = False  # of sums: no value below 0 was believed when sizes were learned
    of_all_rows: bool = False  # it is told of all rows, though fewer are asked about
    # how many people are longer than the cap, at least and at most as far as noise tells; None: nothing is known
    scaled_least: float | None = None
    scaled_most: float | None = None


@dataclass(frozen=True)
class ByHand:
    """Bounds that a person gave; None: this one was not given."""

    rows: int | None = None  # in a group
    groups: int | None = None

    def __bool__(self) -> bool:
        return self.rows is not None or self.groups is not None


@dataclass(frozen=True)
class Vector:
    """One whole number for each cell of a unit, scaled into the cap.

    rows, units, counted: its rows; 1; its rows where a column is not NULL. centred: the sum of (value - centre), the
    value in steps above the low end of the column's range.
    """

    kind: VectorKind
    column: int | None = None
    centre: int = 0  # in steps above the column's low end
    shift: int = 0  # a step is 2^shift fine steps; where it is negative, a fine step is 2^-shift steps
    cap: int = 1 << CAP_BITS  # how long a unit's vector may be, in fine steps
    totals: Literal["absolute", "signed"] | None = None  # how kept and cut are added up; None: they are not released
    tail: int = 0  # how much of kept and cut together one unit may add, in units of 2^tail_shift fine steps
    tail_shift: int = 0
    rows: int | None = None  # the index of the vector that counts its rows, for a mean
    # of squares and products: the indexes of the vectors of sums of the columns that are multiplied
    factors: tuple[int, int] | None = field(default=None, repr=False)
    outlook: Outlook | None = field(default=None, repr=False, compare=False)

    @property
    def total_most(self) -> int:
        """How much one unit may add to kept and cut together, in fine steps."""
        return min(self.tail << self.tail_shift, 1 << TOTAL_BITS)

    def __post_init__(self) -> None:
        if not 0 <= self.cap <= CELL_MOST or min(self.tail, self.tail_shift) < 0:
            raise ValueError("a cap is at most CELL_MOST fine steps, and a cap, a tail and its shift are not negative")


@dataclass(frozen=True)
class Scaling:
    """The vectors of a plan; those that are `together` have one weight. Release i is vector i."""

    norm: Literal[1, 2]
    vectors: tuple[Vector, ...]
    together: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Profile:
    """How many units have a vector of about which length: each unit is in one bin of it at most.

    It is of all of a unit's cells: nothing is dropped first, whatever the plan's bounds are. `largest` is about values
    instead: the bin of the value of a column that is farthest from 0, as floats tell it; of two that are equally far,
    the one above 0.
    """

    norm: Literal[1, 2, "largest"]
    vector: Vector
