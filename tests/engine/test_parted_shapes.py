"""Every shape of question that engines are tested with, cut by unit and answered in parts: the integers of the whole.

The scheduler here is the tests' own, so that it runs wherever Spark does not.
"""

import pytest

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import kernel_path
from tacit_gauntlet.stage.parts import as_read, asked_in_parts, stand_in
from tests.engine.exact import SALT
from tests.engine.test_elsewhere import COLUMNS, LEARNED, SHAPES, asked, local, visits

PARTS = {"sql": 3, "kernel": 5}
# what differs in how rows are cut and put together again; the others run in make slow
QUICK = (
    "sums and means",
    "quantiles",
    "different values",
    "text units",
    "each row its own",
    "rows by person",
    "a join",
)
LEARNED_QUICK = ("lengths of two", "ranges")


def elsewhere(rows):
    """Return what opens rows that are handed over in parts; each table is one of its own."""
    return {"source": stand_in(rows, name="_".join(rows.column_names))}


def compared(here, there, plan):
    """Compare the whole's integers with those of parts, on every path; return how often."""
    times = 0
    source = here.session.engine.source
    for path in ["sql", "kernel"] if kernel_path.supports(plan, source) else ["sql"]:
        whole = as_read(EmbeddedEngine(source, path=path).aggregate(plan, SALT))
        assert as_read(asked_in_parts(there, plan, SALT, parts=PARTS[path], places=2, path=path)) == whole, path
        times += 1
    return times


@pytest.mark.parametrize(
    "shape", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in SHAPES]
)
@pytest.mark.usefixtures("kernel")
def test_parts_of_any_shape_add_up_to_the_whole(shape):
    here, there = asked(shape, local), asked(shape, elsewhere)
    plan = here.plan(epsilon=1).plan
    assert there.plan(epsilon=1).plan == plan
    assert compared(here, there, plan)


# people are scaled into a cap of L1, and of L2
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    "shape", [pytest.param(each, marks=() if each in LEARNED_QUICK else pytest.mark.slow) for each in LEARNED]
)
@pytest.mark.usefixtures("kernel")
def test_facts_are_learned_and_people_scaled_in_parts_as_in_the_whole(shape, noise):
    def question(hold):
        columns = {"x": {"between": (0, 10)}, "place": COLUMNS["place"]}
        words = {"unit": "id", "budget": tacit.epsilon(100, delta=1e-6), "columns": columns, "ledger": ":memory:"}
        return tacit.table(**(words | hold(visits())), name="visits").sql(LEARNED[shape])

    here, there = question(local), question(elsewhere)
    foreseen = here.plan(epsilon=1, noise=noise)
    plans = [foreseen.plan, *(each.plan for each in foreseen.wanted)]
    assert len(plans) > 1
    assert all(compared(here, there, plan) for plan in plans)
