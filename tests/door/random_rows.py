"""Random small tables and what FROM may have over them, for comparing Tacit's answers with DuckDB's own.

Each person has a twin with the same rows, so that every group has the two units that a found group needs at least.
Numbers are whole, or eighths on a grid of eighths, so that sums are equal and not only near.
"""

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

TWIN = 1000
WORDS = ("", "a", "ab", "Abc", "b c", "12", "x%y", "-7")
START = dt.datetime(2021, 5, 5)  # noqa: DTZ001 - times in tables have no zone
WARDS = ("a", "b", "c", "D e")


@dataclass(frozen=True)
class Tables:
    """Two protected tables of the same people, and two public ones: a ward has one floor and several beds."""

    visits: pa.Table
    patients: pa.Table
    wards: pa.Table
    beds: pa.Table


def random_tables(draw: random.Random) -> Tables:
    """Return small tables with NULLs, negative numbers, dates, rows that belong to nobody and people without rows."""
    visits: list[dict[str, object]] = []
    patients: list[dict[str, object]] = []
    for person in range(draw.randint(3, 9)):
        rows = [_visit(draw) for _ in range(draw.randint(0, 6))]
        seen = {"age": _maybe(draw, draw.randint(0, 99)), "sex": _maybe(draw, draw.choice("fm"))}
        for unit in (person, person + TWIN):
            visits += [{"id": unit, **row} for row in rows]
            patients += [{"id": unit, **seen}] if person % 4 else []
    of_nobody = [_visit(draw) for _ in range(draw.randint(0, 2))]
    visits += [{"id": None, **row} for row in (*of_nobody, *of_nobody)]
    patients += [{"id": None, "age": 50, "sex": "f"}]
    draw.shuffle(visits)
    numbers = pa.int64()
    given = {"id": numbers, "ward": pa.string(), "x": numbers, "f": pa.float64(), "d": pa.date32()}
    given |= {"t": pa.timestamp("us"), "b": pa.bool_(), "s": pa.string()}
    floors = {"ward": [*WARDS[:3], "z"], "floor": [1, 2, draw.choice([1, 2]), 3], "kind": ["m", "n", "m", None]}
    return Tables(
        pa.Table.from_pylist(visits, schema=pa.schema(given)),
        pa.Table.from_pylist(patients, schema=pa.schema({"id": numbers, "age": numbers, "sex": pa.string()})),
        pa.table(floors),
        pa.table({"ward": ["a", "a", "a", "b", "b", "z", None], "bed": [draw.randint(1, 9) for _ in range(7)]}),
    )


def _maybe(draw: random.Random, value: object) -> object:
    return None if draw.random() < 0.15 else value


def _visit(draw: random.Random) -> dict[str, object]:
    day = dt.date(2020, 1, 1) + dt.timedelta(days=draw.choice([0, 30, 59, 365, draw.randrange(700)]))
    return {
        "ward": _maybe(draw, draw.choice(WARDS)),
        "x": _maybe(draw, draw.randint(-16, 16)),
        "f": _maybe(draw, draw.randint(-64, 64) / 8),
        "d": _maybe(draw, day),
        "t": _maybe(draw, START + dt.timedelta(minutes=draw.randrange(9000))),
        "b": _maybe(draw, draw.random() < 0.5),
        "s": _maybe(draw, draw.choice(WORDS)),
    }


@dataclass(frozen=True)
class Source:
    """What FROM has, and the expressions that its rows have: keys, whole numbers, fractions, conditions."""

    text: str
    keys: Sequence[str]
    whole: Sequence[str]
    fractions: Sequence[str]
    conditions: Sequence[str]
    before: str = ""  # WITH
    where: tuple[str, ...] = ()
    distinct: Sequence[str] = ()
    unit: str | None = "id"  # None: each row is its own
    table: str = "visits"  # the table that is asked
    most: tuple[tuple[str, int], ...] = ()  # how many rows of a public table one row may match
    is_whole: bool = False  # asked without groups: bounds are learned, and groups are shown from more units on


