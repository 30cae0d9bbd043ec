"""Questions about several tables count what DuckDB counts, are charged to one budget, and say what a join does."""

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.engine.engine import columns_named
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.table import bounded_plan, exact_table, plan_of

VISITS = pa.table(
    {
        "id": pa.array([1, 1, 1, 2, 2, 3, 4, None, 5], pa.int64()),
        "ward": ["a", "b", None, "a", "z", "c", "a", "a", "b"],
        "days": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "age": [0, 1, 0, 1, 0, 1, 0, 1, 0],
    }
)
PATIENTS = pa.table(
    {
        "id": pa.array([1, 2, 2, 3, 7, None], pa.int64()),
        "age": pa.array([70, 50, 51, None, 20, 30], pa.int64()),
        "sex": ["f", "m", "f", None, "f", "m"],
    }
)
WARDS = pa.table({"ward": ["a", "b", "c", None], "beds": [10, 20, 30, 40], "kind": ["x", "x", "y", "y"]})
BUDGET = tacit.epsilon(1000, delta=1e-6)
BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 64, "most_rows_per_unit": 64}


def tables(ledger=None, visits=VISITS, patients=PATIENTS, **declared):
    ledger = ledger or open_ledger(":memory:")
    given = BOUNDS | declared
    return (
        tacit.table(visits, unit="id", name="visits", budget=BUDGET, ledger=ledger, **given),
        tacit.table(patients, unit="id", name="patients", same_people_as="visits", ledger=ledger, **given),
        tacit.public(WARDS, name="wards"),
    )


@pytest.fixture(scope="module", name="opened")
def _opened():
    with pytest.warns(tacit.LargeEpsilonWarning):
        return tables()


def sums(question):
    """Return each group's exact number of rows, by key."""
    exact = exact_table(question, plan=bounded_plan(question))
    return {key: count for key, count in zip(exact.keys, exact.sums["rows"], strict=True) if count}


def counted(sql):
    """Return what DuckDB counts, where rows that belong to nobody are left out of both protected tables."""
    with duckdb.connect() as connection:
        for name, rows in (("visits", VISITS), ("patients", PATIENTS), ("wards", WARDS)):
            connection.register(f"all_{name}", rows)
            kept = "" if name == "wards" else "WHERE id IS NOT NULL"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM all_{name} {kept}")
        rows = connection.execute(sql).fetchall()
    return {row[:-1]: row[-1] for row in rows if row[-1]}


