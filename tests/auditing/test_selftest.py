"""`tacit selftest` passes here, and each of its checks fails for an installation with a fault planted in it."""

import os
import subprocess
import sys
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest

from tacit.auditing import run_selftest, selftest
from tacit.engine.engine import EmbeddedEngine
from tacit.errors import InvalidParameter
from tacit.ledger import Ledger
from tacit.noise import ThresholdTable, bits


def finding_of(name):
    (finding,) = run_selftest([name])
    return finding


def test_a_whole_installation_passes_every_check():
    findings = list(run_selftest())
    assert [finding.name for finding in findings] == ["randomness", "thresholds", "engine", "ledger"]
    assert all(finding.passed for finding in findings), findings
    assert all(str(finding).startswith("✓ ") for finding in findings)


def test_a_check_that_there_is_not_is_refused():
    with pytest.raises(InvalidParameter, match="the checks are: randomness"):
        list(run_selftest(["luck"]))


def same_bytes(patch):
    patch.setattr(selftest, "fresh_bytes", lambda n: b"\x07" * n)


def same_key(patch):
    turn = iter(range(10**6))
    # the mark that follows a key is new every time, so that only the stream shows it
    patch.setattr(bits.os, "urandom", lambda n: bytes(32) + next(turn).to_bytes(n - 32, "big") if n > 32 else bytes(n))
    patch.setattr(selftest, "fresh_bytes", lambda n: next(turn).to_bytes(n, "big"))


def other_counter(patch):
    other = bits.modes.CTR(bytes(15) + b"\x01")
    patch.setattr(bits, "_encryptor", lambda key: bits.Cipher(bits.algorithms.AES256(key), other).encryptor())


def bytes_turned(patch):
    plain = bits.Keystream.words
    patch.setattr(bits.Keystream, "words", lambda self, n, width=64: plain(self, n, width).byteswap())


def one_off(name):
    def plant(patch):
        real = getattr(selftest, name)
        patch.setattr(selftest, name, lambda scale, width: real(scale * Fraction(1_000_001, 1_000_000), width))

    return plant


def ties_to_the_left(patch):
    """A word that equals a threshold is not extended by more bits: the published fault of cut-off samplers."""

    def settled(self, word, bits):
        return self.first + int(np.searchsorted(self._sorted, np.uint64(word)))

    patch.setattr(ThresholdTable, "settle", settled)


def path_off_by_one(path):
    class Wrong(EmbeddedEngine):
        def path_of(self, plan, *, again=False):
            return "kernel"

        def aggregate(self, plan, salt):
            right = trusted(self._source, path="sql").aggregate(plan, salt)
            if self._path == path:
                name = next(iter(right.sums))
                right.sums[name] = [int(value) + 1 for value in right.sums[name]]
            return right

    trusted = EmbeddedEngine

    def plant(patch):
        patch.setattr(selftest, "open_engine", Wrong)
        patch.setattr(selftest, "interpreted_kernel", lambda: nullcontext(True))

    return plant


def kernel_not_loaded(patch):
    """The kernel is said to be there, and SQL stands in for it when it cannot be loaded."""
    answers = iter(["kernel", "sql"])

    class Standing(EmbeddedEngine):
        def path_of(self, plan, *, again=False):
            return "sql" if self._path == "kernel" else self._path or next(answers)

    patch.setattr(selftest, "open_engine", Standing)


def everything_fits(patch):
    from tacit.accounting.filter import BudgetRule

    patch.setattr(BudgetRule, "admits", lambda *_, **__: True)


def nothing_fits(patch):
    from tacit.accounting.filter import BudgetRule

    patch.setattr(BudgetRule, "admits", lambda *_, **__: False)


def damage_unnoticed(patch):
    first = []
    real = Ledger.verify
    patch.setattr(Ledger, "verify", lambda self: first[0] if first else first.append(real(self)) or first[0])


def stopped(patch):
    def fail(*_, **__):
        raise RuntimeError("no such disk")

    patch.setattr(selftest, "open_ledger", fail)


