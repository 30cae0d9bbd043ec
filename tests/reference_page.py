"""docs/reference.md, from the docstrings, the signatures and the commands of today: `make reference`.

What is said here and nowhere else is what words mean that many calls share, and the examples. The test beside it
fails when the page is not this one, or when something public has no word on it.
"""

import inspect
import re
import textwrap
from pathlib import Path
from types import UnionType
from typing import Any

import typer

import tacit
import tacit.local
from tacit.asking import Catalog, PlanReport, Question, Table
from tacit.asking.dummy_rows import DummyRows
from tacit.asking.running import Running, RunningRows
from tacit.catalog_file import BUDGET_OPTIONS, PUBLIC_OPTIONS, TABLE_OPTIONS
from tacit.cli.app import app
from tacit.learning import MadeRows
from tacit.learning.synthetic.made_rows import Crosstab
from tacit.tables.schema import FACTS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"

SETUP = """\
import pandas as pd
import tacit

frame = pd.DataFrame({"patient": range(600), "ward": ["A", "B", "C"] * 200, "days": [1, 2, 3, 4] * 150})
visits = tacit.table(frame, name="visits", unit="patient", rows_per_unit=1, groups_per_unit=1,
                     columns={"days": {"between": (0, 30)}, "ward": {"keys": ["A", "B", "C"]}},
                     budget=tacit.epsilon(100, delta=1e-6), ledger=tacit.TRYOUT)
answer = visits.group_by("ward").mean("days").answer(epsilon=1)
"""

LOCAL = [name for name in tacit.local.__all__ if name not in tacit.__all__]

# subject: (what it is about, the names in it, one example of them)
SUBJECTS: dict[str, tuple[str, list[Any], str]] = {
    "Opening tables": (
        "A table is declared once, by whoever holds the data; nothing is read from its rows.",
        ["table", "public", "catalog", "ROW", "TRYOUT", (Catalog, ["public", "sql"])],
        "rows = tacit.table(frame, name='rows', unit=tacit.ROW, budget=tacit.epsilon(1), ledger=tacit.TRYOUT)",
    ),
    "A table": (
        "What `tacit.table` returns. Each step returns a new table or a question; nothing is read before `answer`.",
        [(Table, None), (DummyRows, None)],
        'longer = visits.where("days >= 2").derive(weeks="days / 7").group_by("ward").mean("weeks", between=(0, 5))\n'
        'ranking = visits.top("ward", 2)\ncommonest = visits.mode("ward")\n'
        'floors = tacit.public(pd.DataFrame({"ward": ["A", "B"], "floor": [1, 2]}))\n'
        'by_floor = visits.join(floors, on="ward").group_by("floor").count()\n'
        'both = visits.workload(by_ward=visits.group_by("ward").count(), stay=visits.mean("days"))\n'
        'pairs = visits.marginals(["ward", "days"], bins={"days": [0, 7, 30]})',
    ),
    "A count that runs on": (
        "`running` counts day after day: charged once, by `start`, and free from then on.",
        [(RunningRows, None), (Running, None)],
        "print(frame.columns.tolist())",
    ),
    "Aggregates": (
        "For `agg`, which asks for several in one pass; the methods above of the same name ask for one.",
        [
            *("count", "count_units", "count_distinct", "sum", "mean", "variance", "std", "median", "quantile"),
            *("min", "max", "covariance", "correlation"),
        ],
        'both = visits.agg(people=tacit.count_units(), stay=tacit.mean("days"), long=tacit.quantile("days", 0.9))\n'
        'kinds = visits.agg(wards=tacit.count_distinct("ward", per_unit=1))',
    ),
    "A question": (
        "What a table's methods return: `plan` it for free, `answer` it for what it costs.",
        [(Question, None), (PlanReport, ["loss"])],
        'question = visits.group_by("ward").count()\nplan = question.plan(epsilon=1)\nprint(plan.loss)',
    ),
    "An answer": (
        "Noisy numbers with intervals; all that is done with them is free.",
        [(tacit.Answer, None)],
        "rows = answer.to_dicts()\nframe_of_answers = answer.to_pandas()",
    ),
    "Made-up rows": (
        "What `visits.synthesize(epsilon=1)` returns; `visits.synthesize.plan(epsilon=1)` is free. Rows, tables and "
        "files of it are free as well.",
        [(MadeRows, None), Crosstab],
        'made = visits.synthesize(epsilon=20, columns=["ward", "days"])\nframe_of_rows = made.to_pandas()\n'
        'by_ward = made.crosstab("ward", "days")',
    ),
    "A server": (
        "`tacit serve` answers over HTTP. Its tables have the methods of a table here, and `left` and `hold`.",
        ["connect"],
        "connecting = tacit.connect",
    ),
    "Losses and budgets": (
        "Exact values; a float means its shortest decimal.",
        ["epsilon", "rho", "compose", "parallel", "poisson_sample", "amplified", "shuffled", "explain", "tradeoff"],
        "budget = tacit.epsilon(1, delta=1e-6)\ntotal = tacit.compose([tacit.Laplace(epsilon=0.1)] * 50, delta=1e-6)",
    ),
    "Bare mechanisms": (
        "For numbers that you have bounded yourself. They keep no account: each release spends its loss again. "
        "`Gaussian` has the methods of `Laplace`.",
        [(tacit.Laplace, ["loss", "event", "event_of", "release", "error", "explain"]), "Gaussian"],
        "noisy = tacit.Laplace(sensitivity=1, epsilon=1).release(1234)",
    ),
    "Choices": (
        "The best of many candidates, by scores that one unit moves by at most `sensitivity`.",
        ["NoisyMax", "Exponential", "PermuteAndFlip", "TopK", "AboveThreshold"],
        "best = tacit.NoisyMax(epsilon=1).release([10, 50, 3])",
    ),
    "The local model": (
        "Each person perturbs their own answer; `import tacit.local as local`.",
        ["RandomizedResponse", "release_estimate", *(f"local.{name}" for name in LOCAL)],
        'import tacit.local as local\nclient = local.Randomizer(["yes", "no"], epsilon=1)\n'
        'collector = local.Collector(client.survey)\ncollector.add_all(client.reports(["yes", "no", "yes"]))',
    ),
    "Audits": (
        "What an observer can demonstrate against a claim.",
        ["audit", "audit_question", "bet_on"],
        "found = tacit.audit_question(visits.count(), epsilon=1)",
    ),
    "Errors": (
        "Each says what is wrong, the rule and the way out; `except tacit.TacitError` catches all.",
        [
            "TacitError",
            "InvalidParameter",
            "QueryRefused",
            "BudgetExceeded",
            "NotAllowed",
            "LedgerError",
            "EngineError",
            "NoRandomness",
        ],
        'try:\n    visits.sum("days * 2")\nexcept tacit.TacitError as error:\n    reason = str(error)',
    ),
}

