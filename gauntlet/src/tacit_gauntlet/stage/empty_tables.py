"""The stage for tables of 0, 1 and 2 units: every verb that reads rows, and all that somebody sees of its outcome.

The three tables are neighbours in turn, so at a tiny epsilon nothing but digits may tell them apart. With the noise
frozen, whatever differs between them is decided by rows.
"""

import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from zipfile import ZipFile

import duckdb
import pyarrow as pa

from tacit import ROW, Answer, audit_question, count, count_units, mean, public
from tacit import epsilon as loss
from tacit import sum as sum_of
from tacit.errors import TacitError
from tacit.learning import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    Holdout,
    KMeans,
    LinearRegression,
    SqlModel,
    Teachers,
)
from tacit.learning import tune as choose_model
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.models import Spots, Talker, public_text
from tacit_gauntlet.stage.parts import coded_in_parts, stand_in
from tacit_gauntlet.stage.table import Ear, Table, all_frozen, protected, protected_here

TINY = "0.000001"
# Quantiles refuse an epsilon at which all values are equally likely, and a choice among models is drawn slowly.
SMALL = "0.001"
# Nobody of the tables' other people has this number, which the filter asks for.
WANTED = 5
OTHERS = 4
BUDGET = loss(10**6, delta="1e-6")
COLUMNS: dict[str, dict[str, Any]] = {
    "x": {"between": (0, 10)},
    "y": {"between": (-5, 5)},
    "z": {"between": (0, 100)},
    "g": {"keys": ["a", "b", "c"]},
}
UNITS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int": (pa.int64(), lambda who: who),
    "far apart": (pa.int64(), lambda who: who << 40),
    "text": (pa.string(), lambda who: f"person {who}"),
    "float": (pa.float64(), lambda who: who + 0.5),
    "date": (pa.date32(), lambda who: date(2000, 1, 1) + timedelta(days=who)),
    "decimal": (pa.decimal128(12, 2), lambda who: Decimal(who) / 4),
    "bool": (pa.bool_(), lambda who: who % 2 == 1),
    "row": (pa.int64(), lambda who: who),
}
UNBOUNDED = {"rows_per_unit": None, "groups_per_unit": None, "most_rows_per_unit": None}
WARDS = {"g": ["a", "b", "c"], "floor": [1, 2, 3]}
PUBLIC_ROWS = {"x": [0, 5, 10], "y": [-5.0, 0.0, 5.0]}


# Holds rows somewhere, and returns the words that a table is opened by.
Hold = Callable[[pa.Table], dict[str, Any]]


def as_they_are(rows: pa.Table) -> dict[str, Any]:
    """Hold rows in this process, or where the course's engine keeps them."""
    return {"source": rows}


def in_connection(*settings: str) -> Hold:
    """Hold rows in a user's own DuckDB connection, which has some settings."""

    def hold(rows: pa.Table) -> dict[str, Any]:
        connection = duckdb.connect()
        connection.register("given", rows)
        connection.execute("CREATE TABLE t AS FROM given")
        for setting in settings:
            connection.execute(f"SET {setting}")
        return {"source": (connection, "t")}

    return hold


# What is known of a table beforehand: ranges and keys; bounds of each unit too; or nothing, so that it is learned.
Style = Literal["declared", "bounded", "undeclared"]


