"""The options that `ask`, `plan` and `audit ask` share, so that a plan becomes an answer by changing one word.

Numbers stay text until the product reads them, because 0.1 on a command line means 1/10. COLUMN=VALUE declares a public
fact of a column, read as the column's own type. A table of a catalog is found by name; an option that contradicts the
catalog is refused, because one of them is wrong.
"""

import csv
import inspect
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli.screen import ledger_here
from tacit.errors import InvalidParameter, LedgerError, QueryRefused
from tacit.options import FLAGS, OPTIONS

if TYPE_CHECKING:
    from tacit.asking import Catalog, PlanReport, Question, Table
    from tacit.catalog_file import CatalogEntry, CatalogFile
    from tacit.tables import ColumnFacts, Source

    Opened = Callable[[Any], Source]

ROW_WORD = "ROW"
MEMORY = ":memory:"
FORMATS = ("table", "details", "json", "csv", "parquet")
TABLE = "The table"
ANSWER = "The answer"
LEDGER = "The ledger"
MATCHES = "--most must be TABLE=N, with a whole number of at least 1\nhint: --most wards=2"
REQUEST = "Requests with the same id are charged once: a repeated one gets the stored answer."
KEYWORD = inspect.Parameter.KEYWORD_ONLY

Repeated = list[str] | None


def argument(metavar: str, help: str, *, default: Any = MISSING) -> Any:
    """Return an argument of a command, or a field of its options that is one."""
    return field(default=default, metadata={"typer": lambda _: typer.Argument(metavar=metavar or None, help=help)})


def required(metavar: str, help: str) -> Any:
    return option(metavar, help=help, default=MISSING)


def option(
    metavar: str = "",
    panel: str | None = None,
    help: str | None = None,
    *,
    name: str = "",
    default: Any = None,
    **more: Any,
) -> Any:
    """Return an option of a command, or a field of its options; without own words it has those of `tacit.options`."""

    def made(named: str) -> Any:
        words, names = help or OPTIONS[named].help, [name] if name else []
        return typer.Option(*names, metavar=metavar or None, help=words, rich_help_panel=panel, **more)

    return field(default=default, metadata={"typer": made})


