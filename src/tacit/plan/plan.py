"""The plan: frozen records of everything that will happen, made from public facts before any row is read.

`question_key` is the identity of a question: two are the same if their plans add the same noise to the same sums.
Names, order of columns, HAVING, ORDER BY, LIMIT and confidence are post-processing and do not count.

The outputs of a plan: one record for each kind of aggregate. `planned` turns a question's kinds into records.

Traits of a kind are class variables. Other code that treats outputs by kind is a `match` that ends in assert_never, so
that mypy finds each one without a case for a new record.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, ClassVar, Literal

from tacit.accounting import FOR_KEYS, FOR_NOISE
from tacit.plan.bounds.scaling import UNBOUNDED, ByHand, Profile, Scaling
from tacit.privacy import (
    ApproximateLoss,
    Event,
    GaussianLaw,
    GaussianNoise,
    KeyThreshold,
    LaplaceLaw,
    LaplaceNoise,
    Law,
    Loss,
    PureChoice,
    PureLoss,
    StaircaseLaw,
    StaircaseNoise,
)
from tacit.query import AggregateKind, Expression, Output, PostProcessing, Scalar, Type

if TYPE_CHECKING:
    from tacit.plan.bounds.facts import Fact
    from tacit.plan.bounds.profiles import Beyond


# The layout of an aggregate: from counts that the whole question shares, with the other outputs of its column or its
# two columns, or by itself.
Family = Literal["rows", "units", "values", "distinct", "column", "pair", "quantile", "ranking"]
FAMILIES: Mapping[AggregateKind, Family] = {
    "count": "values",  # without an expression: rows
    "count_units": "units",
    "count_distinct": "distinct",
    "sum": "column",
    "mean": "column",
    "variance": "column",
    "std": "column",
    "covariance": "pair",
    "correlation": "pair",
    "quantile": "quantile",
    "top": "ranking",
}
# The degrees of the moments that an aggregate of one column or two is made of; counts, of degree 0, come with any.
DEGREES: Mapping[AggregateKind, tuple[int, ...]] = {
    "sum": (1,),
    "mean": (1,),
    "variance": (2,),
    "std": (2,),
    "covariance": (1, 1),
    "correlation": (2, 2),
}


# Whether an output's numbers are whole, floats, or whole where the step of its column is.
Numbers = Literal["int", "float", "grid"]
# What its error depends on, beside the noise: none, the rows of a group, or the data.
Dependence = Literal["noise", "rows", "data"]


@dataclass(frozen=True)
class OfRelease:
    """An output made of the noisy sums of one release."""

    name: str
    release: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence] = "noise"


@dataclass(frozen=True)
class OfColumn:
    """The same of one measured column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence] = "noise"


@dataclass(frozen=True)
class OfPair:
    """The same of two measured columns."""

    name: str
    release: int
    column: int
    other: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence]


class CountRows(OfRelease):
    """COUNT(*): the rows of a group."""

    kind: ClassVar[AggregateKind] = "count"
    numbers: ClassVar[Numbers] = "int"


class CountUnits(OfRelease):
    """The units of a group."""

    kind: ClassVar[AggregateKind] = "count_units"
    numbers: ClassVar[Numbers] = "int"


class CountValues(OfColumn):
    """COUNT(x): the rows with a column that is not NULL."""

    kind: ClassVar[AggregateKind] = "count"
    numbers: ClassVar[Numbers] = "int"


class CountDistinct(OfRelease):
    """COUNT(DISTINCT x): the different values of an expression."""

    kind: ClassVar[AggregateKind] = "count_distinct"
    numbers: ClassVar[Numbers] = "int"


class Sum(OfColumn):
    """The sum of a column."""

    kind: ClassVar[AggregateKind] = "sum"
    numbers: ClassVar[Numbers] = "grid"


class Mean(OfColumn):
    """The mean of a column."""

    kind: ClassVar[AggregateKind] = "mean"
    numbers: ClassVar[Numbers] = "float"
    depends_on: ClassVar[Dependence] = "rows"


