"""Published bugs of accountants, planted in ours: each must be killed by the comparison with the slow one (L14)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted

Planted = Iterator[None]


@contextmanager
def _forgetful(seam: str, replacement: object) -> Planted:
    """Plant a bug with the caches of costs empty before and after."""
    original("delta_at").cache_clear()
    original("zcdp").cache_clear()
    with planted(seam, replacement):
        yield
    original("delta_at").cache_clear()
    original("zcdp").cache_clear()


@mutant("a conversion rounded down", killed_by="L14", published="float conversions that round to nearest")
def rounded_down() -> Any:
    """Round a converted delta or rho towards zero."""
    return _forgetful("upward in conversions", original("downward"))


@mutant("a delta rounded down", killed_by="L14", published="tail probabilities that round to nearest")
def delta_rounded_down() -> Any:
    """Round an event's exact delta towards zero."""
    return _forgetful("upward in costs", original("downward"))


@mutant("the continuous law for the discrete", killed_by="L14", published="analytic Gaussian calibration of grid noise")
def continuous_law() -> Any:
    """Read the discrete Gaussian's delta off the continuous formula."""

    def delta(event: Any, shift: int, epsilon: Fraction) -> Any:
        return original("continuous_gaussian_delta")(original("ball")(shift / event.sigma), original("ball")(epsilon))

    return _forgetful("gaussian_delta", delta)


@mutant("a threshold's delta forgotten in a batch", killed_by="L14", published="deltas dropped on composition")
def delta_forgotten() -> Any:
    """Compose as though thresholds never failed."""
    counted = original("counted events")

    def without(events: Any) -> Any:
        counts, releases = counted(events)
        return {
            event: count for event, count in counts.items() if not isinstance(event, original("KeyThreshold"))
        }, releases

    return _forgetful("counted events", without)


@mutant("losses put on the grid from above", killed_by="L14", published="optimistic discretisation taken for a bound")
def rounded_to_the_grid_below() -> Any:
    """Give every chance to the grid point below it."""
    on_grid: Callable[..., Any] = original("losses on a grid")

    def below(given: Any, step: Fraction) -> Any:
        found = on_grid(given, step)
        return replace(found, offset=found.offset - step)

    return _forgetful_pld(below)


@mutant("the tail cut off and not added", killed_by="L14", published="truncated Gaussian tails")
def tail_forgotten() -> Any:
    """Keep the loss within two deviations and forget the rest."""
    narrow: Callable[..., Any] = original("pair_of")

    def cut(event: Any) -> Any:
        found = narrow(event)
        if isinstance(event, original("GaussianNoise")) and isinstance(found, original("Lattice")):
            keep = len(found.masses) // 2 + int(2 * event.sigma)
            return replace(found, masses=found.masses[:keep], beyond=found.beyond * 0)
        return found

    return _forgetful("pair_of", cut)


@contextmanager
def _forgetful_pld(replacement: object) -> Planted:

    with planted("losses on a grid", replacement):
        yield


@mutant(
    "amounts read as Python reads them",
    killed_by="L40",
    published="Python's Decimal and int take digits of other scripts, underscores and spaces",
)
@contextmanager
def amounts_of_python() -> Planted:
    def read(text: str, name: str) -> Fraction:
        top, _, bottom = text.partition("/")
        try:
            return Fraction(Decimal(top.strip())) / Fraction(Decimal(bottom.strip() or "1"))
        except ArithmeticError:
            refused: Fraction = original("an amount's text")(text, name)
            return refused

    with planted("an amount's text", read):
        yield
