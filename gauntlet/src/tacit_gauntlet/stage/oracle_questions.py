"""Questions made up from a grammar about visits (v), people (p) and public wards (w), and what is declared of them.

Every shape that SQL has here is among them: plain and grouped, ROLLUP and CUBE, UNION ALL, DISTINCT, subqueries by the
unit, joins of each kind, IN and EXISTS. What is declared may be a lie: the most rows of a unit, ranges, and bounds that
are far too small.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tacit import epsilon
from tacit_gauntlet.stage.fuzz import Chooser
from tacit_gauntlet.stage.worlds import Neighbours

WARDS = pa.table({"g": ["A", "B", "C", ""], "floor": [1, 2, 2, None], "beds": [10, 20, None, 15]})
NUMBERS = ("x", "y", "k", "d")
CONDITIONS = (
    *("x > 1", "y < 10", "g <> 'A'", "g IS NULL", "b", "NOT b", "k IN (0, 1)", "x IS NOT NULL", "YEAR(t) = 2024"),
    *("x / y > 1", "d > 1", "LENGTH(g) > 2"),
)
KEYS = ("", "", "g", "g", "k", "b", "g, k", "CASE WHEN x > 1 THEN 'high' ELSE 'low' END", "YEAR(t)")
OF_A_UNIT = {
    "n": "COUNT(*)",
    "sx": "SUM(x)",
    "ax": "AVG(x)",
    "lx": "MIN(x)",
    "hy": "MAX(y)",
    "sy": "SUM(y)",
    "sd": "SUM(d)",
    "ad": "AVG(d)",
    "dg": "COUNT(DISTINCT g)",
}


def declared_of(choose: Chooser, neighbours: Neighbours) -> dict[str, Any]:
    """Return what is declared of the visits, true or not."""
    ranges: Mapping[str, tuple[tuple[float, float], ...]] = {
        "x": ((0, 10), (-5, 5), (0, 1000), (-1e6, 1e6)),
        "y": ((0, 10), (-100, 100)),
        "d": ((0, 5),),
    }
    columns: dict[str, Any] = {
        name: {"between": choose.one(some)} for name, some in ranges.items() if choose.number(5) < 2
    }
    columns |= {"g": {"keys": ["A", "B", "C", "ü"]}} if choose.number(5) < 3 else {}
    columns |= {"k": {"keys": [0, 1, 2]}} if choose.number(2) else {}
    columns["d"] = {"type": "decimal", **columns.get("d", {})}  # an engine elsewhere reads it only if that is declared
    bounds: dict[str, Any] = {}
    for name, values in {
        "rows_per_unit": (1, 2, 3),
        "groups_per_unit": (1, 2, 3),
        "most_rows_per_unit": (1, 2, 5),
    }.items():
        bounds |= {name: choose.one(values)} if choose.number(4) == 0 else {}
    budget = epsilon(10**6, delta="1e-6") if choose.number(6) else epsilon(10**6)
    return {"neighbours": neighbours, "budget": budget, "columns": columns, **bounds}


def question_of(choose: Chooser, shape: str) -> str:
    """Return the text of a question of some shape."""
    return SHAPES[shape](choose)


def _number(choose: Chooser, columns: tuple[str, ...]) -> str:
    name = choose.one(columns)
    forms = ("{}", "{}", "{}", "{} * 2", "{} - 1", "ABS({})", "LEAST({}, 50)", "{} / 3", "COALESCE({}, 1)", "{} * {}")
    return choose.one((*forms, "CASE WHEN {} > 1 THEN {} ELSE 0 END")).format(name, name)


def _aggregates(choose: Chooser, columns: tuple[str, ...], most: int = 3) -> str:
    forms = (
        *("COUNT(*)", "COUNT(*)", "COUNT({0})", "COUNT(DISTINCT u)", "SUM({0})", "SUM({0})", "AVG({0})", "AVG({0})"),
        *("VAR_POP({0})", "STDDEV({0})", "COVAR_POP({0}, {1})", "CORR({0}, {1})", "MEDIAN({0})", "QUANTILE({0}, 0.9)"),
        *("MIN({0})", "MAX({0})", "COUNT(DISTINCT {2})", "SUM({0}) FILTER (WHERE {2} > 1)", "COUNT_IF({2} > 1)"),
        "REGR_SLOPE({0}, {1})",
    )
    return ", ".join(
        f"{form.format(_number(choose, columns), _number(choose, columns), columns[0])} AS a{at}"
        for at, form in enumerate(choose.some(forms, most))
    )


def _where(choose: Chooser, conditions: tuple[str, ...] = CONDITIONS) -> str:
    if choose.number(2):
        return ""
    return " WHERE " + choose.one((" AND ", " OR ")).join(choose.some(conditions, 2))


def _select(choose: Chooser, key: str, columns: tuple[str, ...], rest: str) -> str:
    found = _aggregates(choose, columns)
    return f"SELECT {key}, {found} {rest} GROUP BY {key}" if key else f"SELECT {found} {rest}"


def _plain(choose: Chooser) -> str:
    return _select(choose, choose.one(KEYS), NUMBERS, f"FROM v{_where(choose)}")


def _grouping_sets(choose: Chooser) -> str:
    keys = choose.one(("ROLLUP (g, k)", "CUBE (g, b)", "ROLLUP (b)", "GROUPING SETS ((g), (k))"))
    names = "g, k" if "k" in keys else "g, b" if "g" in keys else "b"
    return f"SELECT {names}, {_aggregates(choose, NUMBERS, 2)} FROM v{_where(choose)} GROUP BY {keys}"


def _union(choose: Chooser) -> str:
    first, second = (f"{_aggregates(choose, NUMBERS, 1)} FROM v{_where(choose)}" for _ in range(2))
    return f"SELECT 'one' AS part, {first} UNION ALL SELECT 'two', {second}"


def _of_each_unit(choose: Chooser, key: str = "", rows: str = "v") -> tuple[str, tuple[str, ...]]:
    """Return a subquery by the unit, and the names of its numbers."""
    names = tuple(choose.some(tuple(OF_A_UNIT), 4))
    listed, having = f", {key}" if key else "", choose.one(("", "", " HAVING COUNT(*) > 1", " HAVING SUM(x) > 0"))
    made = ", ".join(f"{OF_A_UNIT[name]} AS {name}" for name in names)
    return f"(SELECT u{listed}, {made} FROM {rows}{_where(choose)} GROUP BY u{listed}{having})", names


def _per_unit(choose: Chooser) -> str:
    key = choose.one(("", "", "g", "k"))
    rows, names = _of_each_unit(choose, key)
    outer = key if key and choose.number(4) else choose.one(("", f"LEAST({names[0]}, 5)", f"{names[0]} > 1"))
    where = _where(choose, tuple(f"{name} {test}" for name in names for test in ("> 1", "IS NULL")))
    return _select(choose, outer, names, f"FROM {rows}{where}")


def _nested(choose: Chooser) -> str:
    rows, names = _of_each_unit(choose, rows="(SELECT u, g, k, b, t, d, x * 2 AS x, y FROM v)")
    return _select(choose, "", names, f"FROM {rows}")


def _often(choose: Chooser) -> str:
    rows, names = _of_each_unit(choose)
    key = choose.one(("", "sex"))
    return f"WITH often AS {rows} " + _select(choose, key, (*names, "age"), "FROM p JOIN often USING (u)")


def _distinct(choose: Chooser) -> str:
    rows = f"FROM (SELECT DISTINCT u, g FROM v{_where(choose)})"
    return f"SELECT g, COUNT(*) AS n {rows} GROUP BY g" if choose.number(2) else f"SELECT COUNT(*) AS n {rows}"


def _joined(choose: Chooser) -> str:
    """Return a question of visits and people, matched by the unit, and sometimes by another column too."""
    also = choose.one(("", " AND p.k = v.k"))
    how, keys = choose.one(
        (
            (f"FROM v JOIN p ON v.u = p.u{also}", ("", "sex", "age > 18", "g", "sex, g")),
            (f"FROM p JOIN v ON p.u = v.u{also}", ("", "sex")),
            (f"FROM p LEFT JOIN v ON p.u = v.u{also}", ("", "sex", "v.u IS NULL")),
        )
    )
    where = _where(choose, ("age > 18", "x > 1", "g <> 'A'", "sex = 'f'"))
    return _select(choose, choose.one(keys), ("x", "y", "age"), how + where)


def _with_wards(choose: Chooser) -> str:
    kind, key = choose.one(("JOIN", "LEFT JOIN")), choose.one(("", "floor", "w.g"))
    return _select(choose, key, ("x", "y", "beds"), f"FROM v {kind} w ON v.g = w.g")


def _some_units(choose: Chooser) -> str:
    """Return a question of those visits whose unit has, or has not, some row among the people."""
    also = choose.one(("", " AND v.k = p.k"))
    forms = (
        *(f"FROM v SEMI JOIN p ON v.u = p.u{also}", f"FROM v ANTI JOIN p ON v.u = p.u{also}"),
        *("FROM v WHERE u IN (SELECT u FROM p WHERE age > 18)", "FROM v WHERE u NOT IN (SELECT u FROM p)"),
        "FROM v WHERE g NOT IN (SELECT g FROM w WHERE beds > 12)",
    )
    return _select(choose, choose.one(("", "g")), NUMBERS, choose.one(forms))


def _exists(choose: Chooser) -> str:
    form = "FROM p WHERE {}EXISTS (SELECT 1 FROM v WHERE v.u = p.u AND x > 1)".format(choose.one(("", "NOT ")))
    return _select(choose, choose.one(("", "sex")), ("age", "k"), form)


OF_ROWS: Mapping[str, Callable[[Chooser], str]] = {
    "plain": _plain,
    "grouping sets": _grouping_sets,
    "union": _union,
    "wards": _with_wards,
}
SHAPES: Mapping[str, Callable[[Chooser], str]] = {
    **OF_ROWS,
    "per unit": _per_unit,
    "nested": _nested,
    "joined to what a unit has": _often,
    "distinct": _distinct,
    "joined": _joined,
    "some units": _some_units,
    "exists": _exists,
}
