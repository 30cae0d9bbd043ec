"""Published bugs around an answer: who may have it, what it costs, when its words are read, how it is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("charged by what was found", killed_by="L10", published="budgets charged by the size of the result")
@contextmanager
def charged_by_result() -> Iterator[None]:
    """A table with rows costs twice as much."""
    answer = original("Request.answer")

    def by_result(self: Any, **words: Any) -> Any:
        source = self.payer.engine._source
        rows = source.fetch(source.table).num_rows
        more = replace(self.spend, epsilon=self.spend.epsilon * 2) if rows else self.spend
        return answer(replace(self, spend=more), **words)

    with planted("Request.answer", by_result):
        yield


@mutant("answers kept by the question alone", killed_by="Q17", published="a cache without the table's owner in its key")
@contextmanager
def kept_by_question() -> Iterator[None]:
    """Find a stored answer by the plan, whatever the source and the declaration."""
    keys_of = original("keys_of")

    def careless(table: Any, *, question_key: str, **words: Any) -> Any:
        found = keys_of(table, question_key=question_key, **words)
        return replace(found, question=original("digest")("question", question_key))

    with (
        planted("keys_of", careless),
        planted("Session.key", lambda _self, asked: asked),
    ):
        yield


@mutant(
    "request ids shared by all analysts",
    killed_by="Q17",
    published="idempotency keys that are not per caller",
    raises="InvalidParameter: request_id was used for another question",
)
@contextmanager
def shared_request_ids() -> Iterator[None]:
    """Leave the analyst out of what a request is known by."""
    keys_of = original("keys_of")

    def careless(table: Any, *, analyst: str | None, **words: Any) -> Any:
        del analyst
        return keys_of(table, analyst=None, **words)

    with planted("keys_of", careless):
        yield


@mutant("a word read after the charge", killed_by="S06", published="arguments that fail once the query has run")
@contextmanager
def _read_late() -> Iterator[None]:
    def answer(asked: Any, *given: Any, consistent: Any = False, **words: Any) -> Any:
        found = plainly(asked, *given, **words)
        return found if not consistent else plainly(asked, *given, consistent=True, **words)

    plainly = original("Question.answer")
    with planted("Question.answer", answer):
        yield


@mutant("keys as they are", killed_by="Q26", published="escape sequences in tables that a terminal shows (CWE-150)")
@contextmanager
def _raw_keys() -> Iterator[None]:
    with planted("printable", lambda text, **_: text):
        yield
