"""`tacit init` writes a tacit.toml from a table's schema and a few answers; `tacit tables` lists what it declares.

Both read names and types of columns, and no row: taking a range or keys from the data would be a leak, so `init` writes
them as comments to fill in. `tables` checks each declaration and names its mistake.
"""

import json
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli.budget import NO_TABLES
from tacit.cli.options import (
    argument,
    named,
    named_types,
    option,
    read_ends,
    read_key_list,
    read_positive,
    whole_number,
    with_options,
)
from tacit.cli.screen import ServerAddress, connected, say
from tacit.errors import InvalidParameter, LedgerError, QueryRefused, TacitError
from tacit.files import read_small

if TYPE_CHECKING:
    from tacit.catalog_file import CatalogEntry, CatalogFile
    from tacit.ledger import Ledger
    from tacit.remote import RemoteTable


Repeated = list[str] | None
NUMBERS = ("int", "float", "decimal")
TOML_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
BARE = re.compile(r"[A-Za-z0-9_-]+")
HEAD = """\
# The declaration of each table: its unit, its budget, and its public facts. `tacit tables` lists it.
# Fill in what is commented out, from knowledge of the subject; read none of it off the data.
"""


@dataclass(frozen=True)
class TableDraft:
    """The declaration of a table, from flags and from answers; None means: still to fill in."""

    source: str
    name: str
    kinds: dict[str, str]
    unit: str | None
    rows_per_unit: str | None
    groups_per_unit: str | None
    budget: str | None
    delta: str | None
    between: dict[str, tuple[str, str]]
    keys: dict[str, list[Any]]
    types: dict[str, str]

    @property
    def is_csv(self) -> bool:
        """Whether the file leaves every column's type open."""
        return ".csv" in Path(self.source).name.lower()


RowsBound = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="N", help="By hand: the most rows of one unit that count in a group."),
]
GroupsBound = Annotated[
    int | None,
    typer.Option(parser=whole_number, metavar="N", help="By hand: the most groups that one unit counts in."),
]


@with_options
def init(
    source: str = argument("SOURCE", "A Parquet or CSV file, a glob, a.duckdb?table=t, or an address."),
    *,
    name: str | None = option("NAME", help="The table's name, if not the file's."),
    unit: str | None = option(
        "COLUMN|ROW", help="The column of people (one value per person); ROW if each row is a person."
    ),
    rows_per_unit: RowsBound = None,
    groups_per_unit: GroupsBound = None,
    budget: str | None = option("E", help="The epsilon that may ever be spent."),
    delta: str | None = option("D", help="The budget's delta."),
    between: Repeated = option("COLUMN=LOW:HIGH", help="A column's public range. Can be repeated."),
    keys: Repeated = option("COLUMN=A,B", help="A column's public groups. Can be repeated."),
    type: Repeated = option(
        "COLUMN=TYPE", help="Read columns as these types: age=int,paid=float; CSV is text. Can be repeated."
    ),
    output: str = option("FILE", help="The catalog to write, or to add to.", default="tacit.toml"),
    asking: bool = option(help="Ask for the missing flags; only on a terminal.", name="--ask/--no-ask", default=True),
) -> None:
    """Write a tacit.toml that declares a table, so that questions only need the table's name.

    The command asks for missing flags, and leaves unknown settings as comments. Only the schema is read, no row.
    An existing tacit.toml gets the table added.

    Example: `tacit init visits.parquet`, or without being asked:

    `tacit init visits.parquet --unit patient_id --budget 2 --delta 1e-6`
    """
    from tacit.catalog_file import without_password

    types = named_types(type)
    kinds, stem = _schema(source, types)
    # the catalog names a path from its own folder, and an address without its password
    folder = Path(output).resolve().parent
    kept = without_password(source) if "://" in source else os.path.relpath(source, folder)
    draft = TableDraft(
        source=kept,
        name=name or stem,
        kinds=kinds,
        unit=unit,
        rows_per_unit=None if rows_per_unit is None else str(rows_per_unit),
        groups_per_unit=None if groups_per_unit is None else str(groups_per_unit),
        budget=budget,
        delta=delta,
        between={column: read_ends(column, ends) for column, ends in named(between, "--between", "age=0:120")},
        keys={c: read_key_list(c, text, kinds.get(c, "text")) for c, text in named(keys, "--keys", "ward=A,B")},
        types=types,
    )
    before = _existing(Path(output), draft.name)
    check(draft)
    _write_catalog(ask_for_rest(draft) if asking and sys.stdin.isatty() else draft, before, output)


