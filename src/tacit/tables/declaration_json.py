"""A table's declaration as JSON, and back, for a client that builds questions without rows.

All of it is public. Unlike the ledger's record, it has every type and key unchanged, so that a question is read and
refused on the client as on the server.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter
from tacit.json_wire import scalar_from, scalar_record
from tacit.privacy import from_text, to_text
from tacit.tables.schema import COLUMN_TYPES, ROW, ColumnFacts, Declaration

_NUMBERS = ("rows_per_unit", "groups_per_unit", "population", "version", "rows", "most_rows_per_unit")


def declaration_record(declaration: Declaration) -> dict[str, Any]:
    """Return a declaration as JSON values."""
    return {
        "name": declaration.name,
        "unit": declaration.unit_column,
        "neighbours": declaration.neighbours,
        **{name: getattr(declaration, name) for name in _NUMBERS},
        "columns": {name: _facts(facts) for name, facts in declaration.columns.items()},
    }


def declaration_from(record: Mapping[str, Any]) -> Declaration:
    """Return the declaration that `declaration_record` wrote."""
    try:
        return Declaration(
            name=record["name"],
            unit=ROW if record["unit"] is None else record["unit"],
            columns={name: _facts_from(each) for name, each in record["columns"].items()},
            neighbours=record["neighbours"],
            **{name: record[name] for name in _NUMBERS},
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidParameter(
            "this must be the declaration of a table, and is not\nhint: update tacit on one of the two ends"
        ) from None


def _facts(facts: ColumnFacts) -> dict[str, Any]:
    return {
        "type": facts.type,
        "between": None if facts.between is None else [to_text(end) for end in facts.between],
        "step": None if facts.step is None else to_text(facts.step),
        "keys": None if facts.keys is None else [scalar_record(key) for key in facts.keys],
        "scale": facts.scale,
        "digits": facts.digits,
    }


def _facts_from(record: Mapping[str, Any]) -> ColumnFacts:
    kind = record["type"]
    ends = record["between"]
    return ColumnFacts(
        type=next((each for each in COLUMN_TYPES if each == kind), "other"),
        between=None if ends is None else (from_text(ends[0]), from_text(ends[1])),
        step=None if record["step"] is None else Fraction(from_text(record["step"])),
        keys=None if record["keys"] is None else tuple(scalar_from(key) for key in record["keys"]),
        scale=record["scale"],
        digits=record["digits"],
    )
