"""A question as JSON, and back: the words that the Python door was given, each expression as text, with a version.

The reader does not trust the sender: it gives every name and text to the Python door again, which parses and checks
them as if a person had written them there. Of rows that are computed first (joins, rows by unit) the steps travel too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter, QueryRefused, TacitError
from tacit.json_wire import scalar_from, scalar_record
from tacit.numbers import from_text, to_text, whole
from tacit.query import frame as verbs
from tacit.query.frame import AggregateSpec, Frame, levels_asked, named_or_expression
from tacit.query.frame_relations import frame_side, joined_frame, per_unit
from tacit.query.joins import TABLES_MAX, Side
from tacit.query.literal import refuse_broken_text
from tacit.query.nodes import (
    Aggregate,
    AggregateKind,
    Column,
    Expression,
    Ordering,
    PostProcessing,
    Query,
    Relation,
    TableRows,
)
from tacit.query.sql.expressions import show
from tacit.query.typecheck import KEYS_MAX, OUTPUTS_MAX
from tacit.tables import Declaration

FORMAT = 2
DEEP_MAX = 2 * TABLES_MAX
PAIRS_MAX = 64
AGGREGATES_MAX = 100

Record = Mapping[str, Any]


def _top(*, best: Any) -> AggregateSpec:
    return AggregateSpec("top", best=whole(best, name="best"))


# the Python door's word for each aggregate, and the parts that it may have beside its expression
_RANGE, _PAIR = ("between", "step"), ("between", "other", "other_between")
_DOORS: dict[AggregateKind, tuple[Callable[..., AggregateSpec], tuple[str, ...]]] = {
    "count": (verbs.count, ()),
    "count_units": (verbs.count_units, ()),
    "count_distinct": (verbs.count_distinct, ("per_unit",)),
    "sum": (verbs.sum, _RANGE),
    "mean": (verbs.mean, _RANGE),
    "variance": (verbs.variance, _RANGE),
    "std": (verbs.std, _RANGE),
    "quantile": (verbs.quantile, (*_RANGE, "fraction", "of")),
    "covariance": (verbs.covariance, _PAIR),
    "correlation": (verbs.correlation, _PAIR),
    "top": (_top, ("best",)),
}
_LACKING = "\nhint: let tacit.connect write questions, or ask in SQL"


# --- writing ---


def question_record(query: Query) -> dict[str, Any]:
    """Return a checked question as JSON values; a question that only SQL can make is refused."""
    after = query.after
    order = [[each.expression.name, each.descending] for each in after.order if isinstance(each.expression, Column)]
    if (
        query.relation is not None
        or replace(after, order=(), limit=None) != PostProcessing()
        or len(order) < len(after.order)
    ):
        raise QueryRefused("this question can only be sent as SQL\nhint: ask it with sql(...)")
    listed = None if query.public_keys is None else [list(map(scalar_record, key)) for key in query.public_keys]
    return {
        "format": FORMAT,
        "table": query.table,
        "where": _text(query.where),
        "keys": [[key.name, show(key.expression)] for key in query.keys],
        "public_keys": listed,
        **({} if query.smallest is None else {"smallest": query.smallest}),
        **({"totals": _totals_word(query)} if query.levels else {}),
        **({"other": True} if query.other else {}),
        **({"public_totals": _totals_record(query)} if query.public_totals else {}),
        "outputs": [{"name": each.name, **_aggregate_record(each.aggregate)} for each in query.outputs],
        "order": order,
        "limit": after.limit,
    }


def _text(expression: Expression | None) -> str | None:
    return None if expression is None else show(expression)


def _aggregate_record(asked: Aggregate) -> dict[str, Any]:
    parts = {name: getattr(asked, name) for name in _DOORS[asked.kind][1]}
    written = {name: _part_sent(part) for name, part in parts.items() if part is not None}
    return {"aggregate": asked.kind, "expression": _text(asked.expression), **written}


def _part_sent(part: Any) -> Any:
    if isinstance(part, tuple):
        return [to_text(end) for end in part]
    return to_text(part) if isinstance(part, Fraction) else show(part) if isinstance(part, Expression) else part


def _totals_word(query: Query) -> bool | str:
    return True if query.levels == levels_asked(len(query.keys), totals=True) else "all"


def _totals_record(query: Query) -> dict[str, Any]:
    return {
        query.level_name(kept): [[list(map(scalar_record, key)), to_text(number)] for key, number in numbers]
        for kept, numbers in query.public_totals
    }


# --- rows that are computed first ---


@dataclass(frozen=True)
class RowsSent:
    """Rows and how they are made: the relation, and its JSON."""

    relation: Relation
    record: Record

    @classmethod
    def stored(cls, name: str) -> "RowsSent":
        return cls(TableRows(name), {"table": name})

    def joined(
        self, frame: Frame, other: "tuple[Frame, RowsSent] | Side", *, on: Any, how: Any, most: Any
    ) -> "tuple[Frame, RowsSent]":
        """Return two tables under construction as one; the other may be a public one's side."""
        there: Record = {"public": other.name} if isinstance(other, Side) else _side_record(*other)
        right = other if isinstance(other, Side) else frame_side(other[0], other[1].relation)
        relation, made = joined_frame(frame_side(frame, self.relation), right, frame.tables or {}, on, how, most)
        record = {"join": _side_record(frame, self), "with": there, "on": _pairs_record(on), "how": how, "most": most}
        return made, RowsSent(relation, record)

    def by_unit(self, frame: Frame, asked: Mapping[str, AggregateSpec]) -> "tuple[Frame, RowsSent]":
        """Return one row for each unit and group of a table under construction."""
        relation, made = per_unit(frame, self.relation, asked)
        aggregates = [
            {
                "name": name,
                "aggregate": each.kind,
                "expression": None if each.of is None else show(named_or_expression(frame, each.of)),
                **({"fraction": int(each.fraction)} if each.fraction in (0, 1) else {}),
            }
            for name, each in asked.items()
        ]
        side = _side_record(replace(frame, keys=(), public_keys=None), self)
        keys = [key.name for key in frame.keys]
        return made, RowsSent(relation, {"per_unit": side, "keys": keys, "aggregates": aggregates})