class Variance(OfColumn):
    """The variance of a column."""

    kind: ClassVar[AggregateKind] = "variance"
    numbers: ClassVar[Numbers] = "float"
    depends_on: ClassVar[Dependence] = "rows"


class StandardDeviation(OfColumn):
    """The standard deviation of a column."""

    kind: ClassVar[AggregateKind] = "std"
    numbers: ClassVar[Numbers] = "float"
    depends_on: ClassVar[Dependence] = "data"


class Covariance(OfPair):
    """The covariance of two columns."""

    kind: ClassVar[AggregateKind] = "covariance"
    numbers: ClassVar[Numbers] = "float"
    depends_on: ClassVar[Dependence] = "rows"


class Correlation(OfPair):
    """The correlation of two columns."""

    kind: ClassVar[AggregateKind] = "correlation"
    numbers: ClassVar[Numbers] = "float"
    depends_on: ClassVar[Dependence] = "data"


@dataclass(frozen=True)
class Quantile:
    """A quantile of a column."""

    name: str
    draw: int  # the index of its draw among the plan's quantiles
    column: int
    fraction: int  # the index of its fraction among those of the draw
    kind: ClassVar[AggregateKind] = "quantile"
    numbers: ClassVar[Numbers] = "grid"
    depends_on: ClassVar[Dependence] = "rows"

    @property
    def targets(self) -> tuple[int, int, int]:
        """The indices of its low end, itself and its high end among the drawn numbers."""
        return (3 * self.fraction, 3 * self.fraction + 1, 3 * self.fraction + 2)


@dataclass(frozen=True)
class Ranking:
    """The order of the keys that were chosen; it shares the release of the choice."""

    name: str
    kind: ClassVar[AggregateKind] = "top"
    numbers: ClassVar[Numbers] = "int"
    depends_on: ClassVar[Dependence] = "data"


# Outputs made of Bernstein parts, or of parts that are their first degree.
Moment = Sum | Mean | Variance | StandardDeviation | Covariance | Correlation
MOMENTS = (Sum, Mean, Variance, StandardDeviation, Covariance, Correlation)
# Outputs made of noisy sums.
Released = CountRows | CountUnits | CountValues | CountDistinct | Moment
PlannedOutput = Released | Quantile | Ranking


RECORDS: Mapping[AggregateKind, Callable[..., PlannedOutput]] = {
    record.kind: record for record in (CountValues, CountUnits, CountDistinct, *MOMENTS, Quantile)
}


def planned(output: Output, release: int, *columns: int) -> PlannedOutput:
    """Return the record of an aggregate that comes from this release, or draw, and these indices of columns."""
    name, kind = output.name, output.aggregate.kind
    if kind == "top":
        return Ranking(name)
    return CountRows(name, release) if kind == "count" and not columns else RECORDS[kind](name, release, *columns)


NoiseKind = Literal["laplace", "gaussian"]
# What a fact costs: its epsilon, and the delta of its threshold.
Cost = tuple[Fraction, Fraction]
# What a release may get where its call is pure or not; one number has the staircase where that errs less.
ReleaseNoise = NoiseKind | Literal["staircase"]
SummedKind = Literal["rows", "units", "distinct", "missing", "counted", "below", "above", "total", "moment"]
LearnedKind = Literal["scaled", "kept", "cut", "people"]
PartKind = SummedKind | LearnedKind


