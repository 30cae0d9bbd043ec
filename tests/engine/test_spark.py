"""Spark gives the integers of the embedded engine, refuses what computes, and tells nothing of rows."""

from pathlib import Path

import pyarrow as pa
import pytest

import tacit
from tacit.engine.spark import SparkEngine, _probe
from tacit.engine.task import FAILED, WITHOUT_LOOPS, get_ready, versions
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.learning import AdditiveClassifier, Holdout
from tacit_gauntlet.stage.parts import as_read
from tacit_gauntlet.stage.table import all_frozen
from tests.doc_blocks import run_page
from tests.engine.exact import SALT
from tests.engine.raising import Raising, WithoutKernel
from tests.engine.test_parts import SHAPES, people, question
from tests.learning.sided_people import people_table, rows_of
from tests.spark_session import logged, spark_session, stored

PROJECT = Path(__file__).parents[2]
pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.far]


@pytest.fixture(scope="module")
def spark():
    return spark_session()


@pytest.mark.parametrize("shape", ["found texts", "different of found", "row quantiles", "each unit's rows"])
def test_spark_gives_the_integers_of_the_embedded_engine(spark, shape):
    rows, (sql, beside) = people(), SHAPES[shape]
    there = question(sql, stored(rows, "people"), {**beside, "spark": spark})
    here = question(sql, rows, beside)
    plan = here.plan(epsilon=1).plan
    assert repr(there.plan(epsilon=1).plan) == repr(plan)
    assert there.session.engine.path_of(plan) == here.session.engine.path_of(plan)
    found = there.session.engine.aggregate(plan, SALT)
    assert as_read(found) == as_read(here.session.engine.aggregate(plan, SALT))


@pytest.mark.smoke
def test_a_table_of_spark_is_declared_asked_and_charged_like_any_other(spark):
    table = tacit.table(
        stored(people(), "visits"),
        spark=spark,
        unit="id",
        budget=tacit.epsilon(10**6, delta=1e-6),
        ledger=":memory:",
        rows_per_unit=400,
        groups_per_unit=10,
        columns={"x": {"between": (0, 10)}},
    )
    answer = table.sql("SELECT g, COUNT(*) AS n FROM visits GROUP BY g").answer(epsilon=10**4)
    longest = max(len(str(key)) for key in answer.to_arrow().column("g").to_pylist())
    assert longest == 76  # a long text is looked up once its key was released
    assert answer.facts.receipt


def test_the_guides_example_runs(spark):
    """Its session is the tests' own, which getOrCreate finds."""
    page = (PROJECT / "docs" / "guide" / "engines.md").read_text().partition("## Spark")[2]
    spark.sql("DROP DATABASE IF EXISTS care CASCADE")
    assert run_page(page.replace("```py\n", "```python\n")) == 3


def test_a_model_is_fitted_and_scored_as_on_rows_that_are_here(spark):
    """With the same noise a model and its score are equal: the same people are set aside, and all sums are equal."""

    def fitted(source, **more):
        with all_frozen():
            holdout = Holdout(people_table(source, **more), share=0.3)
            model = AdditiveClassifier(epsilon=1, delta="1e-7").fit(
                holdout.training, target="buys", features=["age", "sex"]
            )
            return model.to_sql(), repr(holdout.score(model, epsilon=1, delta="1e-7"))

    rows = rows_of(300)
    assert fitted(stored(rows, "sided"), spark=spark) == fitted(rows)


def test_columns_may_have_any_name(spark):
    """pyspark looks columns up by name again, and takes a point or a backtick in one for its own."""
    names = ["id", "petal.width", "`", "a `b`.c", "é x", "select"]
    rows = pa.table({name: pa.array([1, 2, 3], pa.int64()) for name in names})
    asked = ", ".join(f'SUM("{name}") AS s{at}' for at, name in enumerate(names[1:]))
    beside = {"columns": {name: {"between": (0, 9)} for name in names[1:]}}
    there = question(f"SELECT {asked} FROM t", stored(rows, "named"), {**beside, "spark": spark})
    here = question(f"SELECT {asked} FROM t", rows, beside)
    plan = here.plan(epsilon=1).plan
    assert as_read(there.session.engine.aggregate(plan, SALT)) == as_read(here.session.engine.aggregate(plan, SALT))


