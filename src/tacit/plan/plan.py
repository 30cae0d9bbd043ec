"""The plan: frozen records of everything that will happen, made from public facts before any row is read.

The engine reads from it what to add up, the release what noise to add, the ledger what to charge, and a person what
to expect. Nothing in it comes from rows.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tacit.privacy.event import Event, GaussianNoise, KeyThreshold, LaplaceNoise
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss
from tacit.query.nodes import After, Expression, Scalar, Type

NoiseKind = Literal["laplace", "gaussian"]
PartKind = Literal["rows", "units", "missing", "counted", "below", "above", "total"]
OutputKind = Literal["count", "count_units", "sum", "mean"]


@dataclass(frozen=True)
class Spend:
    """What a call may cost: epsilon for all of it, and its delta in the two places delta can go."""

    epsilon: Fraction
    delta_keys: Fraction = Fraction(0)  # for showing keys that nobody listed
    delta_noise: Fraction = Fraction(0)  # for Gaussian noise
    noise: NoiseKind | None = None


@dataclass(frozen=True)
class KeyColumn:
    """One column that rows are grouped by."""

    name: str
    expression: Expression
    type: Type


@dataclass(frozen=True)
class Measured:
    """A numeric expression on its public grid: each row becomes a whole number of steps in low … high."""

    expression: Expression
    type: Type
    step: Fraction
    low: int
    high: int
    counts_only: bool = False  # only whether it is NULL matters

    @property
    def height(self) -> int:
        """The range in steps."""
        return self.high - self.low


@dataclass(frozen=True)
class Part:
    """One integer for each group, to which noise is added; all but rows and units belong to a measured column.

    missing, below, above: for each row, the range's height if the value is NULL, high - x, x - low: never negative, and
    they add up to the height. counted: the rows where it is not NULL. total: the sum of x itself.
    """

    kind: PartKind
    column: int | None = None


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move a vector of parts over all groups, in steps."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)
class NoisyRelease:
    """Parts that get noise of one law together."""

    parts: tuple[Part, ...]
    sensitivity: Sensitivity
    share: Fraction
    noise: NoiseKind
    scale: Fraction  # the Laplace scale or the Gaussian sigma, in steps
    event: LaplaceNoise | GaussianNoise


@dataclass(frozen=True)
class Threshold:
    """Keys nobody listed are shown where the noisy count of units is at least `least`."""

    release: int
    least: int
    delta: Fraction


@dataclass(frozen=True)
class PlannedOutput:
    """One aggregate of the answer: from which release, and for which measured column."""

    name: str
    kind: OutputKind
    release: int
    column: int | None = None


@dataclass(frozen=True)
class Plan:
    """Everything a call will do."""

    table: str
    version: int
    unit: str | None  # None: every row is its own unit
    neighbours: Literal["add-remove", "replace"]
    where: Expression | None
    keys: tuple[KeyColumn, ...]
    public_keys: tuple[tuple[Scalar, ...], ...] | None  # None: found privately; one empty tuple: no GROUP BY
    rows_per_unit: int
    groups_per_unit: int
    measured: tuple[Measured, ...]
    releases: tuple[NoisyRelease, ...]
    threshold: Threshold | None
    outputs: tuple[PlannedOutput, ...]
    columns: tuple[str, ...]
    after: After
    spend: Spend

    @property
    def events(self) -> tuple[Event, ...]:
        """What will run, for the ledger."""
        noise: tuple[Event, ...] = tuple(release.event for release in self.releases)
        return noise if self.threshold is None else (*noise, KeyThreshold(self.threshold.delta))

    @property
    def loss(self) -> Loss:
        """What this call costs on its own."""
        keys = self.threshold.delta if self.threshold else Fraction(0)
        noise = self.spend.delta_noise if any(release.noise == "gaussian" for release in self.releases) else Fraction(0)
        delta = keys + noise
        return ApproximateLoss(self.spend.epsilon, delta) if delta else PureLoss(self.spend.epsilon)

    @property
    def needs_rows(self) -> bool:
        """Whether anything is asked of rows, and not only of units."""
        return any(part.kind != "units" for release in self.releases for part in release.parts)