def check(draft: TableDraft) -> None:
    """Refuse what the table's declaration would refuse later."""
    from tacit.errors import did_you_mean
    from tacit.privacy import epsilon
    from tacit.tables import read_facts

    for column in (*draft.between, *draft.keys, *([draft.unit] if draft.unit not in (None, "ROW") else [])):
        if column not in draft.kinds:
            raise QueryRefused(f"the table has no column '{column}'{did_you_mean(column, draft.kinds)}")
    for column, ends in draft.between.items():
        read_facts(column, {"between": ends})
    for column, keys in draft.keys.items():
        read_facts(column, {"keys": keys})
    if draft.budget is not None:
        epsilon(draft.budget, delta=draft.delta or 0)
    elif draft.delta is not None:
        raise InvalidParameter("--delta belongs to the budget, but --budget is missing\nhint: --budget 3 --delta 1e-6")
    for bound in (draft.rows_per_unit, draft.groups_per_unit):
        if bound is not None:
            read_positive(bound, "a bound per unit must be a whole number of at least 1\nhint: e.g. 3")


def ask_for_rest(draft: TableDraft) -> TableDraft:
    """Ask for everything that is still open; an empty answer leaves it to fill in."""
    say(f"Columns of {draft.name}: {', '.join(f'{name} ({kind})' for name, kind in draft.kinds.items())}")
    say("Answer from knowledge of the subject, not from the data. Press Enter to leave it open.\n")
    if draft.unit is None:
        draft = ask_once(draft, "unit", "The column of people (one value per person), or ROW")
    if draft.budget is None:
        draft = ask_once(draft, "budget", "The epsilon that may ever be spent, for life (1 to 5 is common)")
    if draft.budget is not None and draft.delta is None:
        draft = ask_once(draft, "delta", "Its delta, far below one over the number of people (e.g. 1e-6)")
    for column, kind in draft.kinds.items():
        if kind in NUMBERS and column != draft.unit and column not in draft.between and column not in draft.keys:
            draft = ask_once(draft, f"between {column}", f"The range of {column}, as LOW:HIGH; Enter: it is learned")
    return draft


def ask_once(draft: TableDraft, what: str, question: str) -> TableDraft:
    """Return the declaration with one more answer; ask again until it is valid or empty."""
    while True:
        given = str(typer.prompt(question, default="", show_default=False)).strip()
        if not given:
            return draft
        try:
            if what.startswith("between "):
                column = what.removeprefix("between ")
                more = replace(draft, between={**draft.between, column: read_ends(column, given)})
            else:
                more = replace(draft, **cast(Any, {what: given}))
            check(more)
        except TacitError as problem:
            say(f"  {problem}")
        else:
            return more


def _write_catalog(draft: TableDraft, before: str, output: str) -> None:
    """Write the catalog, after its earlier content, and print the next steps."""
    try:
        Path(output).write_text(before + ("\n" if before else HEAD) + to_toml(draft), encoding="utf-8")
    except OSError:
        raise InvalidParameter(f"{output} cannot be written there\nhint: --output tacit.toml") from None
    say(_closing(draft, output))


def to_toml(draft: TableDraft) -> str:
    """Return one table's part of a catalog, with open entries as comments."""
    header = f"tables.{_toml_key(draft.name)}"
    delta = f", delta = {_toml_number(draft.delta)}" if draft.delta is not None else ""
    unit = None if draft.unit is None else _toml_text(draft.unit)
    budget = None if draft.budget is None else f"{{ epsilon = {_toml_number(draft.budget)}{delta} }}"
    lines = [
        f"[{header}]",
        f"source = {_toml_text(draft.source)}",
        _toml_line("unit", unit, '"person_id"', "the protected people; ROW: each row", missing="fill in: "),
        _toml_line(
            "budget", budget, "{ epsilon = 3, delta = 1e-6 }", "the budget for one unit, for life", missing="fill in: "
        ),
        '# neighbours = "add-remove"  # or "replace": how neighbouring tables differ',
        "# population = 100000  # about how many people; a delta too large for them is refused",
        "# How much one unit may count for is learned once, for a part of a question's epsilon. To declare it instead:",
        _toml_line("rows_per_unit", draft.rows_per_unit, "3", "the most rows of one unit that count in a group"),
        _toml_line("groups_per_unit", draft.groups_per_unit, "2", "the most groups that one unit counts in"),
        "# rows = 1000000  # how many rows there are, if that is public",
        "# most_rows_per_unit = 366  # the most rows that any unit can have, if that is known whatever the data",
    ]
    for column, kind in draft.kinds.items():
        if column != draft.unit:
            lines += ["", *_column_lines(draft, column, kind, header)]
    return "\n".join(lines) + "\n"