@dataclass(frozen=True)
class Few:
    """A table of some units: their kind, how many match, and whether others are there whom a filter leaves out."""

    kind: str
    people: int
    filtered: bool = False
    style: Style = "declared"

    @property
    def unit(self) -> Any:
        """What a unit is."""
        return ROW if self.kind == "row" else "id"

    def rows(self) -> pa.Table:
        """Return the rows: two of each unit, or one where every row is a unit."""
        kind, name = UNITS[self.kind]
        turns = 1 if self.kind == "row" else 2
        rows = [(name(who), who, turn, WANTED) for who in range(self.people) for turn in range(turns)]
        if self.filtered:
            rows += [(name(who), who, turn, 1) for who in range(OTHERS) for turn in range(turns)]
        return pa.table(
            {
                "id": pa.array([row[0] for row in rows], kind),
                "g": pa.array(["abc"[(who + turn) % 3] for _, who, turn, _ in rows], pa.string()),
                "x": pa.array([x for *_, x in rows], pa.int64()),
                "y": pa.array([who - turn / 2 for _, who, turn, _ in rows], pa.float64()),
                "z": pa.array([Decimal(who + turn) for _, who, turn, _ in rows], pa.decimal128(9, 2)),
                "f": pa.array([turn == 1 for *_, turn, _ in rows], pa.bool_()),
                "d": pa.array([date(2024, 1, 1 + turn) for *_, turn, _ in rows], pa.date32()),
                "w": pa.array([f"word {who}" for _, who, _, _ in rows], pa.string()),
            }
        )

    def table(self, hold: Hold = as_they_are) -> Table:
        """Return the rows as a protected table, wherever they are held."""
        usual: dict[str, Any] = {} if self.style == "bounded" else UNBOUNDED
        columns = {} if self.style == "undeclared" else COLUMNS
        usual = {**usual, "budget": BUDGET, "ledger": open_ledger(":memory:"), "columns": columns}
        usual["unit"] = self.unit
        return protected(**hold(self.rows()), **usual)

    def beside(self, table: Table, hold: Hold = as_they_are) -> Table:
        """Return a second table of the same people, with a row for each."""
        kind, name = UNITS[self.kind]
        whole = range(OTHERS if self.filtered else self.people)
        ids = list(dict.fromkeys(name(who) for who in whole))
        rows = pa.table({"id": pa.array(ids, kind), "age": pa.array(range(20, 20 + len(ids)), pa.int64())})
        same = {"name": "people", "budget": None, "same_people_as": "t", "ledger": table.session.ledger}
        return protected(**hold(rows), columns={"age": {"between": (0, 100)}}, **UNBOUNDED, **same)

    def lines(self, table: Table, hold: Hold = as_they_are) -> Table:
        """Return rows without a unit, two for each person that matches and some of nobody's, owned by the table."""
        words = [f"word {who}" for who in range(self.people) for _ in range(2)] + ["word", "no word", "word"]
        numbers = [place % 11 for place in range(len(words))]
        found = {"w": words, "g": ["abc"[number % 3] for number in numbers], "x": numbers, "v": numbers[::-1]}
        columns = {} if self.style == "undeclared" else {"x": COLUMNS["x"], "v": COLUMNS["x"], "g": COLUMNS["g"]}
        owned: dict[str, Any] = {"name": "lines", "unit": table, "via": "w", "budget": None, "ledger": None}
        return protected(**hold(pa.table(found)), columns=columns, **UNBOUNDED, **owned)


# ---- what is asked ---------------------------------------------------------------------------------------------------

Ask = Callable[["Asked"], Any]


@dataclass(frozen=True)
class Asked:
    """A table of few units, opened, and where further rows of it are held."""

    table: Table
    few: Few
    hold: Hold

    @property
    def rows(self) -> Table:
        """The table, or those of its rows that the filter leaves."""
        return self.table.where(f"x = {WANTED}") if self.few.filtered else self.table


def _sql(text: str) -> Ask:
    """Ask a question in SQL; {where} stands for the filter, if there is one, and {both} for that and more."""

    def ask(asked: Asked) -> Any:
        where = f"WHERE x = {WANTED}" if asked.few.filtered else ""
        both = f"{where} AND" if asked.few.filtered else "WHERE"
        tables: list[Any] = [public(pa.table(WARDS), name="wards")] if "wards" in text else []
        tables += [asked.few.beside(asked.table, asked.hold)] if " people" in text else []
        question = asked.table.sql(text.format(where=where, both=both), tables=tables)
        return question.answer(epsilon=SMALL if re.search("MEDIAN|QUANTILE|MIN|MAX", text) else TINY, accept_noise=True)

    return ask


