"""Replay: our plans keep what they declare on made-up neighbours, and every planted glue bug is seen in one pair."""

import logging
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count

import pyarrow as pa
import pytest

import tacit
import tacit_gauntlet as gauntlet
from tacit.auditing.neighbours import make_tables
from tacit.auditing.replay import audit_plan, audit_question, compare_traces, replay, run_plan, trace_all_and_alone
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import compiled
from tacit.exact import all_groups
from tacit.plan.plan import Part, Sensitivity
from tacit_gauntlet.frame.mutant import all_mutants
from tacit_gauntlet.stage.statistic import FALSE_ALARM as ALPHA

SURE = 1 - ALPHA
DECLARED = {"x": {"between": (-3, 7)}, "y": {"between": (-5, 10)}, "g": {"type": "text"}}


def table_of(**declared):
    columns = {"id": pa.int64(), "g": pa.string(), "x": pa.int64(), "y": pa.float64(), "d": pa.date32()}
    empty = pa.table({name: pa.array([], kind) for name, kind in columns.items()})
    usual = {"unit": "id", "rows_per_unit": 2, "groups_per_unit": 2, "columns": DECLARED}
    budget = tacit.epsilon(9, delta=1e-6)
    return tacit.table(empty, name="t", budget=budget, ledger=":memory:", **(usual | declared))


def everything(table):
    keyed = table.group_by("g", keys=["a", "b", "nowhere"])
    return {
        "count": table.where("x > 3 AND g <> 'b'").count(),
        "joint": keyed.agg(n=tacit.count(), m=tacit.mean("x"), s=tacit.sum("y"), u=tacit.count_units()),
        "private keys": table.sql("SELECT g, AVG(y) AS y FROM t GROUP BY g HAVING y > 0 ORDER BY y LIMIT 2"),
        "made keys": table.sql("SELECT x % 3 AS k, COUNT(*) AS n FROM t WHERE d >= DATE '2024-01-01' GROUP BY k"),
        "quantiles": keyed.median("x"),
        "moments": table.variance("y"),
        "distinct": table.count_distinct("g", per_unit=2),
        "ranking": table.top("g", 1, keys=["a", "b", "c"]),
    }


AUDITED = ("joint", "private keys", "quantiles", "ranking")  # replayed below, on their way to an audit
QUICKLY = ("count", "moments", "distinct")
PAIRS = [
    pytest.param(name, neighbours, marks=() if neighbours == "add-remove" and name in QUICKLY else pytest.mark.slow)
    for name in everything(table_of())
    for neighbours in ("add-remove", "replace")
]


@pytest.mark.parametrize(("name", "neighbours"), PAIRS)
def test_one_made_up_unit_moves_nothing_farther_than_declared(name: str, neighbours: str):
    question = everything(table_of(neighbours=neighbours))[name]
    plan = question.plan(epsilon=1).plan
    found = replay(plan, question.session.declaration, question.query)
    assert found.passed, str(found)
    assert found.moved > 0, "no newcomer reached what is asked"


def test_every_row_its_own_unit_is_replayed_too():
    question = table_of(unit=tacit.ROW, rows_per_unit=None, groups_per_unit=None).mean("y")
    found = replay(question.plan(epsilon=1).plan, question.session.declaration, question.query)
    assert found.passed, str(found)


def test_a_kernel_that_is_compiled_half_way_changes_nothing(monkeypatch):
    """Both paths keep their bounds, by different rows; rows of one path beside those of another would prove nothing."""
    plan, declaration, query = joint_plan()
    asked = []
    monkeypatch.setattr(compiled, "is_ready", lambda: (asked.append(True), len(asked) > 3)[1])
    monkeypatch.setattr(compiled, "load", lambda: pytest.fail("the path has changed"))
    assert replay(plan, declaration, query).passed
    assert asked


def test_made_up_rows_hold_what_the_question_mentions():
    question = everything(table_of())["count"]
    made = make_tables(question.session.declaration, question.query)
    assert {row["g"] for row in made.crowd} >= {"b"}
    assert {row["x"] for row in made.crowd} >= {3, 4}


# ---- planted bugs --------------------------------------------------------------------------------------------------


def joint_plan():
    question = everything(table_of())["joint"]
    return question.plan(epsilon=1).plan, question.session.declaration, question.query


@pytest.fixture(scope="module")
def joint():
    """The plan of the joint question and its runs on every table."""
    plan, declaration, query = joint_plan()
    return plan, trace_all_and_alone(plan, declaration, make_tables(declaration, query))[0]


