"""A question with no bound given by hand is planned from facts; whatever the facts say, its noise hides its caps."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.accounting import charge_of
from tacit.errors import QueryRefused
from tacit.plan import BINS, UNBOUNDED, make_plan, make_spend, missing_facts, needed_facts, question_key
from tacit.privacy import SCALE_MAX, SCALE_MIN, GaussianNoise
from tacit_gauntlet.stage.table import protected
from tests.plan.learned import learned, planted, rows

DATA = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, None, 3], "y": [1.0, 2.0, 3.0]})
PEOPLE = rows({1: 20_000, 2: 10_000, 5: 5_000, 40: 500, 300: 200})
ABSURD = {
    "nobody": ({}, 0),
    "all negative": ({}, -(10**9)),
    "all huge": ({}, 10**15),
    "only the last bin": ({BINS - 1: 10**9}, 0),
    "only the first bin": ({0: 10**9}, 0),
    "one person": ({15: 1}, 0),
}
BUDGETS = {"pure": tacit.epsilon(3), "both": tacit.epsilon(3, delta=1e-6), "rho": tacit.rho(1, delta=1e-6)}


def table(**declared):
    return protected(DATA, **({"rows_per_unit": None, "groups_per_unit": None, "most_rows_per_unit": None} | declared))


def questions(asked):
    by = asked.group_by("g", keys=["a", "b", "c"])
    return {
        "count": asked.count(),
        "count by": asked.group_by("g", keys=["a", "b", "c"]).count(),
        "count where": asked.where("y > 1").group_by("g", keys=["a", "b", "c"]).count(),
        "sum": asked.sum("y"),
        "sum by": by.sum("y"),
        "mean": asked.mean("x"),
        "mean by": by.mean("y"),
        "all by": by.agg(n=tacit.count(), s=tacit.sum("y"), m=tacit.mean("y")),
        "columns by": by.agg(n=tacit.count(), m=tacit.mean("y"), k=tacit.mean("x"), z=tacit.sum("x * y")),
        "values by": by.agg(c=tacit.count("x"), m=tacit.mean("x"), u=tacit.count_units()),
        "units by": by.agg(u=tacit.count_units()),
        "texts": asked.agg(t=tacit.count("g"), u=tacit.count_units(), n=tacit.count()),
        "found": asked.group_by("g").agg(n=tacit.count(), m=tacit.mean("y"), u=tacit.count_units()),
        "ranged by": by.agg(m=tacit.mean("y", between=(0, 50)), s=tacit.sum("x", between=(3, 9))),
        "spread": asked.std("y"),
        "spread by": by.agg(v=tacit.variance("x", between=(0, 9)), n=tacit.count(), m=tacit.mean("x")),
        "pair by": by.agg(c=tacit.covariance("x", "y"), r=tacit.correlation("y", "x"), s=tacit.std("y")),
    }


NAMES = tuple(questions(table()))


def asked_of(question, epsilon=1, noise=None):
    spend = make_spend(epsilon, None, noise, question.session.registered.budget)
    return question.query, question.session.declaration, spend


def plan_from(question, people, *, epsilon=1, noise=None, off=0, groups=8):
    asked = asked_of(question, epsilon, noise)
    return make_plan(*asked, learned(*asked, people, noise=off, groups=groups))


def within(plan, replaced):
    """Whether each release's noise is made for at least what one unit can move it, as docs/proofs/scaling.md says."""
    for release, vector in zip(plan.releases, plan.scaling.vectors, strict=True):
        signed, one = vector.kind == "centred", len(plan.public_keys or (1, 2)) == 1
        l1, l2_squared = (1, 1) if not replaced or (one and not signed) else (2, 4 if signed else 2)
        _is_within(release.event, l1 * vector.cap, l2_squared * vector.cap**2)
    vectors = [vector for vector in plan.scaling.vectors if vector.totals is not None]
    for release, vector in zip(plan.totals, vectors, strict=True):
        l1, l2_squared = (2, 4 if vector.totals == "signed" else 2) if replaced else (1, 1)
        _is_within(release.event, l1 * vector.tail, l2_squared * vector.tail**2)
    return True


