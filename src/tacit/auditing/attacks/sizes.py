"""How large an attack may be asked to be, how far it is, and how its shares are written."""

from collections.abc import Callable
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.privacy.number import Number, decimal_meaning, positive, show, whole

EPSILON_MOST = 1000

# what is being done, and how much of the whole is done, from 0 to 1
Progress = Callable[[str, float], None]


def size(value: int, *, name: str, least: int, most: int) -> int:
    """Return a whole number between two ends, or refuse it."""
    whole(value, name=name, least=least)
    if value > most:
        raise InvalidParameter(f"{name} must be at most {most:,}, not {value:,}\nhint: a smaller attack shows the same")
    return value


def loss_to_try(epsilon: Number) -> Fraction:
    """Return an epsilon an attack can be shown at."""
    exact = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if exact > EPSILON_MOST:
        raise InvalidParameter(
            f"epsilon must be at most {EPSILON_MOST}, not {show(exact)}\nhint: above 10 the promise is close to none"
        )
    return exact


def silent(_: str, __: float) -> None:
    """Show no progress."""


def percent(share: float) -> str:
    """Return a share in percent; 100 % only where it is all of it.

    >>> percent(1), percent(0.99999), percent(0.5)
    ('100 %', '99.9 %', '50.0 %')
    """
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"
