"""How many people are in each bin of a noisy profile, and how much they have beyond a size: the mean, and its doubt.

Bins are read together, from the lowest up, as a hidden Markov chain. Its state is about how many people a bin has, and
how fast they become fewer from bin to bin. A tail falls on, steeper rather than slower; it may end at any bin, and
people may come back after a gap, the less likely the longer it is. Each noisy bin makes states more or less likely, so
predictions change smoothly with the noise: no bin is believed or not.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, log2, sqrt

import numpy as np

from tacit.numbers import Floats
from tacit.plan.bounds.chosen import ENDS, FALSE_BIN, FALSE_SLOPE, KEEPS, UNSEEN_FALL

# Levels of people in a bin are a quarter octave apart, from one person up. Falls from bin to bin are in such steps.
PER_OCTAVE = 4
LEAST = 1
FALLS = np.array([-2, 0, 1, 2, 3, 4, 6, 8, 12])
# At most this number of noise scales of people are in a bin and not seen, except for one time in 20.
UNSEEN = log(20)
# The sums over all bins above one that are carried along: 1, people, amounts, and the squares and product of both.
SUMS = 6


@dataclass(frozen=True)
class Above:
    """Of the people in all bins above each bin: how many there are and how much they have, with all second moments."""

    people: Floats
    amounts: Floats
    people_squared: Floats
    product: Floats
    amounts_squared: Floats

    def beyond(self, place: int, size: float) -> tuple[float, float]:
        """Return how much all people in the bins above one have beyond a size, as foreseen, and its deviation."""
        if place >= len(self.people):
            return 0.0, 0.0
        people, amounts = float(self.people[place]), float(self.amounts[place])
        of_amounts = float(self.amounts_squared[place]) - amounts**2
        both = float(self.product[place]) - amounts * people
        of_people = float(self.people_squared[place]) - people**2
        return max(amounts - size * people, 0.0), sqrt(max(of_amounts - 2 * size * both + size**2 * of_people, 0.0))


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
        turns = np.eye(falls) * KEEPS
        for place in range(falls):
            turns[place, min(place + 1, falls - 1)] += (1 - KEEPS) / 2
        turns += (1 - turns.sum(axis=1, keepdims=True)) / falls
        self.back = FALSE_BIN * count  # to each level alike
        self.turns = turns * (1 - ENDS - self.back)
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

    def people(self, count: float) -> tuple[Floats, Floats]:
        """Return about how many people a bin with this noisy count has at each level, and the mean square of that."""
        mean = np.maximum((count * self.varies + self.levels * self.noise) / (self.varies + self.noise), 0.0)
        return mean, mean**2 + self.varies * self.noise / (self.varies + self.noise)

    def before(self, some: Floats, none: Floats, alive: float, dead: Floats) -> tuple[Floats, Floats]:
        """Return sums over the bins that follow, at each state of the bin before: with people, and in a gap."""
        smooth = some / 2
        smooth[..., 1:] += some[..., :-1] / 4
        smooth[..., :-1] += some[..., 1:] / 4
        smooth[..., 0] += none[:, None] / 4
        smooth[..., -1] += some[..., -1] / 4
        moved = np.concatenate([smooth.reshape(len(none), -1), none[:, None]], axis=1)[:, self.to].reshape(some.shape)
        back = self.back * some.mean(axis=(1, 2))
        follows = self.turns @ moved + (ENDS * none + back)[:, None, None]
        return follows, alive * ((1 - self.back) * none + back) + (1 - alive) * dead

    def after(self, some: Floats, none: float, alive: float) -> tuple[Floats, float, float]:
        """Return the chances of the states of the next bin, and of no one ever after."""
        turned = self.turns.T @ some
        moved = np.bincount(self.to, weights=turned.ravel(), minlength=turned.size + 1)
        ended, moved = moved[-1], moved[:-1].reshape(turned.shape)
        smooth = moved / 2
        smooth[:, 1:] += moved[:, :-1] / 4
        smooth[:, :-1] += moved[:, 1:] / 4
        smooth[:, -1] += moved[:, -1] / 4
        ended += float(np.sum(moved[:, 0])) / 4
        whole = float(np.sum(some))
        smooth += self.back * (whole + alive * none) / smooth.size
        return smooth, ended + ENDS * whole + alive * (1 - self.back) * none, (1 - alive) * none


@lru_cache(maxsize=256)
def foreseen(
    counts: tuple[float, ...], sizes: tuple[float, ...], scale: float, first: int, start: int, per_octave: int = 2
) -> tuple[Floats, Above]:
    """Return about how many people each bin has, and the sums above each; gaps fade only above the bin `start`."""
    scale = max(scale, 1e-6)
    chain, bins = _Chain(scale, 1.3 * max(*counts, 10 * scale, 1.0), per_octave), len(counts)
    fades = [2.0 ** (-FALSE_SLOPE / per_octave) if place > start else 1.0 for place in range(bins)]
    falls, levels = len(FALLS), len(chain.levels)
    some, none, dead = np.zeros((SUMS, falls, levels)), np.zeros(SUMS), np.zeros(SUMS)
    some[0], none[0], dead[0] = 1.0, 1.0, 1.0
    follows = [(some, none, dead)]
    for place in range(bins - 1, first, -1):
        likely, empty = chain.likely(counts[place])
        people, squared = chain.people(counts[place])
        size = sizes[place]
        one, first_two, own = some[0], some[1:3], np.array([1.0, size])[:, None, None]
        with_bin = some * likely  # and what the bin itself adds
        with_bin[1:3] += own * (people * one * likely)
        with_bin[3] += (2 * people * first_two[0] + squared * one) * likely
        with_bin[4] += (people * (first_two[1] + size * first_two[0]) + size * squared * one) * likely
        with_bin[5] += size * (2 * people * first_two[1] + size * squared * one) * likely
        some, none = chain.before(with_bin, none * empty, fades[place], dead := dead * empty)
        most = max(float(np.max(some[0])), float(none[0]), float(dead[0]))
        some, none, dead = some / most, none / most, dead / most
        follows.append((some, none, dead))
    means, sums = np.zeros(bins), np.zeros((SUMS, bins))
    chance, gap, over = np.full((falls, levels), 0.5 / (falls * levels)), 0.5, 0.0
    for place, (some, none, dead) in zip(range(first, bins), reversed(follows), strict=True):
        if place > first:
            chance, gap, ended = chain.after(chance, gap, fades[place])
            over += ended
        likely, empty = chain.likely(counts[place])
        chance, gap, over = chance * likely, gap * empty, over * empty
        whole = float(np.sum(chance)) + gap + over
        chance, gap, over = chance / whole, gap / whole, over / whole
        sums[:, place] = some.reshape(SUMS, -1) @ chance.ravel() + gap * none + over * dead
        means[place] = float(np.sum(chance * some[0] * chain.people(counts[place])[0])) / sums[0, place]
        sums[:, place] /= sums[0, place]
    sums[1:, :first] = (sums[1:, first] if bins > first else np.zeros(SUMS - 1))[:, None]
    return means, Above(*sums[1:])
