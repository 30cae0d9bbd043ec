"""Choosing the caps of a variance, a covariance or a correlation: of all its vectors at once, for one ratio.

Rows, sums and squares have one weight, so what is scaled away of all of them alike moves no variance. Left is what is
scaled away of squares beyond that, as the profiles foretell it: people who have the most rows are taken to have the
most of all. Caps weigh that against the noise on each of the vectors. No totals are needed. Any cap is safe.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2, pi, sqrt

import numpy as np

from tacit.plan.bounds.caps import KEPT_LEAST, Cap, NoiseTerms, UnitSizes
from tacit.plan.bounds.chosen import OFF_CENTRE
from tacit.plan.bounds.profiles import Floats

# By how much noise on sums moves a variance, as a part of it: twice a group's distance from the centre, which is given
# in mean distances. The variance of a normal law is pi / 2 squares of its mean distance.
PULL_OF_SUMS = 2 * OFF_CENTRE / (pi / 2)
# Caps are tried from a quarter of the median size up, in steps of a half octave, each vector's in turn.
BELOW_MEDIAN = 4
CAPS_PER_OCTAVE = 2
TURNS = 3


@dataclass(frozen=True)
class MomentPart:
    """One vector of a moment: its people, its noise at its share of the loss, and how much that noise counts."""

    sizes: UnitSizes
    terms: NoiseTerms
    share: float
    is_product: bool
    is_rows: bool

    def noise(self, cap: float, kept: float, cells: float) -> float:
        """Return the noise on a group of mean size as a part of what is kept of it."""
        pull = 1.0 if self.is_product or self.is_rows else PULL_OF_SUMS
        mean = max(kept, KEPT_LEAST) * max(self.sizes.mass, 1e-300) / cells
        return pull * cap * self.terms.width(self.share) / mean


def moment_caps(parts: Mapping[int, MomentPart], cells: float) -> dict[int, Cap]:
    """Return the caps of least error of the ratio, and about what each vector then errs by in a mean group."""
    found = {place: part.sizes.tail_cap for place, part in parts.items()}
    if cells > 1 and all(part.sizes.told.is_believed for part in parts.values()):
        for _ in range(TURNS):
            for place, part in parts.items():
                tried = [found | {place: cap} for cap in _tried(part.sizes)]
                found = min((found, *tried), key=lambda caps: _moment_error(parts, caps, cells))
    error = _moment_error(parts, found, cells)
    return {place: Cap(cap, Fraction(0), error * parts[place].sizes.mass / cells) for place, cap in found.items()}


def joint_weights(parts: Mapping[int, MomentPart], caps: Mapping[int, float]) -> Floats:
    """Return what people count for where all vectors have one weight."""
    weights: Floats = np.minimum.reduce([part.sizes.weights(caps[place]) for place, part in parts.items()])
    return weights


def _moment_error(parts: Mapping[int, MomentPart], caps: Mapping[int, float], cells: float) -> float:
    """Return about how far off the ratio is, as a part of it: noise, and what is scaled away unevenly."""
    weights = joint_weights(parts, caps)
    kept = {place: part.sizes.kept(weights) for place, part in parts.items()}
    noises = [part.noise(caps[place], kept[place], cells) for place, part in parts.items()]
    rows = next(kept[place] for place, part in parts.items() if part.is_rows)
    uneven = [abs(1 - kept[place] / max(rows, KEPT_LEAST)) for place, part in parts.items() if part.is_product]
    return sqrt(sum(noise * noise for noise in noises)) + sum(uneven) / max(len(uneven), 1)


def _tried(sizes: UnitSizes) -> Sequence[float]:
    low = max(sizes.median() / BELOW_MEDIAN, float(np.min(sizes.length)))
    high = min(sizes.tail_cap, float(np.max(sizes.length)))
    halves = max(0, int(log2(max(high / low, 1.0)) * CAPS_PER_OCTAVE)) + 1
    return [low * 2 ** (half / CAPS_PER_OCTAVE) for half in range(halves)]
