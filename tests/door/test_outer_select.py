"""A SELECT over a grouped one is put onto it, and means what DuckDB says; where the two are not one, it is refused.

Noise is nothing at this epsilon: a count of 600 rows moves with a chance below exp(-10^6).
"""

import duckdb
import pyarrow as pa
import pytest

import tacit

EPSILON = 10**9
BY_K = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


@pytest.fixture(scope="module")
def rows():
    places = range(600)
    return pa.table(
        {
            "id": [each % 97 for each in places],
            "k": ["aabccccdeeeeef"[each * each * 7 % 601 % 14] for each in places],
            "x": [each * 7 % 50 for each in places],
            "m": [1 + each % 4 for each in places],
        }
    )


@pytest.fixture(scope="module")
def table(rows):
    columns = {"x": {"between": (0, 50)}, "k": {"keys": list("abcdef")}, "m": {"keys": [1, 2, 3, 4]}}
    bounds = {"rows_per_unit": 64, "groups_per_unit": 64, "most_rows_per_unit": 64}
    budget = tacit.epsilon(10**18, delta="1e-6")
    with pytest.warns(tacit.LargeEpsilonWarning):
        table = tacit.table(rows, name="t", unit="id", budget=budget, ledger=":memory:", columns=columns, **bounds)
    return table  # noqa: RET504 - it is made while a warning is awaited


def answered(table, sql):
    with pytest.warns(tacit.LargeEpsilonWarning):
        answer = table.sql(sql).answer(epsilon=EPSILON)
    return [tuple(row[name] for name in row if not name.endswith(("_low", "_high"))) for row in answer.rows]


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH c AS ({BY_K}) SELECT k, n, RANK() OVER (ORDER BY n DESC, k) AS r FROM c ORDER BY r",
        f"SELECT * FROM ({BY_K}) WHERE n > 60 ORDER BY n DESC, k",
        f"SELECT k, n * 100.0 / SUM(n) OVER () AS share FROM ({BY_K}) s WHERE s.k <> 'a' ORDER BY share DESC LIMIT 3",
        "WITH a AS (SELECT * FROM t WHERE x > 10), b AS (SELECT k, m, COUNT(*) AS n, SUM(x) AS s FROM a GROUP BY ALL), "
        "c AS (SELECT k, m, s / n AS r, n FROM b WHERE n > 8) SELECT c.k, c.m, ROUND(c.r, 2) AS r FROM c ORDER BY k, m",
        "SELECT k, r FROM (SELECT k, RANK() OVER (ORDER BY COUNT(*) DESC, k) AS r FROM t GROUP BY k) WHERE r <= 2 "
        "ORDER BY r",
        "SELECT * FROM (SELECT k, SUM(x) AS total FROM t GROUP BY k ORDER BY total DESC, k LIMIT 3)",
        "SELECT total / n AS mean FROM (SELECT SUM(x) AS total, COUNT(*) AS n FROM t)",
        "SELECT k, CASE WHEN n > 60 THEN 'many' ELSE 'few' END AS size FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY 1 "
        "HAVING SUM(x) > 100) c WHERE NOT k IN ('a', 'b') ORDER BY 1",
        f"SELECT n FROM ({BY_K}) ORDER BY k DESC",
        f"WITH c AS ({BY_K}), d AS (SELECT k, n, RANK() OVER (ORDER BY n DESC, k) AS r FROM c) SELECT k, r FROM d "
        "WHERE r <= 3 ORDER BY r",
        f"SELECT k, n - LAG(n) OVER (ORDER BY k) AS change FROM ({BY_K}) ORDER BY k",
        "SELECT k, x FROM (SELECT k, SUM(x) AS x FROM t GROUP BY k HAVING SUM(x) > 1500) ORDER BY x, k",
        "SELECT m, x FROM (SELECT m, SUM(x) AS x FROM t GROUP BY m) WHERE x > 3 AND m > 1 OR m = 1 ORDER BY m",
        "SELECT half, n FROM (SELECT m // 2 = 1 AS half, COUNT(*) AS n FROM t GROUP BY half ORDER BY n) ORDER BY half",
    ],
)
def test_it_is_what_duckdb_makes_of_it(table, rows, sql):
    wanted = duckdb.connect().register("t", rows).execute(sql).fetchall()
    found = answered(table, sql)
    assert len(found) == len(wanted)
    for row, other in zip(found, wanted, strict=True):
        assert [each if isinstance(each, str | bool | None) else pytest.approx(float(each)) for each in other] == [
            each if isinstance(each, str | bool | None) else float(each) for each in row
        ]


def test_it_costs_what_the_grouped_one_costs(table):
    around = table.sql(f"SELECT k, RANK() OVER (ORDER BY n) AS r FROM ({BY_K}) WHERE n > 3")
    assert around.plan(epsilon=1).loss == table.sql(BY_K).plan(epsilon=1).loss


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT AVG(n) AS a FROM ({BY_K})", "would mix people before noise is added"),
        (f"SELECT k, n FROM ({BY_K} LIMIT 3) ORDER BY n", "LIMIT inside a subquery"),
        (f"SELECT k, y FROM ({BY_K})", "'y' is not a column of the subquery"),
        ("SELECT id, n FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id)", "'id' is the unit"),
        (
            "SELECT k, SUM(r) OVER () AS s FROM (SELECT k, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY k)",
            "inside a subquery",
        ),
        # in GROUP BY, x is the table's column and not the key of that name
        ("SELECT x, n FROM (SELECT x // 10 AS x, COUNT(*) AS n FROM t GROUP BY x)", "would mix people"),
    ],
)
def test_what_is_not_one_select_is_refused(table, sql, words):
    with pytest.raises(tacit.QueryRefused, match=words):
        table.sql(sql)
