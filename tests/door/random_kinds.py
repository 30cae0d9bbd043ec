"""Random questions of further kinds: public groups, modes, numbers in brackets, and the words of other engines."""

import random
from dataclasses import replace

import sqlglot
from sqlglot.errors import ErrorLevel, UnsupportedError

from tests.door.random_rows import VISITS, WHOLE, Source, condition
from tests.door.random_selects import (
    Column,
    Select,
    asked,
    nearness,
    number,
    select_of,
    whole_number,
    with_condition,
)

DIALECTS = ("postgres", "spark", "bigquery", "snowflake")
# What `listed` declares as keys; a ward that nobody is in is one of them.
LISTED = {"ward": ("a", "b", "q"), "b": (False, True)}


def random_kind(draw: random.Random) -> Select:
    """Return one question."""
    return draw.choice([_listed, _listed, _mode, _modes, _compared, _translated])(draw)


def _listed(draw: random.Random) -> Select:
    """Groups that are public: of declared keys, or of a public table's column."""
    if draw.random() < 0.7:
        keys = draw.sample(sorted(LISTED), draw.choice([1, 2]))
        source = replace(VISITS, text="listed", table="listed")
        words = {"ward": "ward IN ('a', 'b', 'q')", "b": "b IN (false, true)"}
        theirs_where = [words[key] for key in keys]
    else:
        keys, source, theirs_where = ["floor"], replace(VISITS, text="visits JOIN wards USING (ward)"), []
        known = tuple(each for each in VISITS.conditions if "ward" not in each)
        source = replace(source, conditions=known, whole=tuple(each for each in WHOLE if "ward" not in each))
    source = with_condition(draw, source)
    columns = tuple(Column(key, key, f"k{place}") for place, key in enumerate(keys))
    for place in range(draw.randint(1, 3)):
        ours, theirs = number(draw, source)
        columns += (Column(ours, theirs, f"c{place}", near=nearness(ours)),)
    texts = []
    for is_ours in (True, False):
        selected = ", ".join(f"{each.ours if is_ours else each.theirs} AS {each.name}" for each in columns)
        conditions = [f"({each})" for each in (*source.where, *([] if is_ours else theirs_where))]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        texts.append(f"SELECT {selected} FROM {source.text}{where} GROUP BY {', '.join(keys)}")
    return Select(texts[0], texts[1], columns, is_listed=True, **asked(source))


MODES = ("ward", "x", "s", "b", "x % 3", "UPPER(ward)", "YEAR(d)")


def _best(value: str, source: Source, where: str, key: str = "0") -> str:
    """Return a SELECT of the values that most units have, by key, as a list."""
    who = f"COUNT(DISTINCT {source.unit})"
    known = f"{where} AND ({value}) IS NOT NULL" if where else f" WHERE ({value}) IS NOT NULL"
    counted = f"SELECT {key} AS k0, {value} AS v, {who} AS n FROM {source.text}{known} GROUP BY 1, 2"
    first = f"SELECT * FROM ({counted}) QUALIFY RANK() OVER (PARTITION BY k0 ORDER BY n DESC) = 1"
    return f"SELECT k0, LIST(v) AS c0 FROM ({first}) GROUP BY k0"


def _mode(draw: random.Random) -> Select:
    """The mode of all."""
    value = draw.choice(MODES)
    where = f" WHERE {condition(draw, VISITS)}" if draw.random() < 0.5 else ""
    column = Column("", "", "c0", is_among=True)
    theirs = f"SELECT ANY_VALUE(c0) AS c0 FROM ({_best(value, VISITS, where)})"
    return Select(f"SELECT MODE({value}) AS c0 FROM visits{where}", theirs, (column,))


def _modes(draw: random.Random) -> Select:
    """The mode of each group, beside a count."""
    value, key = draw.choice(MODES), draw.choice(["ward", "b", "x > 3", "YEAR(d)"])
    where = f" WHERE {condition(draw, VISITS)}" if draw.random() < 0.5 else ""
    ours, theirs = whole_number(draw, VISITS)
    columns = (Column("", "", "k0"), Column("", "", "c0", is_among=True), Column("", "", "c1"))
    groups = f"SELECT {key} AS k0, {theirs} AS c1 FROM visits{where} GROUP BY 1"
    best = _best(value, VISITS, where, key)
    joined = (
        f"SELECT g.k0, best.c0, g.c1 FROM ({groups}) g LEFT JOIN ({best}) best ON g.k0 IS NOT DISTINCT FROM best.k0"
    )
    return Select(
        f"SELECT {key} AS k0, MODE({value}) AS c0, {ours} AS c1 FROM visits{where} GROUP BY 1", joined, columns
    )


