"""The words that `tacit ask` and `tacit plan` share, and how they become a declared table and a question.

Both commands take exactly these, so that a plan becomes an answer by changing one word. Numbers stay text until the
product reads them, since 0.1 on a command line means 1/10.
"""

import csv
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import InvalidParameter, QueryRefused

if TYPE_CHECKING:
    from tacit.door import PlanReport, Question

ROW_WORD = "ROW"
MEMORY = ":memory:"
FORMATS = ("table", "json", "csv", "parquet")
TABLE = "The table"
ANSWER = "The answer"
LEDGER = "The ledger"

Repeated = list[str] | None


@dataclass(frozen=True)
class Words:
    """One command line of `ask` or `plan`, as written."""

    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A Parquet or CSV file, or a quoted glob of them.")]
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; FROM names the file without its ending.")]
    unit: Annotated[
        str,
        typer.Option(
            metavar="COLUMN|ROW",
            help="The column that says whose row it is; ROW if each row is its own person.",
            rich_help_panel=TABLE,
        ),
    ]
    epsilon: Annotated[str, typer.Option(metavar="E", help="What this whole call may cost.", rich_help_panel=ANSWER)]
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
    rows_per_unit: Annotated[
        int | None,
        typer.Option(metavar="N", help="The most rows of one unit that count in a group.", rich_help_panel=TABLE),
    ] = None
    groups_per_unit: Annotated[
        int | None,
        typer.Option(metavar="N", help="The most groups that one unit counts in.", rich_help_panel=TABLE),
    ] = None
    between: Annotated[
        Repeated,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="The public range of a column, or of a name in the SELECT; values outside count as its ends. "
            "Can be repeated.",
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
    neighbours: Annotated[
        str,
        typer.Option(metavar="add-remove|replace", help="What one unit may have done.", rich_help_panel=TABLE),
    ] = "add-remove"
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="laplace|gaussian", help="The noise, if not the one that errs less.", rich_help_panel=ANSWER
        ),
    ] = None
    confidence: Annotated[
        str, typer.Option(metavar="P", help="How often an error bar holds the truth.", rich_help_panel=ANSWER)
    ] = "0.95"
    format: Annotated[
        str,
        typer.Option(metavar="|".join(FORMATS), help="How it is written.", rich_help_panel=ANSWER),
    ] = "table"
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write it to a file; parquet needs one.", rich_help_panel=ANSWER),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where charges are kept; $TACIT_HOME/ledger.db if left out.",
            rich_help_panel=LEDGER,
        ),
    ] = None
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who asks, for the record.", rich_help_panel=LEDGER)
    ] = None
    request_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="One id is charged once: sent again, it gets the answer it already has.",
            rich_help_panel=LEDGER,
        ),
    ] = None

    @property
    def call_delta(self) -> str | None:
        """The delta of this call alone; None where --delta speaks of the budget, and the call takes its share."""
        return self.delta if self.budget is None else None


def with_words(command: Callable[[Words], None]) -> Callable[..., None]:
    """Return the command with every field of `Words` as an argument or option of its own, as typer reads them."""

    def spread(**given: Any) -> None:
        command(Words(**given))

    spread.__doc__ = command.__doc__
    spread.__signature__ = inspect.signature(Words)  # type: ignore[attr-defined]
    return spread


def open_question(words: Words, *, ledger: str | None) -> "Question":
    """Return the question these words ask of the table they declare; no row is read."""
    import tacit

    columns, ranges = _public_facts(words)
    table = tacit.table(
        words.source,
        unit=tacit.ROW if words.unit == ROW_WORD else words.unit,
        budget=None if words.budget is None else tacit.epsilon(words.budget, delta=words.delta or 0),
        name=words.name,
        ledger=ledger,
        neighbours=words.neighbours,  # type: ignore[arg-type]  # checked there, for both doors
        columns=columns,
        rows_per_unit=words.rows_per_unit,
        groups_per_unit=words.groups_per_unit,
    )
    if words.unit == ROW_WORD and ROW_WORD in table.frame.declaration.columns:
        raise QueryRefused(
            "--unit ROW means that each row is its own person, and this table has a column of that name"
            "\nhint: rename the column, or say tacit.ROW in Python"
        )
    return table.sql(words.sql, between=ranges)


def plan_question(words: Words) -> "PlanReport":
    """Return what answering would do; with --budget in a ledger that is forgotten, so that nothing is declared."""
    question = open_question(words, ledger=words.ledger if words.budget is None else MEMORY)
    return question.plan(words.epsilon, words.call_delta, noise=words.noise, confidence=words.confidence)


def _public_facts(words: Words) -> tuple[dict[str, dict[str, Any]], dict[str, tuple[str, str]]]:
    """Return what --type, --between and --keys declare of columns, and --between of names in the SELECT."""
    columns: dict[str, dict[str, Any]] = {
        column: {"type": kind} for column, kind in _named(words.type, "--type", "age=int")
    }
    listed = _named(words.keys, "--keys", "ward=A,B")
    ranges = {name: _ends(name, ends) for name, ends in _named(words.between, "--between", "age=0:120")}
    kinds = _kinds(words.source, columns) if listed or ranges else {}
    for name in [name for name in ranges if name in kinds]:
        columns.setdefault(name, {})["between"] = ranges.pop(name)
    for column, text in listed:
        keys = next(csv.reader([text], skipinitialspace=True), [])
        columns.setdefault(column, {})["keys"] = [_key(column, key, kinds.get(column, "text")) for key in keys]
    return columns, ranges


def _ends(name: str, written: str) -> tuple[str, str]:
    low, colon, high = written.partition(":")
    if not colon:
        raise InvalidParameter(f"--between {name}=... needs two ends\nhint: --between {name}=0:100")
    return low, high


def _named(written: Iterable[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """Return each COLUMN=VALUE as a pair; a column may be named once."""
    pairs: list[tuple[str, str]] = []
    for text in written or ():
        column, equals, value = text.partition("=")
        if not (column and equals and value):
            raise InvalidParameter(f"{option} must be COLUMN=VALUE\nhint: {option} {example}")
        if column in dict(pairs):
            raise InvalidParameter(f"{option} names '{column}' twice\nhint: say it once, e.g. {option} {example}")
        pairs.append((column, value))
    return pairs


def _kinds(source: str, columns: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return every column's public type, as declared or as the file's schema says."""
    from tacit.tables.schema import read_facts
    from tacit.tables.source import open_source

    opened = open_source(source, {column: read_facts(column, said) for column, said in columns.items()})
    return {column: facts.type for column, facts in opened.columns.items()}


def _key(column: str, text: str, kind: str) -> Any:
    """Return a key as its column's type: the words of a command line are all text."""
    from tacit.privacy.number import decimal_meaning

    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in ("int", "decimal", "float"):
        number = decimal_meaning(text, name=f"a key of '{column}'")
        if kind == "float":
            return float(number)
        return int(number) if number.denominator == 1 else number
    return text
