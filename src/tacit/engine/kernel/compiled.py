"""The kernel's loops, compiled ahead: by a separate process, into a private folder, and loaded from there.

Until that process, begun when a question first wants the kernel, is done, SQL answers; without numba (the extra `fast`)
it always does. The process takes one core at the lowest priority, once for an installation: what it compiled stays
beside the installed packages, and every home copies it. A folder is named by all that the machine code depends on, and
holds code that will be run: it is used only if other users cannot change it, on the whole way there, and if every file
equals the compiled one, byte for byte. TACIT_KERNEL=off leaves the kernel out.
"""

import builtins
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
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from tacit.numbers import read_json
from tacit.system import PLAIN, fault_of, is_ours, lock_file, make_folder, others_may_write, user_number

log: logging.Logger = logging.getLogger("tacit.engine")

LOOPS = tuple(Path(__file__).with_name(name) for name in ("coding_loops.py", "loops.py", "scaling_loops.py"))
COMPLETE, LOCK = "complete", "lock"
KEPT_DAYS = 30
LOWEST = 19  # of the priorities of a POSIX system
_COMPILE = f"import sys; sys.path.insert(0, sys.argv[1]); from {__name__} import compile_quietly; compile_quietly()"

_turn = threading.RLock()
_loaded = False
_broken = False
_compiling: subprocess.Popen[bytes] | None = None
_warned = False


def is_ready() -> bool:
    """Return whether the kernel can be used without compiling anything; this depends on no data."""
    if why_off() or _broken:
        return False
    return _loaded or _is_complete(cache_folder())


def why_off() -> str | None:
    """Return why SQL answers and no loops are compiled here; None if they can be."""
    if _is_off():
        return "TACIT_KERNEL is off"
    return None if _has_numba() else "numba is not installed; for large tables: pip install 'tacit[fast]'"


@cache
def _has_numba() -> bool:
    """Return whether numba can be found; it is not loaded for that."""
    try:
        return all(find_spec(name) and importlib.metadata.version(name) for name in ("numba", "llvmlite"))
    except (ImportError, ValueError):
        return False


def is_possible() -> bool:
    """Return whether the loops are compiled, or can be: they are not off, and a private folder is possible."""
    if why_off() or _broken:
        return False
    try:
        make_folder(cache_folder())
    except OSError:
        return False
    return _is_private(cache_folder())


def is_coming() -> bool:
    """Return whether the loops are not compiled yet, and can be."""
    return is_possible() and not is_ready()


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
        return _loaded and not why_off()


def warm_up() -> None:
    """Load the compiled loops, or start compiling them: for a process that will be asked often."""
    if not load():
        start()


@contextmanager
def interpreted_kernel() -> Iterator[bool]:
    """Run the loops as plain Python in this block, if they are not loaded, and yield whether the kernel may be used:
    for checking a few rows before compiling."""
    global _loaded
    with _turn:  # other threads wait to load the loops, and never meet these
        if _loaded or _is_off():
            yield not _is_off()
            return
        names = {f"{__package__}.{path.stem}": path for path in LOOPS}
        before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
        try:
            for name, path in names.items():
                _show_as(name, _as_python(name, path))
            _loaded = True
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # hashes wrap around
                yield True
        finally:
            _loaded = False
            for name in names:
                _show_as(name, before.get(name))


def _as_python(name: str, path: Path) -> ModuleType:
    """Return a module of loops with a `numba.njit` that leaves functions unchanged; numba is not imported."""
    stand_in = ModuleType("numba")
    vars(stand_in)["njit"] = lambda function=None, **_: function or (lambda loop: loop)

    def importer(wanted: str, *rest: Any, **options: Any) -> Any:
        return stand_in if wanted == "numba" else __import__(wanted, *rest, **options)

    module = ModuleType(name)
    module.__file__ = str(path)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": importer}
    exec(compile(path.read_text(), str(path), "exec"), vars(module))  # noqa: S102 - a file of this package
    return module


def _show_as(name: str, module: ModuleType | None) -> None:
    """Let a name of this package mean a module, or none until it is imported."""
    package = sys.modules[str(__package__)]
    if module is not None:
        sys.modules[name] = module
        setattr(package, name.rpartition(".")[2], module)
        return
    sys.modules.pop(name, None)
    vars(package).pop(name.rpartition(".")[2], None)


def start() -> None:
    """Have the loops compiled in the background, unless they are or that is under way."""
    global _compiling
    with _turn:
        if why_off() or _broken or _loaded or not sys.executable:
            return
        if _compiling is not None and _compiling.poll() is not None:
            return  # it was tried in this process; the same failure would come again
        folder = cache_folder()
        if _compiling is None and _is_private(folder) and not _is_complete(folder) and not _copied(folder):
            log.info("compiling the kernel once, on one core at the lowest priority; SQL answers until it is done")
            package_parent = str(Path(__file__).resolve().parents[__name__.count(".")])
            _compiling = subprocess.Popen(
                [sys.executable, *_own_flags(), "-P", "-c", _COMPILE, package_parent],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",  # numba takes settings from a file in the folder it is started in
            )


