"""`tacit.col("age") >= 18`: SQL text that grows by Python's operators, and is parsed and checked like any text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from tacit.errors import QueryRefused
from tacit.query.nodes import value_of
from tacit.query.sql.expressions import show, show_name

Constant: TypeAlias = "bool | int | float | str | Fraction | date | None"


def _infix(sign: str) -> "Callable[[Col, Col | Constant], Col]":
    """Return the operator of a sign between two expressions."""
    return lambda left, right: left._with(sign, right)


def _infix_after(sign: str) -> "Callable[[Col, Constant], Col]":
    """Return the same for a constant that comes first."""
    return lambda right, left: _read_column(left)._with(sign, right)


@dataclass(frozen=True, eq=False, repr=False)
class Col:
    """An expression of columns: compare it, compute with it, and give it to where, derive or an aggregate."""

    text: str
    name: str | None = None  # of a plain column
    binds: str = ""  # the operator that it is made of; empty if it does not need brackets

    def __repr__(self) -> str:
        return f"<expression {self.text}>"

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        raise QueryRefused(
            f"{self.text} is an expression, without a truth value\nhint: combine with & | ~, not with and, or, not"
        )

    def __hash__(self) -> int:
        return hash(self.text)

    # comparisons
    def __eq__(self, other: object) -> "Col":  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> "Col":  # type: ignore[override]
        return self._compared("<>", other)

    __lt__: ClassVar["Infix"] = _infix("<")
    __le__: ClassVar["Infix"] = _infix("<=")
    __gt__: ClassVar["Infix"] = _infix(">")
    __ge__: ClassVar["Infix"] = _infix(">=")

    # logic and arithmetic
    __and__: ClassVar["Infix"] = _infix("AND")
    __or__: ClassVar["Infix"] = _infix("OR")
    __add__: ClassVar["Infix"] = _infix("+")
    __radd__: ClassVar["InfixAfter"] = _infix_after("+")
    __sub__: ClassVar["Infix"] = _infix("-")
    __rsub__: ClassVar["InfixAfter"] = _infix_after("-")
    __mul__: ClassVar["Infix"] = _infix("*")
    __rmul__: ClassVar["InfixAfter"] = _infix_after("*")
    __truediv__: ClassVar["Infix"] = _infix("/")
    __rtruediv__: ClassVar["InfixAfter"] = _infix_after("/")
    __floordiv__: ClassVar["Infix"] = _infix("//")
    __mod__: ClassVar["Infix"] = _infix("%")

    def __invert__(self) -> "Col":
        return Col(f"NOT {_bracketed(self)}", binds="NOT")

    def __pow__(self, other: "Col | Constant") -> "Col":
        return self._called("POWER", other)

    def __neg__(self) -> "Col":
        return Col(f"-{_bracketed(self)}", binds="-")

    def __abs__(self) -> "Col":
        return self._called("ABS")

    # methods by their common names
    def isin(self, values: "Iterable[Constant]") -> "Col":
        """Return whether it is one of these constants."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise QueryRefused("isin takes a list of constants\nhint: tacit.col('ward').isin(['A', 'B'])")
        return Col(f"{_bracketed(self)} IN ({', '.join(_read_column(value).text for value in values)})", binds="IN")

    def between(self, low: "Col | Constant", high: "Col | Constant") -> "Col":
        """Return whether it is from low to high, both included."""
        return Col(
            f"{_bracketed(self)} BETWEEN {_bracketed(_read_column(low))} AND {_bracketed(_read_column(high))}",
            binds="IN",
        )

    def is_null(self) -> "Col":
        """Return whether it is NULL."""
        return Col(f"{_bracketed(self)} IS NULL", binds="IS")

    def not_null(self) -> "Col":
        """Return whether it has a value."""
        return Col(f"{_bracketed(self)} IS NOT NULL", binds="IS")

    def fill_null(self, other: "Col | Constant") -> "Col":
        """Return it, or another value if it is NULL."""
        return self._called("COALESCE", other)

    def like(self, pattern: str) -> "Col":
        """Return whether a text matches a pattern: % is any run of characters, _ any one."""
        return Col(f"{_bracketed(self)} LIKE {_read_column(pattern).text}", binds="IN")

    def lower(self) -> "Col":
        """Return a text in lower case."""
        return self._called("LOWER")

    def upper(self) -> "Col":
        """Return a text in upper case."""
        return self._called("UPPER")

    def round(self, places: int = 0) -> "Col":
        """Return a number rounded, halves away from 0."""
        return self._called("ROUND", places) if places else self._called("ROUND")

    def clip(self, low: "Constant", high: "Constant") -> "Col":
        """Return a number held between two others."""
        return self._called("GREATEST", low)._called("LEAST", high)

    def cast(self, type: str) -> "Col":
        """Return it as another type, such as "int" or "date"; NULL if it cannot be read so."""
        return Col(f"CAST({self.text} AS {type})")

    def part(self, name: str) -> "Col":
        """Return a part of a date or timestamp, such as "year" or "hour"."""
        return Col(f"EXTRACT({name} FROM {self.text})")

    def _compared(self, sign: str, other: object) -> "Col":
        if other is None:
            return self.is_null() if sign == "=" else self.not_null()
        return self._with(sign, other)

    def _with(self, sign: str, other: object) -> "Col":
        chains = sign in ("AND", "OR", "+", "*")
        left = self.text if chains and self.binds == sign else _bracketed(self)
        return Col(f"{left} {sign} {_bracketed(_read_column(other))}", binds=sign)

    def _called(self, name: str, *others: object) -> "Col":
        return Col(f"{name}({', '.join([self.text, *(_read_column(other).text for other in others)])})")


Infix = Callable[[Col, "Col | Constant"], Col]
InfixAfter = Callable[[Col, Constant], Col]


def col(name: str) -> Col:
    """Return a column of the table, or a derived one, to compute and compare with: tacit.col("age") >= 18."""
    if not isinstance(name, str) or not name:
        raise QueryRefused("col takes the name of a column\nhint: tacit.col('age') >= 18")
    return Col(show_name(name), name)


def written(given: Any) -> Any:
    """Return an expression as the text that it stands for, a bare column as its name; anything else as it is."""
    if not isinstance(given, Col):
        return given
    return given.text if given.name is None else given.name


def _read_column(given: object) -> Col:
    if isinstance(given, Col):
        return given
    return Col(show(value_of(given)))


def _bracketed(column: Col) -> str:
    return f"({column.text})" if column.binds or column.text.startswith("-") else column.text
