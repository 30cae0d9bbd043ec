"""Through Spark Connect, as on shared and serverless clusters: the same integers, refusals and silence."""

import re

import pyarrow as pa
import pytest

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.spark import SparkEngine
from tacit.engine.task import FAILED, parted
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.tables import spark_tables
from tacit_gauntlet.stage.parts import as_read
from tests.doc_blocks import run_page
from tests.engine.exact import SALT
from tests.engine.raising import Raising
from tests.engine.test_elsewhere import asked, local, plain, visits
from tests.engine.test_parts import SHAPES, people, question
from tests.spark_session import logged, spark_session, stored

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.far]


def on_server(rows, name):
    """Store rows as a table of the tests' Spark, and return its address on that Spark's server."""
    return stored(rows, name).replace("spark://", f"{spark_session().server}?table=")


def opened(source, **more):
    return tacit.table(source, **({"unit": "id", "budget": tacit.epsilon(10**6), "ledger": ":memory:"} | more))


@pytest.mark.parametrize("shape", ["found texts", "different of found", "each unit's rows"])
def test_a_client_gets_the_integers_of_the_embedded_engine(shape):
    rows, (sql, beside) = people(), SHAPES[shape]
    there, here = question(sql, on_server(rows, "people"), beside), question(sql, rows, beside)
    plan = here.plan(epsilon=1).plan
    assert repr(there.plan(epsilon=1).plan) == repr(plan)
    found = there.session.engine.aggregate(plan, SALT)
    assert as_read(found) == as_read(here.session.engine.aggregate(plan, SALT))


def test_two_tables_of_one_server_are_joined():
    """One is named by an address, and the other in the session that addresses of the server share."""
    session = spark_tables._session_on(spark_session().server)

    def hold(rows):
        if "age" in rows.column_names:
            return {"source": stored(rows, "ages"), "spark": session}
        return {"source": on_server(rows, "visits")}

    here, there = asked("a join", local), asked("a join", hold)
    plan = here.plan(epsilon=1).plan
    assert plain(there.session.engine.aggregate(plan, SALT)) == plain(here.session.engine.aggregate(plan, SALT))


def test_bounds_are_learned_and_answers_charged():
    learning = opened(on_server(visits(), "learned"), budget=tacit.epsilon(10**6, delta=1e-6), name="visits")
    answer = learning.sql("SELECT place, SUM(x) AS s FROM visits WHERE place > 3 GROUP BY place").answer(epsilon=10**4)
    assert answer.facts.receipt


def test_the_command_line_takes_an_address():
    address = on_server(people(40), "few")
    words = f'"{address}" "SELECT COUNT(*) FROM few" --unit id --budget 2 --epsilon 1'
    assert run_page(f"```console\n$ tacit plan {words}\n```\n")


def test_what_cannot_be_opened_is_refused_in_words(monkeypatch):
    address, spark = on_server(people(40), "few"), spark_session()
    spark.sql("CREATE OR REPLACE VIEW clinic.looked AS SELECT * FROM clinic.few")
    for name, words in [("clinic.looked", "is a view of Spark"), ("clinic.nobody", "Spark does not have a table")]:
        with pytest.raises(QueryRefused, match=words):
            opened(f"{spark.server}?table={name}")
    with pytest.raises(InvalidParameter, match="makes its own session"):
        opened(address, spark=spark)
    with pytest.raises(InvalidParameter, match="names no table"):
        opened(spark.server)
    monkeypatch.setattr(spark_tables, "RETRIES", 0)
    with pytest.raises(QueryRefused, match="the Spark server does not answer"):
        opened("sc://127.0.0.1:9?table=clinic.few")
    with pytest.raises(QueryRefused, match="Spark DataFrame is a computation"):
        opened(spark_tables._session_on(spark.server).table("clinic.few"))


def test_before_a_charge_a_server_is_asked_for_seconds_and_not_for_ten_minutes(monkeypatch):
    table = opened(on_server(people(20), "few"))
    client = table.session.engine.source.elsewhere.rows.session.client
    usual, asked_with, set_policies = client.get_retry_policies(), [], client.set_retry_policies

    def heard(policies):
        asked_with.append([each.max_retries for each in policies])
        set_policies(policies)

    monkeypatch.setattr(client, "set_retry_policies", heard)
    table.session.engine.refuse_changes()
    assert asked_with == [[spark_tables.RETRIES], [each.max_retries for each in usual]]


def test_a_cell_that_makes_a_task_raise_is_in_no_log_of_the_server_and_in_nothing_it_sends(capfd):
    class Loud(SparkEngine):
        def _mapped(self, frame, stage):
            return super()._mapped(frame, Raising())

    secret = "cellofaclient"
    table = opened(on_server(pa.table({"id": [1], "x": [secret]}), "loud"), name="loud")
    plan = table.sql("SELECT COUNT(*) AS n FROM loud WHERE x > 'a'").plan(epsilon=1).plan
    source = table.session.engine.source
    engine = Loud(source)
    with pytest.raises(EngineError) as failed:
        engine.aggregate(plan, SALT)
    # what the server sends has the task's words in it
    with pytest.raises(Exception, match=re.escape(FAILED)) as sent:
        engine._pieces(parted(source, EmbeddedEngine(source), plan, SALT, 2))
    said = [
        *logged(),
        *capfd.readouterr(),
        str(failed.value),
        repr(failed.value.__context__),
        repr(sent.value.__dict__),
    ]
    assert secret not in "".join([*said, str(sent.value)])


def test_a_session_that_the_server_has_forgotten_is_replaced():
    address = on_server(people(40), "few")
    first = opened(address).session.engine.source.elsewhere.rows.session
    assert opened(address).session.engine.source.elsewhere.rows.session is first
    first.stop()
    assert opened(address).session.engine.source.elsewhere.rows.session is not first
