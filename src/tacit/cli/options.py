"""The options that `tacit ask`, `tacit plan` and `tacit audit ask` share, and how they become a table and a question.

The commands take exactly the same options, so a plan becomes an answer by changing one word. Numbers stay text until
the product reads them, because 0.1 on a command line means 1/10.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.books import ledger_here
from tacit.cli.column_options import (
    column_kinds,
    find_entry,
    named,
    open_entry,
    open_others,
    read_bound_option,
    read_ends,
    read_key_list,
    read_matches,
    whole_number,
)
from tacit.errors import InvalidParameter, QueryRefused
from tacit.options import FLAGS, OPTIONS

if TYPE_CHECKING:
    from tacit.asking import PlanReport, Question, Table
    from tacit.tables import Source

    Opened = Callable[[Any], Source]

ROW_WORD = "ROW"
MEMORY = ":memory:"
FORMATS = ("table", "details", "json", "csv", "parquet")
TABLE = "The table"
ANSWER = "The answer"
LEDGER = "The ledger"
REQUEST = "Requests with the same id are charged once: a repeated one gets the stored answer."
KEYWORD = inspect.Parameter.KEYWORD_ONLY

Repeated = list[str] | None


def argument(metavar: str, help: str) -> Any:
    """Return a field of a command's options that is an argument."""
    return field(metadata={"typer": lambda _: typer.Argument(metavar=metavar, help=help)})


def required(metavar: str, help: str) -> Any:
    """Return a field of a command's options that must be given."""
    return field(metadata={"typer": lambda _: typer.Option(metavar=metavar, help=help)})


def option(
    metavar: str = "", panel: str | None = None, help: str | None = None, *, name: str = "", default: Any = None
) -> Any:
    """Return a field of a command's options; without words of its own it has those of `tacit.options`."""

    def made(named: str) -> Any:
        words = help or OPTIONS[named].help
        return typer.Option(*([name] if name else []), metavar=metavar or None, help=words, rich_help_panel=panel)

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
        "Read a column as bool, int, float, decimal, text, date or timestamp; CSV is text. Can be repeated.",
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
        """Return the most that the call may cost, its epsilon or the error it must stay within, and how it is spent.

        Neither is needed of a question that is free.
        """
        how: dict[str, Any] = {
            "noise": self.noise,
            "confidence": self.confidence,
            "learn": False if self.learn == "no" else self.learn,
        }
        # with --budget, --delta is the budget's, and the call takes a share of it
        how["delta"] = self.delta if self.budget is None else None
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
            "most": {name: read_matches(number) for name, number in named(self.most, "--most", "wards=2")},
        }


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of its records of options as options of its own, as typer reads them."""
    given = inspect.signature(command).parameters.values()
    records: dict[str, Any] = {each.name: each.annotation for each in given if is_dataclass(each.annotation)}
    shown: list[inspect.Parameter] = []
    for each in given:
        shown += [_parameter(part) for part in fields(each.annotation)] if each.name in records else [each]

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
def _parameter(part: "Field[Any]") -> inspect.Parameter:
    info = part.metadata["typer"](part.name)
    if part.type == int | None:
        info.parser = whole_number
    default = inspect.Parameter.empty if part.default is MISSING else part.default
    return inspect.Parameter(part.name, KEYWORD, default=default, annotation=Annotated[part.type, info])


def opening() -> "Opened":
    """Return a function that opens a source, once however often it is called; no row is read."""
    from tacit.tables import open_source

    return cache(lambda source: open_source(source, {}))


def open_question(options: AskOptions, opened: "Opened | None" = None, *, to_plan: bool) -> "Question":
    """Return the question that these options ask of the table they name or declare; no row is read.

    For a plan, a new table is declared in a ledger in memory, so that the real ledger does not change.
    """
    import tacit

    if options.server is not None:
        raise InvalidParameter(
            "--server is for ask and plan: an audit is of rows that are here\nhint: leave out --server"
        )
    opened = opened or opening()
    entry = find_entry(options.source, options.catalog)
    if entry is not None and is_of_public_facts(options.sql):
        return tacit.catalog(str(entry.file.path)).sql(options.sql)
    names, publics = ([], []) if entry is None else entry.named(options.sql, options.dialect)
    table, ranges = open_table(options, opened, to_plan=to_plan, others=names)
    others, most = ([], {}) if entry is None else open_others(entry, table, names, publics, opened)
    words = options.sql_words
    return table.sql(options.sql, **words | {"between": ranges, "tables": others, "most": most | words["most"]})


def is_of_public_facts(text: str) -> bool:
    """Return whether a statement asks for public facts, which are free: SHOW TABLES, DESCRIBE t."""
    from tacit.asking import asked_of_public_facts

    return asked_of_public_facts(text) is not None


def open_table(
    options: TableOptions, opened: "Opened", *, to_plan: bool, others: Sequence[str] = ()
) -> "tuple[Table, dict[str, tuple[str, str]]]":
    """Return the table that these options name or declare, and the ranges they give to names in a SELECT."""
    if options.try_out and options.ledger is not None:
        raise InvalidParameter("--try keeps no ledger, so it cannot be used with --ledger\nhint: give one of the two")
    entry = find_entry(options.source, options.catalog)
    if entry is not None:
        table = open_entry(entry, options, opened, to_plan=to_plan, others=others)
        ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
        declared = table.frame.declaration.columns
        return table, {
            name: ends for name, ends in ranges.items() if name not in declared or not declared[name].between
        }
    forgets = options.try_out or (to_plan and options.budget is not None)
    return _open_source(options, opened, ledger=MEMORY if forgets else ledger_here(options.ledger))


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
    columns: dict[str, dict[str, Any]] = {
        column: {"type": kind} for column, kind in named(options.type, "--type", "age=int")
    }
    listed = named(options.keys, "--keys", "ward=A,B")
    ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
    kinds = column_kinds(opened(options.source), columns) if listed or ranges else {}
    for name in [name for name in ranges if name in kinds]:
        columns.setdefault(name, {})["between"] = ranges.pop(name)
    for column, text in listed:
        columns.setdefault(column, {})["keys"] = read_key_list(column, text, kinds.get(column, "text"))
    return columns, ranges
