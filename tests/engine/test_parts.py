"""Rows that are cut by unit give the integers that they give together, for every shape of plan."""

import datetime as dt
import gc
import random
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import tacit
from tacit.engine.cutting import Piece, cut_rows, to_stream
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import kernel_path
from tacit.engine.part import EXACT, Spool, added_parts, from_bytes, part_tables, to_bytes
from tacit.engine.task import Task, as_batches, parted, pieces_of, versions
from tacit.memory import LEAST
from tacit_gauntlet.stage.parts import as_read, asked_in_parts, stand_in
from tests.engine.exact import SALT

LONG = ["ward " + "x" * 70 + str(at) for at in range(3)]


def people(rows=400, seed=3):
    """Return rows of skewed people, with odd cells, in columns of every type that questions are about."""
    turn = random.Random(seed)

    def some(*values):
        return [turn.choice(values) for _ in range(rows)]

    ids = [1 if turn.random() < 0.3 else turn.choice([None, *range(40)]) for _ in range(rows)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "g": pa.array(some("a", "b", "é", None, *LONG), pa.string()),
            "k": pa.array(some(0, 1, 2, 3, None), pa.int64()),
            "x": pa.array(some(None, -(2**63), -1, 0, 3, 10, 2**63 - 1), pa.int64()),
            "y": pa.array(some(None, float("nan"), -0.0, 0.3, 4.99, 1e300), pa.float64()),
            "d": pa.array(some(dt.date(2024, 2, 29), dt.date(1, 1, 1), None), pa.date32()),
            "p": pa.array(some(Decimal("1.50"), Decimal("-9.99"), None), pa.decimal128(10, 2)),
        }
    )


def declared(source, **more):
    usual = {"unit": "id", "budget": tacit.epsilon(10**6, delta=1e-6), "ledger": ":memory:", "name": "t"}
    columns = {"x": {"between": (0, 10)}, "y": {"between": (-5, 5)}, "k": {"keys": [0, 1, 2, 7]}}
    return tacit.table(source, **(usual | {"columns": columns} | more))


