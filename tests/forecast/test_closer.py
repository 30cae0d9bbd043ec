"""What would be closer at the same epsilon is named with its numbers, if plans foresee that it clearly is."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.answer.answer import AnswerInfo, make_answer
from tacit.forecast.closer import closer_words
from tacit.plan import CountRows, Fact, Vector
from tests.answer.scaled_plans import noisy_of, scaled_plan

INFO = AnswerInfo({}, {}, "all rows of one id", "add or remove one", Fraction(95, 100), durable=True, free=False)
CONFIDENCE = Fraction(95, 100)
FOUND = Fact("groups 1", "which groups there are", (), (), Fraction(1, 2))


def planned(*names, scale):
    return scaled_plan(
        [CountRows(name, at) for at, name in enumerate(names)],
        [Vector("rows", shift=10)] * len(names),
        scales=[scale << 10] * len(names),
        groups=2,
    )


def words(*names, alone, listed=100, learned=()):
    """Return the hint of a plan with noise of scale 100, if one number alone or listed keys would have another."""
    plan = planned(*names, scale=100)
    noisy = noisy_of([[1000 << 10, 2000 << 10]] * len(names))
    answer = make_answer(plan, noisy, plan.after, INFO)

    def other(_epsilon, output):
        return planned(*names, scale=listed) if output is None else planned(output, scale=alone)

    return closer_words(plan, learned, other, answer, CONFIDENCE)


def test_one_number_by_itself_is_named_if_it_gains_more_than_a_plain_split_would():
    assert words("n", "m", alone=20).startswith("Closer at the same ε: ask m by itself: about ± 60 instead of ± 300.")
    assert words("n", "m", alone=50) == ""
    assert words("n", alone=20) == "", "it is by itself already"


@pytest.mark.parametrize(("listed", "named"), [(50, True), (90, False)])
def test_listing_groups_is_named_if_this_call_paid_for_finding_them(listed, named):
    hint = "Closer at the same ε: list the groups (keys=[...]): n about ± 150 instead of ± 300."
    assert words("n", alone=100, listed=listed, learned=(FOUND,)) == (hint if named else "")
    assert words("n", alone=100, listed=listed) == "", "an earlier call paid for it"


def test_where_a_plan_is_refused_or_a_number_is_not_shown_there_is_no_hint():
    plan = planned("n", "m", scale=100)
    answer = make_answer(plan, noisy_of([[1 << 10, 2 << 10]] * 2), plan.after, INFO)
    assert closer_words(plan, (FOUND,), lambda *_: None, answer, CONFIDENCE) == ""
    hidden = replace(answer, aggregates=())
    assert closer_words(plan, (FOUND,), lambda *_: planned("n", "m", scale=1), hidden, CONFIDENCE) == ""