def replay_two(plan, declaration, query):
    """Replay with two newcomers alone: enough for a bug that any newcomer shows."""
    made = make_tables(declaration, query)
    two = dict(list(made.newcomers.items())[:2])
    return compare_traces(plan, trace_all_and_alone(plan, declaration, replace(made, newcomers=two))[0])


@pytest.mark.parametrize("norm", ["l0", "l1", "l2_squared", "linf"])
def test_a_sensitivity_declared_one_too_small_is_seen(norm: str, joint):
    plan, traces = joint
    *others, last = plan.releases
    smaller: Sensitivity = replace(last.sensitivity, **{norm: getattr(last.sensitivity, norm) - 1})
    wrong = replace(plan, releases=(*others, replace(last, sensitivity=smaller)))
    found = compare_traces(wrong, traces)
    assert not found.passed
    assert norm in str(found)


@pytest.mark.parametrize("what", ["fails", "logs"])
def test_an_engine_that_treats_no_rows_otherwise_is_seen(what, monkeypatch):
    aggregate = EmbeddedEngine._aggregate

    def without_rows(engine, plan, salt):
        found = list(aggregate(engine, plan, salt))
        if not any(any(each) for exact in found for each in exact.sums.values()):
            if what == "fails":
                raise ValueError("there are no rows")
            logging.getLogger("tacit").warning("there are no rows")
        return iter(found)

    question = table_of().count()
    asked = question.plan(epsilon=1).plan, question.session.declaration, question.query
    assert replay(*asked).passed
    monkeypatch.setattr(EmbeddedEngine, "_aggregate", without_rows)
    found = replay(*asked)
    assert len(found.broken) > 0
    assert all("in a table of no other rows" in each for each in found.broken)


def test_heavy_units_use_all_of_what_is_declared(joint):
    """Otherwise a sensitivity declared too small would go unseen."""
    found = compare_traces(*joint)
    assert found.passed
    assert found.moved == 1


@contextmanager
def engine_that(change):
    """Run every plan and then `change(exact, newcomer)`; the first run is that of the crowd alone."""
    honest, runs = EmbeddedEngine._aggregate, count()

    def aggregate(self, plan, salt):
        yield change(all_groups(list(honest(self, plan, salt))), next(runs) > 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedEngine, "_aggregate", aggregate)
        yield


def test_a_row_that_makes_the_question_fail_is_seen():
    def change(exact, newcomer):
        if newcomer:
            raise ValueError("quoting a cell")
        return exact

    with engine_that(change):
        found = replay_two(*joint_plan())
    assert not found.passed
    assert "fails on one of the tables" in str(found)
    assert "quoting" not in str(found)


def test_a_question_that_fails_on_every_table_is_no_pass():
    def change(exact, newcomer):
        raise ValueError

    with engine_that(change):
        found = replay_two(*joint_plan())
    assert not found.passed
    assert "every table" in str(found)


def test_a_log_that_depends_on_rows_is_seen():
    def change(exact, newcomer):
        if newcomer:
            logging.getLogger("tacit.engine").warning("a big one")
        return exact

    with engine_that(change):
        assert "the log differs" in str(replay_two(*joint_plan()))


def test_public_groups_that_depend_on_rows_are_seen():
    def change(exact, newcomer):
        if newcomer:
            return exact
        sums = {name: column[:-1] for name, column in exact.sums.items()}
        return type(exact)(list(exact.keys)[:-1], sums, exact.values)

    with engine_that(change):
        assert "the public groups differ" in str(replay_two(*joint_plan()))


def test_bounds_that_are_not_enforced_are_seen():
    plan, declaration, query = joint_plan()
    made = make_tables(declaration, query)
    loose = replace(plan, rows_per_unit=50, groups_per_unit=50)  # what the engine does, against what is declared
    traces = {name: run_plan(loose, declaration, made.with_newcomer(name)) for name in (None, "heavy, in one group")}
    found = compare_traces(plan, traces)
    assert not found.passed


def test_values_of_quantiles_beyond_their_bound_are_seen():
    question = everything(table_of())["quantiles"]
    plan = question.plan(epsilon=1).plan
    loose = replace(plan, rows_per_unit=50)
    made = make_tables(question.session.declaration, question.query)
    found = compare_traces(plan, trace_all_and_alone(loose, question.session.declaration, made)[0])
    assert "values of a group changed" in str(found)


