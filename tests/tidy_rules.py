"""The house rules as functions of a tree {path: source}: each returns what breaks it.

Paths are relative to src/tacit; those of the packages beside it begin with "gauntlet/" or "classroom/".

Every message says what to do instead. test_tidy.py runs them on the real tree, and on planted ones to show that each
can fail.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

Tree = dict[str, str]

# Imports point down; names on one row do not import each other.
LAYERS = (
    ("cli",),
    ("server",),
    ("auditing", "remote"),
    ("learning", "local"),
    ("asking",),
    ("forecast",),
    ("answer",),
    ("engine", "release", "ledger"),
    ("exact",),
    ("plan",),
    ("catalog_file", "query"),
    ("tables",),
    ("selection",),
    ("noise",),
    ("accounting", "options"),
    ("privacy",),
    ("arrow_frames", "files", "hold", "json_wire", "memory", "numbers", "pictures", "typed_sql"),
    ("errors", "system"),
)
LEVEL = {name: len(LAYERS) - row for row, names in enumerate(LAYERS) for name in names}

# Who may use the public root, and so every layer at once.
ROOT_USERS = {"cli", "server", "auditing", "learning"}

ENGINE_WALL = {"noise", "selection"}
RELEASE_MAY = {"exact", "plan", "noise", "selection", "privacy", "numbers", "errors", "release"}
# What is printed or drawn is made of what was released: these rooms see no row and no secret sum.
PRINTING = {"answer", "forecast", "pictures"}
SECRET_MODULES = ("tacit.exact", "tacit.engine", "tacit.tables")
SECRET_NAMES = {"ExactTable", "ExactIntegers", "GroupedSteps"}
LEDGER_MAY = {"privacy", "accounting", "numbers", "errors", "ledger", "system"}
# Rooms that the core does without: it never imports them, and the command line and the root only when one is asked for.
OPTIONAL = {"learning", "server", "remote", "local", "auditing"}
# Verbs of a table that an optional room carries out: it is loaded when the verb is called.
ON_REQUEST = {("asking/synthesize.py", "learning")}
# What perturbs a person's own answer runs on that person's device, which has no table and no ledger.
LOCAL_MAY = {
    "noise",
    "accounting",
    "privacy",
    "numbers",
    "files",
    "hold",
    "json_wire",
    "memory",
    "pictures",
    "errors",
    "local",
    "system",
}
# what the collector's side needs beyond it
LOCAL_ELSEWHERE = {"local/central.py": {"asking", "ledger"}, "local/tradeoffs.py": {"selection"}}

# outside package (or part of one) -> where it may be imported: files, or folders ending in "/"
HOMES = {
    "secrets": ("noise/bits.py", "ledger/chain.py"),
    "os.urandom": ("noise/bits.py",),
    "os.getrandom": ("noise/bits.py",),
    "cryptography.hazmat.primitives.ciphers": ("noise/bits.py", "server/pages/visits.py"),
    "cryptography.hazmat.primitives.asymmetric": ("ledger/chain.py",),
    "cryptography.x509": ("server/listening.py",),
    "cryptography": ("noise/bits.py", "ledger/chain.py", "server/listening.py", "server/pages/visits.py"),
    "sqlglot": ("query/",),
    "pyspark": ("engine/spark.py", "tables/spark_tables.py", "gauntlet/stage/spark_rows.py"),
    "ibis": (),
    "obstore": ("tables/remote_files.py",),
    "deltalake": ("tables/lakes.py",),
    "pyiceberg": ("tables/lakes.py",),
    "psycopg": ("ledger/postgres.py", "gauntlet/stage/postgres_server.py", "gauntlet/stage/postgres_rows.py"),
    "adbc_driver_manager": ("tables/postgres_snapshot.py",),
    "adbc_driver_postgresql": ("tables/postgres_snapshot.py",),
    "altair": ("pictures/writer.py",),
    "fastapi": ("server/", "classroom/theory/"),
    "jinja2": ("server/pages/page_look.py",),
    "playwright": (),
    "starlette": ("server/", "classroom/theory/"),
    "uvicorn": ("server/listening.py",),
    "vl_convert": ("pictures/writer.py",),
    "scipy": ("classroom/attacks/reconstruction.py",),
    "dp_accounting": (),
    "opendp": (),
    "mpmath": (),
    "apsw": ("gauntlet/stage/disk.py",),
    "hypothesis": (),
    "pytest": (),
}

# Files that plant or provoke other generators on purpose: N11 seeds them, the mutants draw from them, and a faulty disk
# fails as its seed says.
RANDOM_EXEMPT = {
    "gauntlet/learning/net_mutants.py",
    "gauntlet/stage/nets.py",
    "classroom/course/claims.py",
    "gauntlet/stage/disk.py",
    "gauntlet/noise/randomness.py",
    "gauntlet/noise/mutants.py",
    "learning/teachers.py",  # an estimator's code may draw from them: each teacher begins at the same state
}
RANDOM_MODULES = ("random", "numpy.random", "np.random")


# How many names a room may state. A commit that raises one says why.
FACE_NAMES_MAX = {
    "accounting": 35,  # the textbook's sigma, for lessons; noise of sampled rounds
    "asking": 40,  # an answer's columns; facts learned ahead; commands open tables; a server reads trees; models pay
    "answer": 40,  # rehearsals; promises; foreseen moments; as JSON; on a page; what a ledger keeps; terms of intervals
    "auditing": 9,  # models too
    "engine": 12,  # relations, public tables, engines by the source, rows coded; a server waits for compiled loops
    "forecast": 16,  # what is foreseen to be of no use; what would be closer; goals of several questions
    "learning": 23,  # made-up rows; estimators, words about them; scores, holdouts, teachers; clusters; a protocol
    "ledger": 35,  # notes; steps; who asks, and the room left; people, names, tokens; backups; a changed key; entries
    "local": 24,
    "noise": 29,
    "pictures": 29,  # pages draw without a file, in the page's theme and narrow; channels of fields
    "plan": 113,  # pairs; counts that run on; levels; found groups; several questions; noise
    "privacy": 38,
    "query": 123,  # windows; SQL; marginals, others; questions as JSON; relations, joins, asides
    "release": 10,  # keys as facts keep them; a choice among sums too; a round of learning without a table, as an array
    "selection": 16,
    "server": 21,  # what pages of other packages are made of
    "typed_sql": 23,  # tables, values and types; what SQL has between values; a connection
    "tables": 37,  # units elsewhere; midnights; blocks; declarations; sources
}
FACE_NAMES_ELSE = 20
# Nobody imports the commands.
FACELESS = {"cli"}

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60

MODULE_NAMES_BARRED = {"util", "utils", "helper", "helpers", "common", "misc", "base"}
CLASS_SUFFIXES_BARRED = ("Manager", "Handler", "Base", "Impl")
PRIVACY_ROOMS = {"noise", "selection", "local", "release"}
DRAWS = re.compile(r"sample|release|add_|draw")

# Spelled in pieces, so that this file does not break its own rule.
WORDS_BARRED = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "/wo" + "rk/", "/tmp/" + "brief", "session" + " id"]))


def layers(tree: Tree) -> list[str]:
    """Imports point down the rows of LAYERS."""
    broken = []
    for path, module, line in imports_of_ours(tree):
        importer, target = room(path), room_of_module(module)
        if importer == "":
            continue
        if importer not in LEVEL:
            broken.append(f"{path}: '{importer}' is on no layer; put the code in an existing room or add it to LAYERS")
        elif target == "":
            if importer not in ROOT_USERS:
                broken.append(
                    f"{path}:{line} imports the root, which reaches every layer; import the module that has the name"
                )
        elif target not in LEVEL:
            broken.append(f"{path}:{line} imports '{target}', which is on no layer; add it to LAYERS")
        elif target != importer and LEVEL[target] >= LEVEL[importer] and not on_request(tree, path, target, line):
            broken.append(
                f"{path}:{line} imports {module}, which is not below '{importer}'; move the shared part to a "
                "lower room, or let the caller hand it over"
            )
    return broken


def walls(tree: Tree) -> list[str]:
    """What reads rows cannot add noise; what adds noise cannot read rows; what prints sees no secret.

    The ledger knows only what a charge is.
    """
    broken = []
    for path, module, line in imports_of_ours(tree):
        importer, target = room(path), room_of_module(module)
        if importer == "engine" and target in ENGINE_WALL:
            broken.append(f"{path}:{line} imports {module}: an engine never sees noise; the session hands it the salt")
        if importer == "release" and target not in RELEASE_MAY:
            broken.append(
                f"{path}:{line} imports {module}: a release adds noise to exact sums and does nothing else; take what "
                "it needs from the plan"
            )
        if importer in PRINTING and is_secret(module):
            broken.append(
                f"{path}:{line} imports {module}: what is printed cannot see a secret; hand it what was released"
            )
        if importer == "ledger" and target not in LEDGER_MAY:
            broken.append(
                f"{path}:{line} imports {module}: the ledger knows privacy, accounting and errors alone; "
                "store plain values"
            )
    return broken


def optional_rooms(tree: Tree) -> list[str]:
    """The core runs without learning, servers, the local model and audits; a device runs what is local by itself."""
    broken = []
    for path, module, line in imports_of_ours(tree):
        importer, target = room(path), room_of_module(module)
        is_asked_for = importer in OPTIONAL | {"cli", ""} or on_request(tree, path, target, line)
        if target in OPTIONAL and not is_asked_for:
            broken.append(
                f"{path}:{line} imports {module}, an optional room; the core does without it: have it call you"
            )
        if importer == "local" and target not in LOCAL_MAY | LOCAL_ELSEWHERE.get(path, set()):
            broken.append(f"{path}:{line} imports {module}, which a person's device has not; take it from the caller")
        if importer in {"cli", ""} and target in OPTIONAL and line in lines_at_load(tree[path]):
            broken.append(f"{path}:{line} loads {module} for every command; import it in the function that needs it")
    return broken


def on_request(tree: Tree, path: str, target: str, line: int) -> bool:
    """Whether an import is a verb's own room, inside the function that needs it."""
    return (path, target) in ON_REQUEST and line not in lines_at_load(tree[path])


