"""Numbers about the population: sampling error and noise in one interval, and tests that hold their level."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tacit
from tacit.answer.population import MISSES, NoiseLaw, law_of_reaches, upper_normal
from tacit.answer.significance import CountsByTwo, chi_square, holm, kruskal_wallis, poisson_draws

DRAW = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "sex": DRAW.choice(["f", "m"], 3_000),
        "income": DRAW.normal(50, 15, 3_000).clip(0, 100),
        "moved": DRAW.random(3_000) < 0.3,
        "area": DRAW.choice(["a", "b", "c"], 3_000),
    }
)
PEOPLE["rent"] = (PEOPLE.income / 4 + DRAW.normal(20, 8, 3_000)).clip(0, 60)
COLUMNS = {
    "income": {"between": (0, 100)},
    "rent": {"between": (0, 60)},
    "sex": {"keys": ["f", "m"]},
    "area": {"keys": ["a", "b", "c"]},
    "moved": {"keys": [False, True]},
}


def people(**more):
    budget = tacit.epsilon(100_000, delta=1e-6)
    options = {"unit": tacit.ROW, "columns": COLUMNS} | more
    return tacit.table(PEOPLE, name="people", budget=budget, ledger=tacit.TRYOUT, **options)


def laplace_law(scale: float) -> NoiseLaw:
    return law_of_reaches([np.array([max(0.0, math.ceil(scale * math.log(1 / float(each)) - 0.5))]) for each in MISSES])


def test_without_much_noise_an_interval_is_the_plain_one_of_a_sample():
    answer = people().group_by("sex").agg(mean=tacit.mean("income"), spread=tacit.std("income")).answer(epsilon=500)
    for row in answer.population().to_dicts():
        values = PEOPLE.income[PEOPLE.sex == row["sex"]]
        plain = 1.96 * values.std() / math.sqrt(len(values))
        assert (row["mean_high"] - row["mean_low"]) / 2 == pytest.approx(plain, rel=0.02)
        assert row["mean"] == pytest.approx(values.mean(), abs=0.05)


def test_an_interval_about_the_population_is_wider_than_that_about_the_table():
    answer = people().group_by("sex").agg(mean=tacit.mean("income"), spread=tacit.std("income")).answer(epsilon=1)
    for about_table, about_world in zip(answer.to_dicts(), answer.population().to_dicts(), strict=True):
        assert about_world["mean_high"] - about_world["mean_low"] > about_table["mean_high"] - about_table["mean_low"]
        assert 0 <= about_world["mean_noise"] <= 1


def test_without_a_spread_a_declared_range_bounds_it_and_a_share_needs_no_more():
    wide = people().group_by("sex").mean("income").answer(epsilon=500).population().to_dicts()
    assert all(row["mean_income_high"] - row["mean_income_low"] > 3 for row in wide)  # a spread of 50, not of 15
    (row, *_) = people().group_by("sex").mean("moved").answer(epsilon=500).population().to_dicts()
    values = PEOPLE.moved[PEOPLE.sex == row["sex"]]
    plain = 1.96 * math.sqrt(values.mean() * (1 - values.mean()) / len(values))
    assert (row["mean_moved_high"] - row["mean_moved_low"]) / 2 == pytest.approx(plain, rel=0.05)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: people().count().answer(epsilon=1).population(), "only means and shares"),
        (lambda: people(columns={}).mean("income").answer(epsilon=1).population(), "spread of 'mean_income'"),
        (
            lambda: people(unit="area", rows_per_unit=9_000).mean("income").answer(1, accept_noise=True).population(),
            "one row",
        ),
        (lambda: tacit.test.means(people(), "income", by="sex"), "epsilon="),
        (lambda: tacit.test.means(people(), "income", by=None, epsilon=1), "names of its columns"),
        (lambda: tacit.test.shares(people(), "income", by="sex", epsilon=1), "0 and 1"),
        (lambda: tacit.test.independence(people().count().answer(epsilon=1)), "two keys"),
    ],
)
def test_what_cannot_be_read_about_the_population_is_refused_in_words(ask, words):
    with pytest.raises(tacit.InvalidParameter, match=words):
        ask()


def test_nobody_and_one_person_get_the_same_kind_of_answer():
    for rows in (0, 1, 2):
        table = tacit.table(
            PEOPLE.head(rows), name="few", unit=tacit.ROW, budget=tacit.epsilon(9), ledger=tacit.TRYOUT, columns=COLUMNS
        )
        found = table.group_by("sex").agg(m=tacit.mean("income"), s=tacit.std("income")).answer(1, accept_noise=True)
        shown = found.population().to_dicts()
        assert [row["sex"] for row in shown] == ["f", "m"]
        assert all(0 <= row["m_low"] <= row["m_high"] <= 100 for row in shown)
        assert 0 < tacit.test.means(found).pvalue <= 1


def test_with_little_noise_tests_agree_with_the_plain_ones():
    one, two = (PEOPLE[PEOPLE.sex == each] for each in ("f", "m"))
    table = people()
    means = tacit.test.means(table, "income", by="sex", epsilon=2_000)
    plain = stats.ttest_ind(one.income, two.income, equal_var=False)
    assert means.pvalue == pytest.approx(plain.pvalue, abs=0.02)
    assert means.estimate == pytest.approx(one.income.mean() - two.income.mean(), abs=0.05)
    low, high = means.confidence_interval()
    assert low < means.estimate < high
    shares = tacit.test.shares(table, "moved", by="sex", epsilon=2_000)
    assert shares.pvalue == pytest.approx(
        stats.chi2_contingency(pd.crosstab(PEOPLE.sex, PEOPLE.moved), correction=False).pvalue, abs=0.02
    )
    related = tacit.test.correlation(table, "income", "rent", epsilon=2_000)
    assert related.pvalue < 1e-6
    assert related.estimate == pytest.approx(PEOPLE.income.corr(PEOPLE.rent), abs=0.01)
    apart = tacit.test.independence(table, "sex", "area", epsilon=2_000)
    # 999 simulated tables: a p-value is within 5 standard deviations of 0.016
    assert apart.pvalue == pytest.approx(stats.chi2_contingency(pd.crosstab(PEOPLE.sex, PEOPLE.area)).pvalue, abs=0.08)
    assert tacit.test.ranks(table, "rent", by="area", epsilon=2_000).pvalue > 0.0005


def test_a_test_of_an_answer_is_free_and_the_same_each_time():
    table = people()
    answer = table.group_by("sex", "area").count().answer(epsilon=1)
    left = str(table.left)
    assert tacit.test.independence(answer).pvalue == tacit.test.independence(answer).pvalue
    assert str(table.left) == left


@pytest.mark.parametrize("statistic", [chi_square, kruskal_wallis])
def test_a_cross_table_of_noise_is_not_taken_for_an_effect(statistic):
    # 600 tables of independent columns, from one seed: 0.108 is 6.5 standard deviations above a level of 5 %
    draw, scale = np.random.default_rng(11), 10.0
    counts = draw.multinomial(500, [1 / 12] * 12, size=600).reshape(600, 3, 4)
    noisy = np.maximum(counts + np.rint(draw.laplace(0, scale, counts.shape)), 0)

    def level(law: NoiseLaw) -> float:
        return np.mean(
            [CountsByTwo(("a", "b"), each, law).tested("", "", statistic, 99).pvalue <= 0.05 for each in noisy]
        )

    assert level(laplace_law(scale)) <= 0.108
    assert level(laplace_law(1e-9)) > 0.108  # the published mistake: a null law that forgets the noise


def test_the_law_of_noise_adds_up_and_joins_with_a_normal_error():
    law = laplace_law(10.0)
    assert law.chances.sum() == pytest.approx(1)
    assert law.variance()[0] == pytest.approx(200, rel=0.1)
    assert law.tail(np.array([0.0]), np.array([1e-12]))[0] == pytest.approx(1)
    assert law.tail(np.array([19.6]), np.array([10.0]))[0] > 0.05
    assert law.less(law).variance()[0] == pytest.approx(2 * law.variance()[0], rel=0.01)
    z = np.linspace(-6, 6, 101)
    assert upper_normal(z) == pytest.approx([math.erfc(each) / 2 for each in z], rel=2e-7)


def test_draws_of_poissons_law_have_its_mean_and_variance():
    words = (np.arange(10_000) + 0.5) / 10_000
    for mean in (0.0, 0.3, 7.0, 50_000.0):
        drawn = poisson_draws(mean, words)
        assert drawn.mean() == pytest.approx(mean, rel=0.01)
        assert drawn.var() == pytest.approx(mean, rel=0.02)


def test_several_comparisons_are_adjusted_by_holms_method():
    found = tacit.test.means(people(), "income", by="area", epsilon=50)
    assert len(found) == 3
    again = holm(found)
    assert [each.adjusted for each in again] == [each.adjusted for each in found]
    assert all(each.pvalue <= each.adjusted <= 1 for each in found)
    assert min(each.adjusted for each in found) == min(1.0, 3 * min(each.pvalue for each in found))


def test_a_question_about_the_population_asks_for_the_spread_beside_the_mean():
    table = people()
    found = table.group_by("sex").agg(m=tacit.mean("income"), share=tacit.mean("moved")).answer(2, about="population")
    question = table.group_by("sex").agg(m=tacit.mean("income"), share=tacit.mean("moved"), s=tacit.std("income"))
    by_hand = question.answer(2).population().to_dicts()
    for mine, other in zip(found.to_dicts(), by_hand, strict=True):
        for name in ("m", "share"):  # as wide as if the spread was asked by hand
            widths = [row[f"{name}_high"] - row[f"{name}_low"] for row in (mine, other)]
            assert widths[0] == pytest.approx(widths[1], rel=0.1)
    assert "s" not in found.answer.to_dicts()[0]
    again = table.group_by("sex").agg(m=tacit.mean("income"), share=tacit.mean("moved"))
    assert again.answer(2, about="population").to_dicts() == found.to_dicts()  # asked again it is free


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda table: table.count().answer(1, about="population"), "cannot be asked about the population"),
        (lambda table: table.mean("income").answer(1, about="world"), "'table' or 'population'"),
    ],
)
def test_what_cannot_be_asked_about_the_population_is_refused_before_the_charge(ask, words):
    table = people()
    left = str(table.left)
    with pytest.raises(tacit.InvalidParameter, match=words):
        ask(table)
    assert str(table.left) == left


def test_several_rows_of_a_person_are_refused_before_the_charge():
    table = people(unit="area", rows_per_unit=9_000)
    left = str(table.left)
    with pytest.raises(tacit.InvalidParameter, match="one row for each person"):
        table.mean("income").answer(1, about="population")
    assert str(table.left) == left