@dataclass(frozen=True)
class Spend:
    """What a call may cost: epsilon for all of it, and its delta, divided as the budget's is."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)  # all of it, as asked
    delta_keys: Fraction = Fraction(0)  # for showing keys that are not public
    delta_noise: Fraction = Fraction(0)  # the probability that Gaussian noise exceeds epsilon
    delta_rho: Fraction = Fraction(0)  # the delta at which epsilon holds the rho of Gaussian noise
    noise: NoiseKind | None = None
    confidence: Fraction = Fraction(95, 100)  # of intervals that are paid for: those of quantiles
    weights: tuple[tuple[str, Fraction], ...] = ()  # how much an aggregate's squared relative error counts, if not 1
    parts: tuple[Fraction, ...] = ()  # the share of each of several questions, if not even


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
    # for error bars, and no part of what is released: the declared range, and how far the grid may move a row inside it
    between: tuple[Fraction, Fraction] | None = field(default=None, repr=False)
    off: Fraction = field(default=Fraction(0), repr=False)

    @property
    def height(self) -> int:
        return self.high - self.low


@dataclass(frozen=True)
class Distinct:
    """An expression whose different values are counted; of one unit, at most `per_unit` in each group."""

    expression: Expression
    per_unit: int


# A product of measured columns in steps above their low ends: (column, exponent) pairs; NULL where any of them is.
Product = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Part:
    """One integer for each group, to which noise is added; all but rows and units belong to a measured column.

    missing, below, above: for each row, the range's height if the value is NULL, high - x, x - low: never negative,
    with the height as their sum. counted: rows that are not NULL. total: the sum of x. moment: a part of the Bernstein
    basis (`layout.py`). distinct, scaled, people: of the plan's expression, vector or profile at this index, the last
    with bins for groups. kept, cut: of the whole table, what scaling left of a vector, and took.
    """

    kind: PartKind
    column: int | None = None
    other: int | None = None
    degrees: tuple[int, ...] = ()
    index: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column in (self.column, self.other) if column is not None)


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move a vector of parts over all groups, in steps."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)
class NoisyRelease:
    """Parts that get noise of one distribution together."""

    parts: tuple[Part, ...]
    sensitivity: Sensitivity
    share: Fraction
    noise: ReleaseNoise
    scale: Fraction  # the Laplace scale, the Gaussian sigma or a staircase's sensitivity over epsilon, in steps
    event: LaplaceNoise | GaussianNoise | StaircaseNoise

    @property
    def law(self) -> Law:
        """The distribution of the noise on one number."""
        if isinstance(self.event, StaircaseNoise):
            return StaircaseLaw(self.event.epsilon, int(self.event.sensitivity), int(self.event.width))
        return LaplaceLaw(self.scale) if self.noise == "laplace" else GaussianLaw(self.scale)

    @property
    def summed(self) -> NoiseKind:
        """The kind of noise where several are added up, which a staircase never is."""
        if self.noise == "staircase":
            raise ValueError("staircase noise is for a single number: several of them are never added up")
        return self.noise


# What all rows of one unit weigh together in quantiles of people (docs/proofs/quantiles.md).
UNIT_WEIGHT = 1 << 16


@dataclass(frozen=True)
class QuantileDraw:
    """Quantiles of one measured column, drawn together from each group's values by splitting.

    The extremes are aimed `inside` rows further in, and `reach` rows are to lie between a quantile and each end of its
    interval. A level of splitting in a group costs `epsilon`, each of the `ends` intervals `ends_epsilon`. Of people,
    both are weights: a unit's rows weigh UNIT_WEIGHT in all groups, for which the epsilons are.
    """

    column: int
    targets: tuple[tuple[Fraction, int, int], ...]  # (fraction, inside, reach), rising
    levels: int
    ends: int
    epsilon: Fraction
    ends_epsilon: Fraction
    share: Fraction
    events: tuple[Event, ...]
    of: Literal["rows", "people"] = field(default="rows", repr=False)  # in the question's key where it is people

    def per_unit(self, rows_per_unit: int) -> int:
        """Return how far one unit moves ranks at most."""
        return UNIT_WEIGHT if self.of == "people" else rows_per_unit


@dataclass(frozen=True)
class Choice:
    """The `best` of the public keys, in order, chosen by their exact counts of units, which stay secret."""

    best: int
    by: Literal["permute-and-flip", "exponential"]
    epsilon: Fraction  # of all rounds together
    monotone: bool
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Threshold:
    """Keys that are not public are shown where the noisy count of units is at least `least`."""

    release: int
    least: int
    delta: Fraction


@dataclass(frozen=True)
class PlannedLevel:
    """Totals of groups that are equal in these keys, with separate noise on the parts of the plan's releases."""

    kept: tuple[int, ...]  # places among the plan's keys
    releases: tuple[NoisyRelease, ...]


