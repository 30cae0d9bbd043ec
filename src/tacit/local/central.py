"""What a collection costs as a central release: each report's own epsilon, or less when reports are shuffled.

With n unlinkable reports of one randomizer, mixed so that nobody can tell whose is whose, the whole reveals less of one
person than their report does. Where reports can be linked, by a token or by a permanent answer, that is refused.
"""

import json
from dataclasses import dataclass

from tacit.accounting import shuffled
from tacit.errors import InvalidParameter, QueryRefused
from tacit.local.collector import Collector
from tacit.local.protocols.protocol import Response
from tacit.local.survey import Survey
from tacit.privacy import ApproximateLoss, Event, FailureChance, Number, PureChoice, PureLoss, whole


@dataclass(frozen=True)
class CentralGuarantee:
    """What releasing estimates from so many reports costs one person who sent one of them."""

    loss: PureLoss | ApproximateLoss
    local: PureLoss
    reports: int

    @property
    def events(self) -> tuple[Event, ...]:
        """What it is recorded as: epsilon, and the chance delta that it does not hold."""
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
    ε = 0.0..., δ = 1e-06
    """
    if survey.linkable:
        raise QueryRefused(
            "reports of this survey can be linked, by a token or a permanent answer, so shuffling hides nothing"
            "\nhint: charge each report its own epsilon, or survey without tokens"
        )
    count = whole(reports, name="reports")
    kind = "randomized response" if isinstance(survey.protocol, Response) else "any"
    loss = shuffled(survey.epsilon, reports=count, delta=delta, unlinkable=unlinkable, randomizer=kind)  # type: ignore[arg-type]
    return CentralGuarantee(loss, survey.loss, count)


def guarantee_of(collector: Collector, *, delta: Number | None, unlinkable: bool) -> CentralGuarantee:
    """Return what an estimate from a collection costs: by its reports' own epsilon, or, with `delta`, as shuffled ones.

    Privacy: the local epsilon of one person's reports, times their cap.
    """
    survey = collector.survey
    if delta is not None:
        return central_guarantee(survey, reports=collector.used, delta=delta, unlinkable=unlinkable)
    if survey.tokens and collector.cap is None:
        raise InvalidParameter(
            "one person may have sent any number of these reports\nhint: Collector(..., reports_per_person=1)"
        )
    return CentralGuarantee(PureLoss(survey.epsilon * (collector.cap or 1)), survey.loss, collector.used)


def estimate_key(collector: Collector, guarantee: CentralGuarantee) -> str:
    """Return what tells one estimate from another: the survey, its epoch, how many reports, and at what loss."""
    survey = collector.survey
    return json.dumps(["local", survey.tag, survey.epoch, collector.used, str(guarantee.loss)])
