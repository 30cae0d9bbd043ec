"""Ask the product in many runs, and write a line of JSON for each number, with the truth and the baselines.

Options are variables of the environment. ANSWERS_QUICK=1 asks some questions of some tables in a few runs, in about
three minutes. ANSWERS_RUNS, ANSWERS_TABLES, ANSWERS_QUESTIONS and ANSWERS_EPSILONS choose what is asked,
ANSWERS_WORKERS how many processes ask, ANSWERS_FILE where the lines go. ANSWERS_FIRST=5 numbers the runs from 5 on, and
adds their lines to those that are there. Names are separated by semicolons, epsilons by spaces; a name that no table or
question has in full stands for all that begin with it.
"""

import json
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.learned.tables import NoTable
from bench.questions.baselines import errors_of, people_of, truth_of
from bench.questions.figures import DEMO
from bench.questions.questions import QUESTIONS, Question, Shown, ask, cells_of
from bench.questions.remembered import remembered
from bench.questions.replayed import Replayed, can_replay
from bench.questions.tables import BY_NAME, TABLES, Table
from tacit.engine.kernel import compiled

FILE = Path(__file__).resolve().parent.parent / "results" / "answers.jsonl"
RUNS, QUICK_RUNS, DEMO_RUNS = 20, 10, 50
# At other epsilons than 1, every third table is asked in so many runs.
FEWER_RUNS = 5
EPSILONS = (1.0, 0.3, 3.0)
QUICK_TABLES = ("visits", "dialysis", "claims", "clinic", "tests", "purchases", "panel", "census", "stops", "nations")
QUICK_QUESTIONS = tuple(question.name for question in QUESTIONS[:10])


@dataclass(frozen=True)
class Options:
    """What is asked, how often, and where the lines go."""

    runs: int = RUNS
    demo_runs: int = DEMO_RUNS
    tables: tuple[Table, ...] = TABLES
    questions: tuple[Question, ...] = QUESTIONS
    epsilons: tuple[float, ...] = EPSILONS
    workers: int = 1
    file: Path = FILE
    first: int = 0  # the number of the first run

    def runs_of(self, table: Table, question: Question, epsilon: float) -> int:
        """Return how often a question is asked."""
        if question.only and not table.name.startswith(question.only):
            return 0
        if table.unit is None and question.numbers == ("units",):
            return 0
        if epsilon != 1:
            return min(FEWER_RUNS, self.runs) if list(BY_NAME).index(table.name) % 3 == 0 else 0
        is_demo = table.name == "visits" and question.name in DEMO
        return max(self.runs, self.demo_runs) if is_demo else self.runs


def options_of(given: Mapping[str, str]) -> Options:
    """Return the options that the environment names."""
    quick = bool(given.get("ANSWERS_QUICK"))
    runs = int(given.get("ANSWERS_RUNS", QUICK_RUNS if quick else RUNS))
    tables = _chosen(TABLES, given.get("ANSWERS_TABLES"), QUICK_TABLES if quick else None)
    questions = _chosen(QUESTIONS, given.get("ANSWERS_QUESTIONS"), QUICK_QUESTIONS if quick else None)
    epsilons = given.get("ANSWERS_EPSILONS", "1" if quick else " ".join(map(str, EPSILONS)))
    return Options(
        runs,
        runs if quick or "ANSWERS_RUNS" in given else DEMO_RUNS,
        tables,
        questions,
        tuple(float(each) for each in epsilons.split()),
        int(given.get("ANSWERS_WORKERS", "1" if quick else str(os.cpu_count() or 1))),
        Path(given.get("ANSWERS_FILE", FILE)),
        int(given.get("ANSWERS_FIRST", "0")),
    )


def _chosen(every: Sequence[Any], names: str | None, default: Sequence[str] | None) -> tuple[Any, ...]:
    """Return what is named: exactly, or else by how names begin."""
    if names is None:
        return tuple(each for each in every if default is None or each.name in default)
    found = []
    for name in (each.strip() for each in names.split(";")):
        some = [each for each in every if each.name == name] or [each for each in every if each.name.startswith(name)]
        if not some:
            raise ValueError(f"there is no {name!r} among {', '.join(each.name for each in every)}")
        found += some
    return tuple(dict.fromkeys(found))


def run(options: Options, folder: Path) -> dict[str, str]:
    """Ask everything, write the lines, and return the tables that are not here and why."""
    options.file.parent.mkdir(exist_ok=True)
    if not options.first:
        options.file.write_text("")
    job = partial(ask_table, options, folder)
    if options.workers == 1:
        compiled.compile_now()
        absent = [job(table) for table in options.tables]
    else:
        spawned = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.workers, spawned, compiled.compile_now) as pool:
            absent = list(pool.map(job, options.tables))
    return {table.name: why for table, why in zip(options.tables, absent, strict=True) if why}


def ask_table(options: Options, folder: Path, table: Table) -> str:
    """Ask all questions of a table; return why it is not here, if so."""
    path = folder / f"{table.name}.parquet"
    try:
        table.write(path)
    except NoTable as absent:
        return str(absent)
    with remembered():
        for question in options.questions:
            asked = [(epsilon, options.runs_of(table, question, epsilon)) for epsilon in options.epsilons]
            if not any(runs for _, runs in asked):
                continue
            compared = Compared(path, table, question)
            for epsilon, runs in asked:
                for place in range(options.first, options.first + runs):
                    lines = compared.lines(epsilon, place)
                    with options.file.open("a") as file:
                        file.write("".join(json.dumps(line) + "\n" for line in lines))
    return ""


class Compared:
    """A question of a table, with the truth; the baselines are made once for each epsilon."""

    def __init__(self, path: Path, table: Table, question: Question) -> None:
        self.path, self.table, self.question = path, table, question
        self.cells = cells_of(path, table, question)
        self.people = people_of(self.cells)
        self.known: dict[float, dict[str, list[tuple[float, float, float]]]] = {}
        self.replayed: dict[float, Replayed] = {}

    def lines(self, epsilon: float, place: int) -> Iterator[dict[str, Any]]:
        """Ask once and yield a line for each number of each true group, whether it is shown or not."""
        if epsilon not in self.known:
            self.known[epsilon] = self._baselines(epsilon)
        answered = self._answered(epsilon)
        for number, by_group in self.known[epsilon].items():
            for at, group in enumerate(self.cells.keys):
                shown = answered[number].get(group)
                truth, oracle, person = by_group[at]
                yield {
                    "table": self.table.name, "question": self.question.name, "number": number, "epsilon": epsilon,
                    "run": place, "group": group, "people": int(self.people[at]), "truth": truth,
                    "value": shown and shown.value, "low": shown and shown.low, "high": shown and shown.high,
                    "oracle": oracle, "person": person,
                }  # fmt: skip

    def _answered(self, epsilon: float) -> Mapping[str, Mapping[str, Shown]]:
        if not can_replay(self.question):
            return ask(self.path, self.table, self.question, epsilon)
        if epsilon not in self.replayed:
            self.replayed[epsilon] = Replayed(self.path, self.table, self.question, epsilon)
        return self.replayed[epsilon].ask()

    def _baselines(self, epsilon: float) -> dict[str, list[tuple[float, float, float]]]:
        found, numbers = {}, len(self.question.numbers) + bool(self.question.beside)
        for number in self.question.numbers:
            errors = errors_of(self.cells, number, epsilon, self.table.between, numbers)
            columns = (truth_of(self.cells, number), errors.oracle, errors.person)
            found[number] = list(zip(*(column.tolist() for column in columns), strict=True))
        return found
