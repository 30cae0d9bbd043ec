"""Neighbouring tables of Spark are no farther apart than what was charged for the question."""

from functools import partial

import pytest

from tacit_gauntlet.stage.oracle import Elsewhere, Found, search
from tests.spark_session import spark_session, stored

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.far]

KINDS = ("int", "text", "float", "date", "bool")


# Of worlds whose question is refused nothing is compared; about one in three is.
WORLDS_MOST = 12


def looked_at(seed, shapes, kinds=(*KINDS, "row"), found=None, **how):
    session = spark_session()
    where = partial(
        Elsewhere, store=lambda rows, name: {"source": stored(rows, f"oracle_{name}", files=1), "spark": session}
    )
    found = Found() if found is None else found
    search(seed, found, shapes=shapes, kinds=kinds, where=where, **how)
    return found


@pytest.mark.parametrize(("shape", "ids"), [("plain", "int"), ("joined", "float"), ("wards", "date")])
def test_neighbours_on_spark_are_no_farther_apart_than_was_charged(shape, ids):
    """Each world is made from its number, so every run looks at the same ones: the first with an answer is enough."""
    found, turn = Found(), 0
    while not found.moved and turn < WORLDS_MOST:
        looked_at(f"spark {turn}", [shape], [ids], found, questions=1, facts=False)
        turn += 1
    assert not found.broken
    assert found.moved


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_neighbours_on_spark_are_no_farther_apart_for_many_questions(seed):
    found = looked_at(f"spark {seed}", ["plain", "wards", "union", "distinct", "joined", "some units", "exists"])
    assert not found.broken
