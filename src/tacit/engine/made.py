"""A call on its way to an engine: its arguments translated, its result's kind known."""

from collections.abc import Callable
from dataclasses import dataclass

import ibis.expr.types as ir

from tacit.engine.conversion import Cell, widen
from tacit.errors import QueryRefused
from tacit.query.kind import Kind, common
from tacit.query.nodes import Call, Scalar, Value


@dataclass(frozen=True)
class Made:
    """A call whose arguments are translated, and the kind its result must have."""

    call: Call
    cells: tuple[Cell, ...]
    kind: Kind

    def values(self, kind: Kind | None = None) -> list[ir.Value]:
        """Return the arguments, all widened to one kind."""
        shared = self.shared() if kind is None else kind
        return [widen(cell, shared) for cell in self.cells]

    def shared(self) -> Kind:
        """Return the kind that all arguments widen to."""
        result = Kind("null")
        for cell in self.cells:
            result = common(result, cell.kind, where="a call")
        return result

    def constant(self, place: int) -> Scalar:
        """Return the constant that the call was checked to have at this place."""
        argument = self.call.arguments[place]
        if not isinstance(argument, Value):
            raise QueryRefused("an argument that must be a constant is none\nhint: write the value itself")
        return argument.value

    def number(self, place: int) -> int:
        """Return the whole constant that the call was checked to have at this place."""
        value = self.constant(place)
        if not isinstance(value, int):
            raise QueryRefused("an argument that must be a whole constant is none\nhint: write the number itself")
        return value


Translation = Callable[[Made], ir.Value]
