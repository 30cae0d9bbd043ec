"""What a SELECT computes from its answer: right numbers where noise is nothing, intervals that hold, free repeats."""

import datetime as dt
import json
import random

import duckdb
import pyarrow as pa
import pytest

import tacit
from tacit.answer.computed import computed_notes
from tacit.errors import InvalidParameter, QueryRefused
from tacit_gauntlet.stage.table import protected

DRAW = random.Random(5)
PEOPLE = 600
ROWS = pa.table(
    {
        "id": range(PEOPLE),
        "ward": [DRAW.choice("ABCD") for _ in range(PEOPLE)],
        "sex": [DRAW.choice("mf") for _ in range(PEOPLE)],
        "age": [DRAW.randint(0, 99) for _ in range(PEOPLE)],
        "cost": pa.array([round(DRAW.uniform(0, 100), 2) for _ in range(PEOPLE)]),
        "day": [dt.date(2020, 1, 1) + dt.timedelta(days=DRAW.randint(0, 900)) for _ in range(PEOPLE)],
    }
)
COLUMNS = {
    "ward": {"keys": list("ABCD")},
    "sex": {"keys": ["m", "f"]},
    "age": {"between": (0, 100)},
    "cost": {"between": (0, 100), "step": "0.01"},
}
EXACT = 10**5  # noise of less than a thousandth, so that whole numbers come out right


def table(**declared):
    usual = {"rows_per_unit": 1, "groups_per_unit": 1, "columns": COLUMNS, "budget": tacit.epsilon(10**9, delta="1e-6")}
    return protected(ROWS, **(usual | declared))


@pytest.fixture(scope="module")
def exact():
    return table()


SELECTS = [
    "SELECT ward, 100.0 * SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) / COUNT(*) AS x FROM t GROUP BY ward "
    "ORDER BY ward",
    "SELECT ward, ROUND(AVG(cost), 1) AS x FROM t GROUP BY ward ORDER BY ward",
    "SELECT 1 + SUM(age) AS x, SUM(age) - COUNT(*) AS y, -COUNT(*) AS z FROM t",
    "SELECT SUM(cost) / COUNT(cost) AS x, SUM(cost) / NULLIF(COUNT(*), 0) AS y FROM t",
    "SELECT UPPER(LOWER(ward)) || sex AS k, COUNT(*) * 2 AS x FROM t GROUP BY ward, sex ORDER BY k",
    "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward HAVING AVG(age) > 40 AND SUM(age) % 2 >= 0 "
    "ORDER BY SUM(cost) DESC",
    "SELECT ward, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY ward "
    "ORDER BY share DESC, ward",
    "SELECT ward, sex, RANK() OVER (PARTITION BY ward ORDER BY AVG(cost) DESC) AS r FROM t GROUP BY ward, sex "
    "QUALIFY r = 1 ORDER BY ward",
    "SELECT ward, SUM(COUNT(*)) OVER (ORDER BY ward) AS x, LAG(COUNT(*)) OVER (ORDER BY ward) AS y FROM t "
    "GROUP BY ward ORDER BY ward",
    "SELECT ward FROM t GROUP BY ward ORDER BY ward",
    "SELECT DISTINCT ward, sex FROM t ORDER BY 1 DESC, 2",
    "SELECT DISTINCT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size FROM t GROUP BY ward",
    "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward ORDER BY n DESC, ward LIMIT 2 OFFSET 1",
    "SELECT ward, LAG(COUNT(*)) OVER (ORDER BY ward) AS x FROM t GROUP BY ward ORDER BY x NULLS FIRST, ward",
    "SELECT ward, LAG(COUNT(*)) OVER (ORDER BY ward) AS x FROM t GROUP BY ward ORDER BY x DESC NULLS LAST, ward",
    "SELECT sex, COUNT(*) AS n, n * 2 + 1 AS m FROM t GROUP BY sex ORDER BY n + 0 DESC",
    "SELECT MAX(age) - MIN(age) AS x FROM t",
    "SELECT AVG(age), AVG(age), COUNT(*), STDDEV_POP(age) / AVG(age) AS cv FROM t",
    "SELECT CAST(AVG(cost) AS INT) AS a, FLOOR(AVG(cost)) AS b, GREATEST(COUNT(*), 3) AS c, "
    "COALESCE(AVG(age), 0) AS d FROM t",
    "SELECT CASE WHEN COUNT(*) > 10 THEN AVG(age) END AS x, COUNT(*) > 10 AS y FROM t",
]


