"""The stage for attacks on answers: small protected tables, their exact sums under a chosen salt, and frozen noise.

A real answer never shows an exact sum or repeats a noise. Here the engine is asked directly, which only code on the
curator's side can do, and the noise is frozen by replacing our own generator while a case runs.
"""

import importlib
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from tacit import asking
from tacit import epsilon as pure_or_approximate
from tacit.auditing import replay
from tacit.exact import ExactTable
from tacit.ledger import open_ledger
from tacit.noise.bits import KEY_BYTES
from tacit.numbers import Words
from tacit.plan.plan import Measured, NoiseKind, Plan
from tacit.plan.planner import hand_set_plan, make_plan, make_spend
from tacit.plan.split import with_quantiles_of
from tacit.privacy import law
from tacit.release import NoisyTable, release
from tacit_gauntlet.frame.place import is_spark, rows_at
from tacit_gauntlet.targets import planted

# what the functions below take and give
Question = asking.Question
Table = asking.Table

SALT = replay.SALT
# no noise is narrower
SCALE_MIN = law.SCALE_MIN
distance = replay.distance
BUDGET = pure_or_approximate(10**6, delta="1e-6")

Cells = dict[tuple[Any, ...], int]  # (key, part) -> an exact integer


def protected(source: Any, **declared: Any) -> Table:
    """Return a protected table in a ledger of its own, with bounds of two rows and two groups unless declared.

    That nobody has more than one row is declared too, true or not: then nothing is learned of what the bounds cut.
    """
    if isinstance(declared.get("columns"), Mapping) and isinstance(source, pa.Table):
        declared["columns"] = {name: _vouched(facts, name, source) for name, facts in declared["columns"].items()}
    return _opened(placed(source), declared)


def _vouched(facts: Any, name: str, rows: pa.Table) -> Any:
    """Return what is declared of a column, a decimal with its type: on Spark, that vouches for its cells."""
    is_decimal = name in rows.column_names and pat.is_decimal(rows.schema.field(name).type)
    return {"type": "decimal", **facts} if is_decimal and isinstance(facts, Mapping) else facts


def protected_here(source: Any, **declared: Any) -> Table:
    """Return a protected table whose rows are in this process, whatever the course's engine."""
    return _opened({"source": source}, declared)


