"""The engine and the session under a case's hands: what reads rows fails, waits, is heard, or has next to no memory."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tacit.engine import engine, interpreted_kernel
from tacit.engine.kernel import coding, compiled
from tacit.exact import ExactTable
from tacit.numbers import Words
from tacit.query import typecheck
from tacit.tables import cells
from tacit_gauntlet.stage.table import SALT, FrozenBits, Question, frozen, plan_of
from tacit_gauntlet.targets import planted, standing

# The way rows are read: in SQL, or by the kernel's loops.
Way = engine.ExecutionPath
Secret = coding.Secret

# public limits: of a text's length, and of what a question does for one row
TEXT_BYTES_MAX = cells.TEXT_BYTES_MAX
STEPS_MAX = typecheck.STEPS_MAX

_LITTLE = "4MB"


def exact_on(question: Question, way: Way) -> ExactTable:
    """Return the exact table of a question, read one way; different values are always counted in SQL."""
    plan = plan_of(question)
    taken: Way = "sql" if plan.distincts else way
    return engine.open_engine(question.session.engine.source, path=taken).aggregate(plan, SALT)


@contextmanager
def reading_does(act: Callable[..., Any]) -> Iterator[None]:
    """Let whatever reads rows do this instead, while open."""
    with planted("Engine.aggregate", act), planted("SparkEngine.aggregate", act):
        yield


@contextmanager
def engines_do(act: Callable[..., Any]) -> Iterator[None]:
    """Let engines do this in place of giving exact tables, their own handling of failures included, while open."""
    with planted("Engine.parts", act), planted("SparkEngine.parts", act):
        yield


@contextmanager
def releasing_does(act: Callable[..., Any]) -> Iterator[None]:
    """Let whatever adds noise do this instead, while open."""
    with planted("with noise", act):
        yield


@contextmanager
def heard_steps() -> Iterator[list[str]]:
    """Yield the steps of answering while open: charge, read, noise and record; a charge counts once it is durable."""
    steps: list[str] = []
    reserve, commit = standing("Ledger.reserve"), standing("Reservation.commit")

    class Heard(FrozenBits):
        def words(self, n: int, width: int = 64) -> Any:
            steps.append(f"noise:{n}")
            return super().words(n, width)

    def reserving(*args: Any, **words: Any) -> Any:
        done = reserve(*args, **words)
        steps.append("charge")
        return done

    def read_by(parts: Callable[..., Any]) -> Callable[..., Any]:
        def aggregating(*args: Any) -> Any:
            steps.append("read")
            return parts(*args)

        return aggregating

    def committing(*args: Any) -> Any:
        steps.append("record")
        return commit(*args)

    with (
        frozen(),
        planted("Keystream in integer noise", Heard),
        planted("Ledger.reserve", reserving),
        planted("Engine.parts", read_by(standing("Engine.parts"))),
        planted("SparkEngine.parts", read_by(standing("SparkEngine.parts"))),
        planted("Engine.coded", read_by(standing("Engine.coded"))),
        planted("Reservation.commit", committing),
    ):
        yield steps


# ---- memory and disk -----------------------------------------------------------------------------------------------


@contextmanager
def little_memory() -> Iterator[None]:
    """Declare next to no memory while open."""
    before = os.environ.get("TACIT_MEMORY")
    os.environ["TACIT_MEMORY"] = _LITTLE
    try:
        with planted("least memory", 1):
            yield
    finally:
        if before is None:
            del os.environ["TACIT_MEMORY"]
        else:
            os.environ["TACIT_MEMORY"] = before


@contextmanager
def nowhere_to_write() -> Iterator[None]:
    """Let there be no folder for temporary files while open."""
    with planted("folder of ours", None), planted("tempdir", os.path.join(os.sep, "no", "such", "folder")):
        yield


@contextmanager
def rows_too_many() -> Iterator[None]:
    """Let rows be too many for every quick path while open."""
    with planted("Engine.quick", lambda *_: None):
        yield


# ---- hashes --------------------------------------------------------------------------------------------------------


def hashes_of(words: Words, salt: str) -> Words:
    """Return the hashes by which keys are grouped under a question's salt."""
    return coding.keyed_hash(words, coding.key_secret(salt, 0))


def words_with_hashes(hashes: Words, salt: str) -> Words:
    """Return the words that have these hashes, as somebody who knew the salt would find them."""
    secret = coding.key_secret(salt, 0)

    def divided(word: Words, factor: np.uint64) -> Words:
        return word * np.uint64(pow(int(factor), -1, 1 << 64))

    word = hashes ^ (hashes >> np.uint64(32))
    word = divided(word, secret.times_third) - secret.add_third
    word ^= (word >> np.uint64(29)) ^ (word >> np.uint64(58))
    word = divided(word, secret.times_second) - secret.add_second
    word ^= word >> np.uint64(32)
    return divided(word, secret.times_first) - secret.add_first


# ---- the kernel's cache --------------------------------------------------------------------------------------------

LIST_OF_COMPILED = compiled.COMPLETE


@contextmanager
def kernel_cache(compiling: Callable[[Path], object], *, parent: str) -> Iterator[Path]:
    """Have a whole cache in a folder of its own, made by `compiling` in place of the real compiler, while open."""
    before = {name: os.environ.get(name) for name in ("XDG_CACHE_HOME", "TACIT_KERNEL")}
    with ExitStack() as stack:
        os.environ |= {"XDG_CACHE_HOME": f"{parent}/caches", "TACIT_KERNEL": ""}
        for seam, value in {"kernel loaded": False, "kernel broken": False, "import the loops": compiling}.items():
            stack.enter_context(planted(seam, value))
        try:
            compiled.compile_now()
            yield compiled.cache_folder()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@contextmanager
def kernel_at_hand() -> Iterator[bool]:
    """Have the kernel's loops while open, compiled or as plain Python, whatever the course's engine.

    Yield whether they may be used.
    """
    before = os.environ.pop("TACIT_KERNEL", None)
    try:
        with interpreted_kernel() as may:
            yield may
    finally:
        if before is not None:
            os.environ["TACIT_KERNEL"] = before


def seal_cache(folder: Path) -> None:
    """Have a cache say that its files are the ones that were compiled."""
    compiled._seal(folder)


def cache_is_used() -> bool:
    """Return whether the cache would be loaded."""
    return compiled.is_ready()


def load_cache() -> bool:
    """Load the cache, and return whether that went well."""
    return compiled.load()


def compile_cache() -> None:
    """Compile into the cache, as the background process does."""
    compiled.compile_now()
