"""The trade-off of people, error and epsilon: any one from the other two, central and local side by side.

Central errors come from the exact distribution of the noise, and local errors from the exact distribution of the
reports; no asymptotic formula is used. docs/proofs/tradeoff.md names the distribution behind each row. `Accuracy`
computes one row.

The picture of a trade-off: error or epsilon against the number of people, one line for each mechanism.

Needs the `plots` extra.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tacit.accounting import (
    LOCAL_MOST,
    Randomizer,
    gaussian_sigma,
    gaussian_sigma_vector,
    laplace_scale,
    local_epsilon,
    shuffled,
)
from tacit.errors import InvalidParameter
from tacit.local.estimate import ReportLaw
from tacit.local.protocols.protocol import Response
from tacit.local.randomized_response import PEOPLE_MOST, gain_of, least_people, share_error
from tacit.numbers import Number, confidence_meaning, decimal_meaning, positive, show, whole, within
from tacit.pictures import BLUE, GREEN, PINK, RED, Axis, Look, Spec, check_path, decades, line_panel, page, write
from tacit.privacy import GaussianLaw, LaplaceLaw, delta_meaning
from tacit.selection import NoisyMax

Kind = Literal["mean", "fraction", "counts", "maximum"]

CENTRAL_LAPLACE, CENTRAL_GAUSSIAN, LOCAL = "central Laplace", "central Gaussian", "local randomized response"
# Local reports with their order and origin hidden by a shuffler; epsilon is then the loss of all reports together.
SHUFFLED = "local, then shuffled"

# Steps of the public grid that a mean's values are put on.
GRID = 1 << 20

Asked = Literal["people", "error", "epsilon"]

KINDS: dict[str, str] = {
    "mean": "the mean of values in a public range, as a share of that range",
    "fraction": "the fraction of people who answer yes",
    "counts": "k counts, the worst of them, as a share of the people",
    "maximum": "which of k options is most common: how far its count is from the largest, as a share of the people",
}
_NEIGHBOURS = {
    "mean": "Neighbours replace one person; the number of people is public.",
    "fraction": "Neighbours replace one person; how many there are is public.",
    "counts": "Neighbours add or remove one person (reports: replace one).",
    "maximum": "Neighbours add or remove one person (reports: replace one).",
}
_NONE = {"people": "takes more people than there are", "error": "has no error", "epsilon": "no ε up to 36 is enough"}
EPSILON_LEAST, EPSILON_MOST = Fraction(1, 10**5), Fraction(36)
ERROR_LEAST = Fraction(1, 10**12)


@dataclass(frozen=True)
class Accuracy:
    """A mechanism and one kind of question: the error that it exceeds with probability at most `chance`."""

    mechanism: str
    kind: Kind
    k: int
    touched: int
    delta: Fraction
    chance: Fraction

    def error(self, people: int, epsilon: Fraction) -> float:
        """Return the error, as a share of the people or of the values' range."""
        if self.mechanism == SHUFFLED:  # a shuffler allows each report a larger epsilon
            epsilon = local_epsilon(epsilon, people, self.delta, self.randomizer)
        if self.mechanism in (LOCAL, SHUFFLED):
            return local_error(self.kind, people, epsilon, self.k, self.touched, self.chance)
        if self.kind == "maximum" and self.mechanism == CENTRAL_LAPLACE:
            # counts under "add or remove one": one person moves all of them in the same direction
            counts = NoisyMax(epsilon=epsilon, monotone=True)
            return counts.error(confidence=1 - self.chance, candidates=self.k) / people
        noise = laplace_bound if self.mechanism == CENTRAL_LAPLACE else gaussian_bound
        steps = GRID if self.kind == "mean" else 1
        bound = noise(epsilon, steps, self.touched, self.k, self.delta, self.chance)
        # the largest noisy count is at most two errors from the largest
        return float(Fraction(bound * (2 if self.kind == "maximum" else 1), steps * people))

    @property
    def randomizer(self) -> Randomizer:
        """The randomizer of one person's report: randomized response, or several side by side."""
        return "any" if self.kind == "counts" and self.touched > 1 else "randomized response"