def test_what_computes_is_refused_in_words(spark):
    address = stored(people(40), "few")
    spark.sql("CREATE OR REPLACE VIEW clinic.looked AS SELECT * FROM clinic.few")
    spark.table("clinic.few").createOrReplaceTempView("passing")
    spark.sql("CREATE TABLE IF NOT EXISTS clinic.lines (id INT) USING csv")
    for name, words in [
        ("spark://clinic.looked", "is a view of Spark"),
        ("spark://passing", "is a temporary view of Spark"),
        ("spark://clinic.lines", "is stored as csv"),
        ("spark://clinic.nobody", "Spark does not have a table"),
        (spark.table("clinic.few"), "a Spark DataFrame is a computation"),
    ]:
        with pytest.raises(QueryRefused, match=words):
            tacit.table(name, spark=spark, unit="id", budget=tacit.epsilon(1), ledger=":memory:")
    with pytest.raises(InvalidParameter, match="in a session of yours"):
        tacit.table(address, unit="id", budget=tacit.epsilon(1), ledger=":memory:")


def test_executors_with_other_versions_are_refused_at_opening(spark, monkeypatch):
    address = stored(people(20), "few")
    monkeypatch.setattr("tacit.engine.spark._have_loops", {})
    monkeypatch.setattr("tacit.engine.spark.versions", lambda: "another version")
    with pytest.raises(QueryRefused, match="Spark's executors do not have what the driver has"):
        tacit.table(address, spark=spark, unit="id", budget=tacit.epsilon(1), ledger=":memory:")


def test_executors_that_leave_the_kernel_out_answer_in_sql(spark, monkeypatch, kernel):
    """A session like theirs: the probe says what tasks of this process say where the kernel is left out."""
    address, probe = stored(people(20), "few"), _probe()
    monkeypatch.setattr("tacit.engine.spark._have_loops", {})
    monkeypatch.setattr("tacit.engine.spark._probe", lambda: WithoutKernel(probe))
    table = tacit.table(address, spark=spark, unit="id", budget=tacit.epsilon(9), ledger=":memory:", rows_per_unit=1)
    asked = table.sql("SELECT COUNT(*) AS n FROM few")
    plan = asked.plan(epsilon=1).plan
    assert asked.session.engine.path_of(plan) == "sql"
    assert len(asked.answer(epsilon=1).to_arrow()) == 1


def test_a_process_that_could_not_answer_some_rows_says_so(monkeypatch):
    """What a probe says of its executor, and what the driver then refuses: such tasks would fail after their charge."""
    monkeypatch.setenv("TACIT_KERNEL", "off")
    assert get_ready() == versions() + WITHOUT_LOOPS
    monkeypatch.setenv("TACIT_MEMORY", "3")
    assert "TACIT_MEMORY must be a size" in get_ready()
    monkeypatch.delenv("TACIT_MEMORY")
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    monkeypatch.setattr("tacit.memory._mine", None)
    assert "temporary files cannot be written to" in get_ready()


def test_all_tests_of_a_group_are_in_one_worker(request):
    """Else each worker starts a Spark; xdist reads the group at the end of a test's name."""
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@spark")


def test_a_cell_that_makes_a_task_raise_is_in_no_log(spark, capfd):
    """The cell is planted where a task of ours raises it; Spark ships what it hears to logs and the event log."""

    class Loud(SparkEngine):
        def _mapped(self, frame, stage):
            return super()._mapped(frame, Raising())

    secret = "cellofnobodyelse"
    rows = pa.table({"id": [1], "x": [secret]})
    source = tacit.table(
        stored(rows, "loud", files=1), spark=spark, unit="id", budget=tacit.epsilon(1), ledger=":memory:"
    )
    plan = source.sql("SELECT COUNT(*) AS n FROM loud WHERE x > 'a'").plan(epsilon=1).plan
    with pytest.raises(EngineError) as failed:
        Loud(source.session.engine.source).aggregate(plan, SALT)
    heard = logged()
    assert any(FAILED in each for each in heard), "the event log has the fixed sentence"
    said = "".join([*heard, *capfd.readouterr(), str(failed.value), repr(failed.value.__context__)])
    assert secret not in said
