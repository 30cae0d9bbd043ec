"""Translates a plan into SQL relations: filter, compute keys, bound each unit's contribution, add up integers.

Which groups and rows of a unit are kept depends only on that unit's own values and a fresh salt: groups in the order of
(hash of salt, unit and key; key), rows of one unit and key in the order of (hash of salt, unit, key and values;
values). Rows that still tie are identical. So adding one unit never changes which rows of another are kept.

The part of a question's WHERE about stored cells, for a store that can leave rows out before it sends them.

Our own SQL filters again, so it only has to hold for every row that the condition holds for: a part that is not a
comparison with constants, AND, OR or about NULL means every row.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell
from tacit.engine.expression import read_unit, steps_above_low, to_raw_sql, to_sql
from tacit.exact import (
    ROWS,
    UNITS,
    ExactTable,
    GroupedSteps,
    counted_name,
    distinct_name,
    key_name,
    listed_name,
    total_name,
    value_name,
)
from tacit.numbers import Integers
from tacit.plan import UNBOUNDED, UNIT_WEIGHT, Plan, Product
from tacit.query import FLOAT, Call, Column, Expression, Kind, Value
from tacit.tables import ColumnFacts, WantedRows, keys_to_arrow, to_scalar

UNIT = "unit"
KEY_PLACE = "key_place"
VALUE, STEPS, WEIGHT = "distinct_value", "value", "weight"
GROUP_ORDER, ROW_ORDER = "group_order", "row_order"
# A longer text is represented by its digest. The digest is longer than this limit, so it is never mistaken for a text.
TEXT_BYTES_MOST = 63
DIGEST_BYTES = 64
NO_COLUMNS: Mapping[str, Expression] = MappingProxyType({})


def exact_relation(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> sql.Relation:
    """Return one row for each group, named by its index in `listed` or its keys, with its exact sums as text."""
    if plan.unit is None:
        return _each_row_its_own(plan, table, kinds, listed)
    rows, keys = counted_rows(plan, table, kinds, listed)
    bounded = _bound_rows(rows, keys, plan, salt)
    each = bounded.group_by([UNIT, *keys]).agg(**_sums_of_rows(bounded, plan))
    kept = _bound_groups(each, keys, plan, salt)
    sums = {ROWS: kept[ROWS].sum(), UNITS: kept.count()}
    for index in range(plan.value_count):
        sums[counted_name(index)] = kept[counted_name(index)].sum()
        sums[total_name(index)] = kept[total_name(index)].sum()
    return as_text(kept.group_by(keys).agg(**sums) if keys else kept.agg(**sums), keys)


def counted_rows(
    plan: Plan,
    table: sql.Relation,
    kinds: Mapping[str, Kind],
    listed: sql.Relation | None,
    more: Mapping[str, Expression] = NO_COLUMNS,
) -> tuple[sql.Relation, list[str]]:
    """Return the rows of units and listed keys as (unit, keys, values in steps), with expressions in `more`."""
    kept = rows_of_units(table, plan.unit, plan.where, kinds)
    columns = {key_name(index): leaving(to_sql(key.expression, kept, kinds)) for index, key in enumerate(plan.keys)}
    keys = list(columns)
    if plan.unit is not None:
        columns[UNIT] = unit_value(kept, plan.unit, kinds)
    for index, column in enumerate(plan.measured):
        if column.counts_only:
            value = to_sql(column.expression, kept, kinds)
            known = sql.cases((value.isnull(), sql.null("int64")), else_=sql.literal(0, "int64"))
            columns[value_name(index)] = known
        else:
            columns[value_name(index)] = steps_above_low(to_raw_sql(column.expression, kept, kinds), column)
    columns |= {name: leaving(_nan_as_null(to_sql(expression, kept, kinds))) for name, expression in more.items()}
    if not columns:
        columns["one"] = sql.literal(1, "int8")
    rows = kept.select(**columns)
    if plan.products:
        first = len(plan.measured)
        rows = rows.mutate(
            **{value_name(at): _product_of_columns(rows, each) for at, each in enumerate(plan.products, first)}
        )
    if listed is None:
        return rows, keys
    matches = [rows[key].identical_to(leaving(listed[listed_name(at)])) for at, key in enumerate(keys)]
    joined = rows.inner_join(listed, matches)
    return joined.select(KEY_PLACE, *[name for name in rows.columns if name not in keys]), [KEY_PLACE]


def listed_keys(plan: Plan) -> sql.Relation | None:
    """Return the public keys and their indexes as rows; None without public keys."""
    if not plan.keys or plan.public_keys is None:
        return None
    columns = {listed_name(at): key.type for at, key in enumerate(plan.keys)}
    return sql.Lent(keys_to_arrow(plan.public_keys, columns, place=KEY_PLACE))


def _each_row_its_own(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> sql.Relation:
    """A plain GROUP BY without contribution bounding: listed keys are joined to the groups, not to the rows."""
    rows, keys = counted_rows(plan, table, kinds, None)
    sums = _sums_of_rows(rows, plan)
    summed = rows.group_by(keys).agg(**sums) if keys else rows.agg(**sums)
    summed = summed.mutate(**{UNITS: summed[ROWS]})
    if listed is None:
        return as_text(summed, keys)
    matches = [summed[key].identical_to(leaving(listed[listed_name(at)])) for at, key in enumerate(keys)]
    return as_text(summed.inner_join(listed, matches).select(KEY_PLACE, UNITS, *sums), [KEY_PLACE])


def _product_of_columns(rows: sql.Relation, product: Product) -> sql.Typed:
    """Return a product of columns in steps, NULL where any of them is: the plan keeps it inside 64 bits."""
    value = sql.literal(1, "int64")
    for column, exponent in product:
        factor = rows[value_name(column)]
        for _ in range(exponent):
            value = value * factor
        value = value if exponent else value + factor * 0
    return value.cast("int64")


def _nan_as_null(value: sql.Typed) -> sql.Typed:
    return sql.cases((value.isnan(), sql.null(value.type())), else_=value) if value.type().is_floating() else value


def rows_of_units(
    table: sql.Relation, unit: str | None, where: Expression | None, kinds: Mapping[str, Kind]
) -> sql.Relation:
    """Return the rows that belong to someone and satisfy a condition."""
    conditions = [] if unit is None else [belongs_to_someone(unit_value(table, unit, kinds))]
    conditions += [] if where is None else [to_sql(where, table, kinds)]
    return table.filter(conditions) if conditions else table


def unit_value(table: sql.Relation, name: str, kinds: Mapping[str, Kind]) -> sql.Typed:
    """Return the unit as its declared type reads it: ids that are equal as numbers are one unit."""
    unit = read_unit(table, name, kinds[name]) if name in kinds else table[name]
    return leaving(unit.in_hex() if unit.type().is_binary() else unit)


def plain_unit(unit: sql.Typed) -> sql.Typed:
    """Return the unit in a type that can be stored and read again as it is: −0.0 is 0.0, and ids of bytes are text."""
    if unit.type().is_uuid():
        return leaving(unit.cast("string"))
    return Cell(unit, FLOAT, raw=True).settled().value if unit.type().is_floating() else unit


def belongs_to_someone(unit: sql.Typed) -> sql.Typed:
    """Return whether a unit's value is somebody's: NULL and NaN are nobody's."""
    known = unit.notnull()
    return known & ~unit.isnan() if unit.type().is_floating() else known


