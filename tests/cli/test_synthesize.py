"""`tacit synthesize`: a plan for free, and rows as a file that are charged once."""

import pyarrow.parquet as pq
import pytest

from tacit.learning import load

CATALOG = """\
[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = { epsilon = 3, delta = 1e-6 }

[tables.visits.columns.ward]
keys = ["A", "B, west"]

[tables.visits.columns.days]
between = [0, 30]
"""
ASKED = ("synthesize", "visits", "--epsilon", 1, "--columns", "ward,days")


@pytest.fixture(autouse=True)
def folder(visits, monkeypatch):
    (visits.parent / "tacit.toml").write_text(CATALOG)
    monkeypatch.chdir(visits.parent)


def test_rows_are_planned_for_free_and_written_once_charged(tacit_command, visits):
    planned = tacit_command(*ASKED)
    assert (planned.code, "Made-up rows of 2 columns" in planned.out) == (0, True)
    words = (*ASKED, "--out", "made.parquet", "--count", 40, "--save", "made.json", "--report", "--rule", "days > 2")
    for _ in range(2):  # the second time is free
        made = tacit_command(*words)
        assert made.code == 0, made.err
        assert "noisy columns" in made.out
    found = pq.read_table(visits.parent / "made.parquet")
    assert (found.num_rows, found.column_names) == (40, ["ward", "days"])
    assert {*found["ward"].to_pylist()} <= {"A", "B, west", None}
    assert load(visits.parent / "made.json").columns == ("ward", "days")
    assert "ε = 2" in tacit_command("budget").out


def test_ranges_of_dates_are_read_or_refused(tacit_command):
    for words, text in (
        (("--dates", "day"), "not a range of dates"),
        (("--dates", "days=2026-01-01:2026-02-01"), "only dates and times"),
    ):
        ran = tacit_command(*ASKED, *words)
        assert ran.code == 2
        assert text in ran.err
    unnamed = tacit_command("synthesize", "visits", "--epsilon", 1, "--dates", "day=2026-01-01:2026-02-01")
    assert "need the columns to be named" in unnamed.err