def flag(panel: str | None = None, help: str | None = None, *, name: str) -> Any:
    """Return a field of a command's options that is on or off."""
    return option("", panel, help, name=name, default=False)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A table as a command line names or declares it, and its ledger."""

    source: str = argument(
        "TABLE|SOURCE",
        "A table of the tacit.toml; or a Parquet or CSV file, a quoted glob, air.duckdb?table=NAME, or"
        " 'postgresql://host/db?table=SCHEMA.NAME'.",
    )
    catalog: str | None = option("FILE", TABLE, "The catalog, if not ./tacit.toml.")
    unit: str | None = option("COLUMN|ROW", TABLE, f"{OPTIONS['unit'].help} A catalog declares it already.")
    delta: str | None = option("D", ANSWER)
    budget: str | None = option(
        "E", LEDGER, "How much may ever be learned of one unit; needed once, when the ledger does not know the table."
    )
    same_people_as: str | None = option("TABLE", LEDGER)
    rows_per_unit: str | None = option("N|auto", TABLE)
    groups_per_unit: str | None = option("N|auto", TABLE)
    rows: int | None = option("N", TABLE)
    most_rows_per_unit: int | None = option("N", TABLE)
    between: Repeated = option("NAME=LOW:HIGH", TABLE, f"{OPTIONS['between'].help} Can be repeated.")
    keys: Repeated = option(
        "COLUMN=A,B",
        TABLE,
        "A column's public groups; all are shown. Without, groups are found privately. Can be repeated.",
    )
    type: Repeated = option(
        "COLUMN=TYPE",
        TABLE,
        "Read columns as bool, int, float, decimal, text, date or timestamp: age=int,paid=float; CSV is text.",
    )
    name: str | None = option("NAME", TABLE, "The table's name, if not the file's.")
    version: int | None = option("N", TABLE)
    neighbours: str | None = option("add-remove|replace", TABLE)
    ledger: str | None = option("PATH", LEDGER, "The ledger, if not the one in tacit.toml or in $TACIT_HOME.")
    try_out: bool = flag(
        LEDGER, "Keep no record: a ledger in memory, gone when the command ends. For made-up data.", name="--try"
    )
    analyst: str | None = option("NAME", LEDGER, "The analyst, for the record.")


@dataclass(frozen=True, kw_only=True)
class AskOptions(TableOptions):
    """A command line of `ask` or `plan`, unparsed."""

    sql: str = argument("SQL", OPTIONS["sql"].help)
    epsilon: str | None = option("E", ANSWER)
    error: Repeated = option("[NAME=]2%|N", ANSWER, f"{OPTIONS['error'].help} Can be repeated.")
    for_groups_of: int | None = option("N", ANSWER)
    weights: Repeated = option("NAME=N", ANSWER, f"{OPTIONS['weights'].help} Can be repeated.")
    learn: str | None = option("S|reuse|fresh|no", ANSWER)
    noise: str | None = option("laplace|gaussian", ANSWER)
    confidence: str = option("P", ANSWER, default="0.95")
    consistent: bool = flag(ANSWER, name="--consistent")
    accept_noise: bool = flag(ANSWER, name="--accept-noise")
    format: str = option("|".join(FORMATS), ANSWER, "How it is written.", default="table")
    output: str | None = option("FILE", ANSWER, "Write it to a file; parquet needs one.")
    plot: str | None = option("FILE", ANSWER, "Draw the answer too, as .png, .svg or .html by its ending.")
    request_id: str | None = option("ID", LEDGER, REQUEST)
    server: str | None = option(
        "URL", TABLE, "Ask a server's table, by name; the token is in $TACIT_TOKEN. Its declarations are on the server."
    )
    dialect: str | None = option("NAME", ANSWER)
    most: Repeated = option("TABLE=N", ANSWER, f"{OPTIONS['most'].help} Can be repeated.")

    @property
    def flags(self) -> dict[str, bool]:
        """The given options that only answers use; public facts do not use them."""
        return {name: True for name in FLAGS if getattr(self, name)}

    def spending(self, *, is_free: bool = False) -> dict[str, Any]:
        """Return the most that the call may cost, or the error it must stay within, and how; a free one needs none."""
        how: dict[str, Any] = {
            "noise": self.noise,
            "confidence": self.confidence,
            "learn": False if self.learn == "no" else self.learn,
        }
        # with --budget, --delta is the budget's, and the call takes a share of it
        how["delta"] = self.delta if self.budget is None else None
        how |= {"weights": dict(named(self.weights, "--weights", "ward=3"))} if self.weights else {}
        if self.epsilon is None and self.error is None and is_free:
            return how
        if (self.epsilon is None) == (self.error is None):
            raise InvalidParameter(
                "give --epsilon (the cost of the call) or --error (the error to keep)\nhint: --epsilon 1, or --error 2%"
            )
        if self.error is None:
            return how | {"epsilon": self.epsilon}
        how |= {} if self.for_groups_of is None else {"for_groups_of": self.for_groups_of}
        is_one = len(self.error) == 1 and "=" not in self.error[0]
        return how | {"error": self.error[0] if is_one else dict(named(self.error, "--error", "stay=2%"))}

    @property
    def sql_words(self) -> dict[str, Any]:
        """What belongs to the SELECT: ranges of its names, its dialect, and the matches in public tables."""
        return {
            "between": {name: read_ends(name, ends) for name, ends in named(self.between, "--between", "age=0:120")},
            "dialect": self.dialect,
            "most": {name: read_positive(number, MATCHES) for name, number in named(self.most, "--most", "wards=2")},
        }


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its options, and the fields of its records of options, as typer reads them."""
    given = inspect.signature(command).parameters.values()
    records: dict[str, Any] = {each.name: each.annotation for each in given if is_dataclass(each.annotation)}
    shown: list[inspect.Parameter] = []
    for each in given:
        if each.name in records:
            shown += [_parameter(part.name, cast(Any, part.type), part) for part in fields(each.annotation)]
        else:
            is_option = isinstance(each.default, Field)
            shown.append(_parameter(each.name, each.annotation, each.default) if is_option else each)

    def spread(**written: Any) -> None:
        made = {
            name: record(**{each.name: written.pop(each.name) for each in fields(record)})
            for name, record in records.items()
        }
        command(**made, **written)

    spread.__name__, spread.__doc__ = command.__name__, command.__doc__
    spread.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return spread


