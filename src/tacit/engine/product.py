"""The product of two decimals with the digits both need: Ibis gives it too few, and refuses scales that differ."""

import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.rules as rlz
import ibis.expr.types as ir
from ibis.common.annotations import attribute

from tacit.query.kind import DIGITS_MAX

_WIDE = 19


class Multiply(ops.Value):  # type: ignore[misc]  # Ibis has no types; compilers find an operation by its class's name
    """left * right, both decimals."""

    left: ops.Value
    right: ops.Value
    shape = rlz.shape_like("args")

    @attribute  # type: ignore[untyped-decorator]
    def dtype(self) -> dt.Decimal:
        """Return decimal(sum of digits, sum of scales); the question's check has seen that it fits."""
        left, right = self.left.dtype, self.right.dtype
        return dt.Decimal(min(left.precision + right.precision, DIGITS_MAX), left.scale + right.scale)


def product(left: ir.Value, right: ir.Value) -> ir.Value:
    """Return the exact product of two decimals.

    DuckDB keeps a product of narrow decimals in 18 digits and raises where it does not fit, so one of them is made
    wide first.
    """
    digits, scale = left.type().precision, left.type().scale
    wide = left.cast(f"decimal({max(digits, _WIDE)}, {scale})")
    exact = dt.Decimal(digits + right.type().precision, scale + right.type().scale)
    return Multiply(wide, right).to_expr().cast(exact)
