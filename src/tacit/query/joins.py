"""Joins: the pairs of relations that may be joined, the public facts of the result, and its bound on one unit's rows.

Two protected relations are joined on their unit, so that a row of the result belongs to the unit of both of its parts.
A protected one is joined with a public one on anything. Other joins are refused: the owner of a row must follow only
from the declarations (docs/proofs/joins.md). The rows are computed by `engine/derived.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.numbers import whole
from tacit.query.nodes import (
    PLACES,
    Column,
    Expression,
    Join,
    JoinedColumn,
    JoinKind,
    Key,
    Kind,
    Marked,
    Matches,
    PerUnit,
    PublicRows,
    Relation,
    RowWise,
    SomeUnits,
    TableRows,
    Windowed,
    free_name,
    sources_of,
)
from tacit.query.sql.expressions import show
from tacit.query.typecheck import column_kinds, kind_of, steps
from tacit.tables import ROW, ColumnFacts, Declaration, KeyValue, PublicTable, RowUnit

# A question reads at most this many tables.
TABLES_MAX = 16
# Rows of one unit that match in a join of two protected tables make at most this many pairs, or one for each row of
# the left table if those are more.
PAIRS_MOST = 1 << 20


@dataclass(frozen=True)
class Side:
    """A side of a join: a relation, and its public facts."""

    relation: Relation
    declaration: Declaration
    steps: int = 0  # the work that a row takes before these are there (`typecheck.py`)

    @property
    def is_public(self) -> bool:
        return is_public(self.relation)

    @property
    def name(self) -> str:
        return self.declaration.name


@dataclass(frozen=True)
class NamedRows:
    """A table that FROM and JOIN may name; `most` is how many rows of it one row may match, if it is public."""

    name: str
    side: Side
    most: int = 1


@dataclass(frozen=True)
class Joined:
    """A join, its public facts, and the names of each side's columns in it."""

    side: Side
    left: Mapping[str, str]
    right: Mapping[str, str]


def public_side(table: PublicTable) -> Side:
    return Side(PublicRows(table.name, table.digest), public_declaration(table))


def public_declaration(table: PublicTable) -> Declaration:
    """Return what is public about a public table: everything; no row of it is a person's."""
    return Declaration(table.name, ROW, table.columns)


def is_public(relation: Relation) -> bool:
    """Return whether a relation's rows are those of a public table."""
    if isinstance(relation, RowWise):
        return is_public(relation.source)
    return isinstance(relation, PublicRows)


def tables_of(relation: Relation) -> tuple[str, ...]:
    """Return the names of the protected tables that a relation reads, once per reading, the first first."""
    return tuple(each.name for each in _stored_side(relation) if isinstance(each, TableRows))


def publics_of(relation: Relation) -> tuple[str, ...]:
    """Return the names of the public tables that a relation reads."""
    return tuple(each.name for each in _stored_side(relation) if isinstance(each, PublicRows))


def _stored_side(relation: Relation) -> list[TableRows | PublicRows]:
    if isinstance(relation, TableRows | PublicRows):
        return [relation]
    return [each for source in sources_of(relation) for each in _stored_side(source)]


