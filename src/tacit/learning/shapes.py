"""The arithmetic of additive models: noisy counts become bins, and noisy residual sums become one shape for each term.

The input is only noisy integers and public facts, so all of it is post-processing. A round gives, for every bin of
every term, the sum of the model's errors so far. A term's estimate is the mean of the rounds' estimates, with larger
weights for later ones, shrunk by the exactly known variance of the noise. The spread of a term's effects, and their
smoothness, are chosen for each term to explain its noisy sums best (empirical Bayes).

The start of a fit, and its curvature: intercept, curvature and spread from a noisy histogram of the target.

Clipped residuals need a separate link: the score at which they add up to zero is not the logit of a probability, but a
known function of it. `clipped_chance` and `chance_of` go between the two, so that predictions are probabilities.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from tacit.learning.priors import TINY, Bins, Coarse, Prior, Seen, Term, TermBins, believed, bins_of, signals
from tacit.learning.rounds import Rounds
from tacit.numbers import Floats, Integers
from tacit.plan import SCORE_BITS, UNIT, ClassTarget, PairedBins, Scores, ValueTarget

# A model that knows the features is surer than its start, but features overlap, which adds curvature: about this.
FALLS_TO = 1.3
CHANCE_LEAST = 1e-3
# Cells with a count this many deviations of its noise above 0 are taken to hold people.
SEEN = 2.5
# The points at which a normal law is evaluated for a mean over it, and their weights.
POINTS, PARTS = np.polynomial.hermite_e.hermegauss(7)
PARTS = PARTS / PARTS.sum()


@dataclass(frozen=True)
class Start:
    """For each class: the intercept, curvature and variance of a residual per person; and the scale of effects."""

    intercept: Floats
    curvature: Floats
    variance: Floats
    scale: float


def start_of(
    noisy: Floats,
    link: str,
    target: ClassTarget | ValueTarget,
    middles: tuple[float, ...],
    clip: float,
    people: float,
    noise: float,
) -> Start:
    """Return where to start, from a noisy histogram of the target's cells; `noise` is the deviation of a count."""
    if isinstance(target, ClassTarget):
        classes = max(target.classes) + 1
        counts = np.array([sum(noisy[cell] for cell, c in enumerate(target.classes) if c == k) for k in range(classes)])
        shares = np.maximum(counts, CHANCE_LEAST * people)
        shares = shares / shares.sum()
        if link == "logistic":
            return _of_two(float(shares[1]), clip)
        logs, spread = np.log(shares), FALLS_TO * shares * (1 - shares)
        return Start(logs - logs.mean(), spread, spread, 1.0)
    weights = without_noise(noisy[:-1], noise) + 1e-9
    weights, values = weights / weights.sum(), np.array(middles)
    mean = float(np.clip(weights @ values, CHANCE_LEAST, 1 - CHANCE_LEAST))
    variance = float(max(weights @ (values - mean) ** 2, 1e-4))
    if link == "identity":
        return Start(np.array([mean]), np.array([1.0]), np.array([variance]), sqrt(variance))
    return Start(np.array([log(mean)]), np.array([mean]), np.array([variance]), 1.0)


def without_noise(noisy: Floats, noise: float) -> Floats:
    """Return noisy counts of cells in order, with those set to 0 that noise could have made.

    Halves are tested, then their halves: many cells of a few people each are found together even if each is too small.
    Taking every count above 0 as it is would put people all over an empty range, and make a narrow target look wide.

    >>> without_noise(np.array([90.0, 30.0, 4.0, -3.0]), 2.0).tolist()
    [90.0, 30.0, 0.0, 0.0]
    """
    total = float(noisy.sum())
    if total <= SEEN * noise * sqrt(len(noisy)):
        return np.zeros(len(noisy))
    if len(noisy) == 1:
        return np.array([total])
    half = len(noisy) // 2
    found = np.concatenate([without_noise(noisy[:half], noise), without_noise(noisy[half:], noise)])
    return found if found.any() else np.full(len(noisy), total / len(noisy))


def _of_two(share: float, clip: float) -> Start:
    chance = clipped_chance(share, clip)
    slope = chance * (1 - chance)
    curvature = slope * (share * (1 - chance <= clip) + (1 - share) * (chance <= clip))
    variance = share * min(1 - chance, clip) ** 2 + (1 - share) * min(chance, clip) ** 2
    start = np.array([log(chance / (1 - chance))])
    return Start(start, np.array([FALLS_TO * curvature]), np.array([variance]), 1.0)


