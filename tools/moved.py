"""Show what a restructuring did to every definition: kept, moved, renamed, merged, changed, gone or new.

`python tools/moved.py BEFORE AFTER` compares two git revisions by their syntax trees, not by their lines. A definition
is a function, a method, a class without its methods, or a value at the top of a module. Two are the same where their
trees are equal and every name in them means the same thing: a name is followed through imports to where it is defined,
so in a merged file a `_percent` that is now another `_percent` is a change, though not a letter of it differs.
Statements that define nothing, such as a call at the top of a module, are not compared.
A name may differ where both are the definition's own variables, or mean definitions that are the same, or are in the
table given by `--rename old=new`, or where the old name is nowhere afterwards and the new one was nowhere before.

Exit code 0 where nothing else happened, or only what `--expect-changed FILE` lists, as lines `module:name`.
"""

import argparse
import ast
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path

# the product, and the packages beside it
ROOTS = ("src/", "gauntlet/src/", "classroom/src/")
OURS = ("tacit", "tacit_gauntlet", "tacit_classroom")
HERE = "·"  # stands for the definition's own name in its tree

Origin = tuple[str, str]  # the module and the name there; of what is not ours, the module alone


@dataclass
class Definition:
    """One definition: where it is, its tree with every name in order taken out, and those names."""

    module: str
    name: str  # Class.method for a method
    kind: str
    shape: str
    names: tuple[tuple[str, bool], ...]  # each name as written, and whether it is a variable of its own
    inside: dict[str, Origin] = field(default_factory=dict)  # what it imports itself
    also: tuple[str, ...] = ()  # of `a, b = 1, 2`: the other names
    origins: dict[str, Origin] = field(default_factory=dict)

    @property
    def text(self) -> object:
        """What two definitions of one thing have in common."""
        return self.kind, self.shape, self.names

    @property
    def place(self) -> str:
        """The module and the name."""
        return f"{self.module}:{self.name}"


@dataclass
class Revision:
    """All definitions of one revision, and how its names are found."""

    definitions: list[Definition]
    scopes: dict[str, dict[str, Origin]]  # module -> name at its top -> where that is from
    words: set[str]  # every name that is used anywhere

    def at(self, origin: Origin) -> Definition | None:
        """Return the definition at a place."""
        if not self._places:
            self._places = {(each.module, name): each for each in self.definitions for name in (each.name, *each.also)}
        return self._places.get(origin)

    _places: dict[Origin, Definition] = field(default_factory=dict)


@dataclass
class Comparison:
    """What became of every definition."""

    kept: list[tuple[Definition, Definition]]
    moved: list[tuple[Definition, Definition]]
    renamed: list[tuple[Definition, Definition]]
    changed: list[tuple[Definition, Definition, str]]
    merged: list[Definition]  # gone, but for an equal one of the same name elsewhere
    gone: list[Definition]
    new: list[Definition]
    renames: Counter[tuple[str, str]]


def read_revision(folder: Path, revision: str, *, docstrings: bool) -> Revision:
    """Return every definition of a revision."""
    sources = {_module_of(path): text for path, text in _files(folder, revision)}
    trees = {module: ast.parse(text) for module, text in sources.items()}
    if not docstrings:
        for tree in trees.values():
            _strip_docstrings(tree)
    scopes = {module: _scope(module, tree, trees) for module, tree in trees.items()}
    definitions = []
    for module, tree in trees.items():
        aliases = {name: found[0] for name in scopes[module] if (found := _origin(module, name, scopes))[1] == ""}
        definitions += _definitions(module, tree, {name: home for name, home in aliases.items() if home in scopes})
    for each in definitions:
        free = [name for name, own in each.names if not own]
        each.origins = {name: _origin(*each.inside.get(name, (each.module, name)), scopes) for name in free}
    return Revision(definitions, scopes, {name for each in definitions for name, _ in each.names})


def compare(before: Revision, after: Revision, renames: dict[str, str]) -> Comparison:
    """Pair the definitions of two revisions, and sort them by what became of them."""
    pairs = _paired(before.definitions, after.definitions, renames)
    same = {
        (old.module, one): (new.module, other)
        for old, new in pairs
        for one, other in zip((old.name, *old.also), (new.name, *new.also), strict=False)
    }
    taken_old, taken_new = {id(old) for old, _ in pairs}, {id(new) for _, new in pairs}
    found = Comparison([], [], [], [], [], [], [], Counter())
    for old, new in pairs:
        fault, renamed = _difference(old, new, same, before, after, renames)
        if fault:
            found.changed.append((old, new, fault))
            continue
        own_renamed = old.name != new.name
        found.renames.update([*renamed, *([(old.name, new.name)] if own_renamed else [])])
        kind = found.renamed if renamed or own_renamed else found.kept if old.place == new.place else found.moved
        kind.append((old, new))
    texts = {(each.name, each.text) for each in after.definitions}
    lost = [each for each in before.definitions if id(each) not in taken_old]
    found.merged = [each for each in lost if (each.name, each.text) in texts]
    found.gone = [each for each in lost if (each.name, each.text) not in texts]
    found.new = [each for each in after.definitions if id(each) not in taken_new]
    return found