KEYS = (
    "ward",
    "b",
    "x % 3",
    "x // 4",
    "x > 3",
    "YEAR(d)",
    "MONTH(d)",
    "DATE_TRUNC('month', d)",
    "DATE_TRUNC('day', t)",
    "EXTRACT(DOW FROM d)",
    "EXTRACT(HOUR FROM t)",
    "STRFTIME(d, '%Y-%m')",
    "UPPER(ward)",
    "SUBSTRING(s, 1, 1)",
    "LENGTH(s)",
    "COALESCE(ward, 'none')",
    "ward || '-' || s",
    "FLOOR(f)",
    "CASE WHEN x > 0 THEN 'up' WHEN x < 0 THEN 'down' END",
    "CASE ward WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END",
    "IF(b, ward, 'other')",
    "CAST(x AS TEXT)",
    "CAST(b AS INT) + 1",
    "CAST(t AS DATE)",
    "QUARTER(d)",
    "EXTRACT(WEEK FROM d)",
    "EXTRACT(DOY FROM d) // 100",
    "DATE_TRUNC('week', d)",
    "DATE_TRUNC('hour', t)",
    "STRFTIME(t, '%d %H')",
    "DATE_DIFF('month', d, DATE '2021-03-15')",
    "d + INTERVAL 1 QUARTER",
    "REPLACE(s, 'b', 'q')",
    "NULLIF(ward, 'a')",
    "GREATEST(ward, s)",
    "ROUND(x, -1)",
)
# Ranges have more than a few steps: on fewer, a mean of a handful of rows is NULL, as if noise could be all of it.
WHOLE = (
    "x",
    "x + 3",
    "x * 2 - 1",
    "-x",
    "ABS(x)",
    "x % 5",
    "x // 3",
    "ROUND(f)",
    "CEIL(f)",
    "COALESCE(x, -3)",
    "NULLIF(x, 2)",
    "GREATEST(x, 0)",
    "LEAST(x, 5)",
    "CAST(b AS INT) * 64",
    "IF(b, x, 1)",
    "CASE WHEN x > 0 THEN x ELSE 0 END",
    "CASE WHEN ward = 'a' THEN 64 END",
    "EXTRACT(DAY FROM d)",
    "EXTRACT(MINUTE FROM t)",
    "LEAST(GREATEST(LENGTH(s), 0), 9) * 16",
    "x * x",
    "CAST(FLOOR(f) AS INT) * 2",
    "LEAST(GREATEST(TRY_CAST(s AS INT), -16), 16)",
    "SIGN(x) * 32",
    "CAST(x IS NULL AS INT) * 64",
    "LEAST(GREATEST(DATE_DIFF('month', DATE '2020-01-01', d), 0), 99)",
)
FRACTIONS = ("f", "f * 2", "f + x", "f / 4", "ABS(f)", "LEAST(f, 2.5)", "CASE WHEN b THEN f ELSE 0 END", "x / 4")
CONDITIONS = (
    "x > 3",
    "f <= 1.5",
    "x <> 2",
    "x + f > 2",
    "x BETWEEN -3 AND 9",
    "x IS NOT NULL",
    "x IS DISTINCT FROM 3",
    "ward = 'a'",
    "ward IN ('a', 'c', 'q')",
    "ward NOT IN ('a', 'c')",
    "ward LIKE '%e'",
    "s NOT LIKE 'a%'",
    "s ILIKE '%B%'",
    "s LIKE 'x!%%' ESCAPE '!'",
    "b",
    "NOT b",
    "b IS NOT TRUE",
    "b = (x > 0)",
    "d >= DATE '2020-02-10'",
    "YEAR(d) = 2021",
    "d + INTERVAL 3 DAY < DATE '2020-03-01'",
    "d + INTERVAL 1 MONTH = DATE '2020-02-29'",
    "DATE_DIFF('day', d, DATE '2021-01-01') > 30",
    "t >= TIMESTAMP '2021-05-07 12:00:00'",
    "LENGTH(s) > 1",
    "LOWER(s) = 'abc'",
    "TRIM(s) <> s",
    "REPLACE(s, 'b', 'd') LIKE '%d%'",
    "STARTS_WITH(s, 'a')",
    "TRY_CAST(s AS INT) IS NOT NULL",
    "TRY_CAST(s AS FLOAT) > 7",
    "SQRT(ABS(x)) > 2",
    "POWER(x, 2) > 9",
    "LN(ABS(x) + 1) > 1.3",
    "x % 2 = 0",
    "ROUND(f, 1) > 0.55",
    "COALESCE(x, 0) < 1",
    "CASE WHEN b THEN x ELSE f END > 1",
    "EXP(x / 4) < 3",
    "LOG10(ABS(x) + 1) > 0.5",
    "LOG2(ABS(f) + 1) > 1.5",
    "x NOT BETWEEN -5 AND 5",
    "(x > 0) = (f > 0)",
    "x IN (1, 2, 3, -4)",
    "CAST(ward AS TEXT) || s LIKE '_b%'",
    "t + INTERVAL 90 MINUTE > TIMESTAMP '2021-05-08 00:30:00'",
    "DATE_TRUNC('month', t) = DATE '2021-05-01'",
    "EXTRACT(ISODOW FROM d) > 5",
    "COALESCE(ward, s, 'x') < 'b'",
    "NULLIF(x, 3) > -2",
    "SUBSTRING(s, 2) = 'b'",
    "f = 1.5 OR f IS NULL",
    "MOD(x, 3) = 1",
    "x / 0 IS NULL",
)
VISITS = Source("visits", KEYS, WHOLE, FRACTIONS, CONDITIONS, distinct=("ward", "x", "d", "s", "b"))


