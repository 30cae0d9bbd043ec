"""What is foreseen to be of no use is said and refused before its charge, by released and public numbers only."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.forecast.target import useless_words
from tacit.numbers import show
from tacit.plan import CountRows, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.query import Call, Column, PostProcessing, Value
from tests.answer.scaled_plans import scaled_plan
from tests.answer.test_scaled_moments import plan_of

LEVEL = Fraction(95, 100)
SEEN = Outlook(people=1000, mass=10_000, kept=1.0, scaled=0, beyond_most=0, excess=0)


def counted(*, scale, groups=10, seen=SEEN):
    vector = Vector("rows", shift=10, outlook=seen)
    return scaled_plan([CountRows("n", 0)], [vector], scales=[scale << 10], groups=groups)


def useless(plan, rows=None):
    return useless_words([plan], rows, LEVEL)


def test_a_count_is_of_no_use_if_its_noise_is_as_large_as_a_group_of_average_size():
    assert useless(counted(scale=100)) is None, "1,000 rows a group, and noise within 300"
    problem, mend = useless(counted(scale=400))
    assert problem == "'n' is foreseen to be of no use: about 1,000 ± 1,200 in a group of average size"
    assert mend == "give an epsilon of about 2.4, or ask about fewer or larger groups"


def test_what_may_be_missing_counts_half_since_it_is_only_allowed_for():
    assert useless(counted(scale=100, seen=replace(SEEN, lost_most=2000))) is None
    assert useless(counted(scale=100, seen=replace(SEEN, lost_most=20_000)))


def test_groups_of_unknown_size_and_groups_that_are_picked_are_not_judged():
    assert useless(counted(scale=10**6, seen=replace(SEEN, mass=0.0))) is None
    picked = PostProcessing(having=Call(">", (Column("n"), Value(5, "int"))))
    assert useless(replace(counted(scale=10**6), after=picked)) is None


def moments(*, seen=100.0, lost=0.0, cap=4, scale=1):
    """1,000 people with two columns, squares of which this much each is believed, and this much may be missing."""
    masses = [1000, *[seen**0.5 * 1000] * 2, *[seen * 1000] * 3]
    plan = plan_of(scale, groups=1)
    vectors = [
        replace(each, cap=cap << each.shift, outlook=replace(SEEN, mass=mass, lost_most=lost * mass))
        for each, mass in zip(plan.scaling.vectors, masses, strict=True)
    ]
    return replace(plan, scaling=replace(plan.scaling, vectors=tuple(vectors)))


@pytest.mark.parametrize("at", range(4))
def test_a_moment_is_of_no_use_if_its_interval_would_hold_0_whatever_the_columns_are(at):
    """By noise, by what may be missing, or since nothing is believed of squares beside rows that are."""

    def found(plan):
        return useless(replace(plan, outputs=plan.outputs[at : at + 1]))

    assert found(moments()) is None
    for plan in (moments(scale=1000), moments(lost=2.0), moments(seen=0.0)):
        problem, mend = found(plan)
        assert "is foreseen to be of no use: its interval would hold 0 in a group of average size" in problem
        assert mend == "give more epsilon, or ask about fewer or larger groups"
    assert found(moments(seen=0.0, cap=10_000)) is None, "little of large caps is far more than the noise"


def opened(size=4000, **declared):
    draw = np.random.default_rng(7)
    cells = {"id": np.arange(size) // 2, "g": draw.integers(0, 5, size), "x": draw.normal(50, 10, size).round(2)}
    table = pa.table(cells | {"y": draw.normal(0, 1, size)})
    given = {"unit": "id", "budget": tacit.epsilon(50, delta=1e-6), "ledger": tacit.TRYOUT} | declared
    return tacit.table(table, name="t", **given)


def spent(table):
    return 50 - table.left.epsilon


def test_a_useless_question_is_refused_for_what_its_facts_cost_and_said_in_the_plan():
    # 2,000 people and noise beyond 30,000 rows: facts would have to be wrong by far more than 1e-9 allows
    table = opened()
    table.learn(epsilon=20, by=["g"], keys=list(range(5)))
    before = spent(table)
    question = table.group_by("g", keys=list(range(5))).count()
    assert "Refused, and free: 'count' is foreseen to be of no use" in str(question.plan(epsilon="0.0005"))
    with pytest.raises(tacit.QueryRefused, match="of no use") as refused:
        question.answer(epsilon="0.0005")
    assert "accept_noise=True (--accept-noise)" in str(refused.value)
    assert spent(table) == before, "its facts were known"
    answer = question.answer(epsilon="0.0005", accept_noise=True)
    assert spent(table) > before
    assert question.answer(epsilon="0.0005").to_dicts() == answer.to_dicts(), "what is stored is free, and not judged"


def test_a_refusal_names_exactly_what_was_learned_by_then():
    table = opened()
    question = table.correlation("x", "y")
    with pytest.raises(tacit.QueryRefused, match="even if the columns lay on one line") as refused:
        question.answer(epsilon="0.001")
    learned = sum(each.fact.epsilon for each in table.facts)
    charges = [entry for entry in table.session.ledger.entries() if entry.kind == "charge"]
    assert len(charges) == len(table.facts) > 0
    assert f"this request spent ε = {show(learned)} on facts" in str(refused.value)
    assert question.answer(epsilon="0.001", accept_noise=True).facts.receipt


def test_ordinary_questions_are_not_refused():
    # found and listed keys at small ε: 400 people a group; facts would have to be wrong by more than 1e-9 allows
    for table in (opened(), opened(unit=tacit.ROW)):
        for asked in (table.group_by("g", keys=list(range(5))), table):
            assert asked.agg(n=tacit.count(), m=tacit.mean("x")).answer(epsilon=1).rows
            assert asked.count().answer(epsilon="0.3").rows


def test_public_numbers_tell_before_anything_is_learned():
    small = opened(40, unit=tacit.ROW, rows=40)
    with pytest.raises(tacit.QueryRefused, match="about 8 ± 60"):
        small.group_by("g", keys=list(range(5))).count().answer(epsilon="0.05")
    assert spent(small) == 0


def test_the_word_is_read_before_the_charge():
    with pytest.raises(tacit.InvalidParameter, match="accept_noise must be True or False"):
        opened().count().answer(epsilon=1, accept_noise="yes")


def test_the_first_plan_has_a_range_from_public_numbers_and_the_answer_is_near_it():
    table = opened()
    question = table.group_by("g").agg(n=tacit.count(), m=tacit.mean("x"))
    text = str(question.plan(epsilon=1))
    assert "for a group of 1,000 people with 1 to 10 rows each:\n  n: about ± " in text
    assert "% of the range of its values" in text
    assert "Closer at the same ε: " in text
    assert "ask n by itself: about ± " in text
    assert text == str(opened().group_by("g").agg(n=tacit.count(), m=tacit.mean("x")).plan(epsilon=1)), "no row is read"


def test_the_first_plan_of_a_sum_is_about_a_thousand_people_whatever_is_asked_beside_it():
    """Noise of a cap that one person reaches, beside what a thousand people add up to: about 3 divided by 1,000."""
    questions = [opened().group_by("g").sum("x"), opened().group_by("g").agg(s=tacit.sum("x"), m=tacit.mean("x"))]
    texts = [str(question.plan(epsilon=1)) for question in questions]
    alone, beside = (float(re.search(r"about ± ([0-9.]+) %.* of the sum", text)[1]) for text in texts)
    assert 0.3 < alone < 3
    assert alone < 2 * beside < 20
