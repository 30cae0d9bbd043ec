"""Below an answer: what was learned and for how much, what was scaled away, and what no bar holds; also as data."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.answer.answer import AnswerInfo, make_answer
from tacit.errors import InvalidParameter
from tacit.plan import CountRows, Fact, Mean, Measured, Sum, Vector
from tacit.plan.plan import Threshold
from tacit.plan.scaling import Outlook
from tacit.query import Column
from tests.answer.scaled_plans import noisy_of, scaled_plan

FINE = 1 << 10
INFO = AnswerInfo(
    loss={"epsilon": 1.0, "delta": 0.0, "text": "ε = 1"},
    left={"epsilon": 2.0, "questions": 3, "text": "up to ε = 2 for one more question"},
    unit="all rows of one user_id",
    neighbours="add or remove one",
    confidence=Fraction(95, 100),
    durable=True,
    free=False,
)
OUTLOOK = Outlook(people=10_000, mass=1e6, kept=0.72, scaled=500, beyond=11, beyond_most=49.2, excess=3000)
ROWS = Vector("rows", shift=10, cap=33 << 10, totals="absolute", tail=2048 << 8, tail_shift=2, outlook=OUTLOOK)
LEARNED = (Fact("key", "how many rows a user_id has, in all and by item", (), (), Fraction(1, 10), 41),)
UNIT = FINE // 4  # of the totals, in a row


def answered(totals, *, vector=ROWS, cells=(1000, 20), totals_scale=2000 * UNIT, learned=LEARNED, **changed):
    plan = scaled_plan(
        [CountRows("n", 0)],
        [vector],
        scales=[5 * FINE],
        totals_scales=[totals_scale] if vector.totals else [],
        groups=changed.pop("groups", len(cells)),
        learned=learned,
        **changed,
    )
    noisy = noisy_of([[cell * FINE for cell in cells]], [[total * UNIT for total in totals]] if vector.totals else [])
    return make_answer(plan, noisy, plan.after, INFO)


def test_three_lines_say_what_was_learned_what_was_scaled_and_who_is_in_no_bar():
    learned, cut, tail = answered((720_000, 280_000)).facts.notes
    assert learned == (
        "Learned once for ε = 0.1 (entry 41), free from now on: how many rows a user_id has, in all and by item. "
        "People count in full up to about 33 rows; about 5 % have more, and count for less."
    )
    assert cut.startswith(
        "Scaled away: 28 % of rows (27.54 to 28.46 %); all groups are scaled up by 1.389 to the measured total, "
        "1,000,000 ± 8,"
    )
    assert cut.endswith("all groups may be too high or too low together by 0.64 %.")
    assert tail == (
        "Bars are about a table in which nobody counts for more than 2,048 rows; about 11 people (at most 50) have "
        "more, and what they have beyond it is in no bar."
    )


def test_where_nothing_was_cut_it_says_at_most_how_much():
    _, cut, tail = answered((720_000, -300)).facts.notes
    assert cut.startswith("Nothing of rows is known to be scaled away, at most 0.79 %; ")
    assert "2,048 rows" in tail


def test_totals_that_are_noise_are_not_made_into_a_share():
    _, cut, _ = answered((500, 3_000), vector=replace(ROWS, outlook=None)).facts.notes
    assert cut == (
        "The totals of rows are too small to tell what was scaled away; bars allow for all that may have been."
    )


def test_without_group_by_only_what_nobody_counts_beyond_is_said():
    one = replace(ROWS, totals=None, tail=0, tail_shift=0, outlook=replace(OUTLOOK, beyond=0.2))
    learned, tail = answered((), vector=one, cells=(1000,), groups=0).facts.notes
    assert learned.endswith("how many rows a user_id has, in all and by item.")
    assert tail.startswith("Bars are about a table in which nobody counts for more than 33 rows; at most 50 people")


def test_a_public_number_of_rows_is_named_as_what_groups_are_scaled_to():
    free = replace(ROWS, totals=None, tail=0, tail_shift=0)
    _, cut, _ = answered((), vector=free, public_rows=1500).facts.notes
    assert cut.startswith("All counts are scaled up by 1.471 to the declared 1,500 rows; rows in no listed group would")


def test_all_of_it_is_in_the_json_as_numbers():
    bounds = json.loads(answered((720_000, 280_000)).to_json())["bounds"]
    assert bounds["learned"] == [
        {"what": LEARNED[0].words, "epsilon": 0.1, "entry": 41, "time": None},
    ]
    (rows,) = bounds["scaled"]
    assert rows["of"] == "rows"
    assert rows["factor"] == pytest.approx(1 / 0.72)
    assert rows["share_cut"] == pytest.approx(0.28)
    assert rows["share_cut_low"] < 0.28 < rows["share_cut_high"]
    assert (rows["kept"], rows["cut"], rows["most"]) == (720_000, 280_000, 2048)
    assert (rows["people_beyond"], rows["people_beyond_most"]) == (11, 49.2)


def test_an_unknown_factor_is_null_in_the_json():
    unknown = answered((500, 3_000), vector=replace(ROWS, outlook=None))
    (rows,) = json.loads(unknown.to_json())["bounds"]["scaled"]
    assert rows["factor_high"] is None


def test_where_the_totals_are_noise_facts_limit_the_factor_and_the_line_says_how_far_off_it_may_be():
    made = answered((500, 3_000))
    (rows,) = made.facts.bounds["scaled"]
    assert rows["factor_high"] == max(2 * rows["factor"], 2 / 0.72 - 1)
    assert "together by a factor of up to 2." in made.facts.notes[1]


def test_a_shifted_mean_says_by_how_much():
    column = Measured(Column("x"), "int", Fraction(1), -(1 << 30), 1 << 30)
    rows = Vector("rows", shift=4, totals="absolute", tail=1 << 20)
    sums = Vector("centred", 0, centre=1 << 30, shift=3, totals="signed", tail=1 << 20, rows=0)
    plan = scaled_plan(
        [CountRows("n", 0), Mean("m", 1, 0), Sum("s", 1, 0)],
        [rows, sums],
        scales=[16, 8],
        totals_scales=[20, 20],
        measured=(column,),
        learned=LEARNED,
    )
    noisy = noisy_of([[16_000], [16_000]], [(160_000, 40_000), (160_000, 140_000)])
    made = make_answer(plan, noisy, plan.after, INFO)
    assert "Means are shifted to that of the whole table: m by +1 ± 0.0011." in made.facts.notes
    assert json.loads(made.to_json())["bounds"]["shifted"][0]["shift"] == pytest.approx(1)


def test_keys_that_are_found_by_weights_say_so():
    units = Vector("units", shift=10, cap=1 << 10)
    plan = scaled_plan(
        [CountRows("n", 0)],
        [ROWS, units],
        scales=[5 * FINE, FINE],
        totals_scales=[2000 * UNIT],
        public_keys=None,
        threshold=Threshold(1, 12 * FINE + FINE // 2, Fraction(1, 10**6)),
    )
    noisy = noisy_of([[1000 * FINE], [20 * FINE]], [(720_000 * UNIT, 280_000 * UNIT)])
    notes = make_answer(plan, noisy, plan.after, INFO).facts.notes
    assert (
        "Groups are shown where the noisy weight of units (1/g for a unit with g groups) is at least 12.5; others may"
        " exist." in notes
    )


def test_the_lower_end_that_holds_whatever_the_rows_is_what_was_kept_less_its_noise():
    made = answered((720_000, 280_000))
    assert made.at_least("n") == [986, 6], "the scale of the noise is 5 rows, and 1000 - 5·ln 20 is 985.02"
    assert [row["n_low"] for row in made.to_dicts()] == [985, 5]


def test_a_number_that_may_have_been_raised_has_no_such_end():
    made = answered((720_000, 280_000))
    with pytest.raises(InvalidParameter, match="'m' has no lower end that holds whatever the rows are; these have: n"):
        made.at_least("m")


def test_a_range_that_was_learned_of_rows_says_who_may_be_beyond_it():
    column = Measured(Column("gain"), "int", Fraction(1), 0, 131_072)
    fact = replace(LEARNED[0], words="how far gain is from its middle", scales=(Fraction(40, 3),))
    plan = scaled_plan([], [], scales=[], unit=None, scaling=None, measured=(column,), learned=(fact,))
    learned, line = make_answer(plan, noisy_of([[0]]), plan.after, INFO).facts.notes
    assert learned == "Learned once for ε = 0.1 (entry 41), free from now on: how far gain is from its middle."
    assert line.startswith("gain: a value above 131,072 counts as 131,072, and one below 0 as 0; nobody is known to be")
    assert "(at most about 40 people)" in line


def test_too_few_people_to_learn_from_are_told_of():
    none = replace(ROWS, outlook=replace(OUTLOOK, people=0.0, mass=0.0), tail=1 << 8)
    *said, tail = answered((720, 2), vector=none).facts.notes
    assert any("Too few people to learn bounds from" in line for line in said)
    assert "nobody counts for more than 1 row;" in tail