@dataclass(frozen=True)
class Cells:
    """What a profile groups a unit's rows by; no keys: a unit is one cell."""

    keys: tuple[KeyColumn, ...]
    public_keys: tuple[tuple[Scalar, ...], ...] | None  # rows with other keys are left out; None: all are in


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything a call will do."""

    table: str
    version: int
    unit: str | None  # None: every row is its own unit
    neighbours: Literal["add-remove", "replace"]
    where: Expression | None
    keys: tuple[KeyColumn, ...]
    public_keys: tuple[tuple[Scalar, ...], ...] | None  # None: found privately; one empty tuple: no GROUP BY
    rows_per_unit: int = UNBOUNDED
    groups_per_unit: int = UNBOUNDED
    measured: tuple[Measured, ...] = ()
    products: tuple[Product, ...] = ()
    releases: tuple[NoisyRelease, ...]
    quantiles: tuple[QuantileDraw, ...] = ()
    distincts: tuple[Distinct, ...] = ()
    choice: Choice | None = None
    threshold: Threshold | None = None
    outputs: tuple[PlannedOutput, ...] = ()
    columns: tuple[str, ...]
    after: PostProcessing = PostProcessing()
    spend: Spend
    scaling: Scaling | None = None  # units are scaled into caps, by releases that are its vectors
    totals: tuple[NoisyRelease, ...] = ()  # of the whole table: what scaling left of a vector, and took
    # what is learned: the groups are bins, and the cells of a unit are those of `cells`
    profiles: tuple[Profile, ...] = ()
    cells: "Cells | None" = None
    levels: tuple[PlannedLevel, ...] = ()  # totals of the groups that have separate noise
    # totals of levels that are public: the number of each group, in the order of its first cell
    public_totals: tuple[tuple[tuple[int, ...], tuple[Fraction, ...]], ...] = field(
        default=(), repr=False, compare=False
    )
    has_others: bool = field(default=False, repr=False, compare=False)  # a NULL key is of the groups that are not shown
    public_rows: int | None = None  # how many rows there are, where the curator declares that in public
    instead_of: NoiseKind | None = None  # the noise that would err less, where the budget has no room for it
    learned: "tuple[Fact, ...]" = field(default=(), repr=False, compare=False)  # the facts that caps were read off
    # the ranges that are not given by hand: what people have beyond each at most
    learned_ranges: "Mapping[Expression, Beyond]" = field(default_factory=dict, repr=False, compare=False)
    by_hand: ByHand = field(default=ByHand(), repr=False, compare=False)  # the bounds that caps were made from
    most_rows: int | None = field(default=None, repr=False, compare=False)  # that a unit can have, where that is public

    @property
    def found_by(self) -> "tuple[Fact, ...]":
        """The facts that found the groups; none where they are listed, or found by a threshold of the plan's own."""
        return tuple(fact for fact in self.learned if fact.finds_groups)

    @property
    def is_mixed(self) -> bool:
        """Whether some numbers are scaled and quantiles are drawn too; engines read the rows once for each."""
        return self.scaling is not None and bool(self.quantiles)

    def halves(self) -> "tuple[Plan, Plan]":
        """Return the plan of what is scaled, and that of the quantiles, whose columns come last."""
        first = min(draw.column for draw in self.quantiles)
        drawn = tuple(replace(draw, column=draw.column - first) for draw in self.quantiles)
        return (
            replace(self, measured=self.measured[:first], quantiles=()),
            replace(self, measured=self.measured[first:], quantiles=drawn, releases=(), scaling=None, totals=()),
        )

    def at_level(self, kept: tuple[int, ...]) -> "Plan":
        """Return a plan of the totals of one level, with noise that errs as the largest of them does after the fit."""
        keys = self.public_keys or ()
        scale = float(self.releases[0].scale)
        known = [(tuple(range(len(self.keys))), 1.0)]
        known += [(each.kept, (float(each.releases[0].scale) / scale) ** 2) for each in self.levels]
        trust = 0.0
        for below, variance in known:
            if set(kept) <= set(below):
                inside = Counter(
                    tuple(key[each] for each in kept)
                    for key in {tuple(key[at] for at in below): key for key in keys}.values()
                )
                trust += 1 / (variance * max(inside.values(), default=1))
        times = Fraction(round(sqrt(1 / trust) * 4096) or 1, 4096)
        return replace(
            self,
            keys=tuple(self.keys[each] for each in kept),
            public_keys=tuple(dict.fromkeys(tuple(key[each] for each in kept) for key in keys)),
            releases=tuple(replace(each, scale=each.scale * times) for each in self.releases),
            levels=(),
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """What will run, for the ledger."""
        own = [release for level in self.levels for release in level.releases]
        noise: tuple[Event, ...] = tuple(release.event for release in (*self.releases, *own, *self.totals))
        for draw in self.quantiles:
            noise += draw.events
        noise += self.choice.events if self.choice else ()
        return noise if self.threshold is None else (*noise, KeyThreshold(self.threshold.delta))

    @property
    def loss(self) -> Loss:
        """What this call costs by itself; for an (epsilon, delta) budget, what it takes from it by plain addition."""
        return self.loss_with(())

    def loss_with(self, learned: Iterable[Cost]) -> Loss:
        """Return what this call costs with the facts that it learns first."""
        keys = self.threshold.delta if self.threshold else Fraction(0)
        return loss_of(self.spend, keys=keys, noise=self.asked.delta if self.asked else Fraction(0), learned=learned)

    @property
    def asked(self) -> ApproximateLoss | None:
        """The (epsilon, delta) that Gaussian noise was made for, without the delta of keys; None for pure noise."""
        return ApproximateLoss(self.spend.epsilon, self.spend.delta_noise) if self.noise == "gaussian" else None

    @property
    def noise(self) -> NoiseKind:
        """The kind of noise of the whole call; with choices alone, whether they are charged in rho."""
        if self.releases:
            return "gaussian" if self.releases[0].noise == "gaussian" else "laplace"
        pure = all(isinstance(event, PureChoice) for event in self.events)
        return "laplace" if pure else "gaussian"

    @property
    def value_count(self) -> int:
        """How many integers each row becomes: one for each measured column and each product."""
        return len(self.measured) + len(self.products)

    @property
    def weighed(self) -> frozenset[int]:
        return frozenset(draw.column for draw in self.quantiles if draw.of == "people")

    @property
    def sums_nothing(self) -> bool:
        """Whether there are only quantiles or different values, of groups that are public."""
        summed = {part.kind for release in self.releases for part in release.parts} - {"distinct"}
        return self.public_keys is not None and self.choice is None and not summed

    @property
    def needs_rows(self) -> bool:
        """Whether anything is asked of rows, and not only of units."""
        kinds = {part.kind for release in self.releases for part in release.parts}
        return any(draw.of == "rows" for draw in self.quantiles) or bool(kinds - {"units", "distinct"})


def loss_of(spend: Spend, *, keys: Fraction, noise: Fraction, learned: Iterable[Cost] = ()) -> Loss:
    """Return what a call costs by itself, from the deltas of its thresholds and of its noise, and what it learns."""
    epsilon = spend.epsilon
    for cost in learned:
        epsilon, keys = epsilon + cost[0], keys + cost[1]
    delta = max(keys / FOR_KEYS, noise / FOR_NOISE) if spend.delta else keys + noise
    return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)


def question_key(plan: Plan) -> str:
    """Return a text that is equal for two plans if and only if they release the same integers of one table version."""
    parts: tuple[object, ...] = (
        plan.table,
        plan.version,
        plan.unit,
        plan.neighbours,
        plan.where,
        tuple((key.expression, key.type) for key in plan.keys),
        plan.public_keys,
        plan.rows_per_unit,
        plan.groups_per_unit,
        plan.measured,
        plan.products,
        plan.releases,
        plan.quantiles,
        plan.distincts,
        plan.choice,
        plan.threshold,
    )
    learned: tuple[object, ...] = (plan.scaling, plan.totals, plan.profiles, plan.cells)
    of_people = tuple(getattr(draw, "of", None) == "people" for draw in plan.quantiles)
    learned += (of_people,) if any(of_people) else ()
    learned += (plan.levels,) if plan.levels else ()
    parts += learned if any(learned) else ()
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