@cache
def _parameter(name: str, kind: Any, part: Field[Any]) -> inspect.Parameter:
    info = part.metadata["typer"](name)
    if kind == int | None or (kind is int and info.metavar):
        info.parser = whole_number
    default = inspect.Parameter.empty if part.default is MISSING else part.default
    return inspect.Parameter(name, KEYWORD, default=default, annotation=Annotated[kind, info])


def opening() -> "Opened":
    """Return a function that opens a source, once however often it is called; no row is read."""
    from tacit.tables import open_source

    return cache(lambda source: open_source(source, {}))


def open_question(options: AskOptions, opened: "Opened | None" = None, *, to_plan: bool) -> "Question":
    """Return the question that these options ask; no row is read.

    For a plan, a new table is declared in a ledger in memory, so that the real one does not change.
    """
    import tacit
    from tacit.asking import Catalog, asked_of_public_facts

    if options.server is not None:
        raise InvalidParameter(
            "--server is for ask and plan: an audit is of rows that are here\nhint: leave out --server"
        )
    opened = opened or opening()
    words = options.sql_words
    found = find_entry(options.source, options.catalog)
    if found is None:
        table, ranges = open_table(options, opened, to_plan=to_plan)
        return table.sql(options.sql, **words | {"between": ranges})
    if asked_of_public_facts(options.sql) is not None:
        return tacit.catalog(str(found.file.path)).sql(options.sql)
    names = [name for name in Catalog(found.file).named(options.sql, options.dialect) if name != found.entry.name]
    tables = open_catalog(found, options, opened, to_plan=to_plan, others=names)
    others, most = tables.opened(names)
    ranges = ranges_left(options, tables[found.entry.name])
    words |= {"between": ranges, "tables": others, "most": most | words["most"]}
    return tables[found.entry.name].sql(options.sql, **words)


def open_table(options: TableOptions, opened: "Opened", *, to_plan: bool) -> "tuple[Table, dict[str, tuple[str, str]]]":
    """Return the table that these options name or declare, and the ranges they give to names in a SELECT."""
    if options.try_out and options.ledger is not None:
        raise InvalidParameter("--try keeps no ledger, so it cannot be used with --ledger\nhint: give one of the two")
    found = find_entry(options.source, options.catalog)
    if found is not None:
        table = open_catalog(found, options, opened, to_plan=to_plan)[found.entry.name]
        return table, ranges_left(options, table)
    forgets = options.try_out or (to_plan and options.budget is not None)
    return _open_source(options, opened, ledger=MEMORY if forgets else ledger_here(options.ledger))


def ranges_left(options: TableOptions, table: "Table") -> dict[str, tuple[str, str]]:
    """Return the ranges of --between that the table does not declare: those of names in the SELECT."""
    ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
    declared = table.frame.declaration.columns
    return {name: ends for name, ends in ranges.items() if name not in declared or not declared[name].between}


def _open_source(
    options: TableOptions, opened: "Opened", *, ledger: str | None
) -> "tuple[Table, dict[str, tuple[str, str]]]":
    import tacit

    source = opened(options.source)  # a missing file is reported before a missing option
    if options.unit is None:
        raise InvalidParameter(
            "--unit is missing: it names the column that identifies each person"
            "\nhint: --unit person_id, or --unit ROW if each row is a person; or declare the table once: tacit init"
        )
    columns, ranges = _public_facts(options, opened)
    table = tacit.table(
        source,
        unit=tacit.ROW if options.unit == ROW_WORD else options.unit,
        budget=None if options.budget is None else tacit.epsilon(options.budget, delta=options.delta or 0),
        name=options.name,
        ledger=ledger,
        same_people_as=None if ledger == MEMORY else options.same_people_as,  # such a ledger is empty
        neighbours=options.neighbours or "add-remove",  # type: ignore[arg-type]  # checked there, for both doors
        columns=columns,
        rows_per_unit=read_bound_option(options.rows_per_unit, "--rows-per-unit"),
        groups_per_unit=read_bound_option(options.groups_per_unit, "--groups-per-unit"),
        rows=options.rows,
        most_rows_per_unit=options.most_rows_per_unit,
        version=options.version,
    )
    if options.unit == ROW_WORD and ROW_WORD in table.frame.declaration.columns:
        raise QueryRefused(
            "--unit ROW means that each row is its own person, but this table has a column named ROW"
            "\nhint: rename the column, or use tacit.ROW in Python"
        )
    return table, ranges


