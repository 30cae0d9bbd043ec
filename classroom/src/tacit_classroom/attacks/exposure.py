"""Name and shame: publish each row in the clear with probability delta. This is (0, delta)-DP, so delta must be tiny.

The probability that some row comes out is 1 − (1 − delta)^n, and it is simulated here too. A Tacit budget refuses a
delta at which this would be likely, unless the curator accepts it.
"""

from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from tacit.asking import table
from tacit.errors import InvalidParameter
from tacit.noise import Bernoulli
from tacit.numbers import show
from tacit.privacy import epsilon as loss_of
from tacit_classroom.attacks.people import Progress, silent, size, without_warnings

ROWS, ROWS_LEAST, ROWS_MOST = 10_000, 100, 100_000
RUNS = 200
DELTAS = tuple(Fraction(text) for text in ("1e-8", "1e-7", "1e-6", "1e-5", "3e-5", "1e-4", "3e-4", "1e-3"))


@dataclass(frozen=True)
class Exposed:
    """The probability that at least one row comes out at some delta: by the formula, and in how many of the runs."""

    delta: float
    chance: float
    simulated: float
    accepted: bool  # whether a Tacit budget accepts this delta without accept_large_delta=
    rows_expected: float


@dataclass(frozen=True)
class Exposure:
    """The risk of a delta: print it, `plot` it, or take `record()` as data."""

    rows: int
    runs: int
    delta_most: float  # the largest that a budget for this many people accepts
    refusal: str
    points: tuple[Exposed, ...]

    @property
    def sentence(self) -> str:
        """The meaning, for decision makers."""
        worst = next((point for point in self.points if not point.accepted), self.points[-1])
        return (
            f"A promise that may fail with δ = {worst.delta:g} allows a person's whole row to be published with a "
            f"probability of {_chance(worst.chance)} among {self.rows:,} people; so budgets for them with a δ "
            "above "
            f"{self.delta_most:g} are refused unless the curator accepts it."
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"attack": "name-and-shame", "sentence": self.sentence}

    def plot(self, path: str | Path) -> Path:
        """Draw the probability that some row comes out, along delta: .png, .svg or .html."""
        from tacit_classroom.attacks.drawings import draw_exposure

        return draw_exposure(self, Path(path))

    def __str__(self) -> str:
        lines = [
            f"Name and shame: each of {self.rows:,} rows is published with chance δ, which keeps ε = 0 with this δ",
            "",
            f"{'δ':>8}{'some row comes out':>21}{f'in {self.runs} runs':>14}{'rows, on average':>19}{'our budget':>13}",
        ]
        lines += [
            f"{point.delta:>8g}{_chance(point.chance):>21}{_chance(point.simulated):>14}"
            f"{point.rows_expected:>19g}{'takes it' if point.accepted else 'refuses':>13}"
            for point in self.points
        ]
        return "\n".join(
            [*lines, "", "The refusal:", *(f"  {line}" for line in self.refusal.splitlines()), "", self.sentence]
        )

    __repr__ = __str__


@without_warnings()
def name_and_shame(*, rows: int = ROWS, runs: int = RUNS, progress: Progress = silent) -> Exposure:
    """Return the probability that at least one of `rows` comes out, as delta grows, and our budget's decision."""
    count = size(rows, name="rows", least=ROWS_LEAST, most=ROWS_MOST)
    times = size(runs, name="runs", least=1, most=10 * RUNS)
    points, refusals = [], []
    for at, delta in enumerate(DELTAS):
        refusal = _refused(count, delta)
        refusals += [refusal] if refusal else []
        clear = Bernoulli(delta).sample(count * times).reshape(times, count)
        simulated = float(clear.any(axis=1).mean())
        points.append(Exposed(float(delta), _formula(delta, count), simulated, refusal is None, float(delta * count)))
        progress("publishing rows", (at + 1) / len(DELTAS))
    largest = Fraction(1, 100 * count)
    return Exposure(count, times, float(largest), refusals[0] if refusals else "", tuple(points))


def _formula(delta: Fraction, rows: int) -> float:
    exact = 1 - (1 - delta) ** rows if rows <= 1000 else None
    return float(exact) if exact is not None else float(1 - (1 - Decimal(show(delta))) ** rows)


def _refused(rows: int, delta: Fraction) -> str | None:
    """Return the reason why a table of this many people refuses a budget with this delta; None if it accepts it."""
    try:
        table(
            pa.table({"person": [1]}),
            name="people",
            unit="person",
            population=rows,
            budget=loss_of(1, delta=delta),
            ledger=":memory:",
        )
    except InvalidParameter as refusal:
        return str(refusal)
    return None


def _chance(chance: float) -> str:
    return f"{chance * 100:.3g} %" if chance < 0.9995 else "over 99.9 %" if chance < 1 else "100 %"
