"""An answer as JSON, and back, the same to the last digit: it prints, draws and exports as the one that was sent.

Everything in it was released. The rest of the budget is left out: it changes, and the bytes of an answer do not. Whole
numbers have all their digits, and floats are read back as the same floats.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tacit.answer.answer import Answer, AnswerInfo, Rows
from tacit.errors import InvalidParameter
from tacit.json_wire import tagged, untagged

FORMAT = 1
_STATED = ("loss", "unit", "neighbours", "durable", "free", "version", "has_changed", "receipt", "bounds", "is_public")


def answer_record(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON values."""
    facts = answer.facts
    return {
        "format": FORMAT,
        "columns": list(answer.columns),
        "types": dict(answer.types),
        "aggregates": list(answer.aggregates),
        "kinds": dict(answer.kinds),
        "cells": {
            "names": answer.names,
            "rows": [[cell(row[name]) for name in answer.names] for row in answer.rows],
        },
        "at_least": {name: [cell(value) for value in ends] for name, ends in answer.lower_ends.items()},
        "facts": {
            **{name: tagged(_plain(getattr(facts, name))) for name in _STATED},
            "confidence": str(facts.confidence),
            "notes": list(facts.notes),
            "reading": facts.reading,
            "advice": facts.advice,
        },
    }


def cell(value: Any) -> Any:
    """Return a cell as JSON writes it exactly: a whole number stays whole, for any size."""
    return tagged(value)


def answer_from(
    record: Mapping[str, Any], left: Mapping[str, Any], certify: Callable[[], Mapping[str, Any]] | None = None
) -> Answer:
    """Return the answer that `answer_record` wrote, with the current rest of the budget."""
    try:
        if record["format"] != FORMAT:
            raise InvalidParameter("this answer is of a newer version of tacit\nhint: update tacit to read it")
        facts = record["facts"]
        names = list(record["cells"]["names"])
        rows = record["cells"]["rows"]
        columns = [[untagged(row[place]) for row in rows] for place in range(len(names))]
        info = AnswerInfo(
            **{name: untagged(facts[name]) for name in _STATED},
            left=left,
            confidence=Fraction(facts["confidence"]),
            notes=tuple(facts["notes"]),
            reading=facts["reading"],
            advice=facts["advice"],
        )
        return Answer(
            Rows(dict(zip(names, columns, strict=True))),
            tuple(record["columns"]),
            record["types"],
            tuple(record["aggregates"]),
            info,
            record["kinds"],
            certify,
            {name: [untagged(value) for value in ends] for name, ends in record["at_least"].items()},
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise InvalidParameter(
            "this must be an answer, and is not\nhint: update tacit on one of the two ends"
        ) from None


def _plain(value: Any) -> Any:
    """Return mappings of any kind as dicts, which JSON has."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
