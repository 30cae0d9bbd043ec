"""A number means what the person wrote, exactly; whatever is no number is refused by name (S06)."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidParameter, TacitError
from tacit.numbers import (
    binary_meaning,
    decimal_meaning,
    from_text,
    positive,
    read_json,
    show,
    to_text,
    whole,
)

NOT_NUMBERS = [True, False, None, [], {}, 1j, b"1", object(), np.bool_(True), np.array([1.0])]
NOT_TEXT_NUMBERS = ["", " ", "one", "1,5", "0x10", "1/0", "1/2/3", "--1", "1e", "/2"]
NOT_FINITE = [float("nan"), float("inf"), float("-inf"), "nan", "inf", "-Infinity", Decimal("NaN"), Decimal("Infinity")]
TOO_LONG = ["1e999999999", "1e-999999999", Decimal("1e99999"), "9" * 6000, "1/1e999999999"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float64(1e-6), Fraction(1, 10**6)),
        (1e-6, Fraction(1, 10**6)),
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        ("0.30", Fraction(3, 10)),
        ("1/3", Fraction(1, 3)),
        ("-2/6", Fraction(-1, 3)),
        ("+.5", Fraction(1, 2)),
        ("5.E-1", Fraction(1, 2)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (-0.5, Fraction(-1, 2)),
    ],
)
def test_a_float_means_its_shortest_decimal(written: object, meant: Fraction) -> None:
    assert decimal_meaning(written, name="epsilon") == meant  # type: ignore[arg-type]


def test_a_scale_or_measurement_is_its_exact_binary_value() -> None:
    assert binary_meaning(0.1, name="scale") == Fraction(3602879701896397, 2**55)
    assert binary_meaning("0.1", name="scale") == Fraction(1, 10)
    assert binary_meaning(np.float32(0.1), name="scale") == Fraction(float(np.float32(0.1)))


@pytest.mark.parametrize("read", [decimal_meaning, binary_meaning])
@pytest.mark.parametrize("value", NOT_NUMBERS + NOT_TEXT_NUMBERS + NOT_FINITE + TOO_LONG, ids=lambda v: repr(v)[:20])
def test_S06_what_is_no_finite_number_is_refused_by_the_name_of_its_argument(read: object, value: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon") as caught:
        read(value, name="epsilon")  # type: ignore[operator]
    assert isinstance(caught.value, TacitError)
    assert len(str(caught.value)) < 300  # a refusal does not repeat a page of digits


@pytest.mark.parametrize("value", [0, -1, Fraction(-1, 10**9)])
def test_positive_means_above_zero(value: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="sigma must be above 0"):
        positive(Fraction(value), name="sigma")


@pytest.mark.parametrize("value", [0, -3, 1.0, "1", True, None, Fraction(1, 2)])
def test_a_whole_number_is_an_int_of_at_least_its_least(value: object) -> None:
    with pytest.raises(InvalidParameter, match="k must be a whole number of at least 1"):
        whole(value, name="k")


@given(st.fractions())
def test_exact_text_reads_back(value: Fraction) -> None:
    assert from_text(to_text(value)) == value


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_what_is_shown_is_never_less_and_at_most_one_part_in_100000_more(value: Fraction) -> None:
    shown = Fraction(show(value))
    assert value <= shown <= value * (1 + Fraction(1, 10**5))


# ---- text from outside ---------------------------------------------------------------------------------------------


@given(st.integers(-(10**9000), 10**9000), st.integers(1, 10**9000))
def test_exact_text_of_any_length_of_ours_is_read_back(top, bottom):
    assert from_text(to_text(Fraction(top, bottom))) == Fraction(top, bottom)


@pytest.mark.parametrize(
    "text",
    [
        "1e99999999",
        "1e5",
        "0.5",
        "9" * 40_000,
        "1/" + "9" * 40_000,
        "1/0",
        "1/-3",
        "",
        "nan",
        " 1",
        "1_0",
        "١",
        3,
        None,
    ],
)
def test_what_we_did_not_write_is_refused_before_it_is_read(text):
    with pytest.raises(InvalidParameter, match="p/q"):
        from_text(text)


@pytest.mark.parametrize("text", ["1e99999999", "1e-99999999", "9" * 10**6, "1/1e99999999", Decimal("1e99999999")])
def test_a_short_text_cannot_name_a_number_that_fills_the_memory(text):
    for meaning in (decimal_meaning, binary_meaning):
        with pytest.raises(InvalidParameter, match="digits"):
            meaning(text, name="epsilon")


@pytest.mark.parametrize("text", ["[" * 10**5, "9" * 10**5, "NaN", '{"a":-Infinity}', "{", b"\xff"])
def test_json_of_others_is_refused_as_a_value_error(text):
    with pytest.raises(ValueError):
        read_json(text)


@given(st.fractions(), st.integers(0, 6000))
def test_any_rational_is_shown_whatever_its_length(value, power):
    assert show(value * 10**power)
    assert show(value / 10**power)