JOINS = [
    "SELECT COUNT(*) FROM visits JOIN patients USING (id)",
    "SELECT sex, COUNT(*) FROM visits LEFT JOIN patients USING (id) GROUP BY sex",
    "SELECT sex, COUNT(*) FROM visits LEFT JOIN patients ON visits.id = patients.id AND patients.age > 50 GROUP BY sex",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.id = patients.id AND patients.age > 10 * days",
    "SELECT COUNT(*) FROM visits JOIN patients ON (patients.id = visits.id) WHERE patients.age IS NULL",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.id = patients.id AND visits.age + 69 = patients.age",
    "SELECT kind, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY kind",
    "SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ward",
    "SELECT kind, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY kind",
    "SELECT kind, COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward AND beds > 10 GROUP BY kind",
    "SELECT COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward WHERE wards.ward IS NULL",
    "SELECT COUNT(*) FROM visits JOIN wards ON UPPER(visits.ward) = UPPER(wards.ward)",
    "SELECT COUNT(*) FROM visits JOIN (SELECT ward AS w, beds * 2 AS b FROM wards WHERE beds > 10) x"
    " ON visits.ward = x.w WHERE b < 50",
    "SELECT COUNT(*) FROM wards JOIN visits USING (ward) WHERE beds < 30",
    "SELECT kind, sex, COUNT(*) FROM visits JOIN wards USING (ward) JOIN patients USING (id) GROUP BY kind, sex",
    "SELECT COUNT(*) FROM patients JOIN (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) t USING (id) WHERE n > 1",
    "SELECT COUNT(*) FROM visits JOIN visits AS later ON visits.id = later.id WHERE visits.days < later.days",
    "SELECT COUNT(*) FROM (SELECT id, MAX(beds) AS b FROM visits JOIN wards USING (ward) GROUP BY id) WHERE b > 10",
    "WITH old AS (SELECT id FROM patients WHERE age > 50) SELECT COUNT(*) FROM visits JOIN old USING (id)",
    "SELECT COUNT(*) FROM visits SEMI JOIN patients USING (id)",
    "SELECT COUNT(*) FROM visits ANTI JOIN patients ON visits.id = patients.id AND patients.age > 50",
    "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)",
    "SELECT COUNT(*) FROM visits WHERE id IN (SELECT id FROM patients WHERE age > 50)",
    "SELECT COUNT(*) FROM visits WHERE id NOT IN (SELECT id FROM patients WHERE sex = 'f')",
    "SELECT COUNT(*) FROM visits WHERE NOT (id IN (SELECT id FROM patients)) OR days = 1",
    "SELECT COUNT(*) FROM visits WHERE id IN (SELECT id FROM patients GROUP BY id HAVING COUNT(*) > 1)",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients WHERE patients.id = visits.id AND sex = 'f')",
    "SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT * FROM patients WHERE patients.id = visits.id AND age > 50)",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards WHERE wards.ward = visits.ward AND beds > 10)",
    "SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT 1 FROM wards WHERE wards.ward = visits.ward)",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds > 10)",
    "SELECT COUNT(*) FROM visits WHERE ward NOT IN (SELECT ward FROM wards)",
    "SELECT COUNT(*) FROM visits WHERE ward NOT IN (SELECT ward FROM wards WHERE beds < 30)",
    "SELECT COUNT(*) FROM visits WHERE ward NOT IN (SELECT ward FROM wards WHERE beds < 0)",
    "SELECT COUNT(*) FROM visits WHERE (ward IN (SELECT ward FROM wards WHERE beds > 20)) IS NULL",
    "SELECT COUNT(*) FROM visits WHERE id IN (SELECT beds - 8 FROM wards)",
    "SELECT sex, COUNT(*) FROM visits v, patients p WHERE v.id = p.id AND days > 0 GROUP BY sex",
    "SELECT COUNT(*) FROM wards, visits, patients WHERE (wards.ward = visits.ward) AND visits.id = patients.id",
    "SELECT COUNT(*) FROM visits CROSS JOIN wards WHERE visits.ward = wards.ward AND (beds > 10 OR days = 1)",
    "SELECT COUNT(*) FROM visits WHERE EXISTS"
    " (SELECT 1 FROM patients p, visits w WHERE p.id = w.id AND w.id = visits.id)",
    "SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward) WHERE wards.ward IS NULL",
    "SELECT COUNT(*) FROM visits LEFT JOIN patients ON visits.id = patients.id WHERE patients.id IS NULL",
    "SELECT COUNT(*) FROM visits LEFT JOIN patients USING (id) WHERE patients.id IS NOT NULL AND days > 1",
    "SELECT p.id IS NULL AS x, COUNT(*) FROM visits v LEFT JOIN patients p ON v.id = p.id AND p.age > 50 GROUP BY x",
    "SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT id, age FROM patients WHERE sex = 'f') p ON v.id = p.id"
    " LEFT JOIN wards w USING (ward) WHERE p.id IS NULL AND w.ward IS NOT NULL",
]


@pytest.mark.parametrize("sql", JOINS)
def test_a_question_about_several_tables_counts_what_duckdb_counts(sql, opened):
    visits, patients, wards = opened
    assert sums(visits.sql(sql, tables=[patients, wards])) == counted(sql)


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        ("HAVING v.ward > 'a'", ["b", "c"]),
        ("ORDER BY v.ward || '' DESC LIMIT 2", ["c", "b"]),
        ("QUALIFY RANK() OVER (ORDER BY v.ward) < 3", ["a", "b"]),
    ],
)
def test_a_key_that_both_tables_have_is_named_with_its_table_after_the_noise(rest, shown):
    people = pa.table({"id": [1, 2, 3], "ward": ["a", "b", "c"]})
    known = {"ward": {"keys": ["a", "b", "c"]}}
    visits = tacit.table(people, unit="id", name="visits", budget=tacit.epsilon(9), columns=known)
    wards = tacit.public(pa.table({"ward": ["a", "b", "c"], "beds": [1, 2, 3]}), name="wards")
    sql = f"SELECT v.ward AS k, COUNT(*) AS n FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY 1 {rest}"
    assert [row["k"] for row in visits.sql(sql, tables=[wards]).answer(epsilon=1).rows] == shown


