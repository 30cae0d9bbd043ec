"""About how many people are in each bin of a noisy profile.

Bins are read together, from the lowest up, as a hidden Markov chain. Its state is about how many people a bin has, and
how fast they become fewer from bin to bin. A tail falls on as it did; it may end at any bin, and people may come back
after a gap, the less likely the longer it is. Each noisy bin makes states more or less likely, so predictions change
smoothly with the noise: no bin is believed or not.
"""

from functools import lru_cache
from math import ceil, log, log2

import numpy as np

from tacit.numbers import Floats
from tacit.plan.bounds.chosen import ENDS, FALSE_BIN, FALSE_SLOPE, KEEPS, UNSEEN_FALL

# Levels of people in a bin are a quarter octave apart, from one person up. Falls from bin to bin are in such steps.
PER_OCTAVE = 4
LEAST = 1
FALLS = np.array([-2, 0, 1, 2, 3, 4, 6, 8, 12])
# At most this number of noise scales of people are in a bin and not seen, except for one time in 20.
UNSEEN = log(20)
# The chances of each fall and level, of a gap, and that no one comes after it.
State = tuple[Floats, float, float]


class _Chain:
    """The states and moves of the chain for one scale of noise: levels times falls, and a gap or the end."""

    def __init__(self, scale: float, most: float, per_octave: int) -> None:
        self.levels = LEAST * 2.0 ** (np.arange(ceil(log2(max(most / LEAST, 2.0)) * PER_OCTAVE) + 1) / PER_OCTAVE)
        count, falls = len(self.levels), len(FALLS)
        seen = self.levels >= UNSEEN * scale
        falls_to = np.where(seen[None, :], FALLS[:, None], np.maximum(FALLS, UNSEEN_FALL)[:, None]) * 2 // per_octave
        target = np.arange(count)[None, :] - falls_to
        places = np.clip(target, 0, count - 1) + count * np.arange(falls)[:, None]
        self.to = np.where(target < 0, falls * count, places).ravel()  # the last place is the end
        self.back = FALSE_BIN * count  # to each level alike
        self.turns = np.eye(falls) * KEEPS + (1 - KEEPS) / falls
        self.turns *= 1 - ENDS - self.back
        # people of a bin vary about its level, as counts do, and by half of the way to the next level
        self.varies = self.levels + (self.levels * (2 ** (0.5 / PER_OCTAVE) - 1)) ** 2
        self.noise = 2 * scale**2
        self.scale = scale
        self.width = np.sqrt(scale**2 + self.varies / 2)

    def likely(self, count: float) -> tuple[Floats, float]:
        """Return how likely a noisy count is at each level, and where nobody is."""
        logs = -np.abs(count - self.levels) / self.width - np.log(self.width)
        none = -abs(count) / self.scale - np.log(self.scale)
        most = max(float(np.max(logs)), none)
        return np.exp(logs - most), float(np.exp(none - most))

    def people(self, count: float) -> Floats:
        """Return about how many people a bin with this noisy count has at each level."""
        mean = (count * self.varies + self.levels * self.noise) / (self.varies + self.noise)
        return np.asarray(np.maximum(mean, 0.0))

    def start(self) -> State:
        """Return the chances of the states of the first bin, before its count is known."""
        shape = len(FALLS), len(self.levels)
        return np.full(shape, 0.5 / (shape[0] * shape[1])), 0.5, 0.0

    def after(self, state: State, alive: float) -> State:
        """Return the chances of the states of the next bin, before its count is known."""
        some, gap, over = state
        turned = self.turns.T @ some
        moved = np.bincount(self.to, weights=turned.ravel(), minlength=turned.size + 1)
        ended, moved = moved[-1], moved[:-1].reshape(turned.shape)
        smooth = moved / 2
        smooth[:, 1:] += moved[:, :-1] / 4
        smooth[:, :-1] += moved[:, 1:] / 4
        smooth[:, -1] += moved[:, -1] / 4
        ended += float(np.sum(moved[:, 0])) / 4
        whole = float(np.sum(some))
        smooth += self.back * (whole + alive * gap) / smooth.size
        return smooth, ended + ENDS * whole + alive * (1 - self.back) * gap, over + (1 - alive) * gap

    def seen(self, state: State, count: float) -> State:
        """Return the chances of the states of a bin once its noisy count is known."""
        (some, gap, over), (likely, empty) = state, self.likely(count)
        some, gap, over = some * likely, gap * empty, over * empty
        whole = float(np.sum(some)) + gap + over
        return some / whole, gap / whole, over / whole

    def before(self, follows: State, count: float, alive: float) -> State:
        """Return how likely a bin's noisy count and all above it are, for each state of the bin below."""
        (some, gap, over), (likely, empty) = follows, self.likely(count)
        some, gap, over = some * likely, gap * empty, over * empty
        smooth = some / 2
        smooth[:, 1:] += some[:, :-1] / 4
        smooth[:, :-1] += some[:, 1:] / 4
        smooth[:, 0] += gap / 4
        smooth[:, -1] += some[:, -1] / 4
        moved = np.append(smooth.ravel(), gap)[self.to].reshape(some.shape)
        back = self.back * float(np.mean(some))
        some = self.turns @ moved + ENDS * gap + back
        gap = alive * ((1 - self.back) * gap + back) + (1 - alive) * over
        most = max(float(np.max(some)), gap, over)
        return some / most, gap / most, over / most


@lru_cache(maxsize=256)
def foreseen(counts: tuple[float, ...], scale: float, *, first: int, start: int, per_octave: int = 2) -> Floats:
    """Return about how many people each bin has, from the bin `first` on; gaps fade only above the bin `start`."""
    scale = max(scale, 1e-6)
    chain, bins = _Chain(scale, 1.3 * max(*counts, 10 * scale, 1.0), per_octave), len(counts)
    fades = [2.0 ** (-FALSE_SLOPE / per_octave) if place > start else 1.0 for place in range(bins)]
    states, state = list[State](), chain.start()
    for place in range(first, bins):
        state = chain.seen(state if place == first else chain.after(state, fades[place]), counts[place])
        states.append(state)
    follows: State = np.ones_like(states[0][0]), 1.0, 1.0
    means = np.zeros(bins)
    for place in range(bins - 1, first - 1, -1):
        (some, gap, over), (with_some, with_gap, with_over) = states.pop(), follows
        chances = some * with_some
        whole = float(np.sum(chances)) + gap * with_gap + over * with_over
        means[place] = float(np.sum(chances @ chain.people(counts[place]))) / whole
        follows = chain.before(follows, counts[place], fades[place])
    return means