@pytest.mark.parametrize("text", SELECTS)
def test_without_noise_a_select_is_duckdbs(exact, text):
    found = exact.sql(text).answer(epsilon=EXACT, noise="laplace")
    db = duckdb.connect()
    db.register("t", ROWS)
    wanted = db.execute(text).fetchall()
    assert len(found) == len(wanted)
    for row, other in zip(found.rows, wanted, strict=True):
        for name, cell in zip(found.columns, other, strict=True):
            value = row[name]
            near = isinstance(value, float | int) and not isinstance(value, bool) and cell is not None
            assert value == (pytest.approx(float(cell), abs=2e-2) if near else cell), (name, row, other)
            if name in found.aggregates and row[f"{name}_low"] is not None and cell is not None:
                assert row[f"{name}_low"] - 1e-6 <= float(cell) <= row[f"{name}_high"] + 1e-6, (name, row, other)


def test_what_is_shown_is_free_where_the_numbers_were_paid_for():
    asked = table()
    first = asked.sql("SELECT ward, COUNT(*) AS n, AVG(age) AS a, SUM(cost) AS c FROM t GROUP BY ward").answer(
        epsilon=1
    )
    for text in [
        "SELECT ward, ROUND(SUM(cost), 1) AS c, 2 * AVG(age) AS a2, COUNT(*) AS n FROM t GROUP BY ward",
        "SELECT UPPER(ward) AS w, RANK() OVER (ORDER BY AVG(age)) AS r, COUNT(*) - SUM(cost) AS d FROM t GROUP BY ward",
        "SELECT ward FROM t GROUP BY ward HAVING COUNT(*) > 3 AND AVG(age) > 0 ORDER BY SUM(cost) LIMIT 2 OFFSET 1",
    ]:
        again = asked.sql(text).answer(epsilon=1)
        assert again.facts.receipt["entry"] == first.facts.receipt["entry"], text
        assert again.facts.free
    # an aggregate that only HAVING names is asked of the rows, and paid for
    other = asked.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward HAVING MAX(age) > 3").answer(epsilon=1)
    assert not other.facts.free


def test_a_computed_number_is_computed_from_the_numbers_that_are_shown():
    asked = table()
    shown = asked.sql("SELECT ward, COUNT(*) AS n, COUNT(*) * 10 AS ten FROM t GROUP BY ward").answer(epsilon=1)
    for row in shown.rows:
        assert row["ten"] == 10 * row["n"]
        assert (row["ten_low"], row["ten_high"]) == (10 * row["n_low"], 10 * row["n_high"])
    assert not [note for note in shown.facts.notes if "conservative" in note]


def test_intervals_of_several_numbers_hold_at_once():
    """Each interval misses one time in twenty at most, so of 300 at most 40, but with chance below 1e-9."""
    missed = 0
    truth = {}
    db = duckdb.connect()
    db.register("t", ROWS)
    for ward, share, ratio in db.execute(
        "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER (), SUM(cost) / SUM(age) FROM t GROUP BY ward"
    ).fetchall():
        truth[ward] = (share, ratio)
    asked = table()
    text = "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS share, SUM(cost) / SUM(age) AS ratio FROM t GROUP BY ward"
    for run in range(38):
        answer = asked.sql(text).answer(epsilon=2 + run / 1000)
        for row in answer.rows:
            for name, true in zip(("share", "ratio"), truth[row["ward"]], strict=True):
                missed += not row[f"{name}_low"] <= true <= row[f"{name}_high"]
    assert missed <= 40
    assert any("share, ratio are computed from several released numbers" in note for note in answer.facts.notes)


