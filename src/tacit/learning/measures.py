"""How well a model does, from noisy counts: accuracy, log loss, AUC, calibration, RMSE, MAE and R², each with its ±.

All measures are arithmetic on released numbers. An interval covers the noise, with its exactly known spread, and
sampling: one unit counts once, with any number of rows, so n is the (noisy) number of units. The interval is for the
model's performance on the whole population of the sample. Cells add a small allowance: within one, scores
are spread as the finer counts say, and outcomes as the model itself says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from tacit.numbers import Floats
from tacit.plan import ERROR_SHIFTS, SCORE_BITS, UNIT

# The fine cells of a score: quarters from -8 to 8, in log odds. Coarser ones are made of them.
FINE_EDGES = tuple(step << (SCORE_BITS - 2) for step in range(-32, 33))
FINE_WIDTH = 1 / 4
CHANCE_LEAST = 1e-4
CELLS_LEAST, CELLS_MOST = 6, 20
# The count that a cell should have, in standard deviations of the noise.
PEOPLE_OF_CELL = 25
# The edges of probabilities, for several classes.
CHANCES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
CHANCE_EDGES = tuple(round(each * UNIT) for each in CHANCES)


@dataclass(frozen=True)
class Measure:
    """A number with its interval: value ± margin, at the score's confidence."""

    value: float
    margin: float

    @property
    def low(self) -> float:
        """The low end of the interval."""
        return self.value - self.margin

    @property
    def high(self) -> float:
        """The high end of the interval."""
        return self.value + self.margin


@dataclass(frozen=True)
class CalibrationCell:
    """People whose predicted probabilities are in one cell: their number, mean prediction and share that came true."""

    people: float
    predicted: float
    observed: Measure


@dataclass(frozen=True)
class MeasuredModel:
    """All that one release says of a model."""

    people: Measure
    measures: dict[str, Measure]
    calibration: tuple[CalibrationCell, ...] = ()


def cells_for(noisy_fine: Sequence[int], sigma: float) -> tuple[int, ...]:
    """Return the edges of a few cells that hold about equally many people, of the fine ones' edges; 0 is among them.

    `sigma` is the spread of the noise that the cells will have, in people.
    """
    people = np.maximum(np.array(noisy_fine) / UNIT, 0)
    total = float(people.sum())
    wanted = int(np.clip(total / (PEOPLE_OF_CELL * sigma), CELLS_LEAST, CELLS_MOST))
    below = np.cumsum(people)[:-1]
    marks = total * np.arange(1, wanted) / wanted
    chosen = {FINE_EDGES[int(np.argmin(np.abs(below - mark)))] for mark in marks}
    return tuple(sorted(chosen | {0}))


def two_classes(
    edges: Sequence[int],
    noisy_fine: Sequence[int],
    noisy_cells: Sequence[int],
    sigma: float,
    confidence: float,
    *,
    chances: Callable[[Floats], Floats] | None = None,
) -> MeasuredModel:
    """Return the measures of a model of two classes from (cell, class) counts; `sigma` is their noise, in people.

    `chances` maps scores to probabilities, if they are not log odds.
    """
    table = np.array(noisy_cells, dtype=np.float64).reshape(-1, 2) / UNIT
    no, yes = table[:, 0], table[:, 1]
    inner = _Inner(edges, noisy_fine, chances or (lambda scores: 1 / (1 + np.exp(-scores))))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    total = float(table.sum())
    people = Measure(total, z * sigma * sqrt(table.size))
    if total <= people.margin:
        return MeasuredModel(people, {})
    above = np.array([low >= 0 for low in inner.lows])
    right = np.where(above, yes, no).sum()
    accuracy = right / total
    wrong_side = np.where(above, 1.0, 0.0)
    gradient = np.concatenate([(1 - wrong_side) - accuracy, wrong_side - accuracy]) / total
    measures = {
        "accuracy": _with_margin_of(accuracy, _noise(gradient, sigma), accuracy * (1 - accuracy) / total, z, (0, 1))
    }
    measures["log loss"] = _log_loss(no, yes, inner, sigma, z)
    if min(no.sum(), yes.sum()) > 2 * z * sigma * sqrt(len(no)):
        measures["AUC"] = _auc(no, yes, inner, sigma, z)
    predicted = float((no + yes) @ inner.chance / total)
    observed = float(yes.sum() / total)
    gradient = (
        np.concatenate([-inner.chance - (observed - predicted), 1 - inner.chance - (observed - predicted)]) / total
    )
    spread = observed * (1 - observed) / total
    measures["calibration"] = _with_margin_of(observed - predicted, _noise(gradient, sigma), spread, z, (-1, 1))
    return MeasuredModel(people, measures, _calibration(no, yes, inner.chance, sigma, z))


