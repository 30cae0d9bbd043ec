"""Sameness: entries that differ from one read before only in names, times and answers are not parsed again.

The texts are canonical JSON, so what differs is at known places: digits of a hash, a time, an answer. The rest of a
charge is looked up as text. What is found here is exactly what parsing would find; where that is not sure, nothing is
found, and the entry is parsed as a whole.
"""

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Generic, TypeVar

from tacit.ledger.entry import Record

_ANSWER = '{"answer":"'
_REST_OF_ANSWER = re.compile(
    r',"charge":([1-9][0-9]{0,17}),"kind":"answer","question":"([0-9a-f]{64})","table":"[0-9a-f]{32}"'
    r',"time":"([-0-9T:.Z]{27})"\}'
).fullmatch

_MIDDLE = ',"kind":"charge","people":"'
_ASKED = '"asked":"'
_TIME = re.compile(r"[-0-9T:.Z]{27}").fullmatch
# After the middle: 32 digits of the people, then these, with 64 digits each.
_QUESTION_AT = 32 + len('","question":"')
_REQUEST_AT = _QUESTION_AT + 64 + len('","request":')
_TIME_END = len('"}')
# What stands in for what differs, once, when a text is parsed that was not seen before.
_STANDS_IN = ("a" * 64, "b" * 64, "c" * 64, "0" * 27)

SEEN_MAX = 100_000

Meaning = TypeVar("Meaning")


def alike_answer(body: str) -> tuple[str, ...] | None:
    """Return the charge's number, the question and the time of an answer, as text; None for anything else."""
    if not body.startswith(_ANSWER):
        return None
    _, end = scanstring(body, len(_ANSWER))
    found = _REST_OF_ANSWER(body, end)
    return None if found is None else found.groups()


class AlikeCharges(Generic[Meaning]):
    """Charges by their text without what differs, each with what it means, which `means` tells from the record."""

    def __init__(self, means: Callable[[Record], Meaning]) -> None:
        self._means = means
        self._seen: dict[tuple[str, ...], Meaning] = {}

    def find(self, body: str) -> tuple[Meaning, str, str | None, str] | None:
        """Return what a charge means, its question, its request and its time; None for anything else."""
        head, middle, rest = body.partition(_MIDDLE)
        at = head.find(_ASKED) + len(_ASKED)
        if not middle or at < len(_ASKED):
            return None
        asked, question, time = (
            head[at : at + 64],
            rest[_QUESTION_AT : _QUESTION_AT + 64],
            rest[-27 - _TIME_END : -_TIME_END],
        )
        named = rest[_REQUEST_AT : _REQUEST_AT + 1] == '"'
        start, end = (_REQUEST_AT + 1, _REQUEST_AT + 65) if named else (_REQUEST_AT, _REQUEST_AT)
        request = rest[start:end]
        if not (asked + question + request).isalnum() or _TIME(time) is None:
            return None
        same = (
            head[:at],
            head[at + 64 :],
            rest[:_QUESTION_AT],
            rest[_QUESTION_AT + 64 : start],
            rest[end : -27 - _TIME_END],
            rest[-_TIME_END:],
        )
        meaning = self._seen.get(same)
        if meaning is None:
            meaning = self._meaning(same, named=named)
            if meaning is None:
                return None
        return meaning, question, request if named else None, time

    def _meaning(self, same: tuple[str, ...], *, named: bool) -> Meaning | None:
        """Return what a text means that was not seen before, if what differs is where it was looked for."""
        asked, question, request, time = _STANDS_IN
        begin, declared, people, between, end, close = same
        text = (
            begin
            + asked
            + declared
            + _MIDDLE
            + people
            + question
            + between
            + (request if named else "")
            + end
            + time
            + close
        )
        record = json.loads(text)
        standing = (asked, question, request if named else None, time)
        if tuple(record.get(name) for name in ("asked", "question", "request", "time")) != standing:
            return None
        if record["kind"] != "charge" or len(self._seen) >= SEEN_MAX:
            return None
        meaning = self._seen[same] = self._means(record)
        return meaning
