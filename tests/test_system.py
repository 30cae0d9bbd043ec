"""Every desk: what an analyst needs runs without the parts of POSIX that Windows lacks, with that system's own locks.

The process that is tried here is Linux with those parts taken away, and with a stand-in for `msvcrt` whose locks are
the system's. It shows that nothing asks for them; what Windows itself does is tried by its workflow.
"""

import subprocess
import sys

import pytest

WITHOUT = """
import os, sys, types
import fcntl as locks, pwd, grp, subprocess, tempfile, sqlite3, uuid, ctypes, concurrent.futures, multiprocessing
real = {name: getattr(locks, name) for name in ("lockf", "LOCK_EX", "LOCK_NB", "LOCK_UN")}
for name in ("fcntl", "pwd", "grp"):
    sys.modules[name] = None
for name in (
    "geteuid getuid getegid getgid fork forkpty register_at_fork pread pwrite preadv pwritev fdatasync sysconf nice "
    "sched_getaffinity fchmod fchown chown O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY"
).split():
    delattr(os, name)
del sys.modules["tempfile"].__dict__["_text_openflags"]; tempfile._text_openflags = os.O_RDWR | os.O_CREAT | os.O_EXCL
tempfile._bin_openflags = tempfile._text_openflags
tempfile._O_TMPFILE_WORKS = False

def locking(descriptor, mode, size):
    how = {1: real["LOCK_EX"] | real["LOCK_NB"], 0: real["LOCK_UN"]}[mode]
    real["lockf"](descriptor, how, size, os.lseek(descriptor, 0, os.SEEK_CUR))

if sys.argv[1] == "msvcrt":
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=1, LK_UNLCK=0)
import tacit
"""
ROWS = """
import pyarrow as pa
rows = pa.table({"id": [n // 3 for n in range(3000)], "g": ["a", "b"] * 1500, "x": [float(n % 7) for n in range(3000)]})
declared = {"x": {"between": (0, 7)}, "g": {"keys": ["a", "b"]}}
def asked(ledger):
    return tacit.table(rows, name="t", unit="id", budget=tacit.epsilon(9, delta=1e-6), ledger=ledger, columns=declared,
                       version=1)
"""
DONE = {
    "mechanisms": """
print(tacit.Laplace(sensitivity=1, epsilon=1).release(10), tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).error())
print(tacit.NoisyMax(sensitivity=1, epsilon=1).release([1, 5, 9]), tacit.compose([tacit.epsilon(1)] * 3, delta=1e-6))
""",
    "sparse vector": """
print(tacit.AboveThreshold(sensitivity=1, epsilon=1, threshold=100))
""",
    "client": 'tacit.connect; import tacit.remote; from tacit.cli.app import app; print("ready")',
    "local model": """
client, memo = tacit.local.choose, tacit.RandomizedResponse(epsilon=1)
print(memo.estimate([True, False] * 50), memo.error(people=1000))
""",
    "TRYOUT": ROWS
    + """
table = asked(tacit.TRYOUT)
print(table.group_by("g").agg(n=tacit.count(), m=tacit.mean("x")).answer(epsilon=1))
print(table.median("x").answer(epsilon=1))
""",
    "a ledger": ROWS
    + """
import tempfile, pathlib
with tempfile.TemporaryDirectory() as folder:
    os.environ["TACIT_HOME"] = folder
    first = asked(os.path.join(folder, "mine.db")).group_by("g").count().answer(epsilon=1)
    again = asked(os.path.join(folder, "mine.db")).group_by("g").count().answer(epsilon=1)
    assert again.to_dicts() == first.to_dicts() and again.facts.free, "the ledger does not remember"
    from tacit.ledger.locks import FileLocks, _HELD
    here = FileLocks(os.path.join(folder, "locks"))
    assert here.take("ab" * 32) and not here.take("ab" * 32)
    code = pathlib.Path(sys.argv[2]).read_text() + (
        "from tacit.ledger.locks import FileLocks\\n"
        f"there = FileLocks({os.path.join(folder, 'locks')!r})\\n"
        "print(there.is_free('ab' * 32), there.is_free('cd' * 32))\\n"
    )
    found = subprocess.run([sys.executable, "-c", code, "msvcrt"], capture_output=True, text=True, check=True).stdout
    assert found == "False True\\n", found
    here.let_go("ab" * 32)
    assert here.is_free("ab" * 32)
print("kept")
""",
}


def ran(what, tmp_path, locks="msvcrt"):
    (tmp_path / "without.py").write_text(WITHOUT)
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT + what, locks, str(tmp_path / "without.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", DONE)
def test_an_analysts_work_runs_without_what_windows_lacks(what, tmp_path):
    done = ran(DONE[what], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_system_without_locks_refuses_a_ledger_on_disk_before_any_charge(tmp_path):
    code = (
        ROWS
        + f"""
os.environ["TACIT_HOME"] = {str(tmp_path / "home")!r}
try:
    asked({str(tmp_path / "mine.db")!r}).count().answer(epsilon=1)
except tacit.TacitError as refused:
    print(refused)
"""
    )
    done = ran(code, tmp_path, locks="none")
    assert "locks of files are missing" in done.stdout, done.stderr


def test_where_owners_cannot_be_read_no_machine_code_is_run(tmp_path):
    code = "from tacit.engine.kernel import compiled; print(compiled.is_possible(), compiled.load())"
    assert ran(code, tmp_path).stdout == "False False\n"