QUESTIONS: dict[str, Ask] = {
    name: _sql(text)
    for name, text in {
        "count": "SELECT COUNT(*) AS n, COUNT(y) AS m FROM t {where}",
        "units": "SELECT COUNT(DISTINCT id) AS n FROM t {where}",
        "sum": "SELECT SUM(x) AS s, SUM(z) AS t FROM t {where}",
        "mean": "SELECT AVG(x) AS a, AVG(y) AS b FROM t {where}",
        "spread": "SELECT VAR_POP(y) AS v, STDDEV(x) AS s FROM t {where}",
        "covariance": "SELECT COVAR_POP(x, y) AS v FROM t {where}",
        "correlation": "SELECT CORR(x, y) AS v FROM t {where}",
        "regression": "SELECT REGR_SLOPE(y, x) AS s, REGR_R2(y, x) AS r FROM t {where}",
        "median": "SELECT MEDIAN(y) AS m, QUANTILE(x, 0.9) AS q FROM t {where}",
        "extremes": "SELECT MIN(x) AS a, MAX(y) AS b FROM t {where}",
        "mode": "SELECT MODE(g) AS m FROM t {where}",
        "mode beside": "SELECT g, MODE(x) AS m, COUNT(*) AS n FROM t {where} GROUP BY g",
        "different values": "SELECT COUNT(DISTINCT w) AS d FROM t {where}",
        "listed groups": "SELECT g, COUNT(*) AS n, AVG(y) AS a, MEDIAN(x) AS m FROM t {where} GROUP BY g",
        "found groups": "SELECT w, COUNT(*) AS n, SUM(x) AS s FROM t {where} GROUP BY w",
        "found medians": "SELECT w, MEDIAN(x) AS m FROM t {where} GROUP BY w",
        "found days": "SELECT d, f, COUNT(*) AS n FROM t {where} GROUP BY d, f",
        "rollup": "SELECT g, f, COUNT(*) AS n FROM t {where} GROUP BY ROLLUP (g, f)",
        "cube": "SELECT g, x > 3 AS h, SUM(x) AS s FROM t {where} GROUP BY CUBE (g, h)",
        "rollup of found groups": "SELECT w, f, COUNT(*) AS n, SUM(x) AS s FROM t {where} GROUP BY ROLLUP (w, f)",
        "rollup of means": "SELECT g, AVG(y) AS a, MEDIAN(x) AS m FROM t {where} GROUP BY ROLLUP (g)",
        "grouping sets": "SELECT g, x > 3 AS h, VAR_POP(y) AS v FROM t {where} GROUP BY GROUPING SETS ((g), (h), ())",
        "brackets": "SELECT COUNT(*) - (SELECT COUNT(*) FROM t {where}) AS n, AVG(y) / (SELECT AVG(x) FROM t) AS r"
        " FROM t {where}",
        "mode of found groups": "SELECT w, MODE(g) AS m, COUNT(*) AS n FROM t {where} GROUP BY w",
        "nothing but NULL": "SELECT AVG(NULLIF(x, x)) AS a, SUM(NULLIF(y, y)) AS s, COUNT(NULLIF(y, y)) AS n"
        " FROM t {where}",
        "never": "SELECT AVG(x) AS a, CORR(x, y) AS c FROM t {both} 1 = 0",
        "union of found groups": "SELECT w, COUNT(*) AS n FROM t {where} GROUP BY w UNION ALL"
        " SELECT g, AVG(x) FROM t {where} GROUP BY g",
        "union": "SELECT 'a' AS what, COUNT(*) AS n FROM t {where} UNION ALL SELECT 'b', SUM(x) FROM t {where}",
        "windows": "SELECT g, RANK() OVER (ORDER BY COUNT(*)) AS r, SUM(COUNT(*)) OVER () AS n FROM t"
        " {where} GROUP BY g",
        "having": "SELECT g, AVG(x) AS a FROM t {where} GROUP BY g HAVING AVG(x) > (SELECT AVG(x) FROM t) LIMIT 2",
        "a condition": "SELECT COUNT(*) FILTER (WHERE f) AS n, COUNT_IF(y > 0) AS m FROM t {where}",
        "public join": "SELECT floor, COUNT(*) AS n, AVG(y) AS a FROM t JOIN wards USING (g) {where} GROUP BY floor",
        "public semi join": "SELECT COUNT(*) AS n FROM t {both} g IN (SELECT g FROM wards WHERE floor > 1)",
        "public anti join": "SELECT COUNT(*) AS n FROM t ANTI JOIN wards USING (g) {where}",
        "found groups of computed rows": "SELECT v, AVG(u) AS a FROM"
        " (SELECT UPPER(g) AS v, x * 2 AS u FROM t {where}) GROUP BY v",
    }.items()
}
# Of units that have rows: a row that is its own unit has no table of its own.
RELATIONS: dict[str, Ask] = {
    name: _sql(text)
    for name, text in {
        "per unit": "SELECT AVG(n) AS a, COUNT(*) AS p FROM (SELECT id, COUNT(*) AS n FROM t {where} GROUP BY id)",
        "per unit, found": "SELECT n, COUNT(*) AS p FROM"
        " (SELECT id, COUNT(*) AS n FROM t {where} GROUP BY id) GROUP BY n",
        "per unit and key": "SELECT g, AVG(s) AS a FROM"
        " (SELECT id, g, SUM(x) AS s, MAX(y) AS h FROM t {where} GROUP BY 1, 2 HAVING COUNT(*) > 0) GROUP BY g",
        "per unit, medians": "SELECT MEDIAN(n) AS a, VAR_POP(s) AS v FROM"
        " (SELECT id, COUNT(*) AS n, SUM(y) AS s FROM t {where} GROUP BY id)",
        "per unit, totals of found groups": "SELECT g, h, COUNT(*) AS p FROM"
        " (SELECT id, g, MAX(x) > 3 AS h, BOOL_OR(f) AS o FROM t {where} GROUP BY id, g)"
        " WHERE o GROUP BY ROLLUP (g, h)",
        "two tables": "SELECT 'a' AS k, COUNT(*) AS n FROM t {where} UNION ALL SELECT 'b', COUNT(*) FROM people",
        "whoever": "SELECT COUNT(*) AS p FROM (SELECT DISTINCT id FROM t {where})",
        "join": "SELECT SUM(age) AS s, COUNT(*) AS n FROM t JOIN people USING (id) {where}",
        "left join": "SELECT COUNT(age) AS s, COUNT(*) AS n FROM t LEFT JOIN people USING (id) {where}",
        "semi join": "SELECT COUNT(*) AS n FROM people WHERE id IN (SELECT id FROM t {where})",
        "anti join": "SELECT COUNT(*) AS n FROM people p WHERE NOT EXISTS (SELECT 1 FROM t v {both} v.id = p.id)",
        "first rows": "SELECT g, COUNT(*) AS n, AVG(l) AS a FROM"
        " (SELECT g, y - LAG(y) OVER (PARTITION BY id ORDER BY d) AS l FROM t {where}"
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY d, y) < 3) GROUP BY g",
        "found groups of ranks": "SELECT r, w, COUNT(*) AS n FROM"
        " (SELECT w, RANK() OVER (PARTITION BY id, g ORDER BY x DESC) AS r FROM t {where}) GROUP BY r, w",
        "first rows by person": "SELECT AVG(n) AS a, MEDIAN(n) AS m FROM (SELECT id, COUNT(*) AS n FROM (SELECT id, f,"
        " DENSE_RANK() OVER (PARTITION BY id ORDER BY y) AS r FROM t {where}) WHERE r = 1 GROUP BY id)",
        "join of totals": "WITH often AS (SELECT id, COUNT(*) AS n FROM t {where} GROUP BY id)"
        " SELECT AVG(n) AS a FROM people JOIN often USING (id)",
    }.items()
}