def condition(draw: random.Random, source: Source, *, depth: int = 2) -> str:
    """Return a random condition on a row."""
    if depth == 0 or draw.random() < 0.5:
        return draw.choice(source.conditions)
    one, other = (condition(draw, source, depth=depth - 1) for _ in range(2))
    return draw.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})", f"({one} OR {other})"])


# --- what FROM has ---


def _plain(_draw: random.Random) -> Source:
    return VISITS


def _aliased(_draw: random.Random) -> Source:
    return replace(VISITS, text="visits AS v", keys=(*KEYS, "v.ward", "v.x % 2"), unit="v.id")


def _row_wise(draw: random.Random) -> Source:
    inner = condition(draw, VISITS)
    made = f"SELECT *, x * 2 AS y, UPPER(ward) AS w FROM visits WHERE {inner}"
    more = replace(VISITS, keys=(*KEYS, "w", "y % 3"), whole=(*WHOLE, "y", "y + x"), distinct=("w", "y"))
    if draw.random() < 0.5:
        return replace(more, text=f"({made}) AS sub")
    return replace(more, text="later", before=f"WITH made AS ({made}), later AS (SELECT * FROM made WHERE x > -9) ")


def _renamed(draw: random.Random) -> Source:
    inner = f"SELECT * FROM visits WHERE {condition(draw, VISITS)}"
    made = f"SELECT id AS person, ward AS k, x AS i, f / 2 AS h FROM ({inner})"
    keys, whole = ("k", "i % 2", "k || 'q'"), ("i", "i + 1", "ABS(i)")
    conditions = ("i > 0", "h < 1.5", "k <> 'a'", "k IS NULL")
    return Source(f"({made}) AS r", keys, whole, ("h", "h + i"), conditions, distinct=("k", "i"), unit="person")


UNIT_KEYS = ("n", "n > 2", "CASE WHEN total > 3 THEN 'high' ELSE 'low' END", "least IS NULL", "kinds", "never")
UNIT_WHOLE = (
    "LEAST(n, 64)",
    "LEAST(GREATEST(total, -99), 99)",
    "CASE WHEN n > 2 THEN 64 ELSE 0 END",
    "LEAST(kinds, 9)",
)
UNIT_CONDITIONS = ("n > 1", "total > -5", "least < 0", "kinds = 2", "mean > 0.37", "part <= 2.5", "never", "n % 2 = 1")
PER_UNIT = (
    "COUNT(*) AS n, SUM(x) AS total, MIN(x) AS least, COUNT(DISTINCT ward) AS kinds, AVG(x) AS mean, SUM(f) AS part, "
    "BOOL_AND(x < 9) AS never"
)


def _per_unit(draw: random.Random) -> Source:
    where = f"WHERE {condition(draw, VISITS)}" if draw.random() < 0.5 else ""
    having = f" HAVING {draw.choice(['COUNT(*) > 1', 'SUM(x) > 0', 'MAX(f) < 7'])}" if draw.random() < 0.3 else ""
    # Rows by unit and another key have learned bounds: such a question learns five facts or more, and is asked less.
    further = [("", "id")] * 8 + [("ward AS w, ", "id, ward"), ("YEAR(d) AS w, ", "id, YEAR(d)")]
    also, group = draw.choice(further)
    made = f"SELECT id, {also}{PER_UNIT} FROM visits {where} GROUP BY {group}{having}"
    parts = ("LEAST(GREATEST(part, -64), 64)", "LEAST(GREATEST(mean, -16), 16)")
    source = Source(f"({made}) AS own", UNIT_KEYS, UNIT_WHOLE, parts, UNIT_CONDITIONS, distinct=("n", "kinds"))
    source = replace(source, is_whole=bool(also))
    return source if draw.random() < 0.5 else replace(source, text="own", before=f"WITH own AS ({made}) ")


