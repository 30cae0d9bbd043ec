"""`KMeans`: exact sums by hand, one person's reach, plain k-means' own centres where noise is small, and refusals."""

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.engine import CodedRows
from tacit.engine import residuals as engine_sums
from tacit.engine.coding_rows import Block
from tacit.learning import KMeans, clusters, load, model_text
from tacit.learning.clusters import weighted_means
from tacit.learning.model_file import model_from
from tacit.numbers import Integers
from tacit.plan import NUMBER_ONE, UNIT, CentreSums, CodedPlan, GridCounts
from tests.learning.coded_people import people
from tests.learning.test_products import COLUMNS, PEOPLE, RANGES, numbers_of, plan_of, read, rows_of, steps_of

VALUES = (0, 1, 2)
GRID = GridCounts(VALUES, np.array([[NUMBER_ONE, 0, 0], [1000, -2000, 500]]), UNIT, 4)
SUMS = CentreSums(VALUES, np.array([[0, 0, 0], [4096, -4096, 0], [-2000, 100, 4000]]), 3000)


def grid_by_hand(rows: list[tuple[Any, ...]], asked: GridCounts) -> list[int]:
    found = [0] * asked.size
    for row in rows:
        numbers = numbers_of(row)
        if numbers is not None:
            places = [sum(int(a) * b for a, b in zip(each, numbers, strict=True)) for each in asked.directions]
            bins = [math.floor((each + asked.reach) * asked.bins / (2 * asked.reach)) for each in places]
            first, second = (min(max(each, 0), asked.bins - 1) for each in bins)
            found[first * asked.bins + second] += UNIT // sum(other[0] == row[0] for other in rows)
    return found