def test_tables_in_files_are_joined_as_frames_are(tmp_path):
    for name, rows in (("visits", VISITS), ("patients", PATIENTS)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    with pytest.warns(tacit.LargeEpsilonWarning):
        visits, patients, wards = tables(visits=tmp_path / "visits.parquet", patients=tmp_path / "patients.parquet")
    for sql in (JOINS[1], JOINS[14], JOINS[16], JOINS[23]):
        assert sums(visits.sql(sql, tables=[patients, wards])) == counted(sql)


def test_python_joins_ask_what_sql_asks(opened):
    visits, patients, wards = opened
    pairs = [
        (visits.join(wards, on="ward").group_by("kind"), JOINS[6]),
        (visits.join(wards, on="ward", how="left").group_by("kind"), JOINS[8]),
        (visits.join(patients, on="id", how="left").group_by("sex"), JOINS[1]),
        (visits.join(patients.where("age > 50"), on="id", how="semi"), JOINS[22]),
        (visits.join(patients.where("sex = 'f'"), on="id", how="anti"), JOINS[23]),
        (visits.join(wards, on=["ward"]).join(patients, on="id").group_by("kind", "sex"), JOINS[14]),
        (visits.derive(w="UPPER(ward)").join(wards, on={"w": "ward"}), "SELECT 0"),
    ]
    for table, sql in pairs:
        assert sums(table.count()) == counted(sql)
    both = visits.join(patients, on="id")
    assert sums(both.where("patients.age > 50 AND visits.age = 1").group_by("patients.age").count()) == {
        (51,): 1,
        (70,): 1,
    }
    assert sums(both.where("patients.sex = 'm' AND days = 4").count()) == {(): 1}


def test_what_is_joined_already_is_joined_again(opened):
    visits, patients, wards = opened
    labs = tacit.table(
        pa.table({"id": [1, 1, 3], "lab": ["p", "q", "p"]}),
        **{"unit": "id", "name": "labs", "same_people_as": "visits", "ledger": visits.session.ledger, **BOUNDS},
    )
    both = patients.join(labs, on="id")
    assert sums(visits.join(both, on="id").group_by("lab").count()) == {("p",): 4, ("q",): 3}
    assert sums(visits.join(wards, on="ward").join(both, on="id").count()) == {(): 2 * 2 + 1}
    each = labs.per_unit(n=tacit.count())
    assert sums(visits.join(each, on="id").where("n = 2").count()) == {(): 3}


def test_rows_of_nobody_match_nothing_and_count_for_nothing(opened):
    visits, patients, _ = opened
    for sql in (JOINS[0], JOINS[1], JOINS[19]):
        question = visits.sql(sql.replace("SELECT sex, ", "SELECT ").partition(" GROUP BY")[0], tables=[patients])
        assert sum(sums(question).values()) == {JOINS[0]: 8, JOINS[1]: 10, JOINS[19]: 6}[sql]


def test_keys_and_ranges_of_a_public_table_are_public(opened):
    visits, _, wards = opened
    plan = visits.sql(
        "SELECT ward, SUM(beds) AS b FROM visits JOIN wards USING (ward) GROUP BY ward", tables=[wards]
    ).plan(epsilon=1)
    assert plan.plan.public_keys == (("a",), ("b",), ("c",))
    assert (plan.plan.measured[0].low * plan.plan.measured[0].step, plan.loss) == (10, tacit.epsilon(1))
    left = visits.join(wards, on="ward", how="left").group_by("kind").count().plan(epsilon=1)
    assert left.plan.public_keys == (("x",), ("y",), (None,))


def test_a_plan_says_what_each_join_does_to_one_unit(opened):
    visits, patients, wards = opened
    sql = (
        "SELECT COUNT(*) FROM visits JOIN wards USING (ward) LEFT JOIN patients USING (id)"
        " WHERE ward IN (SELECT ward FROM wards WHERE beds > 10)"
    )
    lines = str(visits.sql(sql, tables=[patients, wards]).plan(epsilon=1)).splitlines()
    assert lines[1:4] == [
        "Join with wards (public) on ward: each row has one match. Stability: 1 unit, and 1 times its rows.",
        "Left join with patients on the unit: each unit's rows with its own, some 1,048,576 pairs at most. Stability:"
        " 1 unit; its rows are bounded afterwards.",
        "Match with wards (public) on ward: a yes or no for each row, from the row alone. Stability: 1 unit.",
    ]


REFUSED = {
    "SELECT COUNT(*) FROM visits, patients": "a second table without a condition",
    "SELECT COUNT(*) FROM visits, patients WHERE visits.days > patients.age": "a second table without a condition",
    "SELECT COUNT(*) FROM visits, patients WHERE visits.age = patients.age": "other than their unit",
    "SELECT COUNT(*) FROM visits JOIN patients": "a second table without a condition",
    "SELECT COUNT(*) FROM visits CROSS JOIN wards": "CROSS JOIN",
    "SELECT COUNT(*) FROM visits RIGHT JOIN wards USING (ward)": "put the other table first and write LEFT JOIN",
    "SELECT COUNT(*) FROM visits FULL JOIN patients USING (id)": "FULL JOIN",
    "SELECT COUNT(*) FROM visits NATURAL JOIN wards": "NATURAL",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.age = patients.age": "other than their unit",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.id = patients.age": "other than their unit",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.id > patients.id": "other than their unit",
    "SELECT COUNT(*) FROM visits JOIN patients ON visits.id = patients.id OR days = 1": "other than their unit",
    "SELECT COUNT(*) FROM visits JOIN patients USING (id) WHERE age > 3": "write visits.age or patients.age",
    "SELECT COUNT(*) FROM visits JOIN patients USING (sex)": "no column 'sex' in 'visits'",
    "SELECT COUNT(*) FROM wards LEFT JOIN visits USING (ward)": "would belong to no unit",
    "SELECT COUNT(*) FROM wards": "'wards' is public",
    "SELECT COUNT(*) FROM wards JOIN wards AS more USING (ward)": "both public",
    "SELECT COUNT(*) FROM visits JOIN visits USING (id)": "two tables are called 'visits'",
    "SELECT COUNT(*) FROM visits JOIN labs USING (id)": "no table 'labs'",
    "SELECT COUNT(*) FROM visits JOIN wards ON days = wards.ward": "match only as one type",
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.ward = wards.kind": "kind is not a key of the public table",
    "SELECT COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward AND days > beds": "into WHERE",
    "SELECT COUNT(*) FROM visits WHERE days IN (SELECT age FROM patients)": "other than their unit",
    "SELECT COUNT(*) FROM visits WHERE id IN (SELECT age FROM patients)": "other than their unit",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward, kind FROM wards)": "one value and a SELECT of one column",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients)": "other than their unit",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients WHERE patients.age = visits.age)": "other than",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients WHERE patients.id = visits.days)": "other than",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards)": "the matching rows of",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients WHERE patients.id = visits.id LIMIT 1)": "LIMIT",
    "SELECT MIN(patients.id) FROM visits LEFT JOIN patients ON visits.id = patients.id": "whether there is a match",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_joined_is_refused_with_the_reason(sql, opened):
    visits, patients, wards = opened
    with pytest.raises(tacit.QueryRefused, match=REFUSED[sql].replace("(", r"\(")) as refused:
        visits.sql(sql, tables=[patients, wards])
    assert "hint: " in str(refused.value)