@lru_cache(maxsize=4096)
def laplace_bound(epsilon: Fraction, steps: int, touched: int, k: int, delta: Fraction, chance: Fraction) -> int:
    """Return the least a that Laplace noise on all of k numbers stays within: one unit moves `touched` by `steps`."""
    del delta  # pure noise does not use one
    return LaplaceLaw(laplace_scale(Fraction(steps * touched), epsilon)).smallest_bound(chance, k)


@lru_cache(maxsize=4096)
def gaussian_bound(epsilon: Fraction, steps: int, touched: int, k: int, delta: Fraction, chance: Fraction) -> int:
    """Return the least a that Gaussian noise on all of k numbers stays within."""
    if touched == 1:
        sigma = gaussian_sigma(Fraction(steps), epsilon, delta)
    else:
        sigma = gaussian_sigma_vector(Fraction(steps**2 * touched), epsilon, delta)
    return GaussianLaw(sigma).smallest_bound(chance, k)


@lru_cache(maxsize=4096)
def local_error(kind: Kind, people: int, epsilon: Fraction, k: int, touched: int, chance: Fraction) -> float:
    """Return the error of debiased reports, at the true answers where reports vary most.

    A mean's value is first rounded to 0 or 1 at random; of counts that one person touches several of, each is reported
    at its share of epsilon; of options, one of k is reported. Several counts share `chance` evenly.
    """
    options = max(k, 2) if kind == "maximum" or (kind == "counts" and touched == 1) else 2
    response = Response(options, epsilon / (touched if kind == "counts" else 1))
    allowed = -math.expm1(math.log1p(-float(chance)) / k) if touched == k else float(chance) / k
    if kind == "mean":  # values of one half: every report is a fair coin
        return ReportLaw(people, 0.5, 0.5).within(people, allowed) / (gain_of(response) * people)
    return (2 if kind == "maximum" else 1) * share_error(response, people, allowed)


@dataclass(frozen=True)
class Row:
    """A mechanism: people, error (as a share) and epsilon that go together; None if there are none."""

    mechanism: str
    people: int | None
    error: float | None
    epsilon: Fraction | None


@dataclass(frozen=True)
class Tradeoff:
    """The four mechanisms side by side; prints a table, and draws a picture with the `plots` extra."""

    kind: Kind
    asked: Asked
    rows: tuple[Row, ...]
    k: int
    touched: int
    delta: Fraction
    confidence: Fraction

    def __str__(self) -> str:
        head = [f"For {KINDS[self.kind]} ({float(self.confidence) * 100:g} % of the time within):"]
        if self.kind in ("counts", "maximum"):
            head.append(f"k = {self.k:,}, of which one person touches {self.touched:,}")
        title = f"{'':<26} {'people':>14} {'error':>11} {'in people':>12} {'ε':>9}"
        lines = [_tradeoff_line(row, self.asked) for row in self.rows]
        tail = f"δ = {show(self.delta)} for Gaussian noise and shuffled reports. {_NEIGHBOURS[self.kind]}"
        return "\n".join([*head, title, *lines, tail])

    __repr__ = __str__

    def row(self, mechanism: str) -> Row:
        """Return the row of one mechanism, by its name."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        known = ", ".join(row.mechanism for row in self.rows)
        raise InvalidParameter(
            f"this trade-off does not have a mechanism '{mechanism}'\nhint: its mechanisms are {known}"
        )

    def plot(self, path: str | Path) -> Path:
        """Draw error or epsilon against people, and write it as .png, .svg or .html; needs the `plots` extra."""
        check_path(Path(path))
        return write(_curves_page(self, points(self)), Path(path))


def tradeoff(
    kind: Kind,
    *,
    people: int | None = None,
    error: Number | None = None,
    epsilon: Number | None = None,
    k: int = 1,
    touched: int | None = None,
    delta: Number = "1e-6",
    confidence: Number = 0.95,
) -> Tradeoff:
    """Return the missing one of people, error and epsilon: central Laplace and Gaussian noise beside local reports."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidParameter(f"kind must be one of {', '.join(KINDS)}, not {kind!r}\nhint: e.g. kind='mean'")
    given = {"people": people, "error": error, "epsilon": epsilon}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameter("give exactly two of people, error and epsilon\nhint: e.g. people=10_000, epsilon=1")
    size = whole(k, name="k", least=2 if kind == "maximum" else 1) if kind in ("counts", "maximum") else 1
    reach = _touched(kind, size, touched)
    chance, failing = 1 - confidence_meaning(confidence), positive(delta_meaning(delta), name="delta")
    rows = []
    for name in (CENTRAL_LAPLACE, CENTRAL_GAUSSIAN, LOCAL, SHUFFLED):
        law = Accuracy(name, kind, k=size, touched=reach, delta=failing, chance=chance)
        rows.append(_solve(law, people=people, error=error, epsilon=epsilon))
    asked: Asked = "people" if people is None else "error" if error is None else "epsilon"
    return Tradeoff(kind, asked, tuple(rows), size, reach, failing, 1 - chance)