def _is_within(event, l1, l2_squared):
    if isinstance(event, GaussianNoise):
        assert event.sensitivity_squared == l2_squared
    else:
        assert event.sensitivity == l1


@pytest.mark.parametrize(
    ("budget", "neighbours"), [("both", "add-remove"), ("pure", "replace"), ("rho", "replace"), ("pure", "add-remove")]
)
@pytest.mark.parametrize("name", NAMES)
def test_whatever_was_learned_the_noise_hides_the_caps_and_the_cost_is_the_same(name, budget, neighbours):
    question = questions(table(budget=BUDGETS[budget], neighbours=neighbours))[name]
    if (name, budget) == ("found", "pure"):
        with pytest.raises(QueryRefused, match="not public"):
            plan_from(question, PEOPLE)
        return
    absurd = [] if (budget, neighbours) == ("pure", "add-remove") else ABSURD.values()
    for epsilon, (people, off) in ((1, (PEOPLE, 0)), *((Fraction(1, 100), each) for each in absurd)):
        plan = plan_from(question, people, epsilon=epsilon, off=off)
        assert plan.rows_per_unit == UNBOUNDED
        assert plan.groups_per_unit == UNBOUNDED
        assert plan.threshold is None
        assert bool(plan.found_by) == (name == "found")
        assert (plan.noise == "laplace") == (plan.scaling.norm == 1)
        assert within(plan, neighbours == "replace")
        charge = charge_of(plan.events, asked=plan.asked)
        assert charge.epsilon <= epsilon
        assert charge.delta_noise <= plan.spend.delta_noise
        assert charge.delta <= plan.spend.delta_keys


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_of_found_keys_a_unit_in_one_group_may_be_replaced_by_one_in_another(neighbours):
    """One group for each unit is not one group in all: two numbers move, and no staircase shows keys."""
    found = questions(table(groups_per_unit=1, neighbours=neighbours))["found"]
    for epsilon, noise in ((1, None), (1, "laplace"), (1, "gaussian"), (20, None)):
        plan = plan_from(found, PEOPLE, epsilon=epsilon, noise=noise)
        assert within(plan, neighbours == "replace")
        assert {release.noise for release in plan.releases} <= {"laplace", "gaussian"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_planned_before_its_facts_are_known(name):
    question = questions(table())[name]
    with pytest.raises(QueryRefused, match=r"no bound is declared|no public range"):
        make_plan(*asked_of(question))
    assert missing_facts(*asked_of(question), {})


def test_learning_costs_its_share_and_the_fewer_groups_the_more():
    for name, share in (("count by", Fraction(20, 100)), ("count", Fraction(20, 100))):
        (wanted,) = missing_facts(*asked_of(questions(table())[name]), {})
        assert charge_of(wanted.plan.events).epsilon == share
        (wanted,) = missing_facts(*asked_of(questions(table())[name]), {}, Fraction(1, 2))
        assert charge_of(wanted.plan.events).epsilon == Fraction(1, 2)
    asked, facts, spent = asked_of(questions(table())["sum"]), {}, []
    while wanted := missing_facts(*asked, facts):
        spent += [charge_of(each.plan.events).epsilon for each in wanted]
        facts |= {each.key: planted(each, PEOPLE) for each in wanted}
    assert Fraction(2499, 10_000) < sum(spent) <= Fraction(250, 1000)
    assert spent[0] == pytest.approx(sum(spent) / 6, rel=1e-3)  # a sum's size needs little
    for groups, share in ((4, Fraction(1775, 10_000)), (10, Fraction(137, 1000)), (100, Fraction(1127, 10_000))):
        (wanted,) = missing_facts(*asked_of(count_by(groups)), {})
        assert charge_of(wanted.plan.events).epsilon == pytest.approx(share, rel=1e-4)


def count_by(groups, **declared):
    return table(**declared).group_by("g", keys=[f"{n}" for n in range(groups)]).count()


@pytest.mark.parametrize(("groups", "norms"), [(2, [1]), (16, [1]), (17, [1, 2])])
def test_lengths_by_the_squares_norm_are_learned_for_more_than_sixteen_groups_and_not_under_a_pure_budget(
    groups, norms
):
    (wanted,) = missing_facts(*asked_of(count_by(groups)), {})
    assert [profile.norm for profile in wanted.plan.profiles] == norms
    (wanted,) = missing_facts(*asked_of(count_by(groups, budget=BUDGETS["pure"])), {})
    assert [profile.norm for profile in wanted.plan.profiles] == [1]
    assert plan_from(count_by(groups), PEOPLE).noise == "laplace" or groups > 16


def test_a_facts_key_is_about_people_and_cells_and_not_about_the_call():
    def key(asked, epsilon=1):
        return missing_facts(*asked_of(asked, epsilon), {})[0].key

    def by(asked, **changes):
        return replace(asked, query=replace(asked.query, **changes)) if changes else asked

    plain = table().group_by("g", keys=["a", "b"]).count()
    same = [
        (table(version=2).group_by("g", keys=["a", "b"]).count(), 1),
        (table().group_by("g", keys=["a", "b"]).agg(other=tacit.count()), Fraction(1, 10)),
        (table(budget=tacit.epsilon(8, delta=1e-7)).group_by("g", keys=["a", "b"]).count(), 2),
        (table(columns={"x": {"between": (0, 9)}}).group_by("g", keys=["a", "b"]).count(), 1),
    ]
    assert {key(question, epsilon) for question, epsilon in same} == {key(plain)}
    different = [
        table(unit="x").group_by("g", keys=["a", "b"]).count(),
        table(neighbours="replace").group_by("g", keys=["a", "b"]).count(),
        table().group_by("g", keys=["a", "c"]).count(),
        table().group_by("x", keys=[1, 2]).count(),
        table().where("y > 1").group_by("g", keys=["a", "b"]).count(),
        table(columns={"id": {"type": "text"}}).group_by("g", keys=["a", "b"]).count(),
        table().count(),
    ]
    assert len({key(plain), *(key(question) for question in different)}) == 1 + len(different)


def test_where_nothing_is_believed_it_is_learned_once_more_and_then_one_row_is_the_cap():
    asked = asked_of(count_by(100))
    facts = learned(*asked, {})
    assert len(facts) == 2
    assert len(learned(*asked_of(questions(table())["count by"]), {})) == 1, "a round with little less noise is none"
    plan = make_plan(*asked, facts)
    (vector,) = plan.scaling.vectors
    assert (vector.cap, vector.shift) == (1 << 20, 20)
    assert vector.outlook.people == 0
    assert [fact.key for fact in plan.learned] == [wanted.key for wanted in needed_facts(*asked, facts)]


def test_the_noise_asked_for_decides_the_norm():
    question = questions(table())["count by"]
    assert plan_from(question, PEOPLE, noise="laplace").scaling.norm == 1
    gaussian = plan_from(question, PEOPLE, noise="gaussian")
    assert gaussian.scaling.norm == 2
    assert question_key(gaussian) != question_key(plan_from(question, PEOPLE, noise="laplace"))


def test_people_with_few_rows_are_counted_whole_and_those_with_many_are_scaled():
    question = table().group_by("g", keys=[f"{n}" for n in range(300)]).count()
    (vector,) = plan_from(question, PEOPLE).scaling.vectors
    cap = vector.cap / 2**vector.shift
    assert 2 <= cap <= 64
    assert 0.3 < vector.outlook.kept < 1
    assert vector.tail << vector.tail_shift == 384 << vector.shift  # the end of the bin that holds 300 rows
    assert vector.outlook.people == pytest.approx(35_700, rel=0.01)


def test_without_groups_the_cap_is_the_tail_cap_and_no_totals_are_paid_for():
    (vector,) = (plan := plan_from(questions(table())["count"], PEOPLE)).scaling.vectors
    assert vector.cap / 2**vector.shift == 384
    assert plan.totals == ()


def plan_of_mean(people, groups=3):
    question = table().group_by("g", keys=[f"{n}" for n in range(groups)]).mean("y")
    asked, facts = asked_of(question), {}
    while wanted := missing_facts(*asked, facts):
        facts |= {
            each.key: planted(
                each, people["rows" if "many" in each.words else "sums" if "far" in each.words else "size"]
            )
            for each in wanted
        }
    return make_plan(*asked, facts)


def test_where_each_person_has_one_row_a_mean_is_cut_by_nothing_and_its_rows_cost_little():
    few_are_far = {17: 29_000, 45: 1_000}  # sums up to 2^9 and 2^23 steps
    plan = plan_of_mean({"rows": rows({1: 30_000}), "sums": few_are_far, "size": {64 + 5: 30_000}})
    counted, sums = plan.scaling.vectors
    assert counted.cap == 1 << counted.shift
    assert sums.cap / 2**sums.shift > 2**22.5
    assert plan.totals == ()
    loss = {
        release.parts[0].index[0]: float(vector.cap / release.scale)
        for vector, release in zip(plan.scaling.vectors, plan.releases, strict=True)
    }
    assert loss[0] < loss[1] / 2


def test_a_mean_is_cut_by_rows_and_hardly_by_values_and_nothing_of_it_is_measured():
    people = rows({1: 20_000, 10: 10_000, 100: 3_000, 1000: 200})
    sums = {place + 24: count for place, count in people.items()}  # 2^12 steps a row
    plan = plan_of_mean({"rows": people, "sums": sums, "size": {64 + 5: 33_000}}, groups=300)
    counted, summed = plan.scaling.vectors
    assert (counted.totals, summed.totals, plan.totals) == (None, None, ())
    assert counted.outlook.kept < 0.9
    assert 0 < counted.outlook.lost < counted.outlook.lost_most
    assert 0 < summed.outlook.lost < summed.outlook.lost_most
    a_row = 2.0 ** (12 + 8)  # a bin of sums is in steps, and one of rows in 2^-8 rows
    assert summed.cap / 2**summed.shift >= a_row * counted.cap / 2**counted.shift


def test_what_is_learned_on_a_grid_waits_until_the_size_of_values_is_known():
    asked, facts = asked_of(table().group_by("g", keys=["a", "b", "c"]).mean("y")), {}
    (size,) = missing_facts(*asked, facts)
    facts[size.key] = planted(size, {})
    (again,) = missing_facts(*asked, facts)
    assert again.words == size.words
    facts[again.key] = planted(again, {64 + 5: 30_000})
    assert len(missing_facts(*asked, facts)) == 1  # the centre


def test_a_mean_has_vectors_of_its_own_and_a_count_beside_it_is_chosen_as_if_it_were_alone():
    plan = plan_from(questions(table())["all by"], PEOPLE)
    rows_vector, counted, sums = plan.scaling.vectors
    assert (rows_vector.kind, counted.kind, sums.kind, sums.rows) == ("rows", "counted", "centred", 1)
    assert plan.scaling.together == ((0,), (1, 2))
    (alone,) = plan_from(questions(table())["count by"], PEOPLE).scaling.vectors
    assert rows_vector.cap / 2**rows_vector.shift <= alone.cap / 2**alone.shift, "it has a part of the loss"
    asked = asked_of(questions(table())["all by"])
    counts = [fact.key for fact in learned(*asked, PEOPLE).values() if fact.words.startswith("how many rows")]
    assert len(counts) == 1, "nobody has a value in more rows than they have, so one fact serves both"


def test_what_is_known_without_where_serves_a_small_call_and_a_large_one_learns_its_own():
    by = table().group_by("g", keys=["a", "b"])
    facts = learned(*asked_of(by.count()), PEOPLE)
    narrow = table().where("y > 1").group_by("g", keys=["a", "b"]).count()
    assert missing_facts(*asked_of(narrow, Fraction(1, 4)), facts) == ()
    assert make_plan(*asked_of(narrow, Fraction(1, 4)), facts).where is not None
    assert missing_facts(*asked_of(narrow, Fraction(1, 2)), facts)
    assert missing_facts(*asked_of(narrow, Fraction(1, 4)), {})


def test_of_one_bound_given_by_hand_the_other_is_learned():
    question = table(rows_per_unit=3).group_by("g", keys=["a", "b", "c"]).count()
    plan = plan_from(question, PEOPLE)
    assert (plan.rows_per_unit, plan.groups_per_unit) == (UNBOUNDED, UNBOUNDED)
    (vector,) = plan.scaling.vectors
    assert vector.cap / 2**vector.shift <= 3 * 512
    (units,) = plan_from(table(groups_per_unit=2).group_by("g", keys=["a", "b"]).count_units(), {}).scaling.vectors
    assert units.cap == 2 << units.shift


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("epsilon", ["1e-30", "1e-20", "1e-15", "1e9", "1e20"])
def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_learned(budget, epsilon):
    """What is learned of people is drawn at any epsilon, or its plan is refused: nothing fails after its charge."""
    for question in (table(budget=BUDGETS[budget]).count(), table(budget=BUDGETS[budget], rows_per_unit=3).count()):
        asked = asked_of(question, epsilon)
        words = ""
        try:
            facts = learned(*asked, PEOPLE)
            made = [each.plan for each in needed_facts(*asked, facts)] + [make_plan(*asked, facts)]
        except QueryRefused as refused:
            words, made = str(refused), []
        assert made or "epsilon is too small" in words
        scales = [release.scale for plan in made for release in plan.releases if release.noise != "staircase"]
        assert all(SCALE_MIN <= scale <= SCALE_MAX for scale in scales)


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(9, 10), Fraction(95, 100)])
def test_further_rounds_leave_some_of_the_epsilon_however_large_the_share_to_learn_with(share):
    by = table(budget=BUDGETS["pure"]).group_by("g", keys=["a", "b", "c"])
    asked = asked_of(by.agg(s=tacit.sum("y"), n=tacit.count(), u=tacit.count_units()))
    facts, cost = {}, Fraction(0)
    while wanted := missing_facts(*asked, facts, share):
        facts |= {each.key: planted(each, {}) for each in wanted}  # nothing is believed
        cost += sum(charge_of(each.plan.events).epsilon for each in wanted)
    assert cost < 1