def test_how_many_matches_a_row_may_have_is_checked_before_anything_is_charged(opened):
    visits, _, _ = opened
    twice = tacit.public(pa.table({"ward": ["a", "a", "b"], "n": [1, 2, 3]}), name="twice")
    with pytest.raises(tacit.QueryRefused, match="2 of its rows have one value, and a row may have 1"):
        visits.join(twice, on="ward")
    assert sums(visits.join(twice, on="ward", most=2).count()) == {(): 3 * 2 + 2}
    sql = "SELECT COUNT(*) FROM visits JOIN twice USING (ward)"
    assert sums(visits.sql(sql, tables=[twice], most={"twice": 2})) == {(): 8}
    assert sums(visits.sql(f"{sql} WHERE n > 1", tables=[twice], most={"twice": 2})) == {(): 5}
    filtered = "SELECT COUNT(*) FROM visits JOIN (SELECT * FROM twice WHERE n > 1) t USING (ward)"
    assert sums(visits.sql(filtered, tables=[twice])) == {(): 5}
    assert visits.join(twice, on="ward", most=2).session.declaration.most_rows_per_unit == 128


def test_rows_that_are_their_own_units_are_joined_with_keys_of_public_tables_alone():
    ledger = open_ledger(":memory:")
    rows = tacit.table(VISITS, unit=tacit.ROW, name="rows", budget=tacit.epsilon(9), ledger=ledger)
    assert sums(rows.join(tacit.public(WARDS), on="ward").count()) == {(): 7}
    twice = tacit.public(pa.table({"ward": ["a", "a"]}))
    for most in (1, 2):
        with pytest.raises(tacit.QueryRefused):
            rows.join(twice, on="ward", most=most)
    with pytest.raises(tacit.QueryRefused, match="every row of 'rows' is its own unit"):
        rows.join(rows, on="id")