def centres_by_hand(rows: list[tuple[Any, ...]], asked: CentreSums) -> list[int]:
    many = len(asked.centres)
    found = [0] * asked.size
    for row in rows:
        numbers = numbers_of(row)
        if numbers is None:
            continue
        alike = sum(other[0] == row[0] for other in rows)
        offs = [[a - int(b) for a, b in zip(numbers, each, strict=True)] for each in asked.centres]
        at = min(range(many), key=lambda place: sum(each**2 for each in offs[place]))
        length = math.isqrt(sum(each**2 for each in offs[at]) - 1) + 1 if any(offs[at]) else 0
        shorter = offs[at]
        if length > asked.cut:
            shorter = [(abs(each) * asked.cut // length) * (1 if each > 0 else -1) for each in shorter]
        each = [asked.weight, min(length, asked.cut) ** 2 * asked.weight // asked.cut**2]
        each += [(abs(off) * UNIT // asked.cut) * (1 if off > 0 else -1) for off in shorter]
        for place, number in enumerate(each):
            found[place * many + at] += (abs(number) // alike) * (1 if number > 0 else -1)
    return found


def test_counts_of_a_grid_and_sums_about_centres_are_those_of_every_row_by_hand():
    assert read(PEOPLE, lambda coded: coded.grid_counts(GRID)) == grid_by_hand(PEOPLE, GRID)
    assert read(PEOPLE, lambda coded: coded.centre_sums(SUMS)) == centres_by_hand(PEOPLE, SUMS)
    nobody = GridCounts(VALUES, np.zeros((0, 3), dtype=np.int64), UNIT, 1)
    assert read([], lambda coded: coded.grid_counts(nobody)) == [0]


def asked(rows: list[tuple[Any, ...]], what: GridCounts | CentreSums) -> Integers:
    """Return the sums of rows that were coded here: many tables in little time."""
    values = tuple(np.array([steps_of(row[1 + at], *RANGES[at]) for row in rows]) for at in range(3))
    alike = np.array([sum(each[0] == row[0] for each in rows) for row in rows])
    plan = CodedPlan("person", None, (), plan_of(people(rows_of([]), columns=COLUMNS)).values)
    coded = CodedRows.of(plan, [Block((), values, alike, len(rows))])
    return (coded.grid_counts(what) if isinstance(what, GridCounts) else coded.centre_sums(what)).values


def farthest(what: GridCounts | CentreSums) -> int:
    """Return the most that one person moves the sums, squared: people at all ends, and with several rows."""
    corners = [(9, *ends, "f", "A") for ends in product((0, 100), (-1.0, 1.0), (0, 40))]
    newcomers = [[each] for each in corners] + [[corners[0]] * 3, corners[:2], corners]
    before = asked(PEOPLE[:4], what)
    return max(int(((asked([*PEOPLE[:4], *rows], what) - before) ** 2).sum()) for rows in newcomers)


@pytest.mark.parametrize("what", [GRID, SUMS], ids=["grid", "centres"])
def test_one_person_moves_the_sums_nearly_as_far_as_claimed_and_no_farther(what):
    assert 0.99 * what.moves_squared < farthest(what) <= what.moves_squared


@pytest.mark.parametrize(
    ("broken", "what", "planted"),
    [
        ("the cut is forgotten", SUMS, ("clipped", lambda off, _cut: off)),
        ("each number is cut by itself", SUMS, ("clipped", lambda off, cut: np.clip(off, -cut, cut))),
        ("the rows of a person are not divided", SUMS, ("divided", lambda sums, _rows: sums)),
        ("the rows of a person are not divided", GRID, ("divided", lambda sums, _rows: sums)),
    ],
)
def test_each_published_bug_is_found(monkeypatch, broken, what, planted):
    monkeypatch.setattr(engine_sums, *planted)
    assert farthest(what) > what.moves_squared, broken


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: GridCounts((0,), np.array([[1, 2]]), UNIT, 2),
        lambda: GridCounts((0,), np.array([[2 * NUMBER_ONE]]), UNIT, 2),
        lambda: GridCounts((0,), np.array([[1]]), 0, 2),
        lambda: GridCounts((0, 1, 2), np.eye(3, dtype=np.int64), UNIT, 1000),
        lambda: CentreSums((0,), np.array([[1, 2]]), 5),
        lambda: CentreSums((0,), np.array([[1]]), 0),
    ],
)
def test_questions_that_do_not_fit_are_refused(wrong):
    with pytest.raises(tacit.InvalidParameter):
        wrong()


# ---- the model


CENTRES = np.array([[20.0, 0.2], [60.0, 0.8], [80.0, 0.1]])


def blobs(count: int = 6_000) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    rows = CENTRES[draw.integers(0, 3, count)] + draw.normal(0, 1, (count, 2)) * (3, 0.03)
    return pd.DataFrame({"age": rows[:, 0].clip(0, 100), "share": rows[:, 1].clip(0, 1), "sex": "f"})


def table(rows: pd.DataFrame | None = None, **declared: Any) -> Any:
    usual: dict[str, Any] = {"unit": tacit.ROW, "budget": tacit.epsilon(10**4, delta=1e-6), "ledger": tacit.TRYOUT}
    usual["columns"] = {"age": {"between": (0, 100)}, "share": {"between": (0, 1)}, "sex": {"keys": ["f", "m"]}}
    return tacit.table(blobs() if rows is None else rows, name="blobs", **(usual | declared))


def in_order(model: KMeans) -> np.ndarray:
    return model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]


def test_centres_are_those_of_the_groups_where_noise_is_small():
    model = KMeans(3, epsilon=1_000).fit(table())
    assert np.allclose(in_order(model), CENTRES, atol=(0.5, 0.01))  # 8 standard errors of a group's own mean
    assert model.counts_.sum() == pytest.approx(6_000, abs=5)
    assert list(model.feature_names_in_) == ["age", "share"]
    assert model.warning_ == ""
    assert model.explained_ > 0.9
    labels = model.predict({"age": [20, 60, 80, None], "share": [0.2, 0.8, 0.1, 0.5]})
    assert len(set(labels[:3].tolist())) == 3
    assert labels[3] == -1
    distances = model.transform({"age": [20, 60], "share": [0.2, 0.8]})
    assert distances.shape == (2, 3)
    assert np.array_equal(distances.argmin(axis=1), labels[:2])


def test_people_count_once_however_many_rows_they_have():
    rows = pd.concat([blobs(600), pd.DataFrame({"age": [99.0] * 5_000, "share": [0.99] * 5_000, "sex": "m"})])
    rows["person"] = [*range(600), *([600] * 5_000)]
    model = KMeans(3, epsilon=1_000).fit(table(rows, unit="person", rows_per_unit=None))
    assert np.allclose(in_order(model), CENTRES, atol=(2, 0.03))
    assert model.counts_.sum() == pytest.approx(601, abs=5)


def test_many_columns_are_clustered_in_the_directions_of_their_variance():
    draw = np.random.default_rng(4)
    centres = draw.uniform(0.2, 0.8, (3, 14))
    rows = (centres[draw.integers(0, 3, 6_000)] + draw.normal(0, 0.05, (6_000, 14))).clip(0, 1)
    names = [f"c{at}" for at in range(14)]
    declared = {name: {"between": (0, 1)} for name in names}
    model = KMeans(3, epsilon=1_000).fit(table(pd.DataFrame(rows, columns=names), columns=declared))
    apart = np.abs(model.cluster_centers_[:, None] - centres[None]).max(axis=2)
    assert sorted(apart.argmin(axis=1).tolist()) == [0, 1, 2]
    assert apart.min(axis=1).max() < 0.02


def test_a_repeat_is_free_and_the_same_and_a_file_of_it_too(tmp_path):
    asked = table(budget=tacit.epsilon(1, delta=1e-6))
    first, again = (KMeans(3, epsilon=1).fit(asked, features=["age", "share"]) for _ in range(2))
    assert model_text(first) == model_text(again)
    first.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert model_text(loaded) == model_text(first)
    assert np.array_equal(loaded.cluster_centers_, first.cluster_centers_)
    assert first.certificate()
    with pytest.raises(tacit.BudgetExceeded):
        KMeans(2, epsilon=1).fit(asked)


def test_a_changed_file_is_refused_in_our_words():
    record = model_text(KMeans(3, epsilon=1).fit(table()))
    with pytest.raises(tacit.InvalidParameter, match="not a model"):
        model_from(record.replace('"sums":[', '"sums":[1,', 1))


def test_a_summary_a_plan_and_a_picture_name_the_columns():
    asked = table()
    plan = KMeans(3, epsilon=1).plan(asked)
    assert "3 clusters of age, share" in str(plan)
    model = KMeans(3, epsilon=1).fit(asked)
    text = str(model.summary())
    assert "people" in text
    assert "of the variance" in text
    assert len(model.summary().to_dicts()) == 3
    assert "Lines are ±" in str(model.plot().to_dict())


@pytest.mark.parametrize(
    ("model", "declared", "asked", "words"),
    [
        (KMeans(1), {}, {}, "from 2 to"),
        (KMeans(3), {}, {"features": ["age", "sex"]}, "'sex' is a list"),
        (KMeans(3), {}, {"y": "age"}, "does not have a target"),
        (KMeans(8, epsilon="0.1"), {"population": 900}, {}, "one centre would be as good"),
    ],
)
def test_what_cannot_be_clustered_is_refused_before_the_charge(model, declared, asked, words):
    protected = table(**declared)
    left = str(protected.left)
    with pytest.raises(tacit.TacitError, match=words):
        model.fit(protected, **asked)
    assert str(protected.left) == left


@pytest.mark.parametrize("people_in_it", [0, 1, 2])
def test_a_table_of_nobody_has_centres_of_noise_and_says_so(people_in_it):
    model = KMeans(3, epsilon=1).fit(table(blobs(people_in_it)))
    assert model.cluster_centers_.shape == (3, 2)
    assert np.all((model.cluster_centers_ >= [0, 0]) & (model.cluster_centers_ <= [100, 1]))
    assert "too few people" in model.warning_
    assert "too few people" in str(model.summary())


def test_undeclared_ranges_are_learned_first():
    model = KMeans(3, epsilon=50).fit(table(columns={}), features=["age", "share"])
    assert "age" in model.learned_
    assert np.allclose(in_order(model), CENTRES, atol=(3, 0.06))


def test_scikit_learn_takes_it_for_a_clusterer():
    from sklearn.base import clone, is_clusterer

    assert is_clusterer(KMeans(3))
    assert clone(KMeans(3, epsilon=2)).epsilon == 2
    fitted = KMeans(2, epsilon=100, ranges=(0, 1), budget=tacit.epsilon(100, delta=1e-6), ledger=tacit.TRYOUT)
    assert fitted.fit(np.random.default_rng(1).random((500, 2))).predict([[0.1, 0.1]]).shape == (1,)


def test_weighted_means_find_the_best_of_several_starts():
    points = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]])
    centres, inertia = weighted_means(points, np.array([1.0, 1.0, 3.0, 1.0]), 2, b"seed")
    assert sorted(map(tuple, centres.round(3))) == [(0.0, 0.5), (10.0, 0.25)]
    assert inertia == pytest.approx((0.5 + 0.75) / 6)


def test_the_counts_of_clusters_are_within_their_errors():
    """At 95 %: 30 fits of three groups, and at least 70 of 90 counts within; fewer has a probability below 1e-9."""
    protected, held = table(), 0
    sizes = np.sort(np.bincount(KMeans(3, epsilon=1_000).fit(protected).predict(blobs())))
    for at in range(30):
        model = KMeans(3, epsilon=2 + at / 1_000).fit(protected)
        held += int((np.abs(np.sort(model.counts_) - sizes) <= model.counts_error_).sum())
    assert held >= 70


def test_constants_of_the_rounds_leave_a_part_for_the_grid():
    assert 0 < clusters.FOR_PEOPLE + clusters.FOR_PRODUCTS + clusters.FOR_SUMS < 1
