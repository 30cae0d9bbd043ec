"""What is asked of each table, how the product is asked, and the rows that a question is about."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import tacit
from bench.learned.asking import open_table
from bench.learned.tasks import Cells, Task
from bench.questions.tables import Table

WHOLE = "all"


@dataclass(frozen=True)
class Question:
    """A question: the numbers that it asks for, by how many keys, and of which rows."""

    name: str
    numbers: tuple[str, ...]
    keys: tuple[int, ...] = ()  # which of the table's two
    listed: bool = False
    where: bool = False
    beside: str = ""  # a number that is asked for too, and compared with no baseline
    only: str = ""  # what the names of its tables begin with


QUESTIONS = (
    Question("count by key, found", ("count",), (0,)),
    Question("count by key, listed", ("count",), (0,), listed=True),
    Question("count and mean by key, found", ("count", "mean"), (0,)),
    Question("count and mean by key, listed", ("count", "mean"), (0,), listed=True),
    Question("sum by key, found", ("sum",), (0,)),
    Question("sum by key, listed", ("sum",), (0,), listed=True),
    Question("mean by key, found", ("mean",), (0,)),
    Question("count by key where, found", ("count",), (0,), where=True),
    Question("count by two keys, found", ("count",), (0, 1)),
    Question("count, mean and sum by key, found", ("count", "mean", "sum"), (0,), only="claims"),
    Question("count and median by key, found", ("count",), (0,), beside="median"),
    Question("count by second key, found", ("count",), (1,)),
    Question("count by second key, listed", ("count",), (1,), listed=True),
    Question("people by key, found", ("units",), (0,)),
    Question("share by key, found", ("share",), (0,)),
    Question("count", ("count",)),
    Question("mean", ("mean",)),
    Question("variance", ("variance",)),
)
BY_NAME = {question.name: question for question in QUESTIONS}


@dataclass(frozen=True)
class Shown:
    """One number of an answer, and both ends of its interval; None: not known."""

    value: float | None
    low: float | None
    high: float | None


def ask(path: Path, table: Table, question: Question, epsilon: float) -> dict[str, dict[str, Shown]]:
    """Ask a fresh table, and return each number by group; without groups if the question was refused."""
    opened = open_table(path, table.unit or tacit.ROW, epsilon=epsilon)
    try:
        answer = asked(opened, path, table, question).answer(epsilon=epsilon)
    except tacit.TacitError as refused:
        said = str(refused).split(";")[0]
        print(f"{table.name}, {question.name}, ε {epsilon:g}: {said}", file=sys.stderr, flush=True)
        return {number: {} for number in question.numbers}
    columns = [table.keys[place] for place in question.keys]
    found: dict[str, dict[str, Shown]] = {number: {} for number in question.numbers}
    for row in answer.to_dicts():
        group = group_name([row[column] for column in columns])
        for number in question.numbers:
            ends = (row.get(f"{number}{end}") for end in ("", "_low", "_high"))
            found[number][group] = Shown(*(None if each is None else float(each) for each in ends))
    return found


def asked(opened: Any, path: Path, table: Table, question: Question) -> Any:
    """Return the product's own question."""
    columns = [table.keys[place] for place in question.keys]
    if question.numbers == ("share",):
        (by,) = columns
        share = f"100.0 * SUM(CASE WHEN {table.share} THEN 1 ELSE 0 END) / COUNT(*) AS share"
        return opened.sql(f"SELECT {by}, {share} FROM rows GROUP BY {by}")
    about = opened.where(table.where) if question.where else opened
    if question.listed:
        about = about.group_by(*columns, keys=keys_of(path, columns[0]))
    elif columns:
        about = about.group_by(*columns)
    made = {"count": tacit.count(), "units": tacit.count_units()}
    made |= {name: getattr(tacit, name)(table.value) for name in ("mean", "sum", "variance", "median")}
    return about.agg(**{number: made[number] for number in (*question.numbers, question.beside) if number})


def keys_of(path: Path, column: str) -> list[Any]:
    """Return the different values of a column."""
    return [key for (key,) in duckdb.sql(f"SELECT DISTINCT {column} FROM '{path}' ORDER BY 1").fetchall()]


def group_name(keys: Sequence[Any]) -> str:
    """Return a group as a text, the same that `cells_of` has."""
    return " | ".join(str(key) for key in keys) or WHOLE


def cells_of(path: Path, table: Table, question: Question) -> Cells:
    """Return the rows that a question is about, as people's cells in its groups."""
    columns = [table.keys[place] for place in question.keys]
    by = f"concat_ws(' | ', {', '.join(columns)})" if columns else f"'{WHOLE}'"
    value = f"CASE WHEN {table.share} THEN 100 ELSE 0 END" if question.numbers == ("share",) else table.value
    task = Task(table.name, table.unit or "file_row_number", by, value)
    return Cells(task, path, table.where if question.where else "true")