def several_classes(noisy: Sequence[int], sigma: float, confidence: float) -> MeasuredModel:
    """Return the measures of a model of several classes from the counts of `ChanceCells`."""
    cells = len(CHANCES) + 1
    numbers = np.array(noisy, dtype=np.float64) / UNIT
    sure, true = numbers[: 2 * cells].reshape(-1, 2), numbers[2 * cells :]
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    total = float((sure.sum() + true.sum()) / 2)  # both count everybody
    people = Measure(total, z * sigma * sqrt(3 * cells) / 2)
    if min(sure.sum(), true.sum()) <= z * sigma * sqrt(2 * cells):
        return MeasuredModel(people, {})
    accuracy = float(sure[:, 1].sum() / sure.sum())
    gradient = np.tile([-accuracy, 1 - accuracy], cells) / sure.sum()
    measures = {
        "accuracy": _with_margin_of(accuracy, _noise(gradient, sigma), accuracy * (1 - accuracy) / total, z, (0, 1))
    }
    ends = np.array([0, *CHANCES, 1.0])
    middle = -np.log((ends[1:] + ends[:-1]) / 2)
    integral = ends - ends * np.log(np.maximum(ends, 1e-300))
    even = np.diff(integral) / np.diff(ends)  # the mean of -log p, for p spread evenly between two ends
    loss = float(true @ even / true.sum())
    spread = max(float(true @ (even - loss) ** 2 / true.sum()), 0) / total
    gap = abs(loss - float(true @ middle / true.sum())) / 2
    measures["log loss"] = _with_margin_of(loss, _noise((even - loss) / true.sum(), sigma), spread, z, (0, np.inf), gap)
    chance = (ends[1:] + ends[:-1]) / 2
    return MeasuredModel(people, measures, _calibration(sure[:, 0], sure[:, 1], chance, sigma, z))


def numbers(noisy: Sequence[int], sigma: float, confidence: float, *, width: float, largest: float) -> MeasuredModel:
    """Return the measures of a model of numbers from the sums of `ErrorSums`.

    `width` is the range of the outcome and `largest` the error that counts at most, both in the outcome's own units;
    `sigma` is the noise of every sum, in people of weight UNIT.
    """
    weights = np.array([1 / (1 << shift) for shift in ERROR_SHIFTS])
    total, size, square, fourth, outcome, outcome_square = np.array(noisy, dtype=np.float64) / UNIT / weights
    noise = sigma / weights
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    people = Measure(float(total), float(z * noise[0]))
    if total <= 2 * people.margin:
        return MeasuredModel(people, {})
    mean_size, mean_square = size / total, square / total
    error_noise = sqrt(noise[2] ** 2 + (mean_square * noise[0]) ** 2) / total
    spread = max(fourth / total - mean_square**2, 2 * mean_square**2) / total
    sure = sqrt(error_noise**2 + spread)
    measures = {"RMSE": _root_of_mean(mean_square, z * sure, largest)}
    size_noise = sqrt(noise[1] ** 2 + (mean_size * noise[0]) ** 2) / total
    size_spread = max(mean_square - mean_size**2, mean_size**2 / 4) / total
    absolute = _with_margin_of(mean_size, size_noise**2, size_spread, z, (0, 1))
    measures["MAE"] = Measure(absolute.value * largest, absolute.margin * largest)
    mean, around = outcome / total, outcome_square / total
    variance = around - mean**2
    half = width / 2
    if variance > 0 and mean_square > 0:
        fraction = mean_square * largest**2 / (variance * half**2)
        var_noise = sqrt(noise[5] ** 2 + (2 * mean * noise[4]) ** 2 + ((around - 2 * mean**2) * noise[0]) ** 2) / total
        var_spread = max(around * (1 - around), 0) / total
        relative = sqrt((sure / mean_square) ** 2 + (var_noise**2 + var_spread) / variance**2)
        measures["R²"] = Measure(float(1 - fraction), float(z * fraction * relative))
    return MeasuredModel(people, measures)


# --- two classes ---


class _Inner:
    """The content of each coarse cell: fine scores, and the spread of people of either class over them."""

    def __init__(self, edges: Sequence[int], noisy_fine: Sequence[int], chances: Callable[[Floats], Floats]) -> None:
        ends = np.array(
            [FINE_EDGES[0] - (1 << (SCORE_BITS - 2)), *FINE_EDGES, FINE_EDGES[-1] + (1 << (SCORE_BITS - 2))]
        )
        middles = (ends[1:] + ends[:-1]) / 2 / (1 << SCORE_BITS)
        people = np.maximum(np.array(noisy_fine) / UNIT, 0)
        of = np.searchsorted(np.array(edges), ends[:-1], "right")
        self.lows = [-np.inf, *edges]
        chance = np.clip(chances(middles), CHANCE_LEAST, 1 - CHANCE_LEAST)
        log_odds = np.log(chance / (1 - chance))
        self.scores: list[Floats] = []
        self.no: list[Floats] = []
        self.yes: list[Floats] = []
        self.chance = np.zeros(len(edges) + 1)
        for cell in range(len(edges) + 1):
            mine = of == cell
            weights = people[mine] + people[mine].sum() / 20 / mine.sum() + 1e-9  # noise leaves no place impossible
            self.scores.append(log_odds[mine])
            self.no.append(_adding_to_one(weights * (1 - chance[mine])))
            self.yes.append(_adding_to_one(weights * chance[mine]))
            self.chance[cell] = _adding_to_one(weights) @ chance[mine]

    def mean(self, of: Callable[[Floats], Floats], shares: list[Floats]) -> Floats:
        """Return the mean of a function of the score in each cell."""
        return np.array([share @ of(scores) for share, scores in zip(shares, self.scores, strict=True)])


