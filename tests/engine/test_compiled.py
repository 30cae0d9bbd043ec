"""Nobody waits for the kernel to be compiled: until it is, the SQL path answers, and where it cannot be, that stays."""

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from typing import ClassVar

import pytest

from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import compiled
from tacit.query.frame import median
from tests.engine.exact import as_table, question

ROWS = [(1, "a", 3, 0.5), (2, "a", 4, 1.5)]


class Started:
    """Stands in for the background process."""

    commands: ClassVar[list] = []

    def __init__(self, command, **words):
        self.commands.append((command, words))

    def poll(self):
        return None


@pytest.fixture
def nothing_compiled(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_KERNEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(compiled, "_loaded", False)
    monkeypatch.setattr(compiled, "_compiling", None)
    monkeypatch.setattr(compiled, "shared_folder", lambda: tmp_path / "environment" / "kernel")
    monkeypatch.setattr(Started, "commands", [])
    monkeypatch.setattr(subprocess, "Popen", Started)


def path_of(asked):
    return asked.session.engine.path_of(asked.plan(epsilon=1).plan)


@pytest.mark.usefixtures("nothing_compiled")
def test_until_it_is_compiled_sql_answers_and_one_process_of_its_own_compiles():
    asked = question(as_table(ROWS))
    assert path_of(asked) == "sql"
    assert not Started.commands  # a plan starts nothing
    for epsilon in (1, 2):
        asked.answer(epsilon=epsilon)
    ((command, words),) = Started.commands
    assert command[0] == sys.executable
    assert words["start_new_session"]  # so that it neither ends with us nor holds us up


@pytest.mark.usefixtures("nothing_compiled")
def test_switched_off_it_is_never_compiled(monkeypatch):
    monkeypatch.setenv("TACIT_KERNEL", "off")
    question(as_table(ROWS)).answer(epsilon=1)
    assert not Started.commands


@pytest.mark.usefixtures("kernel")
def test_once_compiled_it_is_used_and_text_keyed_rows_that_are_units_stay_in_sql():
    asked = question(as_table(ROWS))
    assert path_of(asked) == "kernel"
    assert asked.session.engine.path_of(replace(asked.plan(epsilon=1).plan, unit=None)) == "sql"


def test_sql_takes_what_the_kernel_cannot_run_even_if_the_kernel_is_wanted():
    """An engine that ran it on the kernel would have no values to draw quantiles from."""
    asked = question(as_table(ROWS), {"middle": median("x", of="rows")}, rows_per_unit=2, groups_per_unit=2)
    engine, plan = EmbeddedEngine(asked.session.engine.source, path="kernel"), asked.plan(epsilon=1, delta=1e-7).plan
    assert engine.path_of(plan) == "sql"
    assert engine.path_of(question(as_table(ROWS)).plan(epsilon=1, delta=1e-7).plan) == "kernel"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A whole cache, of two files that stand in for machine code, and how often it was compiled."""
    times = []

    def compile_into(folder):
        times.append(folder)
        (folder / "engine").mkdir(exist_ok=True)
        for name in ("loops.nbi", "loops.1.nbc"):
            (folder / "engine" / name).write_bytes(b"machine code")

    monkeypatch.setattr(compiled, "_loaded", False)
    monkeypatch.setattr(compiled, "_broken", False)
    monkeypatch.setattr(compiled, "_import_loops", compile_into)
    monkeypatch.setattr(compiled, "shared_folder", lambda: tmp_path / "environment" / "kernel")
    monkeypatch.delenv("TACIT_KERNEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    os_umask = os.umask(0o002)  # as on systems where a group may write to what its members make
    try:
        compiled.compile_now()
    finally:
        os.umask(os_umask)
    assert compiled.is_ready()
    return compiled.cache_folder(), times


HARMS = {
    "others may write": lambda folder: folder.chmod(0o777),
    "others may write above": lambda folder: folder.parent.chmod(0o777),
    "others may write to a file": lambda folder: (folder / "engine" / "loops.nbi").chmod(0o666),
    "a file is gone": lambda folder: (folder / "engine" / "loops.nbi").unlink(),
    "a file is cut": lambda folder: (folder / "engine" / "loops.nbi").write_bytes(b"machine cod"),
    "a bit is flipped": lambda folder: (folder / "engine" / "loops.1.nbc").write_bytes(b"machine codd"),
    "a file is added": lambda folder: (folder / "engine" / "more.nbi").write_bytes(b"machine code"),
    "the list is damaged": lambda folder: (folder / compiled.COMPLETE).write_text("{"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_cache_that_is_not_whole_and_private_is_not_used(harm, kept):
    HARMS[harm](kept[0])
    assert not compiled.is_ready()
    assert not compiled.load()


@pytest.mark.parametrize("harm", [name for name in HARMS if not name.startswith("others may write")])
def test_what_is_damaged_is_cleared_and_compiled_anew(harm, kept):
    folder, times = kept
    HARMS[harm](folder)
    compiled.compile_now()
    assert len(times) == 2
    assert compiled.is_ready()
    assert not (folder / "engine" / "more.nbi").exists()


@pytest.fixture
def at_usual_priority(monkeypatch):
    given = []
    monkeypatch.setattr(os, "nice", given.append)
    return given


def test_it_is_compiled_at_the_lowest_priority_once_for_all_homes_of_an_installation(
    kept, at_usual_priority, tmp_path, monkeypatch
):
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(Started, "commands", [])
    compiled.compile_quietly()
    assert at_usual_priority == [19]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another home"))
    assert not compiled.is_ready()
    compiled.start()
    assert compiled.is_ready()
    assert (len(kept[1]), Started.commands) == (1, [])


@pytest.mark.usefixtures("at_usual_priority")
@pytest.mark.parametrize("harm", HARMS)
def test_what_others_could_have_put_beside_an_installation_is_not_copied(harm, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(Started, "commands", [])
    compiled.compile_quietly()
    HARMS[harm](compiled.shared_folder())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another home"))
    compiled.start()
    assert not compiled.is_ready()


def test_nothing_is_compiled_into_a_folder_that_others_may_write_to_nor_is_a_process_begun(kept, monkeypatch):
    folder, times = kept
    folder.parent.chmod(0o777)
    compiled.compile_now()
    assert len(times) == 1
    monkeypatch.setattr(compiled, "_compiling", None)
    monkeypatch.setattr(Started, "commands", [])
    monkeypatch.setattr(subprocess, "Popen", Started)
    compiled.start()
    assert not Started.commands


@pytest.mark.usefixtures("nothing_compiled")
def test_the_compiling_process_starts_where_no_file_of_anyone_is_read():
    compiled.start()
    ((command, words),) = Started.commands
    assert "-P" in command
    assert words["cwd"] == "/"


@pytest.mark.usefixtures("nothing_compiled")
def test_what_the_compiling_process_runs_is_there(monkeypatch):
    """A program kept as text is not moved with its module: its parent folder and its import are tried here."""
    compiled.start()
    ((command, words),) = Started.commands
    *before, program, parent = command
    assert program.endswith("; compile_quietly()")
    asked = program.removesuffix("compile_quietly()") + "print(sys.modules[compile_quietly.__module__].__file__)"
    monkeypatch.undo()
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([*before, asked, parent], capture_output=True, text=True, cwd=words["cwd"], env=clean)
    assert (ran.stdout.strip(), ran.returncode) == (compiled.__file__, 0), ran.stderr


@pytest.mark.parametrize(
    ("flags", "passed"), [(["-I"], ["-I"]), (["-E"], ["-E"]), (["-s", "-E"], ["-E", "-s"]), ([], [])]
)
def test_an_interpreter_that_leaves_things_out_passes_that_on(flags, passed):
    code = f"import sys; sys.path[:0] = {sys.path!r}; from tacit.engine.kernel.compiled import _own_flags as flags"
    code += "; print(flags())"
    ran = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{passed}\n"


def test_the_environment_cannot_name_another_cache(tmp_path):
    code = """
import os, tacit.engine.kernel.compiled as c
from pathlib import Path
try:
    for run in [name for name in vars(c) if name.startswith("_run_")]:  # what would compile, for half a minute
        setattr(c, run, lambda *_: None)
    c._import_loops(Path(os.environ["OURS"]))
    from tacit.engine.kernel import coding_loops
    print(coding_loops.hash_words._cache.cache_path.startswith(os.environ["OURS"]))
except Exception as problem:
    print(type(problem).__name__)
"""
    (tmp_path / "ours").mkdir()
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "theirs"), "NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    environment = os.environ | settings | {"OURS": str(tmp_path / "ours"), "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ran.stdout == "True\n"
    assert not (tmp_path / "theirs").exists()


@pytest.mark.parametrize("home", ["shared", "read-only", "none", "private"])
def test_a_home_that_is_not_ours_alone_has_its_cache_among_temporary_files(home, tmp_path, monkeypatch):
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "home").chmod({"shared": 0o777}.get(home, 0o700))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path if home == "none" else str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(compiled, "_loaded", False)
    if home == "read-only":
        monkeypatch.setattr(os, "access", lambda *_: False)
    expected = (
        tmp_path / "home" / ".cache" / "tacit" if home == "private" else tmp_path / "tmp" / f"tacit-{os.geteuid()}"
    )
    assert compiled.cache_folder().parent == expected
    assert not compiled.is_ready()


@pytest.mark.usefixtures("kernel")
def test_a_cache_that_cannot_be_loaded_only_costs_the_quick_path(monkeypatch):
    def broken(_):
        raise ImportError("damaged")

    monkeypatch.setattr(compiled, "_loaded", False)
    monkeypatch.setattr(compiled, "_broken", False)
    monkeypatch.setattr(compiled, "_import_loops", broken)
    asked = question(as_table(ROWS))
    assert asked.answer(epsilon=1) is not None
    assert path_of(asked) == "sql"


def test_importing_the_door_imports_no_numba():
    code = "import sys, tacit; tacit.table; assert 'numba' not in sys.modules"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


ASK = """
import tacit
rows = {"id": [1, 2], "g": ["a", "a"]}
import pyarrow as pa
t = tacit.table(pa.table(rows), unit="id", groups_per_unit=1, budget=tacit.epsilon(1, delta=1e-6), ledger=":memory:")
print(t.group_by("g", keys=["a"]).count_units().answer(epsilon=1).facts.free)
"""


@pytest.mark.slow
def test_python_ends_at_once_while_the_process_compiles_and_the_next_one_loads_what_it_made(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = compiled.cache_folder()
    folder.mkdir(parents=True, mode=0o700)
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TACIT_KERNEL": "",
    }
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # so that the process is not done before we have looked
        ran = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, env=environment, check=True)
        assert (ran.stdout, ran.stderr) == ("False\n", "")
        assert not (folder / compiled.COMPLETE).exists()
    until = time.monotonic() + 1800
    while not (folder / compiled.COMPLETE).exists():
        assert time.monotonic() < until
        time.sleep(0.5)


@pytest.mark.usefixtures("kernel")
def test_a_plan_says_which_path_it_would_take(monkeypatch):
    asked = question(as_table(ROWS))
    assert "\nEngine: the compiled kernel.\n" in str(asked.plan(epsilon=1))
    monkeypatch.setenv("TACIT_KERNEL", "off")
    assert "\nEngine: SQL.\n" in str(asked.plan(epsilon=1))
