"""Groups that are not listed are found once, kept as a fact, and listed for every later question."""

from fractions import Fraction
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.asking.learned import LEARNED_MOST, USUAL, cost_of_wanted, is_too_dear, spend_for
from tacit.errors import QueryRefused
from tacit.plan import Fact, make_plan, make_spend, missing_facts
from tacit.plan.bounds.chosen import FIRST_SHARE, SECOND_MOST
from tacit.plan.bounds.facts import (
    KeySearch,
    _hold_enough,
    grouping_of,
    known_keys,
    smallest_shown,
)
from tacit.plan.bounds.profiles import Reading
from tacit.plan.groups import UNIT_SHIFT
from tests.plan.learned import learned, rows

SIZES = {"large": 3000, "middle": 1000, "small": 20, None: 500, "alone": 1}
# A question looks for groups of a hundred people, whatever its epsilon: a threshold of about 110 people with noise of
# scale 3.7 shows a group of 20, or misses one of 500, with probability below 1e-10 and 1e-40.
SHOWN = [None, "large", "middle"]


def people(sizes=SIZES, rows=2):
    """Return a table of people who have so many rows in one group each."""
    groups = [group for group, size in sizes.items() for _ in range(size * rows)]
    ids = np.repeat(np.arange(sum(sizes.values())), rows)
    return pa.table({"id": ids, "g": pa.array(groups, pa.string()), "x": np.arange(len(ids)) % 7})


def opened(rows=None, *, name="t", **declared):
    budget = tacit.epsilon(10**6, delta=1e-6)
    given = people() if rows is None else rows
    return tacit.table(given, name=name, unit="id", budget=budget, ledger=tacit.TRYOUT, **declared)


def groups_of(answer):
    return [row["g"] for row in answer.to_dicts()]


def test_groups_are_found_once_and_are_free_for_every_later_question():
    table = opened()
    first = table.group_by("g").count().answer(epsilon=100)
    assert groups_of(first) == SHOWN
    entries = [fact.entry for fact in table.facts if fact.fact.finds_groups]
    assert len(entries) == 1
    assert first.facts.loss["delta"] > 0  # a group of one person may be shown, with that probability
    for question in (
        table.group_by("g").count(),
        table.group_by("g").agg(n=tacit.count(), m=tacit.mean("x")),
        table.where("x > 2").group_by("g").sum("x"),
    ):
        answer = question.answer(epsilon=50, noise="laplace")
        assert groups_of(answer) == SHOWN
        assert answer.facts.loss["delta"] == 0
    assert [fact.entry for fact in table.facts if fact.fact.finds_groups] == entries


def test_what_was_found_of_a_filter_is_not_taken_for_the_whole_table():
    table = opened()
    assert groups_of(table.where("g <> 'large'").group_by("g").count().answer(epsilon=100)) == ["middle"]
    assert groups_of(table.group_by("g").count().answer(epsilon=100)) == SHOWN


def test_learning_with_more_epsilon_finds_smaller_groups():
    table = opened()
    question = table.group_by("g").count()
    # a first round's threshold is hundreds of people there, and its noise is 33 wide
    assert "small" not in groups_of(question.answer(epsilon=Fraction(1, 2)))
    table.learn(epsilon=40, by=["g"])
    assert groups_of(question.answer(epsilon=2)) == [None, "large", "middle", "small"]


@pytest.mark.parametrize("where", [None, "x > 2"])
def test_a_far_smaller_question_that_found_no_group_does_not_keep_later_ones_from_finding_them(where):
    table = opened()
    question = (table if where is None else table.where(where)).group_by("g").count()
    with pytest.raises(QueryRefused, match="no group by 'g' has about"):  # its best threshold is about 100,000 people
        question.answer(epsilon=Fraction(1, 1000))
    assert groups_of(question.answer(epsilon=100)) == SHOWN


def scale_at(epsilon):
    """Return the scale of the noise on votes, in fine steps."""
    return (1 << UNIT_SHIFT) / Fraction(epsilon)


def test_another_round_has_clearly_less_noise_than_all_before_it():
    query, declaration, spend = asked_of(opened().group_by("g").count(), epsilon=1)
    search = KeySearch(grouping_of(query, declaration, spend))
    for percent, is_over in ((1, False), (15, False), (16, True), (900, True)):
        each, parts = Fraction(percent, 100), ((), (500 << UNIT_SHIFT,))
        facts = {search.key(n): Fact(search.key(n), "", parts, (scale_at(each),), each) for n in range(2)}
        following = search.next_round(facts, [reading(10**6)], spend)
        assert (following is None) == is_over
        if following is not None:
            assert following.key == search.key(2)
            assert following.plan.spend.epsilon == SECOND_MOST