def lines_at_load(source: str) -> set[int]:
    """The lines of imports at a module's top, those for types only aside."""
    return {node.lineno for node in parsed(source).body if isinstance(node, ast.Import | ast.ImportFrom)}


def faces(tree: Tree) -> list[str]:
    """Each room states its public names in its face, and outside a room only those are imported."""
    stated = {
        str(PurePosixPath(path).parent): stated_names(tree[path]) for path in tree if path.endswith("/__init__.py")
    }
    broken = []
    for folder, names in stated.items():
        if "/" not in folder and folder not in FACELESS and not names:
            broken.append(f"{folder}/__init__.py states no names; import there what other rooms may use")
        if len(names) > FACE_NAMES_MAX.get(folder, FACE_NAMES_ELSE):
            broken.append(f"{folder}/__init__.py states {len(names)} names; keep some inside, or raise FACE_NAMES_MAX")
        broken += [
            f"{folder}/__init__.py states '{name}', which is also a module of the room; rename the module"
            for name in sorted(names)
            if f"{folder}/{name}.py" in tree or f"{folder}/{name}/__init__.py" in tree
        ]
    for path, module, line in imports_of_ours(tree):
        parts = module.split(".")[1:]
        if not parts or parts[0] not in stated or parts[0] == room(path):
            continue
        deep = max(end for end in range(1, len(parts) + 1) if "/".join(parts[:end]) in stated)
        folder, rest = "/".join(parts[:deep]), parts[deep:]
        if rest and (len(rest) > 1 or rest[0] not in stated[folder]):
            broken.append(
                f"{path}:{line} imports {module}, past the face of '{parts[0]}'; import a name that "
                f"{folder}/__init__.py states, or state it there"
            )
    return broken


