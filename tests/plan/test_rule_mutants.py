"""Planted mistakes in the rule for the cap: each makes a claim about caps fail that holds without it.

The claims are about the truth, not about constants: a cap that cuts nothing if sizes end, and one that errs hardly more
than the best cap would if they do not. Profiles have no noise in them, and the rule takes the noise to be 7 wide.
"""

from math import exp

import numpy as np
import pytest

from tacit.plan.bounds import caps, tails
from tacit.plan.bounds.profiles import read_profile
from tests.plan.learned import rows
from tests.plan.test_caps import TABLES, whole_cap
from tests.plan.test_profiles import bins

NOISE = 1 / 0.8  # for a cap of one row, at the epsilon of `whole_cap`
ENDED = {"five rows each": 6, "up to 4": 4, "up to 12": 12, "up to 96": 96}
TRIED = sorted(2**power * times // 2 for power in range(1, 14) for times in (2, 3))
# 3,000 people by Pareto's law with the exponent 1.1: 2,720 rows at most.
HEAVY = [int(((place + 0.5) / 3000) ** (-1 / 1.1)) for place in range(3000)]
# Of 100,000 people one in five hundred has 65 to 124 rows.
VISITS = dict.fromkeys(range(1, 5), 23_750) | dict.fromkeys(range(5, 25), 200) | dict.fromkeys(range(25, 65), 20)
VISITS |= dict.fromkeys(range(65, 125), 3)
TAILS = {
    "visits": VISITS,
    "Pareto 1.6": TABLES["Pareto"],
    "Pareto 1.1": {size: HEAVY.count(size) for size in set(HEAVY)},
}


def error(people, cap, groups):
    """About what a group errs by in truth: what it lacks beyond the cap, and Laplace noise."""
    lost, noise = sum(each * max(size - cap, 0) for size, each in people.items()) / groups, cap * NOISE
    return lost + noise * exp(-lost / noise)


def ends_are_kept():
    for name, end in ENDED.items():
        for groups in (1, 5, 100):
            assert whole_cap(bins(rows(TABLES[name])), groups) == end


def tails_are_weighed():
    """Caps err little more than the best end would: by a quarter, and of a very heavy tail by 1.5 times as much."""
    for name, most in (("Pareto 1.6", 1.25), ("visits", 1.25), ("Pareto 1.1", 2.5)):
        people = TAILS[name]
        for groups in (1, 2, 5):
            cap = whole_cap(bins(rows(people)), groups)
            assert cap is not None, "totals are not worth their noise in so few groups"
            assert error(people, cap, groups) <= most * min(error(people, each, groups) for each in TRIED)


def a_tail_above_a_rise_is_foreseen():
    """Sizes become more frequent up to the top, and above it noise may hide people: some of them are foreseen."""
    noise, people = 7.0, {15: 10_000, 16: 1000, 21: 100, 22: 100} | dict.fromkeys(range(23, 28), 14)
    reading = read_profile(((bins(people), noise),), shift=8, whole=True, is_total=True)
    assert reading.top == 22
    assert noise < sum(reading.people[23:]) < 5 * 14


CLAIMS = (ends_are_kept, tails_are_weighed, a_tail_above_a_rise_is_foreseen)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_holds(claim):
    claim()


def a_tail_has_always_ended(patched):
    patched.setattr(tails, "ENDS", 0.99)


def a_tail_never_falls(patched):
    patched.setattr(tails, "FALLS", np.zeros(9, dtype=int))
    patched.setattr(tails, "UNSEEN_FALL", 0)
    patched.setattr(tails, "ENDS", 0.0)


def gaps_are_no_less_likely_the_longer_they_are(patched):
    patched.setattr(tails, "FALSE_BIN", 0.003)
    patched.setattr(tails, "FALSE_SLOPE", 0.0)


def one_group_lacks_it_all(patched):
    right = caps._whole_steps_of
    patched.setattr(caps, "_whole_steps_of", lambda sizes, width, cells: right(sizes, width, 1.0))


MUTANTS = (
    a_tail_has_always_ended,
    a_tail_never_falls,
    gaps_are_no_less_likely_the_longer_they_are,
    one_group_lacks_it_all,
)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_rule_breaks_a_claim(monkeypatch, mutant):
    mutant(monkeypatch)
    tails.foreseen.cache_clear()
    assert any(_fails(claim) for claim in CLAIMS)
    tails.foreseen.cache_clear()


def _fails(claim):
    try:
        claim()
    except AssertionError:
        return True
    return False
