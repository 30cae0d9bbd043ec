"""Attacks on what is said around an answer: what was learned, scaled away, cut and foreseen, in text, page and data."""

import json
import re
from collections.abc import Sequence
from typing import Any

from tacit import Answer
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.learned.profiles import NEWCOMER, counts, filled, found_keys, means, whole
from tacit_gauntlet.stage.facts import noisy_numbers_kept, unbounded
from tacit_gauntlet.stage.neighbours import Row, crowd
from tacit_gauntlet.stage.scaled_people import PEOPLE, rows_of
from tacit_gauntlet.stage.table import Question, Table

# what differs from one ledger to the next, and from one moment to the next
MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?")
HASH = re.compile(r"[0-9a-f]{16,}")
# a kernel may be compiled between two questions, whatever the rows
ENGINE = re.compile(r"Engine: [^.<]*")
CROWD = 300


@case(
    "Q31",
    title="what is said around an answer follows from released numbers: the same numbers, the same words",
    feature="answer",
)
def words_follow_from_numbers(size: Size) -> Evidence:
    """Ask about one table, then about others with the noisy numbers of the first: not a letter may differ."""
    asked = (counts, means) if size == "quick" else (counts, means, found_keys, whole, filled)
    differ, letters = [], 0
    kept: list[Any] = []
    with noisy_numbers_kept(kept, again=False):
        said = _all_said(crowd(CROWD), asked)
    letters = sum(map(len, said))
    for name, rows in _others(size).items():
        with noisy_numbers_kept(kept, again=True):
            others = _all_said(rows, asked)
        differ += [f"{name}: {_first(one, other)}" for one, other in zip(said, others, strict=True) if one != other]
    return Evidence(not differ and letters > 0, {"letters": letters, "released": len(kept), "differ": differ[:5]})


def _others(size: Size) -> dict[str, list[Row]]:
    heavy = crowd(CROWD) + rows_of(PEOPLE["many rows in many cells"], NEWCOMER)
    return {"one person more": heavy} if size == "quick" else {"one person more": heavy, "nobody": [], "few": crowd(3)}


def _all_said(rows: list[Row], questions: Sequence[Any]) -> list[str]:
    """Return all that is said when questions are asked one after the other, and again, without moments and hashes."""
    table: Table = unbounded(rows)
    found = []
    for ask in questions:
        question: Question = ask(table)
        answer: Answer = question.answer(epsilon=1, accept_noise=True)
        data: dict[str, Any] = json.loads(answer.to_json())
        del data["receipt"]
        found += [str(answer), answer._repr_html_(), str(answer.details()), json.dumps(data)]
        found += [str(question.plan(epsilon=1)), str(table.facts)]
    return [ENGINE.sub("Engine", HASH.sub("#", MOMENT.sub("@", text))) for text in found]


def _first(one: str, other: str) -> str:
    """Return where two texts begin to differ."""
    place = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return f"{one[max(0, place - 30) : place + 30]!r} is {other[max(0, place - 30) : place + 30]!r}"
