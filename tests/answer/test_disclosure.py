"""The facts about an answer's bounds: what was removed, learned and left out of its intervals, in words and as data."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.answer.answer import AnswerInfo, View, make_answer
from tacit.answer.disclosure import TOO_FEW
from tacit.answer.text import MORE_EPSILON, closing_lines, reading_line, unknown_notes
from tacit.errors import InvalidParameter, with_article
from tacit.plan import CountRows, CountValues, Fact, Measured, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.query import Call, Column
from tests.answer.scaled_plans import noisy_of, scaled_plan

FINE = 1 << 10
INFO = AnswerInfo(
    loss={"epsilon": 1.0, "delta": 0.0, "text": "ε = 1", "meaning": "odds"},
    left={"epsilon": 2.0, "questions": 3, "text": "up to ε = 2 for one more question"},
    unit="all rows of one user_id",
    neighbours="add or remove one",
    confidence=Fraction(95, 100),
    durable=True,
    free=False,
)
OUTLOOK = Outlook(people=10_000, mass=1e6, kept=0.72, scaled=500, beyond_most=49.2, excess=3000)
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


def test_the_details_say_what_was_removed_what_is_left_out_and_what_was_learned():
    removed, beyond, learned = answered((720_000, 280_000)).facts.notes
    assert removed.startswith(
        "Down-weighting removed about 28 % of the rows (27.54 to 28.46 %); all groups were scaled up to the measured "
        "total, 1,000,000 ± 8,"
    )
    assert beyond == "Not counted: rows beyond 2,048 of one id (at most about 50 people). The intervals allow for it."
    assert learned == (
        "Learned for ε = 0.1 (entry 41), free for later questions: how many rows a user_id has, in all and by item."
    )


def test_below_an_answer_are_three_lines():
    reading, spent = closing_lines(answered((720_000, 280_000)))
    assert reading == (
        "Each interval holds the table's number with 95 % probability (no sampling error included). "
        "Not counted, but allowed for: rows beyond 2,048 of one id (at most about 50 people)."
    )
    assert spent == (
        "Spent ε 1; ε 2 is left, about 3 more like this. Protects all rows of one user_id. More: answer.details()"
    )


# what the facts foretell of people is another number than the rows that were measured; the two may not be so together
@pytest.mark.parametrize("most", [0.0, 900.0, 12_000.0])
def test_where_the_loss_is_measured_no_foretold_share_of_people_stands_beside_it(most):
    seen = replace(ROWS, outlook=replace(OUTLOOK, scaled_least=0.0, scaled_most=most))
    notes = " ".join(answered((720_000, 280_000), vector=seen).facts.notes)
    assert "28 % of the rows" in notes
    assert "of people" not in notes


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("most", "said"),
    [
        (900, "People with more than about 33 rows may be down-weighted (at most about 9 % of people). "),
        (0, "People with more than about 33 rows may be down-weighted (at most about 0.01 % of people). "),
        (12_000, ""),
        (None, ""),
    ],
)
def test_where_it_is_not_measured_the_share_of_people_is_a_largest_one(noise, most, said):
    free = replace(ROWS, totals=None, tail=0, outlook=replace(OUTLOOK, scaled_least=500.0, scaled_most=most))
    first, *_ = answered((), vector=free, noise=noise).facts.notes
    assert first == (
        f"{said}Down-weighting removed about 28 % of the rows, by the learned facts. The intervals allow for it."
    )


def test_every_fact_has_its_price_and_its_entry():
    facts = tuple(replace(LEARNED[0], words=f"how {at}", epsilon=Fraction(1, 7), entry=5 + 3 * at) for at in range(4))
    *_, last = answered((720_000, 280_000), learned=facts).facts.notes
    assert last == "Learned for ε = 0.142858 (entry 14), free for later questions: how 3."


def test_where_nothing_was_cut_it_says_at_most_how_much():
    removed, *_ = answered((720_000, -300)).facts.notes
    assert removed == "Down-weighting removed no measurable part of the rows (at most 0.79 %)."


def test_totals_that_are_noise_are_not_made_into_a_share():
    removed, *_ = answered((500, 3_000), vector=replace(ROWS, outlook=None)).facts.notes
    assert removed == (
        "The share of the rows that down-weighting removed is not known. The intervals allow for all of it."
    )


def test_without_totals_rows_beyond_the_cap_are_not_counted():
    one = replace(ROWS, totals=None, tail=0, tail_shift=0, outlook=replace(OUTLOOK, kept=1.0, tail_cap=64.0))
    beyond, learned = answered((), vector=one, cells=(1000,), groups=0).facts.notes
    assert learned.endswith("how many rows a user_id has, in all and by item.")
    assert beyond == "Not counted: rows beyond 33 of one id (at most about 50 people). The intervals allow for it."


def test_a_public_number_of_rows_is_named_as_what_groups_are_scaled_to():
    free = replace(ROWS, totals=None, tail=0, tail_shift=0)
    removed, *_ = answered((), vector=free, public_rows=1500).facts.notes
    assert removed.startswith("All counts were scaled up by 1.471 to the declared 1,500 rows. If rows are in no listed")


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
    assert rows["people_beyond_most"] == 49.2


def test_an_unknown_factor_is_null_in_the_json():
    unknown = answered((500, 3_000), vector=replace(ROWS, outlook=None))
    (rows,) = json.loads(unknown.to_json())["bounds"]["scaled"]
    assert rows["factor_high"] is None


def test_where_the_totals_are_noise_facts_limit_the_factor():
    made = answered((500, 3_000))
    (rows,) = made.facts.bounds["scaled"]
    assert rows["factor_high"] == max(2 * rows["factor"], 2 / 0.72 - 1)


def test_groups_that_are_found_say_how_few_people_are_hidden():
    plan = scaled_plan([CountRows("n", 0)], [ROWS], scales=[5 * FINE], totals_scales=[2000 * UNIT])
    noisy = noisy_of([[1000 * FINE]], [(720_000 * UNIT, 280_000 * UNIT)])
    assert make_answer(plan, noisy, plan.after, INFO).facts.advice == ""
    votes = ((20 * FINE,), (12 * FINE + FINE // 2,))
    found = Fact("groups 1", "", votes, (Fraction(FINE),), Fraction(1, 10), keys=(("a",),))
    made = make_answer(replace(plan, learned=(found,)), noisy, plan.after, INFO)
    assert made.facts.advice == "Groups with fewer than about 13 people are hidden."


def test_the_lower_end_that_holds_whatever_the_rows_is_what_was_kept_less_its_noise():
    made = answered((720_000, 280_000))
    assert made.at_least("n") == [986, 6], "the scale of the noise is 5 rows, and 1000 - 5·ln 20 is 985.02"
    assert [row["n_low"] for row in made.to_dicts()] == [985, 5]


def test_a_number_that_may_have_been_raised_has_no_such_end():
    made = answered((720_000, 280_000))
    with pytest.raises(InvalidParameter, match="'m' has no lower end that holds whatever the rows are; these have: n"):
        made.at_least("m")


@pytest.mark.parametrize("unit", [None, "user_id"])
def test_values_beyond_a_learned_range_are_left_out_by_the_intervals(unit):
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
    assert learned == "Learned for ε = 0.1 (entry 41), free for later questions: how far gain is from its middle."
    assert line == "The intervals leave out values of gain outside the learned range 0 to 131,072."


@pytest.mark.parametrize(("place", "people", "said"), [(127, 900, True), (255, 900, True), (127, 100, False)])
def test_people_with_values_beyond_all_that_is_learned_are_told_of(place, people, said):
    bins = tuple(people if each == place else 0 for each in range(256))
    fact = Fact("key", "how large pay is", (bins,), (Fraction(10),), Fraction(1, 10), 41)
    lines = [line for line in answered((720_000, 280_000), learned=(fact,)).facts.notes if "beyond 2^63" in line]
    assert len(lines) == said
    assert all(line == "The intervals leave out values of pay beyond 2^63 (about 900 people)." for line in lines)


def test_too_few_people_to_learn_from_are_told_of_and_what_to_do():
    none = replace(ROWS, outlook=replace(OUTLOOK, people=0.0, mass=0.0), tail=1 << 8)
    facts = answered((720, 2), vector=none).facts
    assert facts.notes[0] == TOO_FEW
    assert "allowed for: rows beyond 1 of one id. " in facts.reading
    assert facts.reading.endswith(TOO_FEW)
    assert facts.advice.startswith("Closer: learn with more ε (table.learn), or declare rows_per_unit=")


def test_where_more_may_have_more_than_there_are_people_no_number_of_them_is_given():
    hidden = replace(ROWS, outlook=replace(OUTLOOK, people=40, beyond_most=49.2))
    reading = answered((720_000, 280_000), vector=hidden).facts.reading
    assert "allowed for: rows beyond 2,048 of one id." in reading


def ranged(*columns):
    """A plan whose columns have learned ranges from 0 to 9."""
    measured = tuple(Measured(each, "int", Fraction(1), 0, 9) for each in columns)
    fact = replace(LEARNED[0], scales=(Fraction(10),))
    plan = scaled_plan([], [], scales=[], scaling=None, measured=measured, learned=(fact,))
    return replace(plan, learned_ranges=frozenset(columns))


def test_what_is_left_out_of_many_columns_is_named_short_and_the_details_have_all_of_it():
    plan = ranged(*(Column(f"c{at}") for at in range(16)), Column("c0"))
    made = make_answer(plan, noisy_of([[0]]), plan.after, INFO)
    assert len([note for note in made.facts.notes if "outside the learned range" in note]) == 16
    phrases = [f"values of c{at} outside the learned range 0 to 9" for at in range(16)]
    assert reading_line(INFO.confidence, phrases).endswith(f": {phrases[0]}; 15 more such parts (see details).")


def test_an_expression_is_called_what_was_written():
    plan = ranged(Call("/", (Column("amount"), Column("cds"))))
    line, _ = make_answer(plan, noisy_of([[0]]), plan.after, INFO).facts.notes
    assert line == "The intervals leave out values of amount / cds outside the learned range 0 to 9."


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
    reading = make_answer(plan, noisy, plan.after, INFO).facts.reading
    assert reading.endswith("rows beyond 2,048 of one id (at most about 50 people).")


def view_of(kind, *cells):
    rows = [{"r": value, "r_low": low, "r_high": high} for value, low, high in cells]
    return View(rows, {}, {"r": kind}, frozenset(), shown=("r",))


def test_a_correlation_that_may_be_anything_says_so_and_what_to_do():
    note, instead = unknown_notes(view_of("correlation", (0.2, -1.0, 1.0)))
    assert note == "r may be anything: the noise is as large as the sums behind it."
    assert instead.startswith("Spend more ε")
    assert unknown_notes(view_of("correlation", (0.2, -0.3, 0.6))) == ()


def test_a_number_that_is_not_shown_says_why_and_what_to_do():
    assert unknown_notes(view_of("mean", (None, None, None))) == ("There are too few people for r.", MORE_EPSILON)
    note, _ = unknown_notes(view_of("mean", (1.0, 0.5, 1.5), (None, None, None)))
    assert note == "There are too few people for r in rows with a –."


def test_names_have_their_articles():
    assert [with_article(name) for name in ("id", "user_id", "Account", "")] == [
        "an id",
        "a user_id",
        "an Account",
        "a ",
    ]
