"""Attacks on what is computed: after the noise, from public facts before it, and of units with a condition."""

import duckdb
import pyarrow as pa

import tacit
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import distance, exact_cells, protected

KEYS = ("a", "b", "c")
ROWS = pa.table({"k": [KEYS[n % 3] for n in range(90)], "x": [(n * n) % 10 for n in range(90)]})
SHOWN = (
    "SELECT k, SUM(x) - COUNT(*) AS d, RANK() OVER (ORDER BY SUM(x) DESC) AS place,"
    " SUM(COUNT(*)) OVER (ORDER BY k) AS running FROM t GROUP BY k"
)


@case(
    "Q53",
    title="what is computed after the noise is of released numbers alone, and its interval of all of them",
    feature="release",
)
def after_the_noise(_: Size) -> Evidence:
    """Ask for numbers, and for what follows from them: it is free, and equal to what anybody could compute."""
    table = tacit.table(
        ROWS, unit=tacit.ROW, name="t", budget=tacit.epsilon(9), ledger=tacit.TRYOUT,
        columns={"k": {"keys": list(KEYS)}, "x": {"between": (0, 9)}},
    )  # fmt: skip
    asked = table.sql("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k")
    known = {row["k"]: row for row in asked.answer(epsilon=1).to_dicts()}
    left = table.left.epsilon
    wrong = []
    total = 0
    for row in table.sql(SHOWN).answer(epsilon=1).to_dicts():
        n, s = ({end: known[row["k"]][f"{name}{end}"] for end in ("", "_low", "_high")} for name in ("n", "s"))
        total += n[""]
        checks = {
            "a difference": row["d"] == s[""] - n[""],
            "its low end": row["d_low"] <= s["_low"] - n["_high"],
            "its high end": row["d_high"] >= s["_high"] - n["_low"],
            "a rank": row["place"] == 1 + sum(other["s"] > s[""] for other in known.values()),
            "a running sum": row["running"] == total,
        }
        wrong += [f"{name} of {row['k']}" for name, holds in checks.items() if not holds]
    middle = sorted(row["s"] for row in known.values())[1]
    kept = table.sql(f"SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING SUM(x) > {middle}").answer(epsilon=1)
    expected = [(key, row["n"]) for key, row in known.items() if row["s"] > middle]
    wrong += [] if [(row["k"], row["n"]) for row in kept.to_dicts()] == expected else ["HAVING of what is not shown"]
    wrong += [] if table.left.epsilon == left else ["charged again"]
    return Evidence(not wrong, {"wrong": wrong[:5]})


EXPRESSIONS = (
    *("x + y", "x - y", "x * y", "x / y", "-x", "x % 4", "x // 2", "ABS(x)", "(x + 1) * (y - 3)", "ROUND(x / y, 1)"),
    *("CASE WHEN x > 0 THEN y ELSE x END", "CASE WHEN x > 4 THEN 20 WHEN x < -2 THEN -7 END", "COALESCE(x, 30)"),
    *("LEAST(x, y)", "LEAST(x, 1)", "GREATEST(x, 4)", "GREATEST(x, y) * 2", "LEAST(GREATEST(x, 0), 3)", "x > y"),
)


@case("Q54", title="an inferred range has every value that the declared ranges allow", feature="query")
def inferred_ranges(_: Size) -> Evidence:
    """Compute expressions on a whole grid of cells, NULL among them, in DuckDB: none is outside what was inferred."""
    columns = {"x": {"between": (-3, 5)}, "y": {"between": (2, 9)}}
    table = protected(pa.table({"id": [1], "x": [1], "y": [2]}), columns=columns)
    outside = []
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE xs AS SELECT UNNEST([NULL, -3, -2, -1, 0, 1, 2, 3, 4, 5]) AS x")
        engine.execute("CREATE TABLE ys AS SELECT UNNEST([NULL, 2, 3, 4, 5, 6, 7, 8, 9]) AS y")
        for written in EXPRESSIONS:
            between = table.sql(f"SELECT SUM({written}) AS s FROM t").query.outputs[0].aggregate.between
            found = engine.execute(f"SELECT CAST({written} AS DOUBLE) AS v FROM xs CROSS JOIN ys").fetchall()
            values = [value for (value,) in found if value is not None]
            slack = 1e-9  # a quotient is a float
            if between is None or min(values) < between[0] - slack or max(values) > between[1] + slack:
                outside.append(f"{written}: {min(values)} to {max(values)}, not in {between}")
    return Evidence(not outside, {"expressions": len(EXPRESSIONS), "outside": outside[:5]})


@case(
    "S51",
    title="of units with a condition each counts once in a group, and only with a row where it holds",
    feature="engine",
)
def units_with_a_condition(_: Size) -> Evidence:
    """Take units away: the count of a group moves by one at most, and is what counting by hand gives."""
    people = [(unit, KEYS[(unit + turn) % 3], (unit * turn) % 7) for unit in range(40) for turn in range(1 + unit % 5)]
    text = "SELECT k, COUNT(DISTINCT CASE WHEN x > 2 THEN id END) AS n FROM t GROUP BY k"

    def counted(rows: list[tuple[int, str, int]]) -> list[dict[tuple[object, ...], int]]:
        ids, keys, values = zip(*rows, strict=True)
        table = protected(
            pa.table({"id": ids, "k": keys, "x": values}), rows_per_unit=9, groups_per_unit=9,
            columns={"k": {"keys": list(KEYS)}},
        )  # fmt: skip
        return exact_cells(table.sql(text))

    everybody = counted(people)
    true = {key: len({unit for unit, at, x in people if at == key and x > 2}) for key in KEYS}
    wrong = [] if {key[0]: n for key, n in everybody[-1].items()} == true else [f"{everybody} is not {true}"]
    for gone in (0, 4, 9, 19, 24, 39):
        less = counted([row for row in people if row[0] != gone])
        moved = max(distance(one, two).linf for one, two in zip(everybody, less, strict=True))
        wrong += [f"{gone} moves a group by {moved}"] if moved > 1 else []
    return Evidence(not wrong, {"wrong": wrong[:5]})
