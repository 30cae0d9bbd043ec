"""Workloads: several questions by name are one charge, one entry and one certificate, and agree where they overlap."""

import itertools
import json
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.answer import answer_from, answer_record, kept_lines, kept_text
from tacit.answer.answer_json import kept_answer
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning import Holdout

ROWS = pa.table(
    {
        "id": range(240),
        "a": [("u", "v", "w")[n % 3] for n in range(240)],
        "b": [n % 4 for n in range(240)],
        "x": [n % 7 for n in range(240)],
    }
)


def opened(budget=None, **declared):
    columns = {"a": {"keys": ["u", "v", "w"]}, "b": {"keys": [0, 1, 2, 3]}, "x": {"between": (0, 7)}}
    usual = {"unit": tacit.ROW, "name": "t", "version": 1, "columns": columns, "ledger": tacit.TRYOUT}
    return tacit.table(ROWS, budget=budget or tacit.epsilon(9, delta=1e-6), **(usual | declared))


def entries(table):
    return [each.kind for each in table.session.ledger.entries() if each.kind in ("charge", "answer")]


def both(table):
    return table.workload(by_a=table.group_by("a").count(), mean=table.mean("x"))


def test_a_workload_is_one_charge_one_answer_and_one_certificate():
    table = opened()
    answer = both(table).answer(epsilon=1)
    assert entries(table) == ["charge", "answer"]
    assert list(answer.parts) == ["by_a", "mean"]
    assert [row["a"] for row in answer["by_a"].to_dicts()] == ["u", "v", "w"]
    assert answer.certificate()["number"] == answer["mean"].certificate()["number"]
    assert answer["by_a"].facts.loss == answer.facts.loss
    again = both(table).answer(epsilon=1)
    assert again.facts.free
    assert again["by_a"].to_dicts() == answer["by_a"].to_dicts()
    assert len(answer) == 2


def test_a_part_never_has_more_than_its_share_and_shares_are_the_whole():
    report = both(opened()).plan(epsilon=1, weights={"mean": 27})
    spends = [plan.spend.epsilon for plan in report.planned.plans]
    assert sum(spends) == 1
    assert spends == [Fraction(1, 4), Fraction(3, 4)]
    assert report.loss.epsilon == 1


def test_weights_are_of_questions():
    with pytest.raises(InvalidParameter, match="weights names 'a'"):
        both(opened()).plan(epsilon=1, weights={"a": 2})


def test_an_error_for_each_question_is_met_by_the_least_epsilon():
    table = opened(population=1000)
    report = both(table).plan(error={"by_a": "3%", "mean": "5%"}, for_groups_of=80)
    text = str(report)
    assert "by_a.count ± 30" in text
    assert "mean.mean_x ± 0.35" in text
    alone = [
        table.group_by("a").count().plan(error="3%").plan.spend.epsilon,
        table.mean("x").plan(error="5%", for_groups_of=80).plan.spend.epsilon,
    ]
    assert max(alone) < report.loss.epsilon <= sum(alone) * Fraction(11, 10)
    assert entries(table) == []


def test_an_error_that_cannot_be_met_is_named_for_free():
    table = opened(population=1000)
    spread = table.workload(by_a=table.group_by("a").count(), spread=table.std("x"))
    with pytest.raises(QueryRefused, match="of 'spread': the error of 'std_x' depends on the spread"):
        spread.answer(error="3%")
    with pytest.raises(InvalidParameter, match="error names \\['other'\\]"):
        both(table).plan(error={"other": 3})
    assert entries(table) == []


def test_selects_with_semicolons_are_a_workload():
    table = opened()
    answer = table.sql("SELECT a, COUNT(*) AS n FROM t GROUP BY a; SELECT AVG(x) AS m FROM t;").answer(epsilon=1)
    assert entries(table) == ["charge", "answer"]
    assert list(answer.parts) == ["1", "2"]
    assert answer["2"].columns == ("m",)
    with pytest.raises(QueryRefused, match="SELECT"):
        table.sql("SELECT COUNT(*) FROM t; DROP TABLE t")


def test_a_workload_of_what_is_no_question_is_refused():
    table = opened()
    free = table.sql("SELECT DISTINCT a FROM t")
    for questions in ({}, {"n": 3}, {"n": free}, {"n": both(table)}, {" ": table.count()}):
        with pytest.raises((InvalidParameter, QueryRefused)):
            table.workload(**questions)


def test_marginals_agree_where_they_overlap_and_narrow_their_intervals():
    table = opened()
    question = table.marginals(["a", "b", "x"], bins={"x": [0, 3, 5, 7]})
    answer = question.answer(epsilon=1, noise="laplace")
    assert list(answer.parts) == ["a, b", "a, x", "b, x"]
    assert entries(table) == ["charge", "answer"]
    sums = [{}, {}]
    for at, name in enumerate(("a, b", "a, x")):
        for row in answer[name].to_dicts():
            sums[at][row["a"]] = sums[at].get(row["a"], 0) + row["count"]
    assert all(abs(sums[0][key] - sums[1][key]) <= 4 for key in sums[0])  # each cell is rounded by at most a half
    assert any("fitted together" in note for note in answer.facts.notes)


