"""The root is light, and its names are all there."""

import subprocess
import sys
from pathlib import Path

import pytest

import tacit

HEAVY = (
    "numpy",
    "duckdb",
    "ibis",
    "sqlglot",
    "pyarrow",
    "pandas",
    "polars",
    "numba",
    "flint",
    "cryptography",
    "typer",
    "rich",
)


def modules_loaded_by(code: str) -> set[str]:
    program = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in result.stdout.splitlines()}


def test_import_tacit_loads_nothing_heavy():
    assert modules_loaded_by("import tacit").isdisjoint(HEAVY)


def test_the_probe_notices_a_heavy_import():
    assert "numpy" in modules_loaded_by("import tacit, numpy")


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_root_name_resolves_to_something_documented(name: str):
    value = getattr(tacit, name)
    assert getattr(value, "__name__", repr(value).removeprefix("tacit.")) == name
    assert value.__doc__


def test_the_table_of_homes_and_the_public_names_agree():
    assert sorted(tacit._HOMES) == sorted(tacit.__all__)
    assert len(set(tacit.__all__)) == len(tacit.__all__)


def test_dir_lists_the_public_names():
    assert set(tacit.__all__) <= set(dir(tacit))


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'laplace'"):
        tacit.laplace  # noqa: B018


def test_the_version_is_the_installed_one():
    from importlib.metadata import version

    assert tacit.__version__ == version("tacit")
    assert f"\nversion: {tacit.__version__}\n" in (Path(__file__).parent.parent / "CITATION.cff").read_text()
