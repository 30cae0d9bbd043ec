"""What a collection costs as a central release: each report's own epsilon, or less when reports are shuffled.

With n unlinkable reports of one randomizer, mixed so that nobody can tell whose is whose, the whole reveals less of one
person than their report does. Where reports can be linked, by a token or by a permanent answer, that is refused.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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


class Reserving(Protocol):
    """A ledger, as far as it is needed here."""

    def reserve(self, table: Any, events: Sequence[Event], *, question_key: str, **words: Any) -> Any:
        """Charge, or return the answer that is already there."""
        ...


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


def release_estimate(
    collector: Collector,
    ledger: Reserving,
    table: Any,
    *,
    delta: Number | None = None,
    unlinkable: bool = False,
    **words: Any,
) -> dict[str, Any]:
    """Charge a ledger for an estimate from the reports, store it, and return it as plain values.

    Privacy: charged the local epsilon of one person's reports, times their cap; with `delta` and `unlinkable` reports,
    the smaller loss that shuffling gives. It adds to whatever else the ledger holds about the same people.
    """
    survey = collector.survey
    if delta is not None:
        guarantee = central_guarantee(survey, reports=collector.used, delta=delta, unlinkable=unlinkable)
    else:
        if survey.tokens and collector.cap is None:
            raise InvalidParameter(
                "one person may have sent any number of these reports\nhint: Collector(..., reports_per_person=1)"
            )
        local = PureLoss(survey.epsilon * (collector.cap or 1))
        guarantee = CentralGuarantee(local, survey.loss, collector.used)
    key = json.dumps(["local", survey.tag, survey.epoch, collector.used, str(guarantee.loss)])
    reserved = ledger.reserve(table, guarantee.events, question_key=key, **words)
    if not hasattr(reserved, "commit"):
        stored: dict[str, Any] = json.loads(reserved.answer)
        return stored
    answer = collector.estimate().to_dict()
    reserved.commit(json.dumps(answer))
    return answer
