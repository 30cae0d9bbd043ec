"""ROUND, FLOOR and CEIL of decimals of every width, at their extremes, are what Python's Decimal says."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest

from tacit.errors import QueryRefused
from tacit.query.nodes import INT_LEAST, INT_MOST, Call, Column, Value, decimal, kind_of_column
from tacit.query.typecheck import kind_of
from tacit.tables.schema import ColumnFacts
from tacit_gauntlet.stage.language import trial

EXACT = Context(prec=100)
WIDTHS = [(38, 0), (38, 2), (38, 18), (38, 19), (38, 37), (37, 1), (36, 35), (19, 0), (18, 4), (18, 17), (9, 9), (4, 1)]
ASKED = {"round": ROUND_HALF_UP, "floor": ROUND_FLOOR, "ceil": ROUND_CEILING}


def extremes(digits, scale):
    """Both ends, what lies around 0, halves and the ends of 64 bits, and next to each of these."""
    one, most = 10**scale, 10**digits - 1
    whole = [most, 0, one // 2, one, 3 * one // 2, INT_MOST * one, INT_MOST * one + one // 2, -INT_LEAST * one]
    near = {sign * (each + move) for each in whole for move in (-1, 0, 1) for sign in (-1, 1)}
    return [Decimal(each).scaleb(-scale, EXACT) for each in sorted(near) if abs(each) <= most]


def found(call, cells, digits, scale):
    rows = pa.table({"c": pa.array([*cells, None], pa.decimal128(digits, scale))})
    return trial({"d": call}, rows, {"c": decimal(digits, scale)})["d"]


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(("digits", "scale"), WIDTHS)
def test_the_whole_number_of_a_decimal_is_an_int_or_null(name, digits, scale):
    cells = extremes(digits, scale)
    whole = [int(cell.to_integral_value(ASKED[name], EXACT)) for cell in cells]
    wanted = [each if INT_LEAST <= each <= INT_MOST else None for each in whole]
    assert found(Call(name, (Column("c"),)), cells, digits, scale) == [*wanted, None]


@pytest.mark.parametrize("places", [-15, -1, 1, 2, 15])
@pytest.mark.parametrize(("digits", "scale"), WIDTHS)
def test_a_decimal_rounded_to_places_is_exact_or_refused_by_its_type(places, digits, scale):
    call, cells = Call("round", (Column("c"), Value(places, "int"))), extremes(digits, scale)
    try:
        kind_of(call, {"c": decimal(digits, scale)})
    except QueryRefused as refused:
        assert "can need" in str(refused)  # noqa: PT017 - by its type, and not by a row
        assert places < 0
        assert digits - scale - places > 34 or digits - places > 38 or scale - places > 37
        return
    wanted = [
        cell.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, EXACT) if places < scale else cell for cell in cells
    ]
    assert found(call, cells, digits, scale) == [*wanted, None]


def test_a_decimal_without_a_digit_before_its_point_is_refused_beforehand():
    with pytest.raises(QueryRefused, match="has a type that questions cannot use"):
        kind_of_column("c", ColumnFacts(type="decimal", digits=38, scale=38))
