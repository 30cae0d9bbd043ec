"""An answer as it is stored and sent, and read back: as JSON over HTTP, and as the text that a ledger keeps for people.

As JSON it is the same to the last digit: it prints, draws and exports as the one that was sent. Everything in it was
released. The rest of the budget is left out: it changes, and the bytes of an answer do not. In a ledger's text the
numbers have the digits that were shown, with ends rounded outwards, and the cut part of a very long answer is gone.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.answer.answer import Answer, AnswerInfo, AnswerRows
from tacit.answer.text import TOTAL, protected_words
from tacit.answer.totals import ADDED_UP, LEFT_ALONE
from tacit.errors import InvalidParameter
from tacit.json_wire import tagged, untagged

FORMAT = 1
_STATED = ("loss", "unit", "neighbours", "durable", "free", "version", "has_changed", "receipt", "bounds", "is_public")


def answer_record(answer: Answer) -> dict[str, Any]:
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
        "totals": {name: list(rolled) for name, rolled in answer.rolled.items()},
        **({"others": list(answer.others)} if answer.others else {}),
        **({"parts": {name: answer_record(each) for name, each in answer.parts.items()}} if answer.parts else {}),
        "facts": {
            **{name: tagged(_json_plain(getattr(facts, name))) for name in _STATED},
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
            AnswerRows(dict(zip(names, columns, strict=True))),
            tuple(record["columns"]),
            record["types"],
            tuple(record["aggregates"]),
            info,
            record["kinds"],
            certify,
            others=tuple(record.get("others", ())),
            rolled={name: [bool(total) for total in rolled] for name, rolled in record["totals"].items()},
            lower_ends={name: [untagged(value) for value in ends] for name, ends in record["at_least"].items()},
            parts={name: answer_from(each, left, certify) for name, each in record.get("parts", {}).items()},
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise InvalidParameter(
            "this is not an answer that this version can read\nhint: update tacit on one of the two ends"
        ) from None


def _json_plain(value: Any) -> Any:
    """Return mappings of any kind as dicts, which JSON has."""
    if isinstance(value, Mapping):
        return {name: _json_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_plain(each) for each in value]
    return value


# ---- The text in a ledger.

_PERCENT = re.compile(r"± ([0-9]{1,3}(?:\.[0-9]{1,12})?) %")
_NUMBER = re.compile(r"-?(?:[0-9][0-9,]*(?:\.[0-9]+)?|inf)")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def answer_of_certificate(certificate: Mapping[str, Any]) -> Answer:
    """Return the answer that a certificate has as a text for people; one without a text, or with another, is refused.

    The certificate's own checks are not repeated here.
    """
    try:
        declared = json.loads(certificate["chain"]["table"]["body"])["declaration"]
        facts = AnswerInfo(
            loss={},
            left={},
            unit=protected_words(declared.get("unit"), declared.get("block"), None),
            neighbours="add or remove one" if certificate["neighbours"] == "add-remove" else "replace one",
            confidence=Fraction(95, 100),
            durable=True,
            free=False,
            version=certificate["table"]["version"],
            receipt={"ledger": certificate["ledger"], "entry": certificate["number"], "time": certificate["time"]},
        )
        return kept_answer(certificate["shown"], facts)
    except (KeyError, TypeError, ValueError):
        raise InvalidParameter(
            "the text of this answer is not kept\nhint: 'tacit ledger show' lists the answers of this ledger"
        ) from None


def kept_answer(text: str, facts: AnswerInfo) -> Answer:
    """Return the answer that `kept_text` wrote, with its cost and notes, about which `facts` are known too.

    A text of anyone else's is refused.

    A cell that is not a number, as for too few people, has no value.
    """
    kept = json.loads(text)
    if "parts" in kept:
        parts = {str(name): kept_answer(json.dumps(part), facts) for name, part in kept["parts"].items()}
        first = next(iter(parts.values()))
        return replace(first, rows=AnswerRows({}), columns=(), types={}, aggregates=(), parts=parts)
    notes = tuple(str(note) for note in kept["notes"])
    reading, advice = (str(kept.get(name, "")) for name in ("reading", "advice"))
    facts = replace(facts, loss=_loss(kept["loss"]), notes=notes, reading=reading, advice=advice)
    head = [(str(name), bool(right)) for name, right in kept["columns"]]
    cells: list[list[str]] = [[str(row[place]) for row in kept["rows"]] for place in range(len(head))]
    columns: dict[str, list[Any]] = {}
    keys, aggregates = list[str](), list[str]()
    place = 0
    while place < len(head):
        name, is_number = head[place]
        if not is_number:
            columns[name] = _json_keys(cells[place])
            keys.append(name)
            place += 1
            continue
        percent = None if place + 1 == len(head) else _PERCENT.fullmatch(head[place + 1][0])
        if percent is None:
            raise ValueError("a number without its error bar")
        facts = replace(facts, confidence=Fraction(percent[1]) / 100)
        spans = [_span(*both) for both in zip(cells[place], cells[place + 1], strict=True)]
        columns |= {f"{name}{end}": [span[at] for span in spans] for at, end in enumerate(("", "_low", "_high"))}
        aggregates.append(name)
        place += 2
    names = tuple(name for name, _ in head if name in keys or name in aggregates)
    has_totals = any(note in notes for note in (ADDED_UP, LEFT_ALONE))
    rolled = {name: [each == TOTAL for each in columns[name]] for name in keys if has_totals and TOTAL in columns[name]}
    for name, totals in rolled.items():  # a group of that name is in quotes
        groups = [TOTAL if each == f'"{TOTAL}"' else each for each in columns[name] if each != TOTAL]
        named = iter(_json_keys(groups))
        columns[name] = [None if is_total else next(named) for is_total in totals]
    types = {name: _type(values) for name, values in columns.items()}
    return Answer(AnswerRows(columns), names, types, tuple(aggregates), facts, rolled=rolled)


def _loss(written: Any) -> dict[str, Any]:
    return {"epsilon": written["epsilon"], "delta": written["delta"]} | {
        name: str(written[name]) for name in ("text", "meaning")
    }


def _json_keys(shown: list[str]) -> list[Any]:
    """Return keys as numbers where all of them are, so that they are drawn on a scale."""
    return [int(each) for each in shown] if shown and all(map(_WHOLE.fullmatch, shown)) else list(shown)


def _span(shown: str, bar: str) -> tuple[Any, Any, Any]:
    value = _json_numbers(shown)
    low, mark, high = bar.partition(" … ")
    if value is None:
        return None, None, None
    if mark:
        return value, _json_numbers(low), _json_numbers(high)
    beside = _json_numbers(bar)
    return (value, None, None) if beside is None else (value, value - beside, value + beside)


def _json_numbers(shown: str) -> Any:
    if _NUMBER.fullmatch(shown) is None:
        return None
    plain = shown.replace(",", "")
    return int(plain) if plain.lstrip("-").isdecimal() else float(plain)


def _type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    return "int" if kinds == {int} else "text" if str in kinds else "float"