def _side_record(frame: Frame, rows: RowsSent) -> Record:
    if frame.where is None and not frame.derived:
        return rows.record
    derived = [[name, show(each)] for name, each in frame.derived.items()]
    return {"of": rows.record, "where": _text(frame.where), "derived": derived}


def _pairs_record(on: Any) -> list[list[Any]]:
    if isinstance(on, str):
        return [[on, on]]
    return [list(pair) for pair in on.items()] if isinstance(on, Mapping) else [[name, name] for name in on]


# --- reading ---


def question_from(record: object, declaration: Declaration, within: int = 0) -> Query:
    """Return the checked question that `question_record` wrote, or refuse it; every error is public and free."""
    with _as_doors_make():
        return _query(record, Frame(declaration, within=within))


def question_about(
    record: object, tables: Callable[[str], Declaration], publics: Callable[[str], Side]
) -> tuple[Query, Relation]:
    """Return the checked question that a record with `rows` holds, and the rows, or refuse it; every error is free.

    `tables` and `publics` give public facts of a table by its name, and refuse one that may not be read.
    """
    given = dict(record) if isinstance(record, dict) else {}
    with _as_doors_make():
        frame, relation = _rows_sent(given.pop("rows", None), tables, publics)
    return question_from(given, frame.declaration, frame.within), relation


@contextmanager
def _as_doors_make() -> Iterator[None]:
    """Refuse a record that no door writes."""
    try:
        yield
    except TacitError:
        raise
    except Exception:  # noqa: BLE001 - see above
        raise QueryRefused(f"the question is not one that the doors make{_LACKING}") from None


def _query(record: object, frame: Frame) -> Query:
    names = ("format", "table", "where", "keys", "public_keys", "smallest", "totals", "other", "public_totals")
    given = _as_object(record, (*names, "outputs", "order", "limit"), "a question")
    if given.get("format") != FORMAT:
        raise InvalidParameter(f"the question's format is not {FORMAT}\nhint: use a client of this server's version")
    if (table := _text_sent(given.get("table"), "table")) != frame.declaration.name:
        raise QueryRefused(f"the question is about '{table}'\nhint: this table is '{frame.declaration.name}'")
    if given.get("where") is not None:
        frame = frame.filtered(_text_sent(given["where"], "where"))
    if keys := _pairs(given.get("keys"), "keys", KEYS_MAX):
        frame = _grouped(_derived(frame, keys), [name for name, _ in keys], given)
    elif any(given.get(name) for name in ("public_keys", "smallest", "totals", "other", "public_totals")):
        raise QueryRefused(f"groups are given, but the question does not group{_LACKING}")
    asked = [_output(each) for each in _as_list(given.get("outputs"), "outputs", OUTPUTS_MAX)]
    order = _pairs(given.get("order"), "order", KEYS_MAX)
    if not all(isinstance(descending, bool) for _, descending in order):
        raise InvalidParameter(f"descending is true or false{_LACKING}")
    limit = None if given.get("limit") is None else whole(given["limit"], name="limit")
    by = tuple(Ordering(Column(name), descending) for name, descending in order)
    return frame.query(asked, PostProcessing(order=by, limit=limit))


def _derived(frame: Frame, columns: Sequence[tuple[str, Any]]) -> Frame:
    """Return a table under construction with columns by their texts; those that it has already stay as they are."""
    for name, text in columns:
        if name not in frame.derived and text != show(Column(name)):
            frame = frame.deriving({name: _text_sent(text, "an expression")})
    return frame


def _grouped(frame: Frame, names: Sequence[str], given: Record) -> Frame:
    listed = given.get("public_keys")
    totals = {
        level: {tuple(map(scalar_from, key)): from_text(number) for key, number in numbers}
        for level, numbers in dict(given.get("public_totals") or {}).items()
    }
    return frame.grouped(
        names,
        None
        if listed is None
        else [tuple(map(scalar_from, _as_list(key, "a public key", KEYS_MAX))) for key in listed],
        given.get("smallest"),
        given.get("totals", False),
        given.get("other", False),
        totals or None,
    )


