"""Below an answer: what was learned and for how much, what was scaled away, and what no bar holds; also as data."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.answer.answer import MORE, AnswerInfo, View, make_answer, unknown_notes
from tacit.errors import InvalidParameter, with_article
from tacit.plan import CountRows, CountValues, Fact, Mean, Measured, Sum, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.plan.plan import Threshold
from tacit.query import Call, Column
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


def test_three_lines_say_what_was_scaled_who_is_in_no_bar_and_what_was_learned():
    cut, tail, learned = answered((720_000, 280_000)).facts.notes
    assert cut.startswith(
        "Who has more than about 33 rows counts for less (about 5 % of people). Scaling took 28 % of rows "
        "(27.54 to 28.46 %); all groups are scaled up for it, to a measured total of 1,000,000 ± 8,"
    )
    assert cut.endswith(
        "Bars allow a group to have lost nothing or 2.4 times the average, and all to be off together by 0.64 %."
    )
    assert tail == (
        "Nobody counts for more than 2,048 rows; about 11 people (at most 50) have more, and what they have beyond it "
        "is in no bar."
    )
    assert learned == (
        "Learned once for ε = 0.1 (entry 41), free from now on: how many rows a user_id has, in all and by item."
    )


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (450, 560, "(about 5 % of people)"),
        (100, 900, "(1.0 to 9.0 % of people)"),
        (0, 900, "(at most 9 % of people, perhaps nobody)"),
        (100, 12_000, "(at least 1 % of people)"),
        (0, 12_000, "(how many is not known at this ε)"),
    ],
)
def test_who_counts_for_less_is_told_as_far_as_the_noise_allows(least, most, said):
    seen = replace(ROWS, outlook=replace(OUTLOOK, scaled_least=least, scaled_most=most))
    assert (
        answered((720_000, 280_000), vector=seen)
        .facts.notes[0]
        .startswith(f"Who has more than about 33 rows counts for less {said}. ")
    )


def test_many_entries_and_an_uneven_epsilon_are_told_short():
    facts = tuple(replace(LEARNED[0], words=f"how {at}", epsilon=Fraction(1, 7), entry=5 + 3 * at) for at in range(4))
    learned = answered((720_000, 280_000), learned=facts).facts.notes[-1]
    assert learned == "Learned once for ε ≈ 0.57 (entries 5 to 14), free from now on: how 0, and 3 more."


def test_where_nothing_was_cut_it_says_at_most_how_much():
    cut, tail, _ = answered((720_000, -300)).facts.notes
    assert cut.endswith(" Nothing is known to be scaled away of rows (at most 0.79 %).")
    assert "2,048 rows" in tail


def test_totals_that_are_noise_are_not_made_into_a_share():
    cut, *_ = answered((500, 3_000), vector=replace(ROWS, outlook=None)).facts.notes
    assert cut == "How much of rows was scaled away is not known; bars allow for all that may have been."


def test_without_group_by_only_what_nobody_counts_beyond_is_said():
    one = replace(ROWS, totals=None, tail=0, tail_shift=0, outlook=replace(OUTLOOK, beyond=0.2))
    tail, learned = answered((), vector=one, cells=(1000,), groups=0).facts.notes
    assert learned.endswith("how many rows a user_id has, in all and by item.")
    assert tail.startswith("Nobody counts for more than 33 rows; at most 50 people")


def test_a_public_number_of_rows_is_named_as_what_groups_are_scaled_to():
    free = replace(ROWS, totals=None, tail=0, tail_shift=0)
    cut, *_ = answered((), vector=free, public_rows=1500).facts.notes
    assert cut.removeprefix("Who has more than about 33 rows counts for less (about 5 % of people). ").startswith(
        "All counts are scaled up by 1.471 to the declared 1,500 rows; rows in no listed group would"
    )


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
    assert "together by a factor of up to 2." in made.facts.notes[0]


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
    assert "Groups of fewer than about 13 people (who is in g groups counts 1/g in each) are hidden." in notes


def test_the_lower_end_that_holds_whatever_the_rows_is_what_was_kept_less_its_noise():
    made = answered((720_000, 280_000))
    assert made.at_least("n") == [986, 6], "the scale of the noise is 5 rows, and 1000 - 5·ln 20 is 985.02"
    assert [row["n_low"] for row in made.to_dicts()] == [985, 5]


def test_a_number_that_may_have_been_raised_has_no_such_end():
    made = answered((720_000, 280_000))
    with pytest.raises(InvalidParameter, match="'m' has no lower end that holds whatever the rows are; these have: n"):
        made.at_least("m")


@pytest.mark.parametrize("unit", [None, "user_id"])
def test_a_range_that_was_learned_says_who_may_be_beyond_it(unit):
    column = Measured(Column("gain"), "int", Fraction(1), 0, 131_072)
    fact = replace(LEARNED[0], words="how far gain is from its middle", scales=(Fraction(40, 3),))
    by_hand = replace(column, expression=Column("age"))
    plan = scaled_plan(
        [],
        [],
        scales=[],
        unit=unit,
        scaling=None,
        measured=(column, by_hand),
        learned=(fact,),
        learned_ranges=frozenset({Column("gain")}),
    )
    line, learned = make_answer(plan, noisy_of([[0]]), plan.after, INFO).facts.notes
    assert learned == "Learned once for ε = 0.1 (entry 41), free from now on: how far gain is from its middle."
    assert line.startswith("Values count as if within 0 to 131,072 of gain: nobody is known to be beyond")
    assert "(at most about 40 people)" in line


@pytest.mark.parametrize(("place", "people", "said"), [(127, 900, True), (255, 900, True), (127, 100, False)])
def test_people_with_values_beyond_all_that_is_learned_are_told_of(place, people, said):
    bins = tuple(people if each == place else 0 for each in range(256))
    fact = Fact("key", "how large pay is", (bins,), (Fraction(10),), Fraction(1, 10), 41)
    lines = [line for line in answered((720_000, 280_000), learned=(fact,)).facts.notes if "beyond 2^63" in line]
    assert len(lines) == said
    assert all(line.startswith("About 900 people have values of pay beyond 2^63") for line in lines)


def test_too_few_people_to_learn_from_are_told_of():
    none = replace(ROWS, outlook=replace(OUTLOOK, people=0.0, mass=0.0), tail=1 << 8)
    first, *_, tail, _ = answered((720, 2), vector=none).facts.notes
    assert first.startswith("Too few people to learn bounds from")
    assert tail.startswith("Nobody counts for more than 1 row;")


def test_where_more_may_have_more_than_there_are_people_it_says_that_nobody_knows():
    hidden = replace(ROWS, outlook=replace(OUTLOOK, people=40, beyond_most=49.2))
    assert (
        "how many people have more is not known at this ε"
        in answered((720_000, 280_000), vector=hidden).facts.notes[-2]
    )


def test_by_the_squares_norm_people_count_in_full_up_to_so_many_rows_in_one_group():
    who = answered((720_000, 280_000), noise="gaussian").facts.notes[0]
    assert who.startswith("Who has more than about 33 rows in one group counts for less (about 5 % of people). ")


def ranged(*columns):
    """A plan whose columns have learned ranges from 0 to 9."""
    measured = tuple(Measured(each, "int", Fraction(1), 0, 9) for each in columns)
    fact = replace(LEARNED[0], scales=(Fraction(10),))
    plan = scaled_plan([], [], scales=[], scaling=None, measured=measured, learned=(fact,))
    return replace(plan, learned_ranges=frozenset(columns))


def test_ranges_of_many_columns_are_one_line():
    plan = ranged(*(Column(f"c{at}") for at in range(16)), Column("c0"))
    line, _ = make_answer(plan, noisy_of([[0]]), plan.after, INFO).facts.notes
    assert line.startswith("Values count as if within 0 to 9 of c0, 0 to 9 of c1, 0 to 9 of c2 and 13 more: nobody")


def test_an_expression_is_called_what_was_written():
    plan = ranged(Call("/", (Column("amount"), Column("cds"))))
    line, _ = make_answer(plan, noisy_of([[0]]), plan.after, INFO).facts.notes
    assert line.startswith("Values count as if within 0 to 9 of amount / cds: ")


def test_rows_that_several_means_are_made_of_are_limited_once():
    counts = [replace(ROWS, kind="counted", column=at) for at in range(3)]
    measured = tuple(Measured(Column(name), "int", Fraction(1), 0, 9) for name in "abc")
    plan = scaled_plan(
        [CountValues(f"n{at}", at, at) for at in range(3)],
        counts,
        scales=[FINE] * 3,
        totals_scales=[9] * 3,
        measured=measured,
        learned=LEARNED,
    )
    noisy = noisy_of([[1000 * FINE]] * 3, [(720 * UNIT, 280 * UNIT)] * 3)
    notes = make_answer(plan, noisy, plan.after, INFO).facts.notes
    assert notes[-2].startswith("Nobody counts for more than 2,048 rows; about 11 people")


def view_of(kind, *cells):
    rows = [{"r": value, "r_low": low, "r_high": high} for value, low, high in cells]
    return View(rows, {}, {"r": kind}, frozenset(), shown=("r",))


def test_a_correlation_that_may_be_anything_says_so_and_what_to_do():
    (note,) = unknown_notes(view_of("correlation", (0.2, -1.0, 1.0)))
    assert note.startswith("r may be anything: ")
    assert "Spend more epsilon" in note
    assert unknown_notes(view_of("correlation", (0.2, -0.3, 0.6))) == ()


def test_a_number_that_cannot_be_told_says_why_and_what_to_do():
    (note,) = unknown_notes(view_of("mean", (None, None, None)))
    assert note == f"Too few people to tell r. {MORE}"
    (note,) = unknown_notes(view_of("mean", (1.0, 0.5, 1.5), (None, None, None)))
    assert note.startswith("Too few people to tell r where there is a –. ")


def test_names_have_their_articles():
    assert [with_article(name) for name in ("id", "user_id", "Account", "")] == [
        "an id",
        "a user_id",
        "an Account",
        "a ",
    ]