BY_HAND = {"rows_per_unit": 2, "groups_per_unit": 2}
TRUSTED = {"rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1}
ROWS = {"unit": tacit.ROW}
# name -> the question and what is declared beside
SHAPES = {
    "a count": ("SELECT COUNT(*) FROM t", BY_HAND),
    "units": ("SELECT COUNT(DISTINCT id) FROM t", TRUSTED),
    "found texts": ("SELECT g, COUNT(*), SUM(x), AVG(y) FROM t GROUP BY g", BY_HAND),
    "listed numbers": ("SELECT k, COUNT(*), SUM(x), AVG(y) FROM t GROUP BY k", TRUSTED),
    "two keys": ("SELECT g, d, COUNT(*), SUM(y) FROM t GROUP BY g, d", BY_HAND),
    "decimal keys": ("SELECT p, COUNT(*) FROM t GROUP BY p", TRUSTED),
    "spread": ("SELECT k, VAR_SAMP(x), STDDEV_SAMP(y) FROM t GROUP BY k", TRUSTED),
    "covariance": ("SELECT COVAR_SAMP(x, y) FROM t", TRUSTED),
    "a filter": ("SELECT k, COUNT(*) FROM t WHERE x > 0 AND g <> 'a' GROUP BY k", BY_HAND),
    "quantiles": ("SELECT g, APPROX_QUANTILE(x, 0.5), COUNT(*) FROM t GROUP BY g", TRUSTED),
    "a median": ("SELECT MEDIAN(x) FROM t", BY_HAND),
    "different values": ("SELECT k, COUNT(DISTINCT g), COUNT(DISTINCT y), COUNT(*) FROM t GROUP BY k", TRUSTED),
    "different of found": ("SELECT g, COUNT(DISTINCT x), SUM(y) FROM t GROUP BY g", BY_HAND),
    "rows": ("SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g", ROWS),
    "rows without keys": ("SELECT COUNT(*), COUNT(DISTINCT g), AVG(y) FROM t", ROWS),
    "row quantiles": ("SELECT k, MEDIAN(x), COUNT(DISTINCT d) FROM t GROUP BY k", ROWS),
    "each unit's rows": ("SELECT n, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) GROUP BY n", BY_HAND),
    "units and keys": ("SELECT g, SUM(s) FROM (SELECT id, g, SUM(x) AS s FROM t GROUP BY id, g) GROUP BY g", BY_HAND),
    "computed columns": ("SELECT h, COUNT(*) FROM (SELECT id, UPPER(g) AS h FROM t WHERE x > 0) GROUP BY h", BY_HAND),
}
PARTS = (1, 2, 5, 8, 64)


def question(sql, source, beside):
    return declared(source, **beside).sql(sql, **({"between": {"s": (0, 20)}} if "SUM(s)" in sql else {}))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("kernel")
def test_parts_add_up_to_the_integers_of_the_whole(shape):
    """In any number of parts, any order of batches and any mixture of parts in one place, on every path."""
    rows, (sql, beside) = people(), SHAPES[shape]
    there, here = question(sql, stand_in(rows), beside), question(sql, rows, beside)
    plan = here.plan(epsilon=1).plan
    assert repr(there.plan(epsilon=1).plan) == repr(plan)
    turn = random.Random(shape)
    for path in ["sql", "kernel"] if kernel_path.supports(plan, here.session.engine.source) else ["sql"]:
        whole = EmbeddedEngine(here.session.engine.source, path=path).aggregate(plan, SALT)
        parts, seed = turn.choice(PARTS), turn.random()
        how = {"parts": parts, "path": path, "seed": seed, "places": min(parts, 3)}
        assert as_read(asked_in_parts(there, plan, SALT, **how)) == as_read(whole), how


def test_pieces_pass_through_tasks_and_a_spool_as_they_are():
    """A piece that arrives goes on to the next stage, and rows that arrive may go to a file."""
    rows = people(50).drop_columns(["y"])  # NaN is not equal to itself
    piece = Piece(3, 1, to_stream(rows))
    (again,) = pieces_of(as_batches(pieces_of(as_batches([piece]))))
    assert (again.part, again.kind, bytes(again.data)) == (3, 1, piece.data)
    with Spool(memory=8, tables=1) as spool:  # no piece is so small
        spool.add(0, again.data)
        spool.add(0, again.data)
        assert spool.table(0, rows.schema).equals(pa.concat_tables([rows, rows]))


def test_a_worker_collects_no_garbage_among_what_it_has_imported():
    """As a process of a scheduler's does after each task; here, where tests go on, it is undone."""
    elsewhere, here = (Task(lambda _: iter(()), versions(), **more) for more in ({"maker": 0}, {}))
    assert list(here(iter(()))) == []
    assert gc.get_freeze_count() == 0
    try:
        assert list(elsewhere(iter(()))) == []
        assert gc.get_freeze_count() > 10**4
    finally:
        gc.unfreeze()


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_person_with_a_million_rows_is_scaled_in_little_memory(noise, monkeypatch):
    """All rows of a scaled person move. Where they are too many for a task's memory, it answers from a file."""
    count = 1_000_000
    rows = pa.table(
        {"id": pa.array([1] * count), "k": pa.array([0, 1, 2, 3] * (count // 4)), "x": pa.array([3, 7] * (count // 2))}
    )
    columns = {"x": {"between": (0, 10)}, "k": {"keys": [0, 1, 2, 7]}}
    there, here = (
        declared(each, columns=columns).sql("SELECT k, SUM(x) FROM t GROUP BY k") for each in (stand_in(rows), rows)
    )
    plan = here.plan(epsilon=1, noise=noise).plan
    assert plan.scaling is not None
    whole = EmbeddedEngine(here.session.engine.source, path="kernel").aggregate(plan, SALT)
    monkeypatch.setenv("TACIT_MEMORY", str(LEAST))
    source = there.session.engine.source
    engine = EmbeddedEngine(source, path="kernel")
    asked = parted(source, engine, plan, SALT, 2)
    pieces = cut_rows(rows.select(asked.cuttings[0].columns).to_batches(), asked.cuttings[0].cut, 0)
    parts = [from_bytes(piece.data, plan) for piece in part_tables(pieces, asked.asked) if piece.kind == EXACT]
    assert as_read(added_parts(asked.nothing, parts, plan)) == as_read(whole)


@pytest.mark.parametrize("shape", ["found texts", "quantiles", "listed numbers", "a median", "row quantiles"])
def test_many_groups_and_many_values_of_one_group_travel_some_at_a_time(shape):
    """Arrow's bytes end at 2 GB, which the values of one group may exceed: no number of rows makes a part fail."""
    sql, beside = SHAPES[shape]
    asked = question(sql, people(), beside)
    plan = asked.plan(epsilon=1).plan
    whole = EmbeddedEngine(asked.session.engine.source, path="sql").aggregate(plan, SALT)
    written = list(to_bytes(whole, plan, most=200))
    assert len(written) > 1
    held = [max(len(each), 1) for steps in whole.values.values() for each in (steps[at] for at in range(len(whole)))]
    assert len(written) <= len(whole) + sum(each // 16 for each in held)  # 12 bytes a value
    parts = [from_bytes(each, plan) for each in written]
    assert all(len(steps.steps) <= 3 * 16 for part in parts for steps in part.values.values())
    nothing = replace(
        whole,
        keys=whole.keys if plan.public_keys else (),
        sums={name: [0] * len(each) * bool(plan.public_keys) for name, each in whole.sums.items()},
        totals={},
    )
    assert as_read(added_parts(nothing, parts, plan)) == as_read(whole)