def leaving(value: sql.Typed) -> sql.Typed:
    """Return a value as it is grouped and leaves the engine: of a long text the digest, so that its memory has a public
    bound. The texts of released keys are looked up after the noise (`texts_relation`)."""
    if not value.type().is_string():
        return value
    return sql.cases((value.byte_length() <= TEXT_BYTES_MOST, value), else_=value.sha256())


def leaving_text(text: str) -> str:
    """Return the same of a text that is public."""
    written = text.encode()
    return text if len(written) <= TEXT_BYTES_MOST else hashlib.sha256(written).hexdigest()


def texts_relation(
    plan: Plan, index: int, table: sql.Relation, kinds: Mapping[str, Kind], digests: Sequence[str]
) -> sql.Relation:
    """Return the long texts of a key column that have these digests."""
    kept = table if plan.where is None else table.filter(to_sql(plan.where, table, kinds))
    texts = kept.select(text=to_sql(plan.keys[index].expression, kept, kinds))
    texts = texts.filter(texts["text"].byte_length() > TEXT_BYTES_MOST)
    texts = texts.mutate(digest=texts["text"].sha256())
    wanted = texts.filter(texts["digest"].isin(digests))
    return wanted.group_by("digest").agg(text=wanted["text"].arbitrary())


def _bound_rows(rows: sql.Relation, keys: list[str], plan: Plan, salt: str) -> sql.Relation:
    if not plan.needs_rows:
        return rows
    values = [value_name(index) for index in range(plan.value_count)]
    order = [row_order(rows, keys, values, salt), *[rows[name] for name in values]]
    index = sql.row_number().over(sql.window(group_by=[UNIT, *keys], order_by=order))
    ranked = rows.mutate(row_place=index)
    return ranked.filter(ranked["row_place"] < plan.rows_per_unit).drop("row_place")