def plan_question(options: AskOptions, opened: "Opened") -> "PlanReport":
    """Return the plan of the question; it does not declare a table."""
    question = open_question(options, opened, to_plan=True)
    return question.plan(analyst=options.analyst, **options.spending(is_free=question.is_free))


def _public_facts(
    options: TableOptions, opened: "Opened"
) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, str]]]:
    """Return what --type, --between and --keys declare of columns, and --between of names in the SELECT."""
    columns: dict[str, dict[str, Any]] = {column: {"type": kind} for column, kind in named_types(options.type).items()}
    listed = named(options.keys, "--keys", "ward=A,B")
    ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
    kinds = column_kinds(opened(options.source), columns) if listed or ranges else {}
    for name in [name for name in ranges if name in kinds]:
        columns.setdefault(name, {})["between"] = ranges.pop(name)
    for column, text in listed:
        columns.setdefault(column, {})["keys"] = read_key_list(column, text, kinds.get(column, "text"))
    return columns, ranges


def read_ends(name: str, written: str) -> tuple[str, str]:
    low, colon, high = written.partition(":")
    if not colon:
        raise InvalidParameter(f"--between {name}=... needs two ends\nhint: --between {name}=0:100")
    return low, high


def whole_number(written: str | int) -> int:
    """Return a whole number in ASCII digits; Python's own int() also reads 1_000 and the digits of other scripts."""
    if not re.fullmatch("-?[0-9]{1,18}", str(written), re.ASCII):  # a default is a number already
        raise InvalidParameter("a whole number is written in digits only, at most 18 of them\nhint: e.g. 1000")
    return int(written)


def read_bound_option(written: str | None, option: str) -> int | None:
    """Return a bound that is set by hand; None if it is left out or "auto", and so learned."""
    if written is None or written == "auto":
        return None
    return read_positive(
        written, f"{option} must be a whole number of at least 1, or auto\nhint: leave it out to have it learned"
    )


def read_positive(written: str, problem: str) -> int:
    """Return a whole number of at least 1 in ASCII digits, or refuse it with these words."""
    if not (written.isascii() and written.isdecimal() and len(written) <= 18 and int(written) > 0):
        raise InvalidParameter(problem)
    return int(written)


