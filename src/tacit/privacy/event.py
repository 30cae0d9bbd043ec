"""Events: frozen records of releases, kept for ever. Their cost is computed from them, in `accounting/`.

An event says which noise was drawn and how far one unit can move what it was added to, both in the same public
grid's steps, as exact rationals. Events hold no value computed from rows.

Ledgers store events as text and read them again years later. So the name of a kind, the names of its fields and their
meaning may never change: each class defines them below for ever. A new meaning is a new kind. The test
tests/privacy/test_event.py keeps the stored text of one of each.
"""

from dataclasses import dataclass, fields
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.privacy.number import from_text, to_text


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
    not hold, this event may not be recorded: `tacit.poisson_sample` asks for each of them.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    rate: Fraction


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
ABOVE_ZERO = frozenset({"scale", "sigma", "rate"})
AT_MOST_ONE = frozenset({"rate"})


def event_to_dict(event: Event) -> dict[str, str | bool]:
    """Return the event as JSON-ready text: its kind, and each rational exactly.

    >>> event_to_dict(KeyThreshold(Fraction(1, 10**6)))
    {'kind': 'KeyThreshold', 'delta': '1/1000000'}
    """
    record: dict[str, str | bool] = {"kind": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
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
    if set(known) - {"scalar"} - set(values):
        raise _damaged(kind)
    return kind(**values)  # type: ignore[arg-type]


def is_possible(name: str, amount: Fraction) -> bool:
    """Return whether an event's field may have an amount."""
    return (amount > 0 if name in ABOVE_ZERO else amount >= 0) and (amount <= 1 or name not in AT_MOST_ONE)


def _damaged(kind: type[Event]) -> InvalidParameter:
    return InvalidParameter(f"this record is not a {kind.__name__}, or it is damaged\nhint: run tacit ledger verify")
