"""The gauntlet and the classroom are separate distributions, at the product's version.

The product has no part of either.
"""

import ast
import tomllib
from pathlib import Path

import pytest

import tacit

PROJECT = Path(__file__).resolve().parent.parent.parent
PRODUCT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
BESIDE = {name: tomllib.loads((PROJECT / name / "pyproject.toml").read_text()) for name in ("gauntlet", "classroom")}


@pytest.mark.parametrize("package", BESIDE)
def test_all_distributions_take_their_version_from_one_line(package):
    product, other = (each["tool"]["hatch"]["version"]["path"] for each in (PRODUCT, BESIDE[package]))
    assert (PROJECT / package / other).resolve() == (PROJECT / product).resolve() == Path(tacit.__file__).resolve()


@pytest.mark.parametrize("package", BESIDE)
def test_a_package_beside_the_product_needs_the_product_of_its_version(package):
    assert f"tacit=={tacit.__version__}" in BESIDE[package]["project"]["dependencies"]


def test_the_products_wheel_has_only_the_product():
    wheel = PRODUCT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/tacit"]
    assert all(source.startswith("docs/") for source in wheel["force-include"])
    assert not [path for name in BESIDE for path in (PROJECT / "src").rglob(f"*{name}*/*.py")]


def test_the_makefile_installs_all_packages():
    lines = (PROJECT / "Makefile").read_text().splitlines()
    assert [all(f"./{name}" in line for name in BESIDE) for line in lines if "'.[all]'" in line] == [True]
    assert ["./classroom" in line for line in lines if "install --editable . " in line] == [True]


def test_no_module_of_the_product_imports_a_package_beside_it():
    for path in (PROJECT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("tacit_") for name in named), path