def _sums_of_rows(rows: sql.Relation, plan: Plan) -> dict[str, sql.Typed]:
    sums = {ROWS: rows.count()}
    for index in range(plan.value_count):
        sums[counted_name(index)] = rows[value_name(index)].count()
        sums[total_name(index)] = rows[value_name(index)].sum()
    return sums


def _bound_groups(each: sql.Relation, keys: list[str], plan: Plan, salt: str) -> sql.Relation:
    if not keys:
        return each
    return first_groups(each, keys, plan, salt, sql.row_number)


def first_groups(rows: sql.Relation, keys: list[str], plan: Plan, salt: str, number: Callable[[], Any]) -> sql.Relation:
    """Return what is kept of each unit's groups, which are its rows, or have them (`number` is a dense rank then)."""
    order = [group_order(rows, keys, salt), *[rows[key] for key in keys]]
    ranked = rows.mutate(group_place=number().over(sql.window(group_by=[UNIT], order_by=order)))
    return ranked.filter(ranked["group_place"] < plan.groups_per_unit)


def with_orders(rows: sql.Relation, keys: list[str], values: list[str], salt: str) -> sql.Relation:
    """Return rows with two more columns: the orders that decide which of a unit's groups and rows are kept."""
    group, row = group_order(rows, keys, salt), row_order(rows, keys, values, salt)
    return rows.mutate(**{GROUP_ORDER: group, ROW_ORDER: row})


def group_order(rows: sql.Relation, keys: list[str], salt: str) -> sql.Typed:
    return _salted(rows, [UNIT, *keys], salt)


def row_order(rows: sql.Relation, keys: list[str], values: list[str], salt: str) -> sql.Typed:
    return _salted(rows, [UNIT, *keys, *values], salt)


def salted_units(unit: sql.Typed, salt: str) -> sql.Typed:
    """Return a hash of each unit, equal where the engine takes units for equal: it decides which part rows are in."""
    return sql.struct({"parts": sql.literal(salt), UNIT: unit}).hash().hash()


def _salted(rows: sql.Relation, names: list[str], salt: str) -> sql.Typed:
    # hashed twice: an engine's hash of several values may only xor them, which favours some keys whatever the salt
    return sql.struct({"salt": sql.literal(salt), **{name: rows[name] for name in names}}).hash().hash()


def as_text(summed: sql.Relation, keys: list[str]) -> sql.Relation:
    """Return sums as text, so that no engine's integer is too narrow."""
    sums = {name: summed[name].cast("string") for name in summed.columns if name not in keys}
    return summed.select(*keys, **sums)


