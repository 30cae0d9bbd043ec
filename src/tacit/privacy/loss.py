"""Losses: how much a release may reveal about one unit, as exact values that add, compare and print.

Four notions: pure epsilon, (epsilon, delta), zero-concentrated rho, and a Rényi curve. The cost of an event in each is
computed in `accounting/`; here they are only values. The same values serve as budgets.

Events: frozen records of releases, kept for ever. Their cost is computed from them, in `accounting/`.

An event says which noise was drawn and how far one unit can move what it was added to, both in the same public
grid's steps, as exact rationals. Events hold no value computed from rows.

Ledgers store events as text and read them again years later. So the name of a kind, the names of its fields and their
meaning may never change: each class defines them below for ever. A new meaning is a new kind. The test
tests/privacy/test_event.py keeps the stored text of one of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NoReturn, TypeVar, overload

from tacit.errors import InvalidParameter
from tacit.numbers import Number, brief, decimal_meaning, from_text, positive, show, to_text

# At this epsilon the odds about a person may shift 22,000 times.
LARGE_EPSILON = 10


@dataclass(frozen=True)
class PureLoss:
    """epsilon-DP: no event becomes more than e^epsilon times as likely because of one unit."""

    epsilon: Fraction

    def __add__(self, other: "Loss") -> "Loss":
        if isinstance(other, PureLoss):
            return PureLoss(self.epsilon + other.epsilon)
        if isinstance(other, ApproximateLoss):
            return ApproximateLoss(self.epsilon + other.epsilon, other.delta)
        _refuse_mixed(self, other)

    def __le__(self, other: "Loss") -> bool:
        if isinstance(other, PureLoss | ApproximateLoss):
            return self.epsilon <= other.epsilon
        _refuse_mixed(self, other)

    def __ge__(self, other: "Loss") -> bool:
        return other <= self

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)}"


@dataclass(frozen=True)
class ApproximateLoss:
    """(epsilon, delta)-DP: epsilon-DP except for a chance delta that the promise fails."""

    epsilon: Fraction
    delta: Fraction

    def __add__(self, other: "Loss") -> "Loss":
        if isinstance(other, PureLoss):
            return ApproximateLoss(self.epsilon + other.epsilon, self.delta)
        if isinstance(other, ApproximateLoss):
            return ApproximateLoss(self.epsilon + other.epsilon, self.delta + other.delta)
        _refuse_mixed(self, other)

    def __le__(self, other: "Loss") -> bool:
        if isinstance(other, PureLoss):
            return self.epsilon <= other.epsilon and self.delta == 0
        if isinstance(other, ApproximateLoss):
            return self.epsilon <= other.epsilon and self.delta <= other.delta
        _refuse_mixed(self, other)

    def __ge__(self, other: "Loss") -> bool:
        return other <= self

    def __str__(self) -> str:
        return f"ε = {show(self.epsilon)}, δ = {brief(self.delta)}"


@dataclass(frozen=True)
class ZcdpLoss:
    """delta-approximate rho-zCDP: every Rényi order alpha loses at most rho·alpha, except with probability delta."""

    rho: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Loss") -> "Loss":
        if isinstance(other, ZcdpLoss):
            return ZcdpLoss(self.rho + other.rho, self.delta + other.delta)
        _refuse_mixed(self, other)

    def __le__(self, other: "Loss") -> bool:
        if isinstance(other, ZcdpLoss):
            return self.rho <= other.rho and self.delta <= other.delta
        _refuse_mixed(self, other)

    def __ge__(self, other: "Loss") -> bool:
        return other <= self

    def __str__(self) -> str:
        tail = f", δ = {show(self.delta)}" if self.delta else ""
        return f"ρ = {show(self.rho)}{tail}"


@dataclass(frozen=True)
class RenyiLoss:
    """A Rényi curve: at each listed order alpha > 1 the divergence is at most the epsilon beside it."""

    curve: tuple[tuple[Fraction, Fraction], ...]
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Loss") -> "Loss":
        if not isinstance(other, RenyiLoss):
            _refuse_mixed(self, other)
        theirs = dict(other.curve)
        shared = tuple((order, cost + theirs[order]) for order, cost in self.curve if order in theirs)
        if not shared:
            raise InvalidParameter("these Rényi curves do not share an order\nhint: compute both at the same orders")
        return RenyiLoss(shared, self.delta + other.delta)

    def __le__(self, other: "Loss") -> bool:
        if not isinstance(other, RenyiLoss):
            _refuse_mixed(self, other)
        ours = dict(self.curve)
        return self.delta <= other.delta and all(order in ours and ours[order] <= cost for order, cost in other.curve)

    def __ge__(self, other: "Loss") -> bool:
        return other <= self

    def __str__(self) -> str:
        points = ", ".join(f"{show(order)}: {show(cost)}" for order, cost in self.curve[:3])
        more = ", …" if len(self.curve) > 3 else ""
        return f"Rényi ε(α) {{{points}{more}}}"


Loss = PureLoss | ApproximateLoss | ZcdpLoss | RenyiLoss
PERIODS = ("day", "month", "year")


@dataclass(frozen=True)
class LossPerPeriod:
    """A budget that is new in each calendar period (UTC), and serves as nothing else.

    After n periods one unit may have lost n times the loss: no sum over all periods is promised.
    """

    loss: PureLoss | ApproximateLoss | ZcdpLoss
    period: str

    def __str__(self) -> str:
        return f"{self.loss} per {self.period}"


@overload
def epsilon(epsilon: Number, *, delta: Number = 0, period: None = None) -> PureLoss | ApproximateLoss: ...
@overload
def epsilon(epsilon: Number, *, delta: Number = 0, period: str) -> LossPerPeriod: ...
def epsilon(
    epsilon: Number, *, delta: Number = 0, period: str | None = None
) -> PureLoss | ApproximateLoss | LossPerPeriod:
    """Return a pure loss, or an (epsilon, delta) loss when delta is above zero; both also serve as budgets.

    A float means its shortest decimal. Any finite positive epsilon is accepted; delta is in [0, 1). With a `period`
    ("day", "month" or "year") it is a budget that is new in each.

    >>> print(epsilon(0.1), "and", epsilon(1, delta=1e-6), "and", epsilon(3, period="year"))
    ε = 0.1 and ε = 1, δ = 1e-6 and ε = 3 per year
    """
    epsilon_value = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    delta_value = delta_meaning(delta)
    return _per(ApproximateLoss(epsilon_value, delta_value) if delta_value else PureLoss(epsilon_value), period)


@overload
def rho(rho: Number, *, delta: Number = 0, period: None = None) -> ZcdpLoss: ...
@overload
def rho(rho: Number, *, delta: Number = 0, period: str) -> LossPerPeriod: ...
def rho(rho: Number, *, delta: Number = 0, period: str | None = None) -> ZcdpLoss | LossPerPeriod:
    """Return a zero-concentrated loss, or with a `period` a budget that is new in each.

    >>> print(rho(0.5))
    ρ = 0.5
    """
    return _per(ZcdpLoss(positive(decimal_meaning(rho, name="rho"), name="rho"), delta_meaning(delta)), period)


_Kept = TypeVar("_Kept", PureLoss | ApproximateLoss, ZcdpLoss)


def _per(loss: _Kept, period: str | None) -> _Kept | LossPerPeriod:
    if period is None:
        return loss
    if not isinstance(period, str) or period not in PERIODS:
        raise InvalidParameter(f"period must be one of {', '.join(PERIODS)}, not {period!r}")
    return LossPerPeriod(loss, period)


def renyi(curve: Iterable[tuple[Number, Number]]) -> RenyiLoss:
    """Return a Rényi loss from (order, epsilon) pairs, each order above 1."""
    points = []
    for order, cost in curve:
        order_value = decimal_meaning(order, name="order")
        if order_value <= 1:
            raise InvalidParameter(f"a Rényi order must be above 1, not {show(order_value)}")
        points.append((order_value, positive(decimal_meaning(cost, name="epsilon"), name="epsilon")))
    if not points:
        raise InvalidParameter("a Rényi curve needs at least one (order, epsilon) pair")
    return RenyiLoss(tuple(sorted(points)))


def large_words(epsilon: Fraction) -> str | None:
    """Return a warning if an epsilon is too large to be meaningful, else None.

    >>> large_words(Fraction(11))
    'ε = 11 is above 10: the promise to one person is close to none'
    """
    if epsilon <= LARGE_EPSILON:
        return None
    return f"ε = {show(epsilon)} is above {LARGE_EPSILON}: the promise to one person is close to none"


def delta_meaning(delta: Number) -> Fraction:
    """Return delta as an exact rational in [0, 1); anything else is refused."""
    delta_value = decimal_meaning(delta, name="delta")
    if not 0 <= delta_value < 1:
        raise InvalidParameter(
            f"delta must be at least 0 and below 1, not {show(delta_value)}: the probability that the promise fails"
            "\nhint: far below one over the number of people, e.g. delta=1e-6"
        )
    return delta_value


def _refuse_mixed(one: object, other: object) -> NoReturn:
    raise InvalidParameter(
        f"{type(one).__name__} and {type(other).__name__} are different notions of loss"
        "\nhint: convert one first, see tacit.accounting.convert"
    )


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise of `scale` on every coordinate of something one unit moves by `sensitivity` in L1.

    For ever: the chance of n is proportional to exp(-|n| / scale), n whole; both fields count the same steps.
    """

    scale: Fraction
    sensitivity: Fraction


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise of `sigma` on something one unit moves by the root of `sensitivity_squared` in L2.

    `scalar` is True where only one coordinate can move; then its exact delta is known. For vectors it depends on the
    shape of the shift, so zCDP is used.

    For ever: the chance of n is proportional to exp(-n² / (2 sigma²)), n whole, in every coordinate; `scalar` is False
    if a stored record leaves it out.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    scalar: bool = False