def test_a_divisor_that_may_be_zero_has_no_interval():
    asked = table().sql("SELECT AVG(age) / (COUNT(*) - 600) AS x FROM t")
    answer = asked.answer(epsilon=1, confidence="0.999999999")  # so often 0 is in the divisor's interval
    (row,) = answer.rows
    assert row["x_low"] is None
    assert row["x_high"] is None
    assert "not known" in str(answer) or row["x"] is None
    assert json.loads(answer.to_json())["rows"][0]["x_low"] is None
    assert answer.to_arrow().column("x_low").null_count == 1


def test_a_spread_of_quantiles_says_at_which_confidence_it_holds():
    answer = table().sql("SELECT MAX(age) - MIN(age) AS spread FROM t").answer(epsilon=1)
    assert "The interval of spread, computed from quantiles, holds with 90 % probability." in str(answer)
    assert computed_notes([], {}, answer.facts.confidence) == ((), ())


def test_every_way_out_has_the_columns_that_are_shown(tmp_path):
    answer = (
        table()
        .sql(
            "SELECT LOWER(ward) AS w, ROUND(AVG(cost), 1) AS c, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r, "
            "COUNT(*) > 5 AS many FROM t GROUP BY ward HAVING SUM(age) > 0 ORDER BY w"
        )
        .answer(epsilon=1)
    )
    names = ["w", "c", "c_low", "c_high", "n", "n_low", "n_high", "r", "r_low", "r_high", "many"]
    assert answer.names == names
    assert list(answer.to_pandas().columns) == names
    assert answer.to_csv().splitlines()[0] == ",".join(names)
    assert list(json.loads(answer.to_json())["rows"][0]) == names
    assert answer.to_arrow().schema.field("many").type == pa.bool_()
    assert answer.to_arrow().schema.field("r").type == pa.int64()
    assert "not known" in str(answer)
    assert "<th" in answer._repr_html_()
    assert [list(row) for row in answer.rows] == [names] * len(answer)  # and nothing that was made up on the way
    assert all(least <= row["n"] for least, row in zip(answer.at_least("n"), answer.rows, strict=True))
    with pytest.raises(InvalidParameter, match="'c' has no lower end"):
        answer.at_least("c")
    assert answer.kinds == {"c": "computed", "n": "count", "r": "computed"}
    answer.plot(tmp_path / "answer.svg")


def test_consistency_is_made_before_anything_is_computed():
    asked = table(columns=COLUMNS | {"ward": {"keys": ["A", "nobody", "none", "no one", "nil"]}})
    text = "SELECT ward, COUNT(*) AS n, COUNT(*) + 1000 AS x FROM t GROUP BY ward"
    for row in asked.sql(text).answer(epsilon="0.05", consistent=True).rows:
        assert row["n"] >= 0
        assert row["x"] == row["n"] + 1000


def test_an_error_of_a_computed_column_is_solved_for_by_how_far_it_moves():
    asked = table(population=600)
    question = asked.sql("SELECT ward, 100 * AVG(age) + 3 AS a, COUNT(*) AS n FROM t GROUP BY ward")
    of_part = asked.sql("SELECT ward, AVG(age) AS a, COUNT(*) AS n FROM t GROUP BY ward")
    words = {"for_groups_of": 100}
    solved = question.plan(error={"a": 300}, **words).solved
    assert solved.epsilon == of_part.plan(error={"a": 3}, **words).solved.epsilon
    assert solved.epsilon == question.plan(error={"AVG(age)": 3}, **words).solved.epsilon
    assert "a ± 300 in groups of 100 rows" in solved.words
    both = question.plan(error=300, **words).solved
    assert both.epsilon == max(solved.epsilon, of_part.plan(error={"n": 300}).solved.epsilon)
    assert question.plan(error={"a": "3%"}, **words).solved == question.plan(error={"a": 300}, **words).solved


