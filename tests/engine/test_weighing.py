"""Quantiles of people: a unit's rows weigh at most one unit in all its groups, by its own rows alone, on every path."""

from collections import Counter, defaultdict
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.engine import relation
from tacit.engine.engine import EmbeddedEngine
from tacit.plan import UNIT_WEIGHT
from tacit.query.frame import count_units, median, quantile
from tests.engine.exact import SALT, as_table, on_path, question

several = settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
LITTLE = 1 << 16  # memory for a few hundred records at a time
AUTO = {"rows_per_unit": None, "groups_per_unit": None}
GROUPS = ["a", "b", "c", None]
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(GROUPS), st.sampled_from([None, -9, 0, 3, 4, 99]), st.just(0.0)),
    max_size=40,
)
MEDIAN = {"middle": median("x", of="people")}


def weights_of(asked, *, patient=False, salt=SALT):
    """Return {key: {(value, weight): how often}} of the only column that is drawn from."""
    plan, engine = asked.plan(epsilon=1).plan, asked.session.engine
    with on_path("sql"), pytest.MonkeyPatch.context() as patched:
        if patient:
            patched.setattr(EmbeddedEngine, "_quick", lambda *_: None)
            patched.setattr(engine, "_memory", LITTLE)
        exact = engine.aggregate(plan, salt)
    (column,) = plan.weighed
    values = exact.values[column]
    found = {}
    for at, key in enumerate(exact.keys):
        here = slice(values.starts[at], values.ends[at])
        found[key] = Counter(zip(values.steps[here].tolist(), values.weights[here].tolist(), strict=True))
        assert sorted(values.steps[here].tolist()) == values.steps[here].tolist()
    return found


def by_definition(rows, keys, low=0, high=10):
    """Weights as docs/proofs/quantiles.md has them; the range is that of tests/engine/exact.py."""
    cells = defaultdict(list)
    for unit, key, x, _ in rows:
        if x is not None and (key,) in keys:
            cells[unit, (key,)].append(min(max(x, low), high) - low)
    found = {key: Counter() for key in keys}
    for (unit, key), values in cells.items():
        share = UNIT_WEIGHT // sum(unit == other for other, _ in cells)
        for turn, value in enumerate(sorted(values)):
            weight = (turn + 1) * share // len(values) - turn * share // len(values)
            found[key][value, weight] += 1
    return found


def mass(found):
    return sum(weight * often for each in found.values() for (_, weight), often in each.items())


@several
@given(ROWS)
def test_weights_are_those_of_the_definition_on_both_paths(rows):
    asked = question(as_table(rows), MEDIAN, keys=["a", "b", None], **AUTO)
    expected = by_definition(rows, [("a",), ("b",), (None,)])
    assert weights_of(asked) == expected
    assert weights_of(asked, patient=True) == expected


def test_the_patient_path_weighs_units_that_span_many_blocks():
    rows = [(n * n % 40, "ab"[n % 2], n * 7 % 11, 0.0) for n in range(3000)]
    rows += [(7, "abc"[n % 3], n % 5 or None, 0.0) for n in range(3000)]  # one unit has as much as all others
    for words in ({"by": ()}, {"keys": ["a", "b"]}):
        asked = question(as_table(rows), MEDIAN, **words, **AUTO)
        assert weights_of(asked, patient=True) == weights_of(asked)


def test_a_declared_bound_on_groups_is_applied_first_and_alike_on_both_paths():
    rows = [(n % 50, "abcdef"[n * n % 6], n % 11, 0.0) for n in range(2000)]
    words = {"rows_per_unit": None, "groups_per_unit": 2}
    asked = question(as_table(rows), MEDIAN, keys=list("abcdef"), **words)
    found = weights_of(asked)
    assert weights_of(asked, patient=True) == found
    assert mass(found) == 50 * UNIT_WEIGHT
    private = question(as_table(rows), MEDIAN | {"n": count_units()}, **words)
    assert weights_of(private, patient=True) == weights_of(private)


@several
@given(crowd=ROWS, own=st.lists(st.tuples(st.sampled_from(GROUPS), st.sampled_from([None, 0, 3, 99])), max_size=30))
def test_one_unit_weighs_at_most_one_unit_and_moves_no_other(crowd, own):
    newcomer = [(77, key, x, 0.0) for key, x in own]
    with_it, without, alone = (
        weights_of(question(as_table(rows), MEDIAN, keys=GROUPS, **AUTO))
        for rows in (crowd + newcomer, crowd, newcomer)
    )
    assert mass(alone) <= UNIT_WEIGHT
    assert with_it == {key: without[key] + alone[key] for key in with_it}


def test_a_unit_with_more_rows_than_weight_is_thinned_evenly(monkeypatch):
    """In the order of its values, so that its own median stays where it is."""
    monkeypatch.setattr(relation, "UNIT_WEIGHT", 16)
    rows = [(1, "a", n % 11, 0.0) for n in range(110)]
    found = weights_of(question(as_table(rows), MEDIAN, keys=["a"], **AUTO))[("a",)]
    assert sum(weight * often for (_, weight), often in found.items()) == 16
    each = list(chain(*([value] * weight * often for (value, weight), often in sorted(found.items()) if weight)))
    assert each[7] in (4, 5)
    assert Counter(each).most_common(1)[0][1] <= 2


def test_quantiles_of_people_and_of_rows_are_asked_together():
    rows = [(n % 20, "ab"[n % 2], n % 11, n / 10) for n in range(200)]
    asked = question(
        as_table(rows),
        {"people": median("x", of="people"), "rows": median("x", of="rows"), "high": quantile("y", 0.9)},
        keys=["a", "b"],
        rows_per_unit=2,
        groups_per_unit=1,
    )
    plan = asked.plan(epsilon=1).plan
    assert [draw.of for draw in plan.quantiles] == ["people", "rows", "rows"]
    exact = asked.session.engine.aggregate(plan, SALT)
    weights = [exact.values[draw.column].weights for draw in plan.quantiles]
    assert [each is None for each in weights] == [False, True, True]


# ---- What wrong weights would be: each breaks the bound on one unit.


def moved_by_one(monkeypatch, share):
    """Return what one unit with three groups and nine rows weighs, if its share were computed so."""
    rows = [(1, "abc"[n % 3], n, 0.0) for n in range(9)]
    known = relation.weighed

    def wrong(rows, keys, value):
        return share(known(rows, keys, value))

    monkeypatch.setattr("tacit.engine.relation.weighed", wrong)
    return mass(weights_of(question(as_table(rows), MEDIAN, keys=["a", "b", "c"], **AUTO)))


def test_a_unit_that_weighs_one_in_each_group_is_told(monkeypatch):
    assert moved_by_one(monkeypatch, lambda rows: rows) <= UNIT_WEIGHT
    heavier = moved_by_one(monkeypatch, lambda rows: rows.mutate(weight=rows["weight"] * rows["groups_of_unit"]))
    assert heavier > 2 * UNIT_WEIGHT


def test_weights_that_are_rounded_up_are_told(monkeypatch):
    assert moved_by_one(monkeypatch, lambda rows: rows.mutate(weight=rows["weight"] + 1)) > UNIT_WEIGHT