@dataclass(frozen=True)
class StaircaseNoise:
    """Discrete staircase noise of `epsilon` and `width` on one number that one unit moves by at most `sensitivity`.

    Several numbers may have such noise if one unit can move only one of them.

    For ever: a release that is `epsilon`-DP; `width` is the inner part of each stair (docs/proofs/staircase.md).
    """

    epsilon: Fraction
    sensitivity: Fraction
    width: Fraction


@dataclass(frozen=True)
class KeyThreshold:
    """Group keys shown if a noisy count of units clears a threshold: a unit's own keys show with chance `delta`.

    For ever: only keys. Ledgers written before `FailureChance` existed also hold it beside the `PureChoice` of a
    shuffled survey, in that meaning; both cost the same.
    """

    delta: Fraction


@dataclass(frozen=True)
class FailureChance:
    """The chance `delta` that the epsilon of the other events of the release does not hold: of an (epsilon, delta)
    promise.

    For ever: on neighbouring tables the release has two laws, each of which is, except for a part of weight `delta`,
    as the other events state (docs/proofs/ledger.md).
    """

    delta: Fraction


@dataclass(frozen=True)
class PureChoice:
    """A selection, or a perturbed answer, that is `epsilon`-DP, without any tighter claim.

    For ever: exactly that.
    """

    epsilon: Fraction