def _compared(draw: random.Random) -> Select:
    """Groups beside, or against, one number of another SELECT."""
    pair, other = whole_number(draw, VISITS), whole_number(draw, VISITS)
    key, where = draw.choice(["ward", "b", "x % 3"]), condition(draw, VISITS)
    columns = (Column("", "", "k0"), Column("", "", "c0"), Column("", "", "c1", near=5e-3))
    texts = []
    for side in (0, 1):
        aside = f"(SELECT {other[side]} FROM visits WHERE {where})"
        text = f"SELECT {key} AS k0, {pair[side]} AS c0, {pair[side]} - {aside} AS c1 FROM visits GROUP BY {key}"
        texts.append(text + (f" HAVING {pair[side]} < {aside}" if len(where) % 2 else ""))
    return Select(texts[0], texts[1], columns)


# What engines write alike, so that a translation to one of them and back is the same question.
PORTABLE_KEYS = ("ward", "b", "x > 3", "EXTRACT(YEAR FROM d)", "EXTRACT(MONTH FROM d)", "DATE_TRUNC('month', d)")
PORTABLE_KEYS += ("UPPER(ward)", "SUBSTRING(s, 1, 1)", "LENGTH(s)", "COALESCE(ward, 'none')", "ABS(x)")
PORTABLE_KEYS += ("CASE WHEN x > 0 THEN 'up' WHEN x < 0 THEN 'down' END", "EXTRACT(DAY FROM d)")
PORTABLE_WHOLE = ("x", "x + 3", "x * 2 - 1", "-x", "ABS(x)", "COALESCE(x, -3)", "NULLIF(x, 2)", "GREATEST(x, x - 1)")
PORTABLE_WHOLE += ("CASE WHEN x > 0 THEN x ELSE 0 END", "CASE WHEN ward = 'a' THEN 64 END", "EXTRACT(DAY FROM d)")
PORTABLE_FRACTIONS = ("f", "f * 2", "f + x", "f / 4", "ABS(f)", "CASE WHEN b THEN f ELSE 0 END")
PORTABLE_CONDITIONS = ("x > 3", "f <= 1.5", "x <> 2", "x + f > 2", "x BETWEEN -3 AND 9", "x IS NOT NULL", "ward = 'a'")
PORTABLE_CONDITIONS += ("ward IN ('a', 'c', 'q')", "ward NOT IN ('a', 'c')", "ward LIKE '%e'", "s NOT LIKE 'a%'", "b")
PORTABLE_CONDITIONS += ("NOT b", "d >= DATE '2020-02-10'", "LENGTH(s) > 1", "LOWER(s) = 'abc'", "TRIM(s) <> s")
PORTABLE_CONDITIONS += ("COALESCE(x, 0) < 1", "SQRT(ABS(x)) > 2", "POWER(x, 2) > 9", "EXTRACT(YEAR FROM d) = 2021")


def _translated(draw: random.Random) -> Select:
    """A SELECT in the words of another engine: not all have QUALIFY, or the same rows in a window by default."""
    texts = ("visits", "visits JOIN patients USING (id)", "visits LEFT JOIN patients USING (id)")
    portable = Source(draw.choice(texts), PORTABLE_KEYS, PORTABLE_WHOLE, PORTABLE_FRACTIONS, PORTABLE_CONDITIONS)
    dialect = draw.choice(DIALECTS)
    select = select_of(draw, portable)
    while "QUALIFY" in select.ours or "_VALUE" in select.ours:
        select = select_of(draw, portable)
    try:  # where NULL comes in the order of a window cannot be said in every engine's words
        ours = sqlglot.transpile(select.ours, read="duckdb", write=dialect, unsupported_level=ErrorLevel.RAISE)[0]
    except UnsupportedError:
        return select
    return replace(select, ours=ours, dialect=dialect)