def _of_lines(ask: Callable[[Table], Any]) -> Ask:
    """Ask of rows that have their unit in the table, by a text that is a key of both."""
    return lambda asked: ask(asked.few.lines(asked.table, asked.hold))


RELATIONS |= {
    "owned rows": _of_lines(
        lambda lines: (
            lines.group_by("g").agg(n=count(), s=sum_of("x"), m=mean("x")).answer(epsilon=TINY, accept_noise=True)
        )
    ),
    "owned rows, found": _of_lines(lambda lines: lines.group_by("w").count().answer(epsilon=TINY, accept_noise=True)),
    "owned rows, by person": _of_lines(
        lambda lines: lines.per_unit(n=count()).median("n").answer(epsilon=SMALL, accept_noise=True)
    ),
    "a line of owned rows": _of_lines(
        lambda lines: LinearRegression(epsilon=SMALL).fit(lines, target="x", features=["v"])
    ),
    "a summary of owned rows": _of_lines(lambda lines: lines.describe(epsilon=SMALL)),
    "per unit in Python": lambda asked: (
        asked.rows.per_unit(n=count()).mean("n").answer(epsilon=TINY, accept_noise=True)
    ),
    "join in Python": lambda asked: (
        asked.rows.join(asked.few.beside(asked.table, asked.hold), on="id")
        .sum("age")
        .answer(epsilon=TINY, accept_noise=True)
    ),
}


