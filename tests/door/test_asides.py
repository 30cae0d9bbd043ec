"""MODE beside others and a SELECT in brackets: values as DuckDB has them, with one charge for all parts."""

from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.ledger import open_ledger
from tests.door.orders import charges

DRAWN = np.random.default_rng(11)
ROWS = pa.table(
    {
        "id": range(900),
        "a": ["uvw"[n] for n in DRAWN.integers(0, 3, 900)],
        "b": DRAWN.geometric(0.4, 900),
        "x": DRAWN.integers(0, 10, 900),
    }
)
COLUMNS = {"a": {"keys": ["u", "v", "w"]}, "x": {"between": (0, 9)}}
HUGE = 10**7
pytestmark = pytest.mark.filterwarnings("ignore::tacit.LargeEpsilonWarning")


def opened(book, **declared):
    usual = {"unit": "id", "name": "t", "budget": tacit.epsilon(10**10, delta="1e-6"), "columns": COLUMNS}
    return tacit.table(
        ROWS, version=1, ledger=book, rows_per_unit=1, groups_per_unit=1, most_rows_per_unit=1, **(usual | declared)
    )


@pytest.fixture
def book():
    with open_ledger(":memory:") as found:
        yield found


def rows_of(answer):
    return [tuple(row[name] for name in answer.columns) for row in answer.to_dicts()]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, MODE(b) AS m, COUNT(*) AS n FROM t GROUP BY a ORDER BY a",
        "SELECT MODE(a) AS one, MODE(b) AS two, SUM(x) AS s FROM t WHERE x > 2",
        "SELECT a, MODE(b * 2 + 1) AS m FROM t GROUP BY a HAVING COUNT(*) > 10 ORDER BY a",
        "SELECT a, MODE(b) AS m, COUNT(*) AS n FROM t GROUP BY ROLLUP (a) ORDER BY n",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING COUNT(*) * 3 > (SELECT COUNT(*) FROM t) ORDER BY a",
        "SELECT a, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM t) AS share FROM t GROUP BY a ORDER BY a",
        "SELECT a, SUM(x) - (SELECT SUM(x) + 1 FROM t WHERE a = 'u') AS d FROM t GROUP BY a ORDER BY a",
        "WITH big AS (SELECT * FROM t WHERE x > 4) SELECT (SELECT COUNT(*) FROM big) AS part, COUNT(*) AS n FROM t",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a ORDER BY ABS(COUNT(*) - (SELECT COUNT(*) / 3 FROM t)) LIMIT 1",
        "SELECT 'all' AS w, MODE(b) AS m, SUM(x) AS n FROM t UNION ALL SELECT 'u', MODE(b), SUM(x) FROM t WHERE x > 8",
    ],
)
def test_at_a_huge_epsilon_it_is_what_duckdb_says(book, text):
    t = ROWS  # noqa: F841 - DuckDB finds it by its name
    ours = rows_of(opened(book).sql(text).answer(epsilon=HUGE))
    theirs = duckdb.sql(text).fetchall()
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert [v for v in mine if isinstance(v, str | None)] == [v for v in other if isinstance(v, str | None)]
        assert [v for v in mine if isinstance(v, int | float)] == pytest.approx(
            [float(v) for v in other if not isinstance(v, str | None)], rel=1e-6
        )


def test_a_mode_is_of_people_and_ignores_null(book):
    rows = pa.table({"id": [1] * 50 + list(range(2, 42)), "k": ["heavy"] * 50 + ["light"] * 30 + [None] * 10})
    table = tacit.table(
        rows, unit="id", name="t", budget=tacit.epsilon(10**10, delta="1e-6"), ledger=book, rows_per_unit=50,
        groups_per_unit=1, columns={"k": {"keys": ["heavy", "light", "absent"]}},
    )  # fmt: skip
    answer = table.sql("SELECT MODE(k) AS m, COUNT(*) AS n FROM t").answer(epsilon=HUGE)
    assert rows_of(answer) == [("light", 90)]


def test_all_parts_are_charged_once_and_asked_again_they_are_free(book):
    table = opened(book, budget=tacit.epsilon(2, delta="1e-6"))
    text = "SELECT a, MODE(b) AS m, COUNT(*) - (SELECT SUM(x) FROM t) AS d FROM t GROUP BY a"
    asked = table.sql(text)
    plans = asked.plan(epsilon=1).planned.plans
    assert len(plans) == 3
    first = asked.answer(epsilon=1)
    assert len(charges(table)) == 1
    assert table.left.epsilon == 1
    assert table.sql(text).answer(epsilon=1).to_dicts() == first.to_dicts()
    assert len(charges(table)) == 1


def test_intervals_hold_for_what_a_select_in_brackets_brings_too(book):
    """The share's interval is of both numbers: it is missed at most as often as Bonferroni allows, here far less."""
    t = ROWS  # noqa: F841 - DuckDB finds it by its name
    text = "SELECT a, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t WHERE x < 5) AS share FROM t GROUP BY a ORDER BY a"
    true = [row[1] for row in duckdb.sql(text).fetchall()]
    missed = 0
    for version in range(1, 41):
        with open_ledger(":memory:") as own:
            answer = opened(own).sql(text).answer(epsilon=Fraction(version, 10), confidence=0.99999)
        missed += sum(
            not row["share_low"] <= value <= row["share_high"]
            for row, value in zip(answer.to_dicts(), true, strict=True)
        )
        assert Counter(note.startswith("share is computed from several") for note in answer.facts.notes)[True] == 1
    assert missed <= 6  # of 120 at a chance of 1e-5 each: more than 6 happens with a chance below 1e-26


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t)", "a SELECT inside another"),
        ("SELECT SUM(x - (SELECT AVG(x) FROM t)) FROM t", "a SELECT inside another"),
        ("SELECT a, (SELECT COUNT(*) FROM t s WHERE s.a = t.a) AS n FROM t GROUP BY a", "there is no table 't' here"),
        ("SELECT a, (SELECT b FROM t) AS n FROM t GROUP BY a", "must be inside an aggregate"),
        ("SELECT a, (SELECT id FROM t LIMIT 1) AS n FROM t GROUP BY a", "is the unit"),
        ("SELECT MODE(id), COUNT(*) FROM t", "is the unit"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > (SELECT COUNT(*) FROM t LIMIT 1)", "one aggregate"),
    ],
)
def test_what_would_show_or_mix_rows_is_refused_before_a_charge(book, text, said):
    table = opened(book)
    with pytest.raises(tacit.QueryRefused, match=said.replace("(", r"\(")):
        table.sql(text)
    assert not charges(table)
