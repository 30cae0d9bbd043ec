"""The accountant against a slow one that shares nothing with it: never below the truth, and hardly above (L14)."""

from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction

import tacit
from tacit_gauntlet.accounting import oracle
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import (
    Event,
    choice,
    delta_at,
    delta_of_rho,
    gaussian,
    laplace,
    rho_of_pure,
    threshold,
)

# How far above the truth an exact figure may be, and how far the numerical total of a batch.
LOOSE = Decimal("1e-6")

# (what was asked, ours, the truth or a bound that ours must reach, the most that ours may be)
Point = tuple[str, Decimal, Decimal, Decimal]


@case("L14", title="every loss against plain sums in 60 digits", feature="accounting")
def oracle_comparison(size: Size) -> Evidence:
    """Compare deltas, conversions and batch totals with sums that have no cut, no grid and no float."""
    low, high, points = [], [], 0
    with localcontext(prec=oracle.DIGITS):
        for name, ours, truth, most in _points(size):
            points += 1
            if ours < truth:
                low.append(name)
            elif ours > most * (1 + LOOSE):
                high.append(name)
    details: dict[str, object] = {"points": points, "below the truth": low[:5], "loose": high[:5]}
    return Evidence(not low and not high and points >= (100 if size == "quick" else 1000), details)


def _points(size: Size) -> Iterator[Point]:
    yield from _single(18 if size == "quick" else 170)
    yield from _conversions(20 if size == "quick" else 200)
    yield from _batches(8 if size == "quick" else 24)


def _single(count: int) -> Iterator[Point]:
    """Deltas of one release: Gaussian, Laplace, and anything pure."""
    for sigma, shift in ((Fraction(2), 1), (Fraction(7, 2), 2), (Fraction(10), 3)):
        masses = oracle.gaussian_masses(sigma)
        for i in range(count):
            epsilon = Fraction(3 * (i + 1), 2 * count)
            event = gaussian(sigma, Fraction(shift**2), scalar=True)
            yield _delta(event, epsilon, oracle.delta(masses, shift, epsilon))
    for scale, shift in ((Fraction(3), 2), (Fraction(5, 2), 5)):
        masses = oracle.laplace_masses(scale)
        for i in range(count):
            epsilon = Fraction(shift) / scale * Fraction(i, count)
            yield _delta(laplace(scale, Fraction(shift)), epsilon, oracle.delta(masses, shift, epsilon))


def _delta(event: Event, epsilon: Fraction, truth: Decimal) -> Point:
    ours = oracle.decimal(delta_at(event, epsilon))
    return f"{type(event).__name__} at {epsilon}", ours, truth * (1 - Decimal("1e-45")), truth


def _conversions(count: int) -> Iterator[Point]:
    """rho of a pure loss, and delta and epsilon of a rho: at least the best of many orders, less what lies between."""
    for i in range(count):
        epsilon = Fraction(3 * (i + 1), count)
        power = (-oracle.decimal(epsilon)).exp()
        rho = oracle.decimal(epsilon) * (1 - power) / (1 + power)
        yield f"rho of {epsilon}", oracle.decimal(rho_of_pure(epsilon)), rho, rho
        loss, goal = Fraction(i + 1, 10 * count), Fraction(1, 2) + Fraction(i, count)
        truth = _zcdp_delta(loss, goal)
        yield f"delta of rho {loss}", oracle.decimal(delta_of_rho(loss, goal)), truth, truth


def _zcdp_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """The least of exp(b((1+b) rho - epsilon)) b^b/(1+b)^(1+b) over b, by ternary search in decimals."""
    cost_rho, goal = oracle.decimal(rho), oracle.decimal(epsilon)

    def log_delta(b: Decimal) -> Decimal:
        return b * ((1 + b) * cost_rho - goal) + b * b.ln() - (1 + b) * (1 + b).ln()

    low, high = Decimal("1e-6"), Decimal(10) ** 4
    for _ in range(150):
        third = (high - low) / 3
        if log_delta(low + third) < log_delta(high - third):
            high -= third
        else:
            low += third
    return min(log_delta((low + high) / 2).exp(), Decimal(1))


def _batches(count: int) -> Iterator[Point]:
    """Totals of batches, thresholds that may fail included."""
    fails = Fraction(1, 10**7)
    for times in (2, 3):
        by_gaussian, by_laplace = oracle.gaussian_masses(Fraction(2)), oracle.laplace_masses(Fraction(2))
        for i in range(count // 4):
            epsilon = Fraction(i + 1, 2)
            truth = oracle.batch_delta(by_gaussian, 1, times, epsilon)
            yield _total({gaussian(Fraction(2), Fraction(1), scalar=True): times}, epsilon, truth)
            truth = oracle.batch_delta(by_laplace, 2, times, epsilon)
            events: dict[Event, int] = {laplace(Fraction(2), Fraction(2)): times, threshold(fails): 1}
            failing = oracle.decimal(fails)
            yield _total(events, epsilon, truth + failing - truth * failing)
    for i in range(count):
        promise, times, epsilon = Fraction(1, 2), 4, Fraction(i, 2 * count)
        truth = _responses(promise, times, epsilon)
        yield _total({choice(promise): times}, epsilon, truth)


def _responses(promise: Fraction, times: int, epsilon: Fraction) -> Decimal:
    lower = 1 / (1 + oracle.decimal(promise).exp())
    masses = {0: lower, 1: 1 - lower}
    total, zero = {0: Decimal(1)}, Decimal(0)
    for _ in range(times):
        grown: dict[int, Decimal] = {}
        for kept, chance in total.items():
            for more, part in masses.items():
                grown[kept + more] = grown.get(kept + more, zero) + chance * part
        total = grown
    goal = oracle.decimal(epsilon)
    losses = {oracle.decimal((2 * kept - times) * promise): chance for kept, chance in total.items()}
    return sum((chance * (1 - (goal - loss).exp()) for loss, chance in losses.items() if loss > goal), zero)


def _total(events: Mapping[Event, int], epsilon: Fraction, truth: Decimal) -> Point:
    batch = tacit.compose(events, epsilon=epsilon)
    delta = getattr(batch.loss, "delta", Fraction(0))
    # what is far out is cut off at 2^-60 of a chance: below that a total says no more
    floor = Decimal(2) ** -60
    return (
        f"{batch.releases} releases at {epsilon}",
        oracle.decimal(delta),
        truth * (1 - Decimal("1e-30")),
        truth + floor,
    )