def _stepped(asked: Asked, counted: Callable[[Any], Any]) -> Any:
    """Return all days of a running count, whose days have rows or not."""
    count_so_far = counted(asked.rows.running("d", since="2024-01-01", until="2040-12-31"))
    return count_so_far.start(epsilon=TINY).step()


VERBS: dict[str, Ask] = {
    "histogram": lambda asked: asked.rows.histogram("x", bins=[0, 5, 10]).answer(epsilon=TINY, accept_noise=True),
    "top": lambda asked: asked.rows.top("g", 2, keys=["a", "b", "c"]).answer(epsilon=TINY, accept_noise=True),
    "mode in Python": lambda asked: asked.rows.mode("g").answer(epsilon=TINY, accept_noise=True),
    "in Python": lambda asked: (
        asked.rows.group_by("g")
        .agg(n=count() if asked.few.kind == "row" else count_units(), s=sum_of("x"), m=mean("y"))
        .answer(epsilon=TINY, accept_noise=True)
    ),
    "totals in Python": lambda asked: (
        asked.rows.group_by("g", "f", totals="all", keys=[(g, f) for g in "abc" for f in (False, True)])
        .agg(n=count(), s=sum_of("x"))
        .answer(epsilon=TINY, accept_noise=True)
    ),
    "others of found groups": lambda asked: (
        asked.rows.group_by("w", "g", totals=True, other=True).count().answer(epsilon=TINY, accept_noise=True)
    ),
    "a workload": lambda asked: asked.rows.workload(
        by_g=asked.rows.group_by("g").count(), m=asked.rows.mean("y")
    ).answer(epsilon=TINY, accept_noise=True),
    "marginals": lambda asked: asked.rows.marginals(["g", "x"], bins={"x": [0, 5, 10]}).answer(
        epsilon=TINY, accept_noise=True
    ),
    "top of found": lambda asked: asked.rows.top("w", 2).answer(epsilon=TINY, accept_noise=True),
    "quantiles of people": lambda asked: asked.rows.quantile("x", [0.1, 0.5, 0.9], of="people").answer(
        epsilon=SMALL, accept_noise=True, consistent=True
    ),
    "different values in Python": lambda asked: asked.rows.count_distinct("w", per_unit=1).answer(
        epsilon=TINY, accept_noise=True
    ),
    "gaussian": lambda asked: (
        asked.rows.group_by("g").agg(n=count(), m=mean("y")).answer(epsilon=TINY, accept_noise=True, noise="gaussian")
    ),
    "learned anew": lambda asked: asked.rows.mean("y").answer(epsilon=TINY, accept_noise=True, learn="fresh"),
    "of computed values": lambda asked: (
        asked.rows.derive(v="x * 2 + y").group_by("g").mean("v").answer(epsilon=TINY, accept_noise=True)
    ),
    "of one side": lambda asked: (
        Holdout(asked.table, share="0.001").rest.group_by("g").mean("y").answer(epsilon=TINY, accept_noise=True)
    ),
    "a summary of one side": lambda asked: Holdout(asked.table, share="0.001").rest.describe(epsilon=SMALL),
    "what is left": lambda asked: (asked.rows.mean("y").answer(epsilon=TINY, accept_noise=True), asked.table.left)[1:],
    "a count that runs on": lambda asked: _stepped(asked, lambda days: days.count_units()),
    "rows that run on": lambda asked: _stepped(asked, lambda days: days.count(rows_per_unit=2)),
    "as files": lambda asked: _files(asked.rows.group_by("g").mean("y").answer(epsilon=TINY, accept_noise=True)),
    "without learning": lambda asked: (
        asked.rows.count() if asked.few.kind == "row" else asked.rows.count_units()
    ).answer(epsilon=TINY, learn=False),
    "a plan": lambda asked: str(asked.rows.group_by("g").mean("y").plan(epsilon=TINY)),
    "asked again": lambda asked: [asked.rows.mean("y").answer(epsilon=TINY, accept_noise=True) for _ in range(2)][1],
    "of learned facts": lambda asked: (
        asked.rows.learn(epsilon=SMALL, columns=["x"]),
        asked.rows.mean("x").answer(epsilon=SMALL, accept_noise=True),
        asked.table.facts,
    )[1:],
    "describe": lambda asked: asked.rows.describe(epsilon=SMALL),
    "learn": lambda asked: asked.rows.learn(epsilon=TINY, columns=["x", "y"]),
    "learn by": lambda asked: asked.rows.learn(epsilon=TINY, columns=["x"], by=["g"]),
    "learn by found": lambda asked: asked.rows.learn(epsilon=TINY, columns=["x"], by=["w"]),
    "audit": lambda asked: audit_question(asked.rows.count(), epsilon=1, draws=200),
    "audit of found groups": lambda asked: audit_question(asked.rows.group_by("w").mean("y"), epsilon=1, draws=200),
}


