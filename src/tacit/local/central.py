"""The central privacy loss of a collection of local reports: each report's own epsilon, or less after shuffling.

n unlinkable reports, shuffled so that none can be matched to its sender, reveal less about one person than that
person's report does. Reports that can be linked are refused. `release_estimate` charges that loss to a budget.
"""

import json
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import shuffled
from tacit.errors import InvalidParameter, QueryRefused
from tacit.local.collector import Collector
from tacit.local.protocols.protocol import Response
from tacit.local.survey import Survey
from tacit.numbers import Number, whole
from tacit.privacy import ApproximateLoss, Event, FailureChance, PureChoice, PureLoss

if TYPE_CHECKING:
    from tacit.ledger import Ledger, RegisteredTable


@dataclass(frozen=True)
class CentralGuarantee:
    """The loss of one person who sent one of `reports` reports, when estimates from all of them are released."""

    loss: PureLoss | ApproximateLoss
    local: PureLoss
    reports: int

    @property
    def events(self) -> tuple[Event, ...]:
        """The events to record: epsilon, and delta, the probability that epsilon does not hold."""
        if isinstance(self.loss, PureLoss):
            return (PureChoice(self.loss.epsilon),)
        return PureChoice(self.loss.epsilon), FailureChance(self.loss.delta)

    def __str__(self) -> str:
        return f"{self.loss} for all of {self.reports:,} reports, each {self.local} by itself"

    __repr__ = __str__


def central_guarantee(survey: Survey, *, reports: int, delta: Number, unlinkable: bool) -> CentralGuarantee:
    """Return the central loss of `reports` shuffled reports; `unlinkable` is the collector's own statement.

    >>> from tacit.local.survey import make_survey
    >>> print(central_guarantee(make_survey(2, epsilon=1), reports=10_000, delta=1e-6, unlinkable=True).loss)
    ε = 0.0..., δ = 1e-6
    """
    if survey.linkable:
        raise QueryRefused(
            "reports of this survey can be linked, by a token or a permanent answer, so shuffling gives no "
            "protection\nhint: charge each report its own epsilon, or survey without tokens"
        )
    count = whole(reports, name="reports")
    kind = "randomized response" if isinstance(survey.protocol, Response) else "any"
    loss = shuffled(survey.epsilon, reports=count, delta=delta, unlinkable=unlinkable, randomizer=kind)  # type: ignore[arg-type]
    return CentralGuarantee(loss, survey.loss, count)


def _guarantee_of(collector: Collector, *, delta: Number | None, unlinkable: bool) -> CentralGuarantee:
    """Return the loss of an estimate from a collection: its reports' own epsilon, or with `delta` that of shuffling.

    Privacy: the local epsilon of one person's reports, times their cap.
    """
    survey = collector.survey
    if delta is not None:
        return central_guarantee(survey, reports=collector.used, delta=delta, unlinkable=unlinkable)
    if survey.tokens and collector.cap is None:
        raise InvalidParameter(
            "a person may have sent any number of reports\nhint: use Collector(..., reports_per_person=1)"
        )
    return CentralGuarantee(PureLoss(survey.epsilon * (collector.cap or 1)), survey.loss, collector.used)


def release_estimate(
    collector: Collector,
    ledger: "Ledger",
    table: "RegisteredTable",
    *,
    delta: Number | None = None,
    unlinkable: bool = False,
    request_id: str | None = None,
    analyst: str | None = None,
) -> dict[str, Any]:
    """Charge a table's budget for an estimate from reports, store it, and return it as plain values.

    Privacy: charged the local epsilon of one person's reports, times their cap; with `delta` and `unlinkable` reports,
    the smaller loss that shuffling gives. It adds to whatever else the ledger holds about the same people.
    """
    from tacit.asking import Payment, spend  # only here: what runs on a person's device has no such room

    guarantee = _guarantee_of(collector, delta=delta, unlinkable=unlinkable)
    payment = Payment(
        guarantee.events,
        _estimate_key(collector, guarantee),
        loss=guarantee.loss,
        request_id=request_id,
        analyst=analyst,
        words="an estimate from reports that people perturbed themselves",
    )
    with spend(ledger, table, payment) as charge:
        if charge.stored is None:
            estimate = collector.estimate().to_dict()
            charge.keep(json.dumps(estimate))
            return estimate
    return dict(json.loads(charge.stored))


def _estimate_key(collector: Collector, guarantee: CentralGuarantee) -> str:
    """Return a key that identifies one estimate: the survey, its epoch, the number of reports, and the loss."""
    survey, loss = collector.survey, guarantee.loss
    delta = f", δ = {_in_keys(loss.delta)}" if isinstance(loss, ApproximateLoss) else ""
    return json.dumps(["local", survey.tag, survey.epoch, collector.used, f"ε = {_in_keys(loss.epsilon)}{delta}"])


def _in_keys(amount: Fraction) -> str:
    """Return an amount as the keys in ledgers spell it: a stored estimate is found again however amounts are printed.

    >>> _in_keys(Fraction(1, 10**7)), _in_keys(Fraction(1, 3)), _in_keys(Fraction(1, 3 * 10**7))
    ('1e-07', '0.333334', '3.33334e-8')
    """
    short = f"{float(amount):.10g}"
    if Fraction(short) == amount:
        return short
    six_digits = Context(prec=6, rounding=ROUND_UP)
    return f"{six_digits.divide(Decimal(amount.numerator), Decimal(amount.denominator)).normalize():g}"
