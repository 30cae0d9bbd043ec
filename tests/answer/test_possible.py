"""No impossible number leaves: values and intervals are cut at what public facts allow, wherever an answer is made."""

import json

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import cut_to_possible, limits_of
from tacit.answer.moments import NoisyColumn
from tacit_gauntlet.stage.table import plan_of

GROUPS = [f"g{at:02}" for at in range(60)]


def table_of(people=40, *, listed=True):
    """Forty people in sixty listed groups: most groups are empty, so that noise alone fills them."""
    rng = np.random.default_rng(7)
    rows = pa.table(
        {
            "id": np.arange(people),
            "g": [GROUPS[at] for at in rng.integers(0, 8, people)],
            "x": rng.integers(0, 11, people),
            "y": [None if at % 3 else float(at % 5) for at in range(people)],
        }
    )
    columns = {"x": {"between": (0, 10)}, "y": {"between": (-2, 7)}} | ({"g": {"keys": GROUPS}} if listed else {})
    budget = tacit.epsilon(10**4, delta=1e-6)
    return tacit.table(
        rows, name="t", unit="id", columns=columns, budget=budget, ledger=tacit.TRYOUT, most_rows_per_unit=1
    )


def ends(answer, name):
    return [
        row[name + end] for row in answer.to_dicts() for end in ("", "_low", "_high") if row[name + end] is not None
    ]


ASKED = (
    "SELECT g, COUNT(*) AS n, COUNT(y) AS k, COUNT(DISTINCT x) AS d, SUM(x) AS s, AVG(x) AS m, MEDIAN(x) AS q,"
    " MIN(y) AS lo, MAX(y) AS hi FROM t GROUP BY g"
)


def test_counts_sums_means_and_quantiles_are_possible_in_every_group():
    answer = table_of().sql(ASKED).answer(epsilon=1)
    for name in ("n", "k", "d", "s"):
        assert min(ends(answer, name)) == 0, "of sixty groups some are below 0 by their noise, and cut"
    for name, (least, most) in {"m": (0, 10), "q": (0, 10), "lo": (-2, 7), "hi": (-2, 7)}.items():
        assert least <= min(ends(answer, name)) <= max(ends(answer, name)) <= most
    for row in answer.to_dicts():
        assert row["n_low"] <= row["n"] <= row["n_high"]


def test_variances_and_correlations_are_possible_in_every_group():
    text = "SELECT g, VARIANCE(x) AS v, STDDEV(x) AS e, CORR(x, y) AS c FROM t GROUP BY g"
    answer = table_of().sql(text).answer(epsilon=1)
    assert min(ends(answer, "v") + ends(answer, "e")) >= 0
    assert -1 <= min(ends(answer, "c")) <= max(ends(answer, "c")) <= 1


def test_json_and_pictures_have_the_same_ends():
    answer = table_of().group_by("g", keys=GROUPS).count().answer(epsilon=1)
    rows = json.loads(answer.to_json())["rows"]
    assert min(min(row["count"], row["count_low"]) for row in rows) == 0
    assert answer.to_pandas()["count_low"].min() == 0


def test_a_group_that_was_found_has_somebody():
    question = table_of(people=400, listed=False).group_by("g").count()
    plan = plan_of(question)
    assert plan.threshold is not None
    assert limits_of(plan.outputs[0], plan) == (1, None)
    assert min(ends(question.answer(epsilon=1), "count")) >= 1


def test_an_interval_wholly_outside_becomes_the_nearest_possible_number():
    plan = plan_of(table_of().group_by("g", keys=GROUPS[:3]).count())
    noisy = NoisyColumn("count", (-7, 2, None), (-9, -1, None), (-5, 5, None))
    assert cut_to_possible(plan, [noisy]) == [NoisyColumn("count", (0, 2, None), (0, 0, None), (0, 5, None))]


@pytest.mark.parametrize(
    "share",
    [
        "100.0 * COUNT(y) / COUNT(*)",
        "100 * (COUNT(y) / COUNT(*))",
        "ROUND(100.0 * SUM(CASE WHEN x > 5 THEN 1 ELSE 0 END) / COUNT(*), 1)",
        "100.0 * COUNT(y) / (COUNT(y) + COUNT(*))",
        "100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()",
        "100.0 * COUNT(DISTINCT id) / COUNT(*)",
    ],
)
def test_shares_are_from_0_to_100(share):
    answer = table_of().sql(f"SELECT g, {share} AS share FROM t GROUP BY g").answer(epsilon=1)
    found = ends(answer, "share")
    assert 0 <= min(found) <= max(found) <= 100
    assert max(found) > 50, "so that something is shown"


def test_a_quotient_that_is_no_share_is_not_cut():
    answer = table_of().sql("SELECT g, 100.0 * SUM(x) / COUNT(*) AS per FROM t GROUP BY g")
    assert max(ends(answer.answer(epsilon=100), "per")) > 100


def test_totals_of_rollup_are_possible():
    text = "SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP(g)"
    answer = table_of().sql(text).answer(epsilon=1)
    assert min(ends(answer, "n")) == 0