@pytest.mark.parametrize("name", ["all by", "columns by"])
def test_learning_and_answering_cost_no_more_than_the_call(name):
    asked = asked_of(questions(table())[name])
    learning = sum(charge_of(each.plan.events).epsilon for each in needed_facts(*asked, learned(*asked, PEOPLE)))
    assert Fraction(249, 1000) < learning <= Fraction(250, 1000)
    halved = sum(
        charge_of(each.plan.events).epsilon
        for each in needed_facts(*asked, learned(*asked, PEOPLE), Fraction(125, 1000))
    )
    assert halved == pytest.approx(float(learning) / 2, rel=1e-3)


def test_a_public_number_of_rows_is_a_free_total_where_all_of_them_are_asked_about():
    keys = [f"{n}" for n in range(300)]
    counted = table(rows=10**6)
    (vector,) = (plan := plan_from(counted.group_by("g", keys=keys).count(), PEOPLE)).scaling.vectors
    assert (plan.public_rows, plan.totals, vector.totals) == (10**6, (), None)
    assert vector.outlook.kept < 1
    some = counted.where("y > 1").group_by("g", keys=keys).count()
    assert plan_from(some, PEOPLE).public_rows is None
    assert plan_from(some, PEOPLE).totals
    assert plan_from(counted.group_by("g").count(), PEOPLE, groups=300).public_rows is None


def test_what_a_far_smaller_call_has_learned_is_learned_again_and_both_count():
    question = questions(table())["count by"]
    small, large = asked_of(question, Fraction(1, 100)), asked_of(question, 1)
    facts = learned(*small, PEOPLE)
    assert missing_facts(*asked_of(question, Fraction(1, 20)), facts) == ()  # five times as large: good enough
    (wanted,) = missing_facts(*large, facts)
    assert charge_of(wanted.plan.events).epsilon == pytest.approx(Fraction(20, 100), rel=1e-3)
    facts |= {wanted.key: planted(wanted, PEOPLE)}
    assert missing_facts(*large, facts) == ()
    assert len(make_plan(*large, facts).learned) == 2
