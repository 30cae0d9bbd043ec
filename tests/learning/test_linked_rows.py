"""Several rows of one person: as many as people have, each like the row before, and all with one made-up id."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.learning import load
from tacit.learning.synthetic.linked_rows import EDGES, bins_of_rows, first_share, shares_of_rows
from tacit_gauntlet.stage.table import protected

WARDS = ["A", "B", "C", "D"]
COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"keys": ["f", "m"]},
    "ward": {"keys": WARDS},
    "day": {"between": (0, 400)},
}
BUDGET = tacit.epsilon(10**5, delta=1e-6)


def visits(people: int = 4000, *, seed: int = 0) -> pa.Table:
    """Return visits: most people stay with a ward of their own, and women come more often."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, people)
    many = np.minimum(rng.geometric(0.35 + 0.2 * sex), 30)
    who = np.repeat(np.arange(people), many)
    own = rng.integers(0, 4, people)
    ward = np.where(rng.random(len(who)) < 0.6, own[who], rng.integers(0, 4, len(who)))
    nth = np.arange(len(who)) - np.repeat(np.cumsum(many) - many, many)
    day = rng.integers(0, 30, people)[who] + 10 * nth + rng.integers(0, 10, len(who))
    order = rng.permutation(len(who))
    columns = {
        "person": pa.array([f"patient {each}" for each in who[order]]),
        "sex": pa.array(np.array(["f", "m"])[sex[who]][order]),
        "ward": pa.array(np.array(WARDS)[ward][order]),
        "day": pa.array(day[order]),
    }
    return pa.table(columns)


def table(rows: pa.Table, **declared: Any) -> tacit.Table:
    return protected(rows, **({"unit": "person", "columns": COLUMNS, "budget": BUDGET} | declared))


def stays(rows: pa.Table) -> float:
    """Return how often a row has the ward of the person's row before."""
    frame = rows.to_pandas().sort_values(["person", "day"], kind="stable")
    again = frame.person.shift() == frame.person
    return float((frame.ward == frame.ward.shift())[again].mean())


@pytest.fixture(scope="module")
def made() -> Any:
    return table(visits()).synthesize(epsilon=30, once=["sex"], order="day")


def test_rows_of_one_person_hang_together_as_real_ones_do(made):
    """Of 25 fits the part that stays was 1.04 of the real one with a deviation of 0.023, the number of rows 1.00 and
    0.008, the means by sex 0.99 to 1.02 and 0.009: each limit is 11 deviations away or more, so that a false alarm is
    rarer than 1 in 10^9. Rows that were drawn each by itself would stay half as often."""
    real, found = visits(), made.to_arrow()
    assert found.column_names == ["person", "sex", "ward", "day"]
    assert 0.75 < stays(found) / stays(real) < 1.33
    frame = found.to_pandas()
    assert frame.person.nunique() == pytest.approx(4000, abs=40)
    assert len(frame) == pytest.approx(len(real), rel=0.1)
    of_one = frame.groupby("person")
    assert (of_one.sex.nunique(dropna=False) == 1).all()
    assert of_one.day.apply(lambda days: days.dropna().is_monotonic_increasing).all()
    means = of_one.agg(sex=("sex", "first"), many=("ward", "size")).groupby("sex").many.mean()
    wanted = (
        real.to_pandas().groupby("person").agg(sex=("sex", "first"), many=("ward", "size")).groupby("sex").many.mean()
    )
    assert means["f"] == pytest.approx(wanted["f"], rel=0.15)
    assert means["m"] == pytest.approx(wanted["m"], rel=0.15)


def test_a_number_of_rows_ends_with_a_person_cut_off(made):
    assert made.rows(997).num_rows == 997
    assert made.rows(0).num_rows == 0
    assert {*made.rows(50)["ward"].to_pylist()} <= {*WARDS, None}


def test_the_row_before_is_reported_and_saved(made, tmp_path):
    assert made.columns == ("sex", "ward", "day")
    assert "rows of one person" in str(made.report())
    assert "first row" in str(made.crosstab("ward", "ward of the row before"))
    made.report().plot(tmp_path / "report.svg")
    made.save(tmp_path / "made.json")
    again = load(tmp_path / "made.json")
    assert again.state_.design == made.state_.design
    assert 0.8 < stays(again.to_arrow()) / stays(made.to_arrow()) < 1.2


@pytest.mark.parametrize("people", [0, 1, 2])
@pytest.mark.parametrize("each", [1, 50])
def test_few_people_with_many_rows_are_made_rows_of_public_values(people, each):
    row = {"sex": "f", "ward": "secret", "day": 10**6}
    few = pa.table({"person": [f"p{at % max(people, 1)}" for at in range(people * each)],
                    **{name: [value] * (people * each) for name, value in row.items()}},
                   schema=visits(1).schema)  # fmt: skip
    found = table(few).synthesize(epsilon=1, once=["sex"], order="day").rows(60).to_pydict()
    assert {*found["ward"]} <= {*WARDS, None}
    assert all(day is None or 0 <= day <= 400 for day in found["day"])


def test_rules_hold_for_rows_and_people():
    rules = ["ward != 'A' OR day < 100", "sex = 'f'"]
    ruled = table(visits()).synthesize(epsilon=30, once=["sex"], order="day", rules=rules).to_arrow().to_pylist()
    assert len(ruled) > 5000
    assert all(row["sex"] in ("f", None) for row in ruled)
    assert all(row["ward"] != "A" or row["day"] is None or row["day"] < 100 for row in ruled)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"order": "day"}, "order is of several rows"),
    ({"unit": tacit.ROW}, {"once": ["sex"]}, "a person of its own"),
    ({"rows_per_unit": 1}, {"once": ["sex"]}, "a person of its own"),
    ({}, {"once": "sex"}, "must be a list"),
    ({}, {"once": ["age"]}, "not among the columns"),
    ({}, {"once": [], "order": "age"}, "not among the columns"),
    ({}, {"once": ["day"], "order": "day"}, "must differ between rows"),
    ({}, {"once": ["sex", "ward", "day"]}, "must differ between rows"),
]


@pytest.mark.parametrize(("declared", "asked", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_rows_that_cannot_be_held_together_are_refused_before_the_charge(declared, asked, words):
    of = table(visits(20), **declared)
    for ask in (of.synthesize, of.synthesize.plan):
        with pytest.raises(tacit.TacitError, match=words):
            ask(epsilon=1, columns=["sex", "ward", "day"], **asked)
    assert of.left.laplace == 10**5


def test_noise_makes_no_people_with_very_many_rows():
    """Where nobody has more than 4 rows, cells beyond hold no made-up person: over 2,000 draws (chance below 1e-9)."""
    rng = np.random.default_rng(0)
    exact = np.zeros(len(EDGES))
    exact[:4] = 500
    means, far = [], 0
    for _ in range(2000):
        noisy = exact + rng.normal(0, 60, len(EDGES))
        bins = bins_of_rows(noisy, 60.0)
        shares = shares_of_rows(noisy, bins, 60.0)
        far += bool(shares[np.array(EDGES) >= 1024].any())
        means.append(first_share(noisy, 60.0))
    assert far <= 4  # 4 deviations are exceeded in 3 of 100,000 draws
    assert np.mean(means) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, abs=0.02)
