"""The house rule of the classroom's package, as a function of a tree {path: source} like those of tidy_rules.py.

Paths of its package begin with "classroom/".
"""

from importlib import import_module
from pathlib import Path

import tacit
from tests.tidy_rules import LEVEL, Tree, imported_names, stated_names


def classroom_by_the_faces(tree: Tree) -> list[str]:
    """The classroom imports the root's public names, and the names that a room states."""
    return [
        f"{path}:{line} imports {module}, past the face of a room; import a name that the room's __init__.py states"
        for path, source in tree.items()
        for module, line in imported_names(path, source)
        if module.split(".")[0] == "tacit" and not is_public(module.split(".")[1:])
    ]


def is_public(parts: list[str]) -> bool:
    """Whether `tacit` followed by these parts is the root, one of its names, a room, or a name that a room states."""
    if len(parts) < 2:
        return not parts or parts[0] in LEVEL or parts[0] in tacit.__all__
    if len(parts) > 2 or parts[0] not in LEVEL:
        return False
    room = import_module(f"tacit.{parts[0]}")
    return parts[1] in (
        dir(room) if parts[0] in {"errors", "numbers"} else stated_names(Path(room.__file__ or "").read_text())
    )


CHALK = "classroom/course/claims.py"


def chalk_apart(tree: Tree) -> list[str]:
    """Noise with a seed is chalk: its file knows no table, ledger or mechanism; other files may not draw any."""
    return [
        f"{path}:{line} imports {module}; noise with a seed must not be able to touch a table or a ledger"
        for path, source in tree.items()
        if path == CHALK
        for module, line in imported_names(path, source)
        if module.split(".")[0].startswith("tacit") and not module.startswith("tacit.errors")
    ]
