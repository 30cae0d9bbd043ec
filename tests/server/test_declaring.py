"""A table declared over HTTP is one declared by file: the same refusals and entries, from allowed folders alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.asking import Catalog
from tacit.catalog_file import catalog_from, read_catalog
from tacit.errors import TacitError
from tacit.ledger import open_ledger
from tacit.server.curating import allowed_source, lines
from tests.server.conftest import House

WARDS = {
    "name": "stays",
    "source": "data/stays.parquet",
    "unit": "patient",
    "budget": {"epsilon": "3", "delta": "1e-6"},
    "columns": {"ward": {"keys": ["A", "B"]}, "days": {"between": ["0", "30.5"], "step": "0.5"}},
    "rows_per_unit": 2,
    "groups_per_unit": 1,
    "population": 1000,
    "hold": "1s",
}


@pytest.fixture
def house(open_house: Callable[..., House], folder: Path) -> House:
    """A desk that may declare tables from one folder."""
    (folder / "data").mkdir()
    rows = {"patient": [1, 1, 2], "ward": ["A", "B", "A"], "days": [1.5, 2.0, 3.0]}
    pq.write_table(pa.table(rows), folder / "data" / "stays.parquet")
    return open_house(sources=(folder / "data",))


def declared(house: House, record: dict[str, Any]) -> Any:
    return house.send("POST", "/api/v1/tables", json=record)


def test_what_was_declared_is_asked_at_once_and_after_a_restart(house: House) -> None:
    reply = declared(house, WARDS)
    assert reply.status_code == 200
    assert reply.json()["hold"] == "1s"
    asked = {"sql": "SELECT ward, AVG(days) AS d FROM stays GROUP BY ward", "epsilon": "1"}
    assert house.ask(asked, table="stays").status_code == 200
    assert house.ask(asked, "tacit_ben", table="stays").status_code == 404
    again = read_catalog(house.folder / "tacit.toml")
    assert list(again.tables) == ["visits", "pay", "stays"]
    assert again.tables["visits"] == house.desk.file.tables["visits"]
    assert declared(house, WARDS).json()["detail"] == "'stays' is declared already"


def test_rows_with_their_unit_in_another_table_are_declared_and_pay_from_its_budget(house: House) -> None:
    declared(house, WARDS)
    pq.write_table(pa.table({"ward": ["A", "C"], "beds": [5, 6]}), house.folder / "data" / "beds.parquet")
    beds = {"name": "beds", "source": "data/beds.parquet", "unit": "stays.patient", "via": "ward"}
    reply = declared(house, beds)
    assert reply.status_code == 200, reply.text
    assert reply.json()["declaration"]["owners"] == {"table": "stays", "on": [["ward", "ward"]], "version": 1}
    asked = {"sql": "SELECT COUNT(*) AS n FROM beds", "epsilon": "1", "accept_noise": True}
    assert house.ask(asked, table="beds").status_code == 200
    left = [house.send("GET", f"/api/v1/tables/{name}").json()["budget"] for name in ("beds", "stays")]
    assert left[0] == left[1]


def test_the_entries_are_those_of_a_declaration_by_file(house: House, tmp_path: Path) -> None:
    declared(house, WARDS)
    over_http = [entry.record for entry in house.desk.ledger.entries()][-2:]
    text = (house.folder / "tacit.toml").read_text()
    with open_ledger(tmp_path / "other.db") as book:
        Catalog(catalog_from(house.folder / "tacit.toml", text), book)["stays"]
        by_file = [entry.record for entry in book.entries()][-2:]
    chance = ("time", "table", "people", "source", "marks")  # random ids, and hashes with the ledger's own
    for one, other in zip(over_http, by_file, strict=True):
        assert {k: v for k, v in one.items() if k not in chance} == {k: v for k, v in other.items() if k not in chance}
    assert [entry["kind"] for entry in over_http] == ["budget", "table"]


@pytest.mark.parametrize(
    "change",
    [
        {"unit": "nobody"},
        {"budget": {"epsilon": "0"}},
        {"budget": {"epsilon": "1", "rho": "1"}},
        {"budget": None},
        {"columns": {"days": {"between": ["5", "1"]}}},
        {"columns": {"nowhere": {"keys": ["A"]}}},
        {"columns": {"ward": {"keys": []}}},
        {"columns": {"ward": {"colour": "red"}}},
        {"neighbours": "far"},
        {"rows_per_unit": 0},
        {"hold": "soon"},
        {"same_people_as": "nowhere"},
        {"source": "data/none.parquet"},
        {"budget": {"epsilon": "1", "delta": "0.5"}},
    ],
    ids=lambda change: json.dumps(change)[:40],
)
def test_what_a_file_would_be_refused_for_is_refused_in_its_words(house: House, change: dict[str, Any]) -> None:
    record = {**WARDS, **change}
    before = (house.folder / "tacit.toml").read_text()
    options = {word: value for word, value in record.items() if word not in ("name", "source") and value is not None}
    length = house.desk.ledger.length()
    reply = declared(house, record)
    text = before.rstrip("\n") + "\n\n" + lines("stays", record["source"], options)

    def by_file() -> None:
        with open_ledger(":memory:") as book:
            Catalog(catalog_from(house.folder / "tacit.toml", text), book)["stays"]

    with pytest.raises(TacitError) as refusal:
        by_file()
    assert reply.status_code == 422
    problem = reply.json()
    assert [problem["detail"], problem["hint"]] == [*str(refusal.value).split("\nhint: "), ""][:2]
    assert (house.folder / "tacit.toml").read_text() == before
    assert house.desk.ledger.length() == length


def test_a_source_outside_of_the_allowed_folders_is_refused_in_one_sentence(house: House, tmp_path: Path) -> None:
    inside = house.folder / "data"
    (inside / "link.parquet").symlink_to(house.folder / "visits.parquet")
    (inside / "up").symlink_to(house.folder)
    tried = [
        "visits.parquet",
        "/etc/passwd",
        "/etc/nothing-here.parquet",
        "data/../visits.parquet",
        "data/link.parquet",
        "data/up/visits.parquet",
        "data/*.parquet",  # one of them is the link
        "*/*.parquet",
        "data/up/*.parquet",
        "/proc/self/fd/0",
        "",
        "data/a\0.parquet",
        "file:///etc/passwd",
        "s3://bucket/x.parquet",
        "https://example.org/x.parquet",
        "postgresql://elsewhere/db?table=t",
        "PostgreSQL://elsewhere/db?table=t",
        "spark://clinic.visits",
        "sc://host:15002?table=t",
        "ledger.db?table=entries",
    ]
    replies = [declared(house, {**WARDS, "source": source}) for source in tried]
    assert {reply.status_code for reply in replies} == {422}
    assert len({reply.content for reply in replies}) == 1


def test_a_server_of_the_catalog_may_give_more_tables_and_no_other_server(house: House) -> None:
    text = (house.folder / "tacit.toml").read_text()
    more = text + '\n[tables.far]\nsource = "postgresql://ada:secret@db/clinic?sslmode=require&table=a"\nunit = "id"\n'
    known = catalog_from(house.folder / "tacit.toml", more)
    given = allowed_source("postgresql://ada@db/clinic?sslmode=require&table=b", (), known)
    assert given == "postgresql://ada:secret@db/clinic?sslmode=require&table=b"
    for source in (
        "postgresql://ada@db/clinic?table=b",
        "postgresql://ada@db/clinic?sslmode=disable&table=b",
        "postgresql://eve@db/clinic?sslmode=require&table=b",
        "postgresql://ada@db2/clinic?sslmode=require&table=b",
        "postgresql://ada:secret@db/clinic?sslmode=require&table=b",
        "postgresql://ada@db/clinic?sslmode=require&host=evil&table=b",
        "postgresql://ada@db/clinic?sslmode=require",
        "postgresql://ada@db/clinic?sslmode=require&table=b&table=c",
    ):
        with pytest.raises(TacitError, match="not one from which tables may be declared"):
            allowed_source(source, (), known)


def test_names_of_any_kind_stay_names_in_the_catalog(house: House) -> None:
    for name in ('a"]\n[people.eve]\nrole = "curator', "ü\x7f\t", "'''", "a.b"):
        record = {**WARDS, "name": name, "same_people_as": None}
        reply = declared(house, record)
        assert reply.status_code in (200, 422)
        assert not read_catalog(house.folder / "tacit.toml").people
    assert set(read_catalog(house.folder / "tacit.toml").tables) <= {"visits", "pay", *house.desk.file.tables}
