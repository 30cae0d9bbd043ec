"""Chooses the protocol with the least error for a domain, an epsilon and a number of people, and shows the comparison.

The variance of an estimated count is exact: averaged over the domain's answers it does not depend on the true ones. The
variance of a mean depends on the values; the largest is taken.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from tacit.errors import InvalidParameter
from tacit.local.domain import read_labels, read_range
from tacit.local.protocols.hashing import LocalHashing
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.protocol import Response, spread_of
from tacit.local.protocols.subset import Subset
from tacit.local.protocols.unary import Permanent
from tacit.numbers import Number, decimal_meaning, positive, whole
from tacit.privacy import PureLoss

# ---- the catalogue ---------------------------------------------------------------------------------------------------


AUTO = "auto"

FrequencyProtocol = Response | Subset | LocalHashing | Permanent

FREQUENCIES: dict[str, Callable[[int, Fraction], FrequencyProtocol]] = {
    "response": Response,
    "subset": Subset,
    "local-hashing": LocalHashing,
}


def frequency_protocol(name: str, size: int, epsilon: Fraction) -> FrequencyProtocol:
    return FREQUENCIES[known_protocol(name, *FREQUENCIES, "longitudinal")](size, epsilon)


def known_protocol(name: str, *known: str) -> str:
    """Return the name of a protocol, or refuse one that this question does not have."""
    if name in known:
        return name
    shown = repr(name) if isinstance(name, str) and len(name) < 40 else "this"
    raise InvalidParameter(
        f"{shown} is not a protocol for this question\nhint: protocol is one of {', '.join((AUTO, *known))}"
    )


# ---- the choice ------------------------------------------------------------------------------------------------------


# Within this much of the least variance the shortest report is chosen: the error differs by a quarter of a percent.
TIE = 1.005
# A protocol with a longer report is not chosen: the report would not fit in one message.
REPORT_BYTES_MAX = 1 << 14


@dataclass(frozen=True)
class Candidate:
    """A protocol: the variance that one report adds, the error for all people, and the length of a report."""

    protocol: str
    variance: float
    error: float
    report_bytes: int


@dataclass(frozen=True)
class ChosenProtocol:
    """The protocol that errs least, and the table it was chosen from, best first."""

    protocol: str
    loss: PureLoss
    people: int
    what: str
    table: tuple[Candidate, ...]
    report_bytes_max: int

    def __str__(self) -> str:
        counts = self.what == "count"  # only their errors have a share of people
        head = f"{'protocol':16} {'± 95 %':>12}{' of people' * counts:>{11 * counts}} {'bytes a report':>15}"
        rows = [
            f"{row.protocol:16} {row.error:12,.4g}{f' {row.error / self.people:10.3%}' * counts} {row.report_bytes:15,}"
            f"{'  <- chosen' * (row.protocol == self.protocol)}"
            for row in self.table
        ]
        tail = f"Error of an estimated {self.what}, {self.people:,} people, {self.loss} for each report."
        return "\n".join([head, *rows, tail])

    __repr__ = __str__


def choose(
    domain: Any = None,
    epsilon: Number = 1,
    people: int = 10_000,
    *,
    between: Any = None,
    report_bytes_max: int = REPORT_BYTES_MAX,
) -> ChosenProtocol:
    """Return the protocol with the least variance for this domain, or for a mean `between` two ends, and the table.

    If variances are within half a percent, the protocol with the shortest report is chosen.

    >>> choose(100, epsilon=1, people=10_000).protocol
    'subset'
    >>> choose(["yes", "no"], epsilon=1, people=10_000).protocol
    'response'
    """
    exact = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    count = whole(people, name="people")
    if (domain is None) == (between is None):
        raise InvalidParameter(
            "give either domain or between, not both\nhint: e.g. choose(['yes', 'no'], epsilon=1, people=1000)"
        )
    candidates = (
        [_mean_candidate(between, exact, count)] if domain is None else _counts(read_labels(domain).size, exact, count)
    )
    fitting = [candidate for candidate in candidates if candidate.report_bytes <= report_bytes_max]
    if not fitting:
        raise InvalidParameter(
            f"no protocol's report fits in {report_bytes_max} bytes\nhint: allow more with report_bytes_max"
        )
    least = min(candidate.variance for candidate in fitting)
    best = min(
        (candidate for candidate in fitting if candidate.variance <= TIE * least),
        key=lambda candidate: (candidate.report_bytes, candidate.variance),
    )
    table = tuple(sorted(candidates, key=lambda candidate: candidate.variance))
    what = "mean" if domain is None else "count"
    return ChosenProtocol(best.protocol, PureLoss(exact), count, what, table, report_bytes_max)


def _counts(size: int, epsilon: Fraction, people: int) -> list[Candidate]:
    candidates = []
    for name in FREQUENCIES:
        protocol = frequency_protocol(name, size, epsilon)
        variance = spread_of(protocol.keep, protocol.stray).mean_over(size)
        candidates.append(Candidate(name, variance, _QUANTILE * math.sqrt(people * variance), protocol.payload_bytes))
    return candidates


def _mean_candidate(between: Any, epsilon: Fraction, people: int) -> Candidate:
    protocol = MeanResponse(epsilon)
    asked = read_range(between, protocol.grid_bits)
    variance = max(protocol.variance(value) for value in (Fraction(0), Fraction(1, 2)))
    error = _QUANTILE * math.sqrt(variance / people) * float(asked.high - asked.low)
    return Candidate(protocol.name, variance, error, protocol.payload_bytes)


_QUANTILE = NormalDist().inv_cdf(0.975)