def _column_lines(draft: TableDraft, column: str, kind: str, header: str) -> list[str]:
    """Return a column's part; only comments for a column without a declaration."""
    known: list[str] = []
    if column in draft.types:
        known.append(f"type = {_toml_text(draft.types[column])}")
    if column in draft.between:
        known.append(f"between = [{', '.join(_toml_number(end) for end in draft.between[column])}]")
    if column in draft.keys:
        known.append(f"keys = [{', '.join(_value(key) for key in draft.keys[column])}]")
    title = f"[{header}.columns.{_toml_key(column)}]"
    if known:
        return [title, *known]
    if kind in NUMBERS:
        return [f"# {title}  # {kind}", "# between = [LOW, HIGH]  # learned if left out; a known range is more exact"]
    if kind == "other":
        return [f"# {title}  # cannot be read, so questions cannot use it"]
    keys = '# keys = ["A", "B"]  # if the groups are public; without, they are found privately'
    if draft.is_csv and kind == "text":
        return [f"# {title}  # text, unless said", _type_line(column), keys]
    return [f"# {title}  # {kind}", keys]


# The type of a CSV column, guessed from its name: names are public, cells are not.
TYPES_BY_NAME = (
    ("int", {"id", "ids", "nr", "no", "num", "number", "count", "age", "days", "hours", "year", "size", "rank", "zip"}),
    ("date", {"date", "day", "birthday", "born", "datum"}),
    ("timestamp", {"time", "timestamp", "at", "when", "since", "until"}),
    ("float", {"amount", "price", "cost", "sum", "total", "mean", "rate", "income", "weight", "height", "value"}),
    ("bool", {"is", "has", "flag"}),
)


