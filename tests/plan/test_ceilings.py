"""What is known of more rows limits what is believed of fewer: a filter, or a group, makes nobody's rows more."""

from dataclasses import replace
from fractions import Fraction

import pytest

import tacit
from tacit.plan import AT_MOST, AT_MOST_OF_TABLE, Fact, ceiling_keys, make_plan, make_spend
from tacit.plan.bounds.facts import OF_GROUPS, grouping_of
from tacit.plan.bounds.profiles import below, people_above, read_profile
from tacit.plan.bounds.scaling import BINS, Vector
from tacit.plan.bounds.vectors import count_subject, wider_than
from tacit.query import parse_query
from tacit.tables import ColumnFacts, Declaration
from tests.plan.learned import learned, rows

DECLARED = Declaration("t", "who", {name: ColumnFacts("int") for name in ("who", "x", "g")})
SPEND = make_spend(Fraction(1, 2), None, None, tacit.epsilon(10, delta=1e-6))
# by a profile of much noise some people are where nobody is
FILTERED = rows({1: 4000, 30: 900, 16_384: 400})
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
        "SELECT g, COUNT(*) FROM t WHERE x > 5 GROUP BY g",
        "SELECT g, COUNT(x) AS n FROM t GROUP BY g",
    ],
)
def test_nobody_is_believed_to_have_more_than_in_the_whole_table(text):
    _, before = tail_of(text)
    plan, after = tail_of(text, ceiling=WHOLE)
    assert min(before) >= 2**14, "noise alone would set the cap"
    assert 32 <= max(after) <= 192, "people beyond 2,048 rows are noise"
    assert any(each.entry == 7 for each in plan.learned), "the plan says what it rests on"


@pytest.mark.parametrize("groups", [1, 5, 30])
def test_a_person_is_in_no_more_groups_than_there_are(groups):
    """By the profile's noise some people are in 16,384 groups."""
    query = parse_query("SELECT g, COUNT(DISTINCT who) AS n FROM t WHERE x > 5 GROUP BY g", DECLARED)
    plan = make_plan(query, DECLARED, SPEND, learned(query, DECLARED, SPEND, FILTERED, groups=groups))
    (vector,) = plan.scaling.vectors
    assert vector.outlook.tail_cap <= groups
    assert vector.cap / 2**vector.shift <= groups


def test_by_whatever_rows_are_grouped_people_have_as_many_so_one_fact_serves():
    one = learned(parse_query("SELECT COUNT(*) FROM t", DECLARED), DECLARED, SPEND, FILTERED)
    for by in ("g", "x", "g, x"):
        query = parse_query(f"SELECT {by}, COUNT(*) FROM t GROUP BY {by}", DECLARED)
        assert set(one) <= set(learned(query, DECLARED, SPEND, FILTERED))


def test_of_more_than_sixteen_groups_the_fact_of_all_rows_is_still_a_ceiling():
    query = parse_query("SELECT g, COUNT(*) FROM t GROUP BY g", DECLARED)
    facts = learned(query, DECLARED, SPEND, FILTERED, groups=30)
    (own,) = learned(parse_query("SELECT COUNT(*) FROM t", DECLARED), DECLARED, SPEND, FILTERED)
    assert AT_MOST_OF_TABLE + own in ceiling_keys(query, DECLARED, SPEND, facts)


@pytest.mark.parametrize("text", ["SELECT COUNT(*) FROM t", "SELECT g, COUNT(*) FROM t WHERE x > 5 GROUP BY g"])
@pytest.mark.parametrize(("size", "cap"), [(150, 192), (199, 200)])
def test_no_cap_is_above_a_declared_maximum_of_rows(text, size, cap):
    query = parse_query(text, DECLARED)
    facts = learned(query, DECLARED, SPEND, rows({100: 4000, size: 9000, 5000: 900}))
    for most in (None, 200):
        plan = make_plan(query, replace(DECLARED, most_rows_per_unit=most), SPEND, facts)
        (vector,) = [vector for vector in plan.scaling.vectors if vector.outlook is not None]
        if most is None:
            assert max(vector.cap, vector.tail << vector.tail_shift) / 2.0**vector.shift > 1000
            continue
        assert vector.cap / 2.0**vector.shift == cap
        assert (vector.outlook.beyond_most == 0) == (cap == most), "nobody has more than the maximum"
        assert (vector.outlook.lost_most == 0) == (cap == most)


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
    assert all(key.startswith(AT_MOST) for key in keys if key not in of_table and not key.startswith(OF_GROUPS))


def read(people, scale=10.0, **changed):
    bins = [people.get(place, 0) for place in range(BINS)]
    return read_profile([(bins, scale)], shift=8, whole=True, is_total=True, **changed), [(bins, scale)]


def test_nobody_is_beyond_a_ceiling():
    few, _ = read(FILTERED, scale=10.0)
    whole, _ = read(WHOLE)
    most = float(whole.ends()[-1])
    limited = below(few, whole)
    assert 2048 <= most < 16_384
    assert (limited.ceiling, limited.unseen) == (most, 0)
    assert few.tail_cap == 16_384
    assert 32 <= limited.tail_cap <= 192
    assert limited.count == pytest.approx(4900, rel=0.01)
    assert below(whole, few) is whole


@pytest.mark.parametrize(("size", "people"), [(1, 9900), (39.5, 9900), (64, 900), (2000, 0)])
def test_people_above_a_size_are_between_what_its_bins_tell(size, people):
    reading, rounds = read(WHOLE)
    least, most = people_above(rounds, size, reading)
    assert least <= people <= most
    assert people_above([([0] * BINS, 10.0)], size, read({})[0]) is None
