"""Search for events that distinguish two inputs: events are chosen on one part of the draws and tested on another.

Every feature of an output sorts it into a cell: how large a number is, which value it is exactly, what kind of thing it
is, which low bits a float has, a score learned from all numbers together. A first quarter of the draws orders the
cells by how much more often one input fills them; a second quarter decides which unions of cells distinguish the inputs
best. The choice proves no claim: the chosen events are tested on fresh draws (lower_bound.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tacit.auditing.lower_bound import Tally, chernoff_lower, chernoff_upper
from tacit.auditing.outcome import Outcomes
from tacit.numbers import Flags, Floats, Integers

BINS_MOST = 256
VALUES_MOST = 4096
COORDINATES_MOST = 16
NAMED_MOST = 4  # values listed by name A value gets a separate cell when it was seen this often while learning.
SEEN_LEAST = 4
# The confidence that a candidate needs in the choice; tighter than needed, since the best of many is also the luckiest.
CHOOSING_ALPHA = 1e-7
# Under Gaussian noise every threshold shows the same move, so the best is the one known best, not the luckiest.
CHOOSING_ALPHA_OF_GAUSSIAN = 1e-60
# A plain threshold is taken before a union of many cells that promises no more than this above it.
PLAINNESS = 0.02

# The worth of bounds on the probability on the likelier input and on the other
Worth = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class OutputFeature:
    """A way to sort outputs into cells 0, 1, …; `ordered` where neighbouring cells are ranges of a number."""

    cells: Integers  # of every output, those of the first input before those of the second
    count: int
    ordered: int  # how many of the cells are ranges in order; 0 for none
    words: Callable[[Integers], str]  # a description of these cells
    plain: bool = False  # whether the words say all, so that it goes first among equals


@dataclass(frozen=True)
class Event:
    """A set of outputs, likelier on one input: the test whether an output lies in it, and its description."""

    words: str
    inside: Flags  # for every output of both inputs
    likelier_first: bool
    promise: float  # the loss it showed while choosing

    def tally(self, outcomes: Outcomes, start: int) -> Tally:
        """Return how often it happened from draw `start` of each input on."""
        one, other = self.inside[start : outcomes.first], self.inside[outcomes.first + start :]
        pair = (one, other) if self.likelier_first else (other, one)
        return Tally(int(pair[0].sum()), len(pair[0]), int(pair[1].sum()), len(pair[1]))


def choose_events(outcomes: Outcomes, *, learned: int, chosen: int, worth: Worth, most: int) -> list[Event]:
    """Return the most telling events, best first, of different features.

    Draws 0 … learned - 1 of each input order the cells, draws learned … chosen - 1 choose; later ones are not used.
    """
    found = [_best(feature, outcomes, learned, chosen, worth) for feature in _features(outcomes, learned)]
    return sorted(found, key=lambda event: -event.promise)[:most]


def loss_at(delta: float) -> Worth:
    def worth(low: Floats, high: Floats) -> Floats:
        found: Floats = np.log(np.maximum(low - delta, 1e-300) / high)
        return found

    return worth


def gaussian_move(low: Floats, high: Floats) -> Floats:
    """Return the worth of an event when the noise is known to be Gaussian: by how many deviations it moves."""
    normal = NormalDist()
    quantiles = [[normal.inv_cdf(min(max(chance, 1e-12), 1 - 1e-12)) for chance in row] for row in (low, high)]
    apart: Floats = np.array(quantiles[0]) - np.array(quantiles[1])
    return apart


def _best(feature: OutputFeature, outcomes: Outcomes, learned: int, chosen: int, worth: Worth) -> Event:
    one, other = _counts(feature, outcomes, learned, chosen)
    draws = chosen - learned
    alpha = CHOOSING_ALPHA_OF_GAUSSIAN if worth is gaussian_move else CHOOSING_ALPHA
    best = (-np.inf, np.array([0]), True)
    for order, likelier_first, bonus in _orders(feature, _counts(feature, outcomes, 0, learned)):
        likelier, rarer = (one, other) if likelier_first else (other, one)
        low = chernoff_lower(np.cumsum(likelier[order]), draws, alpha)
        high = chernoff_upper(np.cumsum(rarer[order]), draws, alpha)
        worths = worth(low, high) + bonus
        place = int(np.argmax(worths))
        if worths[place] > best[0]:
            best = (float(worths[place]), order[: place + 1], likelier_first)
    inside = np.zeros(feature.count, dtype=bool)
    inside[best[1]] = True
    return Event(feature.words(np.flatnonzero(inside)), inside[feature.cells], best[2], best[0])


def _orders(feature: OutputFeature, counts: tuple[Integers, Integers]) -> Iterator[tuple[Integers, bool, float]]:
    """Yield orders to join cells in, whether the event is to be likelier on the first input, and a bonus if plain."""
    one, other = counts
    ratio = np.log((one + 1) / (other + 1))
    by_ratio = np.argsort(-ratio, kind="stable")
    plain = PLAINNESS if feature.plain and not feature.ordered else 0.0
    yield by_ratio, True, plain
    yield by_ratio[::-1], False, plain
    if feature.ordered > 1:
        upward = np.arange(feature.ordered)
        for order in (upward, upward[::-1]):
            yield order, True, PLAINNESS * feature.plain
            yield order, False, PLAINNESS * feature.plain


def _counts(feature: OutputFeature, outcomes: Outcomes, start: int, end: int) -> tuple[Integers, Integers]:
    sides = (feature.cells[start:end], feature.cells[outcomes.first + start : outcomes.first + end])
    one, other = (np.bincount(side, minlength=feature.count) for side in sides)
    return one, other


# ---- features ------------------------------------------------------------------------------------------------------


def _features(outcomes: Outcomes, learned: int) -> Iterator[OutputFeature]:
    """Yield the ways to sort outputs. A way is a function of one output that only the learning draws decide."""
    first = outcomes.first
    learning = np.r_[0:learned, first : first + learned]
    kinds = outcomes.kind_names
    yield from _exact_values(outcomes.kinds, learning, kinds.__getitem__, subject="the kind of output is", seen_least=1)
    yield from _exact_values(
        outcomes.values, learning, outcomes.value_of, subject="the output is", seen_least=SEEN_LEAST
    )
    # a place that held a number while learning
    used = np.flatnonzero(~np.isnan(outcomes.numbers[learning]).all(axis=0))
    for place in used[:COORDINATES_MOST]:
        values, name = outcomes.numbers[:, place], outcomes.names[place]
        yield _by_size(values, learning, name)
        yield from _by_low_bits(values, learning, name)
    if len(used) > 1:
        yield from _vector_features(outcomes.numbers[:, used], first, learned, learning)


def _exact_values(
    codes: Integers, learning: Integers, name_of: Callable[[int], str], *, subject: str, seen_least: int
) -> Iterator[OutputFeature]:
    """Sort by an exact value, for those seen a few times while learning; all others share the last cell."""
    found, places, seen = np.unique(codes[learning], return_index=True, return_counts=True)
    order = np.lexsort((places, -seen))  # the commonest first, and of two the one drawn first
    often = found[order][: int((seen >= seen_least).sum())][:VALUES_MOST]
    last = len(often)
    if last == 0:
        return
    cell_of = np.full(int(codes.max()) + 1, last, dtype=np.int64)
    cell_of[often] = np.arange(last)

    def words(cells: Integers) -> str:
        picked = set(cells.tolist())
        if last in picked:
            others = [name_of(int(often[cell])) for cell in range(last) if cell not in picked]
            return f"{subject} {_listed_words(others, negated=True)}"
        return f"{subject} {_listed_words([name_of(int(often[cell])) for cell in cells])}"

    yield OutputFeature(cell_of[codes], last + 1, 0, words, plain=last <= NAMED_MOST)


def _by_size(values: Floats, learning: Integers, name: str) -> OutputFeature:
    """Sort by ranges of a number between values or quantiles seen while learning; NaN has the last cell."""
    known = values[learning]
    known = known[np.isfinite(known)]
    edges = np.unique(known)
    if len(edges) > BINS_MOST:
        edges = np.unique(np.quantile(known, _EVEN))
    missing = np.isnan(values)
    cells = np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="right")).astype(np.int64)

    def words(inside: Integers) -> str:
        picked = set(inside.tolist())
        last = len(edges)
        if picked == set(range(min(picked), last + 1)) and min(picked) > 0:
            return f"{name} is at least {edges[min(picked) - 1]:.9g}"
        if picked == set(range(max(picked) + 1)) and max(picked) < last:
            return f"{name} is below {edges[max(picked)]:.9g}"
        if picked == {last + 1}:
            return f"{name} is not a number"
        return f"{name} lies in {len(picked)} of {last + 1} ranges that were learned"

    return OutputFeature(cells, len(edges) + 2, len(edges) + 1, words, plain=not name.startswith("length"))


def _by_low_bits(values: Floats, learning: Integers, name: str) -> Iterator[OutputFeature]:
    """Sort a float by its lowest set bit, and by that and its size: these reveal a sum of floats."""
    known = values[learning]
    usable = np.isfinite(values) & (values != 0)
    if not (np.isfinite(known) & (known != np.floor(known))).any():
        return
    mantissa, exponent = np.frexp(np.where(usable, values, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = exponent.astype(np.int64) - 53 + np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    bits = np.where(usable, lowest, np.nan)
    by_bit = _by_size(bits, learning, f"the exponent of the lowest set bit of {name}")
    yield by_bit
    joint = by_bit.cells * 4096 + np.where(usable, np.clip(exponent, -1000, 1000) + 1024, 0)
    codes = np.unique(joint[learning])
    cells = np.searchsorted(codes, joint)
    found = (cells < len(codes)) & (codes[np.minimum(cells, len(codes) - 1)] == joint)
    cells = np.where(found, cells, len(codes)).astype(np.int64)
    text = f"{name} has one of {{}} combinations of size and lowest set bit"
    yield OutputFeature(cells, len(codes) + 1, 0, lambda inside: text.format(len(inside)))


def _vector_features(numbers: Floats, first: int, learned: int, learning: Integers) -> Iterator[OutputFeature]:
    """Sort vectors by their sum, their largest, and by scores learned as if the noise were Laplace's or Gaussian."""
    complete: Flags = np.asarray(np.isfinite(numbers).all(axis=1))
    with np.errstate(invalid="ignore"):
        yield _by_size(np.where(complete, numbers.sum(axis=1), np.nan), learning, "the sum of the numbers")
        if complete[learning].any():
            filled = np.where(np.isnan(numbers), -np.inf, numbers)
            yield _by_size(np.where(complete, filled.max(axis=1), np.nan), learning, "the largest number")
            yield _by_size(
                np.where(complete, filled.argmax(axis=1), np.nan), learning, "the place of the largest number"
            )
    one = numbers[:learned][complete[:learned]]
    other = numbers[first : first + learned][complete[first : first + learned]]
    if len(one) < 20 or len(other) < 20:
        return
    middles = np.median(one, axis=0), np.median(other, axis=0)
    spread = np.mean(np.abs(np.concatenate([one - middles[0], other - middles[1]])), axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    safe = np.where(complete[:, np.newaxis], numbers, 0.0)
    steps = (np.abs(safe - middles[0]) - np.abs(safe - middles[1])) / scale
    yield _by_size(np.where(complete, steps.sum(axis=1), np.nan), learning, "a learned score (sum of distances)")
    centred = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)]) / scale
    shape = centred.T @ centred / len(centred) + 1e-6 * np.eye(centred.shape[1])
    weights = np.linalg.solve(shape, (other.mean(axis=0) - one.mean(axis=0)) / scale)
    line = (safe / scale) @ weights
    yield _by_size(np.where(complete, line, np.nan), learning, "a learned score (weighted sum)")


_EVEN = np.linspace(0, 1, BINS_MOST + 1)


def _listed_words(words: list[str], *, negated: bool = False, most: int = NAMED_MOST) -> str:
    shown = ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
    if negated:
        return f"none of {shown}" if shown else "anything"
    return shown if len(words) == 1 else f"one of {shown}"