# What a word means wherever it is an argument, an option or a key of tacit.toml.
WORDS = {
    "source": "where the rows are: a path or glob of Parquet or CSV files, `air.duckdb?table=flights`, "
    "`postgresql://host/db?table=clinic.visits`, a frame, (a DuckDB or PostgreSQL connection, a table's name), or an "
    "Ibis table",
    "via": "the column, or the columns, by which rows find the row of the table that has their unit: a name, a list, "
    "or a dict where the names differ, `{'order_id': 'id'}`; see [units in another "
    "table](guide/sql.md#units-in-another-table)",
    "unit": "the column that says whose row it is: all rows with one value in it are protected together. `tacit.ROW` "
    "where each row is its own",
    "rows_per_unit": "a number: how many rows of one unit count in one group, at most; what is over is left out. "
    "'auto', or left out: how much a unit may count for is learned",
    "groups_per_unit": "a number: in how many groups one unit counts, at most; what is over is left out. 'auto', or "
    "left out: it is learned",
    "order": "how many of the columns each table of counts is by: 2 is all pairs",
    "rows": "how many rows the table has, if that is public",
    "most_rows_per_unit": "the most rows that any unit can have, if that is known whatever the data; nothing is left "
    "out for it",
    "budget": "what may ever be learned about one unit: a loss. A table that is new to the ledger needs one. With "
    "a period it is new each day, month or year",
    "name": "what the table is called in the ledger and in SQL; the file's name where left out",
    "ledger": "where charges are kept: a path or a postgresql:// address; the one in `TACIT_HOME` where left out. "
    "`tacit.TRYOUT` (`--try`) keeps nothing",
    "neighbours": "what is hidden: 'add-remove' (whether a unit is in the table) or 'replace' (which rows it has)",
    "columns": "what is public about columns, by name: `between`, `keys`, `type`, `step`",
    "period": "day, month or year: the budget is new in each (UTC); left out, it is for life",
    "block": "rows by the calendar: `column` (dates or times), `every` (day, month or year) and `zone`. Each block has "
    "the whole budget, and a question is charged to the blocks that its WHERE allows",
    "population": "how many units there are, if that is public",
    "spark": "the Spark session in which a table of Spark is read; a Spark Connect server's address needs none",
    "version": "a number you raise when the rows have changed: the same question is then asked anew. With it, and a "
    "name, a frame is known again after a restart; the last one where left out",
    "accept_large_delta": "take a budget though its δ is large for the population",
    "same_people_as": "the table whose people and budget these are",
    "hold": "when answers leave: '2s' after asking, or 4 s, 8 s and so on, whatever happened after the charge, so that "
    "the time tells nothing of the rows; at once where left out",
    "url": "the address of a server that `tacit serve` runs; https, or http on this machine",
    "token": "what shows the server who asks; the curator makes it",
    "on": "the columns that are equal in both tables: a name, a list of names, or a dict where the names differ",
    "how": "inner, left, semi or anti",
    "most": "how many rows of a public table one row may match, at most; 1 where left out, and checked",
    "tables": "further tables that the SELECT may name: protected ones of the same people, and public ones",
    "between": "the public range (low, high); values outside count as its ends. 'auto', or left out: it is learned",
    "other_between": "the public range of the second column",
    "step": "the public grid that values are rounded to; chosen where left out",
    "keys": "the public list of groups or values; those not listed are left out. Without a list keys are found "
    "privately, which takes a δ",
    "until": "the last day of a count that runs on: it is charged for all days up to it",
    "since": "the first day of a count that runs on; the day of its start where left out",
    "zone": "the time zone that says on which day a moment is, and when a day is over, such as Europe/Berlin",
    "totals": "also the total of all groups, and of each key inside the one before it; of all sets of keys with 'all'",
    "public_totals": 'levels whose totals are public, by name, held exactly: `{"state": {"a": 900, "b": 700}}`',
    "smallest": "about how many people the smallest group has that is to be found",
    "per_unit": "how many different values one unit brings, at most",
    "dialect": "whose SQL a SELECT is, such as 'postgres' or 'bigquery'",
    "epsilon": "ε, the loss of the whole call, however many numbers it gives",
    "delta": "δ, the chance that the promise fails; left out in a question, its fair share of the budget's",
    "rho": "ρ of zero-concentrated privacy, in place of ε",
    "error": "in place of `epsilon`: how far it may be off, '2%', a number, or a dict by "
    "aggregate, level of totals or question",
    "for_groups_of": "with `error=` in percent: how many rows a group has, by your guess",
    "weights": "which aggregates', levels' or questions' errors matter more, by name",
    "noise": "'laplace' or 'gaussian'; the one that errs less where left out",
    "confidence": "how often an interval holds the truth",
    "by": "the columns that later questions will group by",
    "again": "whether what is known already is learned anew, and paid for again",
    "learn": "which share of ε learns the bounds that nobody gave; the usual one where left out. With a filter, "
    "'reuse' takes those of the whole table and 'fresh' learns its own. False refuses instead of learning",
    "consistent": "post-processing: counts at or above 0, values within their range",
    "about": '"table", or "population": then intervals have the sampling error too, of a simple random sample',
    "accept_noise": "answer also what is foreseen to be mostly noise; it is refused before its charge otherwise",
    "analyst": "who asks: budgets can be granted for each analyst",
    "request_id": "an id of your own, so that a retry is not a second charge",
    "sensitivity": "how far one unit can move what is released: L1 for Laplace, L2 for Gaussian",
    "monotone": "a unit moves all scores one way, as counts do; half the noise is then enough",
    "of": 'a column, or an expression of columns; of a quantile, `"people"` or `"rows"`',
    "column": "a column, or an expression of columns",
    "other": "the second column; of a join, the other table: one of the same people, or a public one; of groups, "
    "True adds one for the rows of all that are not shown",
    "fraction": "which quantile: 0.5 is the median",
    "fractions": "one quantile, or a list of them",
    "bins": "how many even bins, or their edges",
    "k": "how many",
    "people": "how many people there are",
    "coordinates": "how many numbers are released together",
    "dtype": "int or float",
    "size": "how many",
    "path": "the file to write or read",
}

