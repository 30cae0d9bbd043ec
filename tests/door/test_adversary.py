"""Ways in which a stranger broke an early version, each closed."""

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import ibis
import pandas as pd
import pyarrow as pa
import pytest

import tacit
from tacit.asking import Table


def asked(source: object, **words: object) -> Table:
    given = {"unit": tacit.ROW, "budget": tacit.epsilon(1000, delta=1e-6), "ledger": ":memory:", "name": "t"}
    return tacit.table(source, **{**given, **words})  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", ["3.9855e-17", "1e-17", "1e-400", "1e-12"])
def test_a_quantile_with_next_to_no_epsilon_is_refused_before_it_could_wrap(epsilon: str) -> None:
    with pytest.raises(tacit.QueryRefused, match="epsilon is too small"):
        asked(pa.table({"x": [50_000] * 700})).median("x", between=(0, 100_000)).answer(epsilon)


def test_many_rows_per_unit_cannot_make_ranks_wrap_either() -> None:
    table = asked(pa.table({"id": [1], "x": [5]}), unit="id", rows_per_unit=10**12)
    with pytest.raises(tacit.QueryRefused, match="epsilon is too small"):
        table.median("x", between=(0, 10)).answer("0.001")


def test_a_huge_epsilon_is_of_use_up_to_a_point_and_never_a_crash() -> None:
    assert len(asked(pa.table({"x": [5] * 100})).median("x", between=(0, 10)).answer(500)) == 1


@pytest.mark.parametrize(
    "keys",
    [
        [pd.Timestamp("2020-01-01") + pd.Timedelta(each, "ns") for each in range(3)],
        [datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)],  # noqa: DTZ001
        [pd.Timestamp("2020-01-01"), datetime(2020, 1, 1)],  # noqa: DTZ001
    ],
)
def test_one_time_written_in_two_ways_is_not_two_public_keys(keys: list[object]) -> None:
    frame = pd.DataFrame({"ts": pd.to_datetime(["2020-01-01"] * 5)})
    with pytest.raises(tacit.QueryRefused):
        asked(frame).group_by("ts", keys=keys).count().plan(1)


@pytest.mark.parametrize("step", ["0.5", "0.1", "1/3"])
def test_a_fractional_step_of_a_large_integer_makes_no_row_fail(step: str) -> None:
    """It is answered or refused at the plan, and which of the two no row decides."""
    outcomes = []
    for names in (["al"] * 3, ["al"] * 3 + ["bob"]):
        table = asked(pd.DataFrame({"name": names}))
        question = "CASE WHEN name = 'bob' THEN 4611686018427387903 ELSE 0 END"
        try:
            outcomes.append(len(table.mean(question, between=(2**62 - 4096, 2**62 - 1), step=step).answer(1)))
        except tacit.QueryRefused as refusal:
            outcomes.append(str(refusal))
    assert outcomes[0] == outcomes[1]


def test_a_view_or_an_expression_that_may_compute_across_rows_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 1 AS id, 2 AS x")
    connection.execute("CREATE VIEW v AS SELECT *, max(x) OVER () AS m FROM people")
    with pytest.raises(tacit.QueryRefused, match="view"):
        asked((connection, "v"))
    people = ibis.duckdb.from_connection(connection).table("people")
    for made in (people.limit(1), people.mutate(m=people.x.max()), people.distinct()):
        with pytest.raises(tacit.QueryRefused, match="across rows"):
            asked(made)
    connection.register("frame", pd.DataFrame({"x": [1]}))
    with pytest.raises(tacit.QueryRefused, match="give the frame itself"):
        asked((connection, "frame"))
    assert len(asked((connection, "people")).count().answer(1)) == 1


