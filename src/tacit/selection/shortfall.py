"""How far the chosen score can fall short of the best: for each mechanism the worst case over all scores, exactly.

In every mechanism here raising a bad candidate or lowering a good one makes a bad choice likelier. So the chance that
the choice falls short by more than a steps is largest when one candidate is best and all others are a + 1 steps below
it, and that chance is known (docs/proofs/selection.md).
"""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from tacit.privacy.laplace_law import LaplaceLaw
from tacit.privacy.rounding import ball, working_precision
from tacit.privacy.symmetric import least_integer

# Chances that agree to this many bits are taken as equal, and then as too large.
PRECISION_MOST = 4096
# A noisy maximum's chance is a sum of about `a` terms; beyond this many they are taken together, on the safe side.
BLOCKS_MOST = 4096

# steps a -> the chance that the best of `candidates`, all others a + 1 steps lower, is not chosen
Lost = Callable[[int], arb]


def least_shortfall(lost: Lost, rate: Fraction, candidates: int, chance: Fraction) -> int:
    """Return the least number of steps by which the choice falls short but for `chance`."""
    if candidates == 1:
        return 0

    def holds(steps: int) -> bool:
        bits = 128
        while bits <= PRECISION_MOST:
            with working_precision(bits):
                loss, allowed = lost(steps), ball(chance)
                if loss < allowed:
                    return True
                if loss > allowed:
                    return False
            bits *= 2
        return False

    with working_precision(64):
        guess = (candidates / ball(chance)).log() / ball(rate)
        begin = guess.mid().floor().unique_fmpz()
    return least_integer(holds, max(0, int(begin) if begin is not None else 0))


def exponential_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of the exponential mechanism: (k-1)p / (1 + (k-1)p), p = exp(-rate·(a+1))."""

    def lost(steps: int) -> arb:
        others = (candidates - 1) * ball(-rate * (steps + 1)).exp()
        return others / (1 + others)

    return lost


def permute_and_flip_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of permute-and-flip: 1 - (1 - (1-p)^k)/(kp), p = exp(-rate·(a+1))."""

    def lost(steps: int) -> arb:
        p = ball(-rate * (steps + 1)).exp()
        return 1 + (candidates * (-p).log1p()).expm1() / (candidates * p)

    return lost


def noisy_max_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of a noisy maximum with discrete Laplace noise, ties broken evenly (or a bound just above it).

    The best wins with chance Σ_z P(z)/P(z+a+1) · (F(z+a+1)^k - F(z+a)^k)/k. The first factor is q^-(a+1) from z = 0
    on, q^(a+1) up to z = -(a+1), and falls from the one to the other between: so both ends add up at once.
    """
    law = LaplaceLaw(1 / rate)

    def lost(steps: int) -> arb:
        reach = steps + 1
        power = law.cdf(0) ** candidates
        won = ball(-rate * reach).exp() * power
        block = -(-steps // BLOCKS_MOST) or 1
        for start in range(-steps, 0, block):
            end = min(start + block, 0)  # z = start, …, end - 1; the factor is least at z = start
            above = law.cdf(end - 1 + reach) ** candidates
            won += ball(rate * (reach + 2 * start)).exp() * (above - power)
            power = above
        return 1 - (won + ball(rate * reach).exp() * (1 - power)) / candidates

    return lost
