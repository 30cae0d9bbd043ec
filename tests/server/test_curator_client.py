"""A curator on a server has the ledger's own words, in Python and in a terminal."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli.app import main
from tacit.errors import InvalidParameter, NotAllowed
from tacit.ledger import open_ledger, verify_certificate
from tacit.ledger.chain import link
from tacit.remote import Server
from tests.server.conftest import House
from tests.server.test_connect import WireInHere

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
WHERE = ("--server", "http://localhost:1")


@pytest.fixture
def own(open_house: Callable[..., House], folder: Path) -> tuple[House, str]:
    """A desk whose tokens are the ledger's, and a curator's token."""
    book = open_ledger(folder / "ledger.db")
    book.add_person("ada", role="curator")
    secret = book.new_token("ada")
    (folder / "data").mkdir()
    house = open_house(tokens=book, sources=(folder / "data",))
    house.desk.warm()
    return house, secret


def test_people_tokens_and_grants_by_the_ledgers_words(own: tuple[House, str]) -> None:
    house, ada = own
    curator = Server(WireInHere(house, ada))
    person = curator.add_person("Ben", tables=["visits"], until="2099-02-01", reason="a study")
    assert person == house.desk.ledger.person("ben")
    assert curator.grant("visits", tacit.epsilon("0.1", delta="1e-7"), analyst="ben", reason="a round").startswith(
        "visits: ε = 0.1, δ = 1e-7 for ben from now on; left: ε = 0.1"
    )
    secret = curator.new_token("ben", reason="a laptop")
    ben = Server(WireInHere(house, secret))
    assert list(ben) == ["visits"]
    assert [token.id for token in curator.tokens("BEN")] == [secret[6:22]]
    assert curator.people() == house.desk.ledger.people()
    assert curator.tokens() == house.desk.ledger.tokens()
    with pytest.raises(InvalidParameter, match="is an analyst, who may not"):
        ben.add_person("eve", reason="me too")
    assert "revoked" in curator.revoke("visits", analyst="ben", reason="over")
    curator.end_token(secret[6:22], reason="lost & found")
    with pytest.raises(InvalidParameter, match="no valid token"):
        list(ben)
    assert curator.end_person("ben", reason="over").ended
    assert curator.grant("visits", tacit.rho("0.5"), period="month", reason="each month").startswith("visits: ρ = 0.5")
    house.desk.ledger.verify()


def test_a_table_is_declared_by_the_words_of_a_table(own: tuple[House, str]) -> None:
    house, ada = own
    pq.write_table(pa.table({"id": [1, 2], "x": [0.5, 1.5]}), house.folder / "data" / "new.parquet")
    curator = Server(WireInHere(house, ada))
    said = curator.declare(
        "new", "data/new.parquet", unit="id", budget=tacit.epsilon(2), columns={"x": {"between": (0, 2.5), "step": 0.5}}
    )
    assert said["declaration"]["columns"]["x"]["between"] == ["0", "5/2"]
    assert curator["new"].count().plan(epsilon=1).fits
    with pytest.raises(InvalidParameter, match="not one from which tables may be declared"):
        curator.declare("more", "/etc/passwd", unit="id", budget=tacit.epsilon(2))


def test_an_auditor_checks_the_chain_and_an_answer_from_afar(own: tuple[House, str]) -> None:
    house, ada = own
    curator = Server(WireInHere(house, ada))
    curator.add_person("dora", role="auditor", reason="the officer")
    dora = Server(WireInHere(house, curator.new_token("dora", reason="hers")))
    entry = curator["visits"].sql(COUNT).answer(epsilon=1).facts.receipt["entry"]
    records = list(dora.entry_records())
    assert all(link(each["previous"], each["body"]) == each["hash"] for each in records)
    assert [each.body for each in dora.entries(5)] == [each.body for each in house.desk.ledger.entries(5)]
    assert verify_certificate(dict(dora.certificate(entry)))["number"] == entry
    assert dora.csv(entry).startswith("ward,n,n_low,n_high\n")
    assert dora.svg(entry).startswith("<svg")
    with pytest.raises((InvalidParameter, NotAllowed)):
        dora["visits"].sql(COUNT).answer(epsilon=1)


def test_commands_act_on_a_server(
    own: tuple[House, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    house, ada = own
    monkeypatch.setenv("TACIT_TOKEN", ada)
    monkeypatch.setattr("tacit.remote.tables.Wire", lambda url, token: WireInHere(house, token))

    def run(*words: object) -> str:
        with pytest.raises(SystemExit) as stopped:
            main([str(word) for word in words] + list(WHERE))
        shown = capsys.readouterr()
        assert stopped.value.code == 0, shown.err
        return shown.out

    assert run("people", "add", "ben", "--table", "visits", "--reason", "a study") == "ben: analyst, visits\n"
    secret = run("people", "token", "ben", "--reason", "a laptop").strip()
    assert f"token {secret[6:22]}: made" in run("people", "list")
    granted = run("budget", "grant", "visits", "--epsilon", 1, "--analyst", "ben", "--reason", "a round")
    assert granted == "visits: ε = 1 for ben from now on; left: ε = 1\n"
    assert "revoked" in run("budget", "revoke", "visits", "--analyst", "ben", "--reason", "over")
    assert run("people", "token", "end", secret[6:22], "--reason", "lost") == "ended, for the record\n"
    assert "lost (by ada, over HTTP)" in run("ledger", "show", "--last", 1)
    assert "is not among this ledger's people yet" in run(
        "budget", "grant", "visits", "--epsilon", 1, "--analyst", "zoe", "--reason", "soon"
    )
    assert "for zoe soon" in run("budget", "list")
    exported = [json.loads(line) for line in run("ledger", "export").splitlines()]
    assert len(exported) == house.desk.ledger.length()
    entry = Server(WireInHere(house, ada))["visits"].sql(COUNT).answer(epsilon=1).facts.receipt["entry"]
    assert verify_certificate(json.loads(run("certificate", entry)))["number"] == entry
    shown = run("ledger", "show", entry)
    assert "asked: SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward" in shown
    assert "± 95 %" in shown
    assert "in the ledger's sums: ε = 1" in shown
    assert run("people", "end", "ben", "--reason", "over") == "ben: analyst, visits, ended\n"
    with pytest.raises(SystemExit) as stopped:
        main(["ledger", "show", "9999", *WHERE])
    assert stopped.value.code == 2
    assert "this token may not read an entry 9999" in capsys.readouterr().err
