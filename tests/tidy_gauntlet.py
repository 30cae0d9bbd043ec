"""The house rules of the gauntlet's own package, as functions of a tree {path: source} like those of tidy_rules.py.

Paths of its package begin with "gauntlet/".
"""

import ast
from pathlib import PurePosixPath

import tacit
import tacit.learning
import tacit.local
from tests.tidy_rules import Tree, imported_names, nodes_of, parsed, room

# the gauntlet's table: name of a seam -> "module:attribute" of what bugs are planted in; the server's and models' parts
SEAMS = "gauntlet/targets.py"
TABLES = (SEAMS, *(f"gauntlet/{room}_targets.py" for room in ("server", "learning", "ledger")))

# Tests outside tests/gauntlet/ that are about its cases or bugs themselves.
TESTS_OF_CASES = {
    "house.py",  # make check counts cases and planted bugs
    "auditing/test_function_audit.py",  # an audit sees each planted bug of a mechanism
    "auditing/test_replay.py",  # a replay sees each planted bug of a table's path
    "engine/test_summing.py",  # the kernel passes the cases of bounding too
    "ledger/test_verify.py",  # verifying sees all the damage that a case does
}


def mutants_by_the_table(tree: Tree) -> list[str]:
    """Bugs are in files of their own, and reach the product through the table of seams alone."""
    seams = table_of_seams(tree)
    broken = []
    for path, source in tree.items():
        if path in TABLES:
            continue
        calls = [node for node in nodes_of(source) if isinstance(node, ast.Call)]
        named = [(ast.unparse(node.func).split(".")[-1], node) for node in calls]
        if not path.endswith("mutants.py"):
            if any(name == "mutant" for name, _ in named) and not path.startswith("gauntlet/frame/"):
                broken.append(f"{path} plants a bug; move it to a file of its room whose name ends in mutants.py")
        else:
            broken += [
                f"{path}:{line} imports {module}; write a seam for it into {SEAMS} and ask for original(seam)"
                for module, line in imported_names(path, source)
                if module.split(".")[0] == "tacit" and not is_surface(module)
            ]
            broken += [
                f"{path}:{node.lineno} replaces an attribute by itself; plant it with planted(seam, ...)"
                for name, node in named
                if name in ("setattr", "replaced", "import_module")
            ]
        broken += [
            f"{path}:{node.lineno} names no seam '{word.value}'; write it into {SEAMS}"
            for name, node in named
            if name in ("planted", "original") and isinstance(word := node.args[0], ast.Constant)
            if word.value not in seams
        ]
    return broken


def black_box_cases(tree: Tree) -> list[str]:
    """A case attacks what a user has; what else it needs, the stage offers under a plain name."""
    broken = []
    for path, source in tree.items():
        parts = PurePosixPath(path).parts
        if parts[0] != "gauntlet" or len(parts) < 3 or parts[1] in ("frame", "stage") or path.endswith("mutants.py"):
            continue
        may = tuple(f"tacit_gauntlet.{room}" for room in ("frame", "stage", parts[1]))
        for module, line in imported_names(path, source):
            first = module.split(".")[0]
            if first == "tacit" and not is_surface(module):
                broken.append(f"{path}:{line} imports {module}; let a function of gauntlet/stage/ do what it is for")
            if first == "tacit_gauntlet" and not module.startswith(may):
                broken.append(f"{path}:{line} imports {module}; a case knows frame, stage and its own room alone")
        broken += [
            f"{path}:{node.lineno} reads {ast.unparse(node)}, which is private; let a function of gauntlet/stage/ do it"
            for node in nodes_of(source)
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("_")
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os"))
        ]
    return broken


def tests_use_the_stage(tree: Tree) -> list[str]:
    """Of the gauntlet, tests use the stage; paths are relative to tests/."""
    return [
        f"{path}:{line} imports {module}; use tacit_gauntlet.stage, or test it in tests/gauntlet/"
        for path, source in tree.items()
        if room(path) != "gauntlet" and path not in TESTS_OF_CASES
        for module, line in imported_names(path, source)
        if module.split(".")[0] == "tacit_gauntlet" and not module.startswith("tacit_gauntlet.stage")
    ]


def table_of_seams(tree: Tree) -> set[object]:
    """The seams that the gauntlet's table names."""
    return {
        key.value
        for table in TABLES
        for node in parsed(tree.get(table, "")).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)
        for key in node.value.keys
        if isinstance(key, ast.Constant)
    }


def is_surface(module: str) -> bool:
    """Whether a dotted name is one that users import: a root name, an error, a model's, or one of the local model's."""
    parts = module.split(".")
    named = {"local": tacit.local.__all__, "learning": tacit.learning.__all__}
    if len(parts) == 3:
        return parts[1] == "errors" or parts[2] in named.get(parts[1], ())
    return len(parts) == 1 or (len(parts) == 2 and parts[1] in {*tacit.__all__, "__version__", "errors", *named})
