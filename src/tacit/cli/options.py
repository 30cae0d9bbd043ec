"""The options that `tacit ask`, `tacit plan` and `tacit audit ask` share, and how they become a table and a question.

The commands take exactly the same options, so a plan becomes an answer by changing one word. Numbers stay text until
the product reads them, because 0.1 on a command line means 1/10.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
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

Repeated = list[str] | None


@dataclass(frozen=True)
class AskOptions:
    """A command line of `ask` or `plan`, unparsed."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|SOURCE",
            help="A table of the tacit.toml; or a Parquet or CSV file, a quoted glob, air.duckdb?table=NAME, or"
            " 'postgresql://host/db?table=SCHEMA.NAME'.",
        ),
    ]
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; FROM names the table, or the file's stem.")]
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="The most that this whole call may cost.", rich_help_panel=ANSWER)
    ] = None
    error: Annotated[
        Repeated,
        typer.Option(
            metavar="[NAME=]2%|N",
            help="Or how far off it may be: the least epsilon is found for it, from public facts. Can be repeated.",
            rich_help_panel=ANSWER,
        ),
    ] = None
    for_groups_of: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="With --error: how many rows a group has that it must hold for.",
            rich_help_panel=ANSWER,
        ),
    ] = None
    learn: Annotated[
        str | None,
        typer.Option(
            metavar="S|reuse|fresh|no",
            help="The share of epsilon that learns missing bounds, e.g. 0.1; they are kept. With no, a question "
            "that would have to learn is refused. With a WHERE: reuse the whole table's, or learn fresh "
            "ones.",
            rich_help_panel=ANSWER,
        ),
    ] = None
    catalog: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The catalog, if not ./tacit.toml.", rich_help_panel=TABLE),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|ROW",
            help="The column of people (one value per person); ROW if each row is a person. A catalog declares it "
            "already.",
            rich_help_panel=TABLE,
        ),
    ] = None
    delta: Annotated[
        str | None,
        typer.Option(
            metavar="D",
            help="With --budget, the budget's delta, of which a call takes its share; without, this call's own.",
            rich_help_panel=ANSWER,
        ),
    ] = None
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="E",
            help="How much may ever be learned of one unit; needed once, when the ledger does not know the table.",
            rich_help_panel=LEDGER,
        ),
    ] = None
    same_people_as: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Another table of the ledger about the same people, which shares its budget with this one.",
            rich_help_panel=LEDGER,
        ),
    ] = None
    rows_per_unit: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="By hand: the most rows of one unit that count in a group. Learned if left out.",
            rich_help_panel=TABLE,
        ),
    ] = None
    groups_per_unit: Annotated[
        str | None,
        typer.Option(
            metavar="N|auto",
            help="By hand: the most groups that one unit counts in. Learned if left out.",
            rich_help_panel=TABLE,
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="The number of rows of the table, if it is public.",
            rich_help_panel=TABLE,
        ),
    ] = None
    most_rows_per_unit: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="The most rows that any unit can have, if known.",
            rich_help_panel=TABLE,
        ),
    ] = None
    between: Annotated[
        Repeated,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="By hand: the public range of a column, or of a name in the SELECT; values outside count as its ends. "
            "Learned if left out. Can be repeated.",
            rich_help_panel=TABLE,
        ),
    ] = None
    keys: Annotated[
        Repeated,
        typer.Option(
            metavar="COLUMN=A,B",
            help="A column's public groups; all are shown. Without, groups are found privately. Can be repeated.",
            rich_help_panel=TABLE,
        ),
    ] = None
    type: Annotated[
        Repeated,
        typer.Option(
            metavar="COLUMN=TYPE",
            help="Read a column as bool, int, float, decimal, text, date or timestamp; CSV is text. Can be repeated.",
            rich_help_panel=TABLE,
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table's name, if not the file's.", rich_help_panel=TABLE),
    ] = None
    version: Annotated[
        int | None,
        typer.Option(
            parser=whole_number,
            metavar="N",
            help="Which state of the data it is; raise it when rows were added. As before, if not said.",
            rich_help_panel=TABLE,
        ),
    ] = None
    neighbours: Annotated[
        str | None,
        typer.Option(
            metavar="add-remove|replace",
            help="How neighbouring tables differ; add-remove if left out.",
            rich_help_panel=TABLE,
        ),
    ] = None
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="laplace|gaussian", help="The noise, if not the one that errs less.", rich_help_panel=ANSWER
        ),
    ] = None
    confidence: Annotated[
        str,
        typer.Option(
            metavar="P", help="The probability that an interval holds the true number.", rich_help_panel=ANSWER
        ),
    ] = "0.95"
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent",
            help="Make the numbers possible ones, at no cost: counts not negative, quantiles rising.",
            rich_help_panel=ANSWER,
        ),
    ] = False
    accept_noise: Annotated[
        bool,
        typer.Option(
            "--accept-noise",
            help="Answer also what is foreseen to be mostly noise; without, it is refused before it is charged.",
            rich_help_panel=ANSWER,
        ),
    ] = False
    format: Annotated[
        str,
        typer.Option(metavar="|".join(FORMATS), help="How it is written.", rich_help_panel=ANSWER),
    ] = "table"
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write it to a file; parquet needs one.", rich_help_panel=ANSWER),
    ] = None
    plot: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Draw the answer too, as .png, .svg or .html by its ending.", rich_help_panel=ANSWER
        ),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The ledger, if not the one in tacit.toml or in $TACIT_HOME.",
            rich_help_panel=LEDGER,
        ),
    ] = None
    try_out: Annotated[
        bool,
        typer.Option(
            "--try",
            help="Keep no record: a ledger in memory, gone when the command ends. For made-up data.",
            rich_help_panel=LEDGER,
        ),
    ] = False
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="The analyst, for the record.", rich_help_panel=LEDGER)
    ] = None
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Requests with the same id are charged once: a repeated one gets the stored answer.",
            rich_help_panel=LEDGER,
        ),
    ] = None

    @property
    def may_learn(self) -> "str | bool | None":
        """The share that learns, as `answer` reads it."""
        return False if self.learn == "no" else self.learn

    @property
    def flags(self) -> dict[str, bool]:
        """The given options that only answers use; public facts do not use them."""
        words = {"consistent": self.consistent, "accept_noise": self.accept_noise}
        return {name: True for name, given in words.items() if given}

    @property
    def call_delta(self) -> str | None:
        """The delta of this call; None if --delta is the budget's delta, and the call takes a share of it."""
        return self.delta if self.budget is None else None

    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask a server's table, by name; the token is in $TACIT_TOKEN. Its declarations are on the server.",
            rich_help_panel=TABLE,
        ),
    ] = None
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The dialect of the SELECT, e.g. postgres, bigquery, spark; functions mean what the catalogue says.",
            rich_help_panel=ANSWER,
        ),
    ] = None
    most: Annotated[
        Repeated,
        typer.Option(
            metavar="TABLE=N",
            help="How many rows of a public table one row may match in a JOIN; 1 if not said. Can be repeated.",
            rich_help_panel=ANSWER,
        ),
    ] = None