# What a public value of Python's own types is: its docstring would be that of `dict`, `int` or a union of classes.
VALUES = {
    "tacit.local.LocalProtocol": "The protocol of a survey: for counts, for a mean, for attributes, or for strings.",
    "tacit.local.FREQUENCIES": "The protocols for counts, by name: " + ", ".join(map(repr, tacit.local.FREQUENCIES)),
}

ENVIRONMENT = {
    "TACIT_HOME": "the folder of the ledger, the signing key and the anchors; only you may write to it "
    "(`~/.local/state/tacit`, or in `XDG_STATE_HOME`)",
    "TACIT_MEMORY": "how much memory an answer may take, such as 4GB (half of the machine's)",
    "TACIT_KERNEL": "`off` leaves the compiled kernel out; answers are then computed in SQL",
    "TACIT_DEBUG": "any value: the command line shows the trace of an unexpected error, which may quote a row",
    "TACIT_KEY_FILE": "the file of the signing key, for servers that share one ledger (in `TACIT_HOME`)",
    "TACIT_TOKEN": "the token that `tacit ask --server` and `tacit plan --server` send",
    "XDG_STATE_HOME": "where `TACIT_HOME` is when it is not set",
    "XDG_CACHE_HOME": "where the compiled kernel is kept, if nobody else can change what is there (`~/.cache`, or "
    "a folder of your own among temporary files)",
}

