"""What the cells of the course call: claims with two numbers, checks of exercises, and draws that can be repeated."""

import random
from collections.abc import Callable
from typing import TypeVar

from tacit.errors import InvalidParameter

Value = TypeVar("Value")


def claim(name: str, notes: float, ours: float, *, within: float = 0.01, words: str = "") -> None:
    """Print a number of the notes beside ours, and stop if they differ by more than a share of the notes' number.

    >>> claim("L4", 12.2, 12, within=0.05, words="the exact simultaneous bound is a little smaller")
    L4: the notes 12.2, here 12 (the exact simultaneous bound is a little smaller)
    """
    if not abs(float(ours) - float(notes)) <= within * abs(float(notes)):
        raise AssertionError(f"{name}: the notes have {notes}, and here it is {ours}")
    print(f"{name}: the notes {float(notes):,.6g}, here {float(ours):,.6g}" + (f" ({words})" if words else ""))


def check(answer: object, right: float | Callable[[object], bool], *, within: float = 0.05) -> bool:
    """Print whether an exercise is solved: an answer within a share of the right number, or one that a test accepts.

    >>> check(None, 3.0)
    not yet: put your answer in place of None
    False
    """
    if answer is None:
        print("not yet: put your answer in place of None")
        return False
    try:
        is_right = right(answer) if callable(right) else abs(float(answer) - right) <= within * abs(right)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        is_right = False
    print("right" if is_right else "not right yet: read the claim above once more")
    return is_right


class teaching:  # noqa: N801 - read as a word in a lesson
    """Draws that can be repeated, for a blackboard only: `teaching(seed=1).laplace(10, scale=2)`.

    Floating-point and predictable, so worth nothing as privacy. It takes numbers of people who do not exist, and knows
    no table, ledger or mechanism: what protects people draws from the system's randomness, and cannot be seeded.
    """

    def __init__(self, *, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidParameter("a seed is a whole number\nhint: teaching(seed=1)")
        self._draw = random.Random(seed)

    def coin(self, probability: float = 0.5) -> bool:
        """Return True with this probability."""
        return self._draw.random() < probability

    def laplace(self, value: float, *, scale: float) -> float:
        """Return a number plus noise of the continuous Laplace law."""
        return value + scale * (self._draw.expovariate(1) - self._draw.expovariate(1))

    def gaussian(self, value: float, *, sigma: float) -> float:
        """Return a number plus noise of the continuous Gaussian law."""
        return self._draw.gauss(value, sigma)

    def choice(self, values: list[Value]) -> Value:
        """Return one of the values, each equally likely."""
        return self._draw.choice(values)