@dataclass(frozen=True)
class Curved:
    """How steep residuals fall with the score, and their variance, per person: of each bin, and of all people.

    Bins' are (bins, classes, terms), or one for each class.
    """

    curvature: Floats
    variance: Floats
    of_all: Floats
    variance_of_all: Floats


def curved_at(
    start: Start, link: str, clip: float, intercept: Floats, effects: Floats, terms: TermBins, people: float
) -> Curved:
    """Return how steep residuals are at a model.

    For two classes it is the mean over the scores of a bin's people, if the other terms were independent of it: with a
    rare class, bins differ by a factor of ten. Otherwise it is the value at the start.
    """
    if link != "logistic":
        curvature, variance = start.curvature[:, None], start.variance[:, None]
        return Curved(curvature, variance, start.curvature, start.variance)
    spreads = terms.spread(effects, people)
    of_others = np.sqrt(np.maximum(spreads.sum(axis=1, keepdims=True) - spreads, 0.0))
    steep, varies = _steepness(intercept[:, None] + effects, of_others, clip)
    of_all, varies_all = _steepness(intercept, np.sqrt(spreads.sum(axis=1)), clip)
    return Curved(FALLS_TO * steep, varies, FALLS_TO * of_all, varies_all)


def _steepness(scores: Floats, deviations: Floats, clip: float) -> tuple[Floats, Floats]:
    """Return how steep residuals of two classes fall at scores around these, and their variance: means of both."""
    chance = 1 / (1 + np.exp(-(scores[..., None] + deviations[..., None] * POINTS)))
    share = chance_of(chance, clip)
    other = 1 - chance
    steep = chance * other * (share * (other <= clip) + (1 - share) * (chance <= clip))
    varies = share * np.minimum(other, clip) ** 2 + (1 - share) * np.minimum(chance, clip) ** 2
    return steep @ PARTS, varies @ PARTS


def clipped_chance(share: float, clip: float) -> float:
    """Return the p at which residuals of a share of ones, clipped, add up to zero.

    >>> clipped_chance(0.2, 0.5)
    0.125
    """
    if share > 0.5:
        return 1 - clipped_chance(1 - share, clip)
    if clip >= 1:
        return share
    if clip < 0.5:
        clip = 0.5
    low = clip * share / (1 - share)
    return low if low <= 1 - clip else share


def chance_of(chance: Any, clip: float) -> Any:
    """Return the probability that a p of clipped residuals stands for: the inverse of `clipped_chance`, of arrays.

    >>> float(chance_of(np.array([0.125]), 0.5)[0])
    0.2
    """
    clip = min(max(clip, 0.5), 1.0)
    low, high = 1 - clip, clip
    with np.errstate(divide="ignore", invalid="ignore"):
        rare = chance / (chance + clip)
        common = clip / (1 - chance + clip)
    return np.where(chance < low, rare, np.where(chance > high, common, chance))


# The least size of a bin, in standard deviations of all rounds' noise together, and of its own count's.
LEAST_NOISE, LEAST_COUNT, LEAST_PEOPLE = 3.0, 2.0, 20.0
BINS_MOST, PAIR_BINS_MOST = 32, 8
# The round t weighs about in proportion to t^WEIGHT: later ones know more of the other terms.
WEIGHT = 0.5
# Late rounds weigh in proportion to t^LATE_WEIGHT; the assumed remaining move of effects, in multiples of the late
# rounds' differences.
LATE_WEIGHT, STILL_MOVES = 6, 4.0
SCORE_UNIT = 1 << SCORE_BITS
EFFECT_MOST = 16.0


@dataclass(frozen=True)
class Recipe:
    """All public facts of a fit: features in their order, then the target's column; noise in people."""

    ordered: tuple[bool, ...]
    cells: tuple[int, ...]
    coarse: tuple[
        tuple[int, tuple[int, ...]], ...
    ]  # which features are counted in coarse cells too, and those of the fine
    pairs: tuple[tuple[int, int], ...]
    link: Any
    classes: int  # how many score vectors: 1, or the classes of softmax
    target: ClassTarget | ValueTarget
    middles: tuple[float, ...]  # of a number: the middles of its column's cells, as parts of its range
    clip: int
    rounds: int
    counts_noise: float
    round_noise: float
    monotone: tuple[int, ...]
    smooth: float | None

    @property
    def whole_noise(self) -> float:
        """The noise of the mean of all rounds, times their number: the error of a bin, in people."""
        return self.round_noise / sqrt(self.rounds)


