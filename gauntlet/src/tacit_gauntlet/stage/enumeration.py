"""Every path a sampler takes on given bits, judged by the interval its law assigns: what N04 enumerates.

The expected intervals come from the masses alone, summed here, and not from the samplers' distribution functions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from tacit.errors import TacitError
from tacit.noise.bits import Bits
from tacit.numbers import Words, as_rational, working_precision

_PRECISION = 512
# What the masses left out of a sum may weigh, as a power of two.
_LEFT_OUT = -256


class OutOfBits(Exception):
    """The given bits did not decide: the sampler wants more of the same."""


class GivenBits:
    """Words handed out in the order given; where they run out, `then` for ever, or OutOfBits."""

    def __init__(self, words: Sequence[int], *, then: int | None = None) -> None:
        self.left = list(words)
        self.then = then

    def words(self, n: int, width: int = 64) -> Words:
        """Return the next `n` given words."""
        given, self.left = self.left[:n], self.left[n:]
        if len(given) < n:
            if self.then is None:
                raise OutOfBits
            given += [self.then] * (n - len(given))
        if any(word >> width for word in given):
            raise TacitError(f"a given word has more than {width} bits")
        return np.array(given, dtype=np.uint64)


@dataclass(frozen=True)
class Path:
    """A sequence of words as one binary number of `length` bits, and what it was decided as (None: undecided)."""

    number: int
    length: int
    value: int | None


def paths(draw: Callable[[Bits], int], *, width: int, depth: int) -> Iterator[Path]:
    """Yield every path of at most `depth` bits: those that decide, and those of full length that do not."""
    waiting: list[tuple[int, ...]] = [(word,) for word in range(1 << width)]
    while waiting:
        words = waiting.pop()
        length = len(words) * width
        number = sum(word << (length - width * (place + 1)) for place, word in enumerate(words))
        source = GivenBits(words)
        try:
            value = draw(source)
        except OutOfBits:
            if length + width > depth:
                yield Path(number, length, None)
            else:
                waiting += [(*words, word) for word in range(1 << width)]
            continue
        if source.left:
            raise TacitError("a sampler decided by fewer bits than the path before it")
        yield Path(number, length, value)


def wrong_paths(
    draw: Callable[[Bits], int], edges: dict[int, Fraction], *, width: int, depth: int
) -> tuple[list[Path], int]:
    """Return the paths that do not end where the law says, and how many bit strings of `depth` bits were judged.

    `edges[i]` is F(i)·2^depth, or any number between the same two integers where that is no integer.
    """
    wrong, judged = [], 0
    inside = sorted(edges.values())
    for path in paths(draw, width=width, depth=depth):
        spread = depth - path.length
        low, high = path.number << spread, path.number + 1 << spread
        judged += high - low
        if path.value is None:
            right = any(low < edge < high for edge in inside)
        else:
            begin = edges.get(path.value - 1, Fraction(0))
            right = path.value in edges and begin <= low and high <= edges[path.value]
        if not right:
            wrong.append(path)
    return wrong, judged


def edges_of(mass: Callable[[int], arb], values: range, *, depth: int, endless: bool) -> dict[int, Fraction]:
    """Return F(i)·2^depth for each value, from masses that need not add up to 1.

    `endless` laws go on past `values`, with less than 2^-256 of their mass left out there.
    """
    whole = 1 << depth
    found = {}
    with working_precision(_PRECISION):
        masses = [mass(value) for value in values]
        total = sum(masses, arb(0))
        running = arb(0)
        error = arb(2) ** _LEFT_OUT if endless else arb(2) ** -400
        for value, weight in zip(values, masses, strict=True):
            running += weight
            share = running / total
            floors = {
                min(max(int(as_rational(bound) * whole // 1), 0), whole - 1)
                for bound in ((share - error).lower(), (share + error).upper())
            }
            if len(floors) > 1:
                raise TacitError("the masses do not decide an edge")
            found[value] = floors.pop() + Fraction(1, 2)
    if not endless:
        found[values[-1]] = Fraction(whole)
    return found
