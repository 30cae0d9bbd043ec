"""Every protocol: its law is exact and private, its supports are what it says, and shards add up in any order."""

from fractions import Fraction
from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local.choosing import FREQUENCIES, frequency_protocol
from tacit.local.protocols.hashing import LocalHashing, cell_edges, cells_of, shared_cell
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.protocol import Response
from tacit.local.protocols.subset import draw_sets, share_table, sizes_of
from tacit.local.protocols.unary import Permanent, count_columns
from tacit.local.survey import Attributes
from tacit.noise.bits import Keystream
from tacit.numbers import ball, certainly_less
from tacit_gauntlet.stage.local import exact_laws
from tacit_gauntlet.stage.local_laws import law_of

EPSILONS = st.fractions(Fraction(1, 50), 8, max_denominator=100)
NAMES = [*FREQUENCIES, "longitudinal"]


def make(name: str, size: int, epsilon: Fraction = Fraction(1)):
    return Permanent(size, 2 * epsilon, epsilon) if name == "longitudinal" else frequency_protocol(name, size, epsilon)


def loss_within(one, other, epsilon) -> bool:
    assert set(one) == set(other)
    worst = max(one[output] / other[output] for output in one)
    return certainly_less(lambda: ball(worst).log(), lambda: ball(epsilon))


@settings(max_examples=5)
@given(epsilon=st.fractions(Fraction(1, 50), 3, max_denominator=100))
def test_no_output_is_more_than_e_to_the_epsilon_times_as_likely_for_another_answer(epsilon):
    for name, promised, laws in exact_laws(epsilon):
        assert all(sum(law.values()) == 1 for law in laws), name
        assert all(loss_within(one, other, promised) for one, other in permutations(laws, 2)), name


@settings(max_examples=10)
@given(epsilon=EPSILONS, size=st.integers(2, 6))
@pytest.mark.parametrize("name", NAMES)
def test_keep_and_stray_are_the_law_s_own_chances_of_support(name, epsilon, size):
    protocol = make(name, size, epsilon)
    if name == "local-hashing":
        return  # its law is given for one hash; over all hashes see below
    for code in range(size):
        law = law_of(protocol, code)
        payloads = np.frombuffer(b"".join(law), dtype=np.uint8).reshape(len(law), -1)
        for other in range(size):
            supported = protocol.supporting(payloads, np.array([other]))[:, 0]
            chance = sum((p for p, flag in zip(law.values(), supported, strict=True) if flag), Fraction(0))
            assert chance == (protocol.keep if other == code else protocol.stray)


def test_two_codes_share_a_cell_as_often_as_two_independent_hashes_do():
    # small words stand for large ones: (a·x + b mod 2^8) >> 4 for x < 16, over every a and b
    a, b = np.divmod(np.arange(1 << 16), 1 << 8)
    for x, y in ((0, 1), (3, 9), (7, 15), (2, 4)):
        pairs = ((a * x + b) % 256 >> 4) * 16 + ((a * y + b) % 256 >> 4)
        assert set(np.bincount(pairs, minlength=256).tolist()) == {256}
    for cells in (2, 3, 4, 7, 21):
        starts, lengths = cell_edges(cells)
        assert sum(int(length) for length in lengths) == 2**64
        assert shared_cell(cells) == sum(Fraction(int(length), 2**64) ** 2 for length in lengths)
        edges = np.concatenate([starts, starts + (lengths - np.uint64(1))])
        assert cells_of(edges, cells).tolist() == [*range(cells), *range(cells)]


@settings(max_examples=25)
@given(rows=st.integers(1, 700), width=st.integers(1, 9))
def test_columns_of_packed_bits_add_up(rows, width):
    words = Keystream().words(rows * width).reshape(rows, width)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8).reshape(rows, -1), axis=1, bitorder="little")
    assert (count_columns(words) == bits.sum(axis=0)).all()


def test_wide_rows_are_added_in_parts():
    words = Keystream().words(3 * 600).reshape(3, 600)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8).reshape(3, -1), axis=1, bitorder="little")
    assert (count_columns(words) == bits.sum(axis=0)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 5, 64, 65, 130])
