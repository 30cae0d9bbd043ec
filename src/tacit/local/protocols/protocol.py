"""The interface of every local protocol, the exact probabilities they share, and the simplest one: randomized response.

A protocol turns an answer's code into a payload of fixed length, and counts payloads. Labels, files and people are left
to other modules. Payloads are rows of bytes, all of one length, so that a report's size reveals nothing; every
probability is an exact rational. Estimates from the counts are left to `estimate.py`.

Every protocol has a public `name`, the loss `epsilon` of one report, the length `payload_bytes` of a payload, and its
`parameters` as the header states them. `draw` returns a payload for each code, `valid` which payloads it could have
made, `tally` the counters of valid payloads and `merge` those of two batches. A protocol for counts has codes 0, …,
size - 1: a report supports its sender's code with chance `keep` and any other code with chance `stray`, for every
sender's code, and an estimate needs no more than that. `supports` is how many reports support each code, `supporting`
which of some codes each report supports.

Randomized response on k codes reports the code itself with probability e^ε/(e^ε + k - 1), and otherwise any other code,
uniformly.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise import ONE, Bits, draw_below, draw_heads
from tacit.numbers import Flags, Integers, ball, certain_floor, show

# A row of bytes for each report: (reports, payload_bytes)
Payloads = NDArray[np.uint8]

# A report changed with a smaller probability equals the answer; a report with a smaller gain over guessing carries no
# information.
LEAST = Fraction(1, 2**53)
EPSILON_MOST = 1000


class SupportCounts:
    """Counters that are one number for each code: how many reports support it."""

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code."""
        return tally


@lru_cache(maxsize=512)
def kept_chance(epsilon: Fraction, *, inside: int = 1, outside: int) -> Fraction:
    """Return the chance of an output among `inside` favoured ones, with `outside` others: a·e^ε/(a·e^ε + b), floored.

    A favoured output is then at most e^epsilon times as likely as any other one, exactly. A chance that is one, or
    no better than even, to the precision of a float is refused.

    >>> float(kept_chance(Fraction(1), outside=1))
    0.7310585786300049
    """
    if epsilon > EPSILON_MOST:  # before a power of it fills the memory
        raise reveals(epsilon)
    chance = Fraction(certain_floor(lambda: ONE * inside / (inside + outside * ball(-epsilon).exp())), ONE)
    if 1 - chance < LEAST:
        raise reveals(epsilon)
    if chance - Fraction(inside, inside + outside) < LEAST * Fraction(inside, inside + outside):
        raise InvalidParameter(
            f"at epsilon = {show(epsilon)} a report keeps the answer no more often than a guess would, to 2^-53: "
            "it carries no information\nhint: usual values are 0.5 to 5"
        )
    return chance


def reveals(epsilon: Fraction) -> InvalidParameter:
    """Return the refusal of an epsilon so large that a report gives no protection."""
    return InvalidParameter(
        f"at epsilon = {show(epsilon)} fewer than one answer in 2^53 is changed: a report is the answer itself "
        "and gives no protection\nhint: usual values are 0.5 to 5"
    )


@dataclass(frozen=True)
class Spread:
    """The variance that one report adds to an estimated count, by which protocols are compared."""

    holder: Fraction
    other: Fraction

    def mean_over(self, size: int) -> float:
        """The variance of one report's estimate, averaged over the domain's codes."""
        return float((self.holder + (size - 1) * self.other) / size)


def spread_of(keep: Fraction, stray: Fraction) -> Spread:
    """Return the variance that a report adds to the estimated count of its own code, and of any other."""
    gain = (keep - stray) ** 2
    return Spread(keep * (1 - keep) / gain, stray * (1 - stray) / gain)


def code_type(size: int) -> np.dtype[Any]:
    """Return the shortest unsigned type that holds 0, …, size - 1, of 1, 2, 4 or 8 bytes."""
    for bytes_ in (1, 2, 4):
        if size <= 1 << 8 * bytes_:
            return np.dtype(f"<u{bytes_}")
    return np.dtype("<u8")


def as_payloads(records: NDArray[Any]) -> Payloads:
    """Return an array of fixed-size records as rows of bytes."""
    contiguous = np.ascontiguousarray(records)
    return contiguous.view(np.uint8).reshape(len(contiguous), -1 if len(contiguous) else contiguous.dtype.itemsize)


def as_records(payloads: Payloads, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows of bytes as the records they hold."""
    return np.ascontiguousarray(payloads).view(dtype).reshape(len(payloads))


# ---- randomized response ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Response(SupportCounts):
    """Binary (size 2) and k-ary randomized response; a report is one code.

    Privacy: epsilon-DP for each code: chances `keep` and (1 - keep)/(k - 1), with a ratio of at most e^epsilon.
    """

    size: int
    epsilon: Fraction

    name = "response"

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report is the sender's code."""
        return kept_chance(self.epsilon, outside=self.size - 1)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that a report is any one other code."""
        return (1 - self.keep) / (self.size - 1)

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return code_type(self.size)

    @property
    def payload_bytes(self) -> int:
        """A code."""
        return self._type.itemsize

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly; the time does not depend on the codes.
        """
        return as_payloads(respond(codes, self.size, self.keep, bits).astype(self._type))

    def codes_of(self, payloads: Payloads) -> Integers:
        return as_records(payloads, self._type).astype(np.int64)

    def valid(self, payloads: Payloads) -> Flags:
        return as_records(payloads, self._type) < self.size

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports name each code."""
        return np.bincount(as_records(payloads, self._type), minlength=self.size)

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        found: Flags = as_records(payloads, self._type)[:, None] == codes[None, :]
        return found

    def parameters(self) -> dict[str, str | int]:
        return {"keep": str(self.keep)}


def respond(codes: Integers, size: int, keep: Fraction, bits: Bits) -> Integers:
    """Return each code itself with chance `keep`, and else any other of the `size` codes, evenly.

    Privacy: ln(keep·(size - 1)/(1 - keep)) for each code, exactly; neither the time nor the bits depend on the codes.
    """
    kept = draw_heads(keep, len(codes), bits)
    others = draw_below(size - 1, len(codes), bits)
    others += others >= codes  # any code but the sender's
    return np.where(kept, codes, others)