def stated_names(source: str) -> set[str]:
    """The names in a face's `__all__`; without one, all that it imports."""
    body = parsed(source).body
    listed = [node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    if listed:
        elements = listed[0].elts if isinstance(listed[0], ast.List) else []
        return {str(name.value) for name in elements if isinstance(name, ast.Constant)}
    return {name.asname or name.name for node in body if isinstance(node, ast.ImportFrom) for name in node.names}


def is_secret(module: str) -> bool:
    """Whether an import reaches rows or exact sums: by its module, or by the name of the table wherever it is found."""
    return any(prefix in SECRET_MODULES for prefix in prefixes(module)) or module.split(".")[-1] in SECRET_NAMES


def one_way_to_pay(tree: Tree) -> list[str]:
    """Only `spend`, in asking/paying.py, charges a budget: reserve, run, commit."""
    broken = []
    for path, source in tree.items():
        if path == "asking/paying.py" or path.startswith("ledger/"):
            continue
        broken += [
            f"{path}:{node.lineno} names reserve: a second way to pay; call Session.spend, or spend of asking/paying.py"
            for node in nodes_of(source)
            if (isinstance(node, ast.Attribute) and node.attr == "reserve")
            or (isinstance(node, ast.Constant) and node.value == "reserve")
        ]
    return broken


def one_home(tree: Tree) -> list[str]:
    """Outside packages that matter are imported in one place."""
    broken = []
    for path, source in tree.items():
        for module, line in [*imported_names(path, source), *dotted_attributes(source)]:
            homes = next((HOMES[prefix] for prefix in prefixes(module) if prefix in HOMES), None)
            if homes is None or any(path == home or (home.endswith("/") and path.startswith(home)) for home in homes):
                continue
            where = " or ".join(homes) or "the tests, where oracles and test tools belong"
            broken.append(f"{path}:{line} uses {module}, whose home is {where}; call that module instead")
    return broken


def no_other_randomness(tree: Tree) -> list[str]:
    """Noise comes from noise/bits.py; `random` and numpy's generators can be seeded and predicted."""
    broken = []
    for path, source in tree.items():
        if path in RANDOM_EXEMPT:
            continue
        for module, line in [*imported_names(path, source), *dotted_attributes(source)]:
            if any(prefix in RANDOM_MODULES for prefix in prefixes(module)):
                broken.append(f"{path}:{line} uses {module}, which can be predicted; draw with tacit.noise instead")
    return broken


def file_sizes(tree: Tree) -> list[str]:
    """No file over 600 lines."""
    return [
        f"{path} has {lines} lines, {FILE_LINES_MAX} at most; split it by concept"
        for path, source in tree.items()
        if (lines := source.count("\n")) > FILE_LINES_MAX
    ]


def function_sizes(tree: Tree) -> list[str]:
    """No function over 60 lines."""
    broken = []
    for path, source in tree.items():
        for node in nodes_of(source):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    broken.append(
                        f"{path}:{node.lineno} {node.name} has {lines} lines, {FUNCTION_LINES_MAX} at most; "
                        "name its parts"
                    )
    return broken


def module_names(tree: Tree) -> list[str]:
    """A module is named after its concept."""
    return [
        f"{path}: '{part}' says nothing; name the concept the module holds"
        for path in tree
        for part in PurePosixPath(path).with_suffix("").parts
        if part in MODULE_NAMES_BARRED
    ]


def class_names(tree: Tree) -> list[str]:
    """A class is named after what it is."""
    return [
        f"{path}:{node.lineno} class {node.name}: '{suffix}' says nothing; name what it is"
        for path, node in classes(tree)
        for suffix in CLASS_SUFFIXES_BARRED
        if node.name.endswith(suffix)
    ]


def shallow_inheritance(tree: Tree) -> list[str]:
    """Our classes inherit from our classes at most once in a line."""
    parents = {}
    for path, source in tree.items():
        scope = {node.name: f"{module_of(path)}.{node.name}" for node in top_classes(source)}
        scope |= local_names(path, source)
        for node in top_classes(source):
            bases = [scope.get(ast.unparse(base).split("[")[0], ast.unparse(base)) for base in node.bases]
            parents[f"{module_of(path)}.{node.name}"] = bases
    return [
        f"{child} inherits from {base}, which inherits from {grand}; inherit once, or hold the other as a field"
        for child, bases in parents.items()
        for base in bases
        for grand in parents.get(base, [])
        if grand in parents
    ]


def root_names(tree: Tree) -> list[str]:
    """No public name equals a module's: the module would replace it at its first import."""
    public = public_names(tree)
    modules = {room(path) for path in tree} - {""}
    return [
        f"the root name '{name}' is also the module tacit.{name}, which would replace it; rename one"
        for name in sorted(public & modules)
    ]


def public_names(tree: Tree) -> set[str]:
    """The names that the root lists or defines."""
    public: set[str] = set()
    for node in parsed(tree.get("__init__.py", "")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict | ast.List | ast.Tuple):
            parts = node.value.keys if isinstance(node.value, ast.Dict) else node.value.elts
            public |= {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            public.add(node.name)
    return public


def module_docstrings(tree: Tree) -> list[str]:
    """Every module says at its top what it is for."""
    return [
        f"{path} has no docstring at its top; say what it is for and what it leaves to others"
        for path, source in tree.items()
        if not ast.get_docstring(parsed(source))
    ]


def privacy_paragraphs(tree: Tree) -> list[str]:
    """What draws or releases says which promise it keeps."""
    broken = []
    for path, source in tree.items():
        if room(path) not in PRIVACY_ROOMS:
            continue
        for node in parsed(source).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
            drawing = [m for m in methods if m.name in ("release", "sample")]
            concerned = drawing or DRAWS.match(node.name.lower())
            if concerned and not any("Privacy:" in (ast.get_docstring(n) or "") for n in [node, *drawing]):
                broken.append(
                    f"{path}:{node.lineno} {node.name} has no 'Privacy:' paragraph; say what promise it keeps"
                )
    return broken


def no_assert(tree: Tree) -> list[str]:
    """Invariants are raised: python -O strips asserts."""
    return [
        f"{path}:{node.lineno} asserts, which python -O strips; raise one of tacit.errors"
        for path, source in tree.items()
        for node in nodes_of(source)
        if isinstance(node, ast.Assert)
    ]


def barred_words(tree: Tree) -> list[str]:
    """Nothing unfinished, nothing about where the text was written."""
    return [
        f"{path}:{number} says '{found.group()}'; finish it or leave it out"
        for path, source in tree.items()
        for number, text in enumerate(source.splitlines(), 1)
        if (found := WORDS_BARRED.search(text))
    ]


@cache
def parsed(source: str) -> ast.Module:
    """A source's tree, made once for all rules."""
    return ast.parse(source)


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Every node of a source, in the order of ast.walk."""
    return tuple(ast.walk(parsed(source)))


def room(path: str) -> str:
    """noise/bits.py -> noise; errors.py -> errors; the root itself is ''."""
    first = PurePosixPath(path).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def room_of_module(module: str) -> str:
    """tacit.noise.bits -> noise; the root and its public names (tacit.Laplace) are ''."""
    parts = module.split(".")
    is_public_name = len(parts) == 2 and parts[1] not in LEVEL
    return "" if len(parts) == 1 or is_public_name else parts[1]


def module_of(path: str) -> str:
    """noise/bits.py -> tacit.noise.bits."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ".".join(["tacit", *(part for part in parts if part != "__init__")])


def imports_of_ours(tree: Tree) -> Iterator[tuple[str, str, int]]:
    """(path, module, line) of every import of the package's own modules, those inside functions included."""
    for path, source in tree.items():
        for module, line in imported_names(path, source):
            if module == "tacit" or module.startswith("tacit."):
                yield path, module, line


def imported_names(path: str, source: str) -> Iterator[tuple[str, int]]:
    """Everything a source imports, as dotted names; `from a import b` is a.b, and import_module('a.b') counts."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = absolute(path, node)
            yield from ((f"{home}.{name.name}", node.lineno) for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from (
                (a.value, node.lineno) for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )


def absolute(path: str, node: ast.ImportFrom) -> str:
    """The module a from-import names, relative ones resolved."""
    if node.level == 0:
        return node.module or ""
    package = ["tacit", *PurePosixPath(path).parent.parts]
    parts = package[: len(package) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def dotted_attributes(source: str) -> Iterator[tuple[str, int]]:
    """Dotted names used in a source, such as np.random.default_rng."""
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            if name.startswith(("np.", "numpy.", "os.")):
                yield name, node.lineno


def prefixes(module: str) -> Iterator[str]:
    """a.b.c -> a.b.c, a.b, a."""
    parts = module.split(".")
    return (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def classes(tree: Tree) -> Iterator[tuple[str, ast.ClassDef]]:
    """Every class in a tree with its path."""
    for path, source in tree.items():
        yield from ((path, node) for node in nodes_of(source) if isinstance(node, ast.ClassDef))


def top_classes(source: str) -> list[ast.ClassDef]:
    """The classes at a module's top."""
    return [node for node in parsed(source).body if isinstance(node, ast.ClassDef)]


def local_names(path: str, source: str) -> dict[str, str]:
    """What each from-imported name stands for."""
    return {
        name.asname or name.name: f"{absolute(path, node)}.{name.name}"
        for node in nodes_of(source)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
