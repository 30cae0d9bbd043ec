"""A question as JSON: what the Python door makes comes back as the same tree; what it cannot say is refused."""

import random

import pytest

import tacit
from tacit.errors import QueryRefused
from tacit.json_wire import read_json, write_json
from tacit.ledger import open_ledger
from tacit.query import parse_query, question_from, question_record
from tacit.query.frame import Frame
from tests.kept.questions import all_asked
from tests.kept.stage import visits


def travelled(record: object) -> object:
    return read_json(write_json(record))


def test_every_kept_question_of_the_python_door_comes_back_as_it_was() -> None:
    table = visits(open_ledger(":memory:"))
    declaration = table.frame.declaration
    count = 0
    for asked in all_asked(both_noises=False):
        query = asked.python(table).query
        if query.after.shown or query.after.windows or query.after.having is not None:
            continue
        assert question_from(travelled(question_record(query)), declaration) == query, asked.title
        count += 1
    assert count > 40


def test_random_conditions_come_back_as_they_were() -> None:
    table = visits(open_ledger(":memory:"))
    draw = random.Random(5)
    texts = ["age", "pay", "bill", "ward", "site", "day", "note", "urgent"]
    forms = [
        "{n} IS NOT NULL AND age >= {i}",
        "COALESCE(pay, {f}) BETWEEN {i} AND 90",
        "UPPER(site) LIKE 'A%' OR ward IN ('A', '{i}')",
        "day < DATE '2020-01-{d:02d}'",
        "bill * 2 + {i} > -{i}.25",
        "CASE WHEN urgent THEN age ELSE {i} END <> {i}",
        "EXTRACT(MONTH FROM day) = {d} AND NOT (age % {d} = 1)",
    ]
    for _ in range(200):
        words = {
            "n": draw.choice(texts),
            "i": draw.randrange(100),
            "f": f"{draw.random():.17g}",
            "d": draw.randrange(1, 28),
        }
        parts = [draw.choice(forms).format(**words) for _ in range(draw.randrange(1, 4))]
        frame = Frame(table.frame.declaration).filtered(" AND ".join(f"({part})" for part in parts))
        query = frame.query([tacit.count()])
        assert question_from(travelled(question_record(query)), frame.declaration) == query, parts


def test_what_joins_or_computes_columns_of_the_answer_travels_as_sql() -> None:
    table = visits(open_ledger(":memory:"))
    shown = parse_query("SELECT COUNT(*) * 2 AS twice FROM visits", table.frame.declaration)
    with pytest.raises(QueryRefused, match=r"ask it with sql"):
        question_record(shown)
