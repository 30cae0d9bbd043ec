"""`Engine`: runs a plan at the place of its rows; every failure inside gives the analyst one fixed message.

With one salt every engine gives the same integers for the same rows and path. An engine's own error text may quote a
cell, and whether it fails may depend on one: only the class of the error reaches the curator's log.
"""

import errno
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from tacit.errors import EngineError
from tacit.exact import ExactIntegers, ExactTable
from tacit.plan import CodedPlan, Plan, RunningPlan
from tacit.tables import Source

if TYPE_CHECKING:
    from tacit.engine.coded_rows import CodedRows

# The class of an error may depend on rows. So records go only to handlers that the curator added to this very logger.
log: logging.Logger = logging.getLogger("tacit.curator")
log.addHandler(logging.NullHandler())
log.propagate = False

FAILED = (
    "the engine could not finish this question; the charge stands, since how it failed may depend on the data."
    "\nhint: the curator's log has the kind of error; ask the curator"
)

ExecutionPath = Literal["kernel", "sql", "patient"]
Found = TypeVar("Found")


class Engine(Protocol):
    """Answers plans about one source, exactly and in secret."""

    @property
    def source(self) -> Source:
        """The source that it reads; relations of several tables are derived from theirs."""

    def refuse_changes(self) -> None:
        """Refuse before the charge if the source changed since it was opened, or cannot be read now; reads no row."""

    def stamp(self) -> str | None:
        """Return a text that changes when the source is written; None if no change can be detected. Reads no row."""

    def moment(self) -> AbstractContextManager[None]:
        """Hold what is read inside to the rows of one moment; one question at a time reads."""

    def aggregate(self, plan: Plan, salt: str) -> ExactTable:
        """Return each group's exact sums, every unit bounded."""

    def parts(self, plan: Plan, salt: str) -> Generator[ExactTable, None, None]:
        """Yield the same in one table, or in several of different groups."""

    def texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Mapping[str, str]:
        """Return the long texts of released keys, by digest; until then a key has a digest instead of a long text."""

    def coded(self, plan: CodedPlan, /) -> "AbstractContextManager[CodedRows]":
        """Lend the rows of a plan as cells, in secret; a failure inside gives the fixed words."""

    def running(self, plan: RunningPlan, first: int, end: int, /) -> ExactIntegers:
        """Return the exact numbers of a count that runs on, for the days from `first` to before `end`."""

    def path_of(self, plan: Plan) -> ExecutionPath:
        """Return the path that a plan would take now; it depends only on public facts."""


def open_engine(source: Source, *, path: ExecutionPath | None = None) -> Engine:
    """Return the engine of a source: the embedded one, or that of the cluster which has the rows."""
    if source.elsewhere is not None:
        from tacit.engine.spark import SparkEngine  # only who has rows in Spark has pyspark

        return SparkEngine(source, path=path)
    from tacit.engine.embedded import EmbeddedEngine  # it needs the names above

    return EmbeddedEngine(source, path=path)


def recording(find: Callable[[], Iterable[Found]], failed: list[Exception]) -> Iterator[Found]:
    """Yield from `find`; an exception ends it, goes into `failed`, and is logged for the curator by its class."""
    try:
        yield from find()
    except Exception as problem:  # noqa: BLE001 - whatever it is, the analyst learns only that it failed
        failed.append(problem)
        log.error("engine failed: %s", class_and_code(problem))  # noqa: TRY400 - a traceback may quote a cell


def raise_if_failed(failed: list[Exception]) -> None:
    """Raise the fixed words if anything failed: outside of `recording`, so that the error is not their context."""
    if failed:
        raise EngineError(FAILED)


def class_and_code(problem: Exception) -> str:
    """Return the error's class and, for an error of the operating system, its code: all that the curator may see."""
    code = errno.errorcode.get(problem.errno or 0) if isinstance(problem, OSError) else None
    return " ".join(filter(None, (type(problem).__name__, code)))
