"""Randomized response on every string of bits: whether what a device sends follows exactly the law promised."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

import tacit
from tacit.privacy.rounding import ball, certain_floor, working_precision
from tacit_gauntlet.stage.enumeration import GivenBits

NARROW = 8


def responses_off_their_law(kinds_tried: Sequence[int]) -> list[str]:
    """Feed every pair of 8-bit words, and 64-bit words on either side of the chance to keep, to each answer's report.

    The chance is computed here from its definition. The loss is then that of the exact law.
    """
    wrong: list[str] = []
    for kinds in kinds_tried:
        epsilon = Fraction(1)
        response = tacit.RandomizedResponse(epsilon=epsilon, categories=range(kinds))
        for answer in range(kinds):
            wrong += wrong_reports(response, answer, kinds, epsilon)
        with working_precision(256):
            keep = chance_to_keep(epsilon, kinds)
            loss = (keep * (kinds - 1) / (1 - keep)).log()
            if not abs(loss - ball(response.loss.epsilon)) < arb(10) ** -12:
                wrong.append(f"{kinds} answers: the loss is {loss}")
    return wrong


def chance_to_keep(epsilon: Fraction, kinds: int) -> arb:
    """Return e^ε/(e^ε + k - 1)."""
    odds = ball(epsilon).exp()
    return odds / (odds + (kinds - 1))


def wrong_reports(response: tacit.RandomizedResponse, answer: int, kinds: int, epsilon: Fraction) -> list[str]:
    """Return how reports of one answer stray from the law."""
    found = []
    for width in (NARROW, 64):
        edge = certain_floor(lambda width=width: chance_to_keep(epsilon, kinds) * arb(2) ** width)  # type: ignore[misc]
        for word, kept in ((edge - 1, True), (edge + 1, False)):
            report = response._draw(np.array([answer]), GivenBits([word], then=0), width)[0]
            if (report == answer) != kept:
                found.append(f"answer {answer} of {kinds}: {width}-bit word {word - edge:+d} from the edge went wrong")
    others = kinds - 1
    usable = (1 << NARROW) // others * others
    edge = certain_floor(lambda: chance_to_keep(epsilon, kinds) * arb(2) ** NARROW)
    first = [word for word in range(1 << NARROW) if word != edge for _ in range(usable)]
    second = list(range(usable)) * ((1 << NARROW) - 1)
    answers = np.full(len(first), answer)
    reports = response._draw(answers, GivenBits(first + second), NARROW)
    seen = np.bincount(reports, minlength=kinds).tolist()
    changed = ((1 << NARROW) - 1 - edge) * usable
    expected = [edge * usable if code == answer else changed // others for code in range(kinds)]
    if seen != expected:
        found.append(f"answer {answer} of {kinds}: {seen} paths, not {expected}")
    for word in range(usable, 1 << NARROW):  # left-over words count for nothing: the next one decides
        bits = GivenBits([edge + 1, word, 0])
        response._draw(np.array([answer]), bits, NARROW)
        if bits.left:
            found.append(f"answer {answer} of {kinds}: the left-over word {word} was used")
    return found