def test_another_frame_of_the_same_name_is_never_answered_from_the_record(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    first = asked(pa.table({"x": [1] * 10}), ledger=ledger).count().answer(1)
    second = asked(pa.table({"x": [1] * 5000}), ledger=ledger).count().answer(1)
    assert not second.facts.free
    assert abs(first.to_dicts()[0]["count"] - second.to_dicts()[0]["count"]) > 4000


def test_another_type_of_a_column_is_another_question(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "1\na\n" * 500)
    ledger = str(tmp_path / "ledger.db")
    as_text = asked(str(tmp_path / "t.csv"), ledger=ledger).count("x").answer(1)
    again = asked(str(tmp_path / "t.csv"), ledger=ledger).count("x").answer(1)
    as_int = asked(str(tmp_path / "t.csv"), ledger=ledger, columns={"x": {"type": "int"}}).count("x").answer(1)
    assert again.facts.free
    assert not as_int.facts.free
    assert abs(as_text.to_dicts()[0]["count_x"] - 1000) < 50
    assert abs(as_int.to_dicts()[0]["count_x"] - 500) < 50


def test_ids_that_are_one_number_are_one_unit(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x\n" + "".join(f"{each},1\n" for each in ("1", "01", "001", "+1") * 500))
    table = asked(str(tmp_path / "t.csv"), unit="id", rows_per_unit=1, columns={"id": {"type": "int"}})
    assert abs(table.count_units().answer(1).to_dicts()[0]["count_units"] - 1) < 40


def test_a_question_of_the_whole_budget_fits_it() -> None:
    keys = list(range(50))
    table = asked(
        pa.table({"id": [1, 2], "k": [1, 2]}),
        unit="id",
        rows_per_unit=1,
        groups_per_unit=50,
        budget=tacit.epsilon(1, delta=1e-6),
    )
    assert len(table.group_by("k", keys=keys).count().answer(1)) == 50


@pytest.mark.parametrize("text", ["x = '\ud800'", "x LIKE '\udfff%'"])
def test_half_a_character_is_refused_before_the_charge(text: str) -> None:
    with pytest.raises(tacit.QueryRefused, match="half a character"):
        asked(pa.table({"x": ["a"]})).where(text)
    with pytest.raises(tacit.QueryRefused, match="half a character"):
        asked(pa.table({"x": ["a"]})).group_by("x", keys=["\ud800"]).count().plan(1)


def counted(source: object, **words: object) -> float:
    return float(asked(source, **words).count().answer(1).to_dicts()[0]["count"])


def stored_people(folder: Path) -> Path:
    """Write a DuckDB file with people in two schemas, 1000 in one and 5000 in the other."""
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.execute("CREATE TABLE v AS SELECT range AS id, 1 AS x FROM range(1000)")
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.v AS SELECT range AS id, 1 AS x FROM range(5000)")
    return folder / "people.db"


def test_an_alias_is_no_stored_table() -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE v AS SELECT 1 AS id, 2 AS x")
    v = backend.table("v")
    for made in (v.mutate(x=v.x.max().over()).alias("q"), v.alias("w"), v.view(), ibis.table({"x": "int"}, name="v")):
        with pytest.raises(tacit.QueryRefused, match="is an expression"):
            asked(made)


@pytest.mark.parametrize(
    ("told", "database"),
    [
        ("ATTACH '{}' AS a; USE a", None),
        ("ATTACH '{}' AS a; SET search_path = 'memory,a'", None),
        ("ATTACH '{}' AS a", "a.main"),
        ("ATTACH '{}' AS a", "a"),
    ],
)
def test_a_duckdb_table_has_one_budget_however_its_file_is_attached(
    told: str, database: str | None, tmp_path: Path
) -> None:
    path, ledger = stored_people(tmp_path), str(tmp_path / "ledger.db")
    with duckdb.connect(str(path)) as connection:
        asked((connection, "v"), ledger=ledger)
    connection = duckdb.connect()
    connection.execute(told.format(path))
    source = ibis.duckdb.from_connection(connection).table("v", database=database)
    for given in (source, (connection, "v")) if database is None else (source,):
        with pytest.raises(tacit.InvalidParameter, match="already known as 't'"):
            asked(given, ledger=ledger, name="again")


def test_a_duckdb_file_under_another_link_has_no_second_budget(tmp_path: Path) -> None:
    path, ledger = stored_people(tmp_path), str(tmp_path / "ledger.db")
    with duckdb.connect(str(path)) as connection:
        asked((connection, "V"), ledger=ledger)
    (tmp_path / "hard.db").hardlink_to(path)
    (tmp_path / "soft.db").symlink_to(path)
    for link in ("hard.db", "soft.db"):
        with (
            duckdb.connect(str(tmp_path / link)) as connection,
            pytest.raises(tacit.InvalidParameter, match="already known as 't'"),
        ):
            asked((connection, "v"), ledger=ledger, name="again")
    with duckdb.connect(str(tmp_path / "hard.db")) as connection:
        connection.execute("USE s")
        asked((connection, "v"), ledger=ledger, name="other people")


def test_another_duckdb_table_of_the_name_is_never_answered_from_the_record(tmp_path: Path) -> None:
    path, ledger = stored_people(tmp_path), str(tmp_path / "ledger.db")
    with duckdb.connect(str(path)) as connection:
        assert abs(counted((connection, "v"), ledger=ledger) - 1000) < 50
        connection.execute("USE s")
        assert abs(counted((connection, "v"), ledger=ledger) - 5000) < 50
        connection.execute("CREATE TEMP TABLE v AS SELECT range AS id, 1 AS x FROM range(9000)")
        assert abs(counted((connection, "v"), ledger=ledger) - 9000) < 50


def test_what_a_connection_uses_later_changes_nothing_that_is_read(tmp_path: Path) -> None:
    with duckdb.connect(str(stored_people(tmp_path))) as connection:
        table = asked((connection, "v"))
        connection.execute("USE s")
        connection.execute("CREATE TEMP TABLE v AS SELECT range AS id, 1 AS x FROM range(9000)")
        assert abs(table.count().answer(1).to_dicts()[0]["count"] - 1000) < 50


def test_a_file_that_duckdb_reads_by_its_name_is_no_table_of_the_connection(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("x\n1\n")
    with pytest.raises(tacit.QueryRefused, match="does not have exactly one table"):
        asked((duckdb.connect(), str(tmp_path / "people.csv")))
