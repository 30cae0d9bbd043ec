"""A compound question: several questions with one answer, charged together: branches of a UNION ALL, levels of a
ROLLUP, and *asides*, which give columns to a SELECT: MODE(x) beside others, and a SELECT in brackets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import isinf, prod

from tacit.errors import QueryRefused
from tacit.query.check import kind_of_aggregate
from tacit.query.nodes import (
    Call,
    Column,
    Expression,
    Key,
    PostProcessing,
    Query,
    Scalar,
    Type,
    Value,
    columns_of,
    value_of,
)
from tacit.query.typecheck import PUBLIC_KEYS_MAX, column_kinds, kind_of
from tacit.tables import Declaration

# Numbers of a group that are the sums, or come from the sums, of those of its parts.
ADDITIVE = frozenset({"count", "sum", "mean"})
NUMBERS: tuple[Type, ...] = ("int", "decimal", "float")


@dataclass(frozen=True)
class Aside:
    """A question that gives columns to the answer of a SELECT, charged with it.

    Of a mode, it is by the keys of the SELECT and one more, and counts units: the column is the value of that key which
    most units of a group have. Any other does not group, and its outputs are columns that are the same in every row.
    """

    query: Query
    columns: tuple[tuple[str, str], ...]  # each column of the answer, with its key or output
    is_mode: bool


@dataclass(frozen=True)
class Branch:
    """One SELECT of a compound question: grouped by all its keys, with the keys of each of its levels, by name.

    The query's `after` is of the rows of all levels together; there it may read GROUPING columns, and those of asides.
    """

    query: Query
    levels: tuple[tuple[str, ...], ...]
    asides: tuple[Aside, ...] = ()

    @property
    def is_plain(self) -> bool:
        return self.levels == (tuple(key.name for key in self.query.keys),)

    @property
    def is_one_question(self) -> bool:
        """Whether it is an ordinary question."""
        return self.is_plain and not self.asides

    def level_queries(self) -> tuple[Query, ...]:
        """Return the question of each level, or one question of all levels that add up."""
        if self.is_one_question:
            return (self.query,)
        if adds_up(self):
            names = [key.name for key in self.query.keys]
            levels = tuple(tuple(sorted(map(names.index, level))) for level in self.levels)
            return (replace(self.query, levels=levels, after=PostProcessing(), columns=()),)
        return tuple(_of_level(self.query, level) for level in self.levels)

    def aside_queries(self, aside: Aside) -> tuple[Query, ...]:
        """Return the questions of an aside: a mode has one for each level, of the same rows as that."""
        if not aside.is_mode:
            return (aside.query,)
        last = aside.query.keys[-1].name
        return tuple(_of_level(aside.query, (*level, last)) for level in self.levels)


@dataclass(frozen=True)
class Compound:
    """Several SELECTs with their rows in one answer; `after` and `columns`, with types that hold every branch's, are of
    a UNION ALL, by the names of the first."""

    branches: tuple[Branch, ...]
    after: PostProcessing = PostProcessing()
    columns: tuple[tuple[str, Type], ...] = ()

    def answer_types(self, declarations: Sequence[Declaration]) -> dict[str, Type]:
        """Return the columns of an answer with their types, the ends of intervals among them: from the words only."""
        each = [column_types(branch.query, of) for branch, of in zip(self.branches, declarations, strict=True)]
        noisy = [_noisy_names(branch) for branch in self.branches]
        types = dict(self.columns) or each[0]
        found: dict[str, Type] = {}
        for at, (name, kind) in enumerate(types.items()):
            found[name] = kind
            if kind in NUMBERS and any(list(own)[at] in wide for own, wide in zip(each, noisy, strict=True)):
                found |= {f"{name}_low": kind, f"{name}_high": kind}
        return found


def grouping_name(key: str) -> str:
    """Return the column that says whether a key is rolled up, 1, or not, 0."""
    return f"GROUPING({key})"


def adds_up(branch: Branch) -> bool:
    """Return whether the levels are totals of one another: counts, sums and means, and one level has all keys."""
    kinds = {output.aggregate.kind for output in branch.query.outputs}
    keys = {key.name for key in branch.query.keys}
    return not branch.is_plain and kinds <= ADDITIVE and any(set(level) == keys for level in branch.levels)


def _of_level(query: Query, level: tuple[str, ...]) -> Query:
    keys = tuple(key for key in query.keys if key.name in level)
    return replace(query, keys=keys, after=PostProcessing(), columns=())


def listed_keys(query: Query, declaration: Declaration) -> tuple[tuple[Scalar, ...], ...] | None:
    """Return the groups of a question that shows only keys and no number, if all are public: it is free then."""
    after = query.after
    read = frozenset().union(*map(columns_of, after.parts))
    if not after.shown or not query.keys or not read.isdisjoint(output.name for output in query.outputs):
        return None
    if any(output.aggregate.kind == "top" for output in query.outputs):  # which keys are shown is then the answer
        return None
    if query.public_keys is not None:
        return query.public_keys
    kinds = column_kinds(declaration)
    lists: list[Sequence[Scalar]] = []
    for key in query.keys:
        facts = declaration.columns.get(key.expression.name) if isinstance(key.expression, Column) else None
        if facts is not None and facts.keys is not None:
            lists.append(facts.keys)
        elif kind_of(key.expression, kinds).type == "bool":
            lists.append((False, True, None))
        else:
            return None
    return tuple(product(*lists)) if prod(map(len, lists)) <= PUBLIC_KEYS_MAX else None


def column_types(query: Query, declaration: Declaration) -> dict[str, Type]:
    """Return what each column of a question's answer is, in order."""
    if query.after.shown:
        return {each.name: each.type for each in query.after.shown}
    kinds = column_kinds(declaration)
    found: dict[str, Type] = {key.name: kind_of(key.expression, kinds).type for key in query.keys}
    for output in query.outputs:
        found[output.name] = kind_of_aggregate(output.aggregate, kinds).type
    return {name: found[name] for name in query.columns} if query.columns else found


