"""The public declaration of a table: the unit that is protected, and each column's type, range, step and keys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Literal

from tacit.errors import InvalidParameter
from tacit.json_wire import scalar_from, scalar_record
from tacit.numbers import decimal_meaning, from_text, is_long, positive, to_text, whole

ColumnType = Literal["bool", "int", "float", "decimal", "text", "date", "timestamp", "other"]
COLUMN_TYPES: tuple[ColumnType, ...] = ("bool", "int", "float", "decimal", "text", "date", "timestamp")
Neighbours = Literal["add-remove", "replace"]
KeyValue = None | bool | int | float | Fraction | str | date | datetime
FACTS = ("between", "step", "keys", "type")
# Instead of a number or a range: it is learned when a question needs it, as if it were left out.
AUTO = "auto"


class RowUnit:
    """`tacit.ROW`: every row is its own unit."""

    def __repr__(self) -> str:
        return "tacit.ROW"


ROW = RowUnit()

NUMBERS = ("rows_per_unit", "groups_per_unit", "population", "version")
NUMBERS_LATER = ("rows", "most_rows_per_unit")  # in the ledger's record only if they are given


@dataclass(frozen=True)
class ColumnFacts:
    """The public facts of one column."""

    type: ColumnType
    between: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    keys: tuple[KeyValue, ...] | None = None
    scale: int = 0  # a decimal column's digits after the point
    digits: int = 18  # a decimal column's digits in all, at most 38; a cell with more is NULL
    least: Fraction | None = None  # of a computed column without a range: a lower bound of its values, as of a count


@dataclass(frozen=True)
class RowBlocks:
    """Rows by the calendar day, month or year of a column (instants in UTC, or what a clock in the zone shows), each
    with a budget."""

    column: str
    every: str
    zone: str | None = None
    is_instant: bool = False

    def record(self) -> dict[str, Any]:
        return {"column": self.column, "every": self.every, "zone": self.zone, "is_instant": self.is_instant}


@dataclass(frozen=True)
class Owners:
    """The protected table that has the unit of rows, that table's version, and the columns that are equal in both."""

    table: str
    on: tuple[tuple[str, str], ...]  # a column of the rows, and the column of the other table
    version: int = 1

    def record(self) -> dict[str, Any]:
        return {"table": self.table, "on": [list(pair) for pair in self.on], "version": self.version}

    def words(self, name: str, unit: str) -> str:
        """Return what is public about rows without an owner, and with several."""
        here = ", ".join(here for here, _ in self.on)
        return (
            f"Rows of {name} with no {here} in {self.table} are not counted; a row with several {unit} there"
            " counts for each."
        )


@dataclass(frozen=True)
class Declaration:
    """All public facts of a protected table."""

    name: str
    unit: str | RowUnit
    columns: Mapping[str, ColumnFacts]
    neighbours: Neighbours = "add-remove"
    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    population: int | None = None
    version: int = 1
    rows: int | None = None  # the number of rows of the table, if it is public
    most_rows_per_unit: int | None = None  # the most rows that any unit can have, in any data; no row is dropped
    block: RowBlocks | None = None  # rows by the calendar, each block with a budget of its own
    owners: Owners | None = None  # the table that has the unit, if these rows do not

    def __post_init__(self) -> None:
        """Bound a unit by one row in one group if it can have no more: its rows need no learning."""
        if self.most_rows_per_unit == 1:
            object.__setattr__(self, "rows_per_unit", self.rows_per_unit or 1)
            object.__setattr__(self, "groups_per_unit", self.groups_per_unit or 1)

    @property
    def unit_column(self) -> str | None:
        return None if isinstance(self.unit, RowUnit) else self.unit

    def public_record(self) -> dict[str, Any]:
        """Return the declaration as plain JSON values, for the ledger and certificates."""
        record = self._numbers()
        late = {name: number for name in NUMBERS_LATER if (number := record.pop(name)) is not None}
        columns = {name: _facts_record(facts, str, repr) for name, facts in sorted(self.columns.items())}
        return {**record, "columns": columns, **late, **self._if_given()}

    def record(self) -> dict[str, Any]:
        """Return the declaration as JSON, with every type and key: a client refuses questions as the server does."""
        columns = {
            name: _facts_record(facts, to_text, scalar_record) | {"scale": facts.scale, "digits": facts.digits}
            for name, facts in self.columns.items()
        }
        return {**self._numbers(), "columns": columns, **self._if_given()}

    def _if_given(self) -> dict[str, Any]:
        given = {"block": self.block, "owners": self.owners}
        return {name: each.record() for name, each in given.items() if each is not None}

    def _numbers(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("neighbours", *NUMBERS, *NUMBERS_LATER)}
        return {"name": self.name, "unit": self.unit_column, **given}


@dataclass(frozen=True)
class WrittenFacts:
    """An entry of `columns=`, as the curator wrote it, checked."""

    type: ColumnType | None = None
    between: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    keys: tuple[KeyValue, ...] | None = None


def read_columns(written: object) -> dict[str, WrittenFacts]:
    """Return what `columns=` declares, each column's facts checked."""
    if written is None:
        return {}
    if not isinstance(written, Mapping) or not all(isinstance(name, str) for name in written):
        raise InvalidParameter(
            "columns must be a dict from a column's name to its public facts"
            "\nhint: e.g. columns={'age': {'between': (0, 120)}}"
        )
    return {column: read_facts(column, facts) for column, facts in written.items()}