def _files(answer: Answer) -> str:
    """Return what other programs are given of an answer: a picture, a workbook, frames and a certificate."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        answer.plot(place / "a.svg")
        answer.to_excel(place / "a.xlsx", columns="g")
        with ZipFile(place / "a.xlsx") as book:
            sheets = [book.read(name).decode() for name in sorted(book.namelist()) if "sheet" in name.lower()]
        drawn = (place / "a.svg").read_text()
    texts = [
        drawn,
        *sheets,
        answer.to_html(),
        answer.note(),
        str(answer.to_pandas().dtypes),
        json.dumps(answer.certificate(), default=str),
    ]
    return in_words("\n".join(texts))


def _model(made: Any, **words: Any) -> Ask:
    def fit(asked: Asked) -> Any:
        return made(epsilon=SMALL if asked.few.style == "undeclared" else TINY).fit(
            asked.rows, **({"features": ["x", "y", "g"]} | words)
        )

    return fit


def _score(share: str, text: str, target: str, positive: Any = None) -> Ask:
    def score(asked: Asked) -> Any:
        model = SqlModel(text, target=target, positive=positive)
        where = f"x = {WANTED}" if asked.few.filtered else None
        return Holdout(asked.table, share=share).score(model, epsilon=TINY, where=where)

    return score


def _scored_after_fit(made: Any, target: str, **words: Any) -> Ask:
    def score(asked: Asked) -> Any:
        halves = Holdout(asked.table, share="0.5")
        model = made(epsilon=TINY).fit(halves.training, target=target, features=["x", "z"], **words)
        return halves.score(model, epsilon=TINY, where=f"x = {WANTED}" if asked.few.filtered else None)

    return score


def _tuned(measure: Any, target: str, positive: Any = None) -> Ask:
    def tuned(asked: Asked) -> Any:
        models = [SqlModel(text, target=target, positive=positive) for text in ("0.1 + 0 * x", "0.9 + 0 * x")]
        return choose_model(models, Holdout(asked.table, share="0.9"), epsilon=SMALL, target=target, measure=measure)

    return tuned


def _fitted_and_tuned(asked: Asked) -> Any:
    models = [AdditiveRegressor(epsilon=TINY, rounds=2), LinearRegression(epsilon=TINY)]
    return choose_model(models, Holdout(asked.table, share="0.5"), epsilon=SMALL, target="y", features=["x", "g"])


def _made(columns: Any, **words: Any) -> Ask:
    """Make rows, and return what is seen of them but their values."""

    def make(asked: Asked) -> str:
        made = asked.rows.synthesize(epsilon=SMALL, columns=columns, **words)
        return f"{made}\n{made.to_pandas().dtypes}"

    return make


def _voted(asked: Asked) -> Any:
    teachers = Teachers(Talker(), count=5).fit(asked.table, target="f", features=["x", "y"])
    return teachers.vote(PUBLIC_ROWS, epsilon=TINY)


MODELS: dict[str, Ask] = {
    "two classes": _model(AdditiveClassifier, target="f"),
    "several classes": _model(AdditiveClassifier, target="g", features=["x", "y"]),
    "a number": _model(AdditiveRegressor, target="y", features=["x", "g"]),
    "a line": _model(LinearRegression, target="y", features=["x", "g"]),
    "a term of two": _model(
        partial(AdditiveRegressor, rounds=2, interactions=[("x", "g")]), target="y", features=["x", "g"]
    ),
    "a number of times": _model(partial(AdditiveRegressor, loss="poisson"), target="x", features=["y"]),
    "components": _model(PCA, features=["x", "y", "z"]),
    "clusters": _model(partial(KMeans, 2), features=["x", "y", "z"]),
    "components of one side": lambda asked: PCA(epsilon=TINY).fit(
        Holdout(asked.table, share="0.999").training, features=["x", "y"]
    ),
    "a student": lambda asked: str(_voted(asked).student(Spots()).predict(PUBLIC_ROWS)),
    "what it predicts": lambda asked: str(
        AdditiveClassifier(epsilon=TINY, rounds=2)
        .fit(asked.rows, target="f", features=["x", "y"])
        .predict_proba(PUBLIC_ROWS)
    ),
    "of one side": lambda asked: AdditiveRegressor(epsilon=TINY, rounds=2).fit(
        Holdout(asked.table, share="0.999").training, target="y", features=["x"]
    ),
    "a score of classes": _score("0.999", "0.2 + 0.05 * x", "f", True),
    "a score of numbers": _score("0.999", "x", "y"),
    "a score of several classes": _scored_after_fit(AdditiveClassifier, "g"),
    "a score of a line": _scored_after_fit(LinearRegression, "y"),
    "a score of hardly any": _score("0.001", "x", "y"),
    "a choice of classes": _tuned("log loss", "f", True),
    "a choice of numbers": _tuned(None, "y"),
    "fits, and a choice": _fitted_and_tuned,
    "made-up rows": _made(["x", "g", "f"], target="g"),
    "made-up rows of days": _made({"x": None, "d": ("2024-01-01", "2024-12-31")}, rules=["x >= 1"]),
    "votes": _voted,
}


# Of units that have rows, too.
LINKED: dict[str, Ask] = {
    "made-up people": _made(["x", "g", "y"], once=["g"], order="y"),
    "made-up people whose rows have no order": _made(["x", "g"], once=[]),
}


def verbs_of(kind: str) -> Mapping[str, Ask]:
    """Return everything that may be asked of a table whose units are of this kind."""
    return {**QUESTIONS, **({} if kind == "row" else RELATIONS | LINKED), **VERBS, **MODELS}


STYLES: tuple[Style, ...] = ("declared", "bounded", "undeclared")


def in_turn(kinds: Sequence[str], verbs: Mapping[str, Ask] | None = None) -> Iterator[tuple[str, Few]]:
    """Yield every verb on every kind of unit; with a filter or without, and what is known beforehand, in turn."""
    for first, kind in enumerate(kinds):
        for place, name in enumerate(verbs_of(kind)):
            if verbs is None or name in verbs:
                turn = first + place
                yield name, Few(kind, 0, filtered=turn % 2 == 1, style=STYLES[turn // 2 % len(STYLES)])


# ---- what is seen of it ----------------------------------------------------------------------------------------------

_NUMBER_OR_HASH = re.compile(r"[-+−]?\d[\d,.]*(?:e[-+]?\d+)?(?![\da-f])|\binf\b|\bnan\b|\b[0-9a-f]{12,}\b")


def in_words(text: str) -> str:
    """Return a text without its digits, hashes and padding: what all three tables must have in common.

    An interval is written as ±, or as both of its ends where they are not equally far.
    """
    masked = " ".join(re.sub("[─-]{2,}", "--", re.sub("#+", "#", _NUMBER_OR_HASH.sub("#", text))).split())
    return masked.replace("# … #", "#")


RESULTS = {"Answer", "str", "tuple", "Summary", "KnownFacts", "QuestionAudit", "Score", "Tuned", "Votes"}
RESULTS |= {"AdditiveClassifier", "AdditiveRegressor", "KMeans", "LinearRegression", "PCA"}


def seen_of(name: str, few: Few, hold: Hold = as_they_are) -> list[str]:
    """Return all that is seen of one verb on one table, in words: outcome, columns, text, warnings, log, ledger."""
    with all_frozen(), _heard() as heard:
        table = few.table(hold)
        outcome = _outcome(lambda: verbs_of(few.kind)[name](Asked(table, few, hold)))
        for entry in table.session.ledger.entries():
            heard.append(f"{entry.kind} {sorted(entry.record)} {json.dumps(entry.record.get('events'), default=str)}")
    return [in_words(each) for each in (*outcome, *heard)]


def told_apart(name: str, few: Few, hold: Hold = as_they_are) -> list[str]:
    """Return what of a verb tells 0, 1 and 2 units apart; of a verb without any result, that it has none."""
    seen = [seen_of(name, replace(few, people=people), hold) for people in (0, 1, 2)]
    found = []
    for people, (one, other) in enumerate(pairwise(seen)):
        changed = next((two for first, two in zip_longest(one, other, fillvalue="") if first != two), None)
        if changed is not None:
            found.append(f"{name}, {few}: from {people} to {people + 1} units: {changed[:200]}")
    # where less is known, more is refused, and so is a question whose groups are all too small
    fine = RESULTS if few.style == "declared" and "found" not in name else {*RESULTS, "QueryRefused"}
    if not found and seen[0][0] not in fine:
        found.append(f"{name}, {few}: {seen[0][:2]}")
    return found


def _outcome(ask: Callable[[], Any]) -> list[str]:
    try:
        found = ask()
    except TacitError as problem:
        return [type(problem).__name__, str(problem)]
    except Exception as problem:
        return [type(problem).__name__]  # words of a library's own, which no verb may show
    seen = [type(found).__name__, public_text(found) if hasattr(found, "fit") else str(found)]
    if isinstance(found, Answer):
        for each in found.parts.values() or [found]:
            seen += [str(each.to_arrow().schema), each.to_json(), each.to_csv(), str(each.details())]
            seen.append(f"{len(each.to_dicts())} rows".replace("0", "no"))
    return seen


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Yield whatever is logged and warned of while open."""
    ear = Ear()
    ear.addFilter(lambda record: not record.name.startswith("py4j"))  # Spark's own wire, which names each object anew
    root = logging.getLogger()
    level = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield ear.heard
            ear.heard += [f"{each.category.__name__}: {each.message}" for each in warned]
    finally:
        root.removeHandler(ear)
        root.setLevel(level)


# ---- rows as a model codes them --------------------------------------------------------------------------------------


def coded_counts(few: Few) -> tuple[list[int], list[int]]:
    """Return the exact counts of a model's cells: of the whole table, and of its parts put together."""
    whole, there = (protected_here(rows, unit=few.unit, columns=COLUMNS) for rows in (few.rows(), stand_in(few.rows())))
    plan = AdditiveRegressor(epsilon=1).plan(whole.where(f"x = {WANTED}"), target="y", features=["x", "g"]).coded
    parts = coded_in_parts(there.session.engine.source, plan, parts=8, places=3)
    with whole.session.engine.coded(plan) as rows:
        return rows.counts().values.tolist(), parts.counts().values.tolist()