def join(
    left: Side,
    right: Side,
    matches: Sequence[tuple[Expression, Expression]],
    *,
    how: JoinKind,
    most: object = 1,
    once: bool = False,
) -> Joined:
    """Return the join of two relations, or refuse it with the reason and the way out.

    `most` is how many rows of a public table one row may match; whether that holds is checked when it is read. With
    `once`, two columns of one name that must be equal become one, that of the left side.
    """
    if left.is_public and right.is_public:
        raise QueryRefused(
            f"'{left.name}' and '{right.name}' are both public: a join of them needs no protection\nhint: join "
            "them at their source, or start from the protected table"
        )
    if left.is_public:
        if how == "left":
            raise QueryRefused(
                f"'{left.name}' is public, and on the left: its rows without a match would belong to no unit"
                f"\nhint: put the protected table first: {right.name} LEFT JOIN {left.name}"
            )
        turned = join(right, left, [(there, here) for here, there in matches], how=how, most=most, once=once)
        return Joined(turned.side, turned.right, turned.left)
    on, bound = _matched(left, right, matches, most)
    if len(tables_of(left.relation)) + len(_stored_side(right.relation)) >= TABLES_MAX:
        raise QueryRefused(f"a question reads at most {TABLES_MAX} tables\nhint: ask several questions")
    columns, of_left, of_right = _columns_of_side(left, right, _same_column(on, how, once=once))
    relation = Join(left.relation, right.relation, how, on, columns, bound)
    declaration = join_declaration(relation, left.declaration, right.declaration)
    return Joined(Side(relation, declaration, _work(left, right, on)), of_left, of_right)


def marked(
    source: Side, others: Side, matches: Sequence[tuple[Expression, Expression]], *, is_in: bool
) -> tuple[Side, str]:
    """Return each row of `source` with a column that says whether any row of `others` matches it, and its name."""
    if source.is_public:
        raise QueryRefused(f"'{source.name}' is public\nhint: ask about a protected table")
    on, _ = _matched(source, others, matches, most=None)
    name = free_name("matches", source.declaration.columns)
    relation = Marked(source.relation, others.relation, on, name, is_in and others.is_public)
    return Side(relation, marked_declaration(relation, source.declaration), _work(source, others, on)), name


def _work(left: Side, right: Side, on: Matches) -> int:
    """Return the work that a row takes until it is joined."""
    return (
        left.steps
        + right.steps
        + steps([here for here, _ in on], column_kinds(left.declaration))
        + steps([there for _, there in on], column_kinds(right.declaration))
    )


def row_wise(side: Side, columns: tuple[Key, ...], where: Expression | None) -> Side:
    """Return a side's rows that satisfy a condition, as the unit and these columns."""
    relation = RowWise(side.relation, columns, where)
    declaration = row_wise_declaration(relation, side.declaration)
    read = [*(key.expression for key in columns), *([] if where is None else [where])]
    return Side(relation, declaration, side.steps + steps(read, column_kinds(side.declaration)))


def _matched(
    left: Side, right: Side, matches: Sequence[tuple[Expression, Expression]], most: object
) -> tuple[Matches, int | None]:
    """Return what must be equal beside the unit, and how many rows of a public table one row may match."""
    found = list(matches)
    if right.is_public:
        if not found:
            raise QueryRefused(
                f"the matching rows of '{right.name}' are undefined\nhint: USING (ward), or ON {left.name}.ward = "
                f"{right.name}.ward"
            )
        bound = None if most is None else whole(most, name="most")
        if bound is not None and bound > 1 and isinstance(left.declaration.unit, RowUnit):
            raise QueryRefused(
                f"every row of '{left.name}' is a unit, and most={bound} would split it into several units\nhint: "
                "join it with tables in which a row has one match, most=1"
            )
    else:
        pair = _unit_pair(left, right, found)
        found = [each for each in found if each != pair]
        bound = None
    for here, there in found:
        _refuse_kinds(left, right, here, there)
    return tuple(sorted(dict.fromkeys(found), key=repr)), bound


def _unit_pair(
    left: Side, right: Side, matches: Sequence[tuple[Expression, Expression]]
) -> tuple[Expression, Expression]:
    """Return the match of the two units, which a join of protected relations must have."""
    mine, theirs = left.declaration, right.declaration
    for side in (left, right):
        if isinstance(side.declaration.unit, RowUnit):
            raise QueryRefused(
                f"every row of '{side.name}' is its own unit, so no row of another protected table belongs to it"
                "\nhint: give it a unit that both tables have, or join it with public tables"
            )
    for here, there in matches:
        if here == Column(str(mine.unit)) and there == Column(str(theirs.unit)):
            _refuse_units(left, right)
            return here, there
    if _share_owners(left, right, matches):
        _refuse_units(left, right)
        return Column(str(mine.unit)), Column(str(theirs.unit))
    raise QueryRefused(
        f"'{left.name}' and '{right.name}' are both protected, and are joined on something other than their unit: a row"
        f" would belong to two people\nhint: join them on {mine.unit} (other conditions may be added to it), or declare"
        " one of them as public, if no person is in it: tacit.public(...)"
    )


