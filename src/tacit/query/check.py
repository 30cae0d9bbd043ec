"""Checks a question against the table's declaration, and returns it in canonical form; both doors end here."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.after.after_check import check_after, kind_of_aggregate
from tacit.query.kind import Kind, kind_of_column
from tacit.query.limits import (
    KEYS_MAX,
    OUTPUTS_MAX,
    PUBLIC_KEYS_MAX,
    QUESTION_NODES_MAX,
    RELATIONS_DEEP_MAX,
    limit_expression,
    limit_work,
    nodes_of,
)
from tacit.query.literal import key_value
from tacit.query.nodes import (
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Output,
    PerUnit,
    PostProcessing,
    Query,
    Relation,
    Scalar,
    Type,
    UnitAggregate,
    UnitOutput,
    Value,
    columns_of,
    sources_of,
)
from tacit.query.ranges import with_inferred_ranges
from tacit.query.relations import expressions_of, unit_aggregate_kind
from tacit.query.sql.expressions import UNIT_HINT, UNIT_REASON
from tacit.query.sql.sql_text import show
from tacit.query.typecheck import ColumnKinds, canonical, column_kinds, kind_of
from tacit.tables import Declaration, RowUnit

_NAME_CHARACTERS_MAX = 200
_PAIRS = ("covariance", "correlation")
# the name of a quantile in a refusal
_WORDS: dict[Fraction | None, str] = {Fraction(0): "least", Fraction(1, 2): "median", Fraction(1): "greatest"}


def check(
    query: Query,
    declaration: Declaration,
    *,
    names: Mapping[str, Expression] | None = None,
    within: int = 0,
    more: Mapping[str, Kind] | None = None,
) -> Query:
    """Return the question in its canonical form, or refuse it and say how to correct it.

    `names` are the names that it could use, with their expressions, if they are not the declared columns; `within` is
    the work before it begins, in steps for each row; `more` are further columns of the answer. A checked question is
    not changed. Expressions are limited and made canonical whatever a door has done before: this function trusts no
    door.
    """
    kinds = column_kinds(declaration)
    if query.table != declaration.name:
        raise QueryRefused(f"the question is about '{query.table}'\nhint: this table is '{declaration.name}'")
    where = None if query.where is None else _condition(query.where, declaration, kinds)
    keys = tuple(Key(key.name, _row(key.expression, declaration, kinds)) for key in query.keys)
    outputs = tuple(Output(out.name, _aggregate(out.aggregate, declaration, kinds)) for out in query.outputs)
    _refuse_sizes(query)
    if query.after.shown:  # shown columns do not change the question
        outputs = tuple(sorted(outputs, key=lambda output: repr(output.aggregate)))
    key_kinds = {key.name: kind_of(key.expression, kinds) for key in keys}
    for key in keys:
        if not columns_of(key.expression):
            raise QueryRefused(
                f"the key '{key.name}' reads no column\nhint: group by a column, or by an expression of one"
            )
    yields = {out.name: kind_of_aggregate(out.aggregate, kinds) for out in outputs}
    known = {name: Column(name) for name in declaration.columns} if names is None else names
    after = check_after(query.after, {**key_kinds, **yields, **(more or {})})
    _refuse_names(keys, outputs, after, known)
    checked = replace(query, outputs=outputs, where=where, keys=keys, after=after)
    limit_work(checked, kinds, within)
    shown = tuple(each.name for each in after.shown) or query.columns
    return replace(
        checked,
        public_keys=None if query.public_keys is None else _public_keys(query.public_keys, key_kinds),
        columns=shown or (*key_kinds, *(output.name for output in outputs)),
    )


def check_units(relation: PerUnit, declaration: Declaration) -> PerUnit:
    """Return rows by unit in their canonical form, checked against what is declared of the rows that they come from."""
    kinds = column_kinds(declaration)
    if _depth(relation) > RELATIONS_DEEP_MAX:
        raise QueryRefused(
            f"subqueries that aggregate are nested more than {RELATIONS_DEEP_MAX} deep\nhint: aggregate fewer times"
        )
    if len(relation.outputs) > OUTPUTS_MAX or len(relation.keys) > KEYS_MAX:
        raise QueryRefused(
            f"at most {OUTPUTS_MAX} aggregates and {KEYS_MAX} keys fit in a subquery\nhint: ask for fewer"
        )
    checked = replace(
        relation,
        where=None if relation.where is None else _condition(relation.where, declaration, kinds),
        keys=tuple(Key(key.name, _row(key.expression, declaration, kinds)) for key in relation.keys),
        outputs=tuple(
            UnitOutput(output.name, _unit_aggregate(output.aggregate, declaration, kinds))
            for output in relation.outputs
        ),
    )
    if sum(map(nodes_of, expressions_of(checked))) > QUESTION_NODES_MAX:
        raise QueryRefused(f"a subquery has more than {QUESTION_NODES_MAX} parts\nhint: ask for fewer columns")
    return checked


def _unit_aggregate(aggregate: UnitAggregate, declaration: Declaration, kinds: ColumnKinds) -> UnitAggregate:
    if aggregate.expression is not None:
        aggregate = replace(aggregate, expression=_row(aggregate.expression, declaration, kinds))
    unit_aggregate_kind(aggregate, kinds)
    return aggregate


def _depth(relation: Relation) -> int:
    return isinstance(relation, PerUnit) + max(map(_depth, sources_of(relation)), default=0)


def type_of(expression: Expression, declaration: Declaration) -> Type:
    return kind_of(expression, column_kinds(declaration)).type


def _row(expression: Expression, declaration: Declaration, kinds: ColumnKinds) -> Expression:
    limit_expression(expression)
    read = columns_of(expression)
    if isinstance(declaration.unit, str) and declaration.unit in read:
        raise QueryRefused(f"'{declaration.unit}' {UNIT_REASON}\nhint: {UNIT_HINT.format(unit=declaration.unit)}")
    for name in sorted(read):
        facts = declaration.columns.get(name)
        if facts is None:
            hint = did_you_mean(name, declaration.columns)
            raise QueryRefused(f"there is no column '{name}' in '{declaration.name}'{hint}")
        kind_of_column(name, facts)  # for its refusal of types that cannot be read
    return canonical(expression, kinds)


def _condition(expression: Expression, declaration: Declaration, kinds: ColumnKinds) -> Expression:
    condition = _row(expression, declaration, kinds)
    kind = kind_of(condition, kinds)
    if kind.type != "bool":
        raise QueryRefused(
            f"{show(condition)} is {kind.phrase}; a filter must be true or false\nhint: compare it, e.g. x > 0"
        )
    return condition


def _aggregate(aggregate: Aggregate, declaration: Declaration, kinds: ColumnKinds) -> Aggregate:
    if aggregate.kind == "count_units" and isinstance(declaration.unit, RowUnit):
        raise QueryRefused(
            "count_units is not needed here: every row is its own unit\nhint: use COUNT(*), in Python count()"
        )
    if aggregate.expression is None:
        if aggregate.kind not in ("count", "count_units", "top"):
            raise QueryRefused(f"{aggregate.kind} needs a column\nhint: {aggregate.kind}('x', between=(0, 100))")
        return aggregate
    if aggregate.kind == "count_units":
        raise QueryRefused("count_units does not take a column\nhint: it counts the units of each group")
    if (condition := _condition_of_units(aggregate, declaration)) is not None:
        case = aggregate.expression.arguments if isinstance(aggregate.expression, Call) else ()
        return replace(aggregate, expression=Call("case", (_condition(condition, declaration, kinds), *case[1:])))
    expression = _row(aggregate.expression, declaration, kinds)
    if isinstance(expression, Value):
        if aggregate.kind == "count" and expression.value is not None:
            return Aggregate("count")
        raise QueryRefused(
            f"{aggregate.kind} of a constant does not depend on the rows\nhint: use COUNT(*), or name a column"
        )
    if aggregate.kind not in ("count", "count_distinct"):
        expression = _as_number_tree(_WORDS.get(aggregate.fraction, aggregate.kind), expression, kinds)
    other = None if aggregate.other is None else _row(aggregate.other, declaration, kinds)
    if aggregate.kind in _PAIRS:
        if other is None:
            raise QueryRefused(f"{aggregate.kind} needs two columns\nhint: {aggregate.kind}('x', 'y')")
        other = _as_number_tree(aggregate.kind, other, kinds)
        if other == expression:
            raise QueryRefused(
                f"{aggregate.kind} needs two different columns\nhint: for one column, ask for its variance"
            )
    return with_inferred_ranges(replace(aggregate, expression=expression, other=other), declaration.columns, kinds)


def _condition_of_units(aggregate: Aggregate, declaration: Declaration) -> Expression | None:
    """Return c if an aggregate counts the units with a row that satisfies c: the only question that names the unit. A
    unit adds one value to a group, its own, which never leaves."""
    case, unit = aggregate.expression, declaration.unit
    if (
        not isinstance(unit, str)
        or aggregate.kind != "count_distinct"
        or aggregate.per_unit != 1
        or not isinstance(case, Call)
    ):
        return None
    is_units = len(case.arguments) == 3 and case.arguments[1:] == (Column(unit), Value(None, "null"))
    return case.arguments[0] if case.function == "case" and is_units else None


def _as_number_tree(asked: str, expression: Expression, kinds: ColumnKinds) -> Expression:
    """Return a number's expression, a condition as 1 or 0; refuse other types."""
    kind = kind_of(expression, kinds)
    if kind.type == "bool":
        return canonical(Call("cast_int", (expression,)), kinds)
    if not kind.is_number:
        raise QueryRefused(
            f"cannot take the {asked} of {kind.phrase}: {show(expression)}\nhint: {_number_of(expression, kind)}"
        )
    return expression


