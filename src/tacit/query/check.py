"""Checks a question against the table's declaration, and returns it in canonical form.

Both doors end here. It checks names, types, sizes and the unit, and reads no row. How large an expression may be is in
`limits.py`, what each function accepts in its record.
"""

from dataclasses import replace

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.catalogue import FUNCTIONS
from tacit.query.expressions import UNIT_HINT, UNIT_REASON
from tacit.query.kind import FLOAT, INT, Kind, phrase
from tacit.query.limits import KEYS_MAX, OUTPUTS_MAX, PUBLIC_KEYS_MAX, limit_expression, limit_work
from tacit.query.literal import key_value
from tacit.query.nodes import (
    Aggregate,
    Column,
    Expression,
    Key,
    Output,
    PostProcessing,
    Query,
    Scalar,
    Type,
    Value,
    columns_of,
    functions_of,
)
from tacit.query.sql_text import show
from tacit.query.typecheck import ColumnKinds, canonical, column_kinds, kind_of
from tacit.tables import Declaration, RowUnit

_NAME_CHARACTERS_MAX = 200
_COUNTS = ("count", "count_units", "count_distinct", "top")
_PAIRS = ("covariance", "correlation")


def check(query: Query, declaration: Declaration) -> Query:
    """Return the question in its canonical form, or refuse it and say how to correct it.

    Checking a checked question changes nothing. Only the question and public metadata are read. A door may have limited
    an expression and made it canonical before: the SQL door needs canonical trees to find a key of the SELECT in the
    GROUP BY. This function does both again, because it trusts no door.
    """
    kinds = column_kinds(declaration)
    if query.table != declaration.name:
        raise QueryRefused(f"the question is about '{query.table}'\nhint: this table is '{declaration.name}'")
    where = None if query.where is None else _condition(query.where, declaration, kinds)
    keys = tuple(Key(key.name, _row(key.expression, declaration, kinds)) for key in query.keys)
    outputs = tuple(Output(out.name, _aggregate(out.aggregate, declaration, kinds)) for out in query.outputs)
    _refuse_sizes(query)
    _refuse_names(keys, outputs, declaration)
    key_kinds = {key.name: kind_of(key.expression, kinds) for key in keys}
    for key in keys:
        if not columns_of(key.expression):
            raise QueryRefused(
                f"the key '{key.name}' reads no column\nhint: group by a column, or by an expression of one"
            )
    checked = replace(query, outputs=outputs, where=where, keys=keys)
    limit_work(checked, kinds)
    return replace(
        checked,
        public_keys=None if query.public_keys is None else _public_keys(query.public_keys, key_kinds),
        after=_after(query.after, key_kinds, outputs),
        columns=query.columns or (*key_kinds, *(output.name for output in outputs)),
    )


def type_of(expression: Expression, declaration: Declaration) -> Type:
    """Return the type of a row expression about a declared table."""
    return kind_of(expression, column_kinds(declaration)).type


def _row(expression: Expression, declaration: Declaration, kinds: ColumnKinds) -> Expression:
    limit_expression(expression)
    read = columns_of(expression)
    if isinstance(declaration.unit, str) and declaration.unit in read:
        raise QueryRefused(f"'{declaration.unit}' {UNIT_REASON}\nhint: {UNIT_HINT.format(unit=declaration.unit)}")
    for name in sorted(read):
        facts = declaration.columns.get(name)
        if facts is not None and facts.type == "other":
            raise QueryRefused(
                f"column '{name}' has a type that questions cannot use"
                f"\nhint: declare how to read it, columns={{'{name}': {{'type': 'text'}}}}, or convert it"
            )
        if facts is None:
            raise QueryRefused(
                f"there is no column '{name}' in '{declaration.name}'{did_you_mean(name, declaration.columns)}"
            )
    return canonical(expression, kinds)


