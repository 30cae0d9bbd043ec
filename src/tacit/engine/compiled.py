"""The kernel's loops, compiled ahead: by a process of its own, into a private folder, and loaded from there.

Compiling takes seconds and nobody should wait for it, nor for it to end when Python does. So a separate process, begun
when a question first wants the kernel, compiles the loops into numba's cache; until that is complete the SQL path
answers. The folder is named by everything the machine code depends on, and holds code that will be run: one that others
may write to is not used. TACIT_KERNEL=off leaves the kernel out.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import shutil
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

log = logging.getLogger("tacit.engine")

LOOPS = tuple(Path(__file__).with_name(f"{name}_loops.py") for name in ("coding", "kernel", "row"))
COMPLETE = "complete"
KEPT_DAYS = 30
_COMPILE = "import sys; sys.path.insert(0, sys.argv[1]); from tacit.engine import compiled; compiled.compile_now()"

_turn = threading.Lock()
_loaded = False
_broken = False
_compiling: subprocess.Popen[bytes] | None = None


def is_ready() -> bool:
    """Return whether the kernel can be used without compiling anything; it depends on no data."""
    if _is_off() or _broken:
        return False
    return _loaded or _is_complete(cache_folder())


def is_loaded() -> bool:
    """Return whether this process has the loops at hand already."""
    return _loaded and not _is_off()


def load() -> bool:
    """Load the compiled loops, which takes a moment the first time; return whether they may be used."""
    global _loaded, _broken
    with _turn:
        if not _loaded and is_ready():
            try:
                _import_loops(cache_folder())
                _loaded = True
            except Exception as problem:  # noqa: BLE001 - a damaged cache only costs the quick path
                log.warning("the compiled kernel cannot be loaded: %s", type(problem).__name__)
                _broken = True
        return _loaded and not _is_off()


def start() -> None:
    """Have the loops compiled in the background, unless they are or that is under way."""
    global _compiling
    with _turn:
        if _is_off() or _broken or _loaded or not sys.executable:
            return
        if _compiling is not None and _compiling.poll() is not None:
            return  # it was tried in this process; what went wrong would go wrong again
        if _compiling is None and not _is_complete(cache_folder()):
            package_parent = str(Path(__file__).resolve().parents[2])
            _compiling = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMPILE, package_parent],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )


def compile_now() -> None:
    """Compile the loops and wait for it: what the background process does; one at a time."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_complete(folder):
            _import_loops(folder)
            sizes = {str(path.relative_to(folder)): path.stat().st_size for path in _machine_code(folder)}
            (folder / COMPLETE).write_text(json.dumps(sizes))
            _remove_old(folder)


def cache_folder() -> Path:
    """Return the folder for this version's machine code on this kind of processor."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "tacit" / _folder_name()


@cache
def _folder_name() -> str:
    """Name everything the machine code depends on."""
    sources = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in LOOPS]
    facts = (
        *(importlib.metadata.version(package) for package in ("numba", "llvmlite", "numpy")),
        *(sys.version, platform.machine(), _processor()),
        *sources,
    )
    return "kernel-" + hashlib.blake2b(repr(facts).encode(), digest_size=10).hexdigest()


def _is_off() -> bool:
    return os.environ.get("TACIT_KERNEL", "").lower() == "off"


def _is_complete(folder: Path) -> bool:
    """Whether all that was compiled is there: loading less would compile, and somebody would wait for it."""
    try:
        found = folder.stat()
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        sizes = json.loads((folder / COMPLETE).read_text())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def _machine_code(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.nb*") if path.is_file())


def _processor() -> str:
    """Return what the machine code is made for: it uses what this processor can do."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        return platform.processor()


def _import_loops(folder: Path) -> None:
    """Import the loops with numba's cache in this folder, and run each once, which loads or compiles it."""
    from numba.core import config

    before = vars(config)["CACHE_DIR"]
    vars(config)["CACHE_DIR"] = str(folder)
    try:
        from tacit.engine import coding_loops, kernel_loops, row_loops
    finally:
        vars(config)["CACHE_DIR"] = before
    _run_coding(coding_loops)
    _run_kernel(kernel_loops)
    _run_rows(row_loops)


# Each loop is run on next to nothing, with arrays of the types that it is given in use.


def _run_coding(loops: ModuleType) -> None:
    import numpy as np

    from tacit.engine.coding import as_input

    word, one = np.uint64(1), as_input(np.ones(1, dtype=np.int64))
    hashes, slots, known = np.zeros(1, dtype=np.uint64), np.full(4, -1, dtype=np.int32), np.zeros(3, dtype=np.int64)
    loops.hash_words(one, word, hashes)
    loops.refill(slots.copy(), hashes, 1)
    loops.code_words(one, 0, slots.copy(), np.zeros(1, dtype=np.int64), known.copy(), np.zeros(1, dtype=np.int64))
    loops.find_words(one, slots.copy(), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    loops.find_near(one, 0, one, np.zeros(1, dtype=np.int64))
    letter, ends = as_input(np.zeros(1, dtype=np.uint8)), np.array([0, 1])
    loops.code_texts(letter, ends, 0, word, slots.copy(), hashes, known.copy(), np.zeros(1, dtype=np.uint8))


def _run_kernel(loops: ModuleType) -> None:
    import numpy as np

    from tacit.engine.coding import as_input

    hashes, one = np.zeros(1, dtype=np.uint64), as_input(np.ones(1, dtype=np.int64))
    rows, starts = np.zeros((1, 4), dtype=np.uint32), np.zeros(3, dtype=np.int64)
    loops.scatter(hashes, one, one, np.zeros((1, 1), dtype=np.uint32), 1, starts, rows)
    rows[0, 2] = 0
    rule = loops.Rule(3, hashes, np.zeros(1, dtype=np.int64), 1, 1, np.array([3]))
    out = loops.Out(np.zeros((1, 4), dtype=np.int64), np.zeros((1, 2), dtype=np.uint32), np.zeros(1, dtype=np.int64))
    loops.sum_rows(rows, 8, 0, rule, out)


def _run_rows(loops: ModuleType) -> None:
    import numpy as np

    from tacit.engine.coding import as_input

    starts, bits = as_input(np.zeros(1, dtype=np.uint64)), as_input(np.ones(1, dtype=np.uint8))
    sums, first, grid = np.zeros(3, dtype=np.int64), np.uint64(1), loops.Grid(0.0, 1.0, 1.0, 0, 1, True)
    for keys in (as_input(np.zeros(1, dtype=np.int16)), as_input(np.zeros(1, dtype=np.int32))):
        groups = loops.Groups(keys, 0, starts)
        loops.count_rows(groups, sums)
        loops.add_floats(groups, as_input(np.zeros(1)), bits, 0, grid, first, sums)
        loops.add_words(groups, as_input(np.zeros(1, dtype=np.uint32)), first, sums)


def _remove_old(folder: Path) -> None:
    for other in folder.parent.glob("kernel-*"):
        with suppress(FileNotFoundError):  # another process removes it too
            if other != folder and time.time() - other.stat().st_mtime > KEPT_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