def with_options(command: Callable[[AskOptions], None]) -> Callable[..., None]:
    """Return the command with every field of `AskOptions` as a separate argument or option, as typer reads them."""

    def spread(**given: Any) -> None:
        command(AskOptions(**given))

    spread.__doc__ = command.__doc__
    spread.__signature__ = inspect.signature(AskOptions)  # type: ignore[attr-defined]
    return spread


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
    table, ranges = open_table(options, opened, to_plan=to_plan)
    others, most = ([], {}) if entry is None else open_others(entry, table, options, opened)
    for name, number in named(options.most, "--most", "wards=2"):
        most[name] = read_matches(number)
    return table.sql(options.sql, between=ranges, dialect=options.dialect, tables=others, most=most)


def is_of_public_facts(text: str) -> bool:
    """Return whether a statement asks for public facts, which are free: SHOW TABLES, DESCRIBE t."""
    from tacit.asking import asked_of_public_facts

    return asked_of_public_facts(text) is not None


def open_table(options: AskOptions, opened: "Opened", *, to_plan: bool) -> "tuple[Table, dict[str, tuple[str, str]]]":
    """Return the table that these options name or declare, and the ranges they give to names in a SELECT."""
    if options.try_out and options.ledger is not None:
        raise InvalidParameter("--try keeps no ledger, so it cannot be used with --ledger\nhint: give one of the two")
    entry = find_entry(options.source, options.catalog)
    if entry is not None:
        table = open_entry(entry, options, opened, to_plan=to_plan)
        ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
        declared = table.frame.declaration.columns
        return table, {
            name: ends for name, ends in ranges.items() if name not in declared or not declared[name].between
        }
    forgets = options.try_out or (to_plan and options.budget is not None)
    return _open_source(options, opened, ledger=MEMORY if forgets else ledger_here(options.ledger))


def _open_source(
    options: AskOptions, opened: "Opened", *, ledger: str | None
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
    return question.plan(
        delta=options.call_delta,
        analyst=options.analyst,
        noise=options.noise,
        confidence=options.confidence,
        learn=options.may_learn,
        **spending(options, question),
    )


def spending(options: AskOptions, question: "Question | None") -> dict[str, Any]:
    """Return the most that the call may cost: its epsilon, or the error it must stay within; None if the call is
    free."""
    if options.epsilon is None and options.error is None and question is not None and question.is_free:
        return {}
    if (options.epsilon is None) == (options.error is None):
        raise InvalidParameter(
            "give --epsilon (the cost of the call) or --error (the error to keep)\nhint: --epsilon 1, or --error 2%"
        )
    if options.error is None:
        return {"epsilon": options.epsilon}
    groups = {} if options.for_groups_of is None else {"for_groups_of": options.for_groups_of}
    if len(options.error) == 1 and "=" not in options.error[0]:
        return {"error": options.error[0], **groups}
    return {"error": dict(named(options.error, "--error", "stay=2%")), **groups}


def _public_facts(
    options: AskOptions, opened: "Opened"
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
