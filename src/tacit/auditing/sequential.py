"""A test that may be stopped, saved and taken up again at any time: a bet against the claim, paid draw by draw.

For an event fixed beforehand, a pair of draws (one of each input) pays X - e^epsilon·Y - delta; its expectation is at
most 0 while the claim holds. A bet of a share of the money on it can then not expect to gain: money multiplied
1/alpha-fold, at any time, refutes the claim with a false-alarm rate of alpha (Ville's inequality;
docs/proofs/auditing.md). The money of a mixture of fixed bets depends on four counts only, which are the whole state.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.auditing.lower_bound import largest_epsilon
from tacit.errors import InvalidParameter
from tacit.privacy import Number, ball, decimal_meaning, working_precision

# The shares bet on each pair, mixed evenly: much against claims that are far off, little against near misses.
BETS = tuple(Fraction(19, 20 * 2 ** (place // 2)) * (Fraction(7, 10) if place % 2 else 1) for place in range(28))
PAIRS_AT_ONCE = 64
_PRECISION = 128


@dataclass(frozen=True)
class Bets:
    """The state of a bet on one event: the number of pairs of draws with the event in both, in one, or in neither.

    `likelier` is the input on which the event is suspected to be likelier than the claim allows.

    >>> bets = Bets().seen([True] * 80, [False] * 80)
    >>> bets.refutes(epsilon=1, delta=0, alpha=Fraction(1, 10**6)), Bets.from_json(bets.to_json()) == bets
    (True, True)
    """

    both: int = 0
    likelier_alone: int = 0
    rarer_alone: int = 0
    neither: int = 0

    @property
    def pairs(self) -> int:
        """How many pairs of draws it has seen."""
        return self.both + self.likelier_alone + self.rarer_alone + self.neither

    def seen(self, likelier: Sequence[bool] | NDArray[np.bool_], rarer: Sequence[bool] | NDArray[np.bool_]) -> "Bets":
        """Return the state after further pairs: whether the event happened on each input."""
        one, other = np.asarray(likelier, dtype=bool), np.asarray(rarer, dtype=bool)
        if one.shape != other.shape or one.ndim != 1:
            raise InvalidParameter(
                "a batch of pairs must be two sequences of the same length\nhint: one draw of each input makes a pair"
            )
        return Bets(
            self.both + int((one & other).sum()),
            self.likelier_alone + int((one & ~other).sum()),
            self.rarer_alone + int((~one & other).sum()),
            self.neither + int((~one & ~other).sum()),
        )

    def refutes(self, epsilon: Number, delta: Number, alpha: Fraction) -> bool:
        """Whether the claim is refuted, with a false-alarm rate of alpha however often and whenever one looks."""
        exact = decimal_meaning(epsilon, name="epsilon"), decimal_meaning(delta, name="delta")
        with working_precision(_PRECISION):
            return bool(self._money(*exact) * ball(alpha) > 1)

    def epsilon(self, delta: Number, alpha: Fraction) -> float:
        """Return the largest epsilon refuted so far at this delta: a lower bound of the loss at any time."""
        return largest_epsilon(lambda tried: self.refutes(tried, delta, alpha))

    def evidence(self, epsilon: Number, delta: Number) -> float:
        """Return by how much the money has grown: 1 at the start; for showing."""
        with working_precision(_PRECISION):
            grown = self._money(decimal_meaning(epsilon, name="epsilon"), decimal_meaning(delta, name="delta"))
            return float(min(grown.log().mid(), arb(700)).exp().mid()) if grown > 0 else 0.0

    def _money(self, epsilon: Fraction, delta: Fraction) -> arb:
        """Return the mixture's money at the working precision; a bet that could lose more than all is left out."""
        stake = ball(epsilon).exp() + ball(delta)
        total = arb(0)
        for bet in map(ball, BETS):
            if not bet * stake < 1:
                continue
            grown = (1 + bet * (1 - stake)).log() * self.both
            grown += (1 + bet * (1 - ball(delta))).log() * self.likelier_alone
            grown += (1 - bet * stake).log() * self.rarer_alone
            grown += (1 - bet * ball(delta)).log() * self.neither
            total += grown.exp()
        return total / len(BETS)

    def to_json(self) -> str:
        """Return the state as text, to go on another day."""
        return json.dumps(
            {"both": self.both, "likelier": self.likelier_alone, "rarer": self.rarer_alone, "neither": self.neither}
        )

    @classmethod
    def from_json(cls, text: str) -> "Bets":
        """Return the state that `to_json` wrote."""
        try:
            record = json.loads(text)
            counts = [record[name] for name in ("both", "likelier", "rarer", "neither")]
        except (ValueError, KeyError, TypeError):
            counts = [-1]
        if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
            raise InvalidParameter("this text is not the state of a bet\nhint: give the text that to_json returned")
        return cls(*counts)


def keep_betting(
    draw: Callable[[int], tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    *,
    epsilon: Fraction,
    delta: Fraction,
    alpha: Fraction,
    pairs_most: int,
    go_on: Callable[[], bool],
    bets: Bets | None = None,
    pairs_at_once: int = PAIRS_AT_ONCE,
) -> Bets:
    """Return the state once the claim is refuted, the pairs are used up, or `go_on` says to stop.

    `draw(n)` gives n pairs: whether the event happened on the likelier and on the rarer input.
    """
    state = bets or Bets()
    while state.pairs < pairs_most and go_on() and not state.refutes(epsilon, delta, alpha):
        state = state.seen(*draw(min(pairs_at_once, pairs_most - state.pairs)))
    return state


def bet_on(
    fn: Callable[[Any], Any],
    likelier: Any,
    rarer: Any,
    inside: Callable[[Any], bool],
    *,
    epsilon: Number,
    delta: Number = 0,
    pairs: int,
    confidence: Number = "0.999999",
    bets: Bets | None = None,
) -> Bets:
    """Return the state after at most `pairs` further pairs of calls, for an event that was fixed before any of them.

    For functions too slow to audit in one sitting: keep `to_json()`, and go on tomorrow from
    `bets=Bets.from_json(...)`. An error never counts as the event.
    """

    def happened(data: Any) -> bool:
        try:
            return bool(inside(fn(data)))
        except Exception:  # noqa: BLE001 - whatever it is, it is not in the event
            return False

    def draw(count: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        seen = np.array([[happened(likelier), happened(rarer)] for _ in range(count)], dtype=bool)
        return seen[:, 0], seen[:, 1]

    start = bets or Bets()
    return keep_betting(
        draw,
        epsilon=decimal_meaning(epsilon, name="epsilon"),
        delta=decimal_meaning(delta, name="delta"),
        alpha=1 - decimal_meaning(confidence, name="confidence"),
        pairs_most=start.pairs + pairs,
        go_on=lambda: True,
        bets=start,
    )
