"""The caps of a mean: what is weighed against the noise, beside what the profiles show."""

from fractions import Fraction

from tacit.plan.bounds.caps import Terms, Told, by_rank
from tacit.plan.bounds.mean_caps import ROWS_SHARES, Pair, best_mean_caps
from tacit.plan.bounds.profiles import Reading

# Hospital stays of 6,000 people in up to 7 years: one person in six has any.
YEARS, STAYS = (1150.0, 2070.0, 2910.0), (610.0, 370.0, 110.0, 30.0)


def caps_of(scale):
    """The caps of the mean of stays by two groups, where profiles have noise of this scale."""
    rows, sums = by_rank(
        [Told(Reading(people, len(people) - 1, scale, 0, True, 1.0, True)) for people in (YEARS, STAYS)]
    )
    terms = Terms("laplace", 0.8)
    return best_mean_caps(Pair(rows, sums, terms, terms, Fraction(1), ROWS_SHARES), 2.0)


def test_people_with_far_values_who_are_not_seen_lower_the_cap_of_rows_and_not_that_of_sums():
    seen, unseen = caps_of(0.01), caps_of(14.0)
    assert unseen.rows.size < seen.rows.size / 1.9, "cutting because of many rows hardly moves a mean"
    assert unseen.sums.size / unseen.rows.size > 1.9 * seen.sums.size / seen.rows.size
