"""Random questions of several SELECTs, and of totals beside their groups, for comparing with DuckDB's own answer.

They are made of the columns and sources of `random_selects.py`: UNION ALL, ROLLUP, CUBE and GROUPING SETS, of keys that
are plain columns, with GROUPING to tell a total from a group whose key is NULL.
"""

import random

from tests.door.random_rows import SOURCES, Source, condition
from tests.door.random_selects import (
    Column,
    Select,
    asked,
    nearness,
    number,
    whole_number,
    with_condition,
)


def random_compound(draw: random.Random) -> Select:
    """Return a question with several SELECTs, or with totals."""
    source = draw.choice(SOURCES)(draw)
    plain = [key for key in sorted(set(source.keys)) if key.isidentifier()]
    if source.is_whole or not plain or draw.random() < 0.3:
        return _union(draw, source)
    return _totals(draw, source, draw.sample(plain, min(len(plain), draw.choice([1, 2, 2]))))


def _numbers(draw: random.Random, source: Source) -> tuple[Column, Column]:
    """Return a whole number and any other."""
    ours, theirs = number(draw, source)
    return Column(*whole_number(draw, source), "c0"), Column(ours, theirs, "c1", near=nearness(ours))


def _union(draw: random.Random, source: Source) -> Select:
    """Two or three SELECTs without groups, each told by a word."""
    parts: list[tuple[str, str]] = []
    columns: tuple[Column, ...] = ()
    for word in ("one", "two", "three")[: draw.choice([2, 2, 3])]:
        columns = (Column(f"'{word}'", f"'{word}'", "k0"), *_numbers(draw, source))
        where = f" WHERE {' AND '.join([*source.where, condition(draw, source)])}"
        ours, theirs = (
            ", ".join(f"{each.ours if is_ours else each.theirs} AS {each.name}" for each in columns)
            for is_ours in (True, False)
        )
        parts.append((f"SELECT {ours} FROM {source.text}{where}", f"SELECT {theirs} FROM {source.text}{where}"))
    texts = (source.before + " UNION ALL ".join(part[side] for part in parts) for side in (0, 1))
    return Select(*texts, columns, **asked(source))


def _totals(draw: random.Random, source: Source, keys: list[str]) -> Select:
    """Groups with totals: ROLLUP, CUBE or GROUPING SETS."""
    source = with_condition(draw, source)
    columns = tuple(Column(key, key, f"k{place}") for place, key in enumerate(keys))
    columns += tuple(Column(f"GROUPING({key})", f"GROUPING({key})", f"kt{place}") for place, key in enumerate(keys))
    columns += _numbers(draw, source)
    listed = ", ".join(keys)
    group = draw.choice([f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"])
    if len(keys) == 1:
        group = f"ROLLUP ({listed})"
    where = f" WHERE {' AND '.join(source.where)}" if source.where else ""
    ours, theirs = (
        ", ".join(f"{each.ours if is_ours else each.theirs} AS {each.name}" for each in columns)
        for is_ours in (True, False)
    )
    rest = f" FROM {source.text}{where} GROUP BY {group}"
    return Select(
        f"{source.before}SELECT {ours}{rest}", f"{source.before}SELECT {theirs}{rest}", columns, **asked(source)
    )
