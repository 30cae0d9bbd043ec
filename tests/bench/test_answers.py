"""The bench of answers: the rows of a question, both baselines, its figures, and its page say what the lines say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.learned.oracle import laplace_error, sigma
from bench.questions import runs
from bench.questions.baselines import best_cap, errors_of, one_two_five, people_of, truth_of
from bench.questions.figures import figures_of, read, tasks_of
from bench.questions.page import page
from bench.questions.questions import BY_NAME as QUESTIONS
from bench.questions.questions import Shown, cells_of
from bench.questions.summary import by_question, by_task, compared
from bench.questions.tables import BY_NAME, TABLES, Table, law, write_law

ROWS = {
    "who": [1, 1, 1, 2, 3, 3],
    "a": ["x", "x", "y", "x", "y", "y"],
    "b": [1, 2, 1, 1, 1, 1],
    "v": [1.0, 3.0, 5.0, 7.0, None, 10.0],
}
SMALL = Table("small", law(dict), "who", ("a", "b"), "v", (0.0, 10.0), "b = 1", "v >= 5")
DRAWN = [name for name, table in BY_NAME.items() if getattr(table.write, "func", None) is write_law]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table(ROWS), tmp_path / "small.parquet")
    return tmp_path / "small.parquet"


def line(**more: Any) -> dict[str, Any]:
    """A line of one number that is 10 off, with a half-width of 20 that holds."""
    plain = {"table": "clinic", "question": "count by key, found", "number": "count", "epsilon": 1.0, "run": 0}
    numbers = {"group": "g", "people": 500, "truth": 1000.0, "value": 1010.0, "low": 990.0, "high": 1030.0}
    return {**plain, **numbers, "oracle": 5.0, "person": 20.0, **more}


@pytest.fixture
def figures(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The figures of some lines, by name."""

    def of(*lines: dict[str, Any]) -> dict[str, Any]:
        return {each.name: each for each in figures_of(read(written(tmp_path / "lines.jsonl", lines)))}

    return of


