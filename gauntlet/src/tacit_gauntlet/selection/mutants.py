"""Published bugs of selection, planted in our mechanisms: each must be killed by the case that names it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted

Planted = AbstractContextManager[None]


# ---- the exponential mechanism -------------------------------------------------------------------------------------


@mutant("weights of raw scores", killed_by="N08", published="exponential mechanisms that overflow to NaN")
def weights_of_raw_scores() -> Planted:
    """Take e to the score itself, without the best one subtracted."""

    def pick(self: Any, steps: Any, bits: Any) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            chances = np.exp(float(self.terms.rate) * steps)
            sums = np.cumsum(chances / chances.sum())
        return int(np.searchsorted(sums, int(bits.words(1)[0]) * 2.0**-64, side="right"))

    return planted("Exponential.pick", pick)


@mutant("weights decided in floats", killed_by="N08", published="exponential mechanisms that sample by a float softmax")
def weights_decided_in_floats() -> Planted:
    """Take what the float sums say, whatever their error."""

    return planted("settle a weight", lambda *arguments: arguments[2])  # low, where the sums say it begins


# ---- charges -------------------------------------------------------------------------------------------------------


@mutant("permute-and-flip charged as the exponential mechanism", killed_by="N09", published="OpenDP issue 2911")
def permute_and_flip_charged_less() -> Planted:
    """Charge epsilon²/8 for a choice whose log-chances move by more than a range of epsilon."""
    return planted("PermuteAndFlip.event", property(lambda self: original("ExponentialChoice")(self.terms.epsilon)))


@mutant("noisy max charged as the exponential mechanism", killed_by="N09", published="noise taken for Gumbel's")
def noisy_max_charged_less() -> Planted:
    """Charge epsilon²/8 for Laplace noise."""
    return planted("NoisyMax.event", property(lambda self: original("ExponentialChoice")(self.terms.epsilon)))


@mutant("scores that move both ways, noise for one", killed_by="N09", published="report noisy max with scale 1/epsilon")
def noise_for_one_way() -> Planted:
    """Forget the factor 2 of scores that move against each other."""
    return planted("Terms.reach", property(lambda self: self.moves))


@mutant("ties go to the first", killed_by="N09", published="argmax of discrete noise")
def ties_go_to_the_first() -> Planted:
    """Break ties of noisy scores by position."""

    def pick(self: Any, steps: Any, bits: Any) -> int:
        noise = original("laplace_tables")(1 / self.terms.rate, original("WIDTH")).draw(len(steps), bits)
        return int(np.argmax(original("add_steps")(steps, noise)))

    return planted("NoisyMax.pick", pick)


@mutant("the best always taken", killed_by="N09", published="flips whose chance rounds to 1")
def the_best_always_taken() -> Planted:
    """Stop at the first candidate in order whose coin says yes, instead of in random order."""
    return planted("draw_below in permute-and-flip", lambda *arguments: np.zeros(arguments[1], dtype=np.int64))


# ---- sparse vectors ------------------------------------------------------------------------------------------------


def _rates(*, threshold: Fraction = Fraction(1), score: Fraction = Fraction(1), paid: bool = False) -> Planted:
    """Multiply the losses per step, and with `paid` the scores' by the number of yeses."""
    split = original("split_epsilon")

    def wrong(epsilon: Fraction, moves: int, reach: int, answers: int) -> Any:
        right = split(epsilon, moves, reach, answers)
        return original("Split")(right.threshold_rate * threshold, right.score_rate * score * (answers if paid else 1))

    return planted("split_epsilon", wrong)


@mutant("sparse vector: noisy scores released", killed_by="N10", published="Roth 2011, lecture notes")
def noisy_scores_released() -> Planted:
    """Release the noisy score beside each yes."""

    def answers(self: Any, steps: Any, runs: int, bits: Any) -> list[Any]:
        thresholds = self._noisy_thresholds(runs, bits)
        noise = original("laplace_tables")(1 / self.split.score_rate, original("WIDTH")).draw(runs * len(steps), bits)
        noisy = original("add_steps")(np.tile(steps, runs), noise).reshape(runs, len(steps))
        return [np.where(row >= least, row, 0) for row, least in zip(noisy, thresholds, strict=True)]

    return planted("AboveThreshold.answers", answers)


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
    return planted("AboveThreshold.lengths", lambda *arguments: [arguments[1].shape[1]] * len(arguments[1]))


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


@mutant("ranked by rows", killed_by="S31", published="a mode by rows, paid for as if one person moved it by one")
@contextmanager
def ranked_by_rows() -> Iterator[None]:
    chosen = original("chosen groups")

    def by_rows(choice: Any, exact: Any) -> Any:
        return chosen(choice, replace(exact, sums={**exact.sums, "units": exact.sums["rows"]}))

    with planted("chosen groups", by_rows):
        yield