def _condition(expression: Expression, declaration: Declaration, kinds: ColumnKinds) -> Expression:
    condition = _row(expression, declaration, kinds)
    kind = kind_of(condition, kinds)
    if kind.type != "bool":
        raise QueryRefused(
            f"{show(condition)} is {phrase(kind)}; a filter must be true or false\nhint: compare it, e.g. x > 0"
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
        raise QueryRefused("count_units takes no column\nhint: it counts the units of each group")
    expression = _row(aggregate.expression, declaration, kinds)
    if isinstance(expression, Value):
        if aggregate.kind == "count" and expression.value is not None:
            return Aggregate("count")
        raise QueryRefused(
            f"{aggregate.kind} of a constant does not depend on the rows\nhint: use COUNT(*), or name a column"
        )
    kind = kind_of(expression, kinds)
    if aggregate.kind not in ("count", "count_distinct"):
        _refuse_if_no_number(aggregate.kind, expression, kind)
    other = None if aggregate.other is None else _row(aggregate.other, declaration, kinds)
    if aggregate.kind in _PAIRS:
        if other is None:
            raise QueryRefused(f"{aggregate.kind} needs two columns\nhint: {aggregate.kind}('x', 'y')")
        _refuse_if_no_number(aggregate.kind, other, kind_of(other, kinds))
        if other == expression:
            raise QueryRefused(
                f"{aggregate.kind} needs two different columns\nhint: for one column, ask for its variance"
            )
    return replace(aggregate, expression=expression, other=other)


def _refuse_if_no_number(asked: str, expression: Expression, kind: Kind) -> None:
    if not kind.is_number:
        raise QueryRefused(
            f"cannot take the {asked} of {phrase(kind)}: {show(expression)}\nhint: {_number_of(expression, kind)}"
        )


def _number_of(expression: Expression, kind: Kind) -> str:
    if kind.type == "bool":
        return "CAST(x AS INT) turns it into a number"
    if kind.type != "text":
        return "name a column of numbers"
    if not isinstance(expression, Column):
        return "if it holds numbers, CAST(x AS FLOAT) reads them"
    name = expression.name
    return (
        f"if it holds numbers (a CSV file's columns are text), declare it: columns={{'{name}': {{'type': 'float'}}}}, "
        f"--type {name}=float, or in the tacit.toml"
    )


def _refuse_sizes(query: Query) -> None:
    if not query.outputs:
        raise QueryRefused("the question has no aggregate\nhint: add one, e.g. COUNT(*); single rows are never shown")
    if len(query.outputs) > OUTPUTS_MAX or len(query.keys) > KEYS_MAX:
        raise QueryRefused(
            f"at most {OUTPUTS_MAX} aggregates and {KEYS_MAX} keys fit in a question\nhint: ask for fewer"
        )


def _refuse_names(keys: tuple[Key, ...], outputs: tuple[Output, ...], declaration: Declaration) -> None:
    names = [key.name for key in keys] + [output.name for output in outputs]
    shown = names + [output.name + end for output in outputs for end in ("_low", "_high")]
    for name in shown:
        if not name or len(name) > _NAME_CHARACTERS_MAX:
            raise QueryRefused(
                f"a column of the answer needs a name of 1 to {_NAME_CHARACTERS_MAX} characters\nhint: name it with AS"
            )
        if shown.count(name) > 1:
            raise QueryRefused(
                f"the answer would have two columns '{name}'"
                "\nhint: give them different names: AVG(x) AS x_mean, in Python agg(x_mean=tacit.mean('x'))"
            )
    for key in keys:
        if key.name in declaration.columns and key.expression != Column(key.name):
            raise QueryRefused(
                f"the key '{key.name}' is an expression, but a column has the same name\nhint: give the key a new name"
            )


def _public_keys(given: tuple[tuple[Scalar, ...], ...], kinds: dict[str, Kind]) -> tuple[tuple[Scalar, ...], ...]:
    if not kinds:
        raise QueryRefused("public keys are given, but the question has no group_by\nhint: call group_by first")
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


def _after(after: PostProcessing, key_kinds: dict[str, Kind], outputs: tuple[Output, ...]) -> PostProcessing:
    kinds = key_kinds | {out.name: INT if out.aggregate.kind in _COUNTS else FLOAT for out in outputs}
    having = after.having
    if having is not None:
        limit_expression(having)
        unknown = sorted(columns_of(having) - set(kinds))
        if unknown:
            raise QueryRefused(f"'{unknown[0]}' is not a column of the answer{did_you_mean(unknown[0], kinds)}")
        having = canonical(having, kinds)
        missing = sorted(name for name in functions_of(having) if FUNCTIONS[name].evaluate is None)
        if missing:
            raise QueryRefused(
                f"HAVING {show(having)} uses a function that works only on rows ({missing[0].replace('_', ' ')})"
                "\nhint: use it in a key or a filter, or compute it from the answer afterwards"
            )
        if kind_of(having, kinds).type != "bool":
            raise QueryRefused(
                f"HAVING {show(having)} is not a condition (true or false)\nhint: compare it, e.g. n > 10"
            )
    for ordering in after.order:
        if ordering.name not in kinds:
            raise QueryRefused(f"'{ordering.name}' is not a column of the answer{did_you_mean(ordering.name, kinds)}")
    return replace(after, having=having)
