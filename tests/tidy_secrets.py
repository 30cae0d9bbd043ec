"""House rules about secrets and cases: who may name an exact value or spell a sum's name, and how a match ends.

They read a tree as `tidy_rules.py` does, and test_tidy.py runs them with the others.
"""

import ast
import re
from collections.abc import Iterator

from tests.tidy_rules import SECRET_NAMES, Tree, imported_names, nodes_of, parsed, prefixes, public_names, room

# Where a name may say that its value is secret: what reads rows, adds noise, or audits either.
SECRET_PREFIX = "exact_"
SECRET_ROOMS = {"engine", "exact", "release", "selection", "noise", "auditing"}
SECRET_FILES = {"asking/session.py"}  # which hands an engine's parts to the release

# What makes, fills or reads the exact table.
ENGINE_AND_BESIDE = {"engine", "exact", "release"}
# How the names of exact sums begin, and the whole of those that columns of keys and values have before their number.
SUM_NAMES_HOME = "exact.py"
SUM_NAMES = re.compile(r"(counted|total|distinct|listed)_(k?\d*)?|[kx]\d*")

# Models print too: one file of their room asks an engine, and hands on what was released; nets have one of their own.
ROUNDS_HOME = "learning/rounds.py"
ROUNDS_HOMES = {ROUNDS_HOME, "learning/deep/sampling.py"}
ROUNDS_MODULES = ("tacit.exact", "tacit.engine")


def secret_names(tree: Tree) -> list[str]:
    """`exact_` marks what is secret and nothing else: only where secrets are, and in no public parameter or field."""
    broken = [
        f"{path}:{line} names '{name}': no secret comes here; leave the prefix out"
        for path, source in tree.items()
        if room(path) not in SECRET_ROOMS and path not in SECRET_FILES
        for name, line in names_in(source)
        if name.startswith(SECRET_PREFIX)
    ]
    for path, node in public_definitions(tree):
        broken += [
            f"{path}:{line} shows '{name}' of {node.name} to users; secrets stay inside: rename it"
            for name, line in parameters_and_fields(node)
            if name.startswith(SECRET_PREFIX)
        ]
    return broken


def rounds_alone(tree: Tree) -> list[str]:
    """In the room of models, one file sees rows and exact sums: an algorithm is made of what `Rounds` hands out."""
    broken = []
    for path, source in tree.items():
        if room(path) != "learning" or path in ROUNDS_HOMES:
            continue
        broken += [
            f"{path}:{line} imports {module}: a model cannot see a secret; ask for rounds, in {ROUNDS_HOME}"
            for module, line in imported_names(path, source)
            if any(prefix in ROUNDS_MODULES for prefix in prefixes(module)) or module.split(".")[-1] in SECRET_NAMES
        ]
        broken += [
            f"{path}:{node.lineno} reaches for .{node.attr}: a model cannot see rows; ask for rounds, in {ROUNDS_HOME}"
            for node in nodes_of(source)
            if isinstance(node, ast.Attribute) and node.attr in ("engine", "_rows")
        ]
    return broken


def names_of_sums(tree: Tree) -> list[str]:
    """The exact table alone spells the names of its sums; a third engine would otherwise misspell one."""
    broken = []
    for path, source in tree.items():
        if path == SUM_NAMES_HOME or (room(path) not in ENGINE_AND_BESIDE and path not in SECRET_FILES):
            continue
        for node in nodes_of(source):
            first = node.values[0] if isinstance(node, ast.JoinedStr) and len(node.values) == 2 else None
            if isinstance(first, ast.Constant) and SUM_NAMES.fullmatch(str(first.value)):
                broken.append(
                    f"{path}:{first.lineno} spells a sum's name, f'{first.value}…'; use the functions of tacit.exact"
                )
    return broken


def complete_matches(tree: Tree) -> list[str]:
    """A match names every case: it ends in assert_never, so that mypy finds where a new one is missing."""
    broken = []
    for path, source in tree.items():
        for node in nodes_of(source):
            if isinstance(node, ast.Match):
                last = "\n".join(ast.unparse(each) for each in node.cases[-1].body)
                if last != f"assert_never({ast.unparse(node.subject)})":
                    broken.append(
                        f"{path}:{node.lineno} matches without an end that says it is complete; name every case, then "
                        f"'case _: assert_never({ast.unparse(node.subject)})'"
                    )
    return broken


def names_in(source: str) -> Iterator[tuple[str, int]]:
    """Every name that a source defines or uses: variables, attributes, parameters, functions and classes."""
    for node in nodes_of(source):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield node.asname or node.name, node.lineno
        elif isinstance(node, ast.keyword):
            yield node.arg or "", node.lineno


def public_definitions(tree: Tree) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """The functions and classes that the root shows, wherever they are defined."""
    public = public_names(tree)
    for path, source in tree.items():
        for node in parsed(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in public:
                yield path, node


def parameters_and_fields(node: ast.FunctionDef | ast.ClassDef) -> Iterator[tuple[str, int]]:
    """What a caller of a function, or of a class and its methods, can see: parameters, fields and methods."""
    functions = (
        [node] if isinstance(node, ast.FunctionDef) else [m for m in node.body if isinstance(m, ast.FunctionDef)]
    )
    for function in functions:
        given = function.args
        yield from ((each.arg, each.lineno) for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    if isinstance(node, ast.ClassDef):
        yield from ((method.name, method.lineno) for method in functions)
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                yield field.target.id, field.lineno