def named(written: Iterable[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """Return each COLUMN=VALUE as a pair; a column may be named once."""
    pairs: list[tuple[str, str]] = []
    for text in written or ():
        column, equals, value = text.partition("=")
        if not (column and equals and value):
            raise InvalidParameter(f"{option} must be COLUMN=VALUE\nhint: {option} {example}")
        if column in dict(pairs):
            raise InvalidParameter(f"{option} names '{column}' twice\nhint: name it once, e.g. {option} {example}")
        pairs.append((column, value))
    return pairs


def named_types(written: Iterable[str] | None) -> dict[str, str]:
    """Return the type of each column that --type names: one in each, or several with commas."""
    return dict(named([part for text in written or () for part in text.split(",")], "--type", "age=int,paid=float"))


def column_kinds(source: "Source", columns: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return every column's public type, as declared or as the file's schema says."""
    from tacit.tables import open_source, read_facts

    described = open_source(source, {column: read_facts(column, facts) for column, facts in columns.items()})
    return {column: facts.type for column, facts in described.columns.items()}


def read_key(column: str, text: str, kind: str) -> Any:
    """Return a key as its column's type; on a command line everything is text."""
    from tacit.numbers import decimal_meaning

    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in ("int", "decimal", "float"):
        number = decimal_meaning(text, name=f"a key of '{column}'")
        if kind == "float":
            return float(number)
        return int(number) if number.denominator == 1 else number
    return text


def read_key_list(column: str, text: str, kind: str) -> list[Any]:
    """Return the keys in a comma-separated list, which may quote, as their column's type."""
    return [read_key(column, key, kind) for key in next(csv.reader([text], skipinitialspace=True), [])]


# --- tables of a catalog ---


@dataclass(frozen=True)
class FoundEntry:
    """A table of a catalog, with its catalog."""

    entry: "CatalogEntry"
    file: "CatalogFile"


def find_entry(name: str, catalog: str | None) -> FoundEntry | None:
    """Return the catalog's table with this name; None without a catalog, or if the name is a file's."""
    from tacit.catalog_file import FILE_NAME, read_catalog
    from tacit.errors import did_you_mean

    if catalog is None and (os.path.exists(name) or not os.path.exists(FILE_NAME)):
        return None
    file = read_catalog(FILE_NAME if catalog is None else catalog)
    if name not in file.tables:
        if catalog is None and any(mark in name for mark in "./*?["):  # as names of files and addresses have
            return None
        raise QueryRefused(f"{file.path} does not declare '{name}'{did_you_mean(name, file.tables)}")
    return FoundEntry(file.tables[name], file)


def open_catalog(
    found: FoundEntry, options: TableOptions, opened: "Opened", *, to_plan: bool, others: Sequence[str] = ()
) -> "Catalog":
    """Return the catalog with this table open, after checking that the command line does not contradict it."""
    from tacit.asking import Catalog
    from tacit.ledger import open_ledger

    entry, file = found.entry, found.file
    _check_agreement(found, options)
    protected = [entry.name, *(name for name in others if name in file.tables)]
    forgets = options.try_out or (to_plan and not all(is_known(file.ledger, name) for name in protected))
    tables = Catalog(file, open_ledger(MEMORY) if forgets else None, opened)
    try:
        table = tables[entry.name]
    except (InvalidParameter, QueryRefused) as problem:
        raise type(problem)(f"{file.path}, [tables.{entry.name}]: {problem}") from None
    _check_columns(found, table.frame.declaration.columns, options)
    return tables


def is_known(ledger: str | None, name: str) -> bool:
    """Return whether a ledger exists and knows a table; the ledger is not changed or created."""
    from tacit.ledger import open_ledger

    try:
        with open_ledger(ledger, create=False) as opened:
            return opened.table(name) is not None
    except LedgerError:
        return False


def _check_agreement(found: FoundEntry, options: TableOptions) -> None:
    import tacit

    declared: dict[str, Any] = {"neighbours": "add-remove", **found.entry.options, "name": found.entry.name}
    declared["unit"] = "ROW" if declared["unit"] is tacit.ROW else declared["unit"]
    words = ("unit", "name", "rows", "most_rows_per_unit", "version", "neighbours", "same_people_as")
    given: dict[str, Any] = {word: getattr(options, word) for word in words}
    for word in ("rows_per_unit", "groups_per_unit"):
        given[word] = read_bound_option(getattr(options, word), option_of(word))
    if options.ledger is not None:
        given["ledger"], declared["ledger"] = map(os.path.realpath, (options.ledger, found.file.ledger or ""))
    if options.budget is not None:
        given["budget"] = tacit.epsilon(options.budget, delta=options.delta or 0)
    for word, value in given.items():
        _agree(found, option_of(word), value, declared.get(word))


def option_of(word: str) -> str:
    """Return an option as it is written: --rows-per-unit."""
    return f"--{word.replace('_', '-')}"


def _check_columns(found: FoundEntry, columns: Any, options: TableOptions) -> None:
    from tacit.tables import read_between

    def facts(column: str, option: str) -> "ColumnFacts":
        if column not in columns:
            raise QueryRefused(f"{option} names '{column}', but the table has no such column")
        known: ColumnFacts = columns[column]
        return known

    for column, kind in named(options.type, "--type", "age=int"):
        _agree(found, f"--type {column}", kind, facts(column, "--type").type)
    for column, text in named(options.keys, "--keys", "ward=A,B"):
        known = facts(column, "--keys")
        keys = tuple(read_key_list(column, text, known.type))
        _agree(found, f"--keys {column}", keys, known.keys)
    for name, text in named(options.between, "--between", "age=0:120"):
        if name in columns and columns[name].between is not None:
            _agree(found, f"--between {name}", read_between(name, read_ends(name, text)), columns[name].between)


def _agree(found: FoundEntry, option: str, given: Any, declared: Any) -> None:
    if given is None or given == declared:
        return
    catalog = "declares another value" if declared is not None else "does not declare it"
    raise InvalidParameter(
        f"{option} contradicts {found.file.path}: [tables.{found.entry.name}] {catalog}"
        f"\nhint: leave out {option.split(maxsplit=1)[0]}, or ask the curator to change the catalog"
    )
