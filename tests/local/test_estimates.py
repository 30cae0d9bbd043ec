"""Estimates keep their word: unbiased, covering, consistent beside raw, bounded under fakes, and strings are found."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tacit import local
from tacit.local import estimate
from tacit.local.estimate import Counting, _binomial, _wilson, norm_sub
from tacit.local.protocols.hashing import PrefixHashing
from tacit.local.protocols.protocol import Response
from tacit.noise.bits import Keystream
from tacit_gauntlet.stage.local import people
from tacit_gauntlet.stage.statistic import FALSE_ALARM


def law_of_supports(counting: Counting, holders: int) -> np.ndarray:
    """The chance of each number of supports: two binomials, added."""
    law = np.zeros(counting.reports + 1)
    first, kept = _binomial(holders, float(counting.keep))
    start, strayed = _binomial(counting.reports - holders, float(counting.stray))
    both = np.convolve(kept, strayed)
    law[first + start : first + start + len(both)] = both
    return law


@pytest.mark.parametrize("people_count", [10, 150, 2000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_intervals_cover_at_the_stated_rate_for_every_truth(people_count, epsilon):
    protocol = Response(4, epsilon)
    counting = Counting(protocol.keep, protocol.stray, people_count, people_count)
    supports = np.arange(people_count + 1)
    low, high = counting.bounds(supports, 0.95)
    assert (low <= counting.unbiased(supports) + 1e-9).all()
    assert (counting.unbiased(supports) <= high + 1e-9).all()
    for holders in {0, 1, people_count // 3, people_count // 2, people_count}:
        law = law_of_supports(counting, holders)
        # the normal rule, with half a report allowed, is never more than half a percent short
        assert law[(low <= holders + 1e-9) & (holders - 1e-9 <= high)].sum() >= 0.945
        assert law @ counting.unbiased(supports) == pytest.approx(holders, abs=1e-6 * people_count)


@pytest.mark.parametrize("chance", [0.28, 0.5, 0.72])
def test_one_bit_means_are_covered_for_every_truth(chance):
    n = 500
    first, masses = _binomial(n, chance)
    ends = [_wilson(first + place, n, 0.95) for place in range(len(masses))]
    assert sum(mass for mass, (low, high) in zip(masses, ends, strict=True) if low <= chance <= high) >= 0.945


def test_a_part_of_the_people_speaks_for_all():
    client = local.Randomizer(attributes={"a": 3, "b": 4}, method="sample", epsilon=2)
    truth = people(3, 6000)
    covered = 0
    for _ in range(60):
        collector = local.Collector(client.survey)
        collector.add_all(client.reports({"a": truth, "b": truth}))
        found = collector.estimate()
        true = np.bincount(truth, minlength=3)
        covered += int(((found["a"].low <= true) & (true <= found["a"].high)).sum())
        assert found["b"].counting.people == 6000
        assert 2500 < found["b"].counting.reports < 3500
    # 60 times three intervals of 95 %: even if all three always miss together, 21 times have a chance below 1e-12
    assert covered >= 120


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(1, 1e6))
def test_consistent_counts_are_the_nearest_that_add_up(counts, total):
    found = norm_sub(np.array(counts), total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)
    # nearest: every positive one was moved by the same shift, and none would rise above 0 by it
    shifts = np.array(counts)[found > 0] - found[found > 0]
    assert np.ptp(shifts) <= 1e-6 * (1 + np.abs(counts).max())
    assert (np.array(counts)[found == 0] <= shifts.max() + 1e-6 * (1 + np.abs(counts).max())).all()


@pytest.mark.parametrize("protocol", ["response", "subset", "local-hashing"])
def test_no_fake_moves_a_count_beyond_the_stated_shift(protocol):
    client = local.Randomizer(10, epsilon=1, protocol=protocol)
    honest, fakes = client.reports(people(10, 900)), client.reports(np.full(100, 3))
    before, after = local.Collector(client.survey), local.Collector(client.survey)
    before.add_all(honest)
    after.add_all(honest)
    after.add_all(fakes)
    moved = after.estimate().counts - before.estimate().counts
    worst = after.estimate().poisoning(0.1)
    assert worst.down - 1e-9 <= moved.min() <= moved.max() <= worst.up + 1e-9


def test_a_mean_s_worst_shift_is_reached_by_the_largest_reports():
    client = local.Randomizer(between=(0, 10), epsilon=0.6)  # one bit
    collector = local.Collector(client.survey)
    collector.add_all(client.reports([0.0] * 900))
    alone = collector.estimate().mean
    payload = np.tile(np.frombuffer(b"\0\1\0\0\0", dtype=np.uint8), (100, 1))
    fakes = local.Reports(client.survey, client.reports([0.0] * 100).ids, payload)
    collector.add_all(fakes)
    found = collector.estimate()
    assert found.mean - alone <= found.poisoning(0.1).up + max(0.0, -alone)


def test_means_of_few_reports_have_wide_intervals_and_many_narrow_ones():
    client = local.Randomizer(between=(0, 100), epsilon=2)
    widths = []
    for count in (1, 50, 5000):
        collector = local.Collector(client.survey)
        collector.add_all(client.reports(np.full(count, 30.0)))
        found = collector.estimate()
        widths.append(found.high - found.low)
        assert found.low <= found.mean <= found.high
    assert widths[0] > widths[1] > widths[2]


def test_frequent_strings_are_found_and_rare_ones_are_not_made_up():
    client = local.Randomizer(alphabet="abcde", length=5, step=2, epsilon=4)
    words = ["abba", "deed", "ace", "b"]
    values = np.repeat(words, [12_000, 9_000, 6_000, 3_000])  # 8 deviations and more apart
    collector = local.Collector(client.survey)
    collector.add_all(client.reports(np.concatenate([values, ["cdcdc", "edcba"] * 20])))
    found = collector.estimate()
    assert found.strings[:4] == tuple(words)
    # a string that nobody has is shown once in a hundred times: five at once have a chance below 1e-11
    assert len(set(found.strings) - {*words, "cdcdc", "edcba"}) <= 4
    surely = collector.estimate(confidence=1 - FALSE_ALARM)
    assert surely.found.low[0] <= 12_000 <= surely.found.high[0]
    assert client.loss.epsilon == 4


def test_strings_that_nobody_shares_are_not_shown():
    client = local.Randomizer(alphabet="abcdefgh", length=6, epsilon=1)
    collector = local.Collector(client.survey)
    numbers = np.arange(500) * 40503 % 8**6  # all different, and so are their first digits
    strings = ["".join("abcdefgh"[number >> 3 * place & 7] for place in range(6)) for number in numbers.tolist()]
    collector.add_all(client.reports(strings))
    # a string that nobody has is shown once in a hundred times, and one that a single person has hardly more often
    assert len(collector.estimate().strings) <= 4


def test_levels_have_the_people_they_should_and_the_first_has_as_many_symbols_as_can_be_tried():
    """Shares of 200,000 people: each within 7 standard deviations, a false alarm in 10^11."""
    protocol = PrefixHashing(Fraction(1), 6, 26)
    assert protocol.ends == (2, 3, 4, 5, 6, 6)
    assert PrefixHashing(Fraction(1), 3, 2).ends == (3, 3)
    assert PrefixHashing(Fraction(1), 7, 250, 3).ends == (3, 6, 7, 7)
    drawn = np.bincount(protocol._draw_levels(200_000, Keystream()), minlength=6)
    for seen, share in zip(drawn.tolist(), [0.12] * 5 + [0.4], strict=True):
        assert abs(seen - 200_000 * share) < 7 * (200_000 * share * (1 - share)) ** 0.5


def test_a_string_that_nobody_has_is_shown_once_in_a_hundred_times_at_most():
    """By the law of its support: of 64 strings tried, none reaches the threshold with a chance of 99 %."""
    protocol = PrefixHashing(Fraction(1), 6, 26)
    for reports, tried in ((50, 64), (5_000, 64), (5_000, 1)):
        least = estimate._threshold(reports, tried, protocol)
        law = binom(reports, float(protocol.stray))
        assert tried * law.sf(least - 1) <= 0.01 < tried * law.sf(least - 2)


def test_an_estimate_prints_and_is_plain_values(tmp_path):
    client = local.Randomizer(["x", "y"], epsilon=1)
    collector = local.Collector(client.survey)
    collector.add_all(client.reports(["x"] * 800 + ["y"] * 200))
    found = collector.estimate()
    row = found.to_dict()["rows"][0]
    assert row["value"] == "x"
    assert row["count_low"] <= row["count"] <= row["count_high"]
    assert "800" not in str(found.basis.line()) or found.used == 1000
    assert "1,000 reports used, none rejected; ε = 1" in str(found)
    found.plot(str(tmp_path / "counts.png"))
    assert (tmp_path / "counts.png").read_bytes()[:4] == b"\x89PNG"


def test_counts_beyond_what_a_float_tells_from_the_total_have_consistent_ones():
    """Reports that say next to nothing give such counts, and none is above its shift."""
    assert (norm_sub(np.array([1e20, 1e19, -1e20]), 10.0) >= 0).all()
