"""`ListedKeys`: a question for only keys, all of them public. Its answer is the list: free, and without reading rows.

So it needs no epsilon, and no plan, ledger or engine.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, cast

from tacit.answer import Answer, AnswerInfo, loss_record
from tacit.asking.describing import FreeReport
from tacit.asking.question import Question
from tacit.asking.request import left_record, what_is_left
from tacit.asking.session import Session
from tacit.asking.verbs import QuestionCall, QuestionVerbs
from tacit.errors import printable
from tacit.privacy import PureLoss
from tacit.query import Query, Scalar, apply_postprocessing, evaluate, question_text
from tacit.tables import RowUnit

LISTED = "The groups are public: all are listed, whether or not a row is in them. No row was read."


@dataclass(frozen=True, repr=False)
class ListedKeys(QuestionVerbs[FreeReport]):
    """A question for public keys: `plan` and `answer` are free, with any epsilon or without one."""

    session: Session
    query: Query
    keys: tuple[tuple[Scalar, ...], ...] = ()
    is_free: ClassVar[bool] = True

    def _planned(self, call: QuestionCall) -> FreeReport:  # noqa: ARG002
        return FreeReport(f"{question_text(self.query)}\nCosts nothing, reads nothing. {LISTED}")

    def _answered(self, call: QuestionCall) -> Answer:
        query, session = self.query, self.session
        names = [key.name for key in query.keys]
        kept = apply_postprocessing([dict(zip(names, key, strict=True)) for key in self.keys], query.after)
        rows = [{each.name: evaluate(each.expression, row) for each in query.after.shown} for row in kept]
        declared = session.declaration
        facts = AnswerInfo(
            loss=loss_record(PureLoss(Fraction(0))),
            left=left_record(what_is_left(session, call.analyst)),
            unit="each row" if isinstance(declared.unit, RowUnit) else f"all rows of one {declared.unit}",
            neighbours="add or remove one" if declared.neighbours == "add-remove" else "replace one",
            confidence=call.level,
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


def listed_question(session: Session, query: Query, keys: tuple[tuple[Scalar, ...], ...]) -> Question:
    """Return the question for public keys, which need no aggregate."""
    return cast(Question, ListedKeys(session, replace(query, outputs=()), keys))  # its own plan and answer