def _touched(kind: str, k: int, touched: int | None) -> int:
    if touched is None:
        return k if kind == "counts" else 1
    found = whole(touched, name="touched")
    if found > k:
        raise InvalidParameter(f"touched must be at most k = {k}, not {found}")
    if kind == "maximum" and found > 1:
        raise InvalidParameter(
            "touched must be 1 for a maximum: each person chooses one option\nhint: leave touched out"
        )
    return found


def _solve(law: Accuracy, *, people: int | None, error: Number | None, epsilon: Number | None) -> Row:
    epsilon_value = None if epsilon is None else positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if epsilon_value is not None:
        within(epsilon_value, name="epsilon", least=EPSILON_LEAST, most=EPSILON_MOST)
    goal = None if error is None else _error_share(error)
    count = None if people is None else whole(people, name="people")
    if count is not None and epsilon_value is not None:
        return Row(law.mechanism, count, law.error(count, epsilon_value), epsilon_value)
    if goal is not None and epsilon_value is not None:
        return Row(
            law.mechanism, least_people(lambda n: law.error(n, epsilon_value), float(goal)), float(goal), epsilon_value
        )
    if goal is not None and count is not None:
        return Row(law.mechanism, count, float(goal), least_epsilon(law, goal, count))
    raise InvalidParameter("give exactly two of people, error and epsilon\nhint: e.g. people=10_000, epsilon=1")


def least_epsilon(law: Accuracy, goal: Fraction, people: int) -> Fraction | None:
    """Return the least epsilon, rounded up to four digits, at which this many people have at most this error."""
    if law.mechanism == SHUFFLED:  # the local epsilon of a report decides the error; shuffling lowers the central one
        each = least_epsilon(replace(law, mechanism=LOCAL), goal, people)
        if each is None or people < 2 or each > LOCAL_MOST:
            return None if each is None else _four_digits_up(each)
        central = shuffled(each, reports=people, delta=law.delta, unlinkable=True, randomizer=law.randomizer)
        return _four_digits_up(central.epsilon)
    bound = float(goal)
    low, high = EPSILON_LEAST, EPSILON_MOST
    if law.error(people, high) > bound:
        return None
    while high > low * Fraction(10_001, 10_000):
        middle = _four_digits(Fraction(float(low) ** 0.5 * float(high) ** 0.5))
        if middle >= high or middle <= low:
            break
        low, high = (low, middle) if law.error(people, middle) <= bound else (middle, high)
    return high


def _four_digits(value: Fraction) -> Fraction:
    return Fraction(f"{float(value):.3e}")


def _four_digits_up(value: Fraction) -> Fraction:
    near = _four_digits(value)
    return near if near >= value else near * Fraction(1001, 1000)


