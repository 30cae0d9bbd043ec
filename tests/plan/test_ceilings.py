"""What is known of more rows limits what is believed of fewer: a filter, or a group, makes nobody's rows more."""

from fractions import Fraction

import pytest

import tacit
from tacit.plan import AT_MOST, AT_MOST_OF_TABLE, Fact, ceiling_keys, make_plan, make_spend
from tacit.plan.bounds.ceilings import wider_than
from tacit.plan.bounds.known import grouping_of
from tacit.plan.bounds.profiles import below, people_above, read_profile
from tacit.plan.bounds.scaling import BINS, Vector
from tacit.plan.bounds.vectors import count_subject
from tacit.query import parse_query
from tacit.tables import ColumnFacts, Declaration
from tests.plan.learned import learned, rows

DECLARED = Declaration("t", "who", {name: ColumnFacts("int") for name in ("who", "x", "g")})
SPEND = make_spend(Fraction(1, 2), None, None, tacit.epsilon(10, delta=1e-6))
# by a profile of much noise many people are where nobody is
FILTERED = rows({1: 4000, 16_384: 9000})
WHOLE = rows({1: 4000, 40: 9000, 1500: 900})


def fact(key, people, scale=10):
    bins = tuple(people.get(place, 0) for place in range(BINS))
    return Fact(key, "how many rows a who has", (bins,), (Fraction(scale),), Fraction(1, 10), 7)


def tail_of(text, *, ceiling=None):
    query = parse_query(text, DECLARED)
    facts = learned(query, DECLARED, SPEND, FILTERED)
    if ceiling is not None:
        keys = [key for key in ceiling_keys(query, DECLARED, SPEND, facts) if key.startswith(AT_MOST_OF_TABLE)]
        facts |= {key: fact(key, ceiling) for key in keys}
    plan = make_plan(query, DECLARED, SPEND, facts)
    return plan, [vector.outlook.tail_cap for vector in plan.scaling.vectors if vector.outlook is not None]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM t WHERE x > 5",
        "SELECT g, COUNT(*) FROM t GROUP BY g",
        "SELECT g, COUNT(*) FROM t WHERE x > 5 GROUP BY g",
        "SELECT g, COUNT(DISTINCT who) AS n FROM t WHERE x > 5 GROUP BY g",
        "SELECT g, COUNT(x) AS n FROM t GROUP BY g",
    ],
)
def test_nobody_is_believed_to_have_more_than_in_the_whole_table(text):
    _, before = tail_of(text)
    plan, after = tail_of(text, ceiling=WHOLE)
    assert min(before) >= 2**14, "noise alone would set the cap"
    assert max(after) == 2047
    assert any(each.entry == 7 for each in plan.learned), "the plan says what it rests on"


def test_a_table_in_which_people_have_more_limits_nothing():
    text = "SELECT COUNT(*) FROM t WHERE x > 5"
    plan, after = tail_of(text, ceiling=rows({2**17: 9000}))
    assert (after, len(plan.learned)) == (tail_of(text)[1], 1)


def test_sums_about_a_middle_have_no_ceiling():
    """Leaving out rows below the middle makes such a sum larger."""
    query = parse_query("SELECT AVG(x) FROM t WHERE x > 5", DECLARED)
    facts = learned(query, DECLARED, SPEND, rows({3: 9000}))
    assert make_plan(query, DECLARED, SPEND, facts).scaling.vectors[1].kind == "centred"
    subjects = [count_subject(grouping_of(query, DECLARED, SPEND), "rows")]
    assert len(list(wider_than(subjects[0]))) == 1
    centred = Vector("centred", 0)
    profiles = tuple(type(each)(each.norm, centred) for each in subjects[0].profiles)
    assert list(wider_than(type(subjects[0])(subjects[0].grouping, (), profiles))) == []


def test_only_what_is_about_all_rows_may_be_known_of_another_table():
    """A condition, or a column, may mean something else there."""
    query = parse_query("SELECT g, COUNT(*) FROM t WHERE x > 5 GROUP BY g", DECLARED)
    keys = ceiling_keys(query, DECLARED, SPEND, learned(query, DECLARED, SPEND, FILTERED))
    of_table = [key for key in keys if key.startswith(AT_MOST_OF_TABLE)]
    alone = parse_query("SELECT COUNT(*) FROM t", DECLARED)
    (own,) = learned(alone, DECLARED, SPEND, FILTERED)
    assert of_table == [AT_MOST_OF_TABLE + own]
    assert all(key.startswith(AT_MOST) for key in keys if key not in of_table)


def read(people, scale=10.0, **changed):
    bins = [people.get(place, 0) for place in range(BINS)]
    return read_profile([(bins, scale)], shift=8, whole=True, is_total=True, **changed), [(bins, scale)]


def test_people_beyond_a_ceiling_are_as_few_as_it_says():
    few, _ = read(FILTERED, scale=100.0)
    whole, _ = read(WHOLE)
    limited = below(few, whole)
    assert (limited.tail_cap, limited.unseen) == (2047, 30)
    assert limited.count == pytest.approx(4000)
    assert below(whole, few) is whole


@pytest.mark.parametrize(("size", "people"), [(1, 9900), (39.5, 9900), (64, 900), (2000, 0)])
def test_people_above_a_size_are_between_what_its_bins_tell(size, people):
    reading, rounds = read(WHOLE)
    least, most = people_above(rounds, size, reading)
    assert least <= people <= most
    assert people_above([([0] * BINS, 10.0)], size, read({})[0]) is None
