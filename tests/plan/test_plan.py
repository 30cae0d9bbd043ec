"""Which questions are the same, and which must never be taken for each other."""

from dataclasses import fields

import pyarrow as pa
import pytest

import tacit
from tacit.plan.plan import Plan, question_key

# what is done with the noisy integers, what they are called and what caps were read off does not make another question
AFTERWARDS = {
    "outputs",
    "columns",
    "after",
    "spend",
    "instead_of",
    "learned",
    "public_rows",
    "has_others",
    "public_totals",
    "by_hand",
    "learned_ranges",
    "most_rows",
}


@pytest.fixture
def visits() -> "tacit.asking.Table":
    table = pa.table({"patient": [1, 2, 3], "ward": ["A", "A", "B"], "days": [1.0, 2.0, 3.0], "age": [30, 40, 50]})
    return tacit.table(
        table,
        unit="patient",
        ledger=":memory:",
        budget=tacit.epsilon(100, delta=1e-6),
        rows_per_unit=2,
        groups_per_unit=1,
        columns={"days": {"between": (0, 30)}, "age": {"between": (0, 120)}, "ward": {"keys": ["A", "B"]}},
    )


def test_every_field_of_a_plan_that_decides_noise_is_in_the_key(visits: "tacit.asking.Table") -> None:
    """A field added to plans later is either post-processing, said here, or part of the key."""
    plan = visits.group_by("ward").agg(n=tacit.count(), m=tacit.median("days")).plan(epsilon=1).plan
    for field in fields(Plan):
        if field.name in AFTERWARDS:
            continue
        changed = object.__new__(Plan)
        for each in fields(Plan):
            object.__setattr__(changed, each.name, getattr(plan, each.name))
        object.__setattr__(changed, field.name, ("something else", getattr(plan, field.name)))
        if field.name == "keys":
            object.__setattr__(changed, field.name, ())
        assert question_key(changed) != question_key(plan), field.name


def test_different_questions_have_different_keys(visits: "tacit.asking.Table") -> None:
    questions = [
        visits.median("days"),
        visits.quantile("days", 0.9),
        visits.median("age"),
        visits.variance("days"),
        visits.mean("days"),
        visits.sum("days"),
        visits.count(),
        visits.count("days"),
        visits.where("age > 30").count(),
        visits.covariance("days", "age"),
        visits.correlation("days", "age"),
        visits.group_by("ward").count(),
    ]
    keys = [question_key(question.plan(epsilon=1).plan) for question in questions]
    assert len(set(keys)) == len(questions)


def test_names_order_and_what_is_done_afterwards_do_not_make_another_question(visits: "tacit.asking.Table") -> None:
    one = visits.sql("SELECT ward, COUNT(*) AS n FROM data GROUP BY ward")
    two = visits.sql("SELECT COUNT(*) AS people, ward FROM data GROUP BY 2 HAVING people > 3 ORDER BY people LIMIT 1")
    assert question_key(one.plan(epsilon=1).plan) == question_key(two.plan(epsilon=1).plan)
    assert question_key(one.plan(epsilon=1).plan) != question_key(one.plan(epsilon=2).plan)
