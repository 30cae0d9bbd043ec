"""The body of a plan or a question, parsed: its allowed names, and their types.

All of it happens before a plan is made. Amounts are decimal text, exact, as on the command line.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import InvalidParameter
from tacit.json_wire import read_json, write_json

BODY_BYTES_MAX = 1 << 20
KEY_MAX = 200
NAMES_MAX = 1_000  # in one object of a body
_QUESTION = ("question", "sql", "between", "per_unit", "dialect", "most")
_SPENDING = ("epsilon", "delta", "error", "for_groups_of", "weights", "noise", "confidence", "learn")
_FLAGS = ("consistent", "accept_noise")
_SQL_ONLY = ("between", "per_unit", "dialect", "most")


@dataclass(frozen=True)
class Wording:
    """A parsed question: a tree or SQL with its options, the amount to spend, and the original body."""

    tree: Any = None
    sql: str | None = None
    sql_words: Mapping[str, Any] = field(default_factory=dict)
    spending: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)  # options that only answers use
    digest: str = ""  # of the body
    asked: str = ""  # the question's own options, without the amount
    body: str = ""


def read_wording(body: bytes, *, may_answer: bool) -> Wording:
    """Return what a body asks, or refuse it with the name that is wrong."""
    record = read_json(body, bytes_max=BODY_BYTES_MAX)
    known = (*_QUESTION, *_SPENDING, *(_FLAGS if may_answer else ()))
    if not isinstance(record, dict):
        raise InvalidParameter('the body must be an object\nhint: {"sql": "SELECT COUNT(*) FROM t", "epsilon": "1"}')
    for name in record:
        if name not in known:
            raise InvalidParameter(f"the body may not have '{name[:40]}'\nhint: its names are {', '.join(known)}")
    if ("sql" in record) == ("question" in record):
        raise InvalidParameter("give a question as a tree, or sql, and not both\nhint: tacit.connect writes the tree")
    if "question" in record and any(name in record for name in _SQL_ONLY):
        raise InvalidParameter(f"{', '.join(_SQL_ONLY)} belong to sql\nhint: a tree has its ranges in its aggregates")
    flags = {name: record.get(name, False) for name in _FLAGS}
    for name, given in flags.items():
        if not isinstance(given, bool):
            raise InvalidParameter(f"{name} must be true or false\nhint: leave it out")
    return Wording(
        tree=record.get("question"),
        sql=None if "sql" not in record else _text(record["sql"], "sql"),
        sql_words=_sql_words(record),
        spending=_read_spending(record),
        flags=flags,
        digest=hashlib.sha256(body).hexdigest(),
        asked=hashlib.sha256(write_json([record.get(name) for name in _QUESTION])).hexdigest(),
        body=body.decode(),
    )


def read_key(written: str | None) -> str | None:
    """Return the key under which a question is charged once, from the Idempotency-Key header."""
    if written is None:
        return None
    if not 0 < len(written) <= KEY_MAX or not written.isascii() or not written.isprintable():
        raise InvalidParameter(f"an Idempotency-Key has 1 to {KEY_MAX} plain characters\nhint: a random text")
    return written


def _sql_words(record: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {}
    if record.get("between") is not None:
        words["between"] = {name: _pair(ends) for name, ends in _object(record["between"], "between").items()}
    for name in ("per_unit", "most"):
        if record.get(name) is not None:
            words[name] = dict(_object(record[name], name))
    if record.get("dialect") is not None:
        words["dialect"] = _text(record["dialect"], "dialect")
    return words


def _read_spending(record: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {}
    for name in ("epsilon", "delta", "confidence"):
        if record.get(name) is not None:
            words[name] = _amount(record[name], name)
    if (error := record.get("error")) is not None:
        words["error"] = (
            {name: _amount(each, "error") for name, each in _object(error, "error").items()}
            if isinstance(error, dict)
            else _amount(error, "error")
        )
    if record.get("weights") is not None:
        given = _object(record["weights"], "weights")
        words["weights"] = {name: _amount(each, "weights") for name, each in given.items()}
    if (people := record.get("for_groups_of")) is not None:
        if not isinstance(people, int) or isinstance(people, bool):
            raise InvalidParameter('for_groups_of must be a whole number\nhint: {"for_groups_of": 500}')
        words["for_groups_of"] = people
    if record.get("noise") is not None:
        words["noise"] = _text(record["noise"], "noise")
    if (learn := record.get("learn")) is not None:
        words["learn"] = learn if isinstance(learn, bool) else _text(learn, "learn")
    return words


def _amount(written: Any, name: str) -> str | int:
    if isinstance(written, str) or (isinstance(written, int) and not isinstance(written, bool)):
        return written
    raise InvalidParameter(f'{name} must be decimal text\nhint: {{"{name}": "0.5"}}')


def _text(written: Any, name: str) -> str:
    if not isinstance(written, str):
        raise InvalidParameter(f"{name} must be text\nhint: put it in quotes")
    return written


def _object(written: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(written, dict):
        raise InvalidParameter(f"{name} must be an object that maps names to values\nhint: leave it out")
    if len(written) > NAMES_MAX:
        raise InvalidParameter(f"{name} has more than {NAMES_MAX} names\nhint: ask several smaller questions")
    return written


def _pair(written: Any) -> tuple[Any, Any]:
    if not isinstance(written, list) or len(written) != 2:
        raise InvalidParameter('between gives a pair for each name\nhint: {"between": {"age": ["0", "120"]}}')
    return _amount(written[0], "between"), _amount(written[1], "between")


# --- the same for programs ---

_TEXT = {"type": "string"}
_AMOUNT = {"anyOf": [{"type": "string", "description": "a decimal, exact"}, {"type": "integer"}]}
_BY_NAME = {"type": "object"}
QUESTION_DOCUMENT: dict[str, Any] = {
    "question": {"type": "object", "description": "a question's tree, as tacit.connect writes it"},
    "sql": {"type": "string", "description": "one SELECT"},
    "between": _BY_NAME,
    "per_unit": _BY_NAME,
    "dialect": _TEXT,
    "most": _BY_NAME,
    "epsilon": _AMOUNT,
    "delta": _AMOUNT,
    "error": {"anyOf": [_AMOUNT, _BY_NAME]},
    "for_groups_of": {"type": "integer"},
    "weights": _BY_NAME,
    "noise": {"enum": ["laplace", "gaussian"]},
    "confidence": _AMOUNT,
    "learn": {"anyOf": [_TEXT, {"type": "boolean"}]},
    "consistent": {"type": "boolean"},
    "accept_noise": {"type": "boolean", "description": "answer also what is foreseen to be mostly noise"},
}
KEY_DOCUMENT = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": KEY_MAX},
    "description": "charged once under it; sent again, it gets the same bytes",
}


def body_document(*, may_answer: bool) -> dict[str, Any]:
    """Return what OpenAPI says of a body: the names that `read_wording` reads."""
    names = [name for name in QUESTION_DOCUMENT if may_answer or name not in _FLAGS]
    schema = {
        "type": "object",
        "properties": {name: QUESTION_DOCUMENT[name] for name in names},
        "additionalProperties": False,
        "oneOf": [{"required": ["sql"]}, {"required": ["question"]}],
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}
