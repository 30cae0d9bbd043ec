"""What benches, tools and peers import from the library exists: no type checker reads them, and no test runs most."""

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parents[2]


def lost_names(source: str) -> list[str]:
    """Return the names of tacit that a source imports, at its top or in a function, and that do not exist."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    return [
        f"{node.module}.{each.name}"
        for node in imports
        if node.module.split(".")[0] == "tacit"
        for each in node.names
        if not exists(importlib.import_module(node.module), each.name)
    ]


def exists(module: ModuleType, name: str) -> bool:
    """Return whether a module has a name, or a package has a module of this name."""
    return hasattr(module, name) or (hasattr(module, "__path__") and find_spec(f"{module.__name__}.{name}") is not None)


@pytest.mark.parametrize("folder", ["bench", "tools"])
def test_what_is_imported_from_the_library_exists(folder):
    found = {str(path): lost_names(path.read_text()) for path in sorted((PROJECT / folder).rglob("*.py"))}
    assert len(found) > 3
    assert not {path: names for path, names in found.items() if names}


def test_a_name_that_is_gone_is_found():
    source = "from tacit.local import wire, survey_of\n\ndef inside():\n    from tacit.privacy.loss import gone\n"
    assert lost_names(source) == ["tacit.local.survey_of", "tacit.privacy.loss.gone"]