def read_facts(column: str, written: Mapping[str, Any]) -> WrittenFacts:
    """Return one column's declared facts, or refuse with the words to write instead."""
    if not isinstance(written, Mapping):
        raise InvalidParameter(
            f"columns['{column}'] must be a dict\nhint: e.g. columns={{'{column}': {{'between': (0, 100)}}}}"
        )
    unknown = [fact for fact in written if fact not in FACTS]
    if unknown:
        raise InvalidParameter(
            f"columns['{column}'] has the unknown entry '{unknown[0]}'\nhint: use {', '.join(FACTS)}"
        )
    kind = written.get("type")
    if kind is not None and (not isinstance(kind, str) or kind not in COLUMN_TYPES):
        raise InvalidParameter(f"columns['{column}']['type'] must be one of {', '.join(COLUMN_TYPES)}")
    step = written.get("step")
    return WrittenFacts(
        type=kind,
        between=None if is_auto(written.get("between")) else read_between(column, written["between"]),
        step=None if step is None else positive(decimal_meaning(step, name="step"), name="step"),
        keys=None if written.get("keys") is None else read_keys(column, written["keys"]),
    )


def is_auto(written: object) -> bool:
    """Return whether a bound or a range is left to be learned: not given, or "auto"."""
    return written is None or (isinstance(written, str) and written == AUTO)


def read_between(column: str, written: object) -> tuple[Fraction, Fraction]:
    """Return a public range as two rationals, the first below the second."""
    if not isinstance(written, tuple | list) or len(written) != 2:
        raise InvalidParameter(
            f"the range of '{column}' must be a pair (lowest, highest)\nhint: e.g. between=(0, 100), from general"
            " knowledge and not from the data"
        )
    low = decimal_meaning(written[0], name=f"the lowest of '{column}'")
    high = decimal_meaning(written[1], name=f"the highest of '{column}'")
    if is_long(low) or is_long(high):
        raise InvalidParameter(
            f"the range of '{column}' has more digits than any column can hold\nhint: between=(0, 100)"
        )
    if low >= high:
        raise InvalidParameter(
            f"the range of '{column}' must start with its lowest value\nhint: between=(lowest, highest)"
        )
    return low, high


def read_keys(column: str, written: object) -> tuple[KeyValue, ...]:
    """Return a public list of keys, each once, in the order given."""
    if isinstance(written, str | bytes) or not hasattr(written, "__iter__"):
        raise InvalidParameter(f"the keys of '{column}' must be a list\nhint: e.g. keys=['A', 'B']")
    keys = tuple(key.item() if hasattr(key, "item") and not getattr(key, "ndim", 0) else key for key in written)
    for key in keys:
        if key is not None and not isinstance(key, bool | int | float | str | date | datetime | Fraction):
            raise InvalidParameter(
                f"a key of '{column}' is a {type(key).__name__}; keys must be text, numbers, dates or None"
            )
    distinct = tuple(dict.fromkeys((type(key) is bool, key) for key in keys))
    if len(distinct) != len(keys):
        raise InvalidParameter(f"the keys of '{column}' contain one key twice\nhint: give each key once")
    if not keys:
        raise InvalidParameter(f"the list of keys of '{column}' is empty\nhint: give at least one key")
    return keys


def read_bound(value: object, name: str) -> int | None:
    """Return a per-unit bound, or None if it was not given or is "auto": it is learned."""
    return None if is_auto(value) else whole(value, name=name)


def _facts_record(
    facts: ColumnFacts, number: Callable[[Fraction], str], key: Callable[[KeyValue], Any]
) -> dict[str, Any]:
    return {
        "type": facts.type,
        "between": None if facts.between is None else [number(end) for end in facts.between],
        "step": None if facts.step is None else number(facts.step),
        "keys": None if facts.keys is None else [key(each) for each in facts.keys],
    }


def declaration_from(record: Mapping[str, Any]) -> Declaration:
    """Return the declaration that `Declaration.record` wrote."""
    try:
        return Declaration(
            name=record["name"],
            unit=ROW if record["unit"] is None else record["unit"],
            columns={name: _facts_from(each) for name, each in record["columns"].items()},
            neighbours=record["neighbours"],
            **{name: record[name] for name in (*NUMBERS, *NUMBERS_LATER)},
            block=RowBlocks(**record["block"]) if "block" in record else None,
            owners=_owners_from(record["owners"]) if "owners" in record else None,
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidParameter(
            "this must be the declaration of a table, and is not\nhint: update tacit on one of the two ends"
        ) from None


def _owners_from(record: Mapping[str, Any]) -> Owners:
    return Owners(record["table"], tuple((here, there) for here, there in record["on"]), record["version"])


def _facts_from(record: Mapping[str, Any]) -> ColumnFacts:
    ends = record["between"]
    return ColumnFacts(
        type=next((each for each in COLUMN_TYPES if each == record["type"]), "other"),
        between=None if ends is None else (from_text(ends[0]), from_text(ends[1])),
        step=None if record["step"] is None else Fraction(from_text(record["step"])),
        keys=None if record["keys"] is None else tuple(scalar_from(key) for key in record["keys"]),
        scale=record["scale"],
        digits=record["digits"],
    )