def _files(folder: Path, revision: str) -> Iterator[tuple[str, str]]:
    listed = _git(folder, "ls-tree", "-r", "--name-only", revision, "--", *ROOTS).splitlines()
    for path in listed:
        if path.endswith(".py"):
            yield path, _git(folder, "show", f"{revision}:{path}")


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def _module_of(path: str) -> str:
    for root in sorted(ROOTS, key=len, reverse=True):
        if path.startswith(root):
            return path.removeprefix(root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return path


def _strip_docstrings(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]


def _scope(module: str, tree: ast.Module, trees: dict[str, ast.Module]) -> dict[str, Origin]:
    """Return what each name at a module's top stands for: itself, or what it was imported from."""
    scope: dict[str, Origin] = {}
    for node in _top(tree):
        if isinstance(node, ast.ImportFrom):
            home = _absolute(module, node, trees)
            scope |= {name.asname or name.name: (home, name.name) for name in node.names}
        elif isinstance(node, ast.Import):
            for name in node.names:
                scope[name.asname or name.name.split(".")[0]] = (
                    name.name if name.asname else name.name.split(".")[0],
                    "",
                )
        else:
            scope |= {name: (module, name) for name in _defined(node) if name != "__all__"}
    scope |= {name: (home, name) for name, home in _lazy(tree).items() if name not in scope}
    return scope


def _top(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements at a module's top, those under `if` and `try` too."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.If | ast.Try):
            waiting = [*node.body, *node.orelse, *waiting]
        else:
            yield node


def _absolute(module: str, node: ast.ImportFrom, trees: dict[str, ast.Module]) -> str:
    if not node.level:
        return node.module or ""
    is_package = any(name.startswith(f"{module}.") for name in trees)
    parts = module.split(".")[: None if is_package and node.level == 1 else -node.level + is_package or None]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    leaves = [leaf for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
    return [leaf.id for leaf in leaves if isinstance(leaf.ctx, ast.Store)]


def _lazy(tree: ast.Module) -> dict[str, str]:
    """Return the names that a face loads when they are first used: a table from names to modules."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            try:
                table = ast.literal_eval(node.value)
            except ValueError:
                continue
            if table and all(str(home).split(".")[0] in OURS for home in table.values()):
                return {str(name): str(home) for name, home in table.items()}
    return {}


def _definitions(module: str, tree: ast.Module, aliases: dict[str, str]) -> Iterator[Definition]:
    for node in _top(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _definition(module, node.name, "function", node, aliases)
        elif isinstance(node, ast.ClassDef):
            yield from _of_class(module, node.name, node, aliases)
        elif (names := _defined(node)) and names != ["__all__"]:
            yield replace(_definition(module, names[0], "value", node, aliases), also=tuple(names[1:]))


def _of_class(module: str, name: str, node: ast.ClassDef, aliases: dict[str, str]) -> Iterator[Definition]:
    methods = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    shell = ast.ClassDef(node.name, node.bases, node.keywords, [], node.decorator_list)
    shell.body = [each for each in node.body if not isinstance(each, methods)]
    yield _definition(module, name, "class", shell, aliases)
    for each in node.body:
        if isinstance(each, ast.ClassDef):
            yield from _of_class(module, f"{name}.{each.name}", each, aliases)
        elif isinstance(each, methods):
            yield _definition(module, f"{name}.{each.name}", "method", each, aliases)


def _definition(module: str, name: str, kind: str, node: ast.AST, aliases: dict[str, str]) -> Definition:
    reader = _Shape(node, aliases)
    return Definition(module, name, kind, reader.read(node), tuple(reader.names), _imports_inside(node))


class _Shape:
    """Writes a tree as text with a mark in place of every name, and keeps the names in order."""

    FIELDS = frozenset({"id", "arg", "attr", "name", "asname", "names", "rest", "kwd_attrs"})

    def __init__(self, root: ast.AST, aliases: dict[str, str]) -> None:
        self.root, self.aliases = root, aliases
        self.names: list[tuple[str, bool]] = []
        self.own = set(self._own(root))

    @staticmethod
    def _own(root: ast.AST) -> Iterator[str]:
        """Yield the variables of a function; a value or a class has none."""
        if not isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef):
            root = ast.Module([], [])
        for node in ast.walk(root):
            if isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node is not root:
                yield node.name or ""

    def read(self, node: object) -> str:
        """Return a tree as text."""
        if isinstance(node, list):
            return "[" + ",".join(self.read(each) for each in node if not _is_import_of_ours(each)) + "]"
        if not isinstance(node, ast.AST):
            return repr(node)
        if isinstance(node, ast.Attribute) and (module := self._module(node.value)):  # module.name is the name
            self.names.append((f"{module}:{node.attr}", False))
            return f"Name(_,{self.read(node.ctx)})"
        parts = []
        for field_name, value in ast.iter_fields(node):
            if field_name in ("type_comment", "kind", "type_params"):
                continue
            if field_name in self.FIELDS and isinstance(value, str):
                parts.append(self._name(node, value))
            else:
                parts.append(self.read(value))
        return f"{type(node).__name__}({','.join(parts)})"

    def _module(self, node: ast.expr) -> str | None:
        return self.aliases.get(node.id) if isinstance(node, ast.Name) and node.id not in self.own else None

    def _name(self, node: ast.AST, name: str) -> str:
        if node is self.root:
            return HERE
        is_attribute = isinstance(node, ast.Attribute | ast.keyword)
        self.names.append((f".{name}" if is_attribute else name, not is_attribute and name in self.own))
        return "_"


def _is_import_of_ours(node: object) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS


def _imports_inside(node: ast.AST) -> dict[str, Origin]:
    """Return what a function imports of ours: its names mean what they would at the module's top."""
    return {
        name.asname or name.name: (str(each.module), name.name)
        for each in ast.walk(node)
        if isinstance(each, ast.ImportFrom) and _is_import_of_ours(each)
        for name in each.names
    }


def _origin(module: str, name: str, scopes: dict[str, dict[str, Origin]]) -> Origin:
    """Return where a name is defined, followed through imports and faces."""
    if name.startswith("."):
        return ("", name)
    if ":" in name:  # an alias of a module was followed already
        module, name = name.split(":")
    if name not in scopes.get(module, {}) and f"{module}.{name}" not in scopes:
        return ("", name)  # a builtin, a field, or a variable of a comprehension
    seen: set[Origin] = set()
    at: Origin = (module, name)
    while at not in seen:
        seen.add(at)
        step = scopes.get(at[0], {}).get(at[1])
        if step is None and f"{at[0]}.{at[1]}" in scopes:
            return (f"{at[0]}.{at[1]}", "")
        if step is None or step == at:
            return at
        at = step
    return at


# Which definitions are held against each other, first to last: by these facts of both.
PAIRED_BY = (
    ("place", "kind", "shape", "names"),
    ("name", "kind", "shape", "names"),
    ("place", "kind", "shape"),
    ("name", "kind", "shape"),
    ("place", "kind"),
    ("name", "kind"),
    ("kind", "shape", "names"),
    ("kind", "shape"),
)
SURE = 4  # by the first of these any of several will do; a name or a tree alone says enough only where it is alone


def _paired(
    before: Sequence[Definition], after: Sequence[Definition], renames: dict[str, str]
) -> list[tuple[Definition, Definition]]:
    """Pair the definitions of two revisions."""
    pairs: list[tuple[Definition, Definition]] = []
    left = [(each, _renamed(each, renames)) for each in before]
    right = list(after)
    for step, facts in enumerate(PAIRED_BY):
        fact = attrgetter(*facts)
        others = defaultdict(list)
        for each in right:
            others[fact(each)].append(each)
        mine = Counter(fact(looked_for) for _, looked_for in left)
        rest = []
        for each, looked_for in left:
            found = others[fact(looked_for)]
            if found and (step < SURE or mine[fact(looked_for)] == len(found) == 1):
                pairs.append((each, found.pop(0)))
            else:
                rest.append((each, looked_for))
        taken = {id(new) for _, new in pairs}
        left, right = rest, [each for each in right if id(each) not in taken]
    return pairs


def _renamed(each: Definition, renames: dict[str, str]) -> Definition:
    return replace(each, name=".".join(renames.get(part, part) for part in each.name.split(".")))


def _difference(
    old: Definition,
    new: Definition,
    same: dict[Origin, Origin],
    before: Revision,
    after: Revision,
    renames: dict[str, str],
) -> tuple[str, set[tuple[str, str]]]:
    """Return why two definitions are not the same, or nothing; and which names differ though they are."""
    if old.shape != new.shape:
        return "another tree", set()
    differ: set[tuple[str, str]] = set()
    forth: dict[str, str] = {}
    back: dict[str, str] = {}
    for (name, own), (other, other_own) in zip(old.names, new.names, strict=True):
        one, two = _plain(name), _plain(other)
        if own != other_own:
            return f"'{one}' is a variable of its own in one of them only", set()
        if one != two:
            differ.add((one, two))
        if not own and _is_ours(old.origins[name], before):
            if not _means_the_same(old.origins[name], new.origins[other], same, before, after):
                return f"'{one}' of {old.origins[name][0]} is now '{two}' of {new.origins[other][0]}", set()
            continue
        if forth.setdefault(one, two) != two or back.setdefault(two, one) != one:
            return f"'{one}' is not one name throughout", set()
        is_given = renames.get(one.lstrip(".")) == two.lstrip(".")
        is_new = two not in before.words and one not in after.words
        if not own and not (is_given or is_new or (one == two and old.origins[name] == new.origins[other])):
            return f"'{one}' is now '{two}'", set()
    if any(other in forth for _, other in differ):
        return "two names changed places", set()
    return "", differ


def _plain(name: str) -> str:
    """Return a name without the alias of its module."""
    return name.rpartition(":")[2]


def _is_ours(origin: Origin, revision: Revision) -> bool:
    """Whether a name means one of our modules, or a definition in one."""
    return origin[0] in revision.scopes


def _means_the_same(here: Origin, there: Origin, same: dict[Origin, Origin], before: Revision, after: Revision) -> bool:
    """Whether two definitions, or two modules, are the same thing before and after."""
    if here[1] == "":  # a module: the same where anything of it went to the other
        return there[1] == "" and any(old[0] == here[0] and new[0] == there[0] for old, new in same.items())
    if same.get(here) == there:
        return True
    one, other = before.at(here), after.at(there)  # several equal definitions may have become one
    return one is not None and other is not None and one.text == other.text


def in_words(found: Comparison, *, listed: bool) -> str:
    """Return the totals, the table of renames, and the lists where they are asked for."""
    total = sum(len(each) for each in (found.kept, found.moved, found.renamed, found.changed))
    lines = [
        f"{total + len(found.gone) + len(found.merged)} definitions before, {total + len(found.new)} after",
        f"  {len(found.kept)} the same, where they were",
        f"  {len(found.moved)} the same, moved to another module",
        f"  {len(found.renamed)} the same but for names ({len(found.renames)} names)",
        f"  {len(found.merged)} merged into an equal one",
        f"  {len(found.changed)} changed, {len(found.gone)} gone, {len(found.new)} new",
    ]
    if not listed:
        return "\n".join(lines)
    moves = Counter((old.module, new.module) for old, new in found.moved)
    lines += ["", "moved"] + [f"  {old} -> {new} ({count})" for (old, new), count in sorted(moves.items())]
    lines += ["", "renamed"] + [f"  {old} -> {new} ({count})" for (old, new), count in sorted(found.renames.items())]
    lines += ["", "merged"] + [f"  {each.place}" for each in found.merged]
    lines += ["", "changed"] + [f"  {_from_to(old, new)}: {why}" for old, new, why in found.changed]
    lines += ["", "gone"] + [f"  {each.place} ({each.kind})" for each in found.gone]
    lines += ["", "new"] + [f"  {each.place} ({each.kind})" for each in found.new]
    return "\n".join(lines)


def _from_to(old: Definition, new: Definition) -> str:
    return old.place if old.place == new.place else f"{old.place} -> {new.place}"


def unexpected(found: Comparison, expected: Iterable[str]) -> list[str]:
    """Return what happened beyond moves and renames and is not in the list of what was meant to."""
    wanted = {line.strip() for line in expected}
    places = [{old.place, new.place} for old, new, _ in found.changed]
    places += [{each.place} for each in (*found.gone, *found.new)]
    return sorted(" -> ".join(sorted(place)) for place in places if not place & wanted)


def main(words: Sequence[str] | None = None) -> int:
    """Compare two revisions of the repository where the command runs."""
    reader = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    reader.add_argument("before", help="a git revision")
    reader.add_argument("after", help="a git revision")
    reader.add_argument("--list", action="store_true", help="list what moved, was renamed, changed, went and came")
    reader.add_argument("--docstrings", action="store_true", help="a docstring that differs is a change")
    reader.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="a name that was renamed on purpose"
    )
    reader.add_argument("--expect-changed", metavar="FILE", help="lines module:name of what was meant to change")
    reader.add_argument("--repository", default=".", metavar="FOLDER", help="where the revisions are")
    asked = reader.parse_args(words)
    folder = Path(asked.repository)
    renames = dict(pair.split("=", 1) for pair in asked.rename)
    both = [read_revision(folder, each, docstrings=asked.docstrings) for each in (asked.before, asked.after)]
    found = compare(*both, renames)
    print(in_words(found, listed=asked.list))
    expected = Path(asked.expect_changed).read_text().splitlines() if asked.expect_changed else []
    others = unexpected(found, expected)
    if asked.expect_changed and others:
        print("\nnot expected\n" + "\n".join(f"  {each}" for each in others))
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())
