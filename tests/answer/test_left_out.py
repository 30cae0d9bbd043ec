"""Bounds by hand whose cut was measured: counts and sums are scaled up, and the answer says what was left out."""

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from tacit.answer.answer import make_answer
from tacit.answer.columns import noisy_columns
from tacit.answer.noise_sums import law_bound
from tacit.errors import QueryRefused
from tacit.forecast import group_rows, plan_in_words, solve_epsilon
from tacit.forecast.target import expected_error, noise_error
from tacit.plan import Part, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.query.frame import count, count_units, mean
from tacit.query.frame import sum as sum_of
from tacit_gauntlet.stage.table import plan_of, protected
from tests.answer.scaled_plans import noise_of, noisy_of
from tests.answer.test_disclosure import INFO, LEARNED

CONFIDENCE = Fraction(95, 100)
ROWS = Vector("rows", totals="absolute", tail=500)


def dropping(*, totals=(9_000, 3_000), grouped=True, **asked):
    """A plan with bounds by hand, with totals beside it, and what it released: 900 rows and 300 units in each group."""
    table = protected(
        pa.table({"id": [1], "g": [1], "x": [1]}),
        rows_per_unit=3,
        groups_per_unit=2,
        columns={"x": {"between": (0, 10)}},
    )
    plan = plan_of((table.group_by("g", keys=[1, 2]) if grouped else table).agg(**asked), noise="laplace")
    release = noise_of([Part("kept", index=(0,)), Part("cut", index=(0,))], 20)
    plan = replace(plan, totals=(release,), measured_totals=(ROWS,), learned=LEARNED)
    groups = 2 if grouped else 1
    numbers = {"rows": 900, "units": 300, "below": 4_000, "above": 5_000, "total": 5_000, "counted": 900, "missing": 0}
    parts = tuple(tuple((numbers[part.kind],) * groups for part in each.parts) for each in plan.releases)
    keys = ((1,), (2,)) if grouped else ((),)
    return plan, replace(noisy_of([[0]], [totals]), keys=keys, parts=parts)


def test_counts_and_sums_are_scaled_to_the_total_and_means_and_units_stay():
    n, s, m, u = noisy_columns(*dropping(n=count(), s=sum_of("x"), m=mean("x"), u=count_units()), CONFIDENCE)
    plain, noisy = dropping(n=count(), s=sum_of("x"), m=mean("x"), u=count_units())
    before = noisy_columns(replace(plain, totals=(), measured_totals=()), noisy, CONFIDENCE)
    assert n.values == tuple(round(value * 4 / 3) for value in before[0].values)
    assert s.values == tuple(round(value * 4 / 3) for value in before[1].values)
    assert (m.values, u) == (before[2].values, before[3])


def test_the_lower_end_of_a_count_stays_as_it_was_and_the_upper_end_allows_twice_the_average():
    plan, noisy = dropping(n=count())
    (n,) = noisy_columns(plan, noisy, CONFIDENCE)
    reach = law_bound(plan.releases[0].law, CONFIDENCE)
    assert n.values == (1200, 1200)
    assert n.low == (900 - reach,) * 2
    assert n.high[0] >= 1200 + math.hypot(4 / 3 * reach, 300)
    assert make_answer(plan, noisy, plan.after, INFO).at_least("n") == [900 - reach] * 2


def test_one_group_lost_what_was_measured_and_neither_less_nor_more():
    plan, noisy = dropping(n=count(), grouped=False, totals=(900, 300))
    (n,) = noisy_columns(plan, noisy, CONFIDENCE)
    assert n.values == (1200,)
    # nearly even: the ends of the factor are not quite as far apart below as above
    assert 1200 - n.low[0] <= n.high[0] - 1200 <= 1.1 * (1200 - n.low[0])