def _output(record: Any) -> tuple[str, AggregateSpec]:
    kind = record.get("aggregate") if isinstance(record, dict) else None
    if kind not in _DOORS:
        raise InvalidParameter(f"an aggregate is one of {', '.join(_DOORS)}{_LACKING}")
    door, names = _DOORS[kind]
    given = _as_object(record, ("name", "aggregate", "expression", *names), f"a {kind}")
    parts = {name: _READERS.get(name, _as_it_is)(given[name]) for name in names if given.get(name) is not None}
    of = () if given.get("expression") is None else (_text_sent(given["expression"], "an expression"),)
    return _text_sent(given.get("name"), "an aggregate's name"), door(*of, **parts)


def _as_it_is(written: Any) -> Any:
    return written


def _range_sent(written: Any) -> tuple[Fraction, Fraction]:
    low, high = map(from_text, written)
    return low, high


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("between", "other_between"), _range_sent),
    **dict.fromkeys(("step", "fraction"), from_text),
    "other": lambda written: _text_sent(written, "other"),
}


def _rows_sent(
    record: object, tables: Callable[[str], Declaration], publics: Callable[[str], Side], depth: int = 1
) -> tuple[Frame, Relation]:
    if depth > DEEP_MAX:
        raise QueryRefused(f"rows are made in more than {DEEP_MAX} steps\nhint: split the question")
    names = ("table", "of", "where", "derived", "join", "with", "on", "how", "most", "per_unit", "keys", "aggregates")
    given = _as_object(record, names, "rows")

    def inner(name: str) -> tuple[Frame, Relation]:
        return _rows_sent(given.get(name), tables, publics, depth + 1)

    if set(given) == {"table"}:
        declaration = tables(_text_sent(given["table"], "a table"))
        return Frame(declaration), TableRows(declaration.name)
    if set(given) == {"of", "where", "derived"}:
        frame, relation = inner("of")
        frame = replace(_derived(frame, _pairs(given["derived"], "derived", AGGREGATES_MAX)), where=None)
        return (frame if given["where"] is None else frame.filtered(_text_sent(given["where"], "where"))), relation
    if set(given) == {"join", "with", "on", "how", "most"}:
        frame, relation = inner("join")
        is_public = isinstance(given["with"], dict) and set(given["with"]) == {"public"}
        right = (
            publics(_text_sent(given["with"]["public"], "a public table")) if is_public else frame_side(*inner("with"))
        )
        on = {_text_sent(here, "a column"): _text_sent(there, "a column") for here, there in given["on"][:PAIRS_MAX]}
        left = frame_side(frame, relation)
        relation, made = joined_frame(left, right, frame.tables or {}, on, given["how"], given["most"])
        return made, relation
    if set(given) == {"per_unit", "keys", "aggregates"}:
        frame, relation = inner("per_unit")
        keys = [_text_sent(key, "a key") for key in _as_list(given["keys"], "keys", PAIRS_MAX)]
        asked = dict(map(_aggregate_of_units, _as_list(given["aggregates"], "aggregates", AGGREGATES_MAX)))
        units, made = per_unit(frame.grouped(keys) if keys else frame, relation, asked)
        return made, units
    raise InvalidParameter(f"rows are a table's, filtered ones, a join's or those by unit{_LACKING}")


def _aggregate_of_units(record: Any) -> tuple[str, AggregateSpec]:
    given = _as_object(record, ("name", "aggregate", "expression", "fraction"), "an aggregate of a unit")
    kind, fraction = given.get("aggregate"), given.get("fraction")
    if kind not in ("count", "count_distinct", "sum", "mean", "quantile") or fraction not in (None, 0, 1):
        raise InvalidParameter(f"a unit has count, count_distinct, sum, mean, min and max{_LACKING}")
    of = None if given.get("expression") is None else _text_sent(given["expression"], "an expression")
    made = {} if fraction is None else {"fraction": Fraction(fraction)}
    return _text_sent(given.get("name"), "a name"), AggregateSpec(kind, of, **made)  # type: ignore[arg-type]


def _as_object(record: Any, names: Sequence[str], what: str) -> Record:
    """Return a record that has only these names."""
    if not isinstance(record, dict):
        raise InvalidParameter(f"{what} must be an object{_LACKING}")
    unknown = [name for name in record if name not in names]
    if unknown:
        raise InvalidParameter(f"{what} may not have '{str(unknown[0])[:40]}'\nhint: its names are {', '.join(names)}")
    return record


def _as_list(record: Any, what: str, most: int) -> list[Any]:
    """Return a list that is not too long; None is an empty list."""
    found = [] if record is None else record
    if not isinstance(found, list) or len(found) > most:
        raise InvalidParameter(f"{what} must be a list of at most {most}{_LACKING}")
    return found


def _pairs(record: Any, what: str, most: int) -> list[tuple[str, Any]]:
    return [(_text_sent(name, what), value) for name, value in _as_list(record, what, most)]


def _text_sent(record: Any, what: str) -> str:
    if not isinstance(record, str):
        raise InvalidParameter(f"{what} must be text{_LACKING}")
    refuse_broken_text(record)
    return record
