"""Nobody waits for the kernel to be compiled: until it is, the SQL path answers, and where it cannot be, that stays."""

import fcntl
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import ClassVar

import pytest

from tacit.engine import compiled
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


@pytest.mark.parametrize("harm", ["others may write", "a file is gone", "a file is cut"])
def test_a_cache_that_is_not_whole_and_private_is_not_used(harm, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", False)
    monkeypatch.setattr(compiled, "_broken", False)
    monkeypatch.delenv("TACIT_KERNEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = compiled.cache_folder()
    folder.mkdir(parents=True, mode=0o700)
    victim = folder / "loops.nbc"
    victim.write_bytes(b"machine code")
    (folder / compiled.COMPLETE).write_text(json.dumps({victim.name: victim.stat().st_size}))
    assert compiled.is_ready()
    if harm == "others may write":
        folder.chmod(0o777)
    elif harm == "a file is gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-1])
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
