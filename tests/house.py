"""The house in figures, printed by `make check`, and rules about its files and names: no file too small, none named
twice, no folder for a few, few names repeated. test_house.py runs the rules on the real tree, and on planted ones to
show that each can fail.
"""

import ast
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path, PurePosixPath
from statistics import median

from tests import prose
from tests.tidy_rules import Tree, absolute, faces, imports_of_ours, module_of, stated_names
from tests.walk import learned_answer

PROJECT = Path(__file__).resolve().parent.parent
SMALL_LINES = 60
FACE_NAMES = 40
FOLDER_FILES_MIN = 4
# What is small on purpose, and why.
SMALL_ALLOWED: dict[str, str] = {}
# One name in two rooms, on purpose.
TWICE_ALLOWED: dict[str, str] = {}
RUNS = 5
# How many names may be repeated. A limit only falls: lower it whenever the figure is below it.
CLASSES_TWICE_MAX = 0  # class names in two modules
FACES_WIDE_MAX = 2  # faces with more than FACE_NAMES names
LINES_MAX = 94_060  # lines of the product's Python; a limit that only falls, and what is added is paid for by deleting
LONELY_NAMES_MAX = 230  # names of faces that only one other room wants, or none
HELPERS_THRICE_MAX = 0  # names of private functions in three modules


def small_files(tree: Tree) -> list[str]:
    """No file under 60 lines with a single importer; faces and commands aside."""
    importers = importers_of(tree)
    return [
        f"{path} has {lines} lines and a single importer; merge it there, or say in SMALL_ALLOWED why not"
        for path, source in tree.items()
        if (lines := source.count("\n")) < SMALL_LINES
        and not is_aside(path)
        and len(importers[module_of(path)]) <= 1
        and path not in SMALL_ALLOWED
    ]


def size(tree: Tree, most: int = LINES_MAX) -> list[str]:
    """The product has at most so many lines."""
    lines = sum(source.count("\n") for source in tree.values())
    return [f"the product has {lines:,} lines, {most:,} at most; delete as many as you add"] if lines > most else []


def names_once(tree: Tree) -> list[str]:
    """No module name in two rooms; faces and commands aside."""
    rooms = defaultdict(set)
    for path in tree:
        if not is_aside(path):
            rooms[PurePosixPath(path).stem].add(str(PurePosixPath(path).parent))
    return [
        f"'{name}' is a module of {' and of '.join(sorted(found))}; name what is different about each"
        for name, found in sorted(rooms.items())
        if len(found) > 1 and name not in TWICE_ALLOWED
    ]


def folder_sizes(tree: Tree) -> list[str]:
    """A folder inside a room has at least four files; a room is a wall, and may have fewer."""
    counts = defaultdict(int)
    for path in tree:
        if not path.endswith("__init__.py") and path.count("/") > 1:
            counts[str(PurePosixPath(path).parent)] += 1
    return [
        f"{folder} has {count} files, {FOLDER_FILES_MIN} at least; move them up into the room"
        for folder, count in sorted(counts.items())
        if count < FOLDER_FILES_MIN
    ]


def repeated_names(
    tree: Tree, classes_max: int = CLASSES_TWICE_MAX, helpers_max: int = HELPERS_THRICE_MAX
) -> list[str]:
    """A class has a name of its own, and a private helper is named by its object or shared."""
    classes, helpers = repeated(tree)
    broken = []
    if len(classes) > classes_max:
        broken.append(f"{len(classes)} class names are in two modules, {classes_max} at most: {', '.join(classes)}")
    if len(helpers) > helpers_max:
        broken.append(f"{len(helpers)} helpers are in three modules, {helpers_max} at most: {', '.join(helpers)}")
    return broken


def repeated(tree: Tree) -> tuple[list[str], list[str]]:
    """Return the class names of two modules or more, and the names of private functions of three or more."""
    classes, helpers = defaultdict(set), defaultdict(set)
    for path, source in tree.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(path)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and re.match("_(?!_)", node.name):
                helpers[node.name].add(path)
    return (
        sorted(name for name, found in classes.items() if len(found) > 1),
        sorted(name for name, found in helpers.items() if len(found) > 2),
    )


def wide_faces(tree: Tree, wide_max: int | None = None, lonely_max: int | None = None) -> list[str]:
    """A face has few names, and each is wanted by two rooms: what one room wants may be there."""
    wide, lonely = faces_in_figures(tree)
    broken = []
    if len(wide) > (FACES_WIDE_MAX if wide_max is None else wide_max):
        broken.append(f"{len(wide)} faces have more than {FACE_NAMES} names: {', '.join(wide)}; keep some inside")
    if len(lonely) > (LONELY_NAMES_MAX if lonely_max is None else lonely_max):
        broken.append(
            f"{len(lonely)} names of faces are wanted by one room: {', '.join(lonely)}; have that room own it"
        )
    return broken


