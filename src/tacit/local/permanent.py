"""Reports over time: a permanent answer, drawn once and kept by the client, and a fresh perturbation of it each time.

All bits of the unary encoding are perturbed once (the permanent answer) and again in every report. However many
reports are seen, they say no more than the permanent answer does: epsilon. One alone says less: epsilon_first.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.coins import ONE, draw_packed_heads, kept_chance
from tacit.local.columns import count_columns
from tacit.local.protocol import Flags, Law, Payloads
from tacit.local.unary import as_bytes, as_words, bit_law, bits_at, last_mask, no_bit_beyond, toss_bits, width_of
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers
from tacit.privacy.number import show


@dataclass(frozen=True)
class Permanent:
    """A report is as many bits as the domain has codes: the permanent answer's, each changed by a fresh coin.

    Privacy: epsilon-DP for the value behind one permanent answer, for all reports made from it together, and
    epsilon_first-DP for one of them. Each further value a person has costs epsilon again.
    """

    size: int
    epsilon: Fraction
    epsilon_first: Fraction

    name = "longitudinal"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon_first < self.epsilon:
            raise InvalidParameter(
                f"epsilon_first must be above 0 and below epsilon, {show(self.epsilon)}, not {show(self.epsilon_first)}"
                "\nhint: half of epsilon is usual"
            )

    @cached_property
    def permanent_keep(self) -> Fraction:
        """The chance that a bit of the permanent answer is the true one."""
        return kept_chance(self.epsilon / 2, outside=1)

    @cached_property
    def instant_keep(self) -> Fraction:
        """The chance that a report's bit is the permanent answer's: floored so that one report keeps epsilon_first."""
        first = kept_chance(self.epsilon_first / 2, outside=1)
        scaled = (first + self.permanent_keep - 1) / (2 * self.permanent_keep - 1) * ONE
        return Fraction(min(int(scaled), ONE - 1), ONE)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that the sender's own bit is 1 in a report."""
        first, second = self.permanent_keep, self.instant_keep
        return first * second + (1 - first) * (1 - second)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that any other bit is 1 in a report."""
        return 1 - self.keep

    @property
    def payload_bytes(self) -> int:
        """One bit a code, in whole words."""
        return 8 * width_of(self.size)

    def draw_permanent(self, codes: Integers, bits: Bits) -> Words:
        """Return a permanent answer for each code, as packed bits.

        Privacy: epsilon-DP for each code, exactly.
        """
        return toss_bits(codes, self.size, self.permanent_keep, 1 - self.permanent_keep, bits)

    def draw_instant(self, permanent: Words, bits: Bits) -> Payloads:
        """Return a fresh report of each permanent answer.

        Privacy: says no more than the permanent answer does, and one alone is epsilon_first-DP.
        """
        flips = draw_packed_heads(1 - self.instant_keep, permanent.size, bits).reshape(permanent.shape)
        flips ^= permanent
        flips[:, -1] &= last_mask(self.size)
        return as_bytes(flips)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return the first report of each code, its permanent answer forgotten.

        Privacy: epsilon_first-DP for each code.
        """
        return self.draw_instant(self.draw_permanent(codes, bits), bits)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads set no bit beyond the domain."""
        return no_bit_beyond(as_words(payloads), self.size)

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports set each bit."""
        return count_columns(as_words(payloads))[: self.size]

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code: those that set its bit."""
        return tally

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report sets the bit of each of these codes."""
        return bits_at(as_words(payloads), codes)

    def law(self, code: int) -> Law:
        """Return the chance of every first report."""
        return bit_law([self.keep if place == code else self.stray for place in range(self.size)])

    def permanent_law(self, code: int) -> Law:
        """Return the chance of every permanent answer."""
        chance = self.permanent_keep
        return bit_law([chance if place == code else 1 - chance for place in range(self.size)])

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
        return {
            "epsilon_first": str(self.epsilon_first),
            "permanent_keep": str(self.permanent_keep),
            "instant_keep": str(self.instant_keep),
        }
