"""Keeps the compiled SQL of recent relations, for a question that is asked again with another epsilon.

Building and compiling a relation takes some 15 ms, for any rows. The kept SQL depends only on questions and schemas. It
never contains a salt: a relation with a salt is built anew each time.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibis.expr.types as ir
import pyarrow as pa

from tacit.engine.relation import KEY_PLACE
from tacit.exact import listed_name
from tacit.plan import Plan
from tacit.tables import Source, keys_to_arrow

KEPT_MOST = 16

Make = Callable[[ir.Table | None], tuple[ir.Table, Any]]


@dataclass(frozen=True)
class Readable:
    """A relation, its SQL if that may be kept, and what `make` returned beside it."""

    relation: ir.Table  # it also holds the list of keys that the SQL names
    sql: str | None
    more: Any
    listed: object  # the public keys that it was made for


class PreparedRelations:
    """The relations of one source that were used last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: OrderedDict[str, Readable] = OrderedDict()

    def get(self, plan: Plan, purpose: str, make: Make) -> Readable:
        """Return the relation that `make` gives for this plan, given its public keys as a table."""
        shape = _shape(plan, purpose)
        found = self._kept.get(shape)
        if found is None or found.listed != plan.public_keys:
            found = self._made(plan, make)
        if found.sql is not None:
            self._kept[shape] = found
            self._kept.move_to_end(shape)
            if len(self._kept) > KEPT_MOST:
                self._kept.popitem(last=False)
        return found

    def _made(self, plan: Plan, make: Make) -> Readable:
        with self._source.with_table(listed_keys(plan)) as listed:
            relation, more = make(listed)
        return Readable(relation, self._source.compiled(relation), more, plan.public_keys)


def listed_keys(plan: Plan) -> pa.Table | None:
    """Return the public keys and their indexes as a table; None without public keys."""
    if not plan.keys or plan.public_keys is None:
        return None
    columns = {listed_name(at): key.type for at, key in enumerate(plan.keys)}
    return keys_to_arrow(plan.public_keys, columns, place=KEY_PLACE)


def _shape(plan: Plan, purpose: str) -> str:
    """Return a text that is equal for two plans if and only if their relations are, apart from the public keys.

    It is text because constants of two types, such as 1 and TRUE, are equal in Python but not in SQL.
    """
    keys = [(key.expression, key.type) for key in plan.keys]
    drawn = sorted({draw.column for draw in plan.quantiles})
    return repr((purpose, plan.unit, plan.where, keys, plan.measured, plan.products, drawn, plan.public_keys is None))
