"""On every engine and path, a verb about 0, 1 or 2 units ends alike, in the same words and shape.

The gauntlet has a few verbs of each kind (S62, S63, M16, M17). Here all of them are asked of every kind of unit, with
and without a WHERE that as many units match, of tables that are declared, bounded or neither.
"""

from contextlib import ExitStack

import duckdb
import pytest

from tacit_gauntlet.stage.empty_tables import UNITS, Few, in_connection, in_turn, seen_of, told_apart, verbs_of
from tacit_gauntlet.stage.engine import rows_too_many
from tests.engine.conftest import _SPARK, HOLDERS

pytestmark = pytest.mark.filterwarnings("ignore")  # what is warned of is compared
SOME = ("int", "text", "row")
QUICK = ("count", "found groups", "per unit and key", "a line", "a score of numbers")


@pytest.fixture
def paths():
    with ExitStack() as stack:
        yield stack


def told(some, hold):
    return [what for name, few in some for what in told_apart(name, few, hold)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNITS)
def test_every_kind_of_unit_in_sql(kind):
    assert told(in_turn([kind]), HOLDERS["duckdb, sql"](None)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("path", ["kernel", "patient"])
def test_the_kernel_and_the_patient_path(kind, path, paths, request):
    if path == "kernel":
        request.getfixturevalue("kernel")
    else:
        paths.enter_context(rows_too_many())
    assert told(in_turn([kind]), HOLDERS["duckdb, kernel"](None)) == []


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("name", QUICK)
def test_a_few_verbs_of_a_table_that_a_server_keeps(name, filtered, postgres, request):
    assert told([(name, Few("int", 0, filtered=filtered))], HOLDERS["postgresql"](request)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME)
@pytest.mark.parametrize("engine", ["postgresql", _SPARK])
def test_every_verb_of_rows_elsewhere(kind, engine, request):
    assert told(in_turn([kind]), HOLDERS[engine](request)) == []


@pytest.mark.parametrize("form", ["parquet", "duckdb"])
@pytest.mark.parametrize("name", ["count", "a line"])
def test_a_few_verbs_of_files(name, form, tmp_path):
    numbers = iter(range(100))

    def hold(rows):
        place = tmp_path / f"t{next(numbers)}.{form}"
        with duckdb.connect(str(place) if form == "duckdb" else ":memory:") as connection:
            connection.register("given", rows)
            connection.execute("CREATE TABLE t AS FROM given")
            if form != "duckdb":
                connection.execute(f"COPY t TO '{place}' (FORMAT {form})")
        return {"source": f"{place}?table=t" if form == "duckdb" else str(place)}

    assert told([(name, Few("text", 0, filtered=True))], hold) == []


@pytest.mark.parametrize("name", ["two classes", "listed groups", "found days", "per unit"])
def test_a_connection_whose_settings_change_types_and_raise_more(name):
    hold = in_connection("arrow_lossless_conversion = true", "ieee_floating_point_ops = false")
    assert told([(name, Few("int", 0, filtered=True))], hold) == []


@pytest.mark.parametrize("people", [0, 1])
def test_a_type_that_arrays_do_not_read_fails_whoever_is_there(people, monkeypatch):
    monkeypatch.setattr("tacit.tables.source.plain_schema", lambda schema: schema)
    hold = in_connection("arrow_lossless_conversion = true")
    assert seen_of("two classes", Few("int", people), hold)[0] == "EngineError"


def test_every_kind_of_unit_has_every_verb():
    asked = {(few.kind, name) for name, few in in_turn(list(UNITS))}
    assert asked == {(kind, name) for kind in UNITS for name in verbs_of(kind)}
