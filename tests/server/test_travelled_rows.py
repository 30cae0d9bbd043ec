"""Joins and rows by unit travel as JSON: the same refusals, plans and answers as of a table that is here."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.catalog_file import read_catalog
from tacit.errors import InvalidParameter, TacitError
from tacit.ledger import Person, open_ledger
from tacit.remote import Server
from tacit.server import Desk
from tests.server.conftest import Book, Clock, House
from tests.server.test_connect import WireInHere

CATALOG = """
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "id"
budget = { epsilon = 1000 }
rows_per_unit = 2
groups_per_unit = 2
most_rows_per_unit = 2
[tables.visits.columns.ward]
keys = ["A", "B"]
[tables.visits.columns.days]
between = [0, 30]

[tables.patients]
source = "patients.parquet"
unit = "id"
same_people_as = "visits"
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1
[tables.patients.columns.age]
between = [0, 100]
[tables.patients.columns.sex]
keys = ["f", "m"]

[public.wards]
source = "wards.csv"
"""
PEOPLE = {"tacit_ada": Person("ada", "curator"), "tacit_ben": Person("ben", "analyst", ("visits",))}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A house with two tables about the same people, and a public one."""
    number = range(60)
    visits = {"id": [n // 2 for n in number], "ward": ["A", "B", "A"] * 20, "days": [n % 5 for n in number]}
    patients = {"id": list(range(30)), "age": [20 + n for n in range(30)], "sex": ["f", "m"] * 15}
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    pq.write_table(pa.table(patients), tmp_path / "patients.parquet")
    (tmp_path / "wards.csv").write_text("ward,kind,floor\nA,surgery,1\nB,birth,2\n")
    (tmp_path / "tacit.toml").write_text(CATALOG)
    clock, file = Clock(), read_catalog(tmp_path / "tacit.toml")
    desk = Desk(file, open_ledger(file.ledger), Book(PEOPLE), now=clock.now, sleep=clock.sleep, wait=clock.wait)
    yield House(desk, clock, tmp_path)
    desk.close()
    desk.ledger.close()


@pytest.fixture
def server(house: House) -> Server:
    return Server(WireInHere(house, "tacit_ada"))


QUESTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "two tables": lambda v, p, w: v.join(p, on="id").group_by("sex").count(),
    "left": lambda v, p, w: v.join(p, on="id", how="left").group_by("ward").mean("age"),
    "semi": lambda v, p, w: v.join(p.where("age > 30"), on="id", how="semi").group_by("ward").count(),
    "anti, filtered": lambda v, p, w: v.where("days > 1").join(p.where("sex = 'f'"), on="id", how="anti").count(),
    "public": lambda v, p, w: v.join(w, on="ward").group_by("kind").sum("days"),
    "public, another name": lambda v, p, w: (
        v.derive(w="UPPER(ward)").join(w, on={"w": "ward"}).group_by("kind").count()
    ),
    "three": lambda v, p, w: (
        v.join(w, on=["ward"]).join(p, on="id").where("floor = '1'").group_by("kind", "sex").count()
    ),
    "semi, then joined": lambda v, p, w: (
        v.join(p.where("age > 30"), on="id", how="semi").where("days < 4").join(w, on="ward").group_by("kind").count()
    ),
    "rows by unit": lambda v, p, w: v.per_unit(n=tacit.count(), longest=tacit.max("days")).mean("n"),
    "rows by unit and group": lambda v, p, w: (
        v.where("days > 0").derive(weeks="days / 7").group_by("ward").per_unit(s=tacit.sum("weeks")).count_units()
    ),
    "rows by unit, filtered": lambda v, p, w: (
        v.per_unit(n=tacit.count(), d=tacit.sum("days"))
        .where("n = 2")
        .derive(each="d / n")
        .sum("each", between=(0, 30))
    ),
    "rows by unit, joined": lambda v, p, w: (
        p.join(v.per_unit(n=tacit.count(), d=tacit.count_distinct("ward")).where("n > 1"), on="id")
        .group_by("sex")
        .mean("n", between=(0, 2))
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_the_same_one_here_and_there(server: Server, house: House, name: str) -> None:
    here = tacit.catalog(str(house.folder / "tacit.toml"))
    remote = QUESTIONS[name](server["visits"], server["patients"], server.public("wards"))
    own = QUESTIONS[name](here["visits"], here["patients"], here.public("wards"))
    sent = json.loads(json.dumps(dict(remote.asking)))
    assert set(sent) == {"question"}
    assert "rows" in sent["question"]
    assert str(remote.plan(epsilon=1, learn=False)) == str(own.plan(epsilon=1, learn=False, analyst="ada"))
    given = remote.answer(epsilon=1, learn=False)
    again = own.answer(epsilon=1, learn=False, analyst="ada")
    assert again.facts.free  # the same key
    assert given.to_dicts() == again.to_dicts()


REFUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "not on the unit": lambda v, p, w: v.join(p, on={"days": "age"}),
    "no such column": lambda v, p, w: v.join(w, on="wrad"),
    "no such way": lambda v, p, w: v.join(w, on="ward", how="full"),
    "a filter that is a number": lambda v, p, w: v.where("days").join(w, on="ward"),
    "grouped": lambda v, p, w: v.group_by("ward").join(w, on="ward"),
    "no such aggregate": lambda v, p, w: v.per_unit(n=tacit.std("days")),
    "a name that is taken": lambda v, p, w: v.per_unit(id=tacit.count()),
    "sql of a join": lambda v, p, w: v.join(w, on="ward").sql("SELECT COUNT(*) FROM visits"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_the_same_here_and_there(server: Server, house: House, name: str) -> None:
    here = tacit.catalog(str(house.folder / "tacit.toml"))
    told = []
    for tables in (server, here):
        with pytest.raises(TacitError) as refused:
            REFUSED[name](tables["visits"], tables["patients"], tables.public("wards"))
        told.append((type(refused.value), str(refused.value).splitlines()[0]))
    assert told[0] == told[1]


def tree(remote: Any) -> Any:
    return json.loads(json.dumps(remote.asking["question"]))


def plan(house: House, record: Any, token: str = "tacit_ada", table: str = "visits") -> Any:
    body = {"question": record, "epsilon": "1"}
    return house.send("POST", f"/api/v1/tables/{table}/plan", token, json=body)


def test_a_table_that_may_not_be_seen_is_joined_by_nobody(server: Server, house: House) -> None:
    asked = tree(server["visits"].join(server["patients"], on="id").count())
    assert plan(house, asked).status_code == 200
    unseen, unknown = plan(house, asked, "tacit_ben"), tree(server["visits"].join(server["patients"], on="id").count())
    unknown["rows"]["with"]["table"] = "nothing!"
    missing = plan(house, unknown, "tacit_ben")
    assert unseen.status_code == missing.status_code == 422
    assert unseen.text.replace("patients", "nothing!") == missing.text


def broken(asked: Any) -> Iterator[Any]:
    """Trees that no door writes, each of another kind."""
    rows = asked["rows"]
    for name, value in (
        ("how", "cross"),
        ("how", []),
        ("on", [["id"]]),
        ("on", []),
        ("on", [["id", "id"], ["id", "age"]]),
        ("with", {"public": "nowhere"}),
        ("with", {"table": "visits", "public": "wards"}),
        ("with", None),
        ("join", {"join": 1}),
        ("join", {"of": rows["join"], "where": "days", "derived": []}),
        ("join", {"of": rows["join"], "where": "no()", "derived": []}),
        ("join", {"of": rows["join"], "where": None, "derived": [["ward", "days"]]}),
        ("join", {"per_unit": rows["join"], "keys": ["x"], "aggregates": []}),
        ("join", {"per_unit": rows["join"], "keys": [], "aggregates": [{"name": "n", "aggregate": "std"}]}),
    ):
        yield {**asked, "rows": {**rows, name: value}}
    public = {"with": {"public": "wards"}, "on": [["ward", "ward"]]}
    yield {**asked, "rows": {**rows, **public, "most": "many"}}
    yield {**asked, "rows": {**rows, **public, "most": 0}}
    yield {**asked, "rows": {**rows, "more": 1}}
    yield {**asked, "rows": {"table": "patients"}}
    deep = rows
    for _ in range(40):
        deep = {"of": deep, "where": None, "derived": []}
    yield {**asked, "rows": deep}


def test_trees_that_no_door_writes_are_refused_and_cost_nothing(server: Server, house: House) -> None:
    asked = tree(server["visits"].join(server["patients"], on="id").count())
    for each in broken(asked):
        assert plan(house, each).status_code == 422, each["rows"]
    assert plan(house, asked, table="patients").status_code == 422  # it is about visits first
    assert sum(entry.kind == "charge" for entry in house.desk.ledger.entries()) == 0


def test_tables_of_two_servers_are_not_joined(server: Server, house: House) -> None:
    here = tacit.catalog(str(house.folder / "tacit.toml"))
    with pytest.raises(InvalidParameter, match="one server"):
        server["visits"].join(here["patients"], on="id")
    with pytest.raises(InvalidParameter, match="no such table"):
        server.public("nowhere")


# --- answers of a join that are kept ---

IN_SQL = {"sql": "SELECT sex, COUNT(*) AS n FROM visits JOIN patients USING (id) GROUP BY sex", "epsilon": "1"}


def kept_and_withdrawn(house: House, asked: Any) -> list[tuple[str, int, bool]]:
    """What somebody gets by a key, in every way, before and after a table of its join is taken from them."""
    people: dict[str, Person] = house.desk.tokens.people  # type: ignore[attr-defined]
    people["tacit_ben"] = Person("ben", "analyst", ("visits", "patients"))
    given = house.ask(asked, "tacit_ben", key="both")
    entry = given.json()["facts"]["receipt"]["entry"]
    ways = {
        "by its key": lambda: house.send("GET", "/api/v1/questions/both", "tacit_ben"),
        "asked again with its key": lambda: house.ask(asked, "tacit_ben", key="both"),
        "asked again": lambda: house.ask(asked, "tacit_ben", key="another"),
        "its certificate": lambda: house.send("GET", f"/api/v1/answers/{entry}/certificate", "tacit_ben"),
        "as CSV": lambda: house.send("GET", f"/api/v1/answers/{entry}.csv", "tacit_ben"),
    }
    before = [(name, way().status_code) for name, way in ways.items()]
    assert before == [(name, 200) for name in ways]
    people["tacit_ben"] = Person("ben", "analyst", ("visits",))
    read = house.send("GET", "/api/v1/ledger", "tacit_ben").json()["entries"]
    after = [(name, reply.status_code, b'"n"' in reply.content) for name, way in ways.items() if (reply := way())]
    return [*after, ("its entries", len([each for each in read if each["kind"] in ("charge", "answer")]), False)]


@pytest.mark.parametrize("how", ["tree", "sql"])
def test_a_kept_answer_of_a_join_is_withdrawn_with_one_of_its_tables(server: Server, house: House, how: str) -> None:
    question = tree(server["visits"].join(server["patients"], on="id").group_by("sex").count())
    asked = {"question": question, "epsilon": "1"} if how == "tree" else IN_SQL
    found = kept_and_withdrawn(house, asked)
    assert [status for _, status, _ in found] == [422, 422, 422, 404, 404, 0]
    assert not any(shows for _, _, shows in found)


MUTANTS: dict[str, tuple[str, Any]] = {
    "kept for a name": ("tacit.server.desk._standing", lambda person: person.name),
    "seen by the first table": ("tacit.server.desk.Desk._seen", lambda self, _person, name: self._catalog()[name]),
}


@pytest.mark.parametrize("bug", MUTANTS)
def test_that_would_notice(server: Server, house: House, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question = tree(server["visits"].join(server["patients"], on="id").group_by("sex").count())
    monkeypatch.setattr(*MUTANTS[bug])
    found = kept_and_withdrawn(house, {"question": question, "epsilon": "1"})
    assert [status for _, status, _ in found] != [422, 422, 422, 404, 404, 0]
