"""Published bugs of reading: files, caches, long texts and rows that are more than memory has."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.tables.mutants import bug
from tacit_gauntlet.targets import original, planted


@mutant(
    "a cache checked at its end", killed_by="F01", published="folders that another user may own, or rename on the way"
)
def checked_at_its_end() -> AbstractContextManager[None]:
    """Look at the folder's own mode, and neither at its way nor at whose they are."""
    return planted("fault of the cache", lambda folder: None if not folder.stat().st_mode & 0o022 else "writable")


@mutant(
    "a cache checked by size",
    killed_by="F01",
    published="caches that take a file of the right length for the right file",
)
def checked_by_size() -> AbstractContextManager[None]:
    """Compare the sizes of files."""
    return planted(
        "digests of the cache",
        lambda folder: {str(path.relative_to(folder)): str(path.stat().st_size) for path in folder.rglob("*.nbi")},
    )


@mutant("compiled on top of what is there", killed_by="F01", published="numba unpickles an index before it looks at it")
def compiled_on_top() -> AbstractContextManager[None]:
    """Compile in a cache that is not whole without clearing it."""
    return planted("clear the cache", lambda _: None)


def _replaced(cell: Any) -> str | None:
    return None if cell is None else str(cell).encode("utf-8", "replace").decode("utf-8")


bug(
    "half a character replaced",
    killed_by="S23",
    published="errors='replace' makes one id of all that cannot be encoded",
    swap=lambda: [("text of a frame", _replaced)],
)


bug(
    "any column taken for a unit",
    killed_by="S23",
    published="ids that are read more coarsely than they are stored become one person",
    swap=lambda: [("refuse_merged", lambda *_: None)],
)


bug(
    "statistics of a file believed",
    killed_by="S22",
    published="a NaN that min and max leave out passes every guard that they prove needless",
    swap=lambda: [("optimizers_off", lambda _: [])],
)


bug(
    "filters decided by statistics",
    killed_by="S22",
    published="row groups are skipped whose min and max say that no row can match",
    swap=lambda: [("optimizers_off", lambda known: [name for name in known if name == "statistics_propagation"])],
)


@mutant("text read as any number", killed_by="F02", published="YAML, JSON and XML readers that a short number stops")
@contextmanager
def text_read_as_any_number() -> Iterator[None]:
    """Read the numbers of files as whatever Fraction makes of them."""
    with planted("from_text", Fraction):
        yield


def _as_it_is(value: Any) -> Any:
    return value


@mutant("texts leave whole", killed_by="Q27", published="a batch of 2^31 bytes of text is an error: an exact count")
@contextmanager
def whole_texts() -> Iterator[None]:
    """A text leaves the engine as long as it is."""
    with planted("leaving", _as_it_is):
        yield


@mutant("long keys are looked up in the memory there is", killed_by="Q27", published="shown keys too long for memory")
@contextmanager
def looked_up_once() -> Iterator[None]:
    """What a quick engine cannot hold when it looks up the text of a shown key is a failure."""
    long_texts = original("Engine.long_texts")

    def once(self: Any, *asked: Any) -> Any:
        with planted("Source.streaming", _as_it_is):
            yield from long_texts(self, *asked)

    with planted("Engine.long_texts", once):
        yield


@mutant("memory ends questions", killed_by="Q28", published="a unit larger than the memory limit fails the question")
@contextmanager
def no_patience() -> Iterator[None]:
    """What a quick path cannot hold is a failure."""

    def out_of_memory(*_: Any) -> Any:
        raise MemoryError

    with planted("Engine.patient", out_of_memory):
        yield


@mutant(
    "a folder is looked for once rows need it",
    killed_by="Q30",
    published="a question that fails for large tables alone",
)
@contextmanager
def late_folder() -> Iterator[None]:
    """Whether rows can be put on a disk is found out after the charge."""
    with planted("refuse_without_folder", lambda: None):
        yield


@mutant("a source opened again warns", killed_by="Q30", published="a warning that only large tables bring about")
@contextmanager
def warned_again() -> Iterator[None]:
    """What opening warns of is heard when rows have the source opened again."""
    with planted("no_warnings", nullcontext):
        yield


@mutant("hashes that anyone can work out", killed_by="Q29", published="hash flooding: Crosby and Wallach, 2003")
@contextmanager
def known_hashes() -> Iterator[None]:
    """Every question hashes by the same secret."""
    secret: Callable[..., Any] = original("make_secret")
    with planted("make_secret", lambda _salt, purpose: secret("", purpose)):
        yield
