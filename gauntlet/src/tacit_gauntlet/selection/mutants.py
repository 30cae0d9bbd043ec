"""Published bugs of selection, planted in our mechanisms: each must be killed by the case that names it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.noise import grid
from tacit.noise.bits import Bits
from tacit.noise.laplace import laplace_tables
from tacit.noise.threshold import WIDTH
from tacit.privacy.arrays import Integers
from tacit.privacy.event import ExponentialChoice
from tacit.selection import selection, sparse_vector, weights
from tacit.selection.scores import Terms
from tacit.selection.selection import Exponential, NoisyMax, PermuteAndFlip
from tacit.selection.sparse_vector import AboveThreshold, Split
from tacit_gauntlet.frame.mutant import mutant, planted

Planted = AbstractContextManager[None]


# ---- the exponential mechanism -------------------------------------------------------------------------------------


@mutant("weights of raw scores", killed_by="N08", published="exponential mechanisms that overflow to NaN")
def weights_of_raw_scores() -> Planted:
    """Take e to the score itself, without the best one subtracted."""

    def pick(self: Exponential, steps: Integers, bits: Bits) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            chances = np.exp(float(self.terms.rate) * steps)
            sums = np.cumsum(chances / chances.sum())
        return int(np.searchsorted(sums, int(bits.words(1)[0]) * 2.0**-64, side="right"))

    return planted(Exponential, "_pick", pick)


@mutant("weights decided in floats", killed_by="N08", published="exponential mechanisms that sample by a float softmax")
def weights_decided_in_floats() -> Planted:
    """Take what the float sums say, whatever their error."""

    return planted(weights, "_settle", lambda *arguments: arguments[2])  # low, where the sums say it begins


# ---- charges -------------------------------------------------------------------------------------------------------


@mutant("permute-and-flip charged as the exponential mechanism", killed_by="N09", published="OpenDP issue 2911")
def permute_and_flip_charged_less() -> Planted:
    """Charge epsilon²/8 for a choice whose log-chances move by more than a range of epsilon."""
    return planted(PermuteAndFlip, "event", property(lambda self: ExponentialChoice(self.terms.epsilon)))


@mutant("noisy max charged as the exponential mechanism", killed_by="N09", published="noise taken for Gumbel's")
def noisy_max_charged_less() -> Planted:
    """Charge epsilon²/8 for Laplace noise."""
    return planted(NoisyMax, "event", property(lambda self: ExponentialChoice(self.terms.epsilon)))


@mutant("scores that move both ways, noise for one", killed_by="N09", published="report noisy max with scale 1/epsilon")
def noise_for_one_way() -> Planted:
    """Forget the factor 2 of scores that move against each other."""
    return planted(Terms, "reach", property(lambda self: self.moves))


@mutant("ties go to the first", killed_by="N09", published="argmax of discrete noise")
def ties_go_to_the_first() -> Planted:
    """Break ties of noisy scores by position."""

    def pick(self: NoisyMax, steps: Integers, bits: Bits) -> int:
        noise = laplace_tables(1 / self.terms.rate, WIDTH).draw(len(steps), bits)
        return int(np.argmax(grid.add_steps(steps, noise)))

    return planted(NoisyMax, "_pick", pick)


@mutant("the best always taken", killed_by="N09", published="flips whose chance rounds to 1")
def the_best_always_taken() -> Planted:
    """Stop at the first candidate in order whose coin says yes, instead of in random order."""
    return planted(selection, "draw_below", lambda *arguments: np.zeros(arguments[1], dtype=np.int64))


# ---- sparse vectors ------------------------------------------------------------------------------------------------


def _rates(*, threshold: Fraction = Fraction(1), score: Fraction = Fraction(1), paid: bool = False) -> Planted:
    """Multiply the losses per step, and with `paid` the scores' by the number of yeses."""
    split = sparse_vector.split_epsilon

    def wrong(epsilon: Fraction, moves: int, reach: int, answers: int) -> Split:
        right = split(epsilon, moves, reach, answers)
        return Split(right.threshold_rate * threshold, right.score_rate * score * (answers if paid else 1))

    return planted(sparse_vector, "split_epsilon", wrong)


@mutant("sparse vector: noisy scores released", killed_by="N10", published="Roth 2011, lecture notes")
def noisy_scores_released() -> Planted:
    """Release the noisy score beside each yes."""

    def answers(self: AboveThreshold, steps: Integers, runs: int, bits: Bits) -> list[Any]:
        thresholds = self._noisy_thresholds(runs, bits)
        noise = laplace_tables(1 / self.split.score_rate, WIDTH).draw(runs * len(steps), bits)
        noisy = grid.add_steps(np.tile(steps, runs), noise).reshape(runs, len(steps))
        return [np.where(row >= least, row, 0) for row, least in zip(noisy, thresholds, strict=True)]

    return planted(AboveThreshold, "_answers", answers)


@mutant("sparse vector: noise for one yes", killed_by="N10", published="Lee and Clifton 2014, top-k frequent itemsets")
def noise_for_one_yes() -> Planted:
    """Forget that the scores' noise grows with the number of yeses."""
    return _rates(paid=True)


@mutant("sparse vector: no noise on scores", killed_by="N10", published="Stoddard et al. 2014, feature selection")
def no_noise_on_scores() -> Planted:
    """Compare the exact scores with the noisy threshold."""
    return _rates(score=Fraction(10**5))


@mutant("sparse vector: no end", killed_by="N10", published="Chen et al. 2015, private data synthesis")
def no_end() -> Planted:
    """Go on after the last yes paid for."""
    return planted(AboveThreshold, "_lengths", lambda *arguments: [arguments[1].shape[1]] * len(arguments[1]))


@mutant("sparse vector: no end, half the noise", killed_by="N10", published="Chen and Machanavajjhala 2015, GPTT")
@contextmanager
def no_end_and_half_the_noise() -> Iterator[None]:
    """Go on after the last yes, with noise for scores that move one way."""
    with no_end(), _rates(score=Fraction(2)):
        yield


@mutant("sparse vector: exact threshold", killed_by="N10", published="threshold noise left out; Lyu et al. 2017")
def exact_threshold() -> Planted:
    """Compare noisy scores with the threshold itself."""
    return _rates(threshold=Fraction(10**5))


@mutant("sparse vector: half the noise", killed_by="N10", published="scores taken for one-way; Lyu et al. 2017")
def half_the_noise() -> Planted:
    """Forget the factor 2 of scores that move against the threshold."""
    return _rates(score=Fraction(2))
