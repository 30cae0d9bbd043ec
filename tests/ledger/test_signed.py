"""What the tables hold is believed only as far as the signed head says so, on every store, whenever it is used."""

import json
import os

import psycopg
import pytest

from tacit.errors import LedgerError
from tacit.ledger import chain, open_ledger
from tacit.ledger.anchor import LedgerAnchor, anchored_at
from tacit.ledger.entry import Account, account_text
from tacit.ledger.state import BUCKET_MAX, Pieces, State, place_of, whole_state
from tacit.ledger.store import NotAsSigned, StoreRows
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.ledger import DECLARATION, TENTH, ask, charge
from tacit_gauntlet.stage.postgres_server import fresh_schema
from tests.ledger.test_verify import behind_its_back

NOTHING = account_text(Account())
TAMPERED = r"changed from outside|does not verify"


def spent_ledger(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        assert ask(ledger, table, "all", epsilon=TENTH * 10)
    return table


@pytest.mark.parametrize(
    "rewrite",
    [
        f"UPDATE tacit_state SET value = '{NOTHING}' WHERE name LIKE 'account%'",
        "DELETE FROM tacit_state WHERE name LIKE 'account%'",
        "UPDATE tacit_state SET name = 'x' || name WHERE name LIKE 'account%'",
        "UPDATE tacit_head SET time = '2000'",
    ],
)
def test_a_total_that_was_rewritten_is_refused_before_the_charge(where, rewrite):
    table = spent_ledger(where)
    with behind_its_back(where) as tables:
        tables.execute(rewrite)
    with pytest.raises(LedgerError, match=TAMPERED), open_ledger(where) as ledger:
        charge(ledger, table, "more")
    with behind_its_back(where) as tables:
        assert list(tables.execute("SELECT max(number) FROM tacit_entry"))[0][0] == 5


def test_an_old_total_put_back_is_refused_though_the_ledger_itself_wrote_it(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        charge(ledger, table, "one")
    with behind_its_back(where) as tables:
        old = list(tables.execute("SELECT name, value FROM tacit_state WHERE name LIKE 'account%'"))
    with open_ledger(where) as ledger:
        charge(ledger, table, "two")
    with behind_its_back(where) as tables:
        for name, value in old:
            tables.execute(f"UPDATE tacit_state SET value = '{value}' WHERE name = '{name}'")
    with open_ledger(where) as ledger:
        for question in (
            lambda: charge(ledger, table, "three"),
            lambda: ledger.left(table),
            lambda: ledger.spent(table),
        ):
            with pytest.raises(LedgerError, match=TAMPERED):
                question()


def test_a_ledger_that_is_open_notices_a_total_that_another_rewrites(where):
    with open_ledger(where) as ledger, open_ledger(where) as other:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        charge(ledger, table, "one")
        charge(other, table, "two", epsilon=TENTH / 2)
        with behind_its_back(where) as tables:
            tables.execute(f"UPDATE tacit_state SET value = '{NOTHING}' WHERE name LIKE 'account%'")
        with pytest.raises(LedgerError, match=TAMPERED):
            charge(ledger, table, "three")


def test_a_stored_answer_that_was_rewritten_is_refused_with_a_hash_that_agrees(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(9))
        answers = [ask(ledger, table, f"q{turn}").number for turn in range(40)]
    for number in (answers[0], answers[-2]):
        with behind_its_back(where) as tables:
            ((before,),) = tables.execute(f"SELECT hash FROM tacit_entry WHERE number = {number - 1}")
            ((body, hash),) = tables.execute(f"SELECT body, hash FROM tacit_entry WHERE number = {number}")
            other = body.replace("answer to", "another to")
            put = "UPDATE tacit_entry SET body = '{}', hash = '{}' WHERE number = {}"
            tables.execute(put.format(other, chain.link(before, other), number))
            with open_ledger(where) as ledger:
                with pytest.raises(LedgerError, match=TAMPERED):
                    ledger.recall(table, question_key=f"q{answers.index(number)}")
                with pytest.raises(LedgerError, match=TAMPERED):
                    ledger.certificate(number)
            tables.execute(put.format(body, hash, number))
    with open_ledger(where) as ledger:
        ledger.verify()
        assert ledger.recall(table, question_key="q0").answer == '"answer to q0"'


def test_an_old_copy_with_a_row_planted_for_the_anchor_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
    old = path.read_bytes()
    with open_ledger(path) as ledger:
        receipt = ask(ledger, table, "q")
    path.write_bytes(old)
    with behind_its_back(str(path)) as tables:
        tables.execute(
            "INSERT INTO tacit_entry (number, body, hash) VALUES (?, '{}', ?)", (receipt.number, receipt.hash)
        )
    with pytest.raises(LedgerError, match="is behind"):
        open_ledger(path)


class Stored:
    """A map's rows as a store would give them."""

    def __init__(self):
        self.values, self.children = {}, {}

    def write(self, change):
        self.values |= {name: (place, value) for name, place, value in change.values}
        self.children |= dict(change.nodes)

    def rows(self):
        def run(statement, values):
            if "tacit_node" in statement:
                return [(self.children[values[0]],)] if values[0] in self.children else []
            return [(name, value) for name, (place, value) in self.values.items() if values[0] <= place < values[1]]

        return StoreRows(run, run)


def test_a_map_grown_step_by_step_is_the_map_of_its_values_and_no_value_of_it_can_be_changed():
    stored, values = Stored(), {}
    root, _ = whole_state({})
    for turn in range(30 * BUCKET_MAX):
        state = State(stored.rows(), root, Pieces())
        assert state.get(f"name {turn}") is None
        put = {f"name {turn}": str(turn), f"name {turn // 2}": f"changed by {turn}"}
        for name, value in put.items():
            state.put(name, value)
        change = state.change()
        stored.write(change)
        root, values = change.root, values | put
    assert (root, stored.children) == whole_state(values)
    assert all(State(stored.rows(), root, Pieces()).get(name) == value for name, value in values.items())
    for name in [*values][::37]:
        place, value = stored.values[name]
        for forged in ((place, "0"), None, (place_of("elsewhere"), value)):
            stored.values[name] = forged
            if forged is None:
                del stored.values[name]
            with pytest.raises(NotAsSigned):
                State(stored.rows(), root, Pieces()).get(name)
        stored.values[name] = (place, value)


def test_a_ledgers_id_is_never_taken_for_a_path(tmp_path):
    (tmp_path / "precious").write_text("not an anchor")
    os.mkfifo(tmp_path / ("0" * 32))
    for id in (str(tmp_path / "precious"), "../precious", "", "0" * 31 + "/", "A" * 32, None):
        with pytest.raises(LedgerError, match="id that tacit never makes"):
            LedgerAnchor(tmp_path, id)
    with pytest.raises(LedgerError, match="not a plain file"):
        LedgerAnchor(tmp_path, "0" * 32).read()


def test_what_else_is_in_the_folder_of_anchors_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert anchored_at(tmp_path, "anywhere") is None


def test_a_home_that_may_not_be_written_is_noticed_before_the_charge(where, tacit_home):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        anchor = tacit_home / "anchors" / ledger.id
        anchor.unlink()
        anchor.mkdir()  # root may write any file, and no folder as one
        with pytest.raises(LedgerError, match=r"cannot be written(.|\n)*TACIT_HOME"):
            charge(ledger, table, "q")
        assert ledger.length() == 3
        anchor.rmdir()
        assert ask(ledger, table, "q")


def test_a_question_reads_no_more_when_the_ledger_has_many_tables_and_analysts(tmp_path):
    counts = []
    for others in (2, 60):
        with open_ledger(tmp_path / f"{others}.db") as ledger:
            for turn in range(others):
                ledger.register(name=f"t{turn}", declaration=DECLARATION, source=f"t{turn}", budget=epsilon(1))
                ledger.grant("t0", epsilon(1), analyst=f"analyst {turn}")
        with open_ledger(tmp_path / f"{others}.db") as ledger:
            statements = []
            table = ledger.register(name="t1", declaration=DECLARATION, source="t1")
            ledger._store._connection.set_trace_callback(statements.append)
            charge(ledger, table, "q")
            counts.append(len(statements))
    assert counts[1] <= counts[0] + 30


def test_names_of_any_letters_are_found_again(ledger):
    names = ["a", "ä", "a b", '"quoted"', "😀", "z\u0000z"]
    for name in names:
        ledger.register(name=name, declaration=DECLARATION, source=name, budget=epsilon(1))
    assert [table.name for table in ledger.tables()] == sorted(names)
    assert ledger.table("ä").name == "ä"
    assert ledger.table("nobody") is None


def test_analysts_are_those_of_one_people(ledger, table):
    other = ledger.register(name="other", declaration=DECLARATION, source="other", budget=epsilon(1))
    for who in ("bob", "ann"):
        ask(ledger, table, f"{who}'s", analyst=who)
    ask(ledger, other, "q", analyst="eve")
    assert ledger.analysts(table) == ("ann", "bob")
    assert json.loads(json.dumps(ledger.analysts(other))) == ["eve"]


def test_nothing_elsewhere_on_the_search_path_stands_in_for_the_ledgers_own(postgres):
    where = fresh_schema(postgres)
    with psycopg.connect(where, autocommit=True) as link:
        (schema,) = link.execute("SELECT current_schema()").fetchone()
        link.execute(f"CREATE SCHEMA {schema}_evil")
        link.execute(
            f"CREATE FUNCTION {schema}_evil.json_to_recordset(json) RETURNS SETOF record AS 'SELECT 1' LANGUAGE sql"
        )
    path = f"{schema},{schema}_evil,pg_catalog"
    with open_ledger(where.replace(schema, path)) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(1))
        for turn in range(3):
            assert ask(ledger, table, str(turn))
        assert ledger._store._connection.execute("SHOW search_path").fetchone() == (f"{schema}, pg_temp",)
        ledger.verify()


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TABLE more () INHERITS (tacit_state)",
        "ALTER TABLE tacit_entry ENABLE ROW LEVEL SECURITY; CREATE POLICY hide ON tacit_entry USING (number < 2)",
        "CREATE RULE free AS ON INSERT TO tacit_entry DO INSTEAD NOTHING",
    ],
)
def test_what_hides_or_adds_rows_on_a_server_is_refused(postgres, planted):
    where = fresh_schema(postgres)
    open_ledger(where).close()
    with psycopg.connect(where, autocommit=True) as link:
        link.execute(planted)
    with pytest.raises(LedgerError, match="damaged"):
        open_ledger(where)
