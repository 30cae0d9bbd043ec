"""An installation that lacks a package is refused before the charge: a process in which it cannot be imported."""

import subprocess
import sys

import pytest

from tacit.asking.paying import NEEDED

ASKING = """
import sys, warnings
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
missing, asked = sys.argv[1:]
class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == missing or name.startswith(missing + "."):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import pyarrow as pa
import tacit
from tacit.asking import paying
rows = pa.table({"id": [n // 3 for n in range(600)], "g": ["a", "b"] * 300, "x": [float(n % 7) for n in range(600)]})
declared = {"x": {"between": (0, 7)}, "g": {"keys": ["a", "b"]}}
budget = tacit.epsilon(9, delta=1e-6)
table = tacit.table(rows, name="t", unit="id", budget=budget, ledger=tacit.TRYOUT, columns=declared)
loaded, failing_alike = set(), paying.failing_alike
@contextmanager
def watched(charge):
    before = set(sys.modules)
    try:
        with failing_alike(charge):
            yield
    finally:
        loaded.update(name.split(".")[0] for name in set(sys.modules) - before)
paying.failing_alike = watched
try:
    if asked == "questions":
        str(table.count().answer(epsilon=1))
        table.group_by("g").mean("x").answer(epsilon=1, accept_noise=True)
        table.median("x").answer(epsilon=1)
        table.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g").answer(epsilon=1)
    else:
        from tacit.learning import AdditiveRegressor, LinearRegression
        AdditiveRegressor(epsilon=1).fit(table, target="x", features=["g"])
        LinearRegression(epsilon=1).fit(table, target="x", features=["g"])
    said = "answered"
except tacit.TacitError as problem:
    said = f"{type(problem).__name__}: {problem}".splitlines()[0]
charges = sum(entry.kind == "charge" for entry in table.session.ledger.entries())
print(charges, said, sorted(loaded - set(sys.stdlib_module_names)), sep="|")
"""
# numba looks for these, and does without them
OPTIONAL = {"yaml", "cffi", "pycparser", "scipy", "charset_normalizer"}


def asked(missing, what):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASKING, missing, what], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1].split("|")


@pytest.mark.parametrize("missing", ["pyarrow.dataset", "rich"])
def test_what_an_installation_lacks_is_found_before_the_charge(missing):
    charges, said, _ = asked(missing, "questions")
    assert charges == "0"
    assert said.startswith(f"SelfTestFailed: this installation lacks {missing}, so it cannot answer")


@pytest.mark.parametrize("what", ["questions", "models"])
def test_whatever_is_loaded_after_a_charge_was_looked_for_before_it(what):
    charges, said, loaded = asked("no_such_package", what)
    assert int(charges) > 0
    assert said == "answered"
    tops = {name.split(".")[0] for name in NEEDED} | OPTIONAL | {"tacit"}
    unknown = {name for name in eval(loaded) if not name.startswith("_")} - tops
    assert not unknown, "add them to NEEDED in paying.py"


@pytest.mark.parametrize("package", ["altair", "ibis", "llvmlite", "numba", "pandas"])
def test_packages_that_questions_do_without_are_not_asked_for(package):
    assert asked(package, "questions")[1] == "answered"


def test_a_frame_of_pandas_is_refused_in_words_where_it_is_not_installed():
    code = (
        "import sys, pyarrow, tacit\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'pandas':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "table = tacit.table(pyarrow.table({'id': [1, 2]}), unit='id', budget=tacit.epsilon(2), ledger=tacit.TRYOUT)\n"
        "answer = table.count().answer(epsilon=1)\n"
        "try:\n"
        "    answer.to_pandas()\n"
        "except tacit.InvalidParameter as refused:\n"
        "    print(str(refused).splitlines()[0])\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["pandas is not installed"], done.stderr
