"""The stage for rows that another engine keeps: a scheduler of our own, which brings pieces together in any order.

It does what Spark does with the stages and nothing else: batches in any order and in a few tasks, pieces of a part in
one place, several parts in one place, results in any order.
"""

import hashlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tacit.asking import Question
from tacit.asking.session import Session
from tacit.engine import ExecutionPath, cutting, part, task
from tacit.engine.coded_rows import CodedRows
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import kernel_path
from tacit.engine.task import PartedQuestion, parted
from tacit.exact import ExactTable, with_values_of
from tacit.plan import CodedPlan, Plan
from tacit.tables import Elsewhere, Source, open_elsewhere
from tacit_gauntlet.stage.engine import kernel_at_hand

HERE = object()
Piece = cutting.Piece
TASKS = 2

Thing = TypeVar("Thing")
Read = tuple[dict[tuple[Any, ...], Any], dict[str, int]]


class Turn:
    """Orders that look random and are the same in every run."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count = seed, 0

    def mixed(self, things: Sequence[Thing]) -> list[Thing]:
        """Return the things in another order."""
        self._count += 1
        marks = [hashlib.sha256(f"{self._seed} {self._count} {at}".encode()).digest() for at in range(len(things))]
        return [things[at] for at in sorted(range(len(things)), key=marks.__getitem__)]


def stand_in(rows: pa.Table, name: str = "t") -> Source:
    """Return a source for rows that are elsewhere; whoever asks hands them over."""
    return open_elsewhere(Elsewhere(rows.schema, rows, HERE), {}, stem=name, identity=f"made up:{name}", others={})


def asked_in_parts(
    asked: Question | Session,
    plan: Plan,
    salt: str,
    *,
    parts: int,
    places: int,
    path: ExecutionPath | None = None,
    seed: object = 0,
    batch_rows: int = 61,
) -> ExactTable:
    """Return the exact table of a question as its parts give it."""
    if plan.is_mixed:  # as engines do: each half is a question of its own
        how: dict[str, Any] = {"parts": parts, "places": places, "path": path, "seed": seed, "batch_rows": batch_rows}
        return with_values_of(plan, *(asked_in_parts(asked, half, salt, **how) for half in plan.halves()))
    turn = Turn(str(seed))
    source = asked.engine.source if isinstance(asked, Session) else asked.session.engine.source
    engine = EmbeddedEngine(source, path=path)
    question = parted(source, engine, plan, salt, parts)
    done = list(_first_stages(question, batch_rows, turn, places))
    if plan.distincts:
        done = [each for some in _met(done, places, turn) for each in part.count_values(some, question.asked)]
    done = turn.mixed(done)
    seen = [at for each in done if each.kind == part.SEEN for at in np.frombuffer(each.data, np.int64).tolist()]
    if len(seen) != len(set(seen)):
        raise RuntimeError("a part was answered in two places")
    found = [part.from_bytes(each.data, plan) for each in done if each.kind == part.EXACT]
    return part.added_parts(question.nothing, found, plan)


def coded_in_parts(source: Source, plan: CodedPlan, *, parts: int, places: int) -> CodedRows:
    """Return the rows of a plan as cells, as parts code them."""
    question = task.coded_in_parts(source, plan, "any salt", parts)
    done = _first_stages(question, 3, Turn("coded"), places)
    return CodedRows.of(plan, [part.block_from_bytes(each.data, plan) for each in done if each.kind == part.CODED])


@contextmanager
def quickest_path(question: Question, plan: Plan) -> Iterator[ExecutionPath]:
    """Yield the kernel where it can answer a plan, compiled or not, whatever the course's engine, and SQL otherwise."""
    with kernel_at_hand() as may:
        yield "kernel" if may and kernel_path.supports(plan, question.session.engine.source) else "sql"


def exact_whole(question: Question, plan: Plan, salt: str, path: ExecutionPath) -> ExactTable:
    """Return the exact table of rows that are here, on this path."""
    return EmbeddedEngine(question.session.engine.source, path=path).aggregate(plan, salt)


def told_by_a_task(act: Callable[[Iterable[pa.RecordBatch]], Iterator[Piece]], rows: pa.RecordBatch) -> str:
    """Return all that a scheduler hears of a task whose stage raises."""
    try:
        list(task.Task(act, task.versions())(iter([rows])))
    except Exception:
        return traceback.format_exc()
    return ""


def _first_stages(question: PartedQuestion, batch_rows: int, turn: Turn, places: int) -> Iterator[Piece]:
    pieces: list[Piece] = []
    for kind, each in enumerate(question.cuttings):
        batches = turn.mixed(each.source.elsewhere.rows.select(each.columns).to_batches(max_chunksize=batch_rows))
        for some in filter(None, (batches[at::TASKS] for at in range(TASKS))):
            if each.cut is None:  # every row is its own unit: any rows are a part
                yield from part.answered(question.asked, [pa.Table.from_batches(some)])
            else:
                pieces += cutting.cut_rows(some, each.cut, kind)
    for some in _met(pieces, places, turn):
        yield from part.part_tables(some, question.asked)


def _met(pieces: list[Piece], places: int, turn: Turn) -> list[list[Piece]]:
    """Return pieces as they are brought together: all of a part in one place."""
    mixed = turn.mixed(pieces)
    return [[each for each in mixed if each.part % places == at] for at in range(places)]


def as_read(exact: ExactTable) -> Read:
    """Return an exact table in a form that is equal for equal tables, whatever the order of groups."""
    found: dict[tuple[Any, ...], Any] = {}
    for at, key in enumerate(exact.keys):
        values = {}
        for index, steps in exact.values.items():
            mine: Iterable[Any] = steps[at].tolist()
            if steps.weights is not None:
                mine = sorted(zip(mine, steps.weights[steps.starts[at] : steps.ends[at]].tolist(), strict=True))
            values[index] = list(mine)
        found[tuple(key)] = {name: int(each[at]) for name, each in exact.sums.items()}, values
    return found, dict(exact.totals)
