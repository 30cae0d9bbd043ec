"""The options of a question and of a table's declaration: each one's kind of value and its meaning.

All doors share them: the command line and its help, bodies of HTTP and their document, agents, forms, a client that
asks a server, and the catalog. A body is read here before a plan is made, and a client's values are written here.
Amounts are decimal text, exact, as on the command line.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.errors import InvalidParameter
from tacit.json_wire import read_json, write_json
from tacit.numbers import Number, decimal_meaning, to_text

BODY_BYTES_MAX = 1 << 20
NAMES_MAX = 1_000  # in one object of a body
TEXT: dict[str, Any] = {"type": "string"}
AMOUNT: dict[str, Any] = {"anyOf": [{"type": "string", "description": "a decimal, exact"}, {"type": "integer"}]}
_OBJECT: dict[str, Any] = {"type": "object"}
# the kind of a value -> how OpenAPI has it
SCHEMAS: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "amount": AMOUNT,
    "amounts": _OBJECT,
    "error": {"anyOf": [AMOUNT, _OBJECT]},
    "whole": {"type": "integer"},
    "count": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean"},
    "learn": {"anyOf": [TEXT, {"type": "boolean"}]},
    "object": _OBJECT,
    "ranges": _OBJECT,
    "names": {"type": "array", "items": TEXT},
    "match": {"anyOf": [TEXT, {"type": "array", "items": TEXT}, _OBJECT]},
}


@dataclass(frozen=True)
class Option:
    """An option: the kind of its value, its meaning in a sentence, and the words that it may be."""

    kind: str
    help: str
    choices: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        return {**({"enum": [*self.choices]} if self.choices else SCHEMAS[self.kind]), "description": self.help}


QUESTION = {
    "question": Option("object", "A question's tree, as tacit.connect writes it."),
    "sql": Option(
        "text", "A SELECT, or several with semicolons between them; FROM names the table, or the file's stem."
    ),
    "questions": Option(
        "object", "Several questions by name, charged as one: each a question or sql with its options."
    ),
    "between": Option(
        "ranges",
        "By hand: the public range of a column, or of a name in the SELECT; values outside count as its ends. Learned "
        "if left out.",
    ),
    "per_unit": Option("object", "How many different values of one unit count, by a COUNT(DISTINCT x)'s own name."),
    "dialect": Option(
        "text",
        "The dialect of the SELECT, e.g. postgres, bigquery, spark; functions mean what the catalogue says.",
    ),
    "most": Option("object", "How many rows of a public table one row may match in a JOIN; 1 if left out."),
}
SPENDING = {
    "epsilon": Option("amount", "The most that this whole call may cost."),
    "delta": Option(
        "amount",
        "With a new table's budget, its delta, of which a call takes its share; else this call's own.",
    ),
    "error": Option("error", "Or the error to allow: the least epsilon for it is found from public facts."),
    "for_groups_of": Option("whole", "With an error: how many rows a group has that it must hold for."),
    "weights": Option("amounts", "Which aggregates', levels' or questions' errors matter more, by name."),
    "noise": Option("text", "The noise, if not the one that errs less.", ("laplace", "gaussian")),
    "confidence": Option("amount", "The probability that an interval holds the true number."),
    "learn": Option(
        "learn",
        "The share of epsilon that learns missing bounds, e.g. 0.1; they are kept. With no, a question that would have "
        "to learn is refused. With a WHERE: reuse the whole table's, or learn fresh ones.",
    ),
}
FLAGS = {  # only an answer has them
    "consistent": Option("flag", "Make the numbers possible ones, at no cost: counts not negative, quantiles rising."),
    "accept_noise": Option(
        "flag",
        "Answer even if mostly noise is foreseen; otherwise that is refused before it is charged.",
    ),
}
# in the order of a catalog
TABLE = {
    "source": Option("text", "A file under a folder that the server allows, or a PostgreSQL table."),
    "unit": Option(
        "text",
        "The column of people (one value per person); ROW if each row is a person.",
    ),
    "via": Option(
        "match",
        "Where the unit is in another table (unit: orders.customer_id): the key that both have, order_id; several, or "
        "an object from names here to names there.",
    ),
    "budget": Option(
        "object",
        "How much may ever be learned of one unit: epsilon or rho, and delta, as decimal text; with a period (day, "
        "month or year), in each.",
    ),
    "columns": Option("object", "Public facts about each column: between, step, keys, type."),
    "rows_per_unit": Option("count", "By hand: the most rows of one unit that count in a group. Learned if left out."),
    "groups_per_unit": Option("count", "By hand: the most groups that one unit counts in. Learned if left out."),
    "neighbours": Option("text", "How neighbouring tables differ; add-remove if left out.", ("add-remove", "replace")),
    "block": Option(
        "object", "Rows by the calendar, each block with the whole budget: column, every (day, month or year), zone."
    ),
    "population": Option("count", "About how many people there are."),
    "rows": Option("count", "The number of rows of the table, if it is public."),
    "most_rows_per_unit": Option("count", "The most rows that any unit can have, if known."),
    "version": Option("count", "Which state of the data it is; raise it when rows were added. As before if left out."),
    "accept_large_delta": Option("flag", "Accept a budget with a delta that is large for the population."),
    "same_people_as": Option(
        "text", "Another table of the ledger about the same people, which shares its budget with this one."
    ),
    "hold": Option("text", "When answers leave, on a public clock: 2s, 500ms."),
}
_OF_ROWS = {"where": Option("text", "Of which rows: a condition as in a SELECT.")}
_COST = {name: SPENDING[name] for name in ("epsilon", "delta")}
MADE_ROWS = {
    "columns": Option("names", "The columns of made-up rows; all but the unit's if left out."),
    "dates": Option("ranges", "The public range of each column of dates or times."),
    "target": Option("text", "A column that models predict: its pairs count four times."),
    "rules": Option("names", "Conditions that made-up rows keep."),
    "once": Option("names", "Several rows for each person: the columns with one value per person."),
    "order": Option("text", "With once: the column by which a person's rows are in order."),
    **_OF_ROWS,
    **_COST,
    "learn": SPENDING["learn"],
}
REPORT = {
    **MADE_ROWS,
    "report_epsilon": replace(SPENDING["epsilon"], help="What the report may cost, beside the rows' own epsilon."),
    "report_delta": replace(SPENDING["delta"], help="The delta of the report."),
}
RUNNING = {
    "day": Option("text", "The column of dates or times."),
    "until": Option("text", "The last day, as 2028-12-31: the charge is for all days up to it."),
    "since": Option("text", "The first day; the day of the start if left out."),
    "zone": Option("text", "The time zone of the days; times need one."),
    "rows_per_unit": Option("count", "Count rows, at most this many of each unit; units if left out."),
    **_OF_ROWS,
    **_COST,
    "confidence": SPENDING["confidence"],
}
OPTIONS = {**TABLE, **QUESTION, **SPENDING, **FLAGS}
SQL_ONLY = ("between", "per_unit", "dialect", "most")
WORDED = ("question", "sql")  # how one question is put


@dataclass(frozen=True)
class Wording:
    """A parsed question: a tree or SQL with its options, the amount to spend, and the original body."""

    tree: Any = None
    sql: str | None = None
    questions: "Mapping[str, Wording]" = field(default_factory=dict)  # of a workload, by name
    sql_words: Mapping[str, Any] = field(default_factory=dict)
    spending: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)  # options that only answers use
    digest: str = ""  # of the body
    asked: str = ""  # the question's own options, without the amount
    body: str = ""


def read_wording(body: bytes, *, may_answer: bool) -> Wording:
    """Return what a body asks, or refuse it with the name that is wrong."""
    example = '{"sql": "SELECT COUNT(*) FROM t", "epsilon": "1"}'
    record = read_object(body, (*QUESTION, *SPENDING, *(FLAGS if may_answer else ())), example)
    return replace(
        _worded(record, (*WORDED, "questions")),
        spending=_read_given(record, SPENDING),
        flags={name: read_value("flag", record.get(name, False), name) for name in FLAGS},
        digest=hashlib.sha256(body).hexdigest(),
        asked=hashlib.sha256(write_json([record.get(name) for name in QUESTION])).hexdigest(),
        body=body.decode(),
    )


def _worded(record: Mapping[str, Any], kinds: Sequence[str] = WORDED) -> Wording:
    """Return what one question asks, or several by name."""
    if sum(kind in record for kind in kinds) != 1:
        raise InvalidParameter("give a question as a tree, or sql, and not both\nhint: tacit.connect writes the tree")
    if "sql" not in record and any(name in record for name in SQL_ONLY):
        raise InvalidParameter(f"{', '.join(SQL_ONLY)} belong to sql\nhint: a tree has its ranges in its aggregates")
    several = _read_names(record["questions"], "questions") if "questions" in record else {}
    for each in several.values():
        if not isinstance(each, dict) or not {*each} <= {*WORDED, *SQL_ONLY}:
            raise InvalidParameter('questions has a question for each name\nhint: {"in_all": {"sql": "SELECT ..."}}')
    return Wording(
        tree=record.get("question"),
        sql=None if "sql" not in record else read_value("text", record["sql"], "sql"),
        sql_words=_read_given(record, SQL_ONLY),
        questions={name: _worded(each) for name, each in several.items()},
    )


def read_options(body: bytes, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the options that a body gives, or refuse it with the name that is wrong."""
    return _read_given(read_object(body, options), options, options)