def values_relation(
    plan: Plan, column: int, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> sql.Relation:
    """Return the values of a measured column in each group, of the kept rows; of people, of all rows, with weights."""
    rows, keys = counted_rows(plan, table, kinds, listed)
    of_people = column in plan.weighed
    if plan.unit is not None:
        rows = rows if of_people else _bound_rows(rows, keys, plan, salt)
        if keys and plan.groups_per_unit < UNBOUNDED:
            rows = first_groups(rows, keys, plan, salt, sql.dense_rank)
    known = rows.filter(rows[value_name(column)].notnull())
    if not of_people:
        return known.select(*keys, **{STEPS: known[value_name(column)]})
    known = weighed(known, keys, value_name(column))
    return known.select(*keys, WEIGHT, **{STEPS: known[value_name(column)]})


def weighed(known: sql.Relation, keys: list[str], value: str) -> sql.Relation:
    """Return rows, none of whose values is NULL, with their weights; the rows of one unit weigh at most UNIT_WEIGHT.

    A unit in m groups weighs f = ⌊UNIT_WEIGHT/m⌋ in each. In the order of its n values there, the first i weigh ⌊i·f/n⌋
    together: evenly spread, and by its own rows only (docs/proofs/quantiles.md).
    """
    cell = sql.window(group_by=[UNIT, *keys], order_by=[known[value]])
    known = known.mutate(turn=sql.row_number().over(cell))
    whole = sql.window(group_by=[UNIT, *keys])
    groups = (known["turn"] == 0).cast("int64").sum().over(sql.window(group_by=[UNIT]))
    known = known.mutate(rows_of_cell=known.count().over(whole).cast("int64"), groups_of_unit=groups.cast("int64"))
    share = sql.literal(UNIT_WEIGHT, "int64") // known["groups_of_unit"]
    turn, rows = known["turn"].cast("int64"), known["rows_of_cell"]
    return known.mutate(**{WEIGHT: (turn + 1) * share // rows - turn * share // rows})


def weighed_rows(
    plan: Plan, column: int, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> tuple[sql.Relation, list[str]]:
    """Return the rows whose values of a column get weights, with the order that decides which groups are kept."""
    rows, keys = counted_rows(plan, table, kinds, listed)
    rows = with_plain_units(with_orders(rows, keys, [value_name(column)], salt))
    return rows.select(UNIT, *keys, GROUP_ORDER, **{STEPS: rows[value_name(column)].cast("int64")}), keys


def distinct_relation(
    plan: Plan, index: int, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> sql.Relation:
    """Return how many distinct values each group has; a unit's are kept by a salted hash, then by the values."""
    wanted, value = plan.distincts[index], VALUE
    rows, keys = _value_rows(plan, index, table, kinds, listed)
    if plan.unit is not None:
        if keys:
            rows = first_groups(rows, keys, plan, salt, sql.dense_rank).drop("group_place")
        known = rows.filter(rows[value].notnull()).distinct()
        order = [row_order(known, keys, [value], salt), known[value]]
        turn = sql.row_number().over(sql.window(group_by=[UNIT, *keys], order_by=order))
        ranked = known.mutate(value_place=turn)
        rows = ranked.filter(ranked["value_place"] < wanted.per_unit)
    counted = rows[value].nunique()
    name = distinct_name(index)
    return as_text(rows.group_by(keys).agg(**{name: counted}) if keys else rows.agg(**{name: counted}), keys)


def value_rows(
    plan: Plan, index: int, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> tuple[sql.Relation, list[str]]:
    """Return the rows whose distinct values are counted, with the orders that decide which of them are kept."""
    rows, keys = _value_rows(plan, index, table, kinds, listed)
    if plan.unit is None:
        return rows, keys
    return with_plain_units(with_orders(rows, keys, [VALUE], salt)), keys


def with_plain_units(rows: sql.Relation) -> sql.Relation:
    return rows.mutate(**{UNIT: plain_unit(rows[UNIT])})


def _value_rows(
    plan: Plan, index: int, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> tuple[sql.Relation, list[str]]:
    more = {VALUE: plan.distincts[index].expression}
    rows, keys = counted_rows(plan, table, kinds, listed, more=more)
    return rows.select(*([UNIT] if plan.unit is not None else []), *keys, VALUE), keys


# --- the fetched values of each group, into the exact table ---

# A word is (index of the group << WORD_BITS) | value; the index takes at most 31 bits.
WORD_BITS = 32


def with_values(exact_table: ExactTable, column: int, found: pa.Table, plan: Plan) -> ExactTable:
    """Return the exact table with one column's values, sorted, for every group."""
    places = _places(exact_table, found, plan)
    exact_values = found.column(STEPS).to_numpy().astype(np.int64)
    exact_weights = found.column(WEIGHT).to_numpy().astype(np.int64) if WEIGHT in found.column_names else None
    steps = grouped(places, exact_values, groups=len(exact_table), weights=exact_weights)
    return replace(exact_table, values={**exact_table.values, column: steps})


def grouped(
    places: NDArray[Any], values: NDArray[Any], *, groups: int, weights: NDArray[Any] | None = None
) -> GroupedSteps:
    """Return each group's values in increasing order; values[i] is of group places[i]. Values take at most 30 bits, so
    group and value fit one word, and one sort does all groups."""
    if weights is not None:
        words = (places.astype(np.int64) << WORD_BITS) | values
        order = np.argsort(words, kind="stable")
        edges = np.searchsorted(words[order], np.arange(groups + 1) << WORD_BITS)
        return GroupedSteps(values[order].astype(np.uint32), edges[:-1], edges[1:], weights[order])
    if groups == 1:
        steps = values.astype(np.uint32)
        steps.sort()
        return GroupedSteps(steps, np.array([0]), np.array([len(steps)]))
    words = places.astype(np.int64)
    words <<= WORD_BITS
    words |= values
    words.sort()
    edges = np.searchsorted(words, np.arange(groups + 1) << WORD_BITS)
    return GroupedSteps((words & ((1 << WORD_BITS) - 1)).astype(np.uint32), edges[:-1], edges[1:])


def with_distinct(exact_table: ExactTable, index: int, found: pa.Table, plan: Plan) -> ExactTable:
    """Return the exact table with the number of distinct values of one expression in every group."""
    exact_counts = [0] * len(exact_table)
    name = distinct_name(index)
    for at, text in zip(_places(exact_table, found, plan).tolist(), found.column(name).to_pylist(), strict=True):
        exact_counts[at] = 0 if text is None else int(text)
    return replace(exact_table, sums={**exact_table.sums, name: exact_counts})


def _places(exact_table: ExactTable, found: pa.Table, plan: Plan) -> Integers:
    """Return, for each fetched row, the index of its group in the exact table."""
    if not plan.keys:
        return np.zeros(len(found), dtype=np.int64)
    if plan.public_keys is not None:
        listed: Integers = found.column(KEY_PLACE).to_numpy().astype(np.int64)
        return listed
    place_of = {key: index for index, key in enumerate(exact_table.keys)}
    columns = [found.column(key_name(at)).to_pylist() for at in range(len(plan.keys))]
    keys = zip(*columns, strict=True)
    return np.array([place_of[tuple(to_scalar(part) for part in key)] for key in keys], dtype=np.int64)


COMPARED = ("=", "<>", "<", "<=", ">", ">=", "in")
TYPES = ("int", "bool", "date", "text")
ANY = WantedRows("any")


def wanted_rows(where: Expression | None, columns: Mapping[str, ColumnFacts]) -> WantedRows | None:
    """Return a condition that holds for every row that `where` holds for; None: every row is wanted."""
    return None if where is None else _wanted(where, columns)


def _wanted(where: Expression, columns: Mapping[str, ColumnFacts]) -> WantedRows:
    if isinstance(where, Column):  # a bool by itself
        return WantedRows("=", where.name, "bool", (True,))
    if isinstance(where, Value):
        return ANY
    first = where.arguments[0] if where.arguments else None
    if where.function in ("and", "or"):
        return WantedRows(where.function, of=tuple(_wanted(each, columns) for each in where.arguments))
    if where.function == "not" and isinstance(first, Column):
        return WantedRows("=", first.name, "bool", (False,))
    if where.function == "not" and isinstance(first, Call) and first.function == "is_null":
        inner = _wanted(first, columns)
        return inner if inner is ANY else WantedRows("is_not_null", inner.column, inner.type)
    if not isinstance(first, Column) or columns[first.name].type not in TYPES:
        return ANY
    if where.function == "is_null":
        return WantedRows("is_null", first.name, columns[first.name].type)
    if where.function in COMPARED:
        return _wanted_comparison(where, first, columns[first.name].type)
    return ANY


def _wanted_comparison(where: Call, column: Column, kind: str) -> WantedRows:
    constants = [each.value for each in where.arguments[1:] if isinstance(each, Value) and each.type == kind]
    if len(constants) < len(where.arguments) - 1:
        return ANY
    return WantedRows(where.function, column.name, kind, tuple(constants))