def faces_in_figures(tree: Tree) -> tuple[list[str], list[str]]:
    """Return the rooms with wide faces, and the names of faces that fewer than two others want.

    The root wants what it offers, and so do the packages beside the product and the guide.
    """
    wanted = defaultdict(set)
    for path, source in tree.items():
        for word in set(re.findall(r"\w+", source)):
            wanted[word].add(PurePosixPath(path).parts[0])
    for place in ("gauntlet/src", "classroom/src", "docs/guide", "docs/reference.md", "README.md"):
        found = PROJECT / place
        for path in [found] if found.is_file() else [*found.rglob("*.py"), *found.rglob("*.md")]:
            for word in set(re.findall(r"\w+", path.read_text())):
                wanted[word].add(place)
    wide, lonely = [], []
    for path, source in tree.items():
        if path.count("/") == 1 and path.endswith("__init__.py") and not path.startswith("cli/"):
            room, names = PurePosixPath(path).parts[0], sorted(stated_names(source))
            wide += [room] if len(names) > FACE_NAMES else []
            lonely += [f"{room}.{name}" for name in names if len(wanted[name] - {room}) < 2]
    return sorted(wide), sorted(lonely)


def is_aside(path: str) -> bool:
    """Whether a file is a face or a command, whose size and name follow from what it is."""
    return path.endswith("__init__.py") or path.startswith("cli/")


def importers_of(tree: Tree) -> dict[str, set[str]]:
    """Return, for each module, who imports it or a name of it."""
    modules = {module_of(path) for path in tree}
    found = defaultdict(set)
    for path, name, _ in imports_of_ours(tree):
        home = name if name in modules else name.rpartition(".")[0]
        if home != module_of(path):
            found[home].add(path)
    return found


def figures(tree: Tree) -> list[str]:
    """Return the house in figures."""
    lines = sorted(source.count("\n") for source in tree.values())
    functions = [
        ((node.end_lineno or 0) - node.lineno + 1, f"{path} {node.name}")
        for path, source in tree.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    stated = {
        path: bool(stated_names(source))
        for path, source in tree.items()
        if path.count("/") == 1 and path.endswith("__init__.py") and not path.startswith("cli/")
    }
    wide, lonely = faces_in_figures(tree)
    without = sum(path.endswith("__init__.py") for path in tree)
    importers = importers_of(tree)
    tiny = [
        p
        for p, s in tree.items()
        if s.count("\n") < SMALL_LINES and not is_aside(p) and len(importers[module_of(p)]) <= 1
    ]
    return [
        f"files: {len(tree)}, {len(tree) - without} without faces",
        f"lines: {sum(lines):,} ({LINES_MAX:,} at most), median {median(lines):g}, largest {lines[-1]}",
        f"files under {SMALL_LINES} lines with a single importer: {len(tiny)} ({', '.join(sorted(tiny)) or 'none'})",
        f"module names in two rooms: {len(names_once(tree))}",
        f"rooms with a stated face: {sum(stated.values())} of {len(stated)}; imports past a face: {len(faces(tree))}",
        f"faces with more than {FACE_NAMES} names: {len(wide)} ({FACES_WIDE_MAX} at most); "
        f"names of faces that one room wants: {len(lonely)} ({LONELY_NAMES_MAX} at most)",
        f"class names in two modules: {len(repeated(tree)[0])} ({CLASSES_TWICE_MAX} at most)",
        f"private helpers in three modules: {len(repeated(tree)[1])} ({HELPERS_THRICE_MAX} at most)",
        f"longest function: {max(functions)[0]} lines ({max(functions)[1]})",
        f"import cycles: {len(cycles(tree))}",
    ]


def cycles(tree: Tree) -> list[str]:
    """Return modules that import each other in a ring when they load; faces aside."""
    modules = {module_of(path): path for path in tree if not path.endswith("__init__.py")}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = [
            f"{absolute(path, node)}.{name.name}"
            for node in ast.parse(tree[path]).body
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        ]
        graph[module] = {home for each in names for home in (each, each.rpartition(".")[0]) if home in modules} - {
            module
        }
    while leaves := {module for module, needs in graph.items() if not needs & graph.keys()}:
        graph = {module: needs for module, needs in graph.items() if module not in leaves}
    return sorted(graph)


def import_seconds() -> tuple[float, float]:
    """Return how long `import tacit` and a bare start take, the best of a few."""

    def best(code: str) -> float:
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best("import tacit"), best("pass")


def read_package() -> Tree:
    """Return the product's files."""
    folder = PROJECT / "src" / "tacit"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}


def gauntlet_counts() -> str:
    """Return how many cases and planted bugs the gauntlet registers, and how many of its files the wheel has."""
    import tacit_gauntlet
    from tacit_gauntlet.frame.case import all_cases
    from tacit_gauntlet.frame.mutant import all_mutants

    tacit_gauntlet.load()
    inside = [path for path in (PROJECT / "src").rglob("*") if "gauntlet" in path.name]
    return (
        f"gauntlet: {len(all_cases())} cases, {len(all_mutants())} planted bugs; its files in the wheel: {len(inside)}"
    )


if __name__ == "__main__":
    ours, bare = import_seconds()
    print("\n".join(figures(read_package())))
    print("an answer with learned facts:", ", ".join(f"{n} {what}" for what, n in learned_answer().figures.items()))
    print(gauntlet_counts())
    print("\n".join(prose.figures(prose.read_code(), prose.read_pages())))
    print(f"import tacit: {ours:.3f} s, of which {bare:.3f} s are Python's own start (best of {RUNS})")
