"""The same script with only the source changed: every engine gives the embedded engine's integers, with one salt.

A shape is a question about visits; the tables hold odd cells, units far over their bounds, and units of no one.
"""

import pytest

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.ledger import open_ledger
from tests.engine.exact import SALT, on_path
from tests.engine.made_up_visits import COLUMNS, WARDS, people, visits

TWO = {"rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1}
SHAPES = {
    "a count": ("SELECT COUNT(*) FROM visits", {}),
    "counts of units": ("SELECT ward, COUNT(*) AS n, COUNT(DISTINCT id) AS people FROM visits GROUP BY ward", {}),
    "sums and means": ("SELECT ward, SUM(x) AS a, AVG(y) AS b, SUM(cost) AS c FROM visits GROUP BY ward", {}),
    "public keys": ("SELECT place, COUNT(*) AS n, SUM(y) AS s FROM visits GROUP BY place", {}),
    "two keys": ("SELECT ward, day, COUNT(*) AS n FROM visits GROUP BY ward, day", {}),
    "bool and date keys": ("SELECT late, day, COUNT(x) AS n FROM visits GROUP BY late, day", {}),
    "computed keys": ("SELECT UPPER(ward) AS u, x % 3 AS r, COUNT(*) AS n FROM visits GROUP BY u, r", {}),
    "moments": ("SELECT VARIANCE(x) AS v, COVAR_POP(x, y) AS c FROM visits", {}),
    "quantiles": ("SELECT ward, MEDIAN(y) AS m FROM visits GROUP BY ward", {}),
    "quantiles of public keys": ("SELECT place, QUANTILE_CONT(x, 0.9) AS q FROM visits GROUP BY place", {}),
    "different values": ("SELECT late, COUNT(DISTINCT ward) AS w FROM visits GROUP BY late", {}),
    "what the server may leave out": (
        "SELECT ward, COUNT(*) AS n FROM visits WHERE place >= 1 AND (late OR late IS NULL) AND ward IN ('a', 'é', '')"
        " AND day > DATE '2000-01-01' GROUP BY ward",
        {},
    ),
    "what only we can": ("SELECT COUNT(*) AS n FROM visits WHERE y * 2 > 1 OR day IS NULL OR LENGTH(ward) = 0", {}),
    "nulls": ("SELECT COUNT(*) AS n FROM visits WHERE late IS NULL AND x IS NOT NULL AND NOT (ward = 'a')", {}),
    "text units": ("SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ward", {"unit": "person"}),
    "date units": ("SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ward", {"unit": "day"}),
    "decimal units": ("SELECT late, COUNT(*) AS n FROM visits GROUP BY late", {"unit": "cost"}),
    "float units": ("SELECT late, COUNT(*) AS n FROM visits GROUP BY late", {"unit": "y"}),
    "each row its own": ("SELECT place, COUNT(*) AS n, SUM(y) AS s FROM visits GROUP BY place", {"unit": tacit.ROW}),
    "rows by person": (
        "SELECT k, COUNT(*) AS n FROM (SELECT id, COUNT(*) % 3 AS k, MAX(x) AS w FROM visits GROUP BY id) GROUP BY k",
        {},
    ),
    "a subquery": ("SELECT w, COUNT(*) AS n FROM (SELECT ward AS w FROM visits WHERE place > 0) GROUP BY w", {}),
    "a join": (
        "SELECT age > 40 AS old, COUNT(*) AS n, SUM(x) AS s FROM visits JOIN people USING (id) GROUP BY old",
        {},
    ),
    "public rows beside": ("SELECT kind, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY kind", {}),
}


def asked(name, hold):
    """Return a shape's question of tables that `hold` holds."""
    sql, declared = SHAPES[name]
    ledger = open_ledger(":memory:")
    usual = {"unit": "id", "budget": tacit.epsilon(10**4, delta=1e-6), "columns": COLUMNS, **TWO} | declared
    if usual["unit"] is tacit.ROW:
        usual = {word: value for word, value in usual.items() if word not in TWO}
    first = tacit.table(**(usual | hold(visits())), name="visits", ledger=ledger)
    others = [tacit.public(WARDS, name="wards")] if "wards" in sql else []
    if "people" in sql and "JOIN" in sql:
        more = {"unit": "id", "same_people_as": "visits", **TWO}
        others.append(tacit.table(**(more | hold(people())), name="people", ledger=ledger))
    return first.sql(sql, tables=others)


def plain(exact):
    """Return an exact table as nested dicts: two of them are equal where everything in them is."""
    names = sorted(exact.sums)
    groups = {}
    for place, key in enumerate(exact.keys):
        sums = {name: int(exact.sums[name][place]) for name in names}
        drawn = {column: _drawn(some, place) for column, some in exact.values.items()}
        if any(sums.values()) or drawn:
            groups[key] = (sums, drawn)
    return groups, {name: int(total) for name, total in exact.totals.items()}


def _drawn(some, place):
    """Return the values of a group, with their weights where they have some; equal values may come in any order."""
    if some.weights is None:
        return some[place].tolist()
    weights = some.weights[some.starts[place] : some.ends[place]].tolist()
    return sorted(zip(some[place].tolist(), weights, strict=True))


def local(rows):
    return {"source": rows}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_engine_gives_the_same_integers_with_one_salt(shape, elsewhere, kernel):
    here, there = asked(shape, local), asked(shape, elsewhere)
    plan = here.plan(epsilon=1).plan
    assert there.plan(epsilon=1).plan == plan
    for path in ("sql", "kernel"):
        with on_path(path):
            wanted = plain(here.session.engine.aggregate(plan, SALT))
            assert plain(there.session.engine.aggregate(plan, SALT)) == wanted
            assert wanted[0]


LEARNED = {
    "lengths of one": "SELECT ward, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY ward",
    "lengths of two": "SELECT place, COUNT(*) AS n, AVG(y) AS m, SUM(x) AS s FROM visits GROUP BY place",
    "ranges": "SELECT AVG(x + place) AS m, VARIANCE(y) AS v FROM visits",
    "largest values": "SELECT SUM(cost) AS s FROM visits",
}


@pytest.mark.parametrize("shape", LEARNED)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_every_engine_learns_and_scales_the_same(shape, noise, elsewhere, kernel):
    def table(hold):
        columns = {"x": {"between": (0, 10)}, "place": COLUMNS["place"]}
        words = {"unit": "id", "budget": tacit.epsilon(100, delta=1e-6), "columns": columns, "ledger": ":memory:"}
        return tacit.table(**(words | hold(visits())), name="visits").sql(LEARNED[shape])

    here, there = table(local), table(elsewhere)
    foreseen = here.plan(epsilon=1, noise=noise)
    plans = [foreseen.plan, *(each.plan for each in foreseen.wanted)]
    assert len(plans) > 1
    for path in ("sql", "kernel"):
        with on_path(path):
            for plan in plans:
                wanted = plain(here.session.engine.aggregate(plan, SALT))
                assert plain(there.session.engine.aggregate(plan, SALT)) == wanted


def test_the_patient_path_gives_the_same_integers_on_every_engine(elsewhere, kernel, monkeypatch):
    monkeypatch.setattr(EmbeddedEngine, "_quick", lambda *_: None)
    for shape in ("sums and means", "quantiles", "rows by person", "a join"):
        here, there = asked(shape, local), asked(shape, elsewhere)
        plan = here.plan(epsilon=1).plan
        wanted = plain(here.session.engine.aggregate(plan, SALT))
        assert plain(there.session.engine.aggregate(plan, SALT)) == wanted
        assert wanted[0]
