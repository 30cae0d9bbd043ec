"""Checks a question against the table's declaration, and returns it in canonical form; both doors end here.

Checks what a question does to its noisy answer: names and types of HAVING, windows, shown columns, ORDER BY.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.literal import key_value
from tacit.query.nodes import (
    FLOAT,
    INT,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Kind,
    Output,
    PerUnit,
    PostProcessing,
    Query,
    Relation,
    Scalar,
    Shown,
    UnitAggregate,
    UnitOutput,
    Value,
    Window,
    Windowed,
    columns_of,
    kind_of_column,
    reordered,
    sources_of,
    value_of,
    with_parts,
)
from tacit.query.ranges import with_inferred_ranges
from tacit.query.relations import expressions_of, unit_aggregate_kind
from tacit.query.sql.expressions import UNIT_HINT, UNIT_REASON, show, show_name
from tacit.query.typecheck import (
    KEYS_MAX,
    OUTPUTS_MAX,
    PUBLIC_KEYS_MAX,
    QUESTION_NODES_MAX,
    RELATIONS_DEEP_MAX,
    ColumnKinds,
    canonical,
    column_kinds,
    kind_of,
    limit_expression,
    limit_work,
    nodes_of,
)
from tacit.query.windows import window_kind
from tacit.tables import Declaration, RowUnit

_COUNTS = ("count", "count_units", "count_distinct", "top")
SHOWN_MAX = 200


def kind_of_aggregate(aggregate: Aggregate, kinds: Mapping[str, Kind]) -> Kind:
    """Return what an aggregate of rows yields: counts are whole, and so are sums and quantiles of whole numbers."""
    if aggregate.kind in _COUNTS:
        return INT
    if aggregate.expression is None or aggregate.kind not in ("sum", "quantile"):
        return FLOAT
    whole_steps = aggregate.step is None or aggregate.step.denominator == 1
    return INT if whole_steps and kind_of(aggregate.expression, kinds).type == "int" else FLOAT


def check_after(after: PostProcessing, kinds: Mapping[str, Kind]) -> PostProcessing:
    """Return the post-processing of an answer with columns of these kinds, in canonical form, or refuse it."""
    having = None if after.having is None else _condition_after(after.having, kinds, "HAVING")
    windows: list[Window] = []
    known = dict(kinds)
    for window in after.windows:
        windows.append(window.changed(lambda each: _checked_expression(each, kinds)))
        known[window.name] = window_kind(window, tuple(kind_of(each, kinds) for each in windows[-1].arguments))
    if len(after.shown) > SHOWN_MAX or len(after.windows) > SHOWN_MAX:
        raise QueryRefused(f"an answer has at most {SHOWN_MAX} columns\nhint: ask for fewer")
    return replace(
        after,
        having=having,
        windows=tuple(windows),
        qualify=None if after.qualify is None else _condition_after(after.qualify, known, "QUALIFY"),
        shown=tuple(_checked_shown(each, known) for each in after.shown),
        order=reordered(after.order, lambda each: _checked_expression(each, known)),
    )


def after_in_words(after: PostProcessing, outputs: Iterable[str]) -> list[str]:
    """Return what is computed from the noisy answer, one thing a line, each name as people would write it."""
    names = {show_name(name): name for name in outputs if show_name(name) != name}
    for window in after.windows:
        names[show_name(window.name)] = _window_in_words(window, names)

    def words(expression: Expression) -> str:
        return _unquoted(show(expression), names)

    windows = [Column(window.name) for window in after.windows]
    computed = [each for each in after.shown if not isinstance(each.expression, Column)]
    lines = [] if after.having is None else [f"rows where {words(after.having)}"]
    lines += [f"{each.name} = {words(each.expression)}" for each in computed]
    lines += [f"{each.name} = {words(each.expression)}" for each in after.shown if each.expression in windows]
    lines += [] if after.qualify is None else [f"rows where {words(after.qualify)}"]
    lines += ["rows that differ"] if after.distinct else []
    if after.order:
        order = ", ".join(words(each.expression) + " DESC" * each.descending for each in after.order)
        lines.append(f"in the order of {order}")
    if after.limit is not None or after.offset:
        most = "all rows" if after.limit is None else f"at most {after.limit:,} row{'' if after.limit == 1 else 's'}"
        lines.append(most + (f" after the first {after.offset:,}" if after.offset else ""))
    return lines


def _window_in_words(window: Window, names: Mapping[str, str]) -> str:
    arguments = ", ".join(show(each) for each in window.arguments)
    parts = [f"PARTITION BY {', '.join(map(show, window.partition))}"] if window.partition else []
    order = ", ".join(show(each.expression) + " DESC" * each.descending for each in window.order)
    parts += [f"ORDER BY {order}"] if order else []
    return _unquoted(f"{window.function.upper()}({arguments}) OVER ({' '.join(parts)})", names)


def _unquoted(text: str, names: Mapping[str, str]) -> str:
    for quoted, plain in names.items():
        text = text.replace(quoted, plain)
    return text


def _checked_shown(shown: Shown, kinds: Mapping[str, Kind]) -> Shown:
    expression = _checked_expression(shown.expression, kinds)
    return Shown(shown.name, expression, kind_of(expression, kinds).type)


def _checked_expression(expression: Expression, kinds: Mapping[str, Kind]) -> Expression:
    limit_expression(expression)
    unknown = sorted(columns_of(expression) - set(kinds))
    if unknown:
        raise QueryRefused(f"'{unknown[0]}' is not a column of the answer{did_you_mean(unknown[0], kinds)}")
    found = canonical(expression, kinds)
    return _with_scales(found, kinds)


def _with_scales(expression: Expression, kinds: Mapping[str, Kind]) -> Expression:
    """A decimal as text has all the digits of its scale, which its value does not tell: the cast is given them."""

    def put(each: Expression) -> Expression | None:
        if not isinstance(each, Call) or each.function != "cast_text" or len(each.arguments) != 1:
            return None
        (inner,), kind = each.arguments, kind_of(each.arguments[0], kinds)
        scale = (value_of(kind.scale),) if kind.type == "decimal" else ()
        return Call(each.function, (_with_scales(inner, kinds), *scale))

    return with_parts(expression, put)


def _condition_after(expression: Expression, kinds: Mapping[str, Kind], word: str) -> Expression:
    condition = _checked_expression(expression, kinds)
    if kind_of(condition, kinds).type != "bool":
        raise QueryRefused(
            f"{word} {show(condition)} is not a condition (true or false)\nhint: compare it, e.g. n > 10"
        )
    return condition


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


def check_windows(relation: Windowed) -> Windowed:
    """Return rows with windows over each unit's own rows, if there are not too many of them."""
    if _depth(relation) > RELATIONS_DEEP_MAX or len(relation.windows) > OUTPUTS_MAX:
        raise QueryRefused(f"a subquery has at most {OUTPUTS_MAX} windows, and few inside others\nhint: ask for fewer")
    for part in (part for window in relation.windows for part in window.parts):
        limit_expression(part)
    return relation


def _depth(relation: Relation) -> int:
    return isinstance(relation, PerUnit | Windowed) + max(map(_depth, sources_of(relation)), default=0)


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