FAULTS = [
    ("randomness", same_bytes, "the same bytes twice"),
    ("randomness", same_key, "the same random bits"),
    ("randomness", other_counter, "not that of AES-256"),
    ("randomness", bytes_turned, "not that of AES-256"),
    ("thresholds", one_off("laplace_tables"), "Laplace law differ"),
    ("thresholds", one_off("gaussian_table"), "Gaussian law differ"),
    ("thresholds", ties_to_the_left, "differs from the exact one"),
    ("engine", path_off_by_one("patient"), "SQL and the patient path disagree"),
    ("engine", path_off_by_one("kernel"), "SQL and the kernel disagree"),
    ("compiled", path_off_by_one("kernel"), "SQL and the compiled kernel disagree"),
    ("compiled", kernel_not_loaded, "cannot be loaded"),
    ("ledger", everything_fits, "beyond the budget was admitted"),
    ("ledger", nothing_fits, "a charge that fits was refused"),
    ("ledger", damage_unnoticed, "a changed entry was not noticed"),
    ("ledger", stopped, "stopped with RuntimeError: no such disk"),
]


@pytest.mark.parametrize(("name", "plant", "said"), FAULTS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_planted_fault_is_found_by_its_check(name, plant, said, monkeypatch):
    assert finding_of(name).passed
    plant(monkeypatch)
    found = finding_of(name)
    assert not found.passed
    assert said in found.words
    assert str(found).startswith(f"✗ {name}: ")


def test_every_check_has_a_fault_that_it_finds():
    assert {name for name, _, _ in FAULTS} == {*selftest.CHECKS, *selftest.MORE_CHECKS}


def test_a_kernel_that_is_not_compiled_is_not_said_to_be_checked():
    words = finding_of("engine").words  # the tests have it switched off
    assert "kernel not checked" in words
    assert "SQL and the patient path agree on 50 rows" in words


INTERPRETED = """
import sys
import numpy as np
from tacit.auditing import run_selftest
from tacit.engine.kernel import summing
if {plant}:
    real = summing.joined_limbs
    def joined(table, columns):
        return [sums + 1 for sums in real(table, columns)]
    summing.joined_limbs = joined
print(*run_selftest(["engine"]))
print([name for name in sys.modules if name.endswith("loops") or name == "numba"])
"""


@pytest.mark.parametrize("plant", [False, True])
def test_where_nothing_is_compiled_the_loops_run_as_python_and_leave_no_trace(plant, tmp_path):
    tmp_path.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", INTERPRETED.format(plant=plant)],
        env={**os.environ, "TACIT_KERNEL": "", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    line, left = ran.stdout.splitlines()
    assert ran.stderr == ""
    assert left == "[]"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    if plant:
        assert "✗ engine: SQL and the kernel disagree" in line
    else:
        assert "✓ engine: SQL, the patient path and the kernel agree on 50 rows" in line


MEANWHILE = """
import threading
from tacit.engine import interpreted_kernel
from tacit.engine.kernel import compiled
loaded = []
other = threading.Thread(target=lambda: loaded.append(compiled.load()))
with interpreted_kernel() as may_be_used:
    assert may_be_used and compiled.load()
    other.start()
    other.join(1)
    print(loaded)
other.join()
print(loaded)
"""


def test_questions_of_other_threads_never_meet_the_loops_that_run_as_python(tmp_path):
    tmp_path.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, "-c", MEANWHILE],
        env={**os.environ, "TACIT_KERNEL": "", "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "[]\n[False]\n"


def test_nothing_of_the_gauntlet_is_needed():
    code = "import sys; sys.modules['tacit_gauntlet'] = None; from tacit.auditing import run_selftest as run"
    ran = subprocess.run([sys.executable, "-c", code + "; print(*run())"], capture_output=True, text=True, check=True)
    assert ran.stdout.count("✓") == len(selftest.CHECKS)