def test_the_answer_says_what_was_left_out():
    plan, noisy = dropping(n=count())
    made = make_answer(plan, noisy, plan.after, INFO)
    cut, tail, learned = made.facts.notes
    assert learned.startswith("Learned for ε = 0.1 (entry 41), free for later questions: how many rows a user_id has")
    assert cut.startswith("Dropping rows beyond the bounds removed about 25 % of the rows (")
    assert "; all groups were scaled up to the measured total, 12,000 ±" in cut
    assert tail.startswith("The intervals leave out rows beyond 500 of one ")
    assert made.facts.bounds["left_out"][0]["factor"] == pytest.approx(4 / 3)


def test_rounding_takes_nothing_where_a_unit_of_the_totals_is_a_row():
    plan, noisy = dropping(n=count())
    seen = Outlook(people=5_000, mass=12_000, kept=0.75, scaled=9, beyond_most=9, excess=0)
    known = replace(plan, measured_totals=(replace(ROWS, outlook=seen),))
    assert noisy_columns(known, noisy, CONFIDENCE) == noisy_columns(plan, noisy, CONFIDENCE)


def test_means_and_variances_say_that_they_are_of_what_was_kept():
    cut, others, tail, _ = make_answer(*after(n=count(), m=mean("x")), INFO).facts.notes
    assert cut.startswith("Dropping rows beyond the bounds removed about 25 % of the rows (")
    assert tail.startswith("The intervals leave out rows beyond 500 of one ")
    assert others.startswith("m: of the rows that were kept. The intervals allow for dropped rows that differ by half")
    share, only, _ = make_answer(*after(m=mean("x")), INFO).facts.notes
    assert share == "Dropping rows beyond the bounds removed about 25 % of the rows."
    assert only == others
    assert "scaled up" not in share + only
    _, as_it_is, *_ = make_answer(*after(n=count(), u=count_units()), INFO).facts.notes
    assert as_it_is == "u: of the rows that were kept, as are the intervals. Nothing was scaled up."


def test_the_bar_of_a_mean_holds_what_the_rows_left_out_may_do():
    """A quarter of the rows is left out; means are 5.6 of 0 to 10, 4.4 from the nearer end."""
    plan, noisy = dropping(n=count(), m=mean("x"))
    _, plain = noisy_columns(replace(plan, totals=(), measured_totals=()), noisy, CONFIDENCE)
    _, m = noisy_columns(plan, noisy, CONFIDENCE)
    assert m.values == plain.values
    for value, low, high, bottom, top in zip(m.values, m.low, m.high, plain.low, plain.high, strict=True):
        assert high - top == pytest.approx(bottom - low)
        assert 0.25 * 0.5 * (10 - value) <= high - top <= 0.3 * 0.5 * (10 - value)


def test_the_bar_of_a_mean_goes_no_further_than_its_range_and_no_nearer_than_its_noise():
    plan, noisy = dropping(m=mean("x"), totals=(0, 9_000))  # nothing tells how much was left out
    (plain,) = noisy_columns(replace(plan, totals=(), measured_totals=()), noisy, CONFIDENCE)
    (m,) = noisy_columns(plan, noisy, CONFIDENCE)
    assert all(0 <= low < bottom for low, bottom in zip(m.low, plain.low, strict=True))
    assert all(10 >= high > top for high, top in zip(m.high, plain.high, strict=True))
    near = replace(noisy, parts=tuple(tuple((9_000 * (p == 1),) * 2 for p in range(len(each))) for each in noisy.parts))
    (high_up,) = noisy_columns(plan, near, CONFIDENCE)
    assert max(high_up.high) <= 10


def test_a_mean_by_itself_knows_from_a_public_number_of_rows_what_was_left_out():
    plan, noisy = dropping(m=mean("x"))
    plan = replace(plan, totals=(), measured_totals=(), learned=(), public_rows=7_200)
    (plain,) = noisy_columns(replace(plan, public_rows=None), noisy, CONFIDENCE)
    (m,) = noisy_columns(plan, noisy, CONFIDENCE)
    assert m.values == plain.values
    assert all(high > top for high, top in zip(m.high, plain.high, strict=True))


def after(**asked):
    plan, noisy = dropping(**asked)
    return plan, noisy, plan.after