def _log_loss(no: Floats, yes: Floats, inner: _Inner, sigma: float, z: float) -> Measure:
    total = no.sum() + yes.sum()

    def of_no(scores: Floats) -> Floats:
        return np.logaddexp(0, scores)

    def of_yes(scores: Floats) -> Floats:
        return np.logaddexp(0, -scores)

    losses = np.concatenate([inner.mean(of_no, inner.no), inner.mean(of_yes, inner.yes)])
    plain = np.concatenate([inner.mean(of_no, inner.yes), inner.mean(of_yes, inner.no)])
    counts = np.concatenate([no, yes])
    loss = float(counts @ losses / total)
    squares = np.concatenate(
        [inner.mean(lambda s: of_no(s) ** 2, inner.no), inner.mean(lambda s: of_yes(s) ** 2, inner.yes)]
    )
    spread = max(float(counts @ squares / total) - loss**2, 0) / total
    gap = abs(float(np.maximum(counts, 0) @ (plain - losses)) / total) / 4
    return _with_margin_of(loss, _noise((losses - loss) / total, sigma), spread, z, (0, np.inf), gap)


def _auc(no: Floats, yes: Floats, inner: _Inner, sigma: float, z: float) -> Measure:
    all_no, all_yes = no.sum(), yes.sum()
    within = np.array([_pairs_in_cell(n, y) for n, y in zip(inner.no, inner.yes, strict=True)])
    below_no = np.cumsum(no) - no + within * no  # of those who said no, how many are below this cell's yes
    above_yes = all_yes - np.cumsum(yes) + within * yes
    auc = float(yes @ below_no / (all_no * all_yes))
    gradient = np.concatenate(
        [above_yes / (all_no * all_yes) - auc / all_no, below_no / (all_no * all_yes) - auc / all_yes]
    )
    # DeLong: how the placements of either class vary; cells that noise made negative count as empty
    seen_no, seen_yes = np.maximum(no, 0), np.maximum(yes, 0)
    of_yes, of_no = below_no / all_no, above_yes / all_yes
    spread = _variance(of_yes, seen_yes) / all_yes + _variance(of_no, seen_no) / all_no
    gap = float(seen_no @ (seen_yes * (within - 0.5)) / (all_no * all_yes)) / 2
    return _with_margin_of(auc, _noise(gradient, sigma), spread, z, (0, 1), gap)


def _pairs_in_cell(no: Floats, yes: Floats) -> float:
    """Return the chance that a yes is above a no within one cell.

    In a fine cell of width h the odds rise by a factor of exp(h), if the model is right: a yes is above it in
    1/2 + h/12 of the pairs.
    """
    return float(yes @ (np.cumsum(no) - no * (1 / 2 - FINE_WIDTH / 12)))


def _calibration(no: Floats, yes: Floats, predicted: Floats, sigma: float, z: float) -> tuple[CalibrationCell, ...]:
    """Return each cell's prediction and outcome; cells with as much noise as people are left out."""
    found = []
    for of_no, of_yes, chance in zip(no.tolist(), yes.tolist(), predicted.tolist(), strict=True):
        people = of_no + of_yes
        if people > 2 * z * sigma:
            observed = min(max(of_yes / people, 0), 1)
            noise = sigma**2 * ((1 - observed) ** 2 + observed**2) / people**2
            spread = max(observed * (1 - observed), chance * (1 - chance)) / people
            found.append(CalibrationCell(people, chance, _with_margin_of(observed, noise, spread, z, (0, 1))))
    return tuple(found)


# --- arithmetic ---


def _with_margin_of(
    value: float, noise: float, spread: float, z: float, ends: tuple[float, float], gap: float = 0.0
) -> Measure:
    """Return a value with its margin, from two variances and the possible error of cells; the value is held within its
    ends.

    Noise may move a share below 0 or above 1; its sampling variance is then taken as zero.
    """
    return Measure(float(np.clip(value, *ends)), float(z * sqrt(noise + max(spread, 0.0)) + gap))


def _root_of_mean(square: float, margin: float, scale: float) -> Measure:
    """Return the root of a mean square, with a margin that covers both ends of its interval."""
    value = sqrt(max(square, 0.0))
    high, low = sqrt(max(square + margin, 0.0)), sqrt(max(square - margin, 0.0))
    return Measure(value * scale, max(high - value, value - low) * scale)


def _noise(gradient: Floats, sigma: float) -> float:
    return float(sigma**2 * (gradient @ gradient))


def _adding_to_one(weights: Floats) -> Floats:
    shares: Floats = weights / weights.sum()
    return shares


def _variance(values: Floats, weights: Floats) -> float:
    shares = weights / max(weights.sum(), 1e-9)
    return float(shares @ (values - shares @ values) ** 2)