def test_an_empty_public_table_matches_nothing(opened):
    visits, _, _ = opened
    empty = tacit.public(WARDS.slice(0, 0), name="empty")
    assert sums(visits.join(empty, on="ward").count()) == {}
    assert sums(visits.join(empty, on="ward", how="left").count()) == {(): 8}
    assert sums(visits.join(empty, on="ward", how="anti").count()) == {(): 8}
    assert sums(
        visits.sql("SELECT COUNT(*) FROM visits WHERE ward NOT IN (SELECT ward FROM empty)", tables=[empty])
    ) == {(): 8}


def test_units_of_different_types_are_not_compared(opened):
    ledger = open_ledger(":memory:")
    with pytest.warns(tacit.LargeEpsilonWarning):
        texts = tables(ledger, patients=pa.table({"id": ["1", "2"], "age": [1, 2]}))
    with pytest.raises(tacit.QueryRefused, match="id is int in 'visits' and id is text in 'patients'"):
        texts[0].join(texts[1], on="id")
    ledger = open_ledger(":memory:")
    with pytest.warns(tacit.LargeEpsilonWarning):
        unsigned = tables(ledger, patients=pa.table({"id": pa.array([1, 2], pa.uint64()), "age": [1, 2]}))
    with pytest.raises(tacit.QueryRefused, match="stored as int64 in one table and as uint64 in the other"):
        unsigned[0].join(unsigned[1], on="id")


def test_tables_of_two_budgets_are_not_joined():
    ledger = open_ledger(":memory:")
    visits = tacit.table(VISITS, unit="id", name="visits", budget=tacit.epsilon(3), ledger=ledger)
    others = tacit.table(PATIENTS, unit="id", name="patients", budget=tacit.epsilon(3), ledger=ledger)
    elsewhere = tacit.table(PATIENTS, unit="id", name="people", budget=tacit.epsilon(3), ledger=tacit.TRYOUT)
    for other in (others, elsewhere):
        with pytest.raises(tacit.QueryRefused, match="budgets of their own"):
            visits.join(other, on="id")
        sql = f"SELECT COUNT(*) FROM visits JOIN {other.session.declaration.name} USING (id)"
        with pytest.raises(tacit.QueryRefused, match="budgets of their own"):
            visits.sql(sql, tables=[other])


def test_a_question_about_two_tables_is_charged_once_to_the_people_of_both():
    with pytest.warns(tacit.LargeEpsilonWarning):
        visits, patients, wards = tables()
    question = visits.sql(JOINS[0], tables=[patients, wards])
    first = question.answer(epsilon=1)
    assert (visits.left.laplace, patients.left.laplace) == (999, 999)
    same = "SELECT COUNT(*) FROM visits v JOIN patients p ON p.id = v.id"
    again = visits.sql(same, tables=[patients]).answer(epsilon=1)
    assert again.to_dicts() == first.to_dicts()
    assert patients.left.laplace == 999
    visits.count().answer(epsilon=1)  # another question, although every other word is the same
    assert patients.left.laplace == 998


