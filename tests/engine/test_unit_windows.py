"""Windows over one person's rows, inside a subquery: the integers of DuckDB's own windows, on every engine."""

import duckdb
import pyarrow as pa
import pytest

from tacit.errors import QueryRefused
from tacit_gauntlet.stage.table import bounded_table, protected
from tests.engine.exact import on_path

BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 9, "most_rows_per_unit": 64}
VISITS = pa.table(
    {
        "id": ["a", "a", "a", "é", "é", None, "c", "a", "é"],
        "day": pa.array([3, 1, 1, 5, 4, 1, None, None, 4], pa.int32()).cast(pa.date32()),
        "ward": ["x", "x", "y", "y", "x", "x", None, "y", "x"],
        "cost": [1.5, 2.0, None, 4.0, float("nan"), 3.0, 6.0, 0.5, -0.0],
        "n": [1, 2, 4, 8, 16, 32, 64, 128, 256],
    }
)
KEYS = {"ward": {"keys": ["x", "y", None]}}
# all columns are in each order, so that no tie is left
ORDER = "ORDER BY day NULLS LAST, n"
INNER = (
    f"SELECT *, ROW_NUMBER() OVER (PARTITION BY id {ORDER}) AS v FROM visits",
    "SELECT *, RANK() OVER (PARTITION BY id ORDER BY day NULLS LAST) AS v FROM visits WHERE n > 1",
    "SELECT *, DENSE_RANK() OVER (PARTITION BY id ORDER BY day DESC NULLS LAST) AS v FROM visits",
    f"SELECT *, n - LAG(n, 2) OVER (PARTITION BY id, ward {ORDER}) AS v FROM visits",
    "SELECT *, LEAD(n) OVER (PARTITION BY id ORDER BY day DESC NULLS FIRST, n) AS v FROM visits",
    f"SELECT *, FIRST_VALUE(n) OVER (PARTITION BY ward, id {ORDER}) * 2 AS v FROM visits",
    f"SELECT *, n AS v FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY id {ORDER}) IN (2, 3)",
    "SELECT *, COALESCE(v0, 7) AS v FROM (SELECT *, LAG(n) OVER (PARTITION BY id ORDER BY n) AS v0 FROM visits)",
)


def asked(table, inner):
    sql = f"SELECT ward, COUNT(v) AS n, SUM(v) AS s FROM ({inner}) GROUP BY ward"
    return table.sql(sql, between={"s": (-999, 999)})


def expected(inner):
    with duckdb.connect() as connection:
        connection.register("given", VISITS)
        connection.execute("CREATE TABLE visits AS SELECT * FROM given WHERE id IS NOT NULL")
        rows = connection.execute(f"SELECT ward, COUNT(v), COALESCE(SUM(v), 0) FROM ({inner}) GROUP BY ward").fetchall()
    return {ward: (counted, int(total)) for ward, counted, total in rows}


def found(exact):
    counted, totals = exact.sums["counted_0"], exact.sums["total_0"]
    # a value counts in steps above its range's lowest
    rows = zip(exact.keys, counted, totals, strict=True)
    return {ward: (count, total - 999 * count) for (ward,), count, total in rows if count or total}


@pytest.mark.parametrize("inner", INNER)
def test_windows_have_the_integers_of_duckdb(engine, inner):
    table = engine(VISITS, name="visits", columns=KEYS, **BOUNDS)
    wanted = {ward: each for ward, each in expected(inner).items() if each[0]}
    assert found(bounded_table(asked(table, inner))) == wanted


@pytest.mark.parametrize("path", ["sql", "kernel", "patient"])
def test_every_path_has_the_same(path, kernel):
    question = asked(protected(VISITS, name="visits", columns=KEYS, **BOUNDS), INNER[0])
    question.session.engine._path = path
    with on_path("sql" if path == "sql" else "kernel", or_patient=path == "patient"):
        assert found(bounded_table(question)) == {ward: each for ward, each in expected(INNER[0]).items() if each[0]}


def test_windows_stand_in_joins_and_below_groups_of_the_unit():
    table = protected(VISITS, name="visits", columns=KEYS, **BOUNDS)
    first = "SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) = 1"
    joined = f"SELECT SUM(b.n) AS s FROM ({first}) a JOIN visits b ON a.id = b.id WHERE b.n > a.n"
    exact = bounded_table(table.sql(joined, between={"s": (0, 999)}))
    assert exact.sums["total_0"] == [2 + 4 + 128 + 16 + 256]
    by_unit = f"SELECT AVG(m) AS s FROM (SELECT id, MAX(n) AS m FROM ({first}) GROUP BY id)"
    assert bounded_table(table.sql(by_unit, between={"s": (0, 999)})).sums["total_0"] == [1 + 8 + 64]


def test_no_rows_at_all_have_windows(engine):
    table = engine(VISITS.slice(0, 0), name="visits", columns=KEYS, **BOUNDS)
    assert bounded_table(asked(table, INNER[0])).sums["rows"] == [0, 0, 0]


def test_two_windows_that_are_alike_are_one_and_a_plan_says_what_they_see():
    table = protected(VISITS, name="visits", columns=KEYS, **BOUNDS)
    window = "ROW_NUMBER() OVER (PARTITION BY id ORDER BY n)"
    question = table.sql(f"SELECT COUNT(*) FROM (SELECT {window} AS a, {window} + 1 AS b FROM visits) WHERE a < b")
    assert len(question.session.relation.windows) == 1
    assert "ROW_NUMBER over the rows of each unit" in str(question.plan(epsilon=1))


OF = "SELECT COUNT(*) FROM (SELECT *, {} AS v FROM visits)"
REFUSED = {
    OF.format("RANK() OVER (ORDER BY n)"): "compares rows of different people",
    OF.format("RANK() OVER (PARTITION BY ward ORDER BY n)"): "compares rows of different people",
    OF.format("RANK() OVER (PARTITION BY UPPER(id) ORDER BY n)"): "compares rows of different people",
    OF.format("SUM(n) OVER (PARTITION BY id ORDER BY n)"): "this function cannot be a window over one unit's rows",
    OF.format("ROW_NUMBER() OVER (PARTITION BY id)"): "ROW_NUMBER needs an order",
    OF.format("ROW_NUMBER() OVER (PARTITION BY id ORDER BY id)"): "is the unit",
    OF.format("LAG(id) OVER (PARTITION BY id ORDER BY n)"): "is the unit",
    OF.format("LAG(n, 0) OVER (PARTITION BY id ORDER BY n)"): "the distance must be a whole number",
    OF.format("LAG(n, 1, 0) OVER (PARTITION BY id ORDER BY n)"): "not in the language",
    OF.format("LAG(n IGNORE NULLS) OVER (PARTITION BY id ORDER BY n)"): "cannot be a window",
    "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS v, RANK() OVER (PARTITION BY id ORDER BY ward) AS r FROM visits"
    " GROUP BY id, ward)": "compares rows of different people",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE v.id = w.id"
    " QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) = 1)": "EXISTS takes a SELECT without",
}


@pytest.mark.parametrize(("sql", "said"), REFUSED.items())
def test_a_window_that_could_see_others_is_refused(sql, said):
    with pytest.raises(QueryRefused, match=said):
        protected(VISITS, name="visits", columns=KEYS, **BOUNDS).sql(sql)