def _error_share(error: Number) -> Fraction:
    exact = decimal_meaning(error, name="error")
    within(exact, name="error", least=ERROR_LEAST, most=Fraction(1))
    if not 0 < exact < 1:
        raise InvalidParameter(f"error must be a share between 0 and 1, not {show(exact)}\nhint: e.g. error=0.01")
    return exact


def _tradeoff_line(row: Row, asked: Asked) -> str:
    if row.people is None or row.error is None or row.epsilon is None:
        return f"{row.mechanism:<26} {_NONE[asked]}"
    off = row.error * row.people
    shown = f"{off:,.0f}" if off >= 100 else f"{off:,.3g}"
    error = f"{row.error * 100:.3g} %"
    return f"{row.mechanism:<26} {row.people:>14,} {error:>11} {shown:>12} {float(row.epsilon):>9.4g}"


# ---- the picture -----------------------------------------------------------------------------------------------------


Point = tuple[str, int, float]  # mechanism, people, and its error or epsilon

LOOKS = {
    CENTRAL_LAPLACE: Look(CENTRAL_LAPLACE, BLUE),
    CENTRAL_GAUSSIAN: Look(CENTRAL_GAUSSIAN, RED, "square", (6, 3)),
    LOCAL: Look(LOCAL, GREEN, "triangle-up", (2, 2)),
    SHUFFLED: Look(SHUFFLED, PINK, "diamond", (8, 2, 2, 2)),
}
WHAT = {"mean": "a mean", "fraction": "a fraction", "counts": "{:,} counts", "maximum": "a maximum"}
POINTS = 13


def points(found: Tradeoff) -> list[Point]:
    """Return what is drawn: for each mechanism, its error (or the epsilon it needs) for growing numbers of people."""
    known = [row.people for row in found.rows if row.people is not None]
    low, high = max(10, min(known, default=1000) // 10), min(max(known, default=10**6) * 10, PEOPLE_MOST)
    counts = sorted({round(low * (high / low) ** (i / (POINTS - 1))) for i in range(POINTS)})
    drawn: list[Point] = []
    for row in found.rows:
        law = Accuracy(
            row.mechanism,
            found.kind,
            k=found.k,
            touched=found.touched,
            delta=found.delta,
            chance=1 - found.confidence,
        )
        for people in counts:
            if found.asked != "epsilon" and row.epsilon is not None:
                height: float | None = law.error(people, row.epsilon)
            else:
                needed = None if row.error is None else least_epsilon(law, Fraction(str(row.error)), people)
                height = None if needed is None else float(needed)
            if height is not None and 0 < height <= (1 if found.asked != "epsilon" else 36):
                drawn.append((row.mechanism, people, height))
    return drawn


def _curves_page(found: Tradeoff, drawn: list[Point]) -> Spec:
    row = found.rows[0]
    if found.asked == "epsilon":
        error = "" if row.error is None else f"{row.error * 100:g} %"
        title, name, form = f"The ε that an error of {error} takes", "ε", "~g"
    else:
        epsilon = "" if row.epsilon is None else f" at ε = {float(row.epsilon):g}"
        title, name, form = f"The value of people{epsilon}", "error", "~%"
    panel = line_panel(
        drawn,
        {name: look for name, look in LOOKS.items() if any(point[0] == name for point in drawn)},
        x=Axis("people", log=True, values=_decades([people for _, people, _ in drawn]), form="~s"),
        y=Axis(name, log=True, values=_decades([height for _, _, height in drawn]), form=form),
        legend="top",
        width=560,
        height=340,
    )
    what = WHAT[found.kind].format(found.k)
    note = f"{what}; {float(found.confidence) * 100:g} % of the time within; lower is better"
    return page(panel, title=title, notes=[note], letters=(64, 110), legend={"labelLimit": 300})


def _decades(sizes: list[float]) -> tuple[float, ...]:
    return decades(min(sizes), max(sizes)) if sizes else (1.0,)