COLUMN_FACTS = {
    "type": "text, int, decimal, float, date, timestamp or bool, where the file leaves it open",
    "between": WORDS["between"],
    "keys": WORDS["keys"],
    "step": WORDS["step"],
}


def page() -> str:
    """Return the whole page."""
    parts = [
        "# Reference\n\nEvery public name, command, setting and variable: made from the code by `make reference`, and "
        "checked by the tests.\nNew here? [Your first answers](guide/first-answers.md) is the place to start.\n",
        "Contents: " + ", ".join(f"[{name}](#{_anchor(name)})" for name in [*SUBJECTS, *OTHERS]) + "\n",
        "The examples below go on from here:\n",
        _code(SETUP),
    ]
    for subject, (about, names, example) in SUBJECTS.items():
        parts += [f"## {subject}\n", about + "\n", *(_entry(name) for name in names), "", _code(example)]
    parts += ["## More names\n", *(_entry(name) for name in unplaced()), ""] if unplaced() else []
    parts += [f"## {name}\n\n{make()}" for name, make in OTHERS.items()]
    return "\n".join(parts).rstrip() + "\n"


def unplaced() -> list[str]:
    """Return the public names that no subject has yet."""
    placed = [
        name if isinstance(name, str) else getattr(name, "__name__", "") or name[0].__name__
        for _, names, _ in SUBJECTS.values()
        for name in names
    ]
    return [name for name in tacit.__all__ if name not in placed]


def _anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-")


def _code(text: str) -> str:
    return f"```python\n{text.rstrip()}\n```\n"


def _entry(name: Any) -> str:
    """Return the lines of a function, a class or a value; of some classes also their methods."""
    if isinstance(name, str):
        return _line(f"tacit.{name}", _found(name))
    if isinstance(name, type):
        return _line(name.__name__, name)
    kind, methods = name
    whole = public(kind) if methods is None else methods
    shown = f"tacit.{kind.__name__}" if kind.__name__ in tacit.__all__ else kind.__name__
    return "\n".join(
        [_line(shown, kind), *(_line(f".{method}", inspect.getattr_static(kind, method)) for method in whole)]
    )


def _found(name: str) -> Any:
    return getattr(tacit.local, name.removeprefix("local.")) if name.startswith("local.") else getattr(tacit, name)


def public(kind: type) -> list[str]:
    """Return the public methods and properties of a class, in the order they are written."""
    ours = [each for each in reversed(kind.__mro__) if each.__module__.startswith("tacit")]
    return [
        name
        for name, value in {name: value for each in ours for name, value in vars(each).items()}.items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod))
    ]


def _line(shown: str, thing: Any) -> str:
    said = VALUES[shown] if isinstance(thing, dict | int | UnionType) else " ".join(_said(thing).split())
    return f"- **`{shown}{_signature(thing)}`** {said}"


