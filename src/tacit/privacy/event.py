"""Events: frozen records of what ran, kept for ever. What they cost is computed from them, in `accounting/`.

An event says which noise was drawn and how far one unit can move what it was added to, both in the same public
grid's steps, as exact rationals. It holds nothing computed from rows.
"""

from dataclasses import dataclass, fields
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.privacy.number import from_text, to_text


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise of `scale` on every coordinate of something one unit moves by `sensitivity` in L1."""

    scale: Fraction
    sensitivity: Fraction


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise of `sigma` on something one unit moves by the root of `sensitivity_squared` in L2.

    `scalar` is True where only one coordinate can move; then its exact delta is known. For vectors it depends on the
    shape of the shift, so zCDP is used.
    """

    sigma: Fraction
    sensitivity_squared: Fraction
    scalar: bool = False


@dataclass(frozen=True)
class StaircaseNoise:
    """Discrete staircase noise of `epsilon` and `width` on one number that one unit moves by at most `sensitivity`.

    Several numbers may have such noise where one unit can move but one of them.
    """

    epsilon: Fraction
    sensitivity: Fraction
    width: Fraction


@dataclass(frozen=True)
class KeyThreshold:
    """Group keys shown where a noisy count of units clears a threshold: a unit's own keys show with chance `delta`."""

    delta: Fraction


@dataclass(frozen=True)
class PureChoice:
    """A selection, or a perturbed answer, that is `epsilon`-DP and about which nothing tighter is claimed."""

    epsilon: Fraction


@dataclass(frozen=True)
class ExponentialChoice:
    """An exponential-mechanism selection whose log-probabilities move within a range of `epsilon`: epsilon²/8 zCDP."""

    epsilon: Fraction


Event = LaplaceNoise | GaussianNoise | StaircaseNoise | KeyThreshold | PureChoice | ExponentialChoice

KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (LaplaceNoise, GaussianNoise, StaircaseNoise, KeyThreshold, PureChoice, ExponentialChoice)
}


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
        values[name] = value if isinstance(value, bool) else from_text(value)
        if not isinstance(value, bool) and (values[name] < 0 or (values[name] == 0 and name in ("scale", "sigma"))):
            raise _damaged(kind)
    if set(known) - {"scalar"} - set(values):
        raise _damaged(kind)
    return kind(**values)  # type: ignore[arg-type]


def _damaged(kind: type[Event]) -> InvalidParameter:
    return InvalidParameter(f"this is no {kind.__name__}, or a damaged one\nhint: tacit ledger verify")
