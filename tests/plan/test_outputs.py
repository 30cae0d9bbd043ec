"""Every aggregate has one record, and every concern knows each record: a new one fails here until it is everywhere."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, get_args

import pyarrow as pa
import pytest

import tacit
from tacit.answer import columns, moments
from tacit.answer.panel import STARTS_AT_ZERO
from tacit.forecast import solving, target
from tacit.plan import split
from tacit.plan.plan import DEGREES, FAMILIES, Dependence, Family, Numbers, PlannedOutput, Ranking, planned
from tacit.query.nodes import Aggregate, AggregateKind, Column, Output
from tacit_gauntlet.stage.table import plan_of, protected

RECORDS = set(get_args(PlannedOutput))
KINDS = get_args(AggregateKind)
COLUMNS = {"column": 1, "pair": 2, "quantile": 2, "values": 1}  # of a quantile: its column, and its fraction

ROWS = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, None, 3], "y": [1.0, 2.0, 3.0]})
EVERYTHING = {
    "rows": tacit.count(),
    "units": tacit.count_units(),
    "values": tacit.count("x"),
    "distinct": tacit.count_distinct("x"),
    "sum": tacit.sum("x"),
    "mean": tacit.mean("x"),
    "variance": tacit.variance("y"),
    "std": tacit.std("y"),
    "covariance": tacit.covariance("x", "y"),
    "correlation": tacit.correlation("x", "y"),
    "quantile": tacit.median("y"),
}


@dataclass(frozen=True)
class Mode:
    """An aggregate that nobody has heard of."""

    name: str
    release: int
    column: int
    kind: ClassVar[str] = "mode"


def test_every_kind_has_a_family_and_every_family_of_columns_its_degrees():
    assert set(FAMILIES) == set(KINDS)
    assert {*FAMILIES.values(), "rows"} == set(get_args(Family))
    assert set(DEGREES) == {kind for kind, family in FAMILIES.items() if family in ("column", "pair")}


def test_every_record_states_its_traits():
    for record in RECORDS:
        assert record.numbers in get_args(Numbers), record
        assert record.depends_on in get_args(Dependence), record


def test_every_kind_with_numbers_is_drawn():
    assert set(STARTS_AT_ZERO) == {*KINDS, "computed", "running"} - {"top"}


def test_every_kind_becomes_one_record_and_every_record_comes_of_a_kind():
    found = set()
    for kind in KINDS:
        output = Output("name", Aggregate(kind, Column("x")))
        record = planned(output, 0, *range(COLUMNS.get(FAMILIES[kind], 0)))
        assert record.kind == kind
        found.add(type(record))
    assert found | {type(planned(Output("n", Aggregate("count")), 0))} == RECORDS


def test_a_question_for_everything_has_every_record_and_every_concern_answers_it():
    table = protected(ROWS, columns={"x": {"between": (0, 10)}, "y": {"between": (0, 10)}}, population=3)
    questions = [table.agg(**EVERYTHING), table.top("g", 1, keys=["a", "b"])]
    seen = set()
    for question in questions:
        plan = plan_of(question)
        seen |= {type(output) for output in plan.outputs}
        answer = question.answer(epsilon=100, consistent=True)
        assert {output.name for output in plan.outputs} <= set(answer.to_dicts()[0]) | {"rank"}
        for output in plan.outputs:
            error = target.expected_error(output, plan, Fraction(95, 100), rows=100.0)
            assert (error is None) == (target.depends_on(output, plan) == "data")
            assert solving._largest(output, plan, solving.ErrorSizes(3, Fraction(3))) > 0
    assert seen == RECORDS


@pytest.mark.parametrize(
    "concern",
    [
        lambda output, plan: columns._output_column(output, plan, None, Fraction(1, 2)),
        columns.limits_of,
        lambda output, plan: moments._limits(output, [], is_scaled=False),
        lambda output, plan: solving._largest(output, plan, solving.ErrorSizes(3, Fraction(3))),
        lambda output, plan: split._release_error(output, _Layout(plan), plan.releases[0].sensitivity, noise="laplace"),
    ],
)
def test_a_record_that_a_concern_does_not_know_is_no_default(concern: Any):
    plan = plan_of(protected(ROWS).count())
    with pytest.raises(AssertionError):
        concern(Mode("m", 0, 0), plan)
    assert Mode not in RECORDS
    assert Ranking in RECORDS


class _Layout:
    def __init__(self, plan: Any) -> None:
        self.released = [release.parts for release in plan.releases]
        self.columns = list(plan.measured)
