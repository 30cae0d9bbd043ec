"""Bounds by hand whose cut was measured: counts and sums are scaled up, and the answer says what was left out."""

import math
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from tacit.answer.answer import make_answer
from tacit.answer.columns import noisy_columns
from tacit.answer.noise_sums import law_bound
from tacit.forecast import plan_in_words
from tacit.plan import Part, Vector
from tacit.plan.scaling import Outlook
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
    assert (m, u) == (before[2], before[3])


def test_the_lower_end_of_a_count_stays_as_it_was_and_the_upper_end_allows_half_as_much_again():
    plan, noisy = dropping(n=count())
    (n,) = noisy_columns(plan, noisy, CONFIDENCE)
    reach = law_bound(plan.releases[0].law, CONFIDENCE)
    assert n.values == (1200, 1200)
    assert n.low == (900 - reach,) * 2
    assert n.high[0] >= 1200 + math.hypot(4 / 3 * reach, 150)
    assert make_answer(plan, noisy, plan.after, INFO).at_least("n") == [900 - reach] * 2


def test_one_group_lost_what_was_measured_and_neither_less_nor_more():
    plan, noisy = dropping(n=count(), grouped=False, totals=(900, 300))
    (n,) = noisy_columns(plan, noisy, CONFIDENCE)
    assert n.values == (1200,)
    assert n.high[0] - 1200 == pytest.approx(1200 - n.low[0], abs=2)


def test_the_answer_says_what_was_left_out():
    plan, noisy = dropping(n=count())
    made = make_answer(plan, noisy, plan.after, INFO)
    learned, cut, tail = made.facts.notes
    assert learned.startswith("Learned once for ε = 0.1 (entry 41), free from now on: how many rows a user_id has")
    assert cut.startswith("Left out by the bounds: 25 % of rows (")
    assert "all groups are scaled up by 1.333 to the measured total, 12,000 ±" in cut
    assert tail.startswith("Bars are about a table in which nobody counts for more than 500 rows;")
    assert made.facts.bounds["left_out"][0]["factor"] == pytest.approx(4 / 3)


def test_rounding_takes_nothing_where_a_unit_of_the_totals_is_a_row():
    plan, noisy = dropping(n=count())
    seen = Outlook(people=5_000, mass=12_000, kept=0.75, scaled=9, beyond=1, beyond_most=9, excess=0)
    known = replace(plan, measured_totals=(replace(ROWS, outlook=seen),))
    assert noisy_columns(known, noisy, CONFIDENCE) == noisy_columns(plan, noisy, CONFIDENCE)


def test_means_and_variances_say_that_they_are_of_what_was_kept():
    _, cut, tail, others = make_answer(*after(n=count(), m=mean("x")), INFO).facts.notes
    assert cut.startswith("Left out by the bounds: 25 % of rows (")
    assert tail.startswith("Bars are about a table in which nobody counts for more than 500 rows;")
    assert others == "Not scaled up, but of the rows that were kept, as are their bars: m."
    _, only = make_answer(*after(m=mean("x")), INFO).facts.notes
    assert only.endswith("Numbers here are of the rows that were kept, as are their bars: m.")
    assert "scaled up" not in only


def after(**asked):
    plan, noisy = dropping(**asked)
    return plan, noisy, plan.after


def test_a_plan_with_measured_bounds_foresees_noise_total_and_scaling():
    plan, _ = dropping(n=count(), s=sum_of("x"))
    seen = Outlook(people=5_000, mass=12_000, kept=0.75, scaled=9, beyond=1, beyond_most=9, excess=0)
    text = plan_in_words(replace(plan, measured_totals=(replace(ROWS, outlook=seen),)))
    count_line, sum_line = (line for line in text.splitlines() if line.startswith(("  n: ", "  s: ")))
    assert "scaling 750), for 2 groups of about 6,000 rows" in count_line
    assert "and of a group's own number total 0.5" in sum_line
    assert sum_line.endswith("scaling 12 %")
    assert "Totals: of all rows, what the bounds left and took" in text


def test_where_nobody_is_known_beyond_the_bounds_nothing_is_scaled():
    plan, noisy = dropping(n=count())
    plan = replace(plan, totals=(), measured_totals=())
    made = make_answer(plan, replace(noisy, totals=()), plan.after, INFO)
    assert made.to_dicts()[0]["n"] == 900
    assert "counts with at most 3 rows in each of 2 groups; what it has beyond them is left out" in made.facts.notes[1]
