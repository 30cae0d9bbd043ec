"""Planted facts: what a profile would have released of a given histogram of people, with stated noise."""

from tacit.plan import BINS, Fact, WantedFact, missing_facts
from tacit.plan.bounds.learning import made_up_groups


def planted(wanted: WantedFact, people: dict[int, int], *, noise: int = 0, groups: int = 8) -> Fact:
    """Return the fact with so many people in each bin of every profile, all bins moved by `noise` people."""
    if wanted.plan.quantiles:  # a centre: the low end, itself and the high end, all in the middle of the range
        (column,) = wanted.plan.measured
        middle = column.height // 2 if noise == 0 else 0 if noise < 0 else column.height
        return Fact(wanted.key, wanted.words, ((middle,),) * 3, (), wanted.plan.spend.epsilon)
    if wanted.plan.threshold is not None:  # which groups there are
        return made_up_groups(wanted, groups=groups, people=10**6)
    bins = len(wanted.plan.public_keys)
    parts = tuple(tuple(people.get(place, 0) + noise for place in range(bins)) for _ in wanted.plan.releases)
    scales = tuple(release.scale for release in wanted.plan.releases)
    return Fact(wanted.key, wanted.words, parts, scales, wanted.plan.spend.epsilon)


def learned(query, declaration, spend, people, *, noise=0, groups=8):
    """Return all facts that a question needs, each with the same people in its bins."""
    facts = {}
    for _ in range(20):
        wanted = missing_facts(query, declaration, spend, facts)
        if not wanted:
            return facts
        facts |= {each.key: planted(each, people, noise=noise, groups=groups) for each in wanted}
    raise AssertionError("a question never stops learning")


def rows(sizes: dict[int, int], *, shift: int = 8) -> dict[int, int]:
    """Return bins from sizes in rows: {3: 100} is 100 people with 3 rows each."""
    bins: dict[int, int] = {}
    for size, people in sizes.items():
        below = (size << shift) - 1
        place = min(below.bit_length() + (below // 3).bit_length(), BINS - 1)
        bins[place] = bins.get(place, 0) + people
    return bins
