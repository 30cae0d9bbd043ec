"""The picture of a trade-off: error or epsilon against the number of people, one line for each mechanism.

Needs the `plots` extra.
"""

from fractions import Fraction
from pathlib import Path

from tacit.local.randomized_response import PEOPLE_MOST
from tacit.local.tradeoffs import (
    CENTRAL_GAUSSIAN,
    CENTRAL_LAPLACE,
    LOCAL,
    SHUFFLED,
    Accuracy,
    Tradeoff,
    least_epsilon,
)
from tacit.pictures import BLUE, GREEN, PINK, RED, Axis, Look, Spec, check_path, decades, line_panel, page, write

Point = tuple[str, int, float]  # mechanism, people, and its error or epsilon

LOOKS = {
    CENTRAL_LAPLACE: Look(CENTRAL_LAPLACE, BLUE),
    CENTRAL_GAUSSIAN: Look(CENTRAL_GAUSSIAN, RED, "square", (6, 3)),
    LOCAL: Look(LOCAL, GREEN, "triangle-up", (2, 2)),
    SHUFFLED: Look(SHUFFLED, PINK, "diamond", (8, 2, 2, 2)),
}
WHAT = {"mean": "a mean", "fraction": "a fraction", "counts": "{:,} counts", "maximum": "a maximum"}
POINTS = 13


def write_curves(found: Tradeoff, path: Path) -> Path:
    """Write the picture in the format of the path's ending, and return the path."""
    check_path(path)
    return write(_drawn(found, points(found)), path)


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


def _drawn(found: Tradeoff, drawn: list[Point]) -> Spec:
    row = found.rows[0]
    if found.asked == "epsilon":
        title, name, form = f"The ε that an error of {_percent(row.error)} takes", "ε", "~g"
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


def _percent(error: float | None) -> str:
    return "" if error is None else f"{error * 100:g} %"