def _type_line(column: str) -> str:
    """Return an example of a type for a column of a CSV file, chosen by the column's name only."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower()))
    kind = next((kind for kind, names in TYPES_BY_NAME if words & names), "text")
    others = [each for each in ("int", "float", "decimal", "date", "timestamp", "bool") if each != kind]
    return f'# type = "{kind}"  # or {", ".join(others)}'


def _toml_line(word: str, value: str | None, example: str, meaning: str, *, missing: str = "") -> str:
    return f"# {word} = {example}  # {missing}{meaning}" if value is None else f"{word} = {value}  # {meaning}"


def _schema(source: str, types: dict[str, str]) -> tuple[dict[str, str], str]:
    """Return the columns' types and the table's name, read only from the schema."""
    from tacit.tables import open_source, read_facts

    opened = open_source(source, {column: read_facts(column, {"type": kind}) for column, kind in types.items()})
    return {column: facts.type for column, facts in opened.columns.items()}, opened.stem


def _existing(path: Path, name: str) -> str:
    """Return the catalog that is there, which must not have the table yet."""
    if not path.exists():
        return ""
    import tomllib

    from tacit.catalog_file import BYTES_MAX

    try:
        text = read_small(path, bytes_max=BYTES_MAX)
        tables = tomllib.loads(text).get("tables", {})
    except (OSError, ValueError, RecursionError) as problem:
        raise InvalidParameter(
            f"{path} exists, but a table cannot be added to it\nhint: repair it, or use --output other.toml"
        ) from (problem)
    if name in tables:
        text = _without(path, text, name, tables)
    return text if text.endswith("\n") or not text else text + "\n"


def _without(path: Path, text: str, name: str, tables: dict[str, Any]) -> str:
    """Return a catalog without a table that declares only its source, as `init` leaves it; refuse any other.

    Such a table lacks a unit, so it was never asked, and no declaration is lost.
    """
    import tomllib

    header = re.compile(rf"\s*\[\s*tables\s*\.\s*(?:{re.escape(_toml_key(name))}|{re.escape(_toml_text(name))})\s*\]")
    lines = text.splitlines(keepends=True)
    first = next((place for place, line in enumerate(lines) if header.match(line)), len(lines))
    last = next((place for place in range(first + 1, len(lines)) if lines[place].lstrip().startswith("[")), len(lines))
    left = "".join(lines[:first] + lines[last:])
    others = {other: declared for other, declared in tables.items() if other != name}
    if set(tables[name]) == {"source"} and tomllib.loads(left).get("tables", {}) == others:
        return left
    lacking = "" if "unit" in tables[name] else ", without a unit"
    raise InvalidParameter(f"{path} already declares '{name}'{lacking}\nhint: edit it there, or give another --name")


def _closing(draft: TableDraft, output: str) -> str:
    open_ends = [word for word in ("unit", "budget") if getattr(draft, word) is None]
    ranges = [c for c, kind in draft.kinds.items() if kind in NUMBERS and c != draft.unit and c not in draft.between]
    lines = [f"wrote {output}: table {draft.name}, {len(draft.kinds)} columns; no row was read"]
    if open_ends:
        lines.append(f"to fill in: {', '.join(open_ends)}")
    if ranges:
        lines.append(f"ranges that questions will learn: {', '.join(ranges)}")
    if draft.is_csv:
        lines.append("a CSV file's columns are text: give those of numbers and dates a type, by --type or in the file")
    lines.append(f"then: tacit tables, and tacit plan {draft.name} 'SELECT ...' --epsilon 1")
    return "\n".join(lines)


def _toml_key(name: str) -> str:
    return name if BARE.fullmatch(name) else _toml_text(name)


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_number(written: str) -> str:
    return written if TOML_NUMBER.fullmatch(written) else _toml_text(written)


def _value(key: Any) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return _toml_text(key) if isinstance(key, str) else _toml_number(str(key))


# --- tacit tables ---

MISTAKEN = "  mistake:   "


@with_options
def tables(
    *,
    catalog: str | None = option("FILE", help="The catalog, if not ./tacit.toml.", show_default=False),
    server: ServerAddress = None,
) -> None:
    """List the tables of the tacit.toml, or of a server: unit, bounds, public facts, budget and the rest of it.

    Example: `tacit tables`
    """
    if server is not None:
        if catalog is not None:
            raise InvalidParameter("--catalog is for tables here, and --server for others\nhint: give one of them")
        say("\n\n".join(map(describe_there, connected(server).values())) or NO_TABLES)
        return
    from tacit.catalog_file import FILE_NAME, read_catalog
    from tacit.ledger import open_ledger

    file = read_catalog(FILE_NAME if catalog is None else catalog)
    try:
        with open_ledger(file.ledger, create=False) as ledger:
            shown = [describe(file, name, ledger) for name in file.tables]
    except LedgerError:
        if file.ledger is not None and "://" in file.ledger:
            raise  # a ledger at an address must exist
        shown = [describe(file, name, None) for name in file.tables]
    shown += [
        f"{entry.name}: {entry.shown}\n  public:    protected tables may be joined with it"
        for entry in file.public.values()
    ]
    say("\n\n".join(shown))
    if any(MISTAKEN in each for each in shown):
        raise typer.Exit(2)


def describe_there(table: "RemoteTable") -> str:
    clock = (
        f"answers leave {table.hold} after a question, or at a later public tick (2, 4, 8, 10, 12 ... times as long)"
    )
    return f"{table.describe()}\n{clock}\nleft: {table.left}"


def describe(file: "CatalogFile", name: str, ledger: "Ledger | None") -> str:
    import tacit

    entry, owner = file.tables[name], file.owner_of(name)
    options = entry.options
    unit = "each row" if options["unit"] is tacit.ROW else f"all rows of one {file.unit_of(name)}"
    lines = [
        f"{entry.name}: {entry.shown}",
        f"  protected: {unit}; neighbours: {options.get('neighbours', 'add-remove')}",
        f"  bounds:    {_bounds_words(options)}",
    ]
    public = [text for column, facts in options["columns"].items() if (text := _facts(column, facts))]
    if public:
        lines.append(f"  public:    {'; '.join(public)}")
    if owner is not None:
        lines.append(f"  belongs:   to the {file.unit_of(name)} of {owner} with its {options['via']}")
    shared = owner or options.get("same_people_as")
    budget = _budget(entry, ledger)
    lines.append(f"  budget:    {budget if shared is None else f'that of {shared}, with the same people: {budget}'}")
    mistake = _mistake(file, name)
    return "\n".join([*lines, f"{MISTAKEN}{mistake}"] if mistake else lines)


def _mistake(file: "CatalogFile", name: str) -> str:
    """Return the reason why the table cannot be asked as declared, or an empty text; its schema is read, and no row."""
    from tacit.asking import Catalog

    try:
        Catalog(file).declared(name)
    except TacitError as problem:
        return str(problem).replace("\n", "\n             ")
    return ""


def _bounds_words(options: Any) -> str:
    rows, groups = options.get("rows_per_unit"), options.get("groups_per_unit")
    parts = [f"at most {rows} rows of a unit in a group"] if rows not in (None, "auto") else []
    parts += [f"in at most {groups} groups"] if groups not in (None, "auto") else []
    return ", ".join(parts) or "learned"


def _facts(column: str, facts: Any) -> str:
    parts = []
    if facts.get("between") not in (None, "auto"):
        parts.append(f"from {facts['between'][0]} to {facts['between'][1]}")
    if facts.get("keys") is not None:
        parts.append(f"{len(facts['keys'])} keys")
    if facts.get("type") is not None:
        parts.append(f"read as {facts['type']}")
    return f"{column} {', '.join(parts)}" if parts else ""


def _budget(entry: "CatalogEntry", ledger: "Ledger | None") -> str:
    table = None if ledger is None else ledger.table(entry.name)
    if table is None or ledger is None:
        declared = entry.options.get("budget")
        if declared is None and ("via" in entry.options or "same_people_as" in entry.options):
            return "not asked yet"
        return "not set, and the first question needs one" if declared is None else f"{declared}, not asked yet"
    left = ledger.left(table)
    return f"{table.budget_words}; left: {left}"