def test_a_plan_with_measured_bounds_foresees_noise_total_and_scaling():
    plan, _ = dropping(n=count(), s=sum_of("x"))
    seen = Outlook(people=5_000, mass=12_000, kept=0.75, scaled=9, beyond_most=9, excess=0)
    text = plan_in_words(replace(plan, measured_totals=(replace(ROWS, outlook=seen),)))
    count_line, sum_line = (line for line in text.splitlines() if line.startswith(("  n: ", "  s: ")))
    assert "scaling 2,156), for 2 groups of about 6,000 rows" in count_line
    assert "and of a group's own number total 0.5" in sum_line
    assert sum_line.endswith("scaling 36 %")
    assert "Totals: of all rows, what the bounds left and took" in text


def test_where_nobody_is_known_beyond_the_bounds_nothing_is_scaled():
    plan, noisy = dropping(n=count())
    plan = replace(plan, totals=(), measured_totals=(), most_rows=None)
    made = make_answer(plan, replace(noisy, totals=()), plan.after, INFO)
    assert made.to_dicts()[0]["n"] == 900
    assert made.facts.notes[0] == "The intervals leave out rows beyond 3 in each of 2 groups of one id."


def known(**asked):
    """A plan whose bounds leave out a quarter of the rows, as facts tell."""
    plan, _ = dropping(**asked)
    seen = Outlook(people=5_000, mass=12_000, kept=0.75, scaled=9, beyond_most=9, excess=0)
    return replace(plan, measured_totals=(replace(ROWS, outlook=seen),))


def sizes_of(plan):
    return group_rows(plan, None, None)


def test_a_wanted_error_of_a_sum_or_mean_is_all_of_it_not_the_noise_alone():
    """Half of the quarter that is left out: of 6,000 rows of up to 10 each, and of half the range of a mean."""
    plan = known(n=count(), s=sum_of("x"), m=mean("x"))
    n, s, m = plan.outputs
    assert expected_error(n, plan, CONFIDENCE) > 750
    assert expected_error(s, plan, CONFIDENCE) > 7_500 > noise_error(s, plan, CONFIDENCE)
    noise = noise_error(m, plan, CONFIDENCE, rows=900.0)
    assert expected_error(m, plan, CONFIDENCE, rows=900.0) == pytest.approx(noise + 0.5 * 0.25 * 5)


def test_an_error_below_what_bounds_leave_out_is_refused_in_words_that_say_so():
    with pytest.raises(QueryRefused, match="leave out about 25 % of rows") as refused:
        solve_epsilon(100, lambda _: [known(s=sum_of("x"))], CONFIDENCE, sizes_of)
    assert "raise rows_per_unit" in str(refused.value)
    assert solve_epsilon(25_000, lambda _: [known(s=sum_of("x"))], CONFIDENCE, sizes_of).epsilon < 1


def test_where_the_size_of_groups_is_not_public_a_solved_error_says_that_it_is_of_the_noise():
    plan = replace(known(s=sum_of("x")), public_keys=None)
    assert "of the noise alone" in solve_epsilon(9_000, lambda _: [plan], CONFIDENCE, sizes_of).words
    sized = solve_epsilon(90_000, lambda _: [plan], CONFIDENCE, lambda plan: group_rows(plan, None, 1000))
    assert "noise alone" not in sized.words


def test_an_error_solved_before_anything_is_learned_says_that_it_is_of_the_noise():
    table = protected(pa.table({"id": [1], "g": [1]}), rows_per_unit=3, groups_per_unit=2, most_rows_per_unit=None)
    plan = table.group_by("g", keys=[1, 2]).count().plan(error=100)
    assert "of the noise alone: what the bounds leave out is not known before it is learned" in str(plan)


def test_where_nobody_can_have_more_rows_by_declaration_no_line_says_that_some_are_left_out():
    plan, noisy = dropping(n=count())
    plan = replace(plan, totals=(), measured_totals=(), most_rows=2)
    made = make_answer(plan, replace(noisy, totals=()), plan.after, INFO)
    assert not any("left out" in note for note in made.facts.notes)