def _noisy_names(branch: Branch) -> frozenset[str]:
    outputs = [each.name for each in branch.query.outputs if each.aggregate.kind != "top"]
    outputs += [name for each in branch.asides if not each.is_mode for name, _ in each.columns]
    return frozenset(branch.query.after.with_intervals(outputs) if branch.query.after.shown else outputs)


def refuse_other_columns(first: Mapping[str, Type], other: Mapping[str, Type], number: int) -> None:
    """Refuse a branch of a UNION ALL if the number or the types of its columns differ from the first one's."""
    if len(first) != len(other):
        raise QueryRefused(
            f"the first SELECT of the UNION ALL has {len(first)} columns, and SELECT {number} has "
            f"{len(other)}\nhint: give all of them the same number, in the same order"
        )
    for (name, one), (its_name, two) in zip(first.items(), other.items(), strict=True):
        if one != two and "null" not in (one, two) and not (one in NUMBERS and two in NUMBERS):
            raise QueryRefused(
                f"in the UNION ALL, '{name}' is {one} in the first SELECT and '{its_name}' is {two} in SELECT {number}"
                f"\nhint: convert one of them, e.g. CAST({its_name} AS TEXT)"
            )


def wider(one: Type, two: Type) -> Type:
    """Return the type that holds both."""
    if one == two or two == "null":
        return one
    return two if one == "null" else NUMBERS[max(NUMBERS.index(one), NUMBERS.index(two))]


# ---- Time: levels that are each inside the one before.

TIME_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")  # the widest first


def refuse_unnested_time(keys: Sequence[Key], levels: Sequence[tuple[int, ...]]) -> None:
    """Refuse totals of times that are not inside each other, by the keys' expressions: a week may lie in two months."""
    order = sorted(levels, key=len)
    if not all(set(one) < set(two) for one, two in pairwise(order)):
        return
    added = [place for one, two in pairwise(order) for place in two if place not in one]
    parts = [(keys[place].name, *_time_part(keys[place].expression)) for place in added]
    for at, (name, of, unit) in enumerate(parts):
        for above, its, wider in parts[:at]:
            if of != its or unit is None or wider is None:
                continue
            is_week = "week" in (unit, wider) and min(map(TIME_UNITS.index, (unit, wider))) < TIME_UNITS.index("week")
            if is_week or TIME_UNITS.index(wider) >= TIME_UNITS.index(unit):
                why = "a week may lie in two months" if is_week else f"a {wider} is not wider than a {unit}"
                raise QueryRefused(
                    f"'{name}' is not inside '{above}', so totals of both do not add up: {why}"
                    "\nhint: levels that fit are year, quarter, month, day; or week, day"
                )


def _time_part(expression: Expression) -> tuple[Expression, str | None]:
    """Return the column of a time and the unit that is taken of it; no unit for anything else."""
    if isinstance(expression, Call) and expression.function in ("date_trunc", "extract"):
        unit, of = expression.arguments
        if isinstance(unit, Value) and unit.value in TIME_UNITS:
            return of, str(unit.value)
    return expression, "day" if isinstance(expression, Column) else None


# ---- Others: the rows of groups that are not shown, as one more listed group in each parent of a tree of keys.


def with_listed_others(query: Query, shown: tuple[tuple[Scalar, ...], ...]) -> Query:
    """Return a question for shown groups and others as one with listed groups; other rows have NULL keys."""
    whole = tuple(key for key in shown if all(map(_is_constant, key)))
    keys = tuple(_key_beside(query.keys, place, whole) for place in range(len(query.keys)))
    listed = tuple(_with_others(whole, (), len(keys)))
    return replace(query, other=False, keys=keys, public_keys=listed)


def _is_constant(part: Scalar) -> bool:
    """Whether a key can be compared with: not NULL, and not infinite."""
    return part is not None and not (isinstance(part, float) and isinf(part))


def _with_others(
    shown: Sequence[tuple[Scalar, ...]], parent: tuple[Scalar, ...], width: int
) -> Iterator[tuple[Scalar, ...]]:
    """Yield the groups in a parent, and its others after them."""
    depth = len(parent)
    if depth == width:
        yield parent
        return
    inside: dict[Scalar, list[tuple[Scalar, ...]]] = {}
    for key in shown:
        inside.setdefault(key[depth], []).append(key)
    for value, own in inside.items():
        yield from _with_others(own, (*parent, value), width)
    yield (*parent, *[None] * (width - depth))


def _key_beside(keys: Sequence[Key], place: int, shown: tuple[tuple[Scalar, ...], ...]) -> Key:
    """Return a key that is NULL unless it is shown beside the keys before it."""
    values: dict[tuple[Scalar, ...], dict[Scalar, None]] = {}
    for key in shown:
        values.setdefault(key[:place], {})[key[place]] = None
    own = keys[place].expression
    found: list[Expression] = []
    for parent, inside in values.items():
        equal = [Call("=", (each.expression, value_of(value))) for each, value in zip(keys, parent, strict=False)]
        found.append(_one_condition("and", [*equal, Call("in", (own, *map(value_of, inside)))]))
    is_shown = _one_condition("or", found) if found else value_of(False)
    return replace(keys[place], expression=Call("case", (is_shown, own, value_of(None))))


def _one_condition(word: str, conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else Call(word, tuple(conditions))