def _number_of(expression: Expression, kind: Kind) -> str:
    if kind.is_time:
        day = "DATE '2000-01-01'" if kind.type == "date" else "TIMESTAMP '2000-01-01 00:00:00'"
        return (
            f"ask for it of a number: DATE_DIFF('day', {day}, {show(expression)}) is in days since then; or of"
            " EXTRACT(YEAR FROM ...)"
        )
    if kind.type != "text":
        return "name a column of numbers"
    if not isinstance(expression, Column):
        return "if it holds numbers, CAST(x AS FLOAT) reads them"
    name = expression.name
    return (
        f"if it holds numbers (a CSV file's columns are text), declare it: columns={{'{name}': {{'type': 'float'}}}}, "
        f"--type {name}=float, or in the tacit.toml; to see its texts, ask SELECT DISTINCT {name}"
    )


def _refuse_sizes(query: Query) -> None:
    if not query.outputs:
        raise QueryRefused("the question lacks an aggregate\nhint: add one, e.g. COUNT(*); single rows are never shown")
    if len(query.outputs) > OUTPUTS_MAX or len(query.keys) > KEYS_MAX:
        raise QueryRefused(
            f"at most {OUTPUTS_MAX} aggregates and {KEYS_MAX} keys fit in a question\nhint: ask for fewer"
        )