def _share_owners(left: Side, right: Side, matches: Sequence[tuple[Expression, Expression]]) -> bool:
    """Return whether rows that match have their unit from one row: a line and its order, or two lines of one."""
    stored = [
        tuple(
            _stored_column(side.relation, each.name) if isinstance(each, Column) else None
            for side, each in zip((left, right), pair, strict=True)
        )
        for pair in matches
    ]
    equal = {frozenset(pair) for pair in stored}
    for side, other in ((left, right), (right, left)):
        owners, theirs = side.declaration.owners, other.declaration.owners
        if owners is None:
            continue
        same = theirs is not None and theirs.table == owners.table
        keys = {there: (other.name, here) for here, there in theirs.on} if theirs is not None and same else {}
        mine = {there: (side.name, here) for here, there in owners.on}
        if all(
            frozenset((mine[there], (owners.table, there))) in equal
            or (there in keys and frozenset((mine[there], keys[there])) in equal)
            for there in mine
        ):
            return True
    return False


def _stored_column(relation: Relation, column: str) -> tuple[str, str] | None:
    """Return the table's column that a relation's column is, as it is stored."""
    if isinstance(relation, TableRows):
        return relation.name, column
    if isinstance(relation, RowWise):
        passed = next((key.expression for key in relation.columns if key.name == column), None)
        return _stored_column(relation.source, passed.name) if isinstance(passed, Column) else None
    if isinstance(relation, Join):
        found = next((each for each in relation.columns if each.name == column), None)
        side = relation.left if found is None or found.side == "left" else relation.right
        return None if found is None else _stored_column(side, found.column)
    return _stored_column(relation.source, column) if isinstance(relation, Marked | SomeUnits | Windowed) else None


def _refuse_units(left: Side, right: Side) -> None:
    mine, theirs = left.declaration, right.declaration
    kinds = [each.columns[str(each.unit)] for each in (mine, theirs)]
    if kinds[0].type != kinds[1].type or mine.unit != theirs.unit:
        raise QueryRefused(
            f"the unit {mine.unit} is {kinds[0].type} in '{left.name}' and {theirs.unit} is {kinds[1].type} in"
            f" '{right.name}': two people could be taken for one\nhint: give it one name and one type in both tables,"
            f" e.g. columns={{'{theirs.unit}': {{'type': '{kinds[0].type}'}}}}"
        )
    if mine.neighbours != theirs.neighbours:
        raise QueryRefused(
            f"'{left.name}' and '{right.name}' have different neighbours\nhint: declare both add-remove, or replace"
        )


def _refuse_kinds(left: Side, right: Side, here: Expression, there: Expression) -> None:
    mine, theirs = (kind_of(each, column_kinds(side.declaration)) for each, side in ((here, left), (there, right)))
    if mine.type != theirs.type or (mine.type == "decimal" and mine != theirs):
        raise QueryRefused(
            f"{show(here)} of '{left.name}' is {mine.phrase} and {show(there)} of '{right.name}' is {theirs.phrase}: "
            "they match only as one type\nhint: declare one type for both, columns={'x': {'type': 'text'}}, or CAST one"
        )


# --- the columns of a join ---


def _same_column(on: Matches, how: JoinKind, *, once: bool) -> dict[str, str]:
    """Return the right side's columns that are the left side's too: an inner join has the same value in both."""
    plain = [(here.name, there.name) for here, there in on if isinstance(here, Column) and isinstance(there, Column)]
    return {there: here for here, there in plain if how == "inner" or (once and here == there)}


