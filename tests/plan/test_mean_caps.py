"""The caps of a mean: what is weighed against the noise, beside what the profiles show."""

from fractions import Fraction

import pytest

from tacit.plan.bounds.caps import ROWS_SHARES, NoiseTerms, Pair, Told, best_mean_caps, by_rank
from tacit.plan.bounds.profiles import read_profile
from tacit.plan.bounds.scaling import BINS
from tests.plan.learned import rows

STEPS = 24  # bins: a row is 2^12 steps from the centre


def sizes_of(*profiles, scale=7.0):
    """Return the people of rows and of sums, by rank."""
    read = [
        read_profile(
            ((tuple(people.get(at, 0) for at in range(BINS)), scale),), shift=8, whole=whole, is_total=True, safe=safe
        )
        for people, whole, safe in zip(profiles, (True, False), (1.0, 2.0**20), strict=True)
    ]
    return by_rank([Told(each) for each in read])


def caps_of(people, sums, cells=5.0, **changed):
    terms = NoiseTerms("laplace", 0.8)
    return best_mean_caps(Pair(*sizes_of(people, sums), terms, terms, Fraction(1), ROWS_SHARES, **changed), cells)


def of_rows(people):
    """Return the profile of sums of people all of whose rows are as far from the centre."""
    return {place + STEPS: count for place, count in people.items()}


@pytest.mark.parametrize("size", [1, 4, 12, 96])
def test_where_all_have_as_many_rows_a_mean_is_cut_by_nothing(size):
    people = rows({size: 20_000})
    caps = caps_of(people, of_rows(people))
    assert caps.rows.size == size
    assert caps.sums.size == size * 2.0**12
    assert caps.rows_share < Fraction(1, 2), "sums about the centre need more"


def test_people_with_many_rows_are_cut_sooner_than_people_with_far_values():
    """A tenth of the people has 64 times as much: by rows, that hardly moves a mean; by values, it moves every mean."""
    heavy = rows({1: 18_000, 64: 2_000})
    by_many_rows = caps_of(heavy, of_rows(heavy), cells=300.0)
    by_far_values = caps_of(rows({1: 20_000}), of_rows(heavy), cells=300.0)
    assert by_many_rows.rows.size < 64
    assert by_far_values.rows.size == 1
    assert by_far_values.sums.size > by_many_rows.sums.size


def test_where_the_sum_is_asked_too_less_is_cut_of_it():
    heavy = rows({1: 18_000, 64: 2_000})
    mean, both = (caps_of(heavy, of_rows(heavy), cells=300.0, has_sum=has_sum) for has_sum in (False, True))
    assert both.rows.size > mean.rows.size


def test_of_nobody_the_caps_are_the_safe_ones():
    for people, sums in (({}, {}), (rows({3: 9000}), {}), ({}, of_rows(rows({3: 9000})))):
        caps = caps_of(people, sums)
        assert people or caps.rows.size == 1
        assert sums or caps.sums.size == 2.0**20
