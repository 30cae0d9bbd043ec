"""Random SELECTs of the whole grammar over random small tables, for comparing Tacit's answer with DuckDB's own.

A question is written twice where an answer under noise cannot mean the same: over no rows a SUM or COUNT_IF is 0 with
noise and NULL in DuckDB, and a quantile is compared with the values around its rank.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.door.random_rows import SOURCES, Source, condition


@dataclass(frozen=True)
class Column:
    """One column of a SELECT: how each of the two is asked, and how near their values must be."""

    ours: str
    theirs: str
    name: str
    near: float = 0.0  # 0: equal
    fraction: float | None = None  # a quantile, of which DuckDB is asked for all values
    has_bound: bool = False  # a COUNT(DISTINCT x), of which one unit counts for so many values at most
    is_line: bool = False  # of a line through points, for which DuckDB has no number where they are above each other
    is_among: bool = False  # DuckDB is asked for all values that it may be
    is_orderly: bool = False  # equal in both to the last bit, so that rows may be put in its order


@dataclass(frozen=True)
class Select:
    """A question, what DuckDB is asked instead, and how to compare the two."""

    ours: str
    theirs: str
    columns: tuple[Column, ...]
    is_ordered: bool = False
    per_unit: dict[str, int] = field(default_factory=dict)
    table: str = "visits"  # the table that is asked
    most: tuple[tuple[str, int], ...] = ()
    dialect: str | None = None
    is_listed: bool = False  # groups are public: those without rows are shown, with nothing in them


def random_select(draw: random.Random) -> Select:
    """Return one question of the grammar."""
    return select_of(draw, draw.choice(SOURCES)(draw))


def select_of(draw: random.Random, source: Source) -> Select:
    """Return one question about a source."""
    if source.is_whole or draw.random() < 0.2:
        return _together(draw, source)
    return _keys_alone(draw, source) if draw.random() < 0.1 else _grouped(draw, source)


# --- what is selected ---


def _filter(draw: random.Random, source: Source) -> str:
    return f" FILTER (WHERE {condition(draw, source, depth=1)})" if draw.random() < 0.2 else ""


def whole_number(draw: random.Random, source: Source) -> tuple[str, str]:
    """Return an aggregate that is a whole number, in our words and in DuckDB's."""
    kind = draw.randrange(5)
    if kind == 0 or (kind == 1 and source.unit is None):
        return ("COUNT(*)",) * 2
    if kind == 1:
        return (f"COUNT(DISTINCT {source.unit})",) * 2
    if kind == 2:
        text = f"COUNT_IF({condition(draw, source, depth=1)})"
        return text, f"COALESCE({text}, 0)"
    what = draw.choice(source.whole)
    if kind == 3:
        return (f"COUNT({what}){_filter(draw, source)}",) * 2
    text = f"SUM({what}){_filter(draw, source)}"
    return text, f"COALESCE({text}, 0)"


def number(draw: random.Random, source: Source) -> tuple[str, str]:
    """Return an aggregate that is any number."""
    what, other = draw.choice(source.whole), draw.choice(source.fractions)
    one = draw.choice([what, other])
    kind = draw.randrange(9)
    if kind < 2:
        return (f"AVG({one}){_filter(draw, source)}",) * 2
    if kind == 2:
        return f"SUM({one})", f"COALESCE(SUM({one}), 0)"
    if kind == 3:
        return (f"{draw.choice(['VAR_POP', 'STDDEV_POP'])}({one})",) * 2
    if kind == 4:
        return (f"COVAR_POP({what}, {other})",) * 2
    if kind == 5:
        return (f"AVG({other})",) * 2
    if kind == 6:
        text = f"{draw.choice(['REGR_AVGX', 'REGR_AVGY', 'REGR_COUNT'])}({what}, {other})"
        return text, f"({text})::DOUBLE"  # DuckDB's count of pairs cannot be negated
    return whole_number(draw, source)


def nearness(aggregate: str) -> float:
    """Return how near a number must be: the root of a variance that is rounded at 0 is not as near as itself."""
    return 2e-2 if "STDDEV" in aggregate else 2e-3