def _said(thing: Any) -> str:
    """Return what a docstring says before its example and its proof."""
    text = inspect.getdoc(thing.fget if isinstance(thing, property) else thing) or ""
    return re.split(r"\n\n(?=>>>|Privacy:)", text)[0].split("\n>>>")[0]


def _signature(thing: Any) -> str:
    """Return the arguments without their types, which only say what the words do; nothing for what is not called."""
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    if (
        isinstance(thing, property)
        or not callable(thing)
        or is_error
        or thing in (Table, Question, PlanReport, Catalog, tacit.Answer, Running, RunningRows, MadeRows, Crosstab)
    ):
        return ""
    found = inspect.signature(thing)
    plain = [
        each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values() if each.name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def words_table() -> str:
    """Return what words mean that many calls share."""
    return _table("word", "meaning", WORDS)


def commands() -> str:
    """Return every command with its options."""
    lines = [
        "`tacit COMMAND --help` says the same, with examples. Exit codes: 0 answered, 2 refused, 3 the budget has no",
        "room, 4 charged and then failed, 5 an audit refuted a claim, 1 anything unexpected.\n",
    ]
    for path, command in all_commands():
        operands = "".join(f" {each.metavar or each.name.upper()}" for each in command.params if not is_option(each))
        lines.append(f"**`tacit {' '.join(path)}{operands}`** {_first(command.help)}\n")
        options = [each for each in command.params if is_option(each)]
        lines += [f"- `{_option(each)}` {_first(each.help)}" for each in options] + [""] * bool(options)
    return "\n".join(lines)


def all_commands() -> list[tuple[tuple[str, ...], Any]]:
    """Return every command that does something, by its words."""

    def walk(path: tuple[str, ...], command: Any) -> list[tuple[tuple[str, ...], Any]]:
        listed = command.list_commands(None) if hasattr(command, "list_commands") else ()
        inner = {name: command.get_command(None, name) for name in listed}
        own = [(path, command)] if path and (not inner or command.invoke_without_command) else []
        return own + [found for name, each in inner.items() for found in walk((*path, name), each)]

    return walk((), typer.main.get_command(app))


def is_option(parameter: Any) -> bool:
    """Whether a command's parameter is one of its own options."""
    return parameter.param_type_name == "option" and parameter.name != "help"


def _option(option: Any) -> str:
    return ", ".join(option.opts) + ("" if option.is_flag else f" {option.metavar or option.name.upper()}")


def _first(text: str | None) -> str:
    """Return the first paragraph of a help text."""
    return " ".join(textwrap.dedent(text or "").split("\n\n")[0].split())


def catalog_words() -> str:
    """Return what a tacit.toml may say."""
    tables = {f"`{word}`": WORDS[word] for word in TABLE_OPTIONS}
    budget = {f"`{word}`": WORDS[word] for word in BUDGET_OPTIONS}
    public = {f"`{word}`": WORDS[word] for word in PUBLIC_OPTIONS}
    facts = {f"`{word}`": COLUMN_FACTS[word] for word in FACTS}
    sample = """```toml
ledger = "ledger.db"                      # for all tables; the one in TACIT_HOME where left out

[tables.visits]
source = "visits.parquet"
unit = "patient"
rows_per_unit = 3
groups_per_unit = 2
budget = { epsilon = 3, delta = 1e-6 }

[tables.visits.columns.days]
between = [0, 30]

[tables.patients]                         # of the same people: one unit, one budget
source = "patients.parquet"
unit = "patient"
same_people_as = "visits"

[public.wards]                            # about nobody
source = "wards.parquet"
```
"""
    parts = (
        ("`[tables.NAME]`", tables),
        ("`budget`", budget),
        ("`[public.NAME]`", public),
        ("`columns.NAME`", facts),
    )
    return "\n".join([sample, *(_table(f"in {where}", "meaning", said, code=False) for where, said in parts)])


def environment() -> str:
    """Return what variables mean."""
    return _table("variable", "meaning (default)", ENVIRONMENT)


def _table(left: str, right: str, said: dict[str, str], *, code: bool = True) -> str:
    rows = [f"| {f'`{name}`' if code else name} | {meaning} |" for name, meaning in said.items()]
    return "\n".join([f"| {left} | {right} |", "|---|---|", *rows, ""])


OTHERS = {
    "What the words mean": words_table,
    "Commands": commands,
    "tacit.toml": catalog_words,
    "Environment": environment,
}

if __name__ == "__main__":
    PAGE.write_text(page())
