"""Each unit's aggregates are exact up to the ends of their ranges, on every path and engine, as Python computes them.

What one row's functions are there is tested with the cells of `tacit_gauntlet.stage.cells`, which have the same ends.
"""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest

from tacit.engine.derived import DECIMAL_DIGITS, FLOAT_BITS, STEP_BITS
from tacit_gauntlet.stage.table import exact_table
from tests.engine.test_derived import protected

WHOLE = [0, 1, -1, 2**31, -(2**31), 2**33, 10**10, 10**15, 2**53 - 1, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
REAL = [
    *(0.0, -0.0, 0.5, 0.1, 5e-324, 2.0**-31, 0.999 * 2.0**-31, float("nan"), float("inf"), float("-inf")),
    *(sign * size for size in (1e9, 1e10, 1e15, 1e16, 1e300, 1.7976931348623157e308) for sign in (1, -1)),
    *(sign * 2.0**power for power in (31, 32, 33, 49, 50, 51, 53, 62, 63, 64) for sign in (1, -1)),
    *(2.0**33 - 1, 2.0**33 + 0.5, 2.0**50 - 0.125, 2.0**50 + 0.25, 2.0**53 - 1, 2.0**53 + 2),
]
ENDS = ["0", "1e-6", "-1e-6", "8589934592.5", "1e10", "-1e15", "1e17", "1e18", "-1e18", "1e24", "9" * 32 + ".999999"]
LONG = [Decimal(text) for text in [*ENDS, "-" + ENDS[-1]]]
PART = [Decimal(text) for text in ["0", "1e-37", "-1e-37", "0.5", "1e-13", "1e-14", "9." + "9" * 37, "-9." + "9" * 37]]
DAYS = [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]  # noqa: DTZ001 - timestamps have no zone
COLUMNS = {
    "i": (WHOLE, pa.int64(), 0),
    "f": (REAL, pa.float64(), 0),
    "d": (LONG, pa.decimal128(38, 6), 6),
    "p": (PART, pa.decimal128(38, 37), 37),
    "t": (DAYS, pa.date32(), 0),
    "m": (TIMES, pa.timestamp("us"), 0),
}
# Each value by itself is one unit; then all pairs of neighbours, three of the largest, and no value at all.
AGGREGATES = ("SUM", "AVG", "MIN", "MAX", "COUNT", "COUNT(DISTINCT")


def units_of(values):
    alone = [[value] for value in values]
    return [*alone, *([*pair] for pair in pairwise(values)), values[-1:] * 3, values, [None]]


def known_of(values):
    """Return the values that there are: NaN is NULL, and -0.0 is 0.0."""
    known = (value for value in values if value is not None and not (isinstance(value, float) and math.isnan(value)))
    return [value + 0.0 if isinstance(value, float) else value for value in known]


def sum_of(values, scale):
    """Return the exact sum as the guide has it: what each value is held within, and in which steps it is added up."""
    if isinstance(values[0], float):
        most = Fraction(2) ** FLOAT_BITS
        held = (
            max(-most, min(most, Fraction(value) if math.isfinite(value) else most * (-1) ** (value < 0)))
            for value in values
        )
        # x·2^30 is exact, and adding 1/2 rounds once, as floats are
        return Fraction(sum(math.floor(float(value * 2**STEP_BITS) + 0.5) for value in held), 2**STEP_BITS)
    if isinstance(values[0], Decimal):
        most = Fraction(10**DECIMAL_DIGITS - 1, 10**scale)
        return sum((max(-most, min(most, Fraction(value))) for value in values), Fraction(0))
    return Fraction(sum(values))


def wanted(aggregate, values, scale):
    known = known_of(values)
    if aggregate.startswith("COUNT"):
        return len(set(known)) if "DISTINCT" in aggregate else len(known)
    if not known:
        return None
    if aggregate in ("MIN", "MAX"):
        return min(known) if aggregate == "MIN" else max(known)
    total = sum_of(known, scale)
    if aggregate == "AVG":
        return float(total) / float(len(known))
    if isinstance(known[0], float):
        return float(total)
    if isinstance(known[0], Decimal):
        return total if abs(total) * 10**scale < 10**38 else None
    return int(total) if -(2**63) <= total < 2**63 else None


def rows_with(name):
    values, kind, _ = COLUMNS[name]
    units = units_of(values)
    if name == "d":  # a sum of more digits than decimals of Python have by themselves
        units.append(LONG[-2:-1] * 20_001)
    cells = [(unit, value) for unit, held in enumerate(units) for value in held]
    table = pa.table({"id": [unit for unit, _ in cells], name: pa.array([value for _, value in cells], kind)})
    return table, units


def asked_of(name):
    numbers = name in "ifdp"
    asked = [each for each in AGGREGATES if numbers or each not in ("SUM", "AVG")]
    return {f"a{at}": (each, f"{each} {name})" if "(" in each else f"{each}({name})") for at, each in enumerate(asked)}


def assert_exact(source, name, units):
    table, scale = source.table, COLUMNS[name][2]
    found = source.fetch(
        table.select(who=table["id"], **{called: table[written] for called, (_, written) in asked_of(name).items()})
    )
    found = found.sort_by("who").to_pydict()
    for called, (aggregate, written) in asked_of(name).items():
        for unit, cell in zip(units, found[called], strict=True):
            exact = wanted(aggregate, unit, scale)
            same = (
                cell == exact and type(cell) is type(exact)
                if not isinstance(cell, Decimal)
                else Fraction(cell) == exact
            )
            assert same, f"{written} of {unit}: {cell!r}, not {exact!r}"


def per_unit(table, name):
    aggregates = ", ".join(f"{written} AS {called}" for called, (_, written) in asked_of(name).items())
    any_of = " OR ".join(f"{called} IS NULL" for called in asked_of(name))
    return table.sql(f"SELECT COUNT(*) AS n FROM (SELECT id, {aggregates} FROM t GROUP BY id) WHERE {any_of} OR TRUE")


@pytest.mark.parametrize("path", ["sql", "on disk"])
@pytest.mark.parametrize("name", COLUMNS)
def test_each_units_aggregates_are_exact_at_the_ends_of_their_ranges(name, path):
    rows, units = rows_with(name)
    source = per_unit(protected(rows), name).session.engine.source
    assert_exact(source if path == "sql" else source.streaming(), name, units)


def test_large_floats_of_a_unit_are_counted_on_every_engine(engine):
    rows, units = rows_with("f")
    table = engine(rows, name="t", unit="id")
    for condition, least in (("s > 5", 5), ("s > 8589934592", 2**33), ("s > 1000000000000000", 10**15)):
        asked = table.sql(f"SELECT COUNT(*) AS n FROM (SELECT id, SUM(f) AS s FROM t GROUP BY id) WHERE {condition}")
        sums = [sum_of(known, 0) for unit in units if (known := known_of(unit))]
        assert exact_table(asked).sums["units"] == [sum(each > least for each in sums)]


@pytest.mark.parametrize(("written", "rows"), [("=", 1), ("<", 1), (">=", 2), ("<>", 2)])
def test_a_decimal_in_a_question_is_compared_in_all_its_digits(written, rows, engine):
    middle = "12345678901234567890123456789012.345678"
    near = pa.array([Decimal(middle[:-1] + last) for last in "789"], pa.decimal128(38, 6))
    table = engine(pa.table({"id": [1, 2, 3], "d": near}), name="t", unit="id")
    assert exact_table(table.sql(f"SELECT COUNT(*) AS n FROM t WHERE d {written} {middle}")).sums["units"] == [rows]
