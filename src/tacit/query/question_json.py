"""A question as JSON, and back: the frozen tree, closed and versioned, for questions that travel.

The reader does not trust the sender. A node is read by its own closed list of names, `check` compares the whole with
the declaration, and every expression must be one that the SQL door makes: its text, parsed, is the same tree. So a
tree from a wire can only ask a question that a person could have written. Rows that are computed first (joins, rows by
unit) stand beside it (`rows_json.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

from tacit.errors import InvalidParameter, QueryRefused, TacitError
from tacit.json_wire import scalar_from, scalar_record
from tacit.privacy import from_text, to_text, whole
from tacit.query.check import check
from tacit.query.frame import levels_asked, read_smallest
from tacit.query.kind import value_of
from tacit.query.limits import DEPTH_MAX, KEYS_MAX, OUTPUTS_MAX
from tacit.query.literal import fraction_meant, refuse_broken_text
from tacit.query.nodes import (
    Aggregate,
    AggregateKind,
    Call,
    Column,
    Expression,
    Key,
    Ordering,
    Output,
    PostProcessing,
    Query,
    Value,
)
from tacit.query.sql.rows import parse_expression
from tacit.query.sql.sql_text import show
from tacit.tables import Declaration

FORMAT = 1
ARGUMENTS_MAX = 3_000

Record = Mapping[str, Any]

# which parts each aggregate may have beside its expression
_RANGE = ("between", "step")
_PAIR = ("between", "other", "other_between")
_PARTS: dict[AggregateKind, tuple[str, ...]] = {
    "count": (),
    "count_units": (),
    "count_distinct": ("per_unit",),
    "sum": _RANGE,
    "mean": _RANGE,
    "variance": _RANGE,
    "std": _RANGE,
    "quantile": (*_RANGE, "fraction", "of"),
    "covariance": _PAIR,
    "correlation": _PAIR,
    "top": ("best",),
}
_LACKING = "\nhint: let tacit.connect write questions, or ask in SQL"


def question_record(query: Query) -> dict[str, Any]:
    """Return a checked question as JSON values; a question that only SQL can make is refused."""
    after = query.after
    if query.relation is not None or after.windows or after.shown or after.qualify is not None or after.distinct:
        raise QueryRefused("this question can only be sent as SQL\nhint: ask it with sql(...)")
    return {
        "format": FORMAT,
        "table": query.table,
        "where": written(query.where),
        "keys": [{"name": key.name, "expression": written(key.expression)} for key in query.keys],
        "public_keys": None
        if query.public_keys is None
        else [[scalar_record(part) for part in key] for key in query.public_keys],
        **({} if query.smallest is None else {"smallest": query.smallest}),
        **({"levels": [list(level) for level in query.levels]} if query.levels else {}),
        "outputs": [{"name": output.name, **_written_aggregate(output.aggregate)} for output in query.outputs],
        "having": written(after.having),
        "order": [
            {"by": written(each.expression), "descending": each.descending, "nulls_first": each.nulls_first}
            for each in after.order
        ],
        "limit": after.limit,
        "offset": after.offset,
        "columns": list(query.columns),
    }


def question_from(record: object, declaration: Declaration, within: int = 0) -> Query:
    """Return the checked question that `question_record` wrote, about a declared table; refuse everything else.

    `within` is the work that the rows take before it begins. Only the record and public facts are read, so every error
    here may be shown, and is free.
    """
    try:
        query = _read(record)
        _refuse_others(query, declaration)
        checked = check(query, declaration, within=within)
    except TacitError:
        raise
    except Exception:  # noqa: BLE001 - a tree that no door makes may break a rule that every door keeps
        raise QueryRefused(f"the question is not one that the doors make{_LACKING}") from None
    checked = replace(checked, levels=_levels(query.levels, len(checked.keys)))
    named = [*(key.name for key in checked.keys), *(output.name for output in checked.outputs)]
    if sorted(checked.columns) != sorted(named):
        raise QueryRefused(f"columns must name each key and aggregate once{_LACKING}")
    return checked


def _refuse_others(query: Query, declaration: Declaration) -> None:
    """Refuse an expression over rows that the SQL door would not have made: its own text must be read as the same."""
    asked = [output.aggregate for output in query.outputs]
    of_rows = [query.where, *(key.expression for key in query.keys)]
    of_rows += [each.expression for each in asked] + [each.other for each in asked]
    for expression in of_rows:
        if expression is None:
            continue
        if parse_expression(show(expression), declaration) != expression:
            raise QueryRefused(f"an expression is not written in its one form{_LACKING}")


# --- writing ---


def written(expression: Expression | None) -> Any:
    """Return an expression as JSON values."""
    if expression is None:
        return None
    if isinstance(expression, Column):
        return {"column": expression.name}
    if isinstance(expression, Value):
        return {"value": scalar_record(expression.value)}
    return {"call": expression.function, "arguments": [written(each) for each in expression.arguments]}


def _written_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    made: dict[str, Any] = {"aggregate": aggregate.kind, "expression": written(aggregate.expression)}
    for name in _PARTS[aggregate.kind]:
        value = getattr(aggregate, name)
        if isinstance(value, tuple):
            made[name] = [to_text(end) for end in value]
        elif isinstance(value, Fraction):
            made[name] = to_text(value)
        elif name == "other":
            made[name] = written(value)
        elif value is not None:
            made[name] = value
    return made


# --- reading ---


def _read(record: object) -> Query:
    names = ("format", "table", "where", "keys", "public_keys", "outputs", "having", "order", "limit", "offset")
    given = as_object(record, (*names, "columns", "smallest", "levels"), "a question")
    if given.get("format") != FORMAT:
        raise InvalidParameter(f"the question's format is not {FORMAT}\nhint: use a client of this server's version")
    after = PostProcessing(
        having=_expression(given.get("having")),
        order=tuple(map(_ordering, as_list(given.get("order"), "order", KEYS_MAX))),
        limit=_number(given.get("limit"), "limit", 1),
        offset=_number(given.get("offset"), "offset", 0) or 0,
    )
    return Query(
        table=as_text(given.get("table"), "table"),
        outputs=tuple(map(_output, as_list(given.get("outputs"), "outputs", OUTPUTS_MAX))),
        where=_expression(given.get("where")),
        keys=tuple(map(_key, as_list(given.get("keys"), "keys", KEYS_MAX))),
        public_keys=None if given.get("public_keys") is None else tuple(map(_public_key, given["public_keys"])),
        smallest=read_smallest(given.get("smallest")),
        levels=tuple(
            tuple(as_list(level, "a level", KEYS_MAX)) for level in as_list(given.get("levels"), "levels", 64)
        ),
        after=after,
        columns=tuple(as_text(each, "a column") for each in as_list(given.get("columns"), "columns", 2 * OUTPUTS_MAX)),
    )


def _levels(given: tuple[tuple[Any, ...], ...], keys: int) -> tuple[tuple[int, ...], ...]:
    """Return the levels of totals, which are those that `totals` asks for."""
    if given not in (levels_asked(keys, totals=False), levels_asked(keys, totals=True), levels_asked(keys, "all")):
        raise QueryRefused(f"levels must be those of totals=True or totals='all'{_LACKING}")
    return given


def _expression(record: Any, depth: int = 1) -> Expression | None:
    return None if record is None else as_node(record, depth)


def as_node(record: Any, depth: int = 1) -> Expression:
    """Return the expression that `written` wrote."""
    if depth > DEPTH_MAX:
        raise QueryRefused(f"an expression is more than {DEPTH_MAX} deep\nhint: split the question, or use IN")
    given = as_object(record, ("column", "value", "call", "arguments"), "an expression")
    if set(given) == {"column"}:
        return Column(as_text(given["column"], "a column"))
    if set(given) == {"value"}:
        constant = scalar_from(given["value"])
        if isinstance(constant, str):
            refuse_broken_text(constant)
        return value_of(constant)
    if set(given) == {"call", "arguments"}:
        arguments = as_list(given["arguments"], "arguments", ARGUMENTS_MAX)
        return Call(as_text(given["call"], "a function"), tuple(as_node(each, depth + 1) for each in arguments))
    raise InvalidParameter(f"an expression is a column, a value, or a call with its arguments{_LACKING}")


def _key(record: Any) -> Key:
    given = as_object(record, ("name", "expression"), "a key")
    return Key(as_text(given.get("name"), "a key's name"), as_node(given.get("expression")))


def _public_key(record: Any) -> tuple[Any, ...]:
    return tuple(scalar_from(part) for part in as_list(record, "a public key", KEYS_MAX))


def _ordering(record: Any) -> Ordering:
    given = as_object(record, ("by", "descending", "nulls_first"), "an order")
    flags = [given.get(name, False) for name in ("descending", "nulls_first")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise InvalidParameter(f"descending and nulls_first are true or false{_LACKING}")
    return Ordering(as_node(given.get("by")), *flags)


def _output(record: Any) -> Output:
    kind = record.get("aggregate") if isinstance(record, dict) else None
    known: tuple[AggregateKind, ...] = get_args(AggregateKind)
    found = next((each for each in known if each == kind), None)
    if found is None:
        raise InvalidParameter(f"an aggregate is one of {', '.join(known)}{_LACKING}")
    given = as_object(record, ("name", "aggregate", "expression", *_PARTS[found]), f"a {found}")
    parts = {name: _READERS[name](given[name]) for name in _PARTS[found] if given.get(name) is not None}
    aggregate = Aggregate(found, _expression(given.get("expression")), **parts)
    return Output(as_text(given.get("name"), "an aggregate's name"), aggregate)


def _ends(written: Any) -> tuple[Fraction, Fraction]:
    low, high = (from_text(end) for end in as_list(written, "between", 2))
    if low >= high:
        raise InvalidParameter("a range must start with its lowest value\nhint: between: [lowest, highest]")
    return low, high


def _step(written: Any) -> Fraction:
    step = from_text(written)
    if step <= 0:
        raise InvalidParameter('a step must be above 0\nhint: "1/100"')
    return step


def _fraction(written: Any) -> Fraction:
    fraction = from_text(written)
    if fraction_meant(fraction) != fraction:
        raise InvalidParameter('a quantile\'s fraction is from 0 to 1, with a short denominator\nhint: "9/10"')
    return fraction


def _quantile_of(written: Any) -> str:
    if written not in ("people", "rows"):
        raise InvalidParameter("of must be 'people' or 'rows'\nhint: leave it out")
    return str(written)


_READERS: dict[str, Callable[[Any], Any]] = {
    "between": _ends,
    "other_between": _ends,
    "step": _step,
    "fraction": _fraction,
    "other": as_node,
    "per_unit": lambda written: whole(written, name="per_unit"),
    "best": lambda written: whole(written, name="best"),
    "of": _quantile_of,
}


def as_object(record: Any, names: Sequence[str], what: str) -> Record:
    """Return a record that has only these names."""
    if not isinstance(record, dict):
        raise InvalidParameter(f"{what} must be an object{_LACKING}")
    unknown = [name for name in record if name not in names]
    if unknown:
        raise InvalidParameter(f"{what} may not have '{str(unknown[0])[:40]}'\nhint: its names are {', '.join(names)}")
    return record


def as_list(record: Any, what: str, most: int) -> list[Any]:
    """Return a list that is not too long; None is an empty list."""
    found = [] if record is None else record
    if not isinstance(found, list) or len(found) > most:
        raise InvalidParameter(f"{what} must be a list of at most {most}{_LACKING}")
    return found


def as_text(record: Any, what: str) -> str:
    """Return a text."""
    if not isinstance(record, str):
        raise InvalidParameter(f"{what} must be text{_LACKING}")
    refuse_broken_text(record)
    return record


def _number(record: Any, what: str, least: int) -> int | None:
    return None if record is None else whole(record, name=what, least=least)
