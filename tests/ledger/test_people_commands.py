"""`tacit people`, `tacit budget grant|revoke|list` and `[people]` in tacit.toml: who may ask, from the command line."""

from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as root
from tacit.cli import app as door
from tacit.errors import BudgetExceeded, InvalidParameter, NotAllowed, QueryRefused
from tacit.ledger import open_ledger
from tacit.privacy.loss import PureChoice, epsilon
from tacit_gauntlet.stage.ledger import again, register

TENTH = [PureChoice(Fraction(1, 10))]


@pytest.fixture
def tacit(capsys):
    def run(*words, code=0):
        with pytest.raises(SystemExit) as stopped:
            door.main(words)
        written = capsys.readouterr()
        assert (stopped.value.code or 0) == code, written.err
        return written.err if code else written.out

    return run


@pytest.fixture
def place(tmp_path):
    path = str(tmp_path / "ledger.db")
    with open_ledger(path) as ledger:
        register(ledger, epsilon(1))
    return path


def test_people_are_added_listed_and_ended(tacit, place):
    at = ("--ledger", place)
    assert "no people" in tacit("people", "list", *at)
    assert tacit("people", "add", "Ben", "--table", "pay", "--until", "2099-02-01", *at).startswith("Ben: analyst, pay")
    tacit("people", "add", "otto", "--role", "auditor", *at)
    tacit("people", "add", "--nameless", *at)
    secret = tacit("people", "token", "BEN", "--reason", "laptop", *at).strip()
    with open_ledger(place) as ledger:
        assert ledger.whose(secret).name == "Ben"
    listed = tacit("people", "list", *at)
    assert listed.startswith(
        "requests without a name: analyst, every table\nBen: analyst, pay, until 2099-02-01T00:00:00\n"
    )
    assert f"  token {secret[6:22]}: made " in listed
    assert "last used" in listed
    assert secret not in listed
    assert tacit("people", "token", "end", secret[6:22], *at) == "ended, for the record\n"
    assert tacit("people", "end", "ben", "--reason", "left", *at).strip().endswith("ended")
    shown = tacit("ledger", "show", *at)
    assert "person    Ben: analyst of pay, ended left" in shown
    assert f"token     {secret[6:22]} of Ben, ended" in shown
    assert secret not in shown
    tacit("ledger", "verify", *at)


def test_a_person_or_the_nameless_must_be_meant(tacit, place):
    assert "--nameless" in tacit("people", "add", "--ledger", place, code=2)
    assert "--nameless" in tacit("people", "add", "ben", "--nameless", "--ledger", place, code=2)
    assert "role must be one of" in tacit("people", "add", "ben", "--role", "root", "--ledger", place, code=2)
    assert "could hold a token" in tacit("people", "token", "ben", "--ledger", place, code=2)


def test_a_budget_is_granted_before_the_first_charge_listed_lowered_and_revoked(tacit, place):
    at = ("--ledger", place)
    tacit("budget", "grant", "pay", "--analyst", "Ben", "--epsilon", "0.5", "--reason", "a study", *at)
    assert "Ben" in tacit("budget", *at)  # though nothing was asked
    with open_ledger(place) as ledger:
        table = again(ledger)
        ledger.reserve(table, TENTH * 3, question_key="q", analyst="ben")
    tacit("budget", "grant", "pay", "--analyst", "BEN", "--epsilon", "0.2", "--reason", "less", *at)
    with open_ledger(place) as ledger:
        with pytest.raises(BudgetExceeded, match="left: nothing"):  # 0.3 is spent, and nothing given back
            ledger.reserve(table, TENTH, question_key="q2", analyst="ben")
        assert ledger.spent(table, "ben").epsilon == Fraction(3, 10)
    tacit("budget", "grant", "pay", "--analyst", "ben", "--epsilon", "1", *at)
    assert "revoked" in tacit("budget", "revoke", "pay", "--analyst", "ben", "--reason", "left", *at)
    listed = tacit("budget", "list", *at)
    assert [line.partition("  pay: ")[2] for line in listed.splitlines()][1:] == [
        "ε = 0.5 for Ben  a study",
        "ε = 0.2 for BEN  less",
        "ε = 1 for ben",
        "ε = 1 for ben, revoked  left",
    ]
    assert "left nothing" in tacit("budget", *at)
    tacit("ledger", "verify", *at)


def test_what_is_revoked_admits_nothing_until_it_is_granted_anew(place):
    with open_ledger(place) as ledger:
        table = again(ledger)
        ledger.reserve(table, TENTH, question_key="q", analyst="ben")
        ledger.revoke("pay", analyst="ben", reason="had none, and may have none")
        with pytest.raises(BudgetExceeded, match="revoked"):
            ledger.reserve(table, TENTH, question_key="q2", analyst="BEN")
        ledger.reserve(table, TENTH, question_key="q2", analyst="cleo")
        ledger.revoke("pay")
        assert not ledger.left(table).epsilon
        with pytest.raises(BudgetExceeded, match="revoked"):
            ledger.reserve(table, TENTH, question_key="q3", analyst="cleo")
        ledger.grant("pay", epsilon(1))
        ledger.reserve(table, TENTH, question_key="q3", analyst="cleo")
        with pytest.raises(InvalidParameter, match="per month"):
            ledger.revoke("pay", period="month")
        assert ledger.spent(table).epsilon == Fraction(3, 10)
        ledger.verify()