def _same_people(draw: random.Random) -> Source:
    how = draw.choice(["JOIN", "LEFT JOIN", "INNER JOIN"])
    text = draw.choice([f"visits {how} patients USING (id)", f"visits v {how} patients p ON v.id = p.id"])
    keys = (*KEYS, "sex", "age // 20", "age >= 50", "sex", "sex || ward")
    whole = (*WHOLE, "LEAST(GREATEST(age, 0), 99)", "LEAST(GREATEST(age, 0), 99) - x")
    conditions = (*CONDITIONS, "age > 40", "sex = 'f'", "age IS NULL", "age > x * 5")
    unit = "id" if "USING" in text else "v.id"
    return replace(VISITS, text=text, keys=keys, whole=whole, conditions=conditions, distinct=("sex", "x"), unit=unit)


def _public(draw: random.Random) -> Source:
    text = draw.choice(["visits JOIN wards USING (ward)", "visits v LEFT JOIN wards w ON w.ward = v.ward"])
    ward = "ward" if "USING" in text else "v.ward"
    rest = tuple(each for each in KEYS if "ward" not in each)
    keys = (*rest, f"{ward} || ''", "floor + 0", "UPPER(kind)", "kind || s")
    whole = (*(each for each in WHOLE if "ward" not in each), "LEAST(GREATEST(floor, 0), 9)")
    conditions = (*(each for each in CONDITIONS if "ward" not in each), "floor = 1", "kind IS NULL", f"{ward} <> 'a'")
    return Source(text, keys, whole, FRACTIONS, conditions, distinct=("floor", "x"))


def _semi(draw: random.Random) -> Source:
    inner = draw.choice(["age > 40", "sex = 'f'", "age IS NOT NULL", "age < 99"])
    which = draw.choice(
        [
            f"id IN (SELECT id FROM patients WHERE {inner})",
            f"id NOT IN (SELECT id FROM patients WHERE {inner})",
            f"EXISTS (SELECT 1 FROM patients p WHERE p.id = visits.id AND {inner})",
            f"NOT EXISTS (SELECT 1 FROM patients p WHERE p.id = visits.id AND {inner})",
            "ward IN (SELECT ward FROM wards WHERE floor > 1)",
            "EXISTS (SELECT 1 FROM wards w WHERE w.ward = visits.ward AND kind = 'm')",
            "id IN (SELECT id FROM visits GROUP BY id HAVING COUNT(*) > 2)",
        ]
    )
    return replace(VISITS, where=(which,))


def _with_own_totals(draw: random.Random) -> Source:
    made = f"SELECT id AS person, COUNT(*) AS n FROM visits WHERE {condition(draw, VISITS)} GROUP BY id"
    how = draw.choice(["JOIN", "LEFT JOIN"])
    keys, whole = (*KEYS, "n", "n > 2"), (*WHOLE, "LEAST(n, 9)", "LEAST(n, 9) + x")
    text = f"visits {how} own ON visits.id = own.person"
    return replace(VISITS, text=text, before=f"WITH own AS ({made}) ", keys=keys, whole=whole, unit="visits.id")


def _several_beds(draw: random.Random) -> Source:
    text = draw.choice(["visits JOIN beds USING (ward)", "visits LEFT JOIN beds ON visits.ward = beds.ward"])
    inner = _public(draw)
    keys = (
        *(each for each in inner.keys if "ward" not in each and "floor" not in each and "kind" not in each),
        "bed + 0",
    )
    whole = (*(each for each in inner.whole if "floor" not in each), "LEAST(GREATEST(bed, 0), 9)")
    conditions = (*(each for each in CONDITIONS if "ward" not in each), "bed > 4", "bed IS NULL")
    return Source(text, keys, whole, FRACTIONS, conditions, distinct=("bed", "x"), most=(("beds", 3),))


def _rows_alone(draw: random.Random) -> Source:
    """Each row is its own unit, those of nobody too."""
    if draw.random() < 0.7:
        return replace(VISITS, text="events", unit=None, table="events")
    known = _public(draw)
    return replace(
        known,
        text="events JOIN wards USING (ward)",
        keys=known.keys[:-4],
        conditions=known.conditions[:-1],
        unit=None,
        table="events",
    )


SOURCES = (
    _plain,
    _plain,
    _several_beds,
    _rows_alone,
    _aliased,
    _row_wise,
    _renamed,
    _per_unit,
    _per_unit,
    _same_people,
    _public,
    _semi,
    _with_own_totals,
)
