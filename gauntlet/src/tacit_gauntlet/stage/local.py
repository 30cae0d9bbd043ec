"""What the local model's cases share: every protocol on a small domain, and bits that count through all words."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.choosing import FREQUENCIES, MEANS, frequency_protocol
from tacit.local.protocols.attributes import METHODS
from tacit.local.protocols.hashing import PrefixHashing
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.protocol import FrequencyProtocol, Law
from tacit.local.protocols.unary import Permanent
from tacit.local.survey import make_survey
from tacit.privacy.arrays import Words

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
        yield protocol.name, promised, [protocol.law(code) for code in range(SMALL)]
    permanent = Permanent(SMALL, 2 * epsilon, epsilon)
    yield "permanent answers", 2 * epsilon, [permanent.permanent_law(code) for code in range(SMALL)]
    for kind in MEANS:
        small = MeanResponse(epsilon, kind, grid_bits=3)  # type: ignore[arg-type]
        yield kind, epsilon, [small.law(code) for code in range(small.steps + 1)]
    for method in METHODS:
        attributes: Any = make_survey(attributes={"a": 2, "b": 3}, method=method, epsilon=epsilon).protocol
        yield f"attributes, {method}", epsilon, [attributes.law(codes) for codes in product(range(2), range(3))]
    prefix = PrefixHashing(epsilon, 4, 3)
    yield prefix.name, epsilon, [prefix.law(cell) for cell in range(prefix.cells)]


def people(size: int, count: int) -> NDArray[np.int64]:
    """Return answers of so many people, few of them common and most rare: the same every time."""
    shares = 1 / np.arange(1, size + 1)
    return np.repeat(
        np.arange(size), np.diff(np.floor(np.cumsum(np.append(0, shares)) / shares.sum() * count)).astype(int)
    )


def supports_of(protocol: FrequencyProtocol, payloads: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many payloads support each code."""
    return protocol.supports(protocol.tally(payloads))