@dataclass(frozen=True)
class ExponentialChoice:
    """An exponential-mechanism selection with log-probabilities that move within a range of `epsilon`: epsilon²/8 zCDP.

    For ever: the range is of all the differences of one pair of neighbours, so `epsilon` is also its pure epsilon.
    """

    epsilon: Fraction


@dataclass(frozen=True)
class SubsampledGaussian:
    """Discrete Gaussian noise on a statistic of a sample of the units: the event of private learning.

    For ever: each unit is in the sample by its own coin of chance `rate`; the sample is secret and drawn afresh only
    for this release; neighbours add or remove one unit, which moves the statistic of a sample that has it by at
    most the root of `sensitivity_squared` in L2; the noise of `sigma` is as in `GaussianNoise`. If one of these does
    not hold, this event may not be recorded: `tacit.poisson_sample` asks for each of them. `rounds` is the number of
    such releases, whole, each of a separate sample; each may depend on the earlier ones; 1 if a stored record leaves
    it out.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    rate: Fraction
    rounds: Fraction = Fraction(1)


Event = (
    LaplaceNoise
    | GaussianNoise
    | StaircaseNoise
    | KeyThreshold
    | FailureChance
    | PureChoice
    | ExponentialChoice
    | SubsampledGaussian
)

# Events that only fail, with probability `delta`: their output was paid for by the events recorded with them.
Failing = KeyThreshold | FailureChance

KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in Event.__args__}

# Fields that cannot be 0: every release has noise, and every sample a positive probability.
ABOVE_ZERO = frozenset({"scale", "sigma", "rate", "rounds"})
AT_MOST_ONE = frozenset({"rate"})
WHOLE = frozenset({"rounds"})
# What a stored record may leave out, since it has the value that older records mean.
_LEFT_OUT = {"scalar", "rounds"}


def event_to_dict(event: Event) -> dict[str, str | bool]:
    """Return the event as JSON-ready text: its kind, and each rational exactly.

    >>> event_to_dict(KeyThreshold(Fraction(1, 10**6)))
    {'kind': 'KeyThreshold', 'delta': '1/1000000'}
    """
    record: dict[str, str | bool] = {"kind": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name != "rounds" or value != 1:
            record[field.name] = value if isinstance(value, bool) else to_text(value)
    return record


def event_from_dict(record: dict[str, str | bool]) -> Event:
    """Return the event that `event_to_dict` wrote; an unknown kind is refused, never skipped."""
    kind = KINDS.get(str(record.get("kind")))
    if kind is None:
        raise InvalidParameter(
            f"unknown kind of event {record.get('kind')!r}\nhint: it was written by a newer version; update tacit"
        )
    known = {field.name: field.type is bool or field.type == "bool" for field in fields(kind)}
    values: dict[str, Fraction | bool] = {}
    for name, value in record.items():
        if name == "kind":
            continue
        if name not in known or isinstance(value, bool) != known[name]:
            raise _damaged(kind)
        if isinstance(value, bool):
            values[name] = value
            continue
        amount = values[name] = from_text(value)
        if not is_possible(name, amount):
            raise _damaged(kind)
    if set(known) - _LEFT_OUT - set(values):
        raise _damaged(kind)
    return kind(**values)  # type: ignore[arg-type]


def is_possible(name: str, amount: Fraction) -> bool:
    """Return whether an event's field may have an amount."""
    is_of_size = (amount > 0 if name in ABOVE_ZERO else amount >= 0) and (amount <= 1 or name not in AT_MOST_ONE)
    return is_of_size and (amount.denominator == 1 or name not in WHOLE)


def _damaged(kind: type[Event]) -> InvalidParameter:
    return InvalidParameter(f"this record is not a {kind.__name__}, or it is damaged\nhint: run tacit ledger verify")
