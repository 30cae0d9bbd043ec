"""A question as JSON, and back: the frozen tree, closed and versioned, for questions that travel.

The reader does not trust the sender: `check` compares the whole with the declaration, and every expression must be one
that the SQL door makes, so a tree from a wire is a question that a person could have written. Of rows that are computed
first (joins, rows by unit) the steps travel, and the reader repeats them with the Python door.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never, get_args

from tacit.errors import InvalidParameter, QueryRefused, TacitError
from tacit.json_wire import scalar_from, scalar_record
from tacit.numbers import from_text, positive, to_text, whole
from tacit.query.check import check
from tacit.query.compound import refuse_unnested_time
from tacit.query.frame import (
    AggregateSpec,
    Frame,
    levels_asked,
    named_or_expression,
    read_smallest,
    refuse_unfit,
)
from tacit.query.frame_relations import frame_side, joined_frame, per_unit
from tacit.query.joins import TABLES_MAX, Side
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
    PublicTotals,
    Query,
    Relation,
    TableRows,
    Value,
    value_of,
)
from tacit.query.sql.expressions import show
from tacit.query.sql.rows import parse_expression
from tacit.query.typecheck import DEPTH_MAX, KEYS_MAX, OUTPUTS_MAX
from tacit.tables import Declaration

FORMAT = 1
ARGUMENTS_MAX = 3_000
DEEP_MAX = 2 * TABLES_MAX
PAIRS_MAX = 64
AGGREGATES_MAX = 100

Record = Mapping[str, Any]
Sent = Expression | Key | Ordering | Output | Fraction | int | str | tuple[Any, ...] | None

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
    listed = None if query.public_keys is None else [list(map(scalar_record, key)) for key in query.public_keys]
    return {
        "format": FORMAT,
        "table": query.table,
        "where": written(query.where),
        "keys": written(query.keys),
        "public_keys": listed,
        **({} if query.smallest is None else {"smallest": query.smallest}),
        **({"levels": written(query.levels)} if query.levels else {}),
        **({"other": True} if query.other else {}),
        **({"public_totals": _totals_record(query)} if query.public_totals else {}),
        "outputs": written(query.outputs),
        "having": written(after.having),
        "order": written(after.order),
        "limit": after.limit,
        "offset": after.offset,
        "columns": list(query.columns),
    }


def question_from(record: object, declaration: Declaration, within: int = 0) -> Query:
    """Return the checked question that `question_record` wrote, or refuse it; every error is public and free."""
    with _as_doors_make():
        query = _query(record)
        _refuse_others(query, declaration)
        checked = check(query, declaration, within=within)
    refuse_unfit(checked, other=query.other, has_public=bool(query.public_totals))
    refuse_unnested_time(checked.keys, _levels(query.levels, len(checked.keys)))
    for kept, numbers in query.public_totals:
        if kept not in query.levels or any(len(key) != len(kept) for key, _ in numbers):
            raise QueryRefused(f"public totals are of a level{_LACKING}")
    checked = replace(
        checked,
        levels=_levels(query.levels, len(checked.keys)),
        public_totals=query.public_totals,
        other=query.other and bool(checked.keys),
    )
    named = [*(key.name for key in checked.keys), *(output.name for output in checked.outputs)]
    if sorted(checked.columns) != sorted(named):
        raise QueryRefused(f"columns must name each key and aggregate once{_LACKING}")
    return checked


@contextmanager
def _as_doors_make() -> Iterator[None]:
    """Refuse a tree that no door makes: it may break a rule that every door keeps."""
    try:
        yield
    except TacitError:
        raise
    except Exception:  # noqa: BLE001 - see above
        raise QueryRefused(f"the question is not one that the doors make{_LACKING}") from None


def _refuse_others(query: Query, declaration: Declaration) -> None:
    """Refuse an expression over rows that the SQL door would not have made: its own text must be read as the same."""
    of_rows = [query.where, *(key.expression for key in query.keys)]
    of_rows += [each for output in query.outputs for each in (output.aggregate.expression, output.aggregate.other)]
    for expression in of_rows:
        if expression is not None and parse_expression(show(expression), declaration) != expression:
            raise QueryRefused(f"an expression is not written in its one form{_LACKING}")


# --- writing ---


def written(given: Sent) -> Any:
    """Return an expression, a key, an order or an output as JSON values; fractions are texts, tuples lists."""
    match given:
        case Column():
            return {"column": given.name}
        case Value():
            return {"value": scalar_record(given.value)}
        case Call():
            return {"call": given.function, "arguments": written(given.arguments)}
        case Key():
            return {"name": given.name, "expression": written(given.expression)}
        case Ordering():
            by, flags = written(given.expression), {"descending": given.descending, "nulls_first": given.nulls_first}
            return {"by": by, **flags}
        case Output():
            asked = given.aggregate
            made = {"name": given.name, "aggregate": asked.kind, "expression": written(asked.expression)}
            parts = {name: getattr(asked, name) for name in _PARTS[asked.kind]}
            return made | {name: written(part) for name, part in parts.items() if part is not None or name == "other"}
        case tuple():
            return [written(each) for each in given]
        case Fraction():
            return to_text(given)
        case None | int() | str():
            return given
        case _:
            assert_never(given)


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
                "expression": None if each.of is None else written(named_or_expression(frame, each.of)),
                **({"fraction": int(each.fraction)} if each.fraction in (0, 1) else {}),
            }
            for name, each in asked.items()
        ]
        side = _side_record(replace(frame, keys=(), public_keys=None), self)
        return made, RowsSent(relation, {"per_unit": side, "keys": written(frame.keys), "aggregates": aggregates})


def _side_record(frame: Frame, rows: RowsSent) -> Record:
    if frame.where is None and not frame.derived:
        return rows.record
    derived = tuple(Key(name, each) for name, each in frame.derived.items())
    return {"of": rows.record, "where": written(frame.where), "derived": written(derived)}


def _pairs_record(on: Any) -> list[list[Any]]:
    if isinstance(on, str):
        return [[on, on]]
    return [list(pair) for pair in on.items()] if isinstance(on, Mapping) else [[name, name] for name in on]


# --- reading ---


def _query(record: object) -> Query:
    names = ("format", "table", "where", "keys", "public_keys", "outputs", "having", "order", "limit", "offset")
    given = as_object(record, (*names, "columns", "smallest", "levels", "other", "public_totals"), "a question")
    if given.get("format") != FORMAT:
        raise InvalidParameter(f"the question's format is not {FORMAT}\nhint: use a client of this server's version")
    after = PostProcessing(
        having=_optional_node(given.get("having")),
        order=tuple(map(_ordering, as_list(given.get("order"), "order", KEYS_MAX))),
        limit=_optional_number(given.get("limit"), "limit", 1),
        offset=_optional_number(given.get("offset"), "offset", 0) or 0,
    )
    return Query(
        table=as_text(given.get("table"), "table"),
        outputs=tuple(map(_output, as_list(given.get("outputs"), "outputs", OUTPUTS_MAX))),
        where=_optional_node(given.get("where")),
        keys=tuple(map(_key_sent, as_list(given.get("keys"), "keys", KEYS_MAX))),
        public_keys=None if given.get("public_keys") is None else tuple(map(_public_key, given["public_keys"])),
        smallest=read_smallest(given.get("smallest")),
        levels=tuple(
            tuple(as_list(level, "a level", KEYS_MAX)) for level in as_list(given.get("levels"), "levels", 64)
        ),
        other=given.get("other") is True,
        public_totals=tuple(map(_public_totals, as_list(given.get("public_totals"), "public_totals", KEYS_MAX))),
        after=after,
        columns=tuple(as_text(each, "a column") for each in as_list(given.get("columns"), "columns", 2 * OUTPUTS_MAX)),
    )


def _totals_record(query: Query) -> list[Any]:
    return [
        [list(kept), [[[scalar_record(part) for part in key], to_text(number)] for key, number in numbers]]
        for kept, numbers in query.public_totals
    ]


def _public_totals(record: Any) -> PublicTotals:
    kept, numbers = record
    return tuple(kept), tuple((_public_key(key), from_text(number)) for key, number in numbers)


def _levels(given: tuple[tuple[Any, ...], ...], keys: int) -> tuple[tuple[int, ...], ...]:
    """Return the levels of totals, which are those that `totals` asks for."""
    if given not in (levels_asked(keys, totals=False), levels_asked(keys, totals=True), levels_asked(keys, "all")):
        raise QueryRefused(f"levels must be those of totals=True or totals='all'{_LACKING}")
    return given


def _optional_node(record: Any, depth: int = 1) -> Expression | None:
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


def _key_sent(record: Any, kind: str = "a key") -> Key:
    given = as_object(record, ("name", "expression"), kind)
    return Key(as_text(given.get("name"), f"{kind}'s name"), as_node(given.get("expression")))


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
    aggregate = Aggregate(found, _optional_node(given.get("expression")), **parts)
    return Output(as_text(given.get("name"), "an aggregate's name"), aggregate)


def _range_sent(written: Any) -> tuple[Fraction, Fraction]:
    low, high = (from_text(end) for end in as_list(written, "between", 2))
    if low >= high:
        raise InvalidParameter("a range must start with its lowest value\nhint: between: [lowest, highest]")
    return low, high


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
    "between": _range_sent,
    "other_between": _range_sent,
    "step": lambda written: positive(from_text(written), name="step"),
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


def _optional_number(record: Any, what: str, least: int) -> int | None:
    return None if record is None else whole(record, name=what, least=least)


# --- reading the rows ---


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


def _rows_sent(
    record: object, tables: Callable[[str], Declaration], publics: Callable[[str], Side], depth: int = 1
) -> tuple[Frame, Relation]:
    if depth > DEEP_MAX:
        raise QueryRefused(f"rows are made in more than {DEEP_MAX} steps\nhint: split the question")
    names = ("table", "of", "where", "derived", "join", "with", "on", "how", "most", "per_unit", "keys", "aggregates")
    given = as_object(record, names, "rows")

    def inner(name: str) -> tuple[Frame, Relation]:
        return _rows_sent(given.get(name), tables, publics, depth + 1)

    if set(given) == {"table"}:
        declaration = tables(as_text(given["table"], "a table"))
        return Frame(declaration), TableRows(declaration.name)
    if set(given) == {"of", "where", "derived"}:
        frame, relation = inner("of")
        return _narrowed(frame, given), relation
    if set(given) == {"join", "with", "on", "how", "most"}:
        frame, relation = inner("join")
        left = frame_side(frame, relation)
        is_public = isinstance(given["with"], dict) and set(given["with"]) == {"public"}
        right = (
            publics(as_text(given["with"]["public"], "a public table"))
            if is_public
            else frame_side(*_rows_sent(given["with"], tables, publics, depth + 1))
        )
        relation, made = joined_frame(left, right, frame.tables or {}, _on(given["on"]), given["how"], given["most"])
        return made, relation
    if set(given) == {"per_unit", "keys", "aggregates"}:
        frame, relation = inner("per_unit")
        units, made = per_unit(_grouped(frame, given["keys"]), relation, _unit_aggregates(frame, given["aggregates"]))
        return made, units
    raise InvalidParameter(f"rows are a table's, filtered ones, a join's or those by unit{_LACKING}")


def _narrowed(frame: Frame, given: Record) -> Frame:
    """Return a table under construction with the filter and the columns that a record has."""
    for made in [_key_sent(each, "a column") for each in as_list(given["derived"], "derived", 100)]:
        if made.name not in frame.derived:  # rows by unit have their own names from the start
            frame = frame.deriving({made.name: show(made.expression)})
        _require_same(frame.derived[made.name], made.expression)
    frame = replace(frame, where=None)
    if given["where"] is None:
        return frame
    tree = as_node(given["where"])
    found = frame.filtered(show(tree))
    _require_same(found.where, tree)
    return found


def _grouped(frame: Frame, record: object) -> Frame:
    keys = [_key_sent(each) for each in as_list(record, "keys", PAIRS_MAX)]
    if not keys:
        return frame
    grouped = frame.grouped([key.name for key in keys])
    for made, key in zip(grouped.keys, keys, strict=True):
        _require_same(made.expression, key.expression)
    return grouped


def _unit_aggregates(frame: Frame, record: object) -> dict[str, AggregateSpec]:
    asked: dict[str, AggregateSpec] = {}
    for each in as_list(record, "aggregates", AGGREGATES_MAX):
        given = as_object(each, ("name", "aggregate", "expression", "fraction"), "an aggregate of a unit")
        name, kind, fraction = as_text(given.get("name"), "a name"), given.get("aggregate"), given.get("fraction")
        if kind not in ("count", "count_distinct", "sum", "mean", "quantile") or fraction not in (None, 0, 1):
            raise InvalidParameter(f"a unit has count, count_distinct, sum, mean, min and max{_LACKING}")
        tree = None if given.get("expression") is None else as_node(given["expression"])
        of = None if tree is None else show(tree)
        if of is not None:
            _require_same(named_or_expression(frame, of), tree)
        made = {} if fraction is None else {"fraction": Fraction(fraction)}
        asked[name] = AggregateSpec(kind, of, **made)  # type: ignore[arg-type]
    return asked


def _on(record: object) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in as_list(record, "on", PAIRS_MAX):
        pair = [as_text(name, "a column") for name in as_list(each, "a pair", 2)]
        if len(pair) != 2 or pair[0] in pairs:
            raise InvalidParameter(f"on is a list of pairs, each column of the left table once{_LACKING}")
        pairs[pair[0]] = pair[1]
    return pairs


def _require_same(made: Expression | None, sent: Expression | None) -> None:
    if made != sent:
        raise QueryRefused(f"an expression is not written in its one form{_LACKING}")
