"""Rows that are computed first, as JSON: joins and rows by unit, for questions that travel (`question_json.py`).

The steps that make the rows travel, and the reader repeats each step with the functions of the Python door. So a join,
a filter or an aggregate is refused there if it is refused here, and the relation is the same one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tacit.errors import InvalidParameter, QueryRefused, TacitError
from tacit.query.frame import AggregateSpec, Frame, add_derived, add_keys, add_where, named_or_expression
from tacit.query.frame_relations import frame_side, joined_frame, per_unit
from tacit.query.joins import TABLES_MAX, Side
from tacit.query.nodes import Expression, Query, Relation, TableRows
from tacit.query.question_json import as_list, as_node, as_object, as_text, question_from, written
from tacit.query.sql.sql_text import show
from tacit.tables import Declaration

DEEP_MAX = 2 * TABLES_MAX
PAIRS_MAX = 64
AGGREGATES_MAX = 100
_LACKING = "\nhint: let tacit.connect write questions, or ask in SQL"

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """Rows and how they are made: the relation, and its JSON."""

    relation: Relation
    record: Record

    @classmethod
    def stored(cls, name: str) -> "Rows":
        """Return a stored table's own rows."""
        return cls(TableRows(name), {"table": name})

    def joined(
        self, frame: Frame, other: "tuple[Frame, Rows] | Side", *, on: Any, how: Any, most: Any
    ) -> "tuple[Frame, Rows]":
        """Return two tables under construction as one; the other may be a public one's side."""
        there: Record = {"public": other.name} if isinstance(other, Side) else _side_record(*other)
        right = other if isinstance(other, Side) else frame_side(other[0], other[1].relation)
        relation, made = joined_frame(frame_side(frame, self.relation), right, frame.tables or {}, on, how, most)
        record = {"join": _side_record(frame, self), "with": there, "on": _pairs(on), "how": how, "most": most}
        return made, Rows(relation, record)

    def by_unit(self, frame: Frame, asked: Mapping[str, AggregateSpec]) -> "tuple[Frame, Rows]":
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
        keys = [{"name": key.name, "expression": written(key.expression)} for key in frame.keys]
        return made, Rows(relation, {"per_unit": side, "keys": keys, "aggregates": aggregates})


def _side_record(frame: Frame, rows: Rows) -> Record:
    if frame.where is None and not frame.derived:
        return rows.record
    derived = [{"name": name, "expression": written(each)} for name, each in frame.derived.items()]
    return {"of": rows.record, "where": written(frame.where), "derived": derived}


def _pairs(on: Any) -> list[list[Any]]:
    if isinstance(on, str):
        return [[on, on]]
    return [list(pair) for pair in on.items()] if isinstance(on, Mapping) else [[name, name] for name in on]


# --- reading ---


def question_about(
    record: object, tables: Callable[[str], Declaration], publics: Callable[[str], Side]
) -> tuple[Query, Relation]:
    """Return the checked question that a record with `rows` holds, and the rows; refuse everything else.

    `tables` and `publics` give what is public about a table by its name, and refuse what may not be read. Only the
    record and public facts are read, so every error here may be shown, and is free.
    """
    given = dict(record) if isinstance(record, dict) else {}
    try:
        frame, relation = _rows(given.pop("rows", None), tables, publics)
    except TacitError:
        raise
    except Exception:  # noqa: BLE001 - a tree that no door makes may break a rule that every door keeps
        raise QueryRefused(f"the question is not one that the doors make{_LACKING}") from None
    return question_from(given, frame.declaration, frame.within), relation


def _rows(
    record: object, tables: Callable[[str], Declaration], publics: Callable[[str], Side], depth: int = 1
) -> tuple[Frame, Relation]:
    if depth > DEEP_MAX:
        raise QueryRefused(f"rows are made in more than {DEEP_MAX} steps\nhint: split the question")
    names = ("table", "of", "where", "derived", "join", "with", "on", "how", "most", "per_unit", "keys", "aggregates")
    given = as_object(record, names, "rows")

    def inner(name: str) -> tuple[Frame, Relation]:
        return _rows(given.get(name), tables, publics, depth + 1)

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
            else frame_side(*_rows(given["with"], tables, publics, depth + 1))
        )
        relation, made = joined_frame(left, right, frame.tables or {}, _on(given["on"]), given["how"], given["most"])
        return made, relation
    if set(given) == {"per_unit", "keys", "aggregates"}:
        frame, relation = inner("per_unit")
        units, made = per_unit(_grouped(frame, given["keys"]), relation, _asked(frame, given["aggregates"]))
        return made, units
    raise InvalidParameter(f"rows are a table's, filtered ones, a join's or those by unit{_LACKING}")


def _narrowed(frame: Frame, given: Record) -> Frame:
    """Return a table under construction with the filter and the columns that a record has."""
    derived = [
        as_object(each, ("name", "expression"), "a column") for each in as_list(given["derived"], "derived", 100)
    ]
    for each in derived:
        name, tree = as_text(each.get("name"), "a column's name"), as_node(each.get("expression"))
        if name in frame.derived:  # rows by unit have their own names from the start
            _require_same(frame.derived[name], tree)
            continue
        frame = add_derived(frame, {name: show(tree)})
        _require_same(frame.derived[name], tree)
    if given["where"] is None:
        return replace(frame, where=None)
    tree = as_node(given["where"])
    found = add_where(replace(frame, where=None), show(tree))
    _require_same(found.where, tree)
    return found


def _grouped(frame: Frame, record: object) -> Frame:
    keys = [as_object(each, ("name", "expression"), "a key") for each in as_list(record, "keys", PAIRS_MAX)]
    if not keys:
        return frame
    grouped = add_keys(frame, [as_text(each.get("name"), "a key's name") for each in keys])
    for made, each in zip(grouped.keys, keys, strict=True):
        _require_same(made.expression, as_node(each.get("expression")))
    return grouped


def _asked(frame: Frame, record: object) -> dict[str, AggregateSpec]:
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