def _columns_of_side(
    left: Side, right: Side, same: dict[str, str]
) -> tuple[tuple[JoinedColumn, ...], dict[str, str], dict[str, str]]:
    """Return a join's columns, and the names of each side's in it: a name that both sides have is qualified."""
    mine, theirs = left.declaration, right.declaration
    if not right.is_public:
        same[str(theirs.unit)] = str(mine.unit)
    here = [name for name in mine.columns if mine.columns[name].type != "other" or name == mine.unit]
    there = [name for name in theirs.columns if theirs.columns[name].type != "other" and name not in same]
    shared = {name.lower() for name in here} & {name.lower() for name in there}
    made: list[JoinedColumn] = []
    taken: set[str] = set()
    for side, given, names in (("left", left, here), ("right", right, there)):
        for name in names:
            plain = name.lower() not in taken | shared or (name == given.declaration.unit and name.lower() not in taken)
            written = name if plain else _qualified(name, given.relation, taken)
            taken.add(written.lower())
            made.append(JoinedColumn(written, "left" if side == "left" else "right", name))
    of_left = {each.column: each.name for each in made if each.side == "left"}
    of_right = {each.column: each.name for each in made if each.side == "right"}
    return tuple(made), of_left, of_right | {name: of_left[other] for name, other in same.items()}


def _qualified(name: str, relation: Relation, taken: set[str]) -> str:
    """Return a name that no column has yet: with the name of its table before it."""
    table = origin(relation, name)
    bare = name.rpartition(".")[2] if name.startswith(f"{table}.") else name
    written, number = f"{table}.{bare}", 2
    while written.lower() in taken:
        written, number = f"{table}_{number}.{bare}", number + 1
    return written


def origin(relation: Relation, column: str) -> str:
    """Return the name of the table that a relation's column comes from, or is computed from."""
    if isinstance(relation, TableRows | PublicRows):
        return relation.name
    for each in relation.columns if isinstance(relation, Join) else ():
        if each.name == column and isinstance(relation, Join):
            return origin(relation.left if each.side == "left" else relation.right, each.column)
    return origin(sources_of(relation)[0], column)


# --- what is public about a join ---


def join_declaration(relation: Join, left: Declaration, right: Declaration) -> Declaration:
    """Return what is public about a join's rows: they are the people of the left side's."""
    is_inner = relation.how == "inner"
    given = {a.name: b.name for a, b in relation.on if isinstance(a, Column) and isinstance(b, Column)}
    columns: dict[str, ColumnFacts] = {}
    for each in relation.columns:
        if each.side == "right":
            facts = right.columns[each.column]
            columns[each.name] = facts if is_inner or facts.keys is None else replace(facts, keys=_or_null(facts.keys))
        else:
            facts = left.columns[each.column]
            if is_inner and relation.most is not None and each.column in given:
                facts = _also(facts, right.columns[given[each.column]])
            columns[each.name] = facts
    times = relation.most or right.most_rows_per_unit
    return replace(
        left,
        columns=columns,
        rows_per_unit=_times_matched(left.rows_per_unit, times),
        groups_per_unit=_times_matched(left.groups_per_unit, times),
        rows=left.rows if relation.how == "left" and relation.most == 1 else None,
        most_rows_per_unit=_times_matched(left.most_rows_per_unit, times),
    )


def marked_declaration(relation: Marked, inner: Declaration) -> Declaration:
    """Return what is public about rows with a mark."""
    kept = {
        name: facts for name, facts in inner.columns.items() if relation.columns is None or name in relation.columns
    }
    return replace(inner, columns={**kept, relation.name: ColumnFacts("bool")})