def test_an_answer_about_other_rows_of_a_second_table_is_not_used_again():
    ledger = open_ledger(":memory:")
    with pytest.warns(tacit.LargeEpsilonWarning):
        visits, patients, wards = tables(ledger)
    visits.join(patients, on="id").count().answer(epsilon=1)
    changed = tacit.table(PATIENTS, unit="id", name="patients", ledger=ledger, **BOUNDS)  # a frame, opened again
    visits.join(changed, on="id").count().answer(epsilon=1)
    assert visits.left.laplace == 998
    visits.join(wards, on="ward").count().answer(epsilon=1)
    others = tacit.public(WARDS.set_column(1, "beds", pa.array([10, 20, 30, 41])), name="wards")
    visits.join(others, on="ward").count().answer(epsilon=1)
    assert visits.left.laplace == 996
    visits.join(tacit.public(WARDS, name="wards"), on="ward").count().answer(epsilon=1)
    assert visits.left.laplace == 996


def test_two_tables_of_one_name_and_other_odd_joins_are_refused(opened):
    visits, _, wards = opened
    other = tacit.table(PATIENTS, unit="id", name="visits", ledger=visits.session.ledger, **BOUNDS)
    with pytest.raises(tacit.InvalidParameter, match="named 'visits'"):
        visits.join(other, on="id")
    with pytest.raises(tacit.InvalidParameter, match="two tables are named"):
        visits.sql("SELECT COUNT(*) FROM visits", tables=[wards, wards])
    with pytest.raises(tacit.InvalidParameter, match="DataFrame cannot be joined"):
        visits.join(pd.DataFrame({"ward": ["a"]}), on="ward")
    for on in (None, [], {}, 3):
        with pytest.raises(tacit.QueryRefused, match="on must name the columns"):
            visits.join(wards, on=on)
    with pytest.raises(tacit.QueryRefused, match="not a column of 'wards'"):
        visits.join(wards, on="days")
    with pytest.raises(tacit.QueryRefused, match="how must be one of"):
        visits.join(wards, on="ward", how="outer")
    with pytest.raises(tacit.QueryRefused, match="grouped cannot be joined"):
        visits.group_by("ward").join(wards, on="ward")
    with pytest.raises(tacit.QueryRefused, match="joined already"):
        visits.join(wards, on="ward").sql("SELECT COUNT(*) FROM visits")


def test_derived_columns_of_nested_joins_keep_their_own_names(tmp_path):
    book = tmp_path / "ledger.db"
    options = {"unit": "id", "ledger": str(book), "rows_per_unit": 3, "groups_per_unit": 3}
    visits = tacit.table(
        pa.table({"id": list(range(80)), "x": [1, 2, 3, 4, 5, 6, 7, 8] * 10, "g": list("abababab") * 10}),
        name="visits",
        version=1,
        budget=tacit.epsilon(10**7, delta=1e-6),
        columns={"x": {"between": (0, 50)}},
        **options,
    )
    patients = tacit.table(
        pa.table({"id": list(range(60)), "y": [place % 5 for place in range(60)]}),
        name="patients",
        version=1,
        same_people_as="visits",
        columns={"y": {"between": (0, 50)}},
        **options,
    )
    inner = "SELECT id, y + 1 AS k, z FROM patients LEFT JOIN (SELECT id, x * 10 AS z, g FROM visits) i USING (id)"
    asked = visits.sql(
        f"SELECT SUM(k) AS s, SUM(z) AS t FROM visits LEFT JOIN ({inner}) o USING (id)",
        tables=[patients],
        between={"s": (0, 300), "t": (0, 300)},
    )
    (row,) = asked.answer(epsilon=10**5).to_dicts()
    assert (row["s"], row["t"]) == (180, 2620)


def test_a_unit_may_have_the_name_of_a_made_up_column():
    table = tacit.table(
        pa.table({"match_1": [str(place) for place in range(50)], "g": ["ab"[place % 2] for place in range(50)]}),
        name="visits",
        unit="match_1",
        ledger=tacit.TRYOUT,
        budget=tacit.epsilon(100, delta=1e-6),
    )
    inside = "SELECT 1 FROM visits b WHERE a.g = b.g AND a.match_1 = b.match_1"
    assert table.sql(f"SELECT COUNT(*) AS n FROM visits a WHERE EXISTS ({inside})").plan(epsilon=1)


