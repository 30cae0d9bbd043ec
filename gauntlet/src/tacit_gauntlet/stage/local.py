"""What the local model's cases share: every protocol on a small domain, and bits that count through all words."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.local import choosing, wire
from tacit.local import survey as surveys
from tacit.local.choosing import FREQUENCIES, frequency_protocol
from tacit.local.client import label_reports
from tacit.local.protocols import protocol as protocols
from tacit.local.protocols.hashing import PrefixHashing
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.unary import Permanent
from tacit.local.survey import METHODS
from tacit.noise import coins
from tacit.numbers import Words
from tacit_gauntlet.stage.balls import ball, floor_of
from tacit_gauntlet.stage.enumeration import GivenBits
from tacit_gauntlet.stage.local_laws import Law, law_of, permanent_law
from tacit_gauntlet.stage.samplers import Bits, fresh_bits

# what the functions below take and give
FrequencyProtocol = choosing.FrequencyProtocol
LocalProtocol = surveys.LocalProtocol
Payloads = protocols.Payloads

# why a collector rejects a line
MALFORMED, DUPLICATE, OUT_OF_RANGE = wire.MALFORMED, wire.DUPLICATE, wire.OUT_OF_RANGE
WRONG_VERSION, WRONG_SURVEY, WRONG_EPOCH = wire.WRONG_VERSION, wire.WRONG_SURVEY, wire.WRONG_EPOCH

LONGITUDINAL = Permanent.name
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(4))
SMALL = 4


class EveryWord:
    """Bits that give the words handed over, in order, and zeros after them: to run a sampler on every word there is."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def words(self, n: int, width: int = 64) -> Words:  # noqa: ARG002 (words are already as wide as asked)
        given, self._words = self._words[:n], self._words[n:]
        return np.concatenate([given, np.zeros(n - len(given), dtype=np.uint64)])


def frequency_protocols(size: int, epsilon: Fraction) -> Iterator[FrequencyProtocol]:
    """Yield one of every protocol for counts."""
    for name in FREQUENCIES:
        yield frequency_protocol(name, size, epsilon)
    yield Permanent(size, 2 * epsilon, epsilon)


def exact_laws(epsilon: Fraction) -> Iterator[tuple[str, Fraction, list[Law]]]:
    """Yield every randomizer's name, its promised loss, and its exact law for each answer of a small domain."""
    for protocol in frequency_protocols(SMALL, epsilon):
        promised = epsilon if isinstance(protocol, Permanent) else protocol.epsilon
        yield protocol.name, promised, [law_of(protocol, code) for code in range(SMALL)]
    permanent = Permanent(SMALL, 2 * epsilon, epsilon)
    yield "permanent answers", 2 * epsilon, [permanent_law(permanent, code) for code in range(SMALL)]
    small = MeanResponse(epsilon, grid_bits=3)
    yield small.name, epsilon, [law_of(small, code) for code in range(small.steps + 1)]
    for method in METHODS:
        attributes: Any = surveys.make_survey(attributes={"a": 2, "b": 3}, method=method, epsilon=epsilon).protocol
        yield f"attributes, {method}", epsilon, [law_of(attributes, codes) for codes in product(range(2), range(3))]
    prefix = PrefixHashing(epsilon, 4, 3)
    yield prefix.name, epsilon, [law_of(prefix, cell) for cell in range(prefix.cells)]


def people(size: int, count: int) -> NDArray[np.int64]:
    """Return answers of so many people, few of them common and most rare: the same every time."""
    shares = 1 / np.arange(1, size + 1)
    return np.repeat(
        np.arange(size), np.diff(np.floor(np.cumsum(np.append(0, shares)) / shares.sum() * count)).astype(int)
    )


def supports_of(protocol: FrequencyProtocol, payloads: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many payloads support each code."""
    return protocol.supports(protocol.tally(payloads))


def survey_from(header: Any) -> object:
    """Return the survey that a header in a file is read as."""
    return surveys.survey_of(header)


def frequency_names() -> list[str]:
    """Return the names of the protocols for counts that a survey may have."""
    return list(FREQUENCIES)


def is_longitudinal(survey: Any) -> bool:
    """Return whether a survey keeps a permanent answer of each person."""
    return isinstance(survey.protocol, Permanent)


def permanent_keep(survey: Any) -> Fraction:
    """Return the chance that a permanent answer has a bit as it is."""
    if not isinstance(survey.protocol, Permanent):
        raise TypeError("the survey should be longitudinal")
    return survey.protocol.permanent_keep


def spread(protocol: FrequencyProtocol, size: int) -> float:
    """Return the variance that one report adds to an estimate, on average over so many answers."""
    return float(protocols.spread_of(protocol.keep, protocol.stray).mean_over(size))


def drawn(protocol: FrequencyProtocol, codes: Any) -> Payloads:
    """Return what clients with these answers send."""
    return protocol.draw(codes, fresh_bits())


def random_words(count: int) -> Words:
    """Return words that nobody can predict."""
    return fresh_bits().words(count)


def counted(collector: Any) -> NDArray[np.int64]:
    """Return how many reports that a collector used support each code."""
    found: NDArray[np.int64] = collector.survey.protocol.supports(collector._tally)
    return found


# ---- on the wire ---------------------------------------------------------------------------------------------------


def labelled(survey: Any, payloads: Payloads) -> Any:
    """Return payloads as the reports that clients would send them in."""
    return label_reports(survey, payloads)


def report_lines(reports: Any) -> list[str]:
    """Return reports as the lines of a file."""
    return wire.report_lines(reports).splitlines()


def report_line(report: Any) -> str:
    """Return one report as a line."""
    return wire.report_line(report)


def header_line(survey: Any) -> str:
    """Return the line that a file of reports begins with."""
    return wire.header_line(survey)


# ---- coins ---------------------------------------------------------------------------------------------------------


def kept_chance(epsilon: Fraction, *, outside: int) -> Fraction:
    """Return the chance to keep an answer beside so many others."""
    return protocols.kept_chance(epsilon, outside=outside)


def heads(chance: Fraction, count: int, bits: Bits) -> Any:
    """Toss a coin so many times by the bits given."""
    return coins.draw_heads(chance, count, bits)


def packed_heads(digits: int, bits: Bits, count: int) -> tuple[Any, Any]:
    """Toss 64 coins at a time of chance digits/256, and return heads and what 8 bits leave undecided."""
    tossed, undecided = coins._toss_levels(digits, np.full(count, ~np.uint64(0)), bits)
    return tossed, undecided


def choices(most: int, count: int, bits: Bits, *, width: int) -> Any:
    """Choose evenly below `most`, so many times, by words of `width` bits."""
    return coins.draw_below(most, count, bits, width=width)


# A coin looks at so many bits, and at the rest of 64 where they tie.
FIRST, REST = 16, 48


def edge_of(epsilon: Fraction, kinds: int) -> int:
    """Return e^ε/(e^ε + k - 1) in whole 2^-64, rounded down: the 64-bit numbers below it keep the answer."""

    def scaled() -> arb:
        odds = ball(epsilon).exp()
        return odds / (odds + (kinds - 1)) * arb(2) ** 64

    return floor_of(scaled)


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
