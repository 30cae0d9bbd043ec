"""`DummyRows`: rows made from a table's public facts only, so that a script can be tried without spending.

Only public facts are read: the declared types, keys, ranges and bounds, and those that were learned. Columns are
independent and values are spread evenly, so these rows look like the table's and hold no information about it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.arrow_frames import as_pandas, as_polars
from tacit.asking.learned import ALL, all_missing, can_plan
from tacit.errors import InvalidParameter, printable
from tacit.files import path_of
from tacit.ledger import TRYOUT
from tacit.noise import Keystream, draw_below
from tacit.numbers import whole
from tacit.plan import make_plan, make_spend
from tacit.privacy import Loss, epsilon
from tacit.query import INT_LEAST, INT_MOST, Aggregate, Column, Output, Query
from tacit.tables import ColumnFacts, Declaration, keys_to_arrow

if TYPE_CHECKING:
    from tacit.asking.protected_table import Table
    from tacit.asking.session import Session

DUMMY_ROWS_MOST = 10**7
ROWS_OF_UNIT = 3  # how many rows a unit has, if its table declares no bound
TEXTS = 20  # how many different texts a column has without public keys
DAYS = 365  # moments are within this many days before today
RANGE = Fraction(0), Fraction(100)  # of a number without a declared one
FINE = 1 << 16  # how many steps a range of floats has without a declared step


@dataclass(frozen=True, repr=False)
class DummyRows:
    """Made-up rows with the columns of a protected table: free, and made without reading a row."""

    declaration: Declaration
    arrow: pa.Table

    @classmethod
    def of(cls, declaration: Declaration, rows: int) -> "DummyRows":
        """Return made-up rows of a declaration; columns of types that cannot be read are left out."""
        count, bits = whole(rows, name="rows", least=0), Keystream()
        if count > DUMMY_ROWS_MOST:
            raise InvalidParameter(f"rows must be at most {DUMMY_ROWS_MOST:,}\nhint: dummy(rows=1000)")

        def draw(most: int) -> list[int]:
            found: list[int] = draw_below(max(most, 1), count, bits).tolist()
            return found

        columns: dict[str, pa.Array] = {}
        for name, facts in declaration.columns.items():
            if name == declaration.unit:
                each = declaration.rows_per_unit if isinstance(declaration.rows_per_unit, int) else ROWS_OF_UNIT
                owners = [row // each for row in range(count)]
                columns[name] = _of_type(name, facts, [owner + 1 for owner in owners])
            elif facts.keys:
                kind = "null" if facts.type == "other" else facts.type
                listed = keys_to_arrow([(key,) for key in facts.keys], {name: kind}, place="index of a key").column(
                    name
                )
                columns[name] = listed.take(pa.array(draw(len(facts.keys)), pa.int64()))
            elif facts.type != "other":
                columns[name] = _of_type(name, facts, _spread_evenly(facts, draw))
        return cls(declaration, pa.table(columns))

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return self.arrow

    def to_pandas(self) -> Any:
        """Return a pandas frame."""
        return as_pandas(self.arrow)

    def to_polars(self) -> Any:
        """Return a Polars frame."""
        return as_polars(self.arrow)

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file."""
        pq.write_table(self.arrow, path_of(path))

    def table(self, budget: Loss | None = None) -> "Table":
        """Open the rows as a table, declared as the protected one is, with a ledger that keeps nothing."""
        from tacit.asking.opening import table

        declared = self.declaration
        facts = {
            name: {fact: value for fact in ("between", "step", "keys") if (value := getattr(each, fact)) is not None}
            for name, each in declared.columns.items()
        }
        names = ("name", "unit", "neighbours", "rows_per_unit", "groups_per_unit", "most_rows_per_unit")
        return table(
            self.arrow,
            budget=budget or epsilon(10, delta="1e-6"),
            columns={name: each for name, each in facts.items() if each},
            ledger=TRYOUT,
            **{name: getattr(declared, name) for name in names},
        )

    def __len__(self) -> int:
        return len(self.arrow)

    def __repr__(self) -> str:
        return printable(
            f"<{len(self):,} made-up rows like those of '{self.declaration.name}'; .to_pandas(), .table()>"
        )


def with_learned(session: "Session") -> Declaration:
    """Return a table's declaration with the ranges and groups that were learned, and are free for all who may ask."""
    declaration = session.declaration
    found = {
        name: each.fact.keys
        for each in session.facts()
        for name in declaration.columns
        if each.words == f"which groups by {name} there are"
    }
    columns = dict(declaration.columns)
    for name, facts in declaration.columns.items():
        if name == declaration.unit or facts.keys is not None or facts.between is not None:
            continue
        if name in found:
            columns[name] = replace(facts, keys=tuple(key for (key,) in found[name] if key is not None) or None)
        elif facts.type in ("int", "float", "decimal"):
            columns[name] = replace(facts, between=_learned_range(session, name))
    return replace(declaration, columns=columns)


def _learned_range(session: "Session", name: str) -> tuple[Fraction, Fraction] | None:
    """Return the range of a column that was learned; None if it was not."""
    median = Aggregate("quantile", Column(name), fraction=Fraction(1, 2), of="people")
    query = Query(session.declaration.name, (Output(name, median),))
    spend = make_spend(1, None, None, session.registered.budget)
    facts, _ = all_missing(query, session.declaration, spend, ALL, lambda key: session.recall_fact(key, None))
    known = {key: fact for key, fact in facts.items() if fact.entry}
    if not known or not can_plan(query, session.declaration, spend, known):
        return None
    return make_plan(query, session.declaration, spend, known).measured[0].between


def _spread_evenly(facts: ColumnFacts, draw: Callable[[int], list[int]]) -> list[Any]:
    """Return values that are spread evenly over a range: whole numbers of seconds before today, of texts, of steps."""
    low, high = facts.between or RANGE
    if facts.type == "text":
        return [each + 1 for each in draw(TEXTS)]
    if facts.type in ("date", "timestamp"):
        return draw(DAYS * (1 if facts.type == "date" else 86_400))
    if facts.type == "bool":
        return draw(2)
    if facts.type == "int":
        least, most = max(ceil(low), INT_LEAST), min(floor(high), INT_MOST)
        return [least + each for each in draw(min(most - least, INT_MOST - 1) + 1)]
    step = Fraction(1, 10**facts.scale) if facts.type == "decimal" else facts.step or (high - low) / FINE
    return [low + each * step for each in draw(min(floor((high - low) / step), INT_MOST - 1) + 1)]


def _of_type(name: str, facts: ColumnFacts, values: list[Any]) -> pa.Array:
    """Return values of a column's type; whole numbers stand for texts, and for seconds or days before today."""
    today = datetime.combine(datetime.now(UTC).date(), datetime.min.time())
    match facts.type:
        case "text":
            return pa.array([f"{name} {each}" for each in values], pa.string())
        case "date":
            return pa.array([(today - timedelta(days=each + 1)).date() for each in values], pa.date32())
        case "timestamp":
            return pa.array([today - timedelta(seconds=each + 1) for each in values], pa.timestamp("us"))
        case "decimal":
            texts = [Decimal(round(each * 10**facts.scale)).scaleb(-facts.scale) for each in values]
            return pa.array(texts, pa.decimal128(facts.digits, facts.scale))
        case "float":
            return pa.array([float(each) for each in values], pa.float64())
        case "bool":
            return pa.array([bool(each) for each in values], pa.bool_())
        case "int" | "other":
            return pa.array([int(each) for each in values], pa.int64())
        case _:
            assert_never(facts.type)
