"""The same script, with only the source changed, gives equal exact tables on all engines, for every shape of plan."""

from dataclasses import replace
from functools import cache

import pytest

from tests.engine.exact import SALT, on_path
from tests.engine.plan_shapes import BESIDE, TRAITS, Shape, covering, question, run, traits
from tests.engine.scaled_plans import scaled_plan
from tests.engine.test_elsewhere import local, plain

pytestmark = pytest.mark.filterwarnings("ignore::tacit.LargeEpsilonWarning")
TOTALS = {"totals signed", "totals absolute", "part kept", "part cut"}
SCRIPTS = [*covering(2), *BESIDE]
# Every value of a dimension is met once, and pairs of them in make slow; so are scripts that learn a dozen facts first.
SHORT = tuple(each for each in covering(2) if (each.asked, each.bounds) != ("spreads", "learned"))
# whether rows have others, and the part of a total that is kept, have a vector only in pairs: one that has both
PAIR = Shape("sums", "no keys", "dropped", "pure", "rows with others")
QUICK = [*covering(1, SHORT), PAIR, *BESIDE]
SPARK = pytest.mark.xdist_group("spark")
ON_ENGINES = [
    pytest.param(script, engine, marks=[*others, *(() if script in QUICK else [pytest.mark.slow])])
    for engine, others in (("postgresql", []), ("spark", [SPARK, pytest.mark.far]))
    for script in SCRIPTS
]


@cache
def here(script, path):
    """Return what a script gives where its rows are in this process."""
    with on_path(path):
        return run(script, local)


def assert_equal(script, path, elsewhere):
    wanted = here(script, path)
    with on_path(path):
        found = run(script, elsewhere)
    assert found.relation == wanted.relation
    assert [plan for plan, _ in found.asked] == [plan for plan, _ in wanted.asked]
    for (plan, tables), (_, others) in zip(found.asked, wanted.asked, strict=True):
        assert [plain(each) for each in tables] == [plain(each) for each in others], plan


@pytest.mark.parametrize(("script", "elsewhere"), ON_ENGINES, ids=str, indirect=["elsewhere"])
@pytest.mark.usefixtures("kernel")
def test_the_same_script_gives_equal_exact_tables(script, elsewhere):
    """What is asked, keys, bounds, noise and rows: each value in some script; in make slow every pair."""
    assert_equal(script, "kernel", elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.usefixtures("kernel")
def test_every_three_values_of_dimensions_give_equal_exact_tables(path, elsewhere):
    for script in (*covering(3), *BESIDE):
        assert_equal(script, path, elsewhere)


@pytest.mark.usefixtures("kernel")
def test_scripts_have_every_shape_that_a_plan_may_have():
    """What a plan may hold is read off its types: a record, a part, a vector or a relation that is new is missing."""
    seen = set()
    for script in QUICK:
        ran = here(script, "kernel")
        seen |= {trait for plan, _ in ran.asked for trait in traits(plan, ran.relation)}
    assert seen - TRAITS == set()
    # totals need thousands of people, or the plan below; windows of one person's rows have scripts in test_unit_windows
    assert TRAITS - seen == TOTALS | {"part rows", "Windowed"}


@pytest.mark.parametrize("totals", ["signed", "absolute"])
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.usefixtures("kernel")
def test_totals_of_both_signs_are_equal_on_every_engine(norm, totals, elsewhere):
    """The same plan as a script has, made by hand to cut nearly everything and to add up what it kept and cut."""
    script = "sums of both signs beside rows"
    plan, _ = here(script, "kernel").asked[-1]
    short = [replace(vector, cap=3, totals=totals, tail=1 << 20) for vector in plan.scaling.vectors]
    plan = scaled_plan(plan, replace(plan.scaling, norm=norm, vectors=tuple(short)), measured=plan.measured)
    assert f"totals {totals}" in traits(plan, None)
    found = [question(script, hold).session.engine.aggregate(plan, SALT) for hold in (local, elsewhere)]
    assert plain(found[0]) == plain(found[1])
    assert any(found[0].totals.values())