def test_an_error_of_a_sum_of_aggregates_is_that_of_all_of_them_at_once():
    asked = table(population=600)
    one = asked.sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM t")
    both = asked.sql("SELECT COUNT(*) + SUM(age) / 50 AS x, COUNT(*) AS n, SUM(age) AS s FROM t")
    epsilon = both.plan(error={"x": 60}).solved.epsilon
    assert epsilon > one.plan(error={"n": 60, "s": 3000}).solved.epsilon
    assert epsilon <= one.plan(error={"n": 30, "s": 1500}, confidence=0.975).solved.epsilon
    rounded = asked.sql("SELECT ROUND(COUNT(*) / 100, 0) AS x FROM t")
    with pytest.raises(QueryRefused, match="it is rounded, to within 1"):
        rounded.plan(error={"x": 1})
    alone = asked.sql("SELECT COUNT(*) AS n FROM t")
    assert rounded.plan(error={"x": 2}).solved.epsilon == alone.plan(error=100).solved.epsilon


def test_an_error_that_depends_on_the_data_is_refused_in_words():
    asked = table(population=600)
    question = asked.sql("SELECT SUM(age) / SUM(cost) AS a, MAX(age) - MIN(age) AS b, COUNT(*) AS n FROM t")
    with pytest.raises(InvalidParameter, match=r"'a' is depends on the values of SUM\(age\) and SUM\(cost\)"):
        question.plan(error={"a": 1})
    with pytest.raises(QueryRefused, match="'b' depends on the data: it is computed from a quantile"):
        question.plan(error={"b": "1%"}, for_groups_of=100)
    assert question.plan(epsilon=1, weights={"SUM(age)": 2, "n": 1}).loss is not None


def test_a_plan_says_what_is_computed_after_the_noise():
    text = str(
        table()
        .sql(
            "SELECT ward, 100 * AVG(age) AS a, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) AS s FROM t "
            "GROUP BY ward, sex HAVING COUNT(*) > 3 QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 5 "
            "ORDER BY s DESC LIMIT 3 OFFSET 1"
        )
        .plan(epsilon=1)
    )
    assert (
        "After the noise, free: rows where COUNT(*) > 3; a = 1e2 * AVG(age); "
        "s = COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex); rows where RANK() OVER (ORDER BY COUNT(*) DESC) <= 5; "
        "in the order of COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) DESC; at most 3 rows after the first 1."
    ) in text.replace("100.0e0", "1e2")


def test_keys_that_are_found_are_shown_alone():
    asked = table(columns={"age": {"between": (0, 100)}})
    found = asked.sql("SELECT DISTINCT ward FROM t").answer(epsilon=100)
    assert sorted(row["ward"] for row in found.rows) == list("ABCD")
    assert found.names == ["ward"]
    rows = table(unit=tacit.ROW, columns={"age": {"between": (0, 100)}}, rows_per_unit=None, groups_per_unit=None)
    assert len(rows.sql("SELECT ward, sex FROM t GROUP BY ward, sex").answer(epsilon=100)) == 8


def test_rows_picked_by_what_is_not_shown_are_picked_by_noise():
    asked = table()
    for tail in ("HAVING AVG(age) > 3", "ORDER BY AVG(age) LIMIT 2", "QUALIFY RANK() OVER (ORDER BY AVG(age)) <= 2"):
        answer = asked.sql(f"SELECT ward, COUNT(*) AS n FROM t GROUP BY ward {tail}").answer(epsilon=1)
        assert "picking of rows by their noisy numbers" in answer.facts.reading, tail
    plain = asked.sql("SELECT ward, COUNT(*) AS n FROM t GROUP BY ward ORDER BY ward LIMIT 2").answer(epsilon=1)
    assert "noisy numbers" not in plain.facts.reading