def test_counters_of_shards_add_up_to_what_each_report_supports(name, size):
    protocol = make(name, size)
    payloads = protocol.draw(np.arange(501) % size, Keystream())
    assert protocol.valid(payloads).all()
    assert payloads.shape == (501, protocol.payload_bytes)
    parts = [protocol.tally(payloads[part]) for part in (slice(300, 501), slice(0, 7), slice(7, 300))]
    merged = protocol.merge(parts[0], protocol.merge(parts[1], parts[2]))
    assert (merged == protocol.tally(payloads)).all()
    assert (protocol.supports(merged) == protocol.supporting(payloads, np.arange(size)).sum(axis=0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_payloads_that_no_client_makes_are_not_valid(name):
    protocol = make(name, 5)
    payload = np.full((1, protocol.payload_bytes), 255, dtype=np.uint8)
    assert not protocol.valid(payload).any()
    assert protocol.draw(np.empty(0, dtype=np.int64), Keystream()).shape == (0, protocol.payload_bytes)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_a_mean_s_expectation_and_variance_are_the_law_s(epsilon):
    protocol = MeanResponse(epsilon, grid_bits=3)
    dtype = np.dtype([("piecewise", "u1"), ("cell", "<u4")])
    ends = protocol.cell_line, protocol.bit_line
    for code in range(9):
        law = law_of(protocol, code)
        records = np.frombuffer(b"".join(law), dtype=dtype)
        lines = np.where(records["piecewise"][:, None] == 1, *(np.array(line, float) for line in ends))
        values = (records["cell"] - lines[:, 1]) / lines[:, 0]  # each report's own unbiased estimate
        chances = np.array([float(chance) for chance in law.values()])
        assert chances @ values == pytest.approx(code / 8)
        assert chances @ values**2 - (code / 8) ** 2 == pytest.approx(protocol.variance(Fraction(code, 8)))
        assert protocol.extremes() == pytest.approx((values.min(), values.max()))


def test_a_mean_s_sums_do_not_overflow():
    protocol = MeanResponse(Fraction(62, 100))
    largest = protocol.steps + protocol.window - 1
    payloads = np.zeros((1 << 19, 5), dtype=np.uint8)
    payloads[:, 0] = 1
    payloads[:, 1:] = np.frombuffer(largest.to_bytes(4, "little"), dtype=np.uint8)
    assert protocol.tally(payloads).tolist() == [0, 0, 1 << 19, largest << 19, largest**2 << 19]


def test_hiding_which_attribute_was_sampled_allows_no_larger_epsilon():
    """The published amplification by sampling breaks its promise for two answers that both change."""
    larger = Fraction(149, 100)  # below ln(2(e - 1) + 1), the published one for two attributes at epsilon 1
    amplified = Attributes(Fraction(1), "sample", (Response(2, larger), Response(2, larger)))
    assert not loss_within(law_of(amplified, (0, 0)), law_of(amplified, (1, 1)), Fraction(1))
    ours = Attributes(Fraction(1), "sample", (Response(2, Fraction(1)), Response(2, Fraction(1))))
    assert all(
        loss_within(law_of(ours, x), law_of(ours, y), Fraction(1))
        for x, y in permutations(product((0, 1), repeat=2), 2)
    )


def test_optimal_numbers_of_cells_and_members_are_near_the_textbook_s():
    assert LocalHashing(100, Fraction(1)).cells == 4
    assert frequency_protocol("subset", 100, Fraction(1)).members == 27


@pytest.mark.parametrize("size", [3, 5, 64, 66, 70, 128, 130])
def test_every_place_and_every_pair_is_in_a_set_equally_often(size):
    wanted = np.array([2, 3] * 20_000)
    words = draw_sets(size, wanted, Keystream())
    assert (sizes_of(words) == wanted).all()
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, size:].any()
    # 100,000 members over the places: 6 deviations, for at most 130 places, are below 1e-6
    expected = wanted.sum() / size
    assert np.abs(bits.sum(axis=0)[:size] - expected).max() <= 6 * expected**0.5
    both = np.count_nonzero(bits[:, 0] & bits[:, size - 1])
    chance = sum(w * (w - 1) / size / (size - 1) * 20_000 for w in (2, 3))
    assert abs(both - chance) <= 6 * chance**0.5 + 6


@settings(max_examples=20)
@given(left=st.integers(1, 64), right=st.integers(1, 64), data=st.data())
def test_two_words_share_a_number_by_its_exact_law(left, right, data):
    members = data.draw(st.integers(0, left + right))
    table = share_table(left, right, members)
    total = comb(left + right, members)
    seen = Fraction(0)
    for place, threshold in zip(range(table.first, table.first + len(table.thresholds)), table.thresholds, strict=True):
        seen += Fraction(comb(left, place) * comb(right, members - place), total)
        assert threshold == seen * 2**64 // 1
    assert table.last == min(left, members)
