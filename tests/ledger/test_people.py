"""People: who may ask is said in the chain, person by person; a token is known by a hash beside it."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError, NotAllowed
from tacit.ledger import entry_line, open_ledger
from tacit.ledger.spelling import given_name, look, name_key
from tacit.ledger.store import StoreRows
from tacit.privacy.loss import PureChoice, epsilon
from tacit_gauntlet.stage.ledger import DECLARATION

TENTH = [PureChoice(Fraction(1, 10))]


class SetClock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def ledger(where, clock):
    with open_ledger(where, clock=clock) as opened:
        yield opened


def ask(ledger, table, analyst, question="q"):
    return ledger.reserve(table, TENTH, question_key=question, analyst=analyst)


def test_without_people_everyone_asks_as_before(ledger, table):
    ask(ledger, table, None)
    ask(ledger, table, "whoever", "q2")
    assert not ledger.has_people()
    assert ledger.people() == ()


def test_from_the_first_person_on_only_people_ask(ledger, table):
    ledger.add_person("Ben", reason="statistics")
    ask(ledger, table, "BEN").commit("1")
    before = ledger.spent(table)
    for analyst in (None, "cleo", "ben2"):
        with pytest.raises(NotAllowed):
            ask(ledger, table, analyst, "q2")
        with pytest.raises(NotAllowed):
            ledger.recall(table, question_key="q", analyst=analyst)
        with pytest.raises(NotAllowed):
            ledger.fit(table, TENTH, analyst=analyst)
        assert not ledger.room(table, analyst).admits(TENTH, None)
    assert ledger.spent(table) == before
    kinds = ledger.verify().kinds
    assert (kinds["person"], kinds["refusal"], kinds["charge"]) == (1, 3, 1)


def test_the_nameless_ask_where_the_curator_says_so(ledger, table):
    ledger.add_person("ben")
    ledger.add_person(None, tables=["pay"])
    ask(ledger, table, None)
    ledger.end_person(None)
    with pytest.raises(NotAllowed, match="without a name is over"):
        ask(ledger, table, None, "q2")
    with pytest.raises(InvalidParameter, match="can only be analysts"):
        ledger.add_person(None, role="curator")
    ledger.verify()


def test_an_auditor_asks_nothing_and_a_curator_may(ledger, table):
    ledger.add_person("Ada", role="curator")
    ledger.add_person("Otto", role="auditor")
    ask(ledger, table, "ada")
    with pytest.raises(NotAllowed, match="auditor"):
        ask(ledger, table, "otto", "q2")
    with pytest.raises(InvalidParameter, match="role"):
        ledger.add_person("eve", role="admin")


def test_a_person_asks_of_their_own_tables_alone(ledger, table):
    other = ledger.register(name="visits", declaration=DECLARATION, source="visits.parquet", budget=epsilon(1))
    ledger.add_person("ben", tables=["visits"])
    ask(ledger, other, "ben")
    with pytest.raises(NotAllowed, match="'pay' is not among"):
        ask(ledger, table, "ben")
    # a table's own name counts, not the one that a caller says
    with pytest.raises(NotAllowed, match="'pay'"):
        ask(ledger, type(table)(**{**vars(table), "name": "visits"}), "ben")


def test_a_later_entry_replaces_and_the_name_stays_as_first_written(ledger, table):
    ledger.add_person("Ben", tables=[])
    with pytest.raises(NotAllowed):
        ask(ledger, table, "ben")
    assert ledger.add_person("BEN", role="analyst").name == "Ben"
    charge = ask(ledger, table, "bEn").charge
    assert charge.record["analyst"] == "Ben"
    assert [one.name for one in ledger.people()] == ["Ben"]
    assert ledger.analysts(table) == ("Ben",)


def test_an_end_ends_asking_stored_answers_and_tokens_for_good(ledger, table):
    ledger.add_person("ben")
    secret = ledger.new_token("ben")
    ask(ledger, table, "ben").commit("1")
    assert ledger.end_person("Ben", reason="left").ended
    with pytest.raises(NotAllowed, match="over"):
        ask(ledger, table, "ben")  # not even what is stored
    assert ledger.whose(secret) is None
    with pytest.raises(InvalidParameter):
        ledger.end_person("ben")
    with pytest.raises(InvalidParameter, match="could hold a token"):
        ledger.new_token("ben")
    ledger.add_person("ben", reason="came back")
    assert ledger.whose(secret) is None  # the old token stays ended
    assert ledger.whose(ledger.new_token("ben")).name == "ben"
    ledger.verify()


def test_a_time_is_over_by_the_ledgers_clock_and_a_clock_that_goes_back_reopens_nothing(ledger, table, clock):
    ledger.add_person("ada", role="curator")
    ledger.add_person("ben", until="2026-12-01")
    secret = ledger.new_token("ben")
    assert ledger.whose(secret).until == "2026-12-01T00:00:00.000000Z"
    clock.now = datetime(2026, 12, 1, tzinfo=UTC)
    with pytest.raises(NotAllowed, match="over"):
        ask(ledger, table, "ben")
    clock.now -= timedelta(days=10)
    with pytest.raises(NotAllowed, match="over"):
        ask(ledger, table, "ben")
    assert ledger.whose(secret) is None
    ledger.verify()


def test_a_token_that_was_shown_after_its_time_stays_over_when_the_clock_goes_back(ledger, clock):
    ledger.add_person("ben")
    secret = ledger.new_token("ben", until=clock.now + timedelta(hours=1))
    assert ledger.whose(secret).name == "ben"
    clock.now += timedelta(hours=1)
    assert ledger.whose(secret) is None
    clock.now -= timedelta(hours=1)
    assert ledger.whose(secret) is None
    assert [(one.ended, one.holds) for one in ledger.tokens()] == [(True, False)]


def test_a_token_is_its_persons_until_it_ends(ledger):
    ledger.add_person("Ben", tables=["pay"])
    first, second = ledger.new_token("BEN", reason="laptop"), ledger.new_token("ben")
    assert first != second
    assert first.startswith("tacit_")
    assert len(first) == 6 + 16 + 1 + 43
    assert ledger.whose(first) == ledger.whose(second) == ledger.person("ben")
    ledger.end_token(first, reason="lost")
    assert ledger.whose(first) is None
    assert ledger.whose(second) is not None
    assert sorted((one.holds, one.last_used is not None) for one in ledger.tokens("ben")) == [
        (False, False),
        (True, True),
    ]
    with pytest.raises(InvalidParameter):
        ledger.end_token(first)
    assert ledger.verify().kinds["token"] == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda secret: secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        lambda secret: secret[:6] + "f" * 16 + secret[22:],
        lambda secret: secret.upper(),
        lambda secret: secret + "\n",
        lambda _: "",
        lambda _: "tacit_" + "x" * 100_000,
        lambda _: "\ud800",
        lambda _: None,
    ],
)
def test_anything_else_is_nobodys(ledger, other):
    ledger.add_person("ben")
    assert ledger.whose(other(ledger.new_token("ben"))) is None


def test_an_end_holds_at_once_where_the_ledger_is_open_elsewhere(ledger, where, clock):
    ledger.add_person("ben")
    secret = ledger.new_token("ben")
    with open_ledger(where, clock=clock) as replica:
        assert replica.whose(secret) is not None
        ledger.end_token(secret)
        assert replica.whose(secret) is None


def test_the_secret_is_nowhere(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        ledger.add_person("ben")
        secret = ledger.new_token("ben")
        assert ledger.whose(secret) is not None
        texts = "".join(entry.body for entry in ledger.entries())
        stored = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    for part in (secret, secret.split("_", 2)[2]):
        assert part not in texts
        assert part.encode() not in stored


def test_an_id_that_is_not_there_reads_as_much_as_one_that_is(ledger, monkeypatch):
    ledger.add_person("ben")
    secret = ledger.new_token("ben")
    near, read = StoreRows.token_near, []

    def counted(rows, id):
        run = rows._run
        monkeypatch.setattr(rows, "_run", lambda *asked: read.append(len(found := run(*asked))) or found)
        return near(rows, id)

    monkeypatch.setattr(StoreRows, "token_near", counted)
    steps = []
    ledger.end_visit("a" * 64, now=0, until=9_000)  # stands beside the tokens
    ledger.whose(secret[:-1] + "-")  # what is read once is at hand from here on
    for id in (secret[6:22], "0" * 16, "f" * 16):  # there, before all that are, and after them
        read.clear()
        assert ledger.whose(f"tacit_{id}_{'A' * 43}") is None
        steps.append(tuple(read))
    assert len(set(steps)) == 1, "how long it takes tells whether there is such an id"


def test_a_row_beside_the_chain_makes_no_token_and_changes_none(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        ledger.add_person("ben")
        ledger.add_person("ada", role="curator")
        bens, adas = ledger.new_token("ben"), ledger.new_token("ada")
        with closing(sqlite3.connect(path, isolation_level=None)) as beside:
            [(hash,)] = beside.execute("SELECT hash FROM tacit_token WHERE id = ?", (bens[6:22],))
            beside.execute("UPDATE tacit_token SET hash = ? WHERE id = ?", (hash, adas[6:22]))
            beside.execute("INSERT INTO tacit_token (id, hash) VALUES (?, ?)", ("a" * 16, hash))
        assert ledger.whose(adas) is None
        assert ledger.whose(adas[:22] + bens[22:]) is None
        assert ledger.whose("tacit_" + "a" * 16 + bens[22:]) is None
        assert ledger.whose(bens).name == "ben"
        with closing(sqlite3.connect(path, isolation_level=None)) as beside:
            beside.execute("DELETE FROM tacit_token")
        assert ledger.whose(bens) is None
        ledger.verify()


def test_a_visit_that_is_signed_out_is_so_everywhere_until_it_would_be_over(ledger, where, clock):
    ledger.add_person("ben")
    token = ledger.new_token("ben")
    with open_ledger(where, clock=clock) as elsewhere:
        assert not elsewhere.has_ended("a" * 64)
        for _ in range(2):  # the form was sent twice
            ledger.end_visit("a" * 64, now=100, until=9_000)
        assert elsewhere.has_ended("a" * 64)
        ledger.end_visit("b" * 64, now=8_999, until=20_000)
        assert elsewhere.has_ended("a" * 64)
        ledger.end_visit("c" * 64, now=9_001, until=20_000)
        assert [elsewhere.has_ended(each * 64) for each in "abcd"] == [False, True, True, False]
    assert ledger.whose(token).name == "ben"
    assert [each.id for each in ledger.tokens()] == [token[6:22]]
    assert ledger.verify().entries == ledger.length()


def test_people_stand_in_the_signed_state(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        ledger.add_person("ben")
        ledger.end_person("ben")
    with closing(sqlite3.connect(path, isolation_level=None)) as beside:
        beside.execute("DELETE FROM tacit_state WHERE name LIKE 'person %' OR name = 'people'")
    with open_ledger(path) as ledger, pytest.raises(LedgerError, match="changed from outside"):
        ask(ledger, table, "ben")
    with open_ledger(path) as ledger, pytest.raises(LedgerError, match="does not verify"):
        ledger.verify()


def test_names_are_one_whatever_their_case_and_accents(ledger, table):
    ledger.grant("pay", epsilon("0.1"), analyst="José")
    ask(ledger, table, "jose\u0301").commit("1")
    with pytest.raises(BudgetExceeded, match="for José"):
        ask(ledger, table, "JOSÉ", "q2")
    assert ledger.reserve(table, TENTH, question_key="q", analyst="JOSE\u0301").answer == "1"
    ledger.verify()


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ben",
        "ben ",
        "b  en",
        "*",
        "..",
        "b\u0435n",  # a Cyrillic letter among Latin ones
        "be\u200bn",
        "ben\x1b[31m",
        "ben\n",
        "be\u202en",
        "\uff42en",  # a wide letter
        "\U0001d41ben",  # a mathematical one
        "\u0261en",  # a phonetic one
        "be\ufe0fn",
        "\u3164",
        "ben\u2028",
        "a" * 101,
        None.__class__,
        "\ud800",
    ],
)
def test_names_that_hide_something_are_refused(name):
    with pytest.raises(InvalidParameter):
        given_name(name)


@pytest.mark.parametrize(
    "name", ["ben", "Zoë K.", "O'Neill", "陈 伟", "やまだ タロウ", "Анна", "Łukasz", "ben@x.org", "김민수"]
)
def test_names_of_people_are_taken(name):
    assert given_name(name) == name
    assert name_key(name_key(name)) == name_key(name)


@pytest.mark.parametrize(
    ("first", "second"), [("copy", "\u0441\u043e\u0440\u0443"), ("ben1", "benl"), ("Bill", "BiIl"), ("ann0", "anno")]
)
def test_a_name_that_looks_like_anothers_is_refused(ledger, first, second):
    assert look(first) == look(second)
    ledger.add_person(first)
    with pytest.raises(InvalidParameter, match="looks like"):
        ledger.add_person(second)
    assert [one.name for one in ledger.people()] == [first]


@pytest.mark.parametrize("until", ["tomorrow", "2026-13-01", "2027-02-01T08:00:00", datetime(2027, 2, 1), 5])  # noqa: DTZ001
def test_an_end_is_a_day_or_a_time_with_its_zone(ledger, until):
    with pytest.raises(InvalidParameter, match="until"):
        ledger.add_person("ben", until=until)


def test_a_person_has_a_usual_epsilon_for_the_record(ledger):
    assert ledger.add_person("ben", usual_epsilon="0.5", reason="a dashboard").usual_epsilon == "0.5"
    assert ledger.person("BEN").usual_epsilon == "0.5"
    assert "ε 0.5 by PostgreSQL's protocol" in entry_line(list(ledger.entries())[-1], {})
    assert ledger.add_person("ben").usual_epsilon is None
    for wrong in ("0", "-1", "x", "1e9"):
        with pytest.raises(InvalidParameter):
            ledger.add_person("ben", usual_epsilon=wrong)
    ledger.verify()


def test_the_keys_of_a_token_are_a_persons_and_end_with_it(ledger, clock):
    ledger.add_person("ben")
    ledger.add_person("ada")
    secret, other = ledger.new_token("Ben"), ledger.new_token("ada")
    found = ledger.scram("BEN")
    assert list(found.keys) == [secret[6:22]]
    assert found.salt == ledger.scram("ben").salt != ledger.scram("ada").salt
    assert ledger.scram("nobody").keys == {}
    assert ledger.holder(secret[6:22]).name == "ben"
    ledger.end_token(secret)
    assert ledger.holder(secret[6:22]) is None
    assert ledger.scram("ben").keys == {}
    assert ledger.holder("0" * 16) is None
    assert ledger.holder(other[6:22]).name == "ada"
