"""What would be closer at the same epsilon is named with its numbers, if plans foresee that it clearly is."""

from dataclasses import replace
from fractions import Fraction
from math import nan

import pytest

from tacit.answer import half_width
from tacit.answer.answer import AnswerInfo, make_answer
from tacit.forecast.target import closer_words
from tacit.plan import CountRows, Fact, Vector
from tacit.plan.bounds.scaling import LARGEST_BINS
from tests.answer.scaled_plans import noisy_of, scaled_plan

INFO = AnswerInfo({}, {}, "all rows of one id", "add or remove one", Fraction(95, 100), durable=True, free=False)
CONFIDENCE = Fraction(95, 100)
RANGED = Fact("profile 1", "how large x is", ((0,) * LARGEST_BINS,), (Fraction(1),), Fraction(1, 4))
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

    return closer_words(plan, learned, other, {name: half_width(answer, name) for name in names}, CONFIDENCE)


def test_one_number_by_itself_is_named_if_it_is_clearly_closer():
    assert words("n", "m", alone=20).startswith("Closer at the same ε: ask m by itself: about ± 60 instead of ± 300.")
    assert words("n", "m", alone=50).endswith("about ± 150 instead of ± 300.")
    assert words("n", "m", alone=90) == ""
    assert words("n", alone=20) == "", "it is by itself already"


@pytest.mark.parametrize(("listed", "named"), [(50, True), (90, False)])
def test_listing_groups_is_named_if_this_call_paid_for_finding_them(listed, named):
    hint = "Closer at the same ε: list the groups (keys=[...]): n about ± 150 instead of ± 300."
    assert words("n", alone=100, listed=listed, learned=(FOUND,)) == (hint if named else "")
    assert words("n", alone=100, listed=listed) == "", "an earlier call paid for it"


def test_where_a_plan_is_refused_or_a_number_is_not_shown_there_is_no_hint():
    plan = planned("n", "m", scale=100)
    answer = make_answer(plan, noisy_of([[1 << 10, 2 << 10]] * 2), plan.after, INFO)
    widths = {name: half_width(answer, name) for name in ("n", "m")}
    assert closer_words(plan, (FOUND,), lambda *_: None, widths, CONFIDENCE) == ""
    hidden = {name: half_width(replace(answer, aggregates=()), name) for name in ("n", "m")}
    assert closer_words(plan, (FOUND,), lambda *_: planned("n", "m", scale=1), hidden, CONFIDENCE) == ""


def test_all_that_is_closer_is_named_on_request_and_by_its_part_if_no_width_is_known():
    plan = planned("n", "m", scale=100)

    def other(_epsilon, output):
        return planned("n", "m", scale=50) if output is None else planned(output, scale=20)

    found = closer_words(plan, (FOUND, RANGED), other, {"n": 300.0, "m": nan}, CONFIDENCE, most=9)
    assert "ask n by itself: about ± 60 instead of ± 300" in found
    assert "ask m by itself: about 0.2 times as wide" in found
    assert "list the groups (keys=[...]): n about ± 150 instead of ± 300" in found
    assert "declare the range (between=): m about 0.5 times as wide" in found
