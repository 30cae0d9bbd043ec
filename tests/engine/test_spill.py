"""Rows beyond the memory limit go to a private file, and the cause of a failure is not shown to the analyst."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import warnings
from functools import partial

import duckdb
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import tacit
from tacit import memory as spill
from tacit.engine.engine import FAILED, EmbeddedEngine
from tacit.engine.kernel.coding import OverMemory
from tacit.engine.kernel.summing import Bounded, Columns, Runs, sum_batches
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.memory import LEAST, declared_memory, memory_limit
from tacit.query.frame import count, count_distinct, mean, median
from tests.engine.exact import SALT, as_table, on_path, question

SCHEMA = pa.schema([("unit", pa.int64()), ("g", pa.string()), ("x", pa.uint32())])
MANY = 60_000


def batches(size):
    for start in range(0, MANY, size):
        places = range(start, min(start + size, MANY))
        cells = {"unit": [n * 7919 % 9973 for n in places], "g": [f"g{n % 31}" for n in places], "x": list(places)}
        yield pa.RecordBatch.from_pydict(cells, schema=SCHEMA)


def summed(memory, size=5000):
    found = sum_batches(
        batches(size),
        SCHEMA,
        Columns("unit", ["g"], [["x"]], None),
        Bounded(rows_most=1, groups_most=3, salt="5a"),
        memory=memory,
        folder=spill.spill_folder(),
    )
    return {key: [int(column[at]) for column in found.sums] for at, key in enumerate(found.keys)}


@pytest.mark.usefixtures("kernel")
def test_what_is_spilled_adds_up_to_the_same(monkeypatch):
    spilled = []
    spill_rows = Runs._spill
    monkeypatch.setattr(Runs, "_spill", lambda runs: (spilled.append(len(runs._held)), spill_rows(runs)))
    in_memory = summed(1 << 30)
    assert not spilled
    assert summed(1 << 21) == in_memory
    assert spilled  # the rest stays in memory, so both are read


@pytest.mark.usefixtures("kernel")
def test_where_a_table_of_keys_would_be_too_large_the_kernel_stops():
    with pytest.raises(OverMemory):
        summed(1 << 16)


def test_the_spill_file_has_no_name_and_its_folder_is_private(tmp_path):
    with Runs(width=4, parts=1, memory=0, folder=tmp_path) as runs:
        rows = pa.array(range(40), pa.uint32()).to_numpy().reshape(10, 4)
        runs.add(rows, pa.array([0, 10], pa.int64()).to_numpy())
        assert not list(tmp_path.iterdir())
        assert runs.part(0).tolist() == rows.tolist()
    assert spill.spill_folder().stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("kernel")
def test_a_disk_that_is_full_fails_in_one_message_its_class_is_the_curators_and_the_charge_stands(
    monkeypatch, curators_log, capfd
):
    monkeypatch.setattr("tacit.engine.kernel.summing.HELD_SHARE", 1 << 60)
    monkeypatch.setattr("tacit.engine.patience.patient_path.ROWS_SHARE", 1 << 60)
    monkeypatch.setattr("tacit.engine.engine.refuse_without_folder", lambda: None)  # there was room a moment ago
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "wb", buffering=0))  # noqa: SIM115
    asked = question(as_table([(n, "a", 1, 0.0) for n in range(1000)]))
    book, registered = asked.session.ledger, asked.session.registered
    before = book.left(registered, None).epsilon
    with on_path("kernel", or_patient=True), pytest.raises(EngineError) as failed:
        asked.answer(epsilon=1)
    assert str(failed.value) == FAILED
    assert curators_log == ["engine failed: OSError ENOSPC"]
    assert capfd.readouterr().err == ""
    assert book.left(registered, None).epsilon < before


@pytest.fixture(params=["gone", "full"])
def no_folder(request, monkeypatch, tmp_path):
    """Take away what is written to for the time of a question, once it is called."""

    def take() -> None:
        if request.param == "full":
            full = partial(open, "/dev/full", "wb", buffering=0)
            monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full())
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("gone" if request.param == "gone" else "")))
        monkeypatch.setattr(spill, "_mine", None)

    return take


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.usefixtures("kernel")
def test_without_a_folder_to_write_to_no_question_is_charged_whether_its_rows_need_it_or_not(path, no_folder):
    asked = [question(as_table([(n, "a", 1, 0.0) for n in range(rows)])) for rows in (0, 1000)]
    no_folder()
    said = set()
    for each in asked:
        book, registered = each.session.ledger, each.session.registered
        before = book.left(registered, None).epsilon
        with on_path(path, or_patient=True), pytest.raises(QueryRefused) as refused:
            each.answer(epsilon=1)
        said.add(str(refused.value))
        assert book.left(registered, None).epsilon == before
    assert len(said) == 1
    assert "TMPDIR" in said.pop()


def as_frame(rows, _):
    return rows


def as_parquet(rows, folder):
    pq.write_table(rows, folder / "rows.parquet")
    return folder / "rows.parquet"


def as_csv(rows, folder):
    csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def as_database(rows, folder):
    with duckdb.connect(folder / "rows.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE kept AS FROM given")
    return f"{folder / 'rows.duckdb'}?table=kept"


@pytest.mark.parametrize("held", [as_frame, as_parquet, as_csv, as_database])
def test_where_warnings_are_errors_the_patient_path_answers_and_warns_of_nothing(held, tmp_path, monkeypatch):
    rows = pa.table({"id": range(300), "g": ["a", "b" * 80, None] * 100, "x": [n / 7 for n in range(300)]})
    declared = {"id": {"type": "int"}, "g": {"type": "text"}, "x": {"type": "float", "between": (0, 50)}}
    table = tacit.table(
        held(rows, tmp_path),
        unit="id",
        rows_per_unit=1,
        groups_per_unit=1,
        columns=declared,
        budget=tacit.epsilon(10, delta=1e-6),
        ledger=":memory:",
    )
    monkeypatch.setattr(EmbeddedEngine, "_quick", lambda *_: None)
    found = table.group_by("g").agg(n=count(), m=mean("x"), q=median("x"))
    listed = table.group_by("g", keys=["a"]).agg(d=count_distinct("x", per_unit=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for question in (found, listed):
            question.answer(epsilon=1)


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.usefixtures("kernel")
def test_however_little_memory_is_declared_questions_are_answered(path, monkeypatch):
    monkeypatch.setattr("tacit.memory.LEAST", 1)
    monkeypatch.setenv("TACIT_MEMORY", "4MB")
    asked = question(as_table([(n, f"g{n % 50}", 1, 0.0) for n in range(50_000)]), groups_per_unit=1)
    with on_path(path, or_patient=True):
        exact = asked.session.engine.aggregate(asked.plan(epsilon=1).plan, SALT)
    assert sorted(exact.sums["units"]) == [1000] * 50


def test_a_long_key_that_is_shown_is_looked_up_however_little_memory_there_is(monkeypatch, curators_log):
    monkeypatch.setattr("tacit.memory.LEAST", 1)
    monkeypatch.setenv("TACIT_MEMORY", "4MB")
    rows = pa.table({"id": range(600), "g": ["a" * 400, "a" * 300] * 300})
    bounds = {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1}
    table = tacit.table(rows, **bounds, budget=tacit.epsilon(10, delta=1e-6), ledger=":memory:")
    made = table.derive(k=f"REPLACE(g, 'a', '{'b' * 80}')").group_by("k").count().answer(epsilon=9)
    assert [row["k"] for row in made.to_dicts()] == ["b" * 24_000, "b" * 32_000]
    assert curators_log == []  # which hears of failures alone


KILLED = """
import os, signal, sys
from tacit.memory import spill_folder
(spill_folder() / "rows").write_text("of somebody")
print(spill_folder(), flush=True)
if sys.argv[1] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def test_what_a_killed_run_left_is_removed_at_the_next_start_and_a_living_ones_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    code = textwrap.dedent(KILLED)
    with subprocess.Popen(
        [sys.executable, "-c", code, "lives"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as alive:
        living = alive.stdout.readline().strip()
        dead = subprocess.run(
            [sys.executable, "-c", code, "dies"], capture_output=True, env=environment, text=True, check=False
        )
        assert dead.returncode == -signal.SIGKILL
        assert os.path.exists(dead.stdout.strip())
        spill._remove_dead(tmp_path)
        assert not os.path.exists(dead.stdout.strip())
        assert os.path.exists(os.path.join(living, "rows"))
        alive.stdin.close()
        alive.wait()
    assert not os.path.exists(living)


@pytest.mark.parametrize(
    ("said", "size"), [("4GB", 4 << 30), ("512 MiB", 512 << 20), (str(LEAST), LEAST), ("1t", 1 << 40)]
)
def test_the_limit_is_a_size(said, size, monkeypatch):
    monkeypatch.setenv("TACIT_MEMORY", said)
    assert declared_memory() == memory_limit() == size


@pytest.mark.parametrize("said", ["", "lots", "-1GB", "1MB", "4 GB of it"])
def test_a_limit_that_is_none_is_refused_before_any_charge(said, monkeypatch):
    monkeypatch.setenv("TACIT_MEMORY", said)
    with pytest.raises(InvalidParameter, match="TACIT_MEMORY"):
        tacit.table(as_table([]), unit="id", budget=tacit.epsilon(1), ledger=":memory:")


def test_a_declared_limit_is_duckdbs_too(monkeypatch):
    monkeypatch.setenv("TACIT_MEMORY", "1GiB")
    table = tacit.table(as_table([]), unit="id", budget=tacit.epsilon(1), ledger=":memory:")
    backend = table.session.engine._source.backend
    assert backend.con.sql("SELECT current_setting('memory_limit')").fetchall() == [("512.0 MiB",)]
