"""`ListedKeys`: a question for only keys, all of them public. Its answer is the list: free, and without reading rows.

So it needs no epsilon, and no plan, ledger or engine.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from tacit.answer import Answer, AnswerInfo, html_lines, loss_record
from tacit.asking.plan_report import PlanReport
from tacit.asking.question import Question, left_record, what_is_left
from tacit.asking.session import Session
from tacit.errors import printable
from tacit.privacy import Loss, PureLoss, confidence_meaning
from tacit.query import Query, Scalar, apply_postprocessing, evaluate, question_text
from tacit.tables import RowUnit

LISTED = "The groups are public: all are listed, whether or not a row is in them. No row was read."


@dataclass(frozen=True, repr=False)
class FreeReport:
    """The plan of a free question, printed as text."""

    text: str

    @property
    def loss(self) -> Loss:
        """The cost of the call, which is zero."""
        return PureLoss(Fraction(0))

    def __str__(self) -> str:
        return printable(self.text, keeping="\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))


@dataclass(frozen=True, repr=False)
class ListedKeys(Question):
    """A question for public keys: `plan` and `answer` are free, with any epsilon or without one."""

    keys: tuple[tuple[Scalar, ...], ...] = ()
    is_free = True

    def plan(self, *_spend: Any, **_options: Any) -> PlanReport:
        """Return that it is free."""
        asked = question_text(self.query)
        return cast(PlanReport, FreeReport(f"{asked}\nCosts nothing, reads nothing. {LISTED}"))

    def answer(self, *_spend: Any, confidence: Any = 0.95, analyst: str | None = None, **_options: Any) -> Answer:
        """Return the public keys, after the question's post-processing."""
        query, session = self.query, self.session
        names = [key.name for key in query.keys]
        kept = apply_postprocessing([dict(zip(names, key, strict=True)) for key in self.keys], query.after)
        rows = [{each.name: evaluate(each.expression, row) for each in query.after.shown} for row in kept]
        declared = session.declaration
        facts = AnswerInfo(
            loss=loss_record(PureLoss(Fraction(0))),
            left=left_record(what_is_left(session, analyst)),
            unit="each row" if isinstance(declared.unit, RowUnit) else f"all rows of one {declared.unit}",
            neighbours="add or remove one" if declared.neighbours == "add-remove" else "replace one",
            confidence=confidence_meaning(confidence),
            durable=session.ledger.durable,
            free=True,
            version=session.registered.version,
            notes=(LISTED,),
            is_public=True,
        )
        types = {each.name: each.type for each in query.after.shown}
        return Answer(rows, tuple(types), types, (), facts)

    def __repr__(self) -> str:
        return printable(f"<question: {question_text(self.query)}; .answer() is free: the groups are public>")


def listed_question(session: Session, query: Query, keys: tuple[tuple[Scalar, ...], ...]) -> ListedKeys:
    """Return the question for public keys, which need no aggregate."""
    return ListedKeys(session, replace(query, outputs=()), keys)