def compile_now() -> None:
    """Compile the loops and wait for it, unless others could change the result; one process at a time."""
    folder = cache_folder()
    make_folder(folder)
    if not _is_private(folder):
        return
    with _open_new(folder / LOCK) as lock:
        lock_file(lock.fileno())
        if not _is_complete(folder):
            _clear(folder)  # what is there may be damaged or planted, and numba would unpickle it
            _import_loops(folder)
            _seal(folder)
            _remove_old(folder)


def compile_quietly() -> None:
    """Compile the loops at the lowest priority, in a process of its own, and leave a copy for other homes."""
    with suppress(AttributeError, OSError):  # a system without priorities
        os.nice(LOWEST)
    compile_now()
    folder, shared = cache_folder(), shared_folder()
    if folder != shared and _is_complete(folder) and _could_be_ours(shared) and not _is_complete(shared):
        shared.mkdir(parents=True, exist_ok=True)
        _copy(folder, shared)
        _remove_old(shared)


def _copied(folder: Path) -> bool:
    """Copy what this installation has compiled, for whichever home, if only we or the system could have written it."""
    shared = shared_folder()
    if shared == folder or not _is_complete(shared):
        return False
    try:
        make_folder(folder)
        _copy(shared, folder)
    except OSError:
        return False
    return _is_complete(folder)


def _copy(source: Path, target: Path) -> None:
    """Copy compiled files, and seal them by their own digests: a copy that differs is not complete."""
    with _open_new(target / LOCK) as lock:
        lock_file(lock.fileno())
        _clear(target)
        digests = read_json(_content(source / COMPLETE))
        for name in digests:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(_content(source / name))
        if _digests(target) == digests:
            _seal(target, readable=target == shared_folder())


def shared_folder() -> Path:
    """Return the folder in which machine code stays for all homes: the environment's own, or the system's."""
    own = Path(sys.prefix) if sys.prefix != sys.base_prefix else Path("/")
    return own / "var" / "cache" / "tacit" / _folder_name()


def cache_folder() -> Path:
    """Return the folder for machine code: in XDG_CACHE_HOME, in .cache, or if that cannot be private beside temporary
    files."""
    said = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(said):
        return Path(said) / "tacit" / _folder_name()
    usual = Path(os.path.expanduser("~")) / ".cache" / "tacit"
    if usual.is_absolute() and _could_be_ours(usual):
        return usual / _folder_name()
    return Path(tempfile.gettempdir()) / f"tacit-{user_number()}" / _folder_name()


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


def _could_be_ours(folder: Path) -> bool:
    try:
        existing = next(each for each in (folder, *folder.parents) if each.exists())
        return fault_of(existing) is None and os.access(existing, os.W_OK | os.X_OK)
    except OSError:
        return False


def _own_flags() -> list[str]:
    """Return the flags by which this interpreter leaves things out, so that the compiling one does too."""
    flags = sys.flags
    return ["-I"] if flags.isolated else ["-E"] * flags.ignore_environment + ["-s"] * flags.no_user_site


def _is_private(folder: Path) -> bool:
    """Whether only we can change the content of the folder; said once where others can."""
    global _warned
    try:
        fault = fault_of(folder)
    except OSError as problem:
        fault = f"it cannot be looked at ({problem.strerror})"
    if fault is not None and not _warned:
        _warned = True
        log.info("no kernel is kept in %s: %s; answers are computed in SQL, more slowly", folder, fault)
    return fault is None


