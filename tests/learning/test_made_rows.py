"""Made-up rows: charged once, made of noisy tables alone, in the columns' own types, and close where noise is small."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.learning import MadeRows, load
from tacit.learning.synthetic.clique_sums import CliqueSums
from tacit.learning.synthetic.field import Field, JunctionTree, triangulated
from tacit.learning.synthetic.fitting import NoisyCounts, agreeing, fitted
from tacit.learning.synthetic.pair_choice import PAIR_WEIGHT, Candidates, chosen_pairs
from tacit.noise import Keystream
from tacit.plan import UNIT
from tacit_gauntlet.stage.table import protected

WARDS = ["A", "B", "C"]
START = date(2026, 1, 1)
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"between": (0, 99)},
    "ward": {"keys": WARDS},
    "pay": {"between": (0, 5000)},
    "score": {"between": (-1, 1)},
    "kind": {"keys": [1, 2]},
}
MADE: Mapping[str, Any] = {
    **dict.fromkeys(("age", "ward", "pay", "score", "kind", "ok")),
    "day": ("2026-01-01", "2026-12-31"),
    "at": ("2026-01-01", "2026-12-31"),
}
BUDGET = tacit.epsilon(10**5, delta=1e-6)


def rows(count: int, seed: int = 0) -> pa.Table:
    """Return people: the ward follows from the age, and some values are not public."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, count)
    days = [int(each) for each in rng.integers(0, 365, count)]
    return pa.table(
        {
            "person": pa.array(range(count), pa.int64()),
            "age": pa.array(age, pa.int64()),
            "ward": pa.array(
                ["secret" if at % 50 == 7 else WARDS[each // 30] for at, each in enumerate(age)], pa.string()),
            "pay": pa.array([Decimal(int(each)) / 100 for each in rng.integers(0, 10**6, count)], pa.decimal128(9, 2)),
            "score": pa.array(rng.normal(0, 1, count), pa.float64()),
            "kind": pa.array([None if at % 3 == 0 else at % 3 for at in range(count)], pa.int64()),
            "ok": pa.array([bool(each >= 50) for each in age], pa.bool_()),
            "day": pa.array([START + timedelta(days=each) for each in days], pa.date32()),
            "at": pa.array([datetime(2026, 1, 1) + timedelta(hours=each) for each in days], pa.timestamp("us")),  # noqa: DTZ001
            "note": pa.array([f"note {at}" for at in range(count)], pa.string()),
        }
    )  # fmt: skip


def table(count: int = 2000, **declared: Any) -> tacit.Table:
    usual = {"unit": "person", "columns": COLUMNS, "budget": BUDGET, "rows_per_unit": 1}
    given = declared.pop("rows", None)
    return protected(rows(count) if given is None else given, **(usual | declared))


@pytest.fixture(scope="module")
def close() -> MadeRows:
    """Rows with next to no noise."""
    made: MadeRows = table().synthesize(epsilon=10**4, columns=MADE)
    return made


def are_public(made: pa.Table) -> bool:
    """Whether all values are within what is declared, and NULL."""
    allowed = {"ward": {*WARDS, None}, "kind": {1, 2, None}, "ok": {True, False, None}}
    ends = {
        "age": (0, 99),
        "pay": (0, 5000),
        "score": (-1, 1),
        "day": (START, date(2026, 12, 31)),
        "at": (datetime(2026, 1, 1), datetime(2026, 12, 31)),  # noqa: DTZ001
    }
    listed = all({*made[name].to_pylist()} <= values for name, values in allowed.items() if name in made.column_names)
    return listed and all(
        low <= each <= high for name, (low, high) in ends.items() for each in made[name].to_pylist() if each is not None
    )


def test_values_have_the_columns_own_types_and_are_public(close):
    made, real = close.rows(3000), rows(1)
    assert made.schema.names == list(MADE)
    assert all(made.schema.field(name).type == real.schema.field(name).type for name in MADE)
    assert are_public(made)


def test_rows_follow_the_table_where_noise_is_small(close):
    assert abs(close.people - 2000) <= 1
    made = close.rows(2000).to_pylist()
    known = [each for each in made if each["ward"] is not None]
    # the ward is the age over 30, and only bins blur it
    assert np.mean([each["ward"] == WARDS[min(each["age"] // 30, 2)] for each in known]) > 0.95
    assert np.mean([each["ok"] == (each["age"] >= 50) for each in made]) > 0.95
    assert np.mean([each["kind"] is None for each in made]) == pytest.approx(1 / 3, abs=0.08)


def test_a_crosstab_has_the_noisy_counts_and_their_error(close):
    found = close.crosstab("ward", "ok")
    assert found.measured is not None
    assert found.error is not None
    assert found.error < 1
    assert sum(map(sum, found.measured)) == pytest.approx(2000, abs=5)
    turned = close.crosstab("ok", "ward")
    assert turned.to_arrow().num_rows == len(found.labels[1])
    assert "±" in str(found)


def test_gaps_are_printed(close):
    assert "33% of kind come out as missing" in str(close)  # a third has no value
    assert "of ward" not in str(close)
    found = replace(close, learned_="learned once: ...\nleft out: note, name; no value of it is found")
    assert "Left out: note, name. Declare keys, ranges or types" in str(found)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("rows_each", [1, 40])
def test_few_people_are_made_rows_of_public_values(count, rows_each):
    few = pa.concat_tables([rows(count)] * rows_each)
    made = table(rows=few, rows_per_unit=None).synthesize(epsilon=1, columns=MADE)
    assert are_public(made.rows(50))
    assert str(made)
    assert made.people >= 0


def test_the_same_rows_again_are_free_and_follow_the_same_tables():
    visits = table(500, budget=tacit.epsilon(1, delta=1e-6))
    first, again = (visits.synthesize(epsilon=1, columns=["age", "ward"]) for _ in range(2))
    assert first.state_.noisy == again.state_.noisy
    assert first.certificate()
    with pytest.raises(tacit.BudgetExceeded):
        visits.synthesize(epsilon=1, columns=["age", "kind"])


def test_saved_rows_are_made_of_the_same_tables(close, tmp_path):
    close.save(tmp_path / "made.json")
    again = load(tmp_path / "made.json")
    assert again.state_.noisy == close.state_.noisy
    assert again.state_.design == close.state_.design
    assert are_public(again.rows(100))
    with pytest.raises(tacit.InvalidParameter, match="read from a file"):
        again.certificate()


def test_rows_leave_as_frames_and_files(close, tmp_path):
    close.to_parquet(tmp_path / "made.parquet")
    assert close.to_arrow().num_rows == len(close.to_pandas()) == close.to_polars().height == close.people
    assert pa.parquet.read_table(tmp_path / "made.parquet").equals(close.to_arrow())


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"columns": ["age", "person"]}, "identifies people"),
    ({"columns": ["age", "note"], "learn": False}, "ids or free text"),
    ({"columns": ["age", "day"]}, "without a public range"),
    ({"columns": ["age", "ward"], "target": "kind"}, "not among the columns"),
    ({"columns": ["age"]}, "at least two columns"),
    ({"columns": ["age", "no such"]}, "no column 'no such'"),
    ({"columns": {"age": (0, 5), "ward": None}}, "only dates and times"),
    ({"columns": {"day": ("2026-02-01", "2026-01-01"), "ward": None}}, "must begin before it ends"),
]


@pytest.mark.parametrize(("asked", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_made_is_refused_before_the_charge(asked, words):
    visits = table(20)
    for ask in (visits.synthesize, visits.synthesize.plan):
        with pytest.raises(tacit.TacitError, match=words):
            ask(epsilon=1, **asked)
    assert visits.left.laplace == 10**5


def test_long_lists_and_too_many_pairs_are_refused_before_the_charge():
    wide = pa.table({"person": [1]} | {f"c{at}": ["k"] for at in range(60)})
    keys = {f"c{at}": {"keys": [f"k{key}" for key in range(290 if at else 301)]} for at in range(60)}
    visits = table(rows=wide, columns=keys)
    with pytest.raises(tacit.QueryRefused, match="301 keys"):
        visits.synthesize(epsilon=1)
    with pytest.raises(tacit.QueryRefused, match="pairs of these columns have"):
        visits.synthesize(epsilon=1, columns=[f"c{at}" for at in range(1, 60)])
    assert visits.left.laplace == 10**5


def test_the_plan_is_free_and_names_the_noise():
    plan = str(table(20).synthesize.plan(epsilon=1, columns=["age", "ward", "kind"]))
    assert "3 pairs" in plan
    assert "ε 1" in plan


def test_undeclared_ranges_and_keys_are_learned_first():
    visits = table(3000, columns={"age": {"between": (0, 99)}})
    made = visits.synthesize(epsilon=50, columns=["age", "ward", "pay"])
    assert "ward is" in made.learned_
    assert "pay from" in made.learned_
    assert {*made.rows(500)["ward"].to_pylist()} <= {*WARDS, "secret", None}


def test_columns_of_few_people_have_wider_bins_so_that_their_pairs_can_be_measured():
    """Of 5,000 people at an epsilon of 1, pay follows age in the made-up rows too.

    The correlation was 0.64 with a deviation of 0.033 in 25 fits, so that 0.4 is 7 deviations away.
    """
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, 5000)
    pay = np.clip(1000 + 50 * age + rng.normal(0, 500, 5000), 0, 5000)
    kept = rows(5000).set_column(1, "age", pa.array(age)).set_column(
        3, "pay", pa.array([Decimal(int(each)) for each in pay], pa.decimal128(9, 2)))  # fmt: skip
    made = table(rows=kept).synthesize(epsilon=1, columns=["age", "pay", "ok"]).rows(5000).to_pandas().dropna()
    assert np.corrcoef(age, pay)[0, 1] > 0.85
    assert np.corrcoef(made["age"], made["pay"].astype(float))[0, 1] > 0.4
    assert len(table(rows=kept).synthesize(epsilon=1, columns=["age", "pay", "ok"]).state_.bins[0]) == 101


def test_a_file_of_texts_is_refused_with_the_way_to_declare_types(tmp_path):
    lines = [f"{at},2026-01-{at % 28 + 1:02},{WARDS[at % 3]}\n" for at in range(6000)]
    (tmp_path / "people.csv").write_text("age,day,ward\n" + "".join(lines))
    people = tacit.table(
        tmp_path / "people.csv", unit=tacit.ROW, budget=tacit.epsilon(2, delta=1e-6), ledger=tacit.TRYOUT
    )
    with pytest.raises(tacit.QueryRefused, match="text until their type is declared"):
        people.synthesize(epsilon=1)


def test_columns_that_too_few_people_have_are_refused_in_words_about_what_was_found():
    """Noise alone would have to make y's range: at epsilon 10^4 that has a probability below 1e-9."""
    rows = pa.table({"person": pa.array([], pa.int64()), **{name: pa.array([], pa.float64()) for name in ("x", "y")}})
    with pytest.raises(tacit.QueryRefused, match=r"fewer than two columns are left; .* spent ε = .* on facts"):
        table(rows=rows, columns={"x": {"between": (0, 1)}}).synthesize(epsilon=10**4, columns=["x", "y"])


def stays(count: int = 1500) -> tacit.Table:
    """Return stays of some days; each ends on its day of discharge."""
    rng = np.random.default_rng(4)
    admitted, length = rng.integers(0, 200, count), rng.integers(0, 9, count)
    frame = pa.table(
        {
            "person": range(count),
            "admitted": pa.array([START + timedelta(days=int(each)) for each in admitted], pa.date32()),
            "discharged": pa.array([START + timedelta(days=int(each)) for each in admitted + length], pa.date32()),
            "ward": pa.array([WARDS[int(each) % 3] for each in length]),
        }
    )
    return table(rows=frame, columns={"ward": {"keys": WARDS}})


YEAR = ("2026-01-01", "2026-12-31")
STAYS = {"admitted": YEAR, "discharged": YEAR, "ward": None}


def test_made_up_rows_keep_the_rules():
    rules = ["discharged >= admitted", "ward != 'A'"]
    made = stays().synthesize(epsilon=5, columns=STAYS, rules=rules).rows(700)
    assert made.num_rows == 700
    assert all(row["discharged"] >= row["admitted"] and row["ward"] != "A" for row in made.to_pylist())
    free = stays().synthesize(epsilon=5, columns=STAYS).rows(700)
    assert not all(row["discharged"] >= row["admitted"] for row in free.to_pylist())


def test_rules_about_other_columns_and_rules_that_no_row_keeps_are_refused():
    visits = stays(50)
    for rules in (["length > 3"], ["person > 3"], ["1 = 1"], "ward = 'A'", [3]):
        with pytest.raises(tacit.TacitError):
            visits.synthesize(epsilon=1, columns=STAYS, rules=rules)
    assert visits.left.laplace == 10**5
    never = visits.synthesize(epsilon=1, columns=STAYS, rules=["ward = 'D' AND admitted < admitted"])
    with pytest.raises(tacit.QueryRefused, match="break the rules"):
        never.rows(5)


def test_a_free_report_compares_with_noise_and_a_paid_one_measures_other_pairs(tmp_path):
    visits = table(3000)
    made = visits.synthesize(epsilon=0.5, columns=["age", "ward", "kind", "ok"])
    before = visits.left.laplace
    free = made.report()
    assert visits.left.laplace == before
    kinds = [row["kind"] for row in free.to_dicts()]
    assert kinds.count("column") == 4 and "other pair" not in kinds  # noqa: PT018
    free.plot(tmp_path / "report.svg")
    assert (tmp_path / "report.svg").stat().st_size > 1000
    paid = made.report(epsilon=100)
    others = [row for row in paid.to_dicts() if row["kind"] == "other pair"]
    assert len(others) == 6 - kinds.count("pair")
    assert all(0 <= row["apart"] <= 1 and row["noise"] < 0.01 for row in others)
    assert visits.left.laplace == before - 100
    assert made.report(epsilon=100).to_dicts() == paid.to_dicts()
    assert visits.left.laplace == before - 100


def test_a_paid_report_of_rows_from_a_file_needs_their_table(close, tmp_path):
    close.save(tmp_path / "made.json")
    with pytest.raises(tacit.InvalidParameter, match="table=visits"):
        load(tmp_path / "made.json").report(epsilon=1)


# --- the field ---


def test_a_triangulation_has_every_table_in_a_clique_and_respects_its_limit():
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    cliques = triangulated([4] * 5, pairs)
    assert cliques is not None
    assert all(any({*pair} <= {*clique} for clique in cliques) for pair in pairs)
    assert (4,) in cliques
    assert triangulated([4] * 5, pairs, limit=63) is None


def law_of(sizes: tuple[int, ...], seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    law = rng.gamma(0.5, size=sizes)
    return law / law.sum()


def test_a_field_of_exact_tables_is_the_law_itself_along_a_chain():
    sizes = (3, 4, 2)
    first, second = law_of((3, 4)), law_of((4, 2), 4)
    law = first[:, :, None] * (second / second.sum(axis=1, keepdims=True))[None]
    tables = [NoisyCounts(pair, law.sum(axis=out) * 1e6, 1e-3) for pair, out in (((0, 1), 2), ((1, 2), 0))]
    field, _ = fitted(sizes, tables, 1e6)
    assert np.abs(field.table((0, 1, 2)) - law).sum() < 0.3  # the fit ends at a gradient of a third
    for pair in combinations(range(3), 2):
        out = next(axis for axis in range(3) if axis not in pair)
        assert np.allclose(field.table(pair), field.table((0, 1, 2)).sum(axis=out))


def test_sums_over_a_junction_tree_are_those_of_the_joint_law():
    sizes, tables = (2, 3, 2, 4, 3, 2), [(0,), (0, 1), (1, 2), (2, 3), (0, 3), (1, 3, 4), (5,)]
    sums = CliqueSums(JunctionTree.of(sizes, tables), tables)
    parameters = np.random.default_rng(2).normal(size=int(sums.ends[-1]))
    joint = np.ones(sizes)
    for table, start, end in zip(tables, sums.ends[:-1], sums.ends[1:], strict=True):
        shape = [sizes[at] if at in table else 1 for at in range(len(sizes))]
        joint = joint * np.exp(parameters[start:end]).reshape(shape)
    logarithm, laws, found = sums.laws(parameters)
    assert np.isclose(logarithm, np.log(joint.sum()))
    law = joint / joint.sum()
    outs = [tuple(at for at in range(len(sizes)) if at not in table) for table in tables]
    assert np.allclose(found, np.concatenate([law.sum(axis=out).ravel() for out in outs]))
    field = Field(sums.tree, sums.in_order(laws))
    assert np.allclose(field.table((0, 4)), law.sum(axis=(1, 2, 3, 5)))


def test_tables_are_moved_to_agree_by_least_squares():
    rng, sizes = np.random.default_rng(5), (3, 4, 2)
    columns = [(0,), (1,), (2,), (0, 1), (1, 2)]
    tables = [NoisyCounts(each, rng.normal(10, 5, [sizes[at] for at in each]), 2.0 + len(each)) for each in columns]
    unit = np.eye(24).reshape(*sizes, 24)  # the whole table's cells, of which each table has sums
    outs = [tuple(at for at in range(3) if at not in each) for each in columns]
    whole = np.concatenate([unit.sum(axis=out).reshape(-1, 24) for out in outs])
    weights = np.concatenate([np.full(each.counts.size, 1 / each.sigma) for each in tables])
    noisy = np.concatenate([each.counts.ravel() for each in tables])
    rows = np.vstack([whole * weights[:, None], np.full((1, 24), 1e6)])  # and all cells have 100 people together
    best = np.linalg.lstsq(rows, np.r_[noisy * weights, 1e8], rcond=None)[0]
    moved = agreeing(sizes, tables, 100.0)
    assert np.allclose(np.concatenate([each.ravel() for each in moved]), whole @ best, atol=1e-4)


def test_rows_have_each_cells_expected_number_rounded_up_or_down():
    law = law_of((5, 4))
    field = Field(JunctionTree.of((5, 4), [(0, 1)]), (law,))
    drawn = field.rows(997, Keystream())
    counts = np.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=20)
    assert np.abs(counts - 997 * law.ravel()).max() < 1 + 1e-6


def test_chosen_pairs_have_weights_within_the_reserved_round():
    sizes, pairs = (5,) * 8, [*combinations(range(8), 2)]
    rng = np.random.default_rng(0)
    guesses = {pair: np.full((5, 5), 40.0) for pair in pairs}
    distances = {pair: float(rng.uniform(0, 900)) for pair in pairs}
    weights = chosen_pairs(Candidates(sizes, guesses, distances, 10.0, 2.0, 1000.0))
    assert 0 < len(weights) <= len(pairs)
    assert sum(weight**2 for weight in weights.values()) <= PAIR_WEIGHT**2
    assert max(pairs, key=lambda pair: distances[pair]) in weights
    assert chosen_pairs(Candidates(sizes, guesses, dict.fromkeys(pairs, 0.0), 10.0, 2.0, 1000.0)) == {}


def test_the_number_of_people_is_noisy():
    totals = [table(300).synthesize(epsilon=1, columns=["age", "ward"]).state_.noisy["counts"] for _ in range(2)]
    assert totals[0] != totals[1]
    assert any(sum(column) % UNIT for each in totals for column in each)
