"""The house rules hold: layers, walls, homes, sizes, names. Each rule is also shown to be able to fail."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import tidy_classroom as classroom_rules
from tests import tidy_gauntlet as gauntlet_rules
from tests import tidy_numbers as numbers
from tests import tidy_rules as rules
from tests import tidy_secrets as secrets
from tests import tidy_words as words
from tests.tidy_rules import Tree

PROJECT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.xdist_group("tidy")  # every rule reads the same parsed files

Rule = Callable[[Tree], list[str]]

PACKAGE_RULES: list[Rule] = [
    rules.layers,
    rules.walls,
    rules.optional_rooms,
    secrets.rounds_alone,
    rules.faces,
    rules.one_way_to_pay,
    secrets.names_of_sums,
    secrets.secret_names,
    secrets.complete_matches,
    rules.one_home,
    rules.no_other_randomness,
    rules.file_sizes,
    rules.function_sizes,
    rules.module_names,
    rules.class_names,
    rules.shallow_inheritance,
    rules.root_names,
    rules.module_docstrings,
    rules.privacy_paragraphs,
    rules.no_assert,
    numbers.chosen_numbers,
    words.words_of_messages,
    words.no_files_that_users_lack,
]

# those that also hold in the gauntlet's package, which may import any room and patches what it likes
GAUNTLET_RULES: list[Rule] = [
    rules.one_home,
    rules.no_other_randomness,
    rules.file_sizes,
    rules.function_sizes,
    rules.module_names,
    rules.class_names,
    rules.shallow_inheritance,
    rules.module_docstrings,
    rules.no_assert,
    gauntlet_rules.mutants_by_the_table,
    gauntlet_rules.black_box_cases,
]

# those that also hold in the classroom's package, which asks the product like any other
CLASSROOM_RULES: list[Rule] = [
    *GAUNTLET_RULES[:-2],
    classroom_rules.classroom_by_the_faces,
    classroom_rules.chalk_apart,
]

SHORT = "x = 1\n"
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 61

PLAIN_FACE = "from tacit.noise.bits import fresh_bytes\n"
FACE = "from tacit.noise.bits import fresh_bytes\n\n__all__ = ['fresh_bytes']\n"

# rule, and a small tree that must break it
PLANTED: list[tuple[Rule, Tree]] = [
    (words.no_files_that_users_lack, {"asking/protected_table.py": 'HINT = "see docs/guide/sql.md"\n'}),
    (rules.layers, {"noise/laplace.py": "from tacit.ledger import chain\n"}),
    (rules.layers, {"noise/laplace.py": "import tacit.plan.planner\n"}),
    (rules.layers, {"noise/laplace.py": "from ..session import Session\n"}),
    (rules.optional_rooms, {"local/client.py": "from tacit.selection.keys import keys\n"}),
    (rules.optional_rooms, {"local/central.py": "def f():\n    from tacit.engine import engine\n"}),
    (rules.optional_rooms, {"asking/paying.py": "from tacit.local import Collector\n"}),
    (rules.optional_rooms, {"plan/planner.py": "def f():\n    from tacit.learning import Holdout\n"}),
    (rules.optional_rooms, {"asking/synthesize.py": "from tacit.learning import MadeRows\n"}),
    (rules.layers, {"asking/synthesize.py": "from tacit.learning import MadeRows\n"}),
    (rules.optional_rooms, {"answer/text.py": "import tacit.auditing\n"}),
    (rules.optional_rooms, {"cli/ask.py": "from tacit.remote import connect\n"}),
    (rules.optional_rooms, {"__init__.py": "from tacit.server import Desk\n"}),
    (rules.layers, {"errors.py": "def f():\n    from tacit.privacy import loss\n"}),
    (rules.layers, {"privacy/loss.py": "import importlib\nimportlib.import_module('tacit.accounting.convert')\n"}),
    (rules.layers, {"noise/laplace.py": "import tacit\n"}),
    (rules.layers, {"noise/laplace.py": "from tacit import Laplace\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "session.py": "from tacit.noise.bits import fresh_bytes\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "session.py": "from tacit.noise import bits\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "session.py": "def f():\n    import tacit.noise.bits\n"}),
    (rules.faces, {"noise/__init__.py": SHORT}),
    (rules.faces, {"noise/__init__.py": PLAIN_FACE, "session.py": "from tacit.noise import coin\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "noise/fresh_bytes.py": SHORT}),
    (rules.faces, {"noise/__init__.py": f"__all__ = {[f'name_{n}' for n in range(200)]}\n"}),
    (rules.layers, {"noise/laplace.py": "from tacit import epsilon\n"}),
    (rules.layers, {"cellar/wine.py": "from tacit.errors import TacitError\n"}),
    (rules.layers, {"cli/demo.py": "from tacit.cellar import wine\n"}),
    (rules.walls, {"engine/duckdb.py": "from tacit.noise.bits import salt\n"}),
    (rules.walls, {"engine/duckdb.py": "def f():\n    import tacit.selection.keys\n"}),
    (rules.walls, {"release/release.py": "from tacit.tables.schema import Schema\n"}),
    (rules.walls, {"release/release.py": "from tacit.query import nodes\n"}),
    (rules.walls, {"release/release.py": "from tacit.answer.columns import noisy_columns\n"}),
    (rules.walls, {"release/release.py": "from tacit.ledger import Ledger\n"}),
    (rules.walls, {"answer/columns.py": "from tacit.exact import ExactTable\n"}),
    (rules.walls, {"answer/columns.py": "from tacit.exact import counted_name\n"}),
    (rules.walls, {"answer/columns.py": "from tacit.release import GroupedSteps\n"}),
    (rules.walls, {"answer/columns.py": "from tacit.release.release import ExactTable\n"}),
    (rules.walls, {"answer/text.py": "def f():\n    from tacit.engine import engine\n"}),
    (rules.walls, {"forecast/target.py": "import tacit.exact\n"}),
    (rules.walls, {"forecast/plan_text.py": "from .. import exact\n"}),
    (rules.walls, {"pictures/chart.py": "from tacit import exact\n"}),
    (rules.walls, {"ledger/sqlite.py": "from tacit.noise.bits import salt\n"}),
    (rules.walls, {"ledger/sqlite.py": "from tacit.plan.plan import Plan\n"}),
    (secrets.rounds_alone, {"learning/additive.py": "from tacit.exact import ExactIntegers\n"}),
    (secrets.rounds_alone, {"learning/additive.py": "def f():\n    from tacit.engine import CodedRows\n"}),
    (secrets.rounds_alone, {"learning/terms.py": "from tacit.learning.rounds import ExactIntegers\n"}),
    (secrets.rounds_alone, {"learning/terms.py": "def f(table):\n    return table.session.engine\n"}),
    (secrets.rounds_alone, {"learning/terms.py": "def f(rounds):\n    return rounds._rows.blocks\n"}),
    (rules.one_way_to_pay, {"local/central.py": "def f(ledger, table):\n    return ledger.reserve(table)\n"}),
    (rules.one_way_to_pay, {"learning/sgd.py": "def f(ledger):\n    return getattr(ledger, 'reserve')\n"}),
    (secrets.names_of_sums, {"engine/spark.py": "def f(i):\n    return f'counted_{i}'\n"}),
    (secrets.names_of_sums, {"release/release.py": "def f(table, i):\n    return table[f'k{i}']\n"}),
    (secrets.secret_names, {"plan/planner.py": "def f(epsilon):\n    exact_epsilon = epsilon\n"}),
    (secrets.secret_names, {"answer/text.py": "def show(table):\n    return table.exact_sums\n"}),
    (secrets.secret_names, {"local/domain.py": "def text(*, exact_length): ...\n"}),
    (secrets.secret_names, {"privacy/loss.py": "from tacit.numbers import exact_rational\n"}),
    (
        secrets.secret_names,
        {"__init__.py": "__all__ = ['Laplace']\n", "noise/mechanism.py": "class Laplace:\n    exact_scale: int\n"},
    ),
    (
        secrets.secret_names,
        {
            "__init__.py": "__all__ = ['audit']\n",
            "auditing/audit.py": "def audit(function, *, exact_value): ...\n",
        },
    ),
    (secrets.complete_matches, {"answer/columns.py": "match output:\n    case Sum():\n        pass\n"}),
    (
        secrets.complete_matches,
        {"answer/columns.py": "match a:\n    case Sum():\n        pass\n    case _:\n        assert_never(b)\n"},
    ),
    (words.words_of_messages, {"query/frame.py": "def f():\n    raise QueryRefused('group_by was already said')\n"}),
    (words.words_of_messages, {"plan/split.py": "raise QueryRefused(f'the best {k} of {n} keys is no choice')\n"}),
    (words.words_of_messages, {"noise/warning.py": "warnings.warn(f'{n} is so many', stacklevel=2)\n"}),
    (
        words.words_of_messages,
        {"plan/measure.py": "raise QueryRefused('use ' + ('a step' if just else 'what is left'))\n"},
    ),
    (numbers.chosen_numbers, {"plan/bounds/caps.py": "MISMATCH = 0.1\n"}),
    (numbers.chosen_numbers, {"answer/anchors.py": "PARTS = (1 / 6, 1 / 2)\n"}),
    (numbers.chosen_numbers, {"forecast/target.py": "WORTH_NAMING: Fraction = Fraction(4, 5)\n"}),
    (numbers.chosen_numbers, {"plan/bounds/chosen.py": "SMALLEST = 100\n"}),
    (numbers.chosen_numbers, {"plan/bounds/chosen.py": "".join(f"N{n} = {n}  # moves all\n" for n in range(42))}),
    (rules.one_home, {"ledger/store.py": "import secrets\n"}),
    (rules.one_home, {"ledger/chain.py": "import os\nkey = os.urandom(32)\n"}),
    (rules.one_home, {"ledger/chain.py": "from os import urandom\n"}),
    (rules.one_home, {"ledger/chain.py": "from cryptography.hazmat.primitives.ciphers import Cipher\n"}),
    (rules.one_home, {"noise/laplace.py": "from cryptography.hazmat.primitives import ciphers\n"}),
    (rules.one_home, {"noise/bits.py": "from cryptography.hazmat.primitives.asymmetric import ed25519\n"}),
    (
        rules.one_home,
        {"ledger/entry.py": "from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey\n"},
    ),
    (rules.one_home, {"plan/planner.py": "import sqlglot\n"}),
    (rules.one_home, {"engine/duckdb.py": "from pyspark.sql import SparkSession\n"}),
    (rules.one_home, {"cli/serve.py": "def f():\n    import uvicorn\n"}),
    (rules.one_home, {"query/frame.py": "import ibis.expr.types as ir\n"}),
    (rules.one_home, {"ledger/sqlite.py": "import psycopg\n"}),
    (rules.one_home, {"accounting/convert.py": "def f():\n    from scipy import stats\n"}),
    (rules.one_home, {"local/estimate.py": "def f():\n    import altair as alt\n"}),
    (rules.one_home, {"auditing/result.py": "from vl_convert import vegalite_to_html\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "import random\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "from random import gauss\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "import numpy as np\nrng = np.random.default_rng()\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "import numpy.random\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "from numpy import random\n"}),
    (rules.no_other_randomness, {"noise/laplace.py": "from numpy.random import default_rng\n"}),
    (rules.file_sizes, {"noise/laplace.py": SHORT * 601}),
    (rules.function_sizes, {"noise/laplace.py": LONG_FUNCTION}),
    (rules.module_names, {"noise/utils.py": SHORT}),
    (rules.module_names, {"common/law.py": SHORT}),
    (rules.class_names, {"ledger/ledger.py": "class LedgerManager: ...\n"}),
    (rules.class_names, {"ledger/ledger.py": "class Ledger:\n    class EntryImpl: ...\n"}),
    (rules.shallow_inheritance, {"a.py": "class A: ...\nclass B(A): ...\nclass C(B): ...\n"}),
    (
        rules.shallow_inheritance,
        {
            "errors.py": "class TacitError(Exception): ...\nclass Refused(TacitError): ...\n",
            "query/check.py": "from tacit.errors import Refused as R\nclass Unreadable(R): ...\n",
        },
    ),
    (rules.root_names, {"__init__.py": "_HOMES = {'noise': 'tacit.noise.mechanism'}\n", "noise/bits.py": SHORT}),
    (rules.root_names, {"__init__.py": "__all__ = ['errors']\n", "errors.py": SHORT}),
    (rules.module_docstrings, {"noise/bits.py": SHORT}),
    (rules.privacy_paragraphs, {"noise/laplace.py": "def add_laplace(exact):\n    '''Return noise.'''\n"}),
    (rules.privacy_paragraphs, {"noise/laplace.py": "class Laplace:\n    '''Noise.'''\n    def release(self): ...\n"}),
    (rules.privacy_paragraphs, {"selection/max.py": "def release_index(scores): ...\n"}),
    (rules.no_assert, {"privacy/loss.py": "def f(x):\n    assert x > 0\n"}),
    (
        gauntlet_rules.mutants_by_the_table,
        {"gauntlet/ledger/races.py": "@mutant('two', killed_by='L01')\ndef two(): ...\n"},
    ),
    (gauntlet_rules.mutants_by_the_table, {"gauntlet/ledger/mutants.py": "from tacit.ledger import chain\n"}),
    (gauntlet_rules.mutants_by_the_table, {"gauntlet/ledger/mutants.py": "def f():\n    import tacit.ledger.chain\n"}),
    (gauntlet_rules.mutants_by_the_table, {"gauntlet/ledger/mutants.py": "with replaced(chain, 'link', len): ...\n"}),
    (gauntlet_rules.mutants_by_the_table, {"gauntlet/ledger/mutants.py": "setattr(chain, 'link', len)\n"}),
    (gauntlet_rules.mutants_by_the_table, {"gauntlet/ledger/mutants.py": "with planted('link', len): ...\n"}),
    (
        gauntlet_rules.mutants_by_the_table,
        {
            "gauntlet/targets.py": "TARGETS: dict[str, str] = {'links': 'tacit.ledger.chain:link'}\n",
            "gauntlet/ledger/mutants.py": "link = original('link')\n",
        },
    ),
    (classroom_rules.classroom_by_the_faces, {"classroom/a.py": "from tacit.noise.bits import fresh_bytes\n"}),
    (classroom_rules.chalk_apart, {"classroom/course/claims.py": "import tacit\n"}),
    (
        classroom_rules.chalk_apart,
        {"classroom/course/claims.py": "def f():\n    from tacit.ledger import open_ledger\n"},
    ),
    (classroom_rules.classroom_by_the_faces, {"classroom/a.py": "def f():\n    import tacit.ledger.chain\n"}),
    (classroom_rules.classroom_by_the_faces, {"classroom/a.py": "from tacit.noise import no_such_name\n"}),
    (classroom_rules.classroom_by_the_faces, {"classroom/a.py": "from tacit.cli.screen import say\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/ledger/races.py": "from tacit.ledger import open_ledger\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/ledger/races.py": "def f():\n    import tacit.ledger.chain\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/local/clients.py": "from tacit.local import wire\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/ledger/races.py": "from tacit_gauntlet.targets import planted\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/ledger/races.py": "from tacit_gauntlet.tables.values import FLOATS\n"}),
    (gauntlet_rules.black_box_cases, {"gauntlet/ledger/races.py": "store = ledger._store\n"}),
    (gauntlet_rules.tests_use_the_stage, {"ledger/test_races.py": "from tacit_gauntlet.ledger import races\n"}),
    (gauntlet_rules.tests_use_the_stage, {"ledger/test_races.py": "import tacit_gauntlet.targets\n"}),
    (rules.barred_words, {"docs/guide.md": "text\nTO" + "DO: more\n"}),
    (rules.barred_words, {"Makefile": "cd /wo" + "rk/main\n"}),
]

# what the rules must let pass
ALLOWED: list[tuple[Rule, Tree]] = [
    (rules.faces, {"noise/__init__.py": FACE, "session.py": "from tacit.noise import fresh_bytes\n"}),
    (rules.faces, {"noise/__init__.py": PLAIN_FACE, "session.py": "from tacit.noise import fresh_bytes\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "session.py": "from tacit import noise\n"}),
    (rules.faces, {"noise/__init__.py": FACE, "noise/coins.py": "from tacit.noise.bits import fresh_bytes\n"}),
    (rules.layers, {"noise/laplace.py": "from tacit.privacy.law import Law\nfrom tacit.noise.bits import words\n"}),
    (rules.layers, {"cli/demo.py": "import tacit\nfrom tacit import Laplace\n", "__init__.py": "import tacit.cli\n"}),
    (rules.walls, {"ledger/sqlite.py": "from tacit.ledger.chain import head\nfrom tacit.accounting import filter\n"}),
    (rules.walls, {"release/release.py": "from tacit.exact import ExactTable\nfrom tacit.noise import laplace\n"}),
    (rules.walls, {"answer/columns.py": "from tacit.release.release import NoisyTable\n"}),
    (secrets.names_of_sums, {"exact.py": "def f(i):\n    return f'total_{i}'\n"}),
    (
        secrets.names_of_sums,
        {"engine/kernel/kernel_path.py": "def f(name, i):\n    return f'{name}_{i}', f'chapter_{i}'\n"},
    ),
    (
        secrets.complete_matches,
        {"answer/columns.py": "match a:\n    case Sum():\n        pass\n    case _:\n        assert_never(a)\n"},
    ),
    (secrets.secret_names, {"release/noisy.py": "def release(plan, exact_table): ...\n"}),
    (secrets.secret_names, {"plan/planner.py": "from tacit import exact\nexactly = 'exact_text'\n"}),
    (
        words.words_of_messages,
        {"query/check.py": "'''As was said.'''\nsaid = 'told'\nraise QueryRefused(f\"there is no column '{said}'\")\n"},
    ),
    (rules.one_home, {"noise/bits.py": "import secrets\n", "query/sql.py": "import sqlglot\n"}),
    (rules.one_home, {"engine/kernel/summing.py": "import duckdb\nimport os\nos.environ.get('X')\n"}),
    (rules.no_other_randomness, {"gauntlet/noise/mutants.py": "import random\n"}),
    (
        gauntlet_rules.mutants_by_the_table,
        {
            "gauntlet/targets.py": "TARGETS: dict[str, str] = {'link': 'tacit.ledger.chain:link'}\n",
            "gauntlet/ledger/mutants.py": "import tacit\nwith planted('link', len): ...\n",
        },
    ),
    (
        gauntlet_rules.black_box_cases,
        {
            "gauntlet/ledger/races.py": "import tacit\nimport tacit.local as local\nfrom tacit import epsilon\n"
            "from tacit.errors import LedgerError\nfrom tacit.local import Collector\n"
            "from tacit_gauntlet.stage.ledger import open_at\n",
            "gauntlet/stage/ledger.py": "from tacit.ledger import open_ledger\n",
        },
    ),
    (
        classroom_rules.classroom_by_the_faces,
        {"classroom/a.py": "import tacit\nfrom tacit import Laplace\nfrom tacit.errors import TacitError\n"},
    ),
    (
        gauntlet_rules.tests_use_the_stage,
        {"ledger/test_races.py": "from tacit_gauntlet.stage.racing import race_threads\n"},
    ),
    (gauntlet_rules.tests_use_the_stage, {"gauntlet/test_frame.py": "from tacit_gauntlet.frame import case\n"}),
    (rules.shallow_inheritance, {"errors.py": "class A(Exception): ...\nclass B(A): ...\nclass C(A): ...\n"}),
    (
        rules.privacy_paragraphs,
        {"noise/laplace.py": "def add_laplace(exact):\n    '''Noise.\n\n    Privacy: yes.\n    '''\n"},
    ),
    (rules.privacy_paragraphs, {"noise/laplace.py": "def _draw(): ...\n", "ledger/entry.py": "def release(): ...\n"}),
]


def name_of(value: object) -> str:
    return value.__name__ if callable(value) else ""


def read_tree(folder: Path) -> Tree:
    return {str(path.relative_to(folder).as_posix()): path.read_text() for path in sorted(folder.rglob("*.py"))}


def tree_beside(package: str) -> Tree:
    found = read_tree(PROJECT / package / "src" / f"tacit_{package}")
    return {f"{package}/{path}": source for path, source in found.items()}


def project_texts() -> Tree:
    places = [PROJECT / name for name in ("src", "gauntlet", "classroom", "tests", "bench", "docs")]
    files = [path for place in places for path in place.rglob("*") if path.suffix in {".py", ".md", ".toml", ".html"}]
    files += [PROJECT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".ci/run")]
    return {str(path.relative_to(PROJECT)): path.read_text() for path in files}


@pytest.mark.parametrize("rule", PACKAGE_RULES, ids=name_of)
def test_the_package_keeps_the_rule(rule: Rule) -> None:
    broken = rule(read_tree(PROJECT / "src" / "tacit"))
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("rule", GAUNTLET_RULES, ids=name_of)
def test_the_gauntlet_keeps_the_rule(rule: Rule) -> None:
    broken = rule(tree_beside("gauntlet"))
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("rule", CLASSROOM_RULES, ids=name_of)
def test_the_classroom_keeps_the_rule(rule: Rule) -> None:
    broken = rule(tree_beside("classroom"))
    assert not broken, "\n".join(broken)


def test_no_text_is_unfinished_or_speaks_of_where_it_was_written() -> None:
    broken = rules.barred_words(project_texts())
    assert not broken, "\n".join(broken)


def test_of_the_gauntlet_tests_use_the_stage() -> None:
    broken = gauntlet_rules.tests_use_the_stage(read_tree(PROJECT / "tests"))
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("folder", ["tests", "bench"])
def test_tests_and_benches_are_small_files_with_a_docstring(folder: str) -> None:
    tree = read_tree(PROJECT / folder)
    broken = rules.file_sizes(tree) + rules.module_docstrings(tree) + rules.module_names(tree)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(("rule", "tree"), PLANTED, ids=name_of)
def test_a_planted_breach_is_found_and_the_message_says_what_to_do(rule: Rule, tree: Tree) -> None:
    broken = rule(tree)
    assert len(broken) >= 1
    # what is wrong; what to do instead
    assert all(";" in message for message in broken)


@pytest.mark.parametrize(("rule", "tree"), ALLOWED, ids=name_of)
def test_what_is_allowed_passes(rule: Rule, tree: Tree) -> None:
    assert rule(tree) == []


def test_every_rule_is_shown_to_fail() -> None:
    assert {rule for rule, _ in PLANTED} == {
        *PACKAGE_RULES,
        *GAUNTLET_RULES,
        *CLASSROOM_RULES,
        gauntlet_rules.tests_use_the_stage,
        rules.barred_words,
    }
