"""What is believed of one term's effects: the estimate that errs least, given exactly how much noise was added.

Effects are believed to be drawn around 0 with a spread, those of ordered bins near their neighbours'. Noisy sums are
the curvature times the effects, with the noise of privacy and of sampling. The estimate is the mean of what remains
possible, and its deviation says how far the truth may lie from it. Spread and smoothness are those under which the
noisy sums are most probable; a term that tells nothing is so shrunk to nothing.
"""

from dataclasses import dataclass, field

import numpy as np

from tacit.learning.starting import Start
from tacit.privacy import Flags, Floats

SPREADS = tuple(float(each) for each in np.geomspace(0.02, 3.0, 9))
SMOOTHS = (0.0, 1.0, 4.0, 16.0)
# Before anything is seen, spreads are believed to be about this, within a factor of e^1.5.
USUAL_SPREAD, SPREAD_DOUBT = 0.3, 1.5
FIRST_SPREAD, FIRST_SMOOTH = 0.5, 2.0
TINY = 1e-9


@dataclass(frozen=True)
class Believed:
    """A term's effects by class and bin, their deviations, and the spread and smoothness they were estimated with."""

    effects: Floats
    deviations: Floats
    spread: float = FIRST_SPREAD
    smooth: float = FIRST_SMOOTH

    @classmethod
    def nothing(cls, classes: int, size: int) -> "Believed":
        """Return what is believed before the first round."""
        return cls(np.zeros((classes, size)), np.zeros((classes, size)))


@dataclass(frozen=True)
class Term:
    """One term's bins: noisy counts that add up to all people, which are learned, and how many form a chain."""

    counts: Floats
    learned: Flags
    chain: int  # the first so many bins follow each other in order; 0: none do
    _kept: dict[float, Floats] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """How many bins it has."""
        return len(self.counts)

    def moved(self, known: Believed) -> Floats:
        """Return how effects move the sums of bins, per unit of curvature: centred, so that terms do not overlap."""
        means = known.effects @ self.counts / self.counts.sum()
        moved: Floats = self.counts * (known.effects - means[:, None])
        return moved

    def curved(self) -> Floats:
        """Return the same as a matrix."""
        matrix: Floats = np.diag(self.counts) - np.outer(self.counts, self.counts) / self.counts.sum()
        return matrix

    def prior(self, smooth: float) -> Floats:
        """Return the covariance of effects whose mean variance is one; bins that are not learned have none."""
        if smooth not in self._kept:
            precision = np.eye(self.size)
            for place in range(self.chain - 1):
                pair = np.ix_([place, place + 1], [place, place + 1])
                precision[pair] += smooth * np.array([[1.0, -1.0], [-1.0, 1.0]])
            covariance: Floats = np.linalg.inv(precision).astype(np.float64)
            covariance[~self.learned] = 0.0
            covariance[:, ~self.learned] = 0.0
            size = float(covariance.diagonal() @ self.counts / self.counts.sum())
            self._kept[smooth] = covariance / max(size, TINY)
        return self._kept[smooth]


def believed(
    term: Term, told: Floats, noise: float, start: Start, before: Believed, *, choose: bool, smooth: float | None
) -> Believed:
    """Return what is believed of a term, told by noisy sums of this variance; `choose` spread and smoothness anew."""
    if not term.learned.any() or term.size < 2:
        return Believed.nothing(*told.shape)
    fits = [
        _Fit(term, row, noise, float(w), float(s))
        for row, w, s in zip(told, start.curvature, start.variance, strict=True)
    ]
    spread, smoothness = before.spread, before.smooth if smooth is None else smooth
    if not term.chain:
        smoothness = 0.0
    if choose:
        smooths = (0.0,) if not term.chain else SMOOTHS if smooth is None else (smooth,)
        spread, smoothness = _likeliest(fits, smooths, start.scale)
    effects, deviations = zip(*(fit.estimate((spread * start.scale) ** 2, smoothness) for fit in fits), strict=True)
    return Believed(np.array(effects), np.array(deviations), spread, smoothness)


class _Fit:
    """One class's noisy sums of one term, and the laws they follow."""

    def __init__(self, term: Term, told: Floats, noise: float, curvature: float, variance: float) -> None:
        self.term, self.told = term, told
        curved = term.curved()
        self.curved = curvature * curved
        self.errs = noise * np.eye(term.size) + variance * curved + TINY * np.eye(term.size)

    def estimate(self, variance: float, smooth: float) -> tuple[Floats, Floats]:
        """Return the mean and the deviation of the effects that remain possible."""
        prior = variance * self.term.prior(smooth)
        seen = prior @ self.curved
        gain = np.linalg.solve(self.curved @ seen + self.errs, seen.T).T
        effects = gain @ self.told
        left = prior - gain @ seen.T
        counts = self.term.counts
        effects = np.where(self.term.learned, effects - effects @ counts / counts.sum(), 0.0)
        return effects, np.sqrt(np.maximum(left.diagonal(), 0.0))

    def explained(self, smooth: float, spreads: Floats) -> Floats:
        """Return the log likelihood of the noisy sums at each spread."""
        lower = np.linalg.cholesky(self.errs)
        signal = np.linalg.solve(lower, np.linalg.solve(lower, self.curved @ self.term.prior(smooth) @ self.curved).T)
        sizes, axes = np.linalg.eigh((signal + signal.T) / 2)
        seen = (axes.T @ np.linalg.solve(lower, self.told)) ** 2
        total = 1 + spreads[:, None] ** 2 * np.maximum(sizes, 0.0)
        likely: Floats = -0.5 * (seen / total + np.log(total)).sum(axis=1)
        return likely


def _likeliest(fits: list[_Fit], smooths: tuple[float, ...], scale: float) -> tuple[float, float]:
    """Return the spread and the smoothness under which the noisy sums are most probable."""
    spreads = np.array(SPREADS)
    doubt = -0.5 * (np.log(spreads / USUAL_SPREAD) / SPREAD_DOUBT) ** 2
    best = (-np.inf, FIRST_SPREAD, FIRST_SMOOTH)
    for smooth in smooths:
        likely = doubt + sum((fit.explained(smooth, scale * spreads) for fit in fits), np.zeros(len(spreads)))
        place = int(np.argmax(likely))
        best = max(best, (float(likely[place]), float(spreads[place]), smooth))
    return best[1], best[2]