def test_a_fact_of_the_whole_table_stands_in_for_one_round_of_a_filter_and_planning_ends(monkeypatch):
    turns = count()

    def counted(*asked):
        assert next(turns) < 1000  # planning without end
        return missing_facts(*asked)

    monkeypatch.setattr("tacit.asking.learned.missing_facts", counted)
    table = opened(people({"a": 3000, "b": 3000}))
    with pytest.raises(QueryRefused, match="no group by 'g' has about"):
        table.group_by("g").count().answer(epsilon=Fraction(1, 1000))
    # the profile of so small a question is poor for this one, which is small enough to take facts of the whole table
    filtered = table.where("x > 2").group_by("g").count()
    assert "Bounds: learned in this call" in str(filtered.plan(epsilon=Fraction(3, 10)))
    assert groups_of(filtered.answer(epsilon=Fraction(3, 10))) == ["a", "b"]


def test_another_round_is_not_run_if_it_would_leave_less_than_a_tenth_of_epsilon():
    query, declaration, spend = asked_of(opened().group_by("g").count(), epsilon=1)
    search = KeySearch(grouping_of(query, declaration, spend))
    one = Fact(search.key(0), "", ((), (500 << UNIT_SHIFT,)), (scale_at(FIRST_SHARE),), FIRST_SHARE)
    following = search.next_round({one.key: one}, [reading(10**6)], spend)
    left = Fraction(9, 10) - following.plan.spend.epsilon
    for before, is_dear in ((left, False), (left + Fraction(1, 100), True)):
        learned_before = [Fact("profile", "", (), (), before)]
        assert is_too_dear([following], {one.key: one}, learned_before, spend) == is_dear
        assert not is_too_dear([following], {}, learned_before, spend)  # without a first round there is no answer


def test_if_no_group_is_large_enough_the_refusal_says_what_looking_has_cost():
    table = opened(people({f"{n}": 1 for n in range(40)}))
    before = table.remaining.epsilon if hasattr(table, "remaining") else None
    with pytest.raises(QueryRefused, match=r"no group by 'g' has about \d+ people or more.*; this request spent ε = 0"):
        table.group_by("g").count().answer(epsilon=1)
    assert before is None or table.remaining.epsilon > before - 1
    with pytest.raises(QueryRefused, match="no group by 'g' has about"):
        table.group_by("g").count().answer(epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)",
        "SELECT g, x, SUM(x) AS s FROM t GROUP BY CUBE (g, x)",
        "SELECT g, MODE(x) AS m, COUNT(*) AS n FROM t GROUP BY g",
        "SELECT g, MEDIAN(x) AS m, AVG(x) AS a FROM t GROUP BY g",
        "SELECT g, MODE(x) AS o, MEDIAN(x) AS m, COUNT(*) AS n FROM t GROUP BY g",
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g UNION ALL SELECT g, SUM(x) FROM t WHERE x > 2 GROUP BY g",
    ],
)
def test_parts_without_any_group_are_refused_before_their_charge_as_one_is(text):
    table = opened(people({f"{n}": 1 for n in range(40)}), columns={"x": {"between": (0, 6)}})
    with pytest.raises(
        QueryRefused, match=r"no group by 'g'.* has about \d+ people or more.*; this request spent ε = 0"
    ):
        table.sql(text).answer(epsilon=1)


def test_of_two_parts_one_may_have_no_group():
    table = opened(people({f"{n}": 1 for n in range(40)}))
    both = table.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g UNION ALL SELECT 'all', COUNT(*) FROM t")
    assert groups_of(both.answer(epsilon=1, accept_noise=True)) == ["all"]