def read_object(body: bytes, known: Iterable[str], example: str = "") -> dict[str, Any]:
    """Return the object that a body holds, if all its names are known."""
    record, names = read_json(body, bytes_max=BODY_BYTES_MAX), [*known]
    listed = f"its names are {', '.join(names)}"
    if not isinstance(record, dict):
        raise InvalidParameter(f"the body must be an object\nhint: {example or listed}")
    for name in record:
        if name not in names:
            raise InvalidParameter(f"the body may not have '{name[:40]}'\nhint: {listed}")
    return record


def _read_given(
    record: Mapping[str, Any], names: Iterable[str], options: Mapping[str, Option] = OPTIONS
) -> dict[str, Any]:
    return {name: read_value(options[name].kind, record[name], name) for name in names if record.get(name) is not None}


def read_value(kind: str, written: Any, name: str) -> Any:
    is_flag = isinstance(written, bool)
    if kind == "amounts" or (kind == "error" and isinstance(written, dict)):
        return {each: _read_amount(amount, name) for each, amount in _read_names(written, name).items()}
    if kind in ("amount", "error"):
        return _read_amount(written, name)
    if kind == "ranges":
        return {each: _read_pair(ends) for each, ends in _read_names(written, name).items()}
    if kind == "object":
        return _read_names(written, name)
    if kind == "names":
        if not isinstance(written, list) or len(written) > NAMES_MAX or not all(isinstance(x, str) for x in written):
            raise InvalidParameter(f'{name} must be a list of texts\nhint: {{"{name}": ["age", "ward"]}}')
        return written
    if kind == "whole" and (is_flag or not isinstance(written, int)):
        raise InvalidParameter(f'{name} must be a whole number\nhint: {{"{name}": 500}}')
    if kind == "flag" and not is_flag:
        raise InvalidParameter(f"{name} must be true or false\nhint: leave it out")
    if kind in ("text", "learn") and not isinstance(written, str) and not (kind == "learn" and is_flag):
        raise InvalidParameter(f"{name} must be text\nhint: put it in quotes")
    return written


