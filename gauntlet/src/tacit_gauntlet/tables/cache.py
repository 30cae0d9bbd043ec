"""The kernel's cache under attack: planted, changed or damaged machine code must never be unpickled."""

import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tacit.engine.kernel import compiled
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.targets import replaced

Attack = Callable[[Path], object]

NOBODY = 65534

_ran: list[str] = []


def _note(what: str) -> None:
    _ran.append(what)


class _Code:
    """What an attacker's file does when it is unpickled."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return _note, (self.what,)


def _like_numba(folder: Path) -> None:
    """Do what numba does on loading and compiling: unpickle every index that is there, write those that are not."""
    indexes = sorted(folder.rglob("*.nbi"))
    for index in indexes:
        pickle.loads(index.read_bytes())
    if not indexes:
        (folder / "engine").mkdir(exist_ok=True)
        (folder / "engine" / "loops.nbi").write_bytes(pickle.dumps("compiled"))


@case("F01", title="planted or damaged machine code is never unpickled, whoever owns the way to it", feature="files")
def planted_code_never_runs(size: Size) -> Evidence:
    """Give a whole cache away in every way, or damage it; then load it, and compile as the background process does."""
    attacks = _attacks(flips=8 if size == "quick" else 200)
    used, run = [], []
    for name, attack in attacks.items():
        with _whole_cache() as folder:
            attack(folder)
            if compiled.is_ready():
                used.append(name)
            _ran.clear()
            compiled.load()
            compiled.compile_now()
            run += [name] * bool(_ran)
    with _whole_cache():
        unharmed = compiled.is_ready() and compiled.load()
    details = {"attacks": len(attacks), "caches used": used, "planted code that ran": run, "unharmed used": unharmed}
    return Evidence(passed=not used and not run and unharmed, details=details)


@contextmanager
def _whole_cache() -> Iterator[Path]:
    """Have a whole cache of ours, whose files note that they were unpickled, in a private folder of its own."""
    before = {name: os.environ.get(name) for name in ("XDG_CACHE_HOME", "TACIT_KERNEL")}
    with ExitStack() as stack:
        parent = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ |= {"XDG_CACHE_HOME": f"{parent}/caches", "TACIT_KERNEL": ""}
        for name, value in {"_loaded": False, "_broken": False, "_import_loops": _like_numba}.items():
            stack.enter_context(replaced(compiled, name, value))
        try:
            compiled.compile_now()
            folder = compiled.cache_folder()
            (folder / "engine" / "loops.nbi").write_bytes(pickle.dumps(_Code("planted")))
            compiled._seal(folder)
            yield folder
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _attacks(*, flips: int) -> dict[str, Attack]:
    found: dict[str, Attack] = {
        "others may write to the folder": lambda folder: folder.chmod(0o777),
        "others may write above it": lambda folder: folder.parent.chmod(0o777),
        "others may write far above it": lambda folder: folder.parents[1].chmod(0o777),
        "others may write to a folder in it": lambda folder: (folder / "engine").chmod(0o777),
        "others may write to a file": lambda folder: (folder / "engine" / "loops.nbi").chmod(0o666),
        "a file is a link": _linked,
        "the folder is a link to one that others may write": _folder_linked,
        "another file": _added,
        "a file of the same size": _same_size,
        "no list of what was compiled": lambda folder: (folder / compiled.COMPLETE).unlink(),
    }
    if os.geteuid() == 0:
        found["another owner"] = lambda folder: os.chown(folder, NOBODY, -1)
        found["another owner above"] = lambda folder: os.chown(folder.parent, NOBODY, -1)
        found["another group above"] = _of_another_group
    return found | {f"bit {place} flipped": partial(_flip, place) for place in range(flips)}


def _added(folder: Path) -> None:
    (folder / "engine" / "more.nbi").write_bytes(pickle.dumps(_Code("more")))


def _of_another_group(folder: Path) -> None:
    os.chown(folder.parent, -1, NOBODY)
    folder.parent.chmod(0o770)


def _linked(folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    index.replace(folder.parent / "elsewhere")
    index.symlink_to(folder.parent / "elsewhere")


def _folder_linked(folder: Path) -> None:
    open_to_all = folder.parents[1] / "open"
    open_to_all.mkdir()
    folder.replace(open_to_all / folder.name)
    open_to_all.chmod(0o777)
    folder.symlink_to(open_to_all / folder.name)


def _same_size(folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    index.write_bytes(pickle.dumps(_Code("another")))
    if len(pickle.dumps(_Code("another"))) != len(pickle.dumps(_Code("planted"))):
        raise ValueError("the two should have one size")


def _flip(place: int, folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    content = bytearray(index.read_bytes())
    at = int.from_bytes(hashlib.sha256(bytes([place])).digest()[:4], "big") % (8 * len(content))
    content[at // 8] ^= 1 << at % 8
    index.write_bytes(content)