def test_a_budget_is_not_granted_to_a_name_that_hides_something(place):
    with open_ledger(place) as ledger, pytest.raises(InvalidParameter, match="name"):
        ledger.grant("pay", epsilon(1), analyst="b\u0435n")


CATALOG = """
ledger = "ledger.db"
[tables.visits]
source = "visits.parquet"
unit = "person"
budget = { epsilon = 2 }
rows_per_unit = 1
groups_per_unit = 1
[tables.patients]
source = "patients.parquet"
unit = "person"
same_people_as = "visits"
rows_per_unit = 1
groups_per_unit = 1
[people.ben]
tables = ["visits"]
until = 2099-02-01
budget = { epsilon = 1 }
[people.ada]
role = "curator"
"""


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = [f"p{number}" for number in range(30)]
    pq.write_table(pa.table({"person": people, "ward": ["north", "south"] * 15}), "visits.parquet")
    pq.write_table(pa.table({"person": people, "age": list(range(30))}), "patients.parquet")
    (tmp_path / "tacit.toml").write_text(CATALOG)
    return tmp_path


def test_people_of_a_catalog_are_written_into_its_ledger_and_nothing_is_asked_before(tacit, catalog):
    with pytest.raises(QueryRefused, match="tacit people apply"):
        root.catalog("tacit.toml")["visits"]
    assert "tacit people apply" in tacit("ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", code=2)
    said = tacit("people", "apply")
    assert "ben: analyst, visits, until 2099-02-01T00:00:00" in said
    assert "visits: ε = 1 for ben from now on" in said
    assert tacit("people", "apply") == "everything is so already\n"
    assert "this question is without a name" in tacit(
        "ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", code=2
    )
    assert "Spent ε" in tacit("ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", "--analyst", "Ben")
    tacit("people", "end", "ben", "--ledger", str(catalog / "ledger.db"))
    assert "stays so" in tacit("people", "apply")
    assert "over" in tacit(
        "ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", "0.1", "--analyst", "ben", code=2
    )
    tacit("ledger", "verify", "--ledger", str(catalog / "ledger.db"))


def test_a_join_reads_a_table_too(tacit, catalog):
    with pytest.raises(QueryRefused):
        root.catalog("tacit.toml")["visits"]
    tacit("people", "apply")
    tables = root.catalog("tacit.toml")
    joined = tables.sql("SELECT COUNT(*) FROM visits JOIN patients USING (person) WHERE age > 10")
    with pytest.raises(NotAllowed, match="'patients' is not among"):
        joined.answer(epsilon=0.1, analyst="ben")
    with pytest.raises(NotAllowed, match="'patients' is not among"):
        joined.plan(epsilon=0.1, analyst="ben")
    joined.answer(epsilon=0.1, analyst="ada")
    with pytest.raises(NotAllowed, match="'patients'"):
        joined.answer(epsilon=0.1, analyst="ben")  # nor what ada's is stored
    tables["visits"].count().answer(epsilon=0.1, analyst="ben")
    assert tables["visits"].session.ledger.verify().kinds["refusal"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[people.ben]\nrole = 3", "role must be text"),
        ('[people.ben]\ntables = ["pay"]', "tables must name tables"),
        ("[people.ben]\ncolour = 1", "not an option"),
        ("[people]\nben = 1", "people.ben is not a table"),
        ("[people.ben]\nbudget = 3", "budget needs"),
    ],
)
def test_people_of_a_catalog_are_checked_and_the_line_is_named(catalog, text, message):
    (catalog / "tacit.toml").write_text(CATALOG.partition("[people.ben]")[0] + text)
    with pytest.raises(InvalidParameter, match=f"line .*{message}"):
        root.catalog("tacit.toml")


def test_an_error_is_solved_for_in_the_name_of_who_asks(tacit, catalog):
    with pytest.raises(QueryRefused):
        root.catalog("tacit.toml")["visits"]
    tacit("people", "apply")
    visits = root.catalog("tacit.toml")["visits"]
    question = visits.group_by("ward", keys=["north", "south"]).count()
    question.answer(epsilon=0.3, analyst="ada")  # learns what the bounds cut
    assert question.plan(error=20, analyst="ada").solved is not None
    question.answer(error=20, analyst="ada")
    assert visits.facts is not None
    with pytest.raises(NotAllowed):
        question.plan(error=20)
    with pytest.raises(NotAllowed):
        question.answer(error=20, analyst="eve")
