"""Randomized response on chosen bits: whether what a device sends follows exactly the law promised."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

import tacit
from tacit import local
from tacit.local.protocols.protocol import LocalProtocol
from tacit.privacy.rounding import ball, certain_floor, working_precision
from tacit_gauntlet.stage.enumeration import GivenBits
from tacit_gauntlet.stage.local import EveryWord

# A coin looks at so many bits, and at the rest of 64 where they tie.
FIRST, REST = 16, 48


def responses_off_their_law(kinds_tried: Sequence[int]) -> list[str]:
    """Feed every 16-bit word, ties on either side of the chance to keep, and every other answer to each report.

    The chance is computed here from its definition, and rounded down to a whole number of 2^-64: that is what the
    coins are to have. The loss is then that of the exact law, and no more than promised.
    """
    wrong: list[str] = []
    for kinds in kinds_tried:
        epsilon = Fraction(1)
        protocol = local.make_survey(kinds, epsilon=epsilon, protocol="response").protocol
        front = tacit.RandomizedResponse(epsilon=epsilon, categories=range(kinds))
        if front.survey.protocol != protocol:
            wrong.append(f"{kinds} answers: the front draws by another law")
        for answer in range(kinds):
            wrong += wrong_reports(protocol, answer, kinds, epsilon)
        with working_precision(256):
            keep = ball(Fraction(edge_of(epsilon, kinds), 1 << 64))
            loss = (keep * (kinds - 1) / (1 - keep)).log()
            promised = ball(front.loss.epsilon)
            if not (loss <= promised and promised - loss < arb(10) ** -12):
                wrong.append(f"{kinds} answers: the loss is {loss}")
    return wrong


def edge_of(epsilon: Fraction, kinds: int) -> int:
    """Return e^ε/(e^ε + k - 1) in whole 2^-64, rounded down: the 64-bit numbers below it keep the answer."""

    def scaled() -> arb:
        odds = ball(epsilon).exp()
        return odds / (odds + (kinds - 1)) * arb(2) ** 64

    return certain_floor(scaled)


def wrong_reports(protocol: LocalProtocol, answer: int, kinds: int, epsilon: Fraction) -> list[str]:
    """Return how reports of one answer stray from the law."""
    found = []
    edge = edge_of(epsilon, kinds)
    top, rest = edge >> REST, edge & ((1 << REST) - 1)

    def codes(count: int, bits: EveryWord | GivenBits) -> list[int]:
        payloads = protocol.draw(np.full(count, answer), bits)
        return [int.from_bytes(row.tobytes(), "little") for row in payloads]

    for low, kept in ((rest - 1, True), (rest, False), (rest + 1, False)):
        if (codes(1, GivenBits([top, low << FIRST], then=0))[0] == answer) != kept:
            found.append(f"answer {answer} of {kinds}: a word {low - rest:+d} from the edge went wrong")
    # every first half, the tie's other bits one short of the edge, and others that are all the first one
    every = np.arange(1 << FIRST, dtype=np.uint16).view(np.uint64)
    tied = np.array([rest - 1 << FIRST], dtype=np.uint64)
    kept_words = codes(1 << FIRST, EveryWord(np.concatenate([every, tied]))).count(answer)
    if kept_words != top + 1:
        found.append(f"answer {answer} of {kinds}: kept by {kept_words} of 2^16 words, not {top + 1}")
    never = (1 << 64) - 1  # four coins that change the answer
    others = kinds - 1
    seen = [codes(1, GivenBits([never, word]))[0] for word in range(others)]
    if sorted([*seen, answer]) != list(range(kinds)):
        found.append(f"answer {answer} of {kinds}: the other answers are {sorted(seen)}")
    left_over = (1 << 64) % others if others > 1 else 0
    if left_over:  # such a word counts for nothing: the next one decides
        bits = GivenBits([never, never, 0])
        codes(1, bits)
        if bits.left:
            found.append(f"answer {answer} of {kinds}: a left-over word was used")
    return found