@pytest.mark.parametrize("epsilon", [1, Fraction(12, 5), 3])
@pytest.mark.parametrize("budget", [3, 30])
def test_a_question_that_finds_no_group_in_any_round_spends_no_more_delta_than_it_has_for_groups(epsilon, budget):
    """At these epsilons a third round would have clearly less noise. Of no rows no group is found, by no luck."""
    declared = {"unit": "id", "ledger": tacit.TRYOUT, "name": "t", "budget": tacit.epsilon(budget, delta=1e-6)}
    table = tacit.table(people({}), **declared)
    question = table.group_by("g").count()
    with pytest.raises(QueryRefused, match="no group by 'g' has about"):
        question.answer(epsilon=epsilon)
    spent = table.session.ledger.spent(table.session.registered)
    _, _, spend = asked_of(question, epsilon)
    assert 0 < spent.delta <= spend.delta_keys
    assert spent.epsilon < epsilon


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_facts_that_are_wanted_once_groups_are_known_leave_a_part_of_epsilon_for_the_answer(neighbours):
    """The last round found few groups, of which profiles are learned by another norm: that had gone beyond epsilon."""
    rows = people({f"{n}": 10 for n in range(3)}, rows=3)
    table = tacit.table(
        rows, name="t", unit="id", budget=tacit.epsilon(100, delta=1e-6), ledger=tacit.TRYOUT, neighbours=neighbours
    )
    table.group_by("g", smallest=20).agg(n=tacit.count(), m=tacit.mean("x")).answer(epsilon=30, accept_noise=True)
    assert table.session.ledger.spent(table.session.registered).epsilon == 30


def test_a_fact_that_would_leave_too_little_of_epsilon_is_learned_with_less():
    asked = asked_of(opened().group_by("g", keys=["large"]).count(), epsilon=1)
    spend, wanted = asked[2], missing_facts(*asked, {})
    cost = cost_of_wanted(wanted)
    for before, share in ((LEARNED_MOST - cost, 1), (LEARNED_MOST - cost / 2, Fraction(1, 4))):
        less = spend_for(wanted, [Fact("other", "", (), (), before)], spend, USUAL)
        assert less.epsilon == share
        assert cost_of_wanted(missing_facts(*asked[:2], less, {})) == cost * share


def test_a_round_beyond_a_calls_delta_is_not_run():
    query, declaration, spend = asked_of(opened().group_by("g").count(), epsilon=1)
    search = KeySearch(grouping_of(query, declaration, spend))
    one = Fact(search.key(0), "", ((), (500 << UNIT_SHIFT,)), (scale_at(FIRST_SHARE),), FIRST_SHARE)
    following = search.next_round({one.key: one}, [reading(10**6)], spend)
    left = spend.delta_keys - following.plan.threshold.delta
    for before, is_dear in ((left, False), (left + Fraction(1, 10**30), True)):
        earlier = [Fact(search.key(0), "", (), (), Fraction(0), delta=before)]
        assert is_too_dear([following], {one.key: one}, earlier, spend) == is_dear


def asked_of(question, epsilon=1):
    spend = make_spend(epsilon, None, None, question.session.registered.budget)
    return question.query, question.session.declaration, spend


def test_a_fact_whose_groups_are_not_of_the_columns_type_is_refused_before_anything_is_charged():
    asked = asked_of(opened().group_by("g").count())
    facts = learned(*asked, rows({1: 5000}))
    for keys in (((1,),) * 8, tuple((n,) for n in range(8)), tuple((f"{n}", "b") for n in range(8)), ((None,),)):
        forged = {
            key: Fact(**{**vars(fact), "keys": keys}) if fact.finds_groups else fact for key, fact in facts.items()
        }
        with pytest.raises(QueryRefused, match="is not what such a fact has"):
            make_plan(*asked, forged)


def test_a_fact_some_of_whose_groups_are_not_of_the_columns_type_is_refused_however_many_votes_it_has():
    asked = asked_of(opened().group_by("g").count())
    facts = learned(*asked, rows({1: 5000}))
    (key,) = (key for key, fact in facts.items() if fact.finds_groups)
    mixed = (*((f"{n}",) for n in range(7)), (1,))
    for votes in (7, 8):
        parts = ((10**6 << UNIT_SHIFT,) * votes, facts[key].parts[1])
        with pytest.raises(QueryRefused, match="is not what such a fact has"):
            make_plan(*asked, facts | {key: Fact(**{**vars(facts[key]), "keys": mixed, "parts": parts})})


def reading(count):
    return Reading((float(count),), 0, 1.0, 8, whole=True, is_total=True)


def voted(*rounds):
    """Return rounds of votes by group, in people."""
    return [
        Fact(
            "groups",
            "",
            (tuple(n << UNIT_SHIFT for n in votes.values()), (50 << UNIT_SHIFT,)),
            (Fraction(1),),
            1,
            keys=tuple((key,) for key in votes),
        )
        for votes in rounds
    ]