@dataclass(frozen=True)
class Shape:
    """A term: its bins, their contributions to the score of each class, and the standard deviations of those."""

    bins: list[int]  # the bin of each cell; of a pair, of each pair of cells, the first feature's cells going slowest
    people: list[float]  # noisy
    effects: list[list[float]]
    deviations: list[list[float]]
    signals: list[float]  # of each class: how far all bins together are from noise; at most 1: they could be noise


@dataclass(frozen=True)
class Shapes:
    """A fitted model: made of noisy integers and public facts."""

    intercept: list[float]
    intercept_deviation: list[float]
    people: float  # noisy
    shapes: list[Shape]  # features, then pairs
    rounds: int
    clip: int

    def to_json(self) -> str:
        """Return it as text for a ledger or a file."""
        record = vars(self) | {"shapes": [vars(each) for each in self.shapes]}
        return json.dumps(record, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Shapes":
        record = json.loads(text)
        return cls(**(record | {"shapes": [Shape(**each) for each in record["shapes"]]}))


@dataclass(frozen=True)
class Learned:
    """The current estimate: the intercept by class and its deviation, effects and theirs by bin, class and term."""

    intercept: Floats
    intercept_deviation: Floats
    effects: Floats
    deviations: Floats
    signals: Floats

    @classmethod
    def nothing(cls, intercept: Floats, terms: TermBins) -> "Learned":
        """Return what is believed before the first round."""
        zeros = np.zeros((len(terms.counts), len(intercept), terms.counts.shape[1]))
        return cls(intercept, np.zeros_like(intercept), zeros, zeros, zeros[0])


class Late:
    """The estimate of the last rounds beside that of all: a difference beyond noise shows effects still moving."""

    def __init__(self, told: Floats) -> None:
        self.told, self.info = np.zeros_like(told), np.zeros_like(told)
        self.noise = self.shared = 0.0  # the variance of noise, and the part of it that all rounds have too

    def hear(self, time: int, step: float, told: Floats, info: Floats, noise: float) -> None:
        """Take in a round; the later one is, the more it counts."""
        own = (LATE_WEIGHT + 1) / (time + 1 + LATE_WEIGHT)
        self.told += own * (told - self.told)
        self.info += own * (info - self.info)
        self.noise = (1 - own) ** 2 * self.noise + own**2 * noise
        self.shared = (1 - own) * (1 - step) * self.shared + own * step * noise

    def moving(self, told: Floats, info: Floats, noise: float, terms: TermBins, people: float) -> Floats:
        """Return the variance, by class and term, of the remaining move of effects: equal to their latest move."""
        inside = terms.learned[:, None] & (info > 0)
        apart = self.told / np.where(inside, self.info, 1.0) - told / np.where(inside, info, 1.0)
        by_noise = (self.noise + noise - 2 * self.shared) / np.where(inside, info, 1.0) ** 2
        weights = np.where(inside, terms.counts[:, None] / people, 0.0)
        squares = (weights * (apart**2 - by_noise)).sum(axis=0)
        squares -= np.sqrt(2 * (weights**2 * by_noise**2).sum(axis=0))  # the part that noise could explain
        variance: Floats = STILL_MOVES**2 * np.maximum(squares, 0.0)
        return variance


class Blocks:
    """The map between each term, class and bin and the sums in a round's numbers."""

    def __init__(self, sizes: Sequence[int], classes: int) -> None:
        starts = np.cumsum([0, *(classes * size for size in sizes)])
        self.sizes, self.classes, self.length = tuple(sizes), classes, int(starts[-1])
        bins, kinds = np.arange(max(sizes))[:, None, None], np.arange(classes)[:, None]
        inside = bins < np.array(sizes)
        self.places = np.where(inside, starts[:-1] + kinds * np.array(sizes) + bins, 0)
        self.inside = np.broadcast_to(inside, self.places.shape)
        # with few bins the error is smaller
        self.weights = np.array([1 / size for size in sizes])

    def read(self, noisy: Floats) -> tuple[Floats, Floats]:
        """Return the noisy sums by bin, class and term, and the sum over all people, as every term tells it."""
        sums: Floats = np.where(self.inside, noisy[self.places], 0.0)
        totals = sums.sum(axis=0) @ self.weights + noisy[self.length :]
        return sums, totals / (1 + self.weights.sum())

    def tables(self, effects: Integers) -> list[Integers]:
        """Return each term's effects by class and bin."""
        return [np.ascontiguousarray(effects[:size, :, place].T) for place, size in enumerate(self.sizes)]


def learn_shapes(rounds: Rounds, recipe: Recipe) -> Shapes:
    """Return the shapes that a table's noisy rounds tell."""
    features, target = len(recipe.ordered), len(recipe.ordered)
    noisy = [each / UNIT for each in rounds.counts(list(range(features + 1 + len(recipe.coarse))))]
    people = _people_in_all(noisy[:features], recipe)
    least = max(LEAST_NOISE * recipe.whole_noise, LEAST_COUNT * recipe.counts_noise, LEAST_PEOPLE)
    coarse = {
        feature: Coarse(noisy[target + 1 + place], np.array(of_cells))
        for place, (feature, of_cells) in enumerate(recipe.coarse)
    }
    bins = [_bins(noisy, place, coarse, recipe, least, BINS_MOST) for place in range(features)]
    pairs = [_paired(noisy, pair, coarse, recipe, least) for pair in recipe.pairs]
    rounds.use_bins([*(each.of_cells for each in bins), None, *(None for _ in recipe.coarse), *pairs])
    terms = [_term(each, noisy[place], people, recipe, place) for place, each in enumerate(bins)]
    if pairs:
        found = rounds.counts([target + 1 + len(recipe.coarse) + place for place in range(len(pairs))])
        terms += [_pair_term(each / UNIT, people, recipe, least) for each in found]
    clip = recipe.clip / UNIT
    start = start_of(noisy[target], recipe.link, recipe.target, recipe.middles, clip, people, recipe.counts_noise)
    learned, times, clipped = _believed_after_rounds(rounds, recipe, TermBins(terms), start, people)
    shapes = []
    for place, term in enumerate(terms):
        cells = bins[place].of_cells if place < features else pairs[place - features].table.ravel()
        effects, deviations = (each[: term.size, :, place].T for each in (learned.effects, learned.deviations))
        found = learned.signals[:, place].tolist()
        shapes.append(
            _term_shape(cells, term, effects, deviations, found, recipe.monotone[place] if place < features else 0)
        )
    return Shapes(
        learned.intercept.tolist(), learned.intercept_deviation.tolist(), float(people), shapes, times, clipped
    )


def _people_in_all(noisy: Sequence[Floats], recipe: Recipe) -> float:
    """Return how many people there are, as all histograms tell together: those of few cells err less."""
    weights = np.array([1 / len(each) for each in noisy])
    total = float(weights @ np.array([each.sum() for each in noisy]) / weights.sum())
    return max(total, recipe.counts_noise, LEAST_PEOPLE)


def _scaled_counts(counts: Floats, people: float, least: float) -> Floats:
    """Return counts of at least the noise's contribution to zero, which add up to all people."""
    raised = np.maximum(counts, least)
    scaled: Floats = raised * (people / raised.sum())
    return scaled


def _term(bins: Bins, noisy: Floats, people: float, recipe: Recipe, place: int) -> Term:
    inner = bins.size - 1 if bins.cells(bins.size - 1) == [len(noisy) - 1] else bins.size
    chain = inner if recipe.ordered[place] else 0
    return Term(_scaled_counts(bins.counts, people, max(recipe.counts_noise, 1.0)), np.array(bins.learned), chain)


def _bins(
    noisy: Sequence[Floats], place: int, coarse: Mapping[int, Coarse], recipe: Recipe, least: float, most: int
) -> Bins:
    return bins_of(
        noisy[place],
        ordered=recipe.ordered[place],
        least=least,
        most=most,
        noise=recipe.counts_noise,
        coarse=coarse.get(place),
    )


def _paired(
    noisy: Sequence[Floats], pair: tuple[int, int], coarse: Mapping[int, Coarse], recipe: Recipe, least: float
) -> PairedBins:
    """Return coarse bins of two features together."""
    first, second = (_bins(noisy, place, coarse, recipe, least, PAIR_BINS_MOST) for place in pair)
    table = first.of_cells[:, None] * second.size + second.of_cells[None, :]
    return PairedBins(pair[0], pair[1], table)


def _pair_term(counts: Floats, people: float, recipe: Recipe, least: float) -> Term:
    return Term(_scaled_counts(counts, people, max(recipe.counts_noise, 1.0)), counts >= least, 0)


def _believed_after_rounds(
    rounds: Rounds, recipe: Recipe, terms: TermBins, start: Start, people: float
) -> tuple[Learned, int, int]:
    """Return what is believed after all rounds, how many there were, and the clip."""
    clip, times = recipe.clip, recipe.rounds
    if isinstance(recipe.target, ValueTarget):
        clip, times = _narrower_clip(recipe, start)
    place, blocks = len(recipe.ordered), Blocks(terms.sizes, recipe.classes)
    prior = Prior(terms, start.scale, recipe.smooth)
    learned = Learned.nothing(start.intercept, terms)
    told_intercept, known_intercept = np.zeros(recipe.classes), np.zeros(recipe.classes)
    told, info = np.zeros_like(learned.effects), np.zeros_like(learned.effects)
    noise, late, found = 0.0, Late(told), learned.signals
    for time in range(times):
        step = (WEIGHT + 1) / (time + 1 + WEIGHT)
        noise = (1 - step) ** 2 * noise + step**2 * recipe.round_noise**2
        tables = blocks.tables(_whole_scores(learned.effects))
        scores = Scores(
            (*tables[:place], None, *(None for _ in recipe.coarse), *tables[place:]),
            _whole_scores(learned.intercept),
            recipe.link,
            recipe.target,
            clip,
        )
        sums, of_all = blocks.read(rounds.residuals(scores) / UNIT)
        curved = curved_at(start, recipe.link, clip / UNIT, learned.intercept, learned.effects, terms, people)
        curvature = terms.counts[:, None] * curved.curvature
        centred = sums - terms.counts[:, None] * (sums.sum(axis=0) / people)
        told += step * (centred + curvature * learned.effects - told)
        info += step * (curvature - info)
        late.hear(time, step, centred + curvature * learned.effects, curvature, recipe.round_noise**2)
        told_intercept += step * (of_all + curved.of_all * people * learned.intercept - told_intercept)
        known_intercept += step * (curved.of_all * people - known_intercept)
        seen = Seen(told, info, noise + terms.counts[:, None] * curved.variance + TINY)
        effects, deviations = believed(terms, prior, seen, deviations=time == times - 1)
        if time == times - 1:
            moving = np.minimum(late.moving(told, info, noise, terms, people), terms.spread(effects, people))
            counted = effects * recipe.counts_noise / np.maximum(terms.counts[:, None], 1.0)  # info is of noisy counts
            deviations = np.where(deviations > 0, np.sqrt(deviations**2 + moving + counted**2), 0.0)
            found = signals(terms, seen, people, np.broadcast_to(moving, found.shape))
        learned = Learned(
            np.clip(told_intercept / known_intercept, -EFFECT_MOST, EFFECT_MOST),
            np.sqrt(noise + people * curved.variance_of_all) / known_intercept,
            terms.centred(effects, people),
            deviations,
            found,
        )
    return learned, times, clip


def _narrower_clip(recipe: Recipe, start: Start) -> tuple[int, int]:
    """Return a clip that a target's spread allows, and the number of rounds with it that cost the reserved loss."""
    clip, times = recipe.clip, recipe.rounds
    for _ in range(2):
        if clip / UNIT < 5 * start.scale:
            break
        clip, times = clip * 5 // 7, times * 49 // 25
    return clip, times


def _whole_scores(effects: Floats) -> Integers:
    """Return effects in whole steps of a score."""
    return np.rint(np.clip(effects, -EFFECT_MOST, EFFECT_MOST) * SCORE_UNIT).astype(np.int64)


def _term_shape(
    cells: Integers, term: Term, effects: Floats, deviations: Floats, found: list[float], monotone: int
) -> Shape:
    if monotone and term.chain > 1:
        effects = effects.copy()
        inner = slice(0, term.chain)
        for row in effects:
            row[inner] = monotone * rising(monotone * row[inner], term.counts[inner])
    return Shape(cells.tolist(), term.counts.tolist(), effects.tolist(), deviations.tolist(), found)


def rising(values: Floats, weights: Floats) -> Floats:
    """Return the nearest values, in weighted squares, that never fall (pool adjacent violators).

    >>> rising(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 1.0])).tolist()
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, of_first, many), (second, of_second, more) = pools[-2:]
            both = of_first + of_second
            pools[-2:] = [((first * of_first + second * of_second) / both, both, many + more)]
    return np.array([value for value, _, many in pools for _ in range(many)])
