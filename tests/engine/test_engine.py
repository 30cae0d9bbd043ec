"""An engine answers one question at a time, and of what goes wrong inside says one fixed thing."""

import threading
import traceback

import pyarrow as pa
import pytest

from tacit.engine.engine import FAILED
from tacit.errors import EngineError, QueryRefused
from tacit_gauntlet.stage.table import bounded_table

ROWS = pa.table({"id": range(60), "g": ["abc"[place % 3] for place in range(60)], "x": range(60)})


def failing(monkeypatch, question, problem):
    def fail(*_):
        raise problem

    monkeypatch.setattr(type(question.session.engine), "_aggregate", fail)


@pytest.mark.parametrize(
    "problem", [ValueError("cell 4711"), RuntimeError("4711"), MemoryError("4711"), KeyError("4711")]
)
def test_whatever_fails_says_one_fixed_thing(engine, monkeypatch, everyones_log, capfd, curators_log, problem):
    question = engine(ROWS).count()
    failing(monkeypatch, question, problem)
    with pytest.raises(EngineError) as failed:
        bounded_table(question)
    assert str(failed.value) == FAILED
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert curators_log == [f"engine failed: {type(problem).__name__}"]
    assert (everyones_log, capfd.readouterr().err) == ([], "")  # its class may depend on rows
    assert "4711" not in "".join([*traceback.format_exception(failed.value), *curators_log])


def test_ctrl_c_is_not_swallowed(engine, monkeypatch):
    question = engine(ROWS).count()
    failing(monkeypatch, question, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bounded_table(question)


def test_questions_from_many_threads_get_their_own_sums(engine):
    table = engine(ROWS)
    found, problems = {}, []

    def ask(least):
        try:
            asked = table.where(f"x >= {least}").group_by("g", keys=["a", "b", "c", "d"]).count()
            found[least] = list(bounded_table(asked).sums["rows"])
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=ask, args=(least,)) for least in range(0, 60, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert found == {least: [(60 - least) // 3] * 3 + [0] for least in range(0, 60, 6)}


def test_a_declared_type_that_no_cast_gives_is_refused_at_once(engine):
    with pytest.raises(QueryRefused, match="declare it as float"):
        engine(pa.table({"id": [1], "x": [1.5]}), columns={"x": {"type": "decimal"}})


@pytest.mark.parametrize("sizes", [(0, 0), (1, 0), (0, 3)])
def test_empty_tables_give_zeros_and_no_groups(engine, sizes):
    rows = ROWS.slice(0, sizes[0])
    table = engine(rows.set_column(0, "id", pa.array([None] * len(rows), pa.int64())))
    assert list(bounded_table(table.count()).sums["rows"]) == [0]
    assert len(bounded_table(table.group_by("g").count())) == 0
    assert list(bounded_table(table.group_by("g", keys=["a", "b"]).count()).sums["rows"]) == [0, 0]