def _refuse_names(
    keys: tuple[Key, ...], outputs: tuple[Output, ...], after: PostProcessing, known: Mapping[str, Expression]
) -> None:
    named = [output.name for output in outputs]
    inside = [key.name for key in keys] + named
    visible = [each.name for each in after.shown]
    numbers = after.with_intervals(named) if visible else named
    shown = (visible or inside) + [name + end for name in numbers for end in ("_low", "_high")]
    for name in (*shown, *(inside if visible else ())):
        if not name or len(name) > _NAME_CHARACTERS_MAX:
            raise QueryRefused(
                f"a column of the answer needs a name of 1 to {_NAME_CHARACTERS_MAX} characters\nhint: name it with AS"
            )
        if max(shown.count(name), inside.count(name)) > 1:
            raise QueryRefused(
                f"the answer would have two columns '{name}'"
                "\nhint: give them different names: AVG(x) AS x_mean, in Python agg(x_mean=tacit.mean('x'))"
            )
    for key in keys:
        if key.expression != known.get(key.name, key.expression):
            raise QueryRefused(
                f"the key '{key.name}' is an expression, but a column has the same name\nhint: give the key a new name"
            )


def _public_keys(given: tuple[tuple[Scalar, ...], ...], kinds: dict[str, Kind]) -> tuple[tuple[Scalar, ...], ...]:
    if not kinds:
        raise QueryRefused("public keys are given, but the question does not group\nhint: call group_by first")
    if not given or len(given) > PUBLIC_KEYS_MAX:
        raise QueryRefused(f"give between 1 and {PUBLIC_KEYS_MAX} public keys\nhint: keys=['A', 'B']")
    if any(len(key) != len(kinds) for key in given):
        raise QueryRefused(f"a public key must have {len(kinds)} part(s), one for each of {', '.join(kinds)}")
    read = tuple(
        tuple(key_value(part, kind, column=name) for part, (name, kind) in zip(key, kinds.items(), strict=True))
        for key in given
    )
    if len(set(read)) != len(read):
        raise QueryRefused("a public key is given twice\nhint: give each key once")
    return read
