"""The questions whose plans and answers are kept: every aggregate, by both doors, over each kind of groups."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tacit
from tacit.asking import Question, Table

WARDS = ["A", "B", "C", "D"]

# name -> what the Python door is asked, and the same in SQL
AGGREGATES: dict[str, tuple[Callable[[], object], str]] = {
    "count": (lambda: tacit.count(), "COUNT(*)"),
    "count of a column": (lambda: tacit.count("age"), "COUNT(age)"),
    "count of units": (lambda: tacit.count_units(), "COUNT(DISTINCT person)"),
    "count of different values": (lambda: tacit.count_distinct("day", per_unit=2), "COUNT(DISTINCT day)"),
    "sum of whole numbers": (lambda: tacit.sum("age"), "SUM(age)"),
    "sum of decimals": (lambda: tacit.sum("bill"), "SUM(bill)"),
    "mean": (lambda: tacit.mean("pay"), "AVG(pay)"),
    "variance": (lambda: tacit.variance("pay"), "VARIANCE(pay)"),
    "standard deviation": (lambda: tacit.std("age"), "STDDEV(age)"),
    "median": (lambda: tacit.median("age"), "MEDIAN(age)"),
    "quantile": (lambda: tacit.quantile("bill", 0.9), "QUANTILE(bill, 0.9)"),
    "least": (lambda: tacit.min("age"), "MIN(age)"),
    "greatest": (lambda: tacit.max("pay"), "MAX(pay)"),
    "covariance": (lambda: tacit.covariance("age", "pay"), "COVAR_POP(age, pay)"),
    "correlation": (lambda: tacit.correlation("age", "pay"), "CORR(age, pay)"),
}
GROUPS = {"one group": [], "public groups": ["urgent"], "private groups": ["site"]}
NOISES = ("laplace", "gaussian")

# name -> a question as a table is asked it, with the words of its call
OTHERS: dict[str, tuple[Callable[[Table], Question], dict[str, object]]] = {
    "several at once": (
        lambda t: t.group_by("site").agg(n=tacit.count(), units=tacit.count_units(), pay=tacit.mean("pay")),
        {"epsilon": 1},
    ),
    "several, weighed": (
        lambda t: t.agg(n=tacit.count(), age=tacit.sum("age"), half=tacit.median("pay")),
        {"epsilon": 1, "weights": {"n": 4}},
    ),
    "several of each kind": (
        lambda t: t.group_by("urgent").agg(
            n=tacit.count("pay"), pay=tacit.mean("pay"), spread=tacit.std("pay"), days=tacit.count_distinct("day")
        ),
        {"epsilon": "1/2", "confidence": 0.9},
    ),
    "listed groups": (lambda t: t.group_by("ward", keys=WARDS).mean("age"), {"epsilon": 1, "consistent": True}),
    "a filter and a new column": (
        lambda t: t.where("age >= 30 AND ward <> 'C'").derive(due="bill * 2").sum("due", between=(0, 200)),
        {"epsilon": 1},
    ),
    "quantiles": (lambda t: t.quantile("age", [0.1, 0.5, 0.9]), {"epsilon": 1, "consistent": True}),
    "a histogram": (lambda t: t.histogram("age", 7), {"epsilon": 1}),
    "the most common of listed keys": (lambda t: t.top("ward", 2, keys=WARDS), {"epsilon": 1}),
    "the most common": (lambda t: t.mode("site"), {"epsilon": 2}),
    "an error in place of an epsilon": (lambda t: t.group_by("urgent").count(), {"error": 60}),
    "errors of two": (
        lambda t: t.agg(n=tacit.count(), age=tacit.mean("age")),
        {"error": {"n": 60, "age": "10%"}, "for_groups_of": 600},
    ),
    "HAVING, ORDER BY and LIMIT": (
        lambda t: t.sql(
            "SELECT urgent AS u, COUNT(*) AS n, AVG(bill) AS mean_bill FROM visits WHERE ward <> 'B' GROUP BY urgent "
            "HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 2"
        ),
        {"epsilon": 1},
    ),
    "functions": (
        lambda t: t.sql(
            "SELECT EXTRACT(MONTH FROM day) AS month, UPPER(site) AS s, SUM(CASE WHEN age > 40 THEN 1 ELSE 0 END) AS n "
            "FROM visits WHERE note LIKE '<%' OR COALESCE(pay, 0) BETWEEN 1 AND 90 GROUP BY month, s",
            between={"n": (0, 1)},
        ),
        {"epsilon": 1},
    ),
}


@dataclass(frozen=True)
class Asked:
    """A question that is kept: its title, how a table is asked it in Python and in SQL, and the words of the call."""

    title: str
    python: Callable[[Table], Question]
    sql: Callable[[Table], Question] | None
    words: dict[str, object]


def all_asked(*, both_noises: bool = True) -> Iterator[Asked]:
    """Yield every question that is kept; without both noises, each aggregate has either one in turn."""
    for turn, (groups, keys) in enumerate(GROUPS.items()):
        for place, aggregate in enumerate(AGGREGATES):
            for noise in NOISES if both_noises else [NOISES[(turn + place) % 2]]:
                words = {"epsilon": 1, "noise": noise}
                yield Asked(f"{aggregate}, {groups}, {noise}", _python(aggregate, keys), _sql(aggregate, keys), words)
    for title, (ask, words) in OTHERS.items():
        yield Asked(title, ask, None, words)


def _python(aggregate: str, keys: list[str]) -> Callable[[Table], Question]:
    return lambda t: (t.group_by(*keys) if keys else t).agg(x=AGGREGATES[aggregate][0]())


def _sql(aggregate: str, keys: list[str]) -> Callable[[Table], Question]:
    names = ", ".join(keys)
    select = f"SELECT {names + ', ' if keys else ''}{AGGREGATES[aggregate][1]} AS x FROM visits"
    bound = {"per_unit": {"x": 2}} if "different" in aggregate else {}
    return lambda t: t.sql(select + (f" GROUP BY {names}" if keys else ""), **bound)
