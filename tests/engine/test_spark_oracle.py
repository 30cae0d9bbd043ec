"""Neighbouring tables of Spark are no farther apart than what was charged for the question."""

from functools import partial

import pytest

from tacit_gauntlet.stage.oracle import Elsewhere, Found, search
from tests.spark_session import spark_session, stored

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.far]

KINDS = ("int", "text", "float", "date", "bool")


def looked_at(seed, shapes, kinds=(*KINDS, "row"), **how):
    session = spark_session()
    where = partial(
        Elsewhere, store=lambda rows, name: {"source": stored(rows, f"oracle_{name}", files=1), "spark": session}
    )
    found = Found()
    search(seed, found, shapes=shapes, kinds=kinds, where=where, **how)
    return found


@pytest.mark.parametrize(("shape", "ids", "seed"), [("plain", "int", 2), ("joined", "float", 3), ("wards", "date", 2)])
def test_neighbours_on_spark_are_no_farther_apart_than_was_charged(shape, ids, seed):
    found = looked_at(seed, [shape], [ids], questions=1, facts=False)
    assert not found.broken
    assert found.moved


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_neighbours_on_spark_are_no_farther_apart_for_many_questions(seed):
    found = looked_at(f"spark {seed}", ["plain", "wards", "union", "distinct", "joined", "some units", "exists"])
    assert not found.broken