COMPUTED = ("{a} + {b}", "{a} - 2 * {b}", "{a} / {i}", "100.0 * {a} / {i}", "-{a}", "ABS({a}) + 1", "COALESCE({a}, 0)")
COMPUTED += ("ROUND({a}, 2)", "GREATEST({a}, {b})", "CASE WHEN {i} > 3 THEN {a} ELSE {b} END", "SQRT(ABS({a}))")
WINDOWS = (
    "RANK() OVER (ORDER BY {i} DESC)",
    "DENSE_RANK() OVER (ORDER BY {i})",
    "ROW_NUMBER() OVER (ORDER BY {i}, {keys})",
    "SUM({i}) OVER ()",
    "100.0 * {i} / SUM({j}) OVER ()",
    "SUM({i}) OVER (ORDER BY {keys})",
    "AVG({i}) OVER (PARTITION BY {key})",
    "MAX({i}) OVER (PARTITION BY {key})",
    "LAG({i}) OVER (ORDER BY {keys})",
    "LEAD({i}, 2, -1) OVER (ORDER BY {keys})",
    "NTILE(3) OVER (ORDER BY {keys})",
    "SUM({i}) OVER (ORDER BY {keys} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "MIN({i}) OVER (ORDER BY {keys} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
    "COUNT(*) OVER (PARTITION BY {key})",
    "FIRST_VALUE({i}) OVER (ORDER BY {keys})",
    "LAST_VALUE({i}) OVER (PARTITION BY {key} ORDER BY {keys} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "NTH_VALUE({i}, 2) OVER (ORDER BY {keys})",
    "PERCENT_RANK() OVER (ORDER BY {i})",
    "CUME_DIST() OVER (ORDER BY {i} DESC)",
    "{i} - LAG({i}, 1, 0) OVER (ORDER BY {keys})",
)


def _column(draw: random.Random, source: Source, keys: Sequence[str], place: int) -> Column:
    """Return a random column that is not a key."""
    name, kind = f"c{place}", draw.random()
    if kind < 0.35:
        ours, theirs = whole_number(draw, source)
        return Column(ours, theirs, name, is_orderly=True)
    if kind < 0.5:
        ours, theirs = number(draw, source)
        return Column(ours, theirs, name, near=nearness(ours))
    if kind < 0.54:
        line = draw.choice(["CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"])
        text = f"{line}({draw.choice(source.whole)}, {draw.choice(source.fractions)})"
        return Column(text, text, name, near=2e-2, is_line=True)
    if kind < 0.62:
        what, fraction = draw.choice([*source.whole, *source.fractions]), draw.choice([0.0, 0.25, 0.5, 0.9, 1.0])
        words = {0.0: f"MIN({what})", 0.5: f"MEDIAN({what})", 1.0: f"MAX({what})"}
        ours = words.get(fraction, f"QUANTILE({what}, {fraction})")
        return Column(
            ours, f"LIST({what} ORDER BY {what}) FILTER (WHERE ({what}) IS NOT NULL)", name, fraction=fraction
        )
    if kind < 0.68 and source.distinct:
        text = f"COUNT(DISTINCT {draw.choice(source.distinct)})"
        return Column(text, text, name, has_bound=True)
    form = draw.choice(WINDOWS) if kind < 0.84 and keys else draw.choice(COMPUTED)
    numbers = {"a": number(draw, source), "b": number(draw, source)}
    numbers |= {"i": whole_number(draw, source), "j": whole_number(draw, source)}
    named = {"keys": ", ".join(keys), "key": draw.choice(keys) if keys else ""}
    ours, theirs = (form.format(**named, **{each: pair[side] for each, pair in numbers.items()}) for side in (0, 1))
    near = 2e-2 if "ROUND" in form or "STDDEV" in ours or "SQRT" in form else 5e-3
    return Column(ours, theirs, name, near=100 * near if form.startswith("100.0 * {a}") and "STDDEV" in ours else near)


def _columns(draw: random.Random, source: Source, keys: Sequence[str], count: int) -> tuple[Column, ...]:
    """Return so many random columns, two quantiles of an expression at most: a third may have no row to go by."""
    found: list[Column] = []
    for place in range(count):
        column = _column(draw, source, keys, place)
        if column.fraction is None or [each.theirs for each in found].count(column.theirs) < 2:
            found.append(column)
    return tuple(found)


def written(columns: Sequence[Column], source: Source, rest: Sequence[str], *, ours: bool) -> str:
    selected = ", ".join(f"{each.ours if ours else each.theirs} AS {each.name}" for each in columns)
    where = f" WHERE {' AND '.join(f'({each})' for each in source.where)}" if source.where else ""
    return f"{source.before}SELECT {selected} FROM {source.text}{where}{rest[0 if ours else 1]}"


def per_unit_bounds(columns: Sequence[Column]) -> dict[str, int]:
    return {each.name: 64 for each in columns if each.has_bound}


def asked(source: Source) -> dict[str, Any]:
    """Return of which table a SELECT over this source is asked, and with what."""
    return {"table": source.table, "most": source.most}


def with_condition(draw: random.Random, source: Source) -> Source:
    """Return the source, perhaps with a WHERE."""
    if draw.random() < 0.5:
        return source
    return replace(source, where=(*source.where, condition(draw, source)))


def _together(draw: random.Random, source: Source) -> Select:
    """A question without groups."""
    source = with_condition(draw, source)
    columns = _columns(draw, source, (), draw.randint(1, 4))
    texts = [written(columns, source, ("", ""), ours=ours) for ours in (True, False)]
    return Select(texts[0], texts[1], columns, per_unit=per_unit_bounds(columns), **asked(source))


def _grouped(draw: random.Random, source: Source) -> Select:
    source = with_condition(draw, source)
    chosen = draw.sample(sorted(set(source.keys)), draw.choice([1, 1, 2]))
    keys = tuple(Column(each, each, f"k{place}", is_orderly=True) for place, each in enumerate(chosen))
    columns = keys + _columns(draw, source, chosen, draw.randint(1, 3))
    style = draw.choice(
        [", ".join(chosen), ", ".join(str(1 + place) for place in range(len(keys))), "k0, k1"[: 4 * len(keys) - 2]]
    )
    rests = [[f" GROUP BY {style}"], [f" GROUP BY {', '.join(chosen)}"]]
    if draw.random() < 0.3:
        pair, limit = whole_number(draw, source), draw.randint(-2, 12)
        for rest, text in zip(rests, pair, strict=True):
            rest.append(f" HAVING {text} > {limit}")
    if draw.random() < 0.1:
        pair = whole_number(draw, source)
        for rest, text in zip(rests, pair, strict=True):
            rest.append(f" QUALIFY RANK() OVER (ORDER BY {text} DESC, {', '.join(chosen)}) <= 3")
    is_ordered = draw.random() < 0.5
    if is_ordered:
        by = [each for each in columns if each.is_orderly and draw.random() < 0.4]
        order = [f"{each.name}{draw.choice(['', ' DESC', ' NULLS FIRST'])}" for each in by]
        order += [each.name for each in keys if each not in by]
        page = draw.choice(["", "", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 100"])
        for rest in rests:
            rest.append(f" ORDER BY {', '.join(order)}{page}")
    ours, theirs = ("".join(rest) for rest in rests)
    around = ("", "")
    if not is_ordered and draw.random() < 0.2:  # a SELECT over the grouped one
        listed = draw.choice(["*", "w.*", ", ".join(f"w.{each.name} AS {each.name}" for each in columns)])
        around = (f"SELECT {listed} FROM (", f") AS w{draw.choice(['', ' WHERE k0 IS NOT NULL'])}")
    plain = replace(source, before="")
    texts = [written(columns, plain, (ours, theirs), ours=side).join(around) for side in (True, False)]
    texts = [source.before + text for text in texts]
    return Select(texts[0], texts[1], columns, is_ordered, per_unit_bounds(columns), **asked(source))


def _keys_alone(draw: random.Random, source: Source) -> Select:
    """Keys without an aggregate, by GROUP BY or DISTINCT."""
    source = with_condition(draw, source)
    chosen = draw.sample(sorted(set(source.keys)), draw.choice([1, 1, 2]))
    keys = tuple(Column(each, each, f"k{place}", is_orderly=True) for place, each in enumerate(chosen))
    if draw.random() < 0.5:
        text = written(keys, source, (f" GROUP BY {', '.join(chosen)}",) * 2, ours=True)
    else:
        plain = written(keys, replace(source, before=""), ("", ""), ours=True)
        text = source.before + plain.replace("SELECT", "SELECT DISTINCT", 1)
    return Select(text, text, keys, **asked(source))