def _read_amount(written: Any, name: str) -> str | int:
    if isinstance(written, str) or (isinstance(written, int) and not isinstance(written, bool)):
        return written
    raise InvalidParameter(f'{name} must be decimal text\nhint: {{"{name}": "0.5"}}')


def _read_names(written: Any, name: str) -> dict[str, Any]:
    if not isinstance(written, dict):
        raise InvalidParameter(f"{name} must be an object that maps names to values\nhint: leave it out")
    if len(written) > NAMES_MAX:
        raise InvalidParameter(f"{name} has more than {NAMES_MAX} names\nhint: ask several smaller questions")
    return dict(written)


def _read_pair(written: Any) -> tuple[Any, Any]:
    if not isinstance(written, list) or len(written) != 2:
        raise InvalidParameter('between gives a pair for each name\nhint: {"between": {"age": ["0", "120"]}}')
    return _read_amount(written[0], "between"), _read_amount(written[1], "between")


def as_sent(given: Mapping[str, Any], options: Mapping[str, Option] = OPTIONS) -> dict[str, Any]:
    """Return a client's options as they travel: amounts are exact text, and those that were left out do not travel.

    >>> as_sent({"epsilon": 0.1, "delta": None, "learn": "fresh", "consistent": True})
    {'epsilon': '1/10', 'learn': 'fresh', 'consistent': True}
    """
    return {name: _sent(options[name].kind, value, name) for name, value in given.items() if value is not None}


def _sent(kind: str, value: Any, name: str) -> Any:
    if kind in ("amounts", "error", "ranges") and isinstance(value, Mapping):
        return {each: _sent(kind, inner, name) for each, inner in value.items()}
    if kind == "ranges":
        return [str(end) if name == "dates" else amount_text(end, name) for end in value]
    if kind == "names":
        return value if isinstance(value, str) else list(value)
    if kind in ("amount", "amounts", "error", "learn"):
        is_text = isinstance(value, str) and kind in ("error", "learn")
        return value if is_text or (kind == "learn" and isinstance(value, bool)) else amount_text(value, name)
    return value


def amount_text(value: Number, name: str) -> str:
    """Return a number as exact text; a float means its shortest decimal."""
    return to_text(decimal_meaning(value, name=name))


@dataclass(frozen=True)
class SignOn:
    """A provider of single sign-on (OpenID Connect), and the claim of its tokens that is a person's name."""

    issuer: str
    client_id: str
    claim: str = "email"
    audience: str | None = None  # of tokens for the API; the client's id without it
    secret_file: str | None = None  # for a client that has a secret
    new_people: str | None = None  # the role of people who are not in the ledger yet; without it they stay out