def row_wise_declaration(relation: RowWise, inner: Declaration) -> Declaration:
    """Return what is public about filtered and derived rows: a column that is passed on keeps its facts."""
    kinds = column_kinds(inner)
    columns: dict[str, ColumnFacts] = {}
    if isinstance(inner.unit, str):
        columns[inner.unit] = inner.columns[inner.unit]
    for key in relation.columns:
        if key.name in columns:
            raise QueryRefused(f"two columns of a subquery would be called '{key.name}'\nhint: give one another name")
        if isinstance(key.expression, Column):
            columns[key.name] = inner.columns[key.expression.name]
        else:
            columns[key.name] = facts_of_kind(kind_of(key.expression, kinds))
    return replace(inner, columns=columns, rows=None)


def facts_of_kind(kind: Kind, between: tuple[Fraction, Fraction] | None = None) -> ColumnFacts:
    """Return the public facts of a column that is computed."""
    if kind.type == "null":
        raise QueryRefused("a column of a subquery is always NULL\nhint: leave it out")
    if kind.type == "decimal":
        return ColumnFacts(kind.type, between, scale=kind.scale, digits=max(kind.digits, 1))
    return ColumnFacts(kind.type, between)


def _times_matched(bound: int | None, times: int | None) -> int | None:
    return None if bound is None or times is None else bound * times


def _or_null(keys: tuple[KeyValue, ...]) -> tuple[KeyValue, ...]:
    return keys if None in keys else (*keys, None)


def _also(facts: ColumnFacts, public: ColumnFacts) -> ColumnFacts:
    """Return a column's facts with the public facts about the values that it matches, which are never NULL."""
    keys = None if public.keys is None else tuple(key for key in public.keys if key is not None)
    return replace(facts, between=facts.between or public.between, keys=facts.keys or keys or None)


# --- in words ---


def relation_lines(relation: Relation) -> tuple[str, ...]:
    """Return what each join, and each subquery by unit, does to one unit's rows, a line each."""
    line = _match_line(relation)
    before = tuple(each for source in sources_of(relation) for each in relation_lines(source))
    return before if line is None else (*before, line)


def _match_line(relation: Relation) -> str | None:
    if isinstance(relation, SomeUnits):
        share = 100 * (relation.end - relation.first) / PLACES
        return f"Some units: about {share:.4g} %, each with all of its rows, by a salted hash. Stability: 1 unit."
    if isinstance(relation, PerUnit):
        by = ", ".join(["each unit", *(show(key.expression) for key in relation.keys)])
        return f"Rows by unit: one for {by}, made of the unit's own rows. Stability: 1 unit."
    if isinstance(relation, Windowed):
        made = ", ".join(dict.fromkeys(each.kind.upper() for each in relation.windows))
        return f"{made} over the rows of each unit: from the unit's own rows. Stability: 1 unit."
    if isinstance(relation, Marked):
        match, public = _named_side(relation.others, relation.on)
        whose = "the row alone" if public else "the unit's own rows"
        return f"Match with {match}: a yes or no for each row, from {whose}. Stability: 1 unit."
    if not isinstance(relation, Join):
        return None
    match, public = _named_side(relation.right, relation.on)
    kind = "Left join" if relation.how == "left" else "Join"
    if not public:
        return (
            f"{kind} with {match}: each unit's rows with its own, some {PAIRS_MOST:,} pairs at most. Stability: 1 unit;"
            " its rows are bounded afterwards."
        )
    many = "one match" if relation.most == 1 else f"at most {relation.most:,} matches"
    return f"{kind} with {match}: each row has {many}. Stability: 1 unit, and {relation.most:,} times its rows."


def _named_side(relation: Relation, on: Matches) -> tuple[str, bool]:
    public = is_public(relation)
    names = publics_of(relation) if public else tables_of(relation)
    meant = {Column(key.name): key.expression for key in relation.columns} if isinstance(relation, RowWise) else {}
    pairs = [(show(here), show(meant.get(there, there) if isinstance(there, Column) else there)) for here, there in on]
    matched = [here if here == there else f"{here} = {there}" for here, there in pairs]
    keys = [*([] if public else ["the unit"]), *matched]
    return f"{names[0]}{' (public)' if public else ''} on {', '.join(keys)}", public