def _opened(source: Mapping[str, Any], declared: Mapping[str, Any]) -> Table:
    usual: dict[str, Any] = {"unit": "id", "budget": BUDGET, "ledger": ":memory:"}
    usual |= {"rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1, "name": "t"}
    if None in (declared.get("rows_per_unit", 2), declared.get("groups_per_unit", 2)):
        usual["most_rows_per_unit"] = None  # it would bound them again
    return asking.table(**{**usual, **declared, **source})


def placed(source: Any) -> dict[str, Any]:
    """Return the words that open a frame: as it is, or as a table of the course's engine, where that can hold it."""
    address = rows_at()
    if address is None or not isinstance(source, pa.Table):
        return {"source": source}
    if is_spark(address):
        from tacit_gauntlet.stage.spark_rows import held_in_spark

        return held_in_spark(source, address) or {"source": source}
    from tacit_gauntlet.stage.postgres_rows import held

    return {"source": held(source, address) or source}


def same_people(first: Any, second: Any, **declared: Any) -> tuple[Table, Table]:
    """Return two tables of the same people, visits and people, in a ledger of their own: one unit, one budget."""
    ledger = open_ledger(":memory:")
    of_first = declared.pop("columns", None)
    visits = protected(first, name="visits", ledger=ledger, columns=of_first, **declared)
    return visits, protected(
        second, name="people", ledger=ledger, **({"budget": None, "same_people_as": "visits"} | declared)
    )


def owned_by(owners: Table, rows: pa.Table, **declared: Any) -> Table:
    """Return the protected table of rows that have their unit, and so their ledger and budget, in another."""
    return protected(rows, unit=owners, **({"name": "lines", "budget": None, "ledger": None} | declared))


def pandas() -> Any:
    """Return pandas, which the tests' environment has."""
    return importlib.import_module("pandas")


def plan_of(question: Question, *, epsilon: object = 1, noise: NoiseKind | None = None) -> Plan:
    """Return the plan that answering would follow."""
    spend = make_spend(epsilon, None, noise, question.session.registered.budget)  # type: ignore[arg-type]
    return make_plan(question.query, question.session.declaration, spend)


def bounded_plan(question: Question, *, epsilon: object = 1, noise: NoiseKind | None = None) -> Plan:
    """Return the plan in which rows and groups beyond the bounds are left out, as they are beside a quantile."""
    spend = make_spend(epsilon, None, noise, question.session.registered.budget)  # type: ignore[arg-type]
    declaration = question.session.declaration
    return hand_set_plan(with_quantiles_of(question.query, declaration), declaration, spend)


def exact_table(question: Question, *, salt: str = SALT, plan: Plan | None = None) -> ExactTable:
    """Return what the engine hands to the release: bounded and still secret."""
    return question.session.engine.aggregate(plan or plan_of(question), salt)


def bounded_table(question: Question) -> ExactTable:
    """Return the same by the plan in which rows and groups beyond the bounds are left out."""
    return exact_table(question, plan=bounded_plan(question))


def exact_cells(question: Question, *, salt: str = SALT, plan: Plan | None = None) -> list[Cells]:
    """Return for each release every exact integer that noise is added to, by key and part; zeros are left out."""
    plan = plan or plan_of(question)
    exact = exact_table(question, salt=salt, plan=plan)
    found = []
    for each in plan.releases:
        cells: Cells = {}
        for part in each.parts:
            for key, value in zip(exact.keys, exact.part(part, plan), strict=True):
                if value:
                    cells[(*key, part.kind)] = value
        found.append(cells)
    return found


def exact_parts(question: Question) -> list[Cells]:
    """Return the same with the part's number among the parts of its kind."""
    plan, exact = plan_of(question), exact_table(question)
    return [
        {
            (*key, part.kind, part.index): value
            for part in each.parts
            for key, value in zip(exact.keys, exact.part(part, plan), strict=True)
            if value
        }
        for each in plan.releases
    ]


def nearest_steps(value: Any, column: Measured) -> int | None:
    """Return a row's steps above the low end, in rationals: what the engine must agree with."""
    if value is None or value != value:
        return None
    if value in (math.inf, -math.inf):
        return column.height if value > 0 else 0
    steps = (Fraction(value) / column.step + Fraction(1, 2)) // 1
    return min(max(steps, column.low), column.high) - column.low


def disagreements(question: Question, values: Sequence[Any], plan: Plan | None = None) -> list[str]:
    """Return where the engine's sum of a column differs from the rational one, in the plan that drops or in this one.

    Under caps a sum differs by at most a fine step for each value, where no unit has more than its cap.
    """
    plan = plan or bounded_plan(question)
    column, exact = plan.measured[0], exact_table(question, plan=plan)
    wanted = [steps for steps in (nearest_steps(value, column) for value in values) if steps is not None]
    if plan.scaling is None:
        found = (exact.sums["counted_0"][0], exact.sums["total_0"][0])
        return [] if found == (len(wanted), sum(wanted)) else [f"{found} and not {(len(wanted), sum(wanted))}"]
    (vector,), (scaled,) = plan.scaling.vectors, exact.sums["scaled_0"]
    fine = sum(steps - vector.centre for steps in wanted) * Fraction(2) ** vector.shift
    return [] if abs(scaled - fine) <= len(wanted) else [f"scaled: {scaled} and not {fine}"]


def keys_shown(question: Question, *, alone: int, noise: NoiseKind) -> tuple[int, Fraction]:
    """Return how many of so many keys, each of one unit alone, are shown, and the delta charged for them."""
    plan = plan_of(question, noise=noise)
    if plan.threshold is None:
        raise RuntimeError("private keys have a threshold")
    exact = ExactTable([(place,) for place in range(alone)], {"rows": [1] * alone, "units": [1] * alone})
    return len(release(plan, exact).keys), plan.threshold.delta


def stored_answer(text: str) -> object:
    """Return the noisy table that a stored answer's text is read as."""
    return NoisyTable.from_json(text)


def too_far(question: Question, neighbour: Question, *, salt: str = SALT) -> list[str]:
    """Return what exceeds the sensitivity the plan declares when one table becomes the other."""
    plan = plan_of(question)
    both = zip(exact_cells(question, salt=salt), exact_cells(neighbour, salt=salt), plan.releases, strict=True)
    return [
        f"release {place}: {what}"
        for place, (before, after, release) in enumerate(both)
        for what in replay.beyond(before, after, release.sensitivity)
    ]


def added(left: Cells, right: Cells) -> Cells:
    """Return the sum of two vectors, zeros left out."""
    total = {place: left.get(place, 0) + right.get(place, 0) for place in left.keys() | right.keys()}
    return {place: value for place, value in total.items() if value}


def rows(columns: Mapping[str, tuple[Sequence[Any], pa.DataType]]) -> pa.Table:
    """Return an Arrow table of typed columns."""
    return pa.table({name: pa.array(list(values), kind) for name, (values, kind) in columns.items()})


class Ear(logging.Handler):
    """Keeps whatever is logged."""

    def __init__(self) -> None:
        super().__init__(level=0)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an entry as it would be written."""
        self.heard.append(self.format(record))


class FrozenBits:
    """Bits that repeat: the same words for every release. They live only here."""

    def __init__(self) -> None:
        self._at = 0

    def words(self, n: int, width: int = 64) -> Words:
        """Return `n` words that look random and are not (splitmix64 of a counter)."""
        state = (np.arange(self._at + 1, self._at + n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        self._at += n
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Words = state ^ (state >> np.uint64(31))
        return mixed if width == 64 else mixed >> np.uint64(64 - width)


@contextmanager
def uncut() -> Iterator[None]:
    """Leave numbers and intervals as they are before they are cut at what is possible, which the number decides."""
    with planted("cut_to_possible", lambda _, columns: columns):
        yield


@contextmanager
def frozen() -> Iterator[None]:
    """Freeze the noise and the salt while open, so that two runs differ by their rows alone."""
    with (
        planted("Keystream in integer noise", FrozenBits),
        planted("fresh_bytes in a session", bytes),
    ):
        yield


@contextmanager
def all_frozen() -> Iterator[None]:
    """Freeze draws and choices too while open: every stream of bits is the same one."""
    with frozen(), planted("fresh_key", lambda: bytes(KEY_BYTES)):
        yield


@contextmanager
def in_sql() -> Iterator[None]:
    """Answer on the engine's path in SQL while open, ready compiled kernel or not."""
    before = os.environ.get("TACIT_KERNEL")
    os.environ["TACIT_KERNEL"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TACIT_KERNEL"]
        else:
            os.environ["TACIT_KERNEL"] = before