@pytest.mark.parametrize(
    ("rounds", "counted", "is_enough"),
    [
        ([{"a": 600, "b": 400}], 1000, True),
        ([{"a": 600, "b": 300}], 1000, True),  # a hundred people without a vote for a known group
        ([{"a": 600, "b": 299}], 1000, False),  # a group of a hundred may be missing
        ([{"a": 90_000}], 90_100, True),  # by people, and not by their part
        ([{"a": 90_000}], 91_000, False),
        ([{"a": 600}, {"b": 400}], 1000, True),  # a key that any round has shown is known
        ([{"a": 100}, {"a": 600, "b": 400}], 1000, True),  # by the votes of the last round that showed it
        ([{}], 1000, False),
        ([{}], 1, False),  # a few people, which may be none: no group is never enough
        ([{"a": 600}], None, True),  # it is not known how many people there are: something is shown
        ([{}], None, False),
        ([{"a": 9_000}], 1000, True),  # the noise of either
    ],
)
def test_another_round_is_run_only_if_a_group_of_a_hundred_people_may_be_missing(rounds, counted, is_enough):
    known = [reading(counted)] if counted is not None else [Reading((), None, 1.0, 8, whole=True)]
    assert _hold_enough(voted(*rounds), known) == is_enough


@pytest.mark.parametrize(
    ("known", "people", "share"),
    [
        ([], 5000, FIRST_SHARE),
        ([(300, {"large": 4950})], 5000, None),  # whoever is not in it is no group of a hundred
        ([(300, {"large": 4000})], 5000, "enough"),
        ([(300, {})], 5000, "enough"),
        ([(300, {})], 0, "enough"),  # nobody: no group is never enough
        ([(90, {"large": 4000})], 5000, None),  # a threshold that shows a group of a hundred
        ([(300, {}), (90, {})], 5000, None),  # another round would have no less noise
        ([(300, {"large": 4000}), (200, {"large": 4000})], 5000, "enough"),  # rounds of a smaller call
    ],
)
def test_rounds_stop_by_the_rule(known, people, share):
    """Given by each round's threshold in people, and the votes that it showed."""
    query, declaration, spend = asked_of(opened().group_by("g").count(), epsilon=1)
    search = KeySearch(grouping_of(query, declaration, spend))
    facts = {}
    for place, (threshold, votes) in enumerate(known):
        parts = (tuple(n << UNIT_SHIFT for n in votes.values()), (threshold << UNIT_SHIFT,))
        keys = tuple((key,) for key in votes)
        scale = Fraction(threshold << UNIT_SHIFT, 21)  # a threshold is about 21 scales of its noise
        facts[search.key(place)] = Fact(search.key(place), "", parts, (scale,), Fraction(6, 100), keys=keys)
    following = search.next_round(facts, [reading(people)], spend)
    if share is None:
        assert following is None
        return
    assert following.key == search.key(len(known))
    if share == "enough":  # as many people as that takes at the small delta of this budget
        assert FIRST_SHARE < following.plan.spend.epsilon <= SECOND_MOST
        assert following.plan.threshold.least <= 180 << UNIT_SHIFT
    else:
        assert following.plan.spend.epsilon == share


def test_known_groups_are_those_of_all_rounds_in_order_and_the_best_round_says_how_small_they_may_be():
    rounds = voted({"b": 80}, {"a": 90, "b": 85})
    assert known_keys(rounds) == (("a",), ("b",))
    assert smallest_shown(rounds) == 50


def test_all_rounds_together_leave_most_of_epsilon_and_stay_within_the_calls_delta():
    query, declaration, spend = asked_of(opened().group_by("g").count())
    search = KeySearch(grouping_of(query, declaration, spend))
    facts, epsilon, delta = {}, Fraction(0), Fraction(0)
    while wanted := search.next_round(facts, [reading(10**6)], spend):
        epsilon += wanted.plan.spend.epsilon
        delta += wanted.plan.threshold.delta
        parts = ((), (500 << UNIT_SHIFT,))
        scale = wanted.plan.releases[0].scale
        facts[wanted.key] = Fact(wanted.key, wanted.words, parts, (scale,), wanted.plan.spend.epsilon)
    assert len(facts) == 2
    assert FIRST_SHARE < epsilon <= FIRST_SHARE + SECOND_MOST
    assert delta <= spend.delta_keys


def test_groups_are_looked_for_before_anything_else_is_learned():
    asked = asked_of(opened().group_by("g").count())
    (first,) = missing_facts(*asked, {})
    assert first.plan.threshold is not None
    facts = learned(*asked, rows({1: 5000}))
    assert [fact.finds_groups for fact in facts.values()][:2] == [True, False]
    assert not missing_facts(*asked, facts)