def test_the_unit_on_the_right_of_a_left_join_tells_whether_there_is_a_match_and_no_more(opened):
    visits, patients, _ = opened
    joined = "FROM visits v LEFT JOIN patients p ON v.id = p.id"
    asked = visits.sql(f"SELECT COUNT(p.id) AS n {joined}", tables=[patients])
    exact = exact_table(asked, plan=bounded_plan(asked))
    assert [8] in [list(column) for column in exact.sums.values()]
    units = visits.sql(f"SELECT COUNT(DISTINCT p.id) AS n {joined}", tables=[patients])
    assert units.query.outputs[0].aggregate.per_unit == 1
    for text in (
        f"SELECT COUNT(*) {joined} WHERE p.id = 1",
        f"SELECT p.id, COUNT(*) {joined} GROUP BY p.id",
        f"SELECT COUNT(*) {joined} WHERE p.id IS TRUE",
        f"SELECT COUNT(*) FROM (SELECT v.days, p.id {joined}) GROUP BY id",
        f"SELECT MAX(p.id) {joined}",
    ):
        with pytest.raises(tacit.QueryRefused, match="it only shows whether there is a match"):
            visits.sql(text, tables=[patients])


def test_an_exists_over_an_aggregate_is_refused():
    table = tacit.table(
        pa.table({"id": [1], "x": [2]}), name="v", unit="id", budget=tacit.epsilon(1), ledger=tacit.TRYOUT
    )
    with pytest.raises(tacit.QueryRefused, match="true whatever the rows are"):
        table.sql("SELECT COUNT(*) FROM v WHERE EXISTS (SELECT COUNT(*) FROM v AS w WHERE w.id = v.id)")


def test_a_join_reads_the_columns_that_a_question_names(tmp_path):
    rows = [pa.table({"id": [1, 2], "a": [1, 2], "b": ["x", "y"]}), pa.table({"id": [1, 2], "c": [3, 4], "d": [5, 6]})]
    paths = [str(tmp_path / f"{name}.parquet") for name in ("visits", "patients")]
    for path, table in zip(paths, rows, strict=True):
        pq.write_table(table, path)
    visits, patients, _ = tables(None, *paths)
    for text, named in {
        "SELECT c, COUNT(*) AS s FROM visits JOIN patients USING (id) WHERE a > 1 GROUP BY c": {"id", "a", "c"},
        "SELECT b, COUNT(*) AS n FROM visits WHERE id IN (SELECT id FROM patients WHERE d > 5) GROUP BY b": {
            "id",
            "b",
            "d",
        },
        "SELECT n, COUNT(*) AS s FROM (SELECT id, COUNT(*) AS n, MAX(c) AS m FROM patients GROUP BY id) GROUP BY n": {
            "id"
        },
    }.items():
        asked = (patients if "FROM (" in text else visits).sql(text, tables=[visits if "FROM (" in text else patients])
        narrow = asked.session.engine._with_columns(columns_named(plan_of(asked)))
        fields = narrow.source.table.columns_named()
        assert fields & {"id", "a", "b", "c", "d"} == named


def test_a_unit_with_many_rows_in_both_tables_keeps_as_many_pairs_as_are_allowed():
    many = 1500
    ids = pa.array([0] * many + [1, 2, 2], pa.int64())
    visits, patients, _ = tables(
        None, pa.table({"id": ids, "x": range(many + 3)}), pa.table({"id": ids, "y": [0] * (many + 3)})
    )
    both = visits.join(patients, on="id").session.engine.source
    counts = dict(both.fetch(both.table.group_by("id").agg(n=both.table.count())).to_pandas().values.tolist())
    assert counts == {0: many * -(-(1 << 20) // many), 1: 1, 2: 4}
    one = tables(None, pa.table({"id": [0], "x": [1]}), pa.table({"id": ids, "y": [0] * (many + 3)}))
    rows = one[0].join(one[1], on="id").session.engine.source
    assert rows.fetch(rows.table).num_rows == many
