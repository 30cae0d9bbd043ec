"""LEAST, GREATEST, ABS, ROUND, FLOOR and CEIL on an engine.

Engines disagree about halves, and their own rounding of a float is not always of the number that it is. Floats are
rounded by floor alone; decimals by their own floor and ceiling, or by the cast that all engines round away from 0.
"""

from collections.abc import Callable
from functools import cache

import ibis
import ibis.expr.types as ir

from tacit.engine.conversion import Cell, settle_int, type_name, widen
from tacit.engine.made import Made, Translation
from tacit.engine.product import product
from tacit.query.kind import decimal

# The float just below 1/2: floor(x + this) rounds halves up for every float x >= 0, while x + 1/2 is inexact below 1/2
# and from 2^52 on.
_BELOW_HALF = "0.49999999999999994"
_WHOLE_FROM = "9007199254740992"  # from 2^53 on a float has no places to round


@ibis.udf.scalar.builtin(name="floor")  # type: ignore[untyped-decorator]
def floor_of(number: float) -> float:
    """Return the engine's own, as a float; Ibis would cast it to an int, and raise where it does not fit."""
    raise NotImplementedError


@ibis.udf.scalar.builtin(name="ceil")  # type: ignore[untyped-decorator]
def ceil_of(number: float) -> float:
    """Return the engine's own, as a float."""
    raise NotImplementedError


def _magnitude(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(_wide(cell).abs()) if made.kind.type == "int" else cell.value.abs()


def _floor(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(floor_of(cell.value) if cell.kind.type == "float" else _toward(cell, "floor"))


def _ceil(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(ceil_of(cell.value) if cell.kind.type == "float" else _toward(cell, "ceil"))


def _round(made: Made) -> ir.Value:
    cell = made.cells[0]
    places = made.number(1) if len(made.cells) == 2 else 0
    if cell.kind.type == "float":
        return _round_float(cell.value, places) if places else settle_int(_whole(cell.value))
    if places < 0:
        rounded = _round_left_of_point(cell, -places)
        return settle_int(rounded) if made.kind.type == "int" else rounded.cast(type_name(made.kind))
    if places:
        return cell.value.cast(type_name(made.kind))
    return settle_int(_nearest(cell))


def _whole(value: ir.Value) -> ir.Value:
    """The nearest whole number as a float, halves away from 0; NaN and ±Inf stay."""
    return value.sign() * floor_of(value.abs() + _float(_BELOW_HALF))


def _round_float(value: ir.Value, places: int) -> ir.Value:
    power = _float(f"1e{abs(places)}")
    scaled = value * power if places > 0 else value / power
    back = _whole(scaled) / power if places > 0 else _whole(scaled) * power
    # NaN is not below anything, so it stays
    return ibis.cases((scaled.abs() < _float(_WHOLE_FROM), back), else_=value)


def _toward(cell: Cell, name: str) -> ir.Value:
    """A decimal's floor or ceiling by the engine's own, which is exact and has digits enough for every decimal."""
    return _engine_own(name, type_name(cell.kind))(cell.value) if cell.kind.scale else cell.value


@cache
def _engine_own(name: str, kind: str) -> Callable[[ir.Value], ir.Value]:
    """Return the engine's function of one decimal, the same object for the same type."""
    found: Callable[[ir.Value], ir.Value] = ibis.udf.scalar.builtin(
        lambda number: number, name=name, signature=((kind,), kind)
    )
    return found


def _nearest(cell: Cell) -> ir.Value:
    """A decimal's nearest whole number, halves away from 0, as a decimal without places."""
    kind = cell.kind
    return cell.value.cast(type_name(decimal(kind.digits - kind.scale + 1, 0))) if kind.scale else cell.value


def _round_left_of_point(cell: Cell, zeros: int) -> ir.Value:
    """An exact number rounded to tens, hundreds and so on: moved right, rounded, moved back."""
    kind = cell.kind if cell.kind.type == "decimal" else decimal(19, 0)
    right = ibis.literal("0." + "0" * (zeros - 1) + "1").cast(type_name(decimal(zeros, zeros)))
    left = ibis.literal("1" + "0" * zeros).cast(type_name(decimal(zeros + 1, 0)))
    moved = product(widen(cell, kind), right)
    return product(moved.cast(type_name(decimal(kind.digits - kind.scale + 1, 0))), left)


def _wide(cell: Cell) -> ir.Value:
    return cell.value.cast("decimal(19, 0)")


def _float(written: str) -> ir.Value:
    return ibis.literal(written).cast("float64")


NUMBERS: dict[str, Translation] = {
    "least": lambda made: ibis.least(*made.values(made.kind)),
    "greatest": lambda made: ibis.greatest(*made.values(made.kind)),
    "abs": _magnitude,
    "round": _round,
    "floor": _floor,
    "ceil": _ceil,
}