def test_marginals_know_the_values_of_true_and_false():
    rows = pa.table({"open": [True, False, None] * 400, "a": ["x", "y"] * 600})
    table = tacit.table(
        rows,
        unit=tacit.ROW,
        name="t",
        budget=tacit.epsilon(3),
        columns={"a": {"keys": ["x", "y"]}},
        ledger=tacit.TRYOUT,
    )
    answer = table.marginals(["open", "a"]).answer(epsilon=3)
    assert {(row["open"], row["a"]) for row in answer["open, a"].rows} == set(itertools.product((False, True), "xy"))


def test_counts_that_may_leave_rows_out_are_not_fitted_together():
    """Rows with other keys are in one table and not in the other: to make them agree would bias both."""
    table = opened()
    answer = table.workload(one=table.group_by("a").count(), two=table.group_by("a", "b").count()).answer(epsilon=1)
    assert not any("fitted together" in note for note in answer.facts.notes)


def test_counts_of_other_rows_under_one_name_are_not_fitted_together():
    """A side of a holdout, and rows that match a public table, have the name of their table, and fewer rows."""
    table = opened(budget=tacit.epsilon(200))
    listed = "a IN ('u', 'v', 'w') AND b IN (0, 1, 2, 3)"
    matching = tacit.public(pa.table({"a": ["u"]}), name="some")
    for fewer in (Holdout(table, share="0.5").training, table.join(matching, on="a", how="semi")):
        one = table.where(listed).group_by("a").count()
        two = fewer.where(listed).group_by("a", "b").count()
        answer = table.workload(one=one, two=two).answer(epsilon=60)
        assert [row["count"] for row in answer["one"].to_dicts()] == [80, 80, 80]  # no noise at this ε, but for 1e-12
        assert not any("fitted together" in note for note in answer.facts.notes)


def test_people_with_several_rows_are_not_fitted_together():
    table = opened(unit="id", rows_per_unit=2, groups_per_unit=2)
    answer = table.marginals(["a", "b"], order=1).answer(epsilon=1)
    assert not any("fitted together" in note for note in answer.facts.notes)


def test_a_consistent_workload_has_no_negative_count_and_intervals_of_the_unbiased_numbers():
    table = opened()
    question = table.marginals(["a", "b", "x"], bins={"x": 5})
    plain, possible = question.answer(epsilon=0.2, accept_noise=True), None
    possible = question.answer(epsilon=0.2, accept_noise=True, consistent=True)
    assert possible.facts.free
    for name in plain.parts:
        for one, two in zip(plain[name].to_dicts(), possible[name].to_dicts(), strict=True):
            assert two["count"] >= 0
            assert two["count_low"] <= min(one["count_low"], two["count"])
            assert two["count_high"] >= max(one["count_high"], two["count"])


def test_an_answer_of_several_travels_prints_and_is_kept():
    answer = both(opened()).answer(epsilon=1)
    sent = answer_from(json.loads(json.dumps(answer_record(answer))), answer.facts.left)
    assert str(sent["by_a"]) == str(answer["by_a"])
    assert str(sent) == str(answer)
    text = kept_text(answer)
    assert "--- by_a" in kept_lines(text)
    assert list(kept_answer(text, answer.facts).parts) == ["by_a", "mean"]
    assert "--- mean" in answer.details()
    assert set(json.loads(answer.to_json())["parts"]) == {"by_a", "mean"}
    assert answer.to_csv().startswith("by_a\na,count,count_low,count_high\n")
    for cannot in (answer.to_pandas, answer.plot, lambda: answer.to_excel("t.xlsx"), lambda: answer["x"]):
        with pytest.raises(InvalidParameter, match="hint"):
            cannot()


def test_totals_and_workloads_keep_their_labels_on_the_way():
    answer = opened().group_by("a", "b", totals=True).count().answer(epsilon=1)
    sent = answer_from(json.loads(json.dumps(answer_record(answer))), {})
    assert sent.rolled == answer.rolled
    assert sent.at_least("count") == answer.at_least("count") if answer.lower_ends else True


def test_a_fit_keeps_the_coverage_of_its_intervals():
    """More than 88 % of 95 % intervals hold, of 60 draws of 61 cells: seven standard deviations of draws that agree."""
    keys = {"a": ["u", "v", "w"], "b": [0, 1, 2, 3], "x": list(range(7))}
    table = opened(tacit.epsilon(2000), columns={name: {"keys": listed} for name, listed in keys.items()})
    rows = ROWS.to_pandas()
    inside = count = 0
    for n in range(60):
        epsilon = Fraction(3, 10) + Fraction(n, 10**6)
        answer = table.marginals(["a", "b", "x"]).answer(epsilon=epsilon, accept_noise=True)
        for one, two in itertools.combinations("abx", 2):
            true = rows.groupby([one, two]).size().to_dict()
            for row in answer[f"{one}, {two}"].to_dicts():
                value = true.get((row[one], row[two]), 0)
                inside += row["count_low"] <= value <= row["count_high"]
                count += 1
    assert count == 60 * 61
    assert inside / count > 0.88