def written(path: Path, lines: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_the_rows_of_a_question_are_those_of_its_keys_its_condition_and_its_unit(path):
    both = cells_of(path, SMALL, QUESTIONS["count by two keys, found"])
    assert dict(zip(both.keys, truth_of(both, "count"), strict=True)) == {"x | 1": 2, "x | 2": 1, "y | 1": 3}
    assert people_of(both).tolist() == [2, 1, 2]
    some = cells_of(path, SMALL, QUESTIONS["count by key where, found"])
    assert truth_of(some, "count").tolist() == [2, 3]
    whole = cells_of(path, SMALL, QUESTIONS["mean"])
    assert (whole.keys, truth_of(whole, "mean").tolist()) == (["all"], [5.2])
    assert truth_of(whole, "variance")[0] == pytest.approx(np.var([1, 3, 5, 7, 10]))
    by_row = cells_of(path, Table(**{**vars(SMALL), "unit": None}), QUESTIONS["count by key, found"])
    assert (by_row.people, people_of(by_row).tolist()) == (6, [3, 3])
    share = cells_of(path, SMALL, QUESTIONS["share by key, found"])
    assert truth_of(share, "share").tolist() == pytest.approx([100 / 3, 200 / 3])


def test_with_one_row_a_person_both_baselines_are_the_noise_of_a_cap_of_one(path):
    cells = cells_of(path, Table(**{**vars(SMALL), "unit": None}), QUESTIONS["count by key, found"])
    for epsilon in (0.3, 1.0, 3.0):
        errors = errors_of(cells, "count", epsilon, SMALL.between)
        assert errors.person.tolist() == pytest.approx([1 / epsilon] * 2)
        assert errors.oracle.tolist() == pytest.approx([1 / epsilon] * 2)
    assert sigma(1.0) > 1  # so that Laplace noise is the one with the smaller error here


def test_the_oracle_is_no_worse_than_any_cap_and_cuts_people_with_very_many_rows(path):
    pq.write_table(pa.table({**{name: [0] * 3_000 for name in "abv"}, "who": [*range(2_000), *([0] * 1_000)]}), path)
    cells = cells_of(path, SMALL, QUESTIONS["count by key, found"])
    best = best_cap(cells, cells.rows, 0.01)
    for cap in (1.0, 10.0, 100.0, 1_001.0):
        lost = cells.by_group(cells.rows) - cells.up_to(cells.rows, cap)
        assert best.mean() <= laplace_error(lost, cap / 0.01).mean() * 1.2  # the grid of caps has steps
    assert best[0] < laplace_error(np.zeros(1), 1_001 / 0.01)[0] / 50


@pytest.mark.parametrize("number", ["sum", "mean", "variance"])
def test_baselines_fall_with_epsilon_and_the_oracle_is_below_the_person(tmp_path, number):
    BY_NAME["nations"].write(tmp_path / "nations.parquet")
    cells = cells_of(tmp_path / "nations.parquet", BY_NAME["nations"], QUESTIONS["mean by key, found"])
    little, much = (errors_of(cells, number, epsilon, (0, 100)) for epsilon in (0.3, 3.0))
    assert much.oracle.mean() < little.oracle.mean() / 2
    assert much.oracle.mean() <= much.person.mean()
    assert little.oracle.mean() <= little.person.mean()


def test_a_number_beside_others_has_its_part_of_epsilon(path):
    cells = cells_of(path, SMALL, QUESTIONS["count by key, found"])
    whole, half = (errors_of(cells, "count", epsilon, SMALL.between, count) for epsilon, count in ((1.0, 2), (0.5, 1)))
    assert whole.oracle.tolist() == half.oracle.tolist()
    assert one_two_five(3) == 5


@pytest.mark.parametrize("name", DRAWN)
def test_a_law_makes_the_same_table_each_time_with_every_column_that_is_asked_about(name):
    table = BY_NAME[name]
    make, given = table.write.args
    first, again = make(*given), make(*given)
    assert {*table.keys, table.value, *([table.unit] if table.unit else [])} <= set(first)
    assert all(np.array_equal(each, again[column]) for column, each in first.items())


def test_a_group_that_is_not_shown_has_a_line_without_a_value(monkeypatch, path):
    question = QUESTIONS["count and mean by key, found"]
    answered = {"count": {"x": Shown(4.0, 1.0, 7.0)}, "mean": {"x": Shown(None, None, None)}}
    monkeypatch.setattr(runs, "can_replay", lambda _: False)
    monkeypatch.setattr(runs, "ask", lambda *_: answered)
    found = list(runs.Compared(path, SMALL, question).lines(1.0, 3))
    values = [(each["number"], each["group"], each["value"], each["truth"]) for each in found]
    assert values == [
        ("count", "x", 4.0, 3),
        ("count", "y", None, 3),
        ("mean", "x", None, 11 / 3),
        ("mean", "y", None, 7.5),
    ]
    assert all(each["run"] == 3 and each["oracle"] > 0 and each["person"] > 0 for each in found)


def test_options_name_tables_and_questions_in_full_or_by_how_they_begin():
    full = runs.options_of({})
    assert (full.runs, full.demo_runs, full.tables) == (20, 50, TABLES)
    quick = runs.options_of({"ANSWERS_QUICK": "1"})
    assert (quick.workers, quick.epsilons, len(quick.tables)) == (1, (1.0,), len(runs.QUICK_TABLES))
    given = {"ANSWERS_TABLES": "claims; loyal", "ANSWERS_QUESTIONS": "count;sum", "ANSWERS_EPSILONS": "0.3 3"}
    some = runs.options_of(given)
    assert [each.name for each in some.tables] == ["claims", "loyal, 3 shops", "loyal, 2 shops"]
    assert {each.name for each in some.questions} == {"count", "sum by key, found", "sum by key, listed"}
    assert some.epsilons == (0.3, 3.0)
    with pytest.raises(ValueError, match="there is no 'nothing'"):
        runs.options_of({"ANSWERS_TABLES": "nothing"})


def test_how_often_a_question_is_asked():
    options = runs.options_of({})
    claims = QUESTIONS["count, mean and sum by key, found"]
    assert options.runs_of(BY_NAME["claims"], claims, 1.0) == 20
    assert options.runs_of(BY_NAME["clinic"], claims, 1.0) == 0
    assert options.runs_of(BY_NAME["stops"], QUESTIONS["people by key, found"], 1.0) == 0
    assert options.runs_of(BY_NAME["visits"], QUESTIONS["count by key, found"], 1.0) == 50
    asked = [options.runs_of(table, QUESTIONS["count"], 3.0) for table in TABLES]
    assert sorted(set(asked)) == [0, 5]


def test_counts_are_held_to_the_geometric_mean_and_to_the_worst(figures):
    found = figures(
        line(), line(table="claims", oracle=2.5), line(table="giants", oracle=0.01), line(table="stops", oracle=0.1)
    )
    mean = found["found keys, counts / oracle, mean of 2 tasks"]
    worst = found["found keys, counts / oracle, worst (claims, count by key, found)"]
    assert (mean.value, worst.value) == (pytest.approx(8**0.5), 4.0)
    assert (mean.met, worst.met) == (False, False)
    assert found["one row a person: error / sensible person, mean of 1 tasks"].value == 0.5


def test_errors_are_of_the_groups_that_are_shown(figures):
    hidden = line(group="h", value=None, low=None, high=None, oracle=1e9, people=99)
    found = figures(line(), hidden, line(group="large", value=None, low=None, high=None))
    assert found["found keys, counts / oracle, mean of 1 tasks"].value == 2.0
    assert found["groups of 100 people or more that a first question shows"].value == 0.5


def test_an_interval_holds_between_its_ends_and_one_end_is_enough(figures):
    ends = [(1000.0, 1030.0), (1001.0, 1030.0), (None, 999.0), (900.0, None), (None, None)]
    lines = [line(run=place, low=low, high=high) for place, (low, high) in enumerate(ends)]
    assert figures(*lines)["intervals that hold the table as it is, all 4"].value == 0.5


def test_a_table_with_enough_intervals_is_held_to_its_own_limit_and_the_dear_group_too(figures):
    good = [line(run=run) for run in range(100)]
    bad = [line(table="claims", group="hospital", run=run, low=1001.0 if run < 20 else 990.0) for run in range(100)]
    aside = [line(table="giants", run=run, low=1001.0) for run in range(100)]
    found = figures(*good, *bad, *aside, line(table="tests", low=1001.0))
    assert found["intervals that hold, worst table (claims)"].value == 0.8
    assert found["intervals that hold, dear group of claims"].value == 0.8
    assert not found["intervals that hold, dear group of claims"].met


def test_steadiness_is_the_wide_half_width_over_the_usual_one(figures):
    halves = [10.0] * 16 + [40.0] * 4
    lines = [line(run=run, low=1000 - half, high=1000 + half) for run, half in enumerate(halves)]
    found = figures(*lines, *(line(table="tests", run=run) for run in range(20)))
    worst = found["90th percentile / median half-width, worst (clinic, count by key, found, count)"]
    assert (worst.value, worst.met) == (4.0, False)


def test_the_demo_is_held_to_its_worst_run(figures):
    lines = [
        line(table="visits", run=0, value=1001.0),
        line(table="visits", run=1, value=985.0, low=900.0, high=1100.0),
    ]
    found = figures(*lines)
    error, width = (found[f"demo, count by ward: {what} of the worst of 2 runs"] for what in ("error", "half-width"))
    assert (error.value, width.value) == (0.015, 0.1)
    assert (error.met, width.met) == (False, False)


def test_variances_of_one_row_a_person_have_a_limit(figures):
    of = {"table": "stops", "question": "variance", "number": "variance", "group": "all"}
    found = figures(line(**of), line(**of, low=1001.0))
    assert found["one row a person: intervals of variances that hold"].value == 0.5


def test_the_page_and_the_summary_have_found_and_listed_keys_and_say_what_is_missed(tmp_path):
    listed = line(question="count by key, listed", value=1005.0, oracle=5.0)
    lines = read(written(tmp_path / "lines.jsonl", [line(oracle=2.0), listed, line(table="giants")]))
    assert "no rule was chosen with" not in page(lines, "today")
    seen = read(written(tmp_path / "fresh.jsonl", [line(), line(table="tuna", low=1001.0)]))
    apart = page(seen, "today").split("## Tables that no rule was chosen with")[1]
    assert "intervals that hold the table as it is, all 1 |" in apart
    text = page(lines, "today")
    assert "| clinic | ward | 1 | 0.50% | 2.00% | 1.00 | 100% | 1.00% | 2.00% | 5.00 | 100% | 100% |" in text
    assert "Missed: found keys, counts / oracle, mean of 1 tasks" in text
    assert "giants (six firms hold a quarter of the rows)" in text
    tasks = tasks_of(lines)
    assert any(each.startswith("count by key, listed: count") for each in by_question(tasks))
    assert "clinic" in "".join(by_task(tasks))
    half = read(written(tmp_path / "half.jsonl", [line(value=1020.0), line(group="h", value=None)]))
    less = read(written(tmp_path / "less.jsonl", [line(), *(line(group=str(place), value=None) for place in range(4))]))
    told = list(compared(tasks_of(less), tasks_of(half)))
    assert any(each.split()[-4:-2] == ["0.50", "1.00"] for each in told)
    assert "less than half of the groups of before are shown: 1 tasks" in told[-2]
