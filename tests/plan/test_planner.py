"""The planner is a tuple of passes: each takes a draft to the next, and what is decided so far can be printed."""

from dataclasses import fields

import pyarrow as pa
import pytest

import tacit
from tacit.plan.planner import PASSES, PlanDraft, make_plan, make_spend, trace
from tacit_gauntlet.stage.table import protected

ROWS = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, None, 3], "y": [1.0, 2.0, 3.0]})
RANGES = {"x": {"between": (0, 10)}, "y": {"between": (0, 10)}}
TABLE = protected(ROWS, columns=RANGES)
QUESTIONS = {
    "listed": TABLE.group_by("g", keys=["a", "b"]).agg(n=tacit.count(), m=tacit.mean("x"), q=tacit.median("y")),
    "found": TABLE.group_by("g").agg(v=tacit.variance("y"), d=tacit.count_distinct("x")),
    "ranked": TABLE.top("g", 1, keys=["a", "b"]),
}
# What each pass decides; nothing else changes in it.
DECIDES = {
    "list_keys": {"public_keys"},
    "bound_units": {"unit", "query"},  # of people or of rows, for its quantiles
    "lay_out_parts": {"layout"},
    "bound_moves": {"sensitivities"},
    "choose_noise": {"releases", "quantiles"},
    "set_threshold": {"threshold"},
    "choose_ranking": {"choice"},
}


def asked(name):
    question = QUESTIONS[name]
    spend = make_spend(1, None, None, question.session.registered.budget)
    return question.query, question.session.declaration, spend


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_pass_decides_its_own_and_leaves_the_rest(name):
    before = PlanDraft(*asked(name))
    for step, draft in trace(*asked(name)):
        changed = {each.name for each in fields(PlanDraft) if getattr(before, each.name) != getattr(draft, each.name)}
        assert changed <= DECIDES[step]
        before = draft
    assert [step.__name__ for step in PASSES] == list(DECIDES)
    assert set.union(*DECIDES.values()) == {each.name for each in fields(PlanDraft)} - {"declaration", "spend"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_last_draft_holds_what_the_plan_says(name):
    plan = make_plan(*asked(name))
    *_, (_, last) = trace(*asked(name))
    assert (plan.releases, plan.quantiles, plan.threshold) == (last.releases, last.quantiles, last.threshold)
    assert (plan.outputs, plan.choice, plan.public_keys) == (last.layout.outputs, last.choice, last.public_keys)


def test_a_draft_prints_what_is_decided_and_no_more():
    printed = {step: str(draft) for step, draft in trace(*asked("found"))}
    assert str(PlanDraft(*asked("found"))) == printed["list_keys"] == "nothing yet"
    assert printed["bound_units"] == "unit: UnitBounds(rows=2, groups=2, replace=False)"
    assert "Variance(name='v'" in printed["lay_out_parts"]
    assert "sensitivities" not in printed["lay_out_parts"]
    assert "threshold: Threshold(" in printed["set_threshold"]
    assert "Declaration(" not in printed["choose_ranking"]


def test_a_pass_out_of_turn_is_refused():
    for step in PASSES[2:]:
        if step.__name__ == "set_threshold":
            continue
        with pytest.raises(ValueError, match="before the pass that it depends on"):
            step(PlanDraft(*asked("ranked")))
