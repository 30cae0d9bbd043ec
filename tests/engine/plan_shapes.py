"""Scripts of every shape that a plan may have, over made-up tables; and what shape a plan has.

A script is one value of each dimension. Few of them meet every pair of values, and more of them every three.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple, get_args

import tacit
from tacit.engine.engine import Engine
from tacit.learning import Holdout
from tacit.ledger import open_ledger
from tacit.plan import Plan
from tacit.plan.bounds.scaling import VectorKind
from tacit.plan.plan import PartKind, PlannedOutput
from tacit.query import Relation
from tacit_gauntlet.stage.table import all_frozen
from tests.engine.made_up_visits import COLUMNS, WARDS, people, visits

EPSILON = 40
BUDGET = tacit.epsilon(10**4, delta="1e-6")
# what is asked -> the aggregates, each of which is one record of a plan
ASKED = {
    "counts": "COUNT(*) AS n, COUNT(DISTINCT id) AS people, COUNT(x) AS known",
    "sums": "SUM(x) AS s, AVG(y) AS m",
    "spreads": "VAR_POP(x) AS v, STDDEV_SAMP(y) AS d, COVAR_POP(x, y) AS c, CORR(x, y) AS r",
    "values": "MEDIAN(y) AS q, COUNT(DISTINCT w) AS u",
    "the commonest": "MODE(place) AS t, COUNT(*) AS n",
}
# keys -> the column that rows are grouped by
KEYS = {"no keys": None, "found keys": "ward", "listed keys": "place"}
# how units are bounded -> what is declared of them
BOUNDS: dict[str, dict[str, Any]] = {
    "dropped": {"rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1},
    "dropped and measured": {"rows_per_unit": 2, "groups_per_unit": 2},
    "learned": {},
}
NOISE = {"pure": "laplace", "approximate": "gaussian"}
# rows -> where they come from; each has the columns id, ward, place, x, y and w
ROWS = {
    "a table": "visits",
    "computed rows": "(SELECT id, UPPER(ward) AS ward, place, x + 1 AS x, y, w FROM visits WHERE place > -2) AS visits",
    "a public table beside": "visits JOIN wards USING (ward)",
    "a join": "visits JOIN people USING (id)",
    "rows with others": "visits WHERE EXISTS (SELECT * FROM people WHERE people.id = visits.id AND age > 20)",
    "one row for each unit and key": (
        "(SELECT id, ward, place, SUM(x) AS x, MAX(y) AS y, MAX(day) AS w FROM visits GROUP BY id, ward, place)"
        " AS visits"
    ),
}
BETWEEN = {"x": (0, 10), "y": (-5, 5)}
# scripts beside: what no dimension has -> the question of the visits, and what is declared of them
BESIDE: dict[str, tuple[Any, dict[str, Any]]] = {
    "the first of a ranking": (lambda table: table.top("place", 2), BOUNDS["dropped"]),
    "sums of both signs beside rows": ("SELECT COUNT(*) AS n, AVG(cost) AS m, SUM(cost) AS s FROM visits", {}),
    "quantiles of people beside scaled numbers, of keys that are found": (
        "SELECT ward, COUNT(*) AS n, MEDIAN(y) AS q, SUM(x) AS s FROM visits GROUP BY ward",
        {},
    ),
    "quantiles of people beside scaled numbers, of listed keys": (
        "SELECT place, AVG(y) AS m, MEDIAN(y) AS q FROM visits GROUP BY place",
        {},
    ),
    "rows that are units": (
        "SELECT ward, COUNT(*) AS n, AVG(x) AS m, VAR_POP(y) AS v FROM visits GROUP BY ward",
        {"unit": tacit.ROW},
    ),
    "values of rows that are units": (
        "SELECT place, MEDIAN(x) AS q, COUNT(DISTINCT w) AS u FROM visits GROUP BY place",
        {"unit": tacit.ROW},
    ),
    "people who were not set aside": (
        lambda table: Holdout(table, share="0.5").training.group_by("ward").agg(n=tacit.count(), s=tacit.sum("x")),
        BOUNDS["dropped"],
    ),
    "rows that were set aside": (
        lambda table: Holdout(table, share="0.3").rest.sql(
            "SELECT ward, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY ward"
        ),
        {"unit": tacit.ROW, "name": "t"},
    ),
}


class Shape(NamedTuple):
    """One value of each dimension."""

    asked: str
    keys: str
    bounds: str
    noise: str
    rows: str

    def __str__(self) -> str:
        return ", ".join(self)


EVERY = tuple(Shape(*values) for values in product(ASKED, KEYS, BOUNDS, NOISE, ROWS))


@cache
def covering(values: int, among: tuple[Shape, ...] = EVERY) -> tuple[Shape, ...]:
    """Return few of these shapes in which every combination of so many values is met that any of them has."""
    met = {shape: frozenset(combinations(enumerate(shape), values)) for shape in among}
    left, found = frozenset().union(*met.values()), []
    while left:
        best = max(among, key=lambda shape: len(met[shape] & left))
        found.append(best)
        left -= met[best]
    return tuple(found)


class Ran(NamedTuple):
    """What a script did: each plan that the engine was asked, with the exact tables of it, and about which relation.

    Its answer is not compared: groups that are found come in any order, and noise goes by order.
    """

    asked: list[tuple[Plan, Any]]
    relation: Relation | None


def run(script: Shape | str, hold: Any) -> Ran:
    """Run a script with one salt and the same noise each time; only where its rows are held is not in the script."""
    asking = question(script, hold)
    noise = NOISE[script.noise] if isinstance(script, Shape) else None
    with all_frozen(), heard(type(asking.session.engine)) as asked:
        asking.answer(epsilon=EPSILON, noise=noise, accept_noise=True)
    made_of = asking.session.engine.source.made_of
    return Ran(asked, None if made_of is None else made_of[0])


def question(script: Shape | str, hold: Any) -> Any:
    """Return what a script asks, of tables that are held there."""
    return _shaped(script, hold) if isinstance(script, Shape) else _beside(script, hold)


def _shaped(shape: Shape, hold: Any) -> Any:
    ledger = open_ledger(":memory:")
    by_hand = shape.bounds != "learned"
    columns = {name: facts for name, facts in COLUMNS.items() if "keys" in facts or by_hand}
    usual = {"unit": "id", "budget": BUDGET, "columns": columns, "ledger": ledger, **BOUNDS[shape.bounds]}
    first = tacit.table(**(usual | hold(visits())), name="visits")
    key, rows = KEYS[shape.keys], ROWS[shape.rows]
    others = [tacit.public(WARDS, name="wards")] if "wards" in rows else []
    if "people" in rows:
        more = {"unit": "id", "same_people_as": "visits", "ledger": ledger, **BOUNDS[shape.bounds]}
        others.append(tacit.table(**(more | hold(people())), name="people"))
    shown, by = (f"{key}, ", f" GROUP BY {key}") if key else ("", "")
    given = BETWEEN if by_hand and shape.asked not in ("counts", "the commonest") else {}
    return first.sql(f"SELECT {shown}{ASKED[shape.asked]} FROM {rows}{by}", tables=others, between=given)


def _beside(name: str, hold: Any) -> Any:
    asked, declared = BESIDE[name]
    usual = {"unit": "id", "budget": BUDGET, "columns": COLUMNS, "ledger": ":memory:", "name": "visits"}
    table = tacit.table(**(usual | declared | hold(visits())))
    return table.sql(asked) if isinstance(asked, str) else asked(table)


@contextmanager
def heard(engine: type[Engine]) -> Iterator[list[tuple[Plan, Any]]]:
    """Hear each plan that a session asks of engines of this kind, and the exact tables that they give."""
    found: list[tuple[Plan, Any]] = []
    parts, inside = engine.parts, [0]

    def heard_parts(self: Engine, plan: Plan, salt: str) -> Any:
        inside[0] += 1  # an engine may ask another one of its kind
        try:
            tables = list(parts(self, plan, salt))
        finally:
            inside[0] -= 1
        if not inside[0]:
            found.append((plan, tables))
        yield from tables

    engine.parts = heard_parts  # type: ignore[method-assign]
    try:
        yield found
    finally:
        engine.parts = parts  # type: ignore[method-assign]


# ---- what shape a plan has


def traits(plan: Plan, relation: Relation | None) -> set[str]:
    """Return what an engine does differently for this plan than for others."""
    found = {type(output).__name__ for output in plan.outputs if not plan.profiles}
    found |= {f"part {part.kind}" for release in (*plan.releases, *plan.totals) for part in release.parts}
    found |= {f"quantile of {draw.of}" for draw in plan.quantiles}
    found |= {"scaled beside quantiles"} if plan.is_mixed else set()
    found |= {"chosen keys"} if plan.choice else set()
    found |= {"listed keys" if plan.public_keys else "found keys"} if plan.keys and not plan.profiles else set()
    found |= {"noise " + plan.noise}
    vectors = [each.vector for each in plan.profiles]
    if plan.scaling is not None:
        vectors += plan.scaling.vectors
        found |= {f"scaled in L{plan.scaling.norm}"}
    found |= {f"totals {vector.totals}" for vector in vectors if vector.totals}
    found |= {f"vector {vector.kind}" for vector in vectors}
    found |= {f"fact {profile.norm}" for profile in plan.profiles}
    return found | {type(each).__name__ for each in _within(relation)}


def _within(relation: Relation | None) -> Iterator[Any]:
    if isinstance(relation, get_args(Relation)):
        yield relation
        for name in relation.__dataclass_fields__:
            yield from _within(getattr(relation, name))


# What an engine may be asked for; what a plan may hold by its types is read off them.
TRAITS = {
    *(record.__name__ for kind in get_args(PlannedOutput) for record in (get_args(kind) or (kind,))),
    *(f"part {kind}" for kinds in get_args(PartKind) for kind in get_args(kinds)),
    *(f"vector {kind}" for kind in get_args(VectorKind)),
    *(relation.__name__ for relation in get_args(Relation)),
    *("quantile of rows", "quantile of people", "scaled beside quantiles", "chosen keys", "listed keys", "found keys"),
    *("noise laplace", "noise gaussian", "scaled in L1", "scaled in L2", "totals absolute", "totals signed"),
    *("fact 1", "fact 2", "fact largest"),
}
