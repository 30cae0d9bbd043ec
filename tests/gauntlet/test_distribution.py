"""The gauntlet is a distribution of its own, at the product's version; the product has no part of it."""

import ast
import tomllib
from pathlib import Path

import tacit

PROJECT = Path(__file__).resolve().parent.parent.parent
PRODUCT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
GAUNTLET = tomllib.loads((PROJECT / "gauntlet" / "pyproject.toml").read_text())


def test_both_distributions_take_their_version_from_one_line():
    product, gauntlet = (each["tool"]["hatch"]["version"]["path"] for each in (PRODUCT, GAUNTLET))
    assert (
        (PROJECT / "gauntlet" / gauntlet).resolve() == (PROJECT / product).resolve() == Path(tacit.__file__).resolve()
    )


def test_the_gauntlet_needs_the_product_of_its_own_version():
    assert f"tacit=={tacit.__version__}" in GAUNTLET["project"]["dependencies"]


def test_the_products_wheel_holds_the_product_alone():
    assert PRODUCT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/tacit"]}
    assert not list((PROJECT / "src").rglob("*gauntlet*/*.py"))


def test_no_module_of_the_product_imports_the_gauntlet():
    for path in (PROJECT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.startswith("tacit_gauntlet") for name in named), path
