"""A whole table's floors at once are the floors one by one, bit for bit, and a doubt is never decided by a guess."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from tacit.noise import laplace
from tacit.noise.laplace import DigitTables, _digit_table, certain_grid, laplace_tables, progression_floors
from tacit.noise.threshold import ThresholdTable
from tests.noise import oracle

ONE = 1 << 128
GUARD = 1 << 64

fresh_tables = laplace_tables.__wrapped__  # never a table that another test has built
small_scales = st.fractions(min_value=Fraction(1, 10**6), max_value=64, max_denominator=10**6)
wide_scales = st.one_of(
    st.fractions(min_value=65, max_value=2**56, max_denominator=10**9),
    st.fractions(min_value=65, max_value=2**24, max_denominator=10**4),
    st.integers(65, 2**56).map(Fraction),
    st.integers(7, 56).map(lambda size: Fraction(1 << size)),
)
widths = st.sampled_from([2, 4, 11, 63, 64])


def parts_of(tables: ThresholdTable | DigitTables) -> list[ThresholdTable]:
    return [tables] if isinstance(tables, ThresholdTable) else [tables.top, *tables.digits]


def thresholds_of(tables: ThresholdTable | DigitTables) -> list[tuple[int, list[int]]]:
    return [(table.first, table.thresholds) for table in parts_of(tables)]


def one_by_one(scale: Fraction, width: int) -> list[tuple[int, list[int]]]:
    """The same tables, as if every one at once had been in doubt."""
    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(laplace, "progression_floors", lambda *_, **__: None)
        return thresholds_of(fresh_tables(scale, width))


@settings(max_examples=40)
@given(st.one_of(small_scales, wide_scales), widths)
@example(Fraction(1638400), 64)
@example(Fraction(1638400, 3), 64)
@example(Fraction(1, 10**6), 64)
@example(Fraction(64), 64)
@example(Fraction(129, 2), 64)
@example(Fraction(2**56), 64)
@example(Fraction(2**56) - Fraction(1, 7), 64)
def test_tables_at_once_are_the_tables_one_by_one(scale, width):
    assert thresholds_of(fresh_tables(scale, width)) == one_by_one(scale, width)


@pytest.mark.parametrize("scale", [Fraction(1638400), Fraction(10**15, 7)], ids=str)
def test_whole_tables_of_wide_scales_are_the_floors_of_an_independent_oracle(scale):
    tables = fresh_tables(scale, 64)
    cdfs, place = [oracle.top_cdf(scale, 1 << tables.low_bits)], 1
    for size in tables.digit_bits:
        with mp.workdps(oracle.DIGITS):
            q, end = mp.exp(-oracle.exact(place / scale)), mp.expm1(-oracle.exact((place << size) / scale))
        cdfs.append(lambda d, q=q, end=end: (q ** (d + 1) - 1) / end)
        place <<= size
    for table, cdf in zip(parts_of(tables), cdfs, strict=True):
        assert table.thresholds == oracle.floors(cdf, range(len(table.thresholds)), 64)


@pytest.mark.parametrize("scale", [1, Fraction(7, 3), 64, 65, 1000, 1638400, 2**40, Fraction(10**16, 9)], ids=str)
def test_tables_of_usual_scales_are_made_at_once(monkeypatch, scale):
    """Else the comparisons above would compare one way with itself."""

    def refuse(*_, **__):
        raise AssertionError("a table was made one by one")

    monkeypatch.setattr(laplace, "floors_one_by_one", refuse)
    assert all(table.thresholds for table in parts_of(fresh_tables(Fraction(scale), 64)))


def digits_beside_integers() -> ThresholdTable:
    """Digits so nearly uniform that every F(d)·2^64 is within 2^-69 above an integer."""
    return _digit_table(Fraction(2**136), 1, 32, 64)


def floors_beside_integers() -> list[int]:
    return oracle.floors(oracle.digit_cdf(Fraction(2**136), 1, 32), range(31), 64)


def test_floors_beside_integers_are_certain():
    assert digits_beside_integers().thresholds == floors_beside_integers()


def test_a_mutant_without_the_error_bound_has_wrong_floors(monkeypatch):
    """The mutant: every floor of a number that is low is taken for the floor of the number."""
    monkeypatch.setattr(laplace, "certain_grid", lambda **given: certain_grid(**{**given, "missing": 0}))
    assert digits_beside_integers().thresholds != floors_beside_integers()


def test_a_mutant_that_rounds_to_the_nearest_has_wrong_floors(monkeypatch):
    """The mutant: half of a threshold is added before its digits are cut."""
    scale, half = Fraction(1000), ONE >> 65
    floors = oracle.floors(oracle.digit_cdf(scale, 1, 16), range(15), 64)
    assert _digit_table(scale, 1, 16, 64).thresholds == floors

    def nearest(**given):
        return certain_grid(**{**given, "offsets": [offset + half for offset in given["offsets"]]})

    monkeypatch.setattr(laplace, "certain_grid", nearest)
    assert _digit_table(scale, 1, 16, 64).thresholds != floors


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1, 50), Fraction(2**56)], ids=str)
def test_what_is_in_doubt_at_once_is_made_one_by_one(monkeypatch, scale):
    asked, one_by_one = [], laplace.floors_one_by_one

    def count(cdf, values, *, width):
        asked.append(width)
        return one_by_one(cdf, values, width=width)

    monkeypatch.setattr(laplace, "floors_one_by_one", count)
    fresh_tables(scale, 64)
    assert 1 <= len(asked) < 7


unit = st.integers(0, ONE - 1)
lacks = st.integers(0, 40)


@given(unit, unit, unit, lacks, lacks, lacks, st.integers(0, 40))
def test_a_grid_has_the_floor_of_every_number_its_integers_may_stand_for(top, w, v, u_lacks, w_lacks, v_lacks, beyond):
    """True numbers are rationals beside an integer of 64 bits; what is handed over is lower by what is said."""
    w, v = max(w, w_lacks), max(v, v_lacks)
    aim = (top >> 64 << 64) + beyond - 20  # in units of 2^-128, on either side of a floor
    exact_u = max(Fraction(aim) - Fraction(w * v, ONE), Fraction(u_lacks))
    true = exact_u + Fraction(w * v, ONE)
    if true >= ONE:
        return
    parts = {"offsets": [int(exact_u) - u_lacks], "factors": [w - w_lacks], "parts": [v - v_lacks]}
    found = certain_grid(**parts, missing=u_lacks + w_lacks + v_lacks + 1)
    if found is not None:
        assert int(found[0]) == true // GUARD


@pytest.mark.parametrize("missing", [1, 2, 300])
def test_a_grid_doubts_exactly_what_its_error_could_change(missing):
    last_certain = (5 * GUARD) + GUARD - 1 - missing
    given = {"factors": [0], "parts": [0], "missing": missing}
    assert certain_grid(offsets=[last_certain], **given).tolist() == [5]
    assert certain_grid(offsets=[last_certain + 1], **given) is None


def test_one_doubt_anywhere_leaves_no_grid():
    offsets, parts = [7 * GUARD, 9 * GUARD], [0, GUARD, 3 * GUARD - 1]
    assert certain_grid(offsets=offsets, factors=[ONE, 0], parts=parts[:2], missing=2).tolist() == [7, 8, 9, 9]
    assert certain_grid(offsets=offsets, factors=[ONE, 0], parts=parts, missing=2) is None


shares = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


@given(shares, shares, shares, st.integers(1, 30))
def test_affine_steps_are_low_by_no_more_than_said(ratio, first, end, count):
    """From `first` towards `end`, both at most 1, by this ratio at each step."""
    floors = [int(value * ONE) for value in (first, ratio, (1 - ratio) * end)]
    for k, below in enumerate(laplace._affine(*floors, count)):
        assert below <= (end + ratio**k * (first - end)) * ONE <= below + 3 * k + 1


@settings(max_examples=20)
@given(wide_scales, st.integers(1, 11), st.integers(0, 40))
def test_what_u_and_w_and_v_lack_together_is_no_more_than_is_handed_over(scale, size, place):
    exponent, base = Fraction(1 << place) / scale, 1 << size
    seen = {}

    def end() -> arb:
        return -1 / laplace.ball(-base * exponent).expm1()

    with pytest.MonkeyPatch.context() as planted:
        planted.setattr(laplace, "certain_grid", lambda **given: seen.update(given))
        progression_floors(exponent, starts=[lambda: arb(0)], limit=end, count=base)
    if not seen:
        return  # a constant was in doubt
    columns = len(seen["parts"])
    with mp.workdps(oracle.DIGITS):
        r = mp.exp(-oracle.exact(exponent))
        all_of = -mp.expm1(-oracle.exact(base * exponent))
        u = [(1 - r ** (columns * a)) / all_of * mpf(ONE) - n for a, n in enumerate(seen["offsets"])]
        w = [r ** (columns * a) * mpf(ONE) - n for a, n in enumerate(seen["factors"])]
        v = [(1 - r**b) / all_of * mpf(ONE) - n for b, n in enumerate(seen["parts"])]
        assert min(*u, *w, *v) > mpf(-(10**-30))
        assert max(u) + max(w) + max(v) <= seen["missing"]


def test_several_starts_are_listed_in_turn():
    found = progression_floors(
        Fraction(1, 3), starts=[lambda: arb(1) / 5, lambda: arb(1) / 7], limit=lambda: arb(1), count=3
    )
    with mp.workdps(50):
        r = mp.exp(-mpf(1) / 3)
        expected = [
            int(mp.floor((1 - r**k * (1 - start)) * 2**64)) for k in range(3) for start in (mpf(1) / 5, mpf(1) / 7)
        ]
    assert found.tolist() == expected
    assert found.dtype == np.uint64