def _is_complete(folder: Path) -> bool:
    """Whether all compiled files are there, unchanged and ours: only then may they be unpickled and run."""
    try:
        return folder.is_dir() and _is_private(folder) and read_json(_content(folder / COMPLETE)) == _digests(folder)
    except (OSError, ValueError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file in the folder; ValueError if one is not a plain file of ours."""
    found = {}
    for place, folders, files in os.walk(folder, onerror=_raise):
        for name in folders:
            _require_ours(os.lstat(Path(place, name)), stat.S_IFDIR)
        for name in files:
            path = Path(place, name)
            if path not in (folder / COMPLETE, folder / LOCK):
                found[str(path.relative_to(folder))] = hashlib.sha256(_content(path)).hexdigest()
    return found


def _content(path: Path) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | PLAIN), "rb") as file:
        _require_ours(os.fstat(file.fileno()), stat.S_IFREG)
        return file.read()


def _require_ours(found: os.stat_result, kind: int) -> None:
    if stat.S_IFMT(found.st_mode) != kind or not is_ours(found) or others_may_write(found):
        raise ValueError("not a file of ours alone")


def _raise(problem: OSError) -> None:
    raise problem


def _open_new(path: Path) -> IO[str]:
    """Open a private file for writing that is not a link."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | PLAIN, 0o600), "w")


def _clear(folder: Path) -> None:
    """Remove all but the lock."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.name != LOCK:
            os.unlink(entry.path)


def _seal(folder: Path, *, readable: bool = False) -> None:
    """Write down what was compiled, once all of it is there."""
    more = 0o055 if readable else 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chmod(Path(place, name), 0o700 | more if name in folders else 0o600 | more & 0o044)  # with any umask
    compiled, unfinished = _digests(folder), folder / f"{COMPLETE}.new"
    with _open_new(unfinished) as file:
        json.dump(compiled, file)
    os.chmod(unfinished, 0o600 | more & 0o044)
    unfinished.replace(folder / COMPLETE)


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

    ours = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}  # the environment may name other folders, and code
    before = {name: value for name, value in vars(config).items() if name in ours}
    vars(config).update(ours)
    try:
        from tacit.engine.kernel import coding_loops, loops, scaling_loops
    finally:
        vars(config).update(before)
    for module in (coding_loops, loops, scaling_loops):
        _require_kept_in(folder, module)
    _run_coding(coding_loops)
    _run_kernel(loops)
    _run_vectors(loops, scaling_loops)


def _require_kept_in(folder: Path, loops: ModuleType) -> None:
    """Refuse loops with machine code that numba would look for elsewhere."""
    paths = [loop._cache.cache_path for loop in vars(loops).values() if hasattr(loop, "_cache")]
    kept = [path for path in paths if path is not None]  # loops that are compiled into others are not kept
    if not kept or not all(Path(path).is_relative_to(folder) for path in kept):
        raise ImportError("numba keeps machine code elsewhere")


# Every loop is run on tiny arrays of the types that it is given in use.


def _run_coding(loops: ModuleType) -> None:
    import numpy as np

    from tacit.engine.kernel.coding import as_input, make_secret

    secret, one = make_secret("", ""), as_input(np.ones(1, dtype=np.int64))
    hashes, slots, known = np.zeros(1, dtype=np.uint64), np.full(4, -1, dtype=np.int32), np.zeros(3, dtype=np.int64)
    loops.hash_words(one, secret, hashes)
    loops.refill(slots.copy(), hashes, 1)
    words = np.zeros(1, dtype=np.int64)
    loops.code_words(one, 0, secret, slots.copy(), words.copy(), known.copy(), words.copy())
    letter, ends = as_input(np.zeros(1, dtype=np.uint8)), np.array([0, 1])
    loops.hash_texts(letter, as_input(ends), secret, hashes)
    arena = np.zeros(1, dtype=np.uint8)
    loops.find_texts(letter, as_input(ends), secret, slots.copy(), hashes, known.copy(), arena, words.copy())
    loops.code_texts(letter, ends, 0, secret, slots.copy(), hashes, known.copy(), arena)


def _run_kernel(loops: ModuleType) -> None:
    import numpy as np

    from tacit.engine.kernel.coding import as_input

    hashes, one = np.zeros(1, dtype=np.uint64), as_input(np.ones(1, dtype=np.int64))
    rows, starts = np.zeros((1, 4), dtype=np.uint32), np.zeros(3, dtype=np.int64)
    loops.scatter(hashes, one, one, np.zeros((1, 1), dtype=np.uint32), 1, starts, rows)
    rows[0, 2] = 0
    loops.sum_rows(rows, starts, 8, 0, _rule(loops), np.zeros((1, 4), dtype=np.int64))


def _rule(loops: ModuleType) -> Any:
    import numpy as np

    hashes = np.zeros(1, dtype=np.uint64)
    return loops.BoundingRule(3, hashes, np.zeros(1, dtype=np.int64), 1, 1)


def _run_vectors(loops: ModuleType, scaling_loops: ModuleType) -> None:
    import numpy as np

    one, rows = np.ones(1, dtype=np.int64), np.zeros((1, 4), dtype=np.uint32)
    vectors, out = np.zeros((scaling_loops.TAIL_SHIFT + 1, 1), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    out = scaling_loops.Result(out, out, out)
    scaling_loops.sum_vectors(rows, 8, 0, _rule(loops), 0, vectors, -one, 0 * one, out)


def _remove_old(folder: Path) -> None:
    for other in folder.parent.glob("kernel-*"):
        with suppress(FileNotFoundError):  # another process removes it too
            if other != folder and time.time() - other.stat().st_mtime > KEPT_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