# published bug of a table's path, planted -> the question that shows it
PLANTED = {
    "clip dropped": "moments",
    "groups of a unit not bounded": "joint",
    "groups forgotten in the sensitivity": "joint",
    "a key bounded before it is redefined": "made keys",
    "different values of one unit without a bound": "distinct",
    "clipped after the sum": "moments",
    "bounded by arrival order": "joint",
    "bounded by a limit on all units together": "joint",
}
QUICK = ("bounded by a limit on all units together",)


@pytest.mark.parametrize("bug", [pytest.param(bug, marks=() if bug in QUICK else pytest.mark.slow) for bug in PLANTED])
def test_published_bugs_of_bounding_are_seen(bug: str):
    gauntlet.load()
    with {mutant.name: mutant.plant for mutant in all_mutants()}[bug]():
        question = everything(table_of())[PLANTED[bug]]
        found = replay(question.plan(epsilon=1).plan, question.session.declaration, question.query)
    assert not found.passed


# ---- the audit of a question ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "ranking" else ()) for name in AUDITED]
)
def test_a_question_is_audited_for_free(name: str):
    table = table_of()
    question = everything(table)[name]
    found = audit_question(question, epsilon=1, draws=600, confidence=SURE)
    assert not found.violated, str(found)
    assert "no charge was made" in str(found)
    assert table.session.ledger.spent(table.session.registered) == table_of().session.ledger.spent(
        table_of().session.registered
    )


def test_gaussian_noise_of_a_question_is_judged_as_such():
    found = audit_question(table_of().count(), epsilon=1, noise="gaussian", draws=2_000, confidence=SURE)
    assert not found.violated
    assert "taken to be Gaussian" in str(found)


def test_too_little_noise_in_a_plan_is_found_by_its_answers():
    question = table_of().count()
    plan = question.plan(epsilon=1).plan
    (first,) = plan.releases
    short = replace(plan, releases=(replace(first, scale=first.scale / 2),))
    found = audit_plan(short, question.session.declaration, question.query, draws=8_000, confidence=1 - ALPHA)
    assert found.replay.passed
    assert found.result.violated
    assert found.violated


@pytest.mark.slow
@pytest.mark.parametrize("name", ["count", "joint"])
def test_a_tenth_too_little_noise_in_a_question_is_found_at_full_size(name: str):
    question = everything(table_of())[name]
    plan = question.plan(epsilon=1).plan
    words = (question.session.declaration, question.query)
    right = audit_plan(plan, *words, draws=120_000, confidence=1 - ALPHA)
    assert not right.violated, str(right)
    if name == "count":
        (first,) = plan.releases
        short = replace(plan, releases=(replace(first, scale=first.scale * Fraction(9, 10)),))
        assert audit_plan(short, *words, draws=120_000, confidence=1 - ALPHA).result.violated


LEARNED = {"rows_per_unit": None, "groups_per_unit": None, "columns": {"g": {"type": "text"}}}


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_units_scaled_into_learned_caps_move_cells_and_totals_no_farther_than_declared(neighbours):
    keyed = table_of(**LEARNED, neighbours=neighbours).group_by("g", keys=["a", "b", "nowhere"])
    question = keyed.agg(n=tacit.count(), m=tacit.mean("x"))
    plan = question.plan(epsilon=1).plan
    assert plan.scaling
    found = replay(plan, question.session.declaration, question.query)
    assert found.passed, str(found)
    assert found.moved > 0


def test_totals_that_one_unit_moves_too_far_are_seen():
    question = table_of(**LEARNED).group_by("g", keys=["a", "b", "nowhere"]).count()
    plan = question.plan(epsilon=1).plan
    low = replace(plan.scaling.vectors[0], cap=1, shift=0, totals="absolute", tail=1, tail_shift=0)
    narrow = Sensitivity(l0=2, l1=1, l2_squared=1, linf=1)
    totals = replace(plan.releases[0], parts=(Part("kept", index=(0,)), Part("cut", index=(0,))), sensitivity=narrow)
    plan = replace(plan, scaling=replace(plan.scaling, vectors=(low,)), totals=(totals,))
    declaration = question.session.declaration
    made = make_tables(declaration, question.query)

    def found():
        some = (None, "heavy, across groups", "heavy, in one group", "heavy, highest values in a usual group")
        traces = {name: run_plan(plan, declaration, made.with_newcomer(name), path="sql") for name in some}
        return [what for what in compare_traces(plan, traces).broken if "totals of kept and cut rows" in what]

    gauntlet.load()
    assert not found()
    with next(bug for bug in all_mutants() if bug.name == "cut not clipped").plant():
        assert found()
