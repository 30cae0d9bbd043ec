"""A user's own script is checked by mypy in strict mode: tables, questions, columns and answers have types."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
# kept between runs: a first look at our whole source takes ten times as long
CACHE = Path(__file__).parents[2] / ".mypy_cache" / "scripts"
SCRIPT = """
import tacit

budget = tacit.epsilon(3, delta=1e-6)
visits: tacit.Table = tacit.table("visits.parquet", unit="id", budget=budget, ledger=tacit.TRYOUT)
adults: tacit.Table = visits.where(tacit.col("age") >= 18).filter((tacit.col("days") > 7) & (tacit.col("ward") == "a"))
grouped: tacit.Table = adults.group_by(["ward", "sex"])
question: tacit.Question = grouped.agg(tacit.mean("days"), n=tacit.count(), share=tacit.mean(tacit.col("days") > 3))
answer: tacit.Answer = question.answer(epsilon=1)
rows: list[dict[str, object]] = answer.to_dicts()
names: tuple[str, ...] = visits.columns
by_floor: tacit.Question = visits.join(tacit.public({"ward": ["a"], "floor": [1]}), on="ward").group_by("floor").count()
asked: tacit.Question = visits.sql("SELECT ward, AVG(days) FROM visits GROUP BY ward", dialect="postgres")
print(asked.plan(error="2%").loss, by_floor, rows, names, visits.describe())
"""
WRONG = """
import tacit

visits: tacit.Table = tacit.table("visits.parquet", unit="id")
visits.count().answer(epsilon=1).to_dicts().keys()
answer: tacit.Answer = visits.group_by("ward").agg(n=tacit.count())
tacit.col("age") + []
"""


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return what mypy says of both scripts; one look at our source serves both."""
    folder = tmp_path_factory.mktemp("scripts")
    for name, script in (("right", SCRIPT), ("wrong", WRONG)):
        (folder / f"{name}.py").write_text(script)
    words = ["--strict", "--ignore-missing-imports", "--cache-dir", str(CACHE), "right.py", "wrong.py"]
    places = os.environ | {"MYPYPATH": str(SOURCE)}
    command = [sys.executable, "-m", "mypy", *words]
    return subprocess.run(command, cwd=folder, env=places, capture_output=True, text=True, check=False).stdout


@pytest.mark.xdist_group("mypy")
def test_a_script_of_every_verb_passes(checked):
    assert "right.py" not in checked
    assert "(checked 2 source files)" in checked


@pytest.mark.xdist_group("mypy")
def test_wrong_uses_are_found(checked):
    assert [line for line in (5, 6) if f"wrong.py:{line}: error" in checked] == [5, 6]
