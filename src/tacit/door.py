"""`tacit.table(...)`: a protected table to ask questions of, in Python or SQL.

It ties together what is declared, the two doors, and a session. Every question can be planned for free; answering it
goes through the session and its ledger, and there is no other way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Literal

from tacit.engine.engine import Engine
from tacit.errors import InvalidParameter, QueryRefused
from tacit.ledger.ledger import Ledger
from tacit.ledger.opening import open_ledger
from tacit.noise.bits import fresh_bytes
from tacit.noise.mechanism import confidence_meaning
from tacit.plan.plan import Plan, Spend
from tacit.plan.planner import make_plan
from tacit.plan.shares import read_weights
from tacit.plan.spend import make_spend
from tacit.privacy.loss import Loss
from tacit.privacy.number import Number, show, whole
from tacit.query import frame as words
from tacit.query.after import apply_after
from tacit.query.bins import binned, ranked
from tacit.query.frame import Asked, Frame
from tacit.query.kind import kind_of_column
from tacit.query.literal import key_value
from tacit.query.nodes import After, Query
from tacit.query.sql import parse_query
from tacit.query.suggest import did_you_mean
from tacit.release.answer import Answer, Facts, loss_record
from tacit.release.columns import noisy_columns
from tacit.release.consistency import CONSISTENT, made_consistent
from tacit.release.explain import explain
from tacit.release.rows import Rows
from tacit.release.target import Solved, Wanted, group_rows, solve_epsilon
from tacit.session import Answered, Session
from tacit.tables.catalog import FILE_NAME, CatalogFile, read_catalog
from tacit.tables.schema import (
    ROW,
    ColumnFacts,
    Declaration,
    RowUnit,
    read_bound,
    read_columns,
)
from tacit.tables.source import Source, open_source

NEIGHBOURS = ("add-remove", "replace")
NAME_LENGTH_MAX = 100
MARK_BYTES = 8
WHOLE = ("count", "count_units", "count_distinct", "top")


def table(
    source: Any,
    *,
    unit: str | RowUnit,
    budget: Loss | None = None,
    name: str | None = None,
    ledger: Any = None,
    neighbours: Literal["add-remove", "replace"] = "add-remove",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    rows_per_unit: int | None = None,
    groups_per_unit: int | None = None,
    population: int | None = None,
    version: int = 1,
    insist: bool = False,
    same_people_as: str | None = None,
) -> "Table":
    """Return a protected table to ask questions of.

    `source` is a path or glob of Parquet or CSV files, a pandas, Polars or Arrow frame, (a DuckDB connection, a
    table's name), or an Ibis table. `unit` is the column that says whose row it is, or `tacit.ROW`. `budget` is what
    may ever be learned, e.g. tacit.epsilon(3, delta=1e-6); a table that is new to the ledger needs one. `columns`
    declares what is public: {"age": {"between": (0, 120)}, "ward": {"keys": ["A", "B"]}, "id": {"type": "text"}}.
    Nothing is read from the rows here.
    """
    facts = read_columns(columns)
    opened = open_source(source, facts)
    declaration = Declaration(
        name=_table_name(opened.stem if name is None else name),
        unit=_unit(unit, opened),
        columns={column: _with_checked_keys(column, known) for column, known in opened.columns.items()},
        neighbours=_neighbours(neighbours),
        rows_per_unit=read_bound(rows_per_unit, "rows_per_unit"),
        groups_per_unit=read_bound(groups_per_unit, "groups_per_unit"),
        population=read_bound(population, "population"),
        version=whole(version, name="version"),
    )
    book = ledger if isinstance(ledger, Ledger) else open_ledger(_place(ledger))
    registered = book.register(
        name=declaration.name,
        declaration=declaration.public_record(),
        source=opened.identity,
        budget=budget,
        population=declaration.population,
        insist=insist,
        same_people_as=same_people_as,
    )
    mark = "" if opened.identity else fresh_bytes(MARK_BYTES).hex()
    return Table(Session(declaration, registered, Engine(opened), book, mark), Frame(declaration))


def catalog(path: str = FILE_NAME) -> "Catalog":
    """Return the tables a curator declared in a tacit.toml, each opened when it is first used.

    `tacit.catalog("tacit.toml")["visits"].count().answer(epsilon=1)`
    """
    return Catalog(read_catalog(path))


class Catalog(Mapping[str, "Table"]):
    """The tables of a tacit.toml, by name."""

    def __init__(self, file: CatalogFile) -> None:
        self.file = file
        self._opened: dict[str, Table] = {}

    def __getitem__(self, name: str) -> "Table":
        if name not in self._opened:
            entry = self.file.tables.get(name)
            if entry is None:
                raise QueryRefused(f"{self.file.path} has no table '{name}'{did_you_mean(name, self.file.tables)}")
            self._opened[name] = table(entry.source, name=name, ledger=self.file.ledger, **entry.words)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.tables)

    def __len__(self) -> int:
        return len(self.file.tables)

    def __repr__(self) -> str:
        return f"<catalog {self.file.path}: {', '.join(self)}>"


@dataclass(frozen=True, repr=False)
class Table:
    """A protected table, perhaps filtered and grouped: ask it for a count, a sum, a mean, or several at once.

    Every step returns a new one; nothing is read until `.answer()`.
    """

    session: Session
    frame: Frame

    def where(self, condition: str) -> "Table":
        """Return the table's rows where a condition holds, e.g. "age >= 18 AND ward = 'A'"."""
        return Table(self.session, words.add_where(self.frame, condition))

    def derive(self, **expressions: str) -> "Table":
        """Return the table with new columns made from its own, e.g. derive(total="price * quantity")."""
        return Table(self.session, words.add_derived(self.frame, expressions))

    def group_by(self, *names: str, keys: Any = None) -> "Table":
        """Return the table grouped by columns; `keys` lists the public groups, as values, tuples or a frame."""
        return Table(self.session, words.add_keys(self.frame, names, keys))

    def agg(self, **aggregates: Asked) -> "Question":
        """Return a question for several aggregates in one pass, e.g. agg(n=tacit.count(), stay=tacit.mean("days"))."""
        return Question(self.session, words.make_query(self.frame, aggregates))

    def count(self, column: str | None = None) -> "Question":
        """Return the question how many rows; with a column, how many have a value there."""
        return self._one(words.count(column))

    def count_units(self) -> "Question":
        """Return the question how many units."""
        return self._one(words.count_units())

    def sum(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for the sum of a column; `between` is its public range where none is declared."""
        return self._one(words.sum(column, between=between, step=step))

    def mean(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for the mean of a column; `between` is its public range where none is declared."""
        return self._one(words.mean(column, between=between, step=step))

    def variance(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for the variance of a column."""
        return self._one(words.variance(column, between=between, step=step))

    def std(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for the standard deviation of a column."""
        return self._one(words.std(column, between=between, step=step))

    def median(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for the median of a column; its interval is paid for in the same call."""
        return self._one(words.median(column, between=between, step=step))

    def quantile(self, column: str, fractions: Any, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for one quantile, named as the column, or for a list of them, named e.g. days_p90."""
        if not isinstance(fractions, list | tuple):
            return self._one(words.quantile(column, fractions, between=between, step=step))
        asked = {
            words.quantile_name(column, fraction): words.quantile(column, fraction, between=between, step=step)
            for fraction in fractions
        }
        return self.agg(**asked)

    def min(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for about the least value of a column: a low quantile."""
        return self._one(words.min(column, between=between, step=step))

    def max(self, column: str, *, between: Any = None, step: Number | None = None) -> "Question":
        """Return the question for about the greatest value of a column: a high quantile."""
        return self._one(words.max(column, between=between, step=step))

    def covariance(self, column: str, other: str, *, between: Any = None, other_between: Any = None) -> "Question":
        """Return the question for the covariance of two columns."""
        asked = words.covariance(column, other, between=between, other_between=other_between)
        return self.agg(covariance=asked)

    def correlation(self, column: str, other: str, *, between: Any = None, other_between: Any = None) -> "Question":
        """Return the question for the correlation of two columns."""
        asked = words.correlation(column, other, between=between, other_between=other_between)
        return self.agg(correlation=asked)

    def count_distinct(self, column: str, *, per_unit: int | None = None) -> "Question":
        """Return the question how many different values a column has, of each unit at most `per_unit`."""
        return self._one(words.count_distinct(column, per_unit=per_unit))

    def histogram(self, column: str, bins: Any, *, between: Any = None) -> "Question":
        """Return the question how many rows fall in each bin: so many even ones over the range, or between edges.

        A bin is named by its lower end and reaches up to the next; what lies outside is in the first or the last.
        """
        return Question(self.session, binned(self.frame, column, bins, between))

    def top(self, column: str, k: int, *, keys: Any = None) -> "Question":
        """Return the question for the k most common values of a column, by units.

        Of public keys only their order is chosen, which costs far less than counts; others are shown with their counts.
        """
        return Question(self.session, ranked(self.frame, column, k, keys))

    def mode(self, column: str, *, keys: Any = None) -> "Question":
        """Return the question for the most common value of a column."""
        return self.top(column, 1, keys=keys)

    def sql(
        self, text: str, *, between: Mapping[str, Any] | None = None, per_unit: Mapping[str, int] | None = None
    ) -> "Question":
        """Return the question a SELECT asks; FROM names this table.

        `between` gives the public range of what an aggregate adds up, by its name in the SELECT, where no column has
        one: sql("SELECT SUM(price * pieces) AS spent FROM orders", between={"spent": (0, 1000)}). `per_unit` gives the
        bound of a COUNT(DISTINCT x), by its name.
        """
        if self.frame != Frame(self.frame.declaration):
            raise QueryRefused("sql asks the whole table\nhint: put the filter and the groups into the SELECT")
        query = words.with_bounds(parse_query(text, self.frame.declaration), per_unit or {})
        return Question(self.session, words.with_ranges(query, between or {}))

    @property
    def left(self) -> str:
        """How much may still be asked, in words."""
        return str(_left(self.session, None)["text"])

    def _one(self, asked: Asked) -> "Question":
        return Question(self.session, words.make_query(self.frame, [asked]))

    def __repr__(self) -> str:
        declared = self.frame.declaration
        return f"<protected table '{declared.name}', unit {declared.unit}, budget {self.session.registered.budget}>"


@dataclass(frozen=True)
class PlanReport:
    """A plan that prints as words and numbers; `plan` has it as data."""

    plan: Plan
    confidence: Any
    solved: Solved | None = None
    path: str | None = None  # how the engine would run it now

    @property
    def loss(self) -> Loss:
        """What the call would cost."""
        return self.plan.loss

    def __str__(self) -> str:
        told = explain(self.plan, self.confidence, path=self.path)
        return told if self.solved is None else f"{told}\nε = {show(self.solved.epsilon)} is {self.solved.words}."

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Question:
    """A checked question: `plan` it for free, `answer` it for what it costs."""

    session: Session
    query: Query

    def plan(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        error: Wanted | None = None,
        for_groups_of: int | None = None,
        weights: Mapping[str, Number] | None = None,
        noise: str | None = None,
        confidence: Number = 0.95,
    ) -> PlanReport:
        """Return what answering would do, cost and give: free, and no row is read.

        Give `epsilon`, for the whole call, or the `error` to stay within, from which it is solved: a percent ("2%"), a
        number, or a dict of them by aggregate. `weights` says which aggregates' errors matter more.
        """
        level = confidence_meaning(confidence)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level)
        exact = solved.epsilon if solved else epsilon
        plan = self._plan_at(spend_at(exact))
        return PlanReport(plan, level, solved, self.session.engine.path_of(plan))

    def answer(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        error: Wanted | None = None,
        for_groups_of: int | None = None,
        weights: Mapping[str, Number] | None = None,
        consistent: bool = False,
        request_id: str | None = None,
        analyst: str | None = None,
        noise: str | None = None,
        confidence: Number = 0.95,
    ) -> Answer:
        """Return the private answer, after charging for it: what `plan` with the same words shows.

        The same question asked again is answered from the record, with the same numbers, for free. `consistent` makes
        the numbers possible ones, at no cost: counts not negative, quantiles rising, values inside their ranges.
        """
        level = confidence_meaning(confidence)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level)
        spend = spend_at(solved.epsilon if solved else epsilon)
        answered = self.session.answer(self.query, spend=spend, request_id=request_id, analyst=analyst)
        notes = () if solved is None else (f"ε = {show(solved.epsilon)} is {solved.words}.",)
        return _answer(self.session, self.query, answered, level, analyst, consistent=consistent, notes=notes)

    def _spend_at(
        self,
        epsilon: Number | None,
        *,
        delta: Number | None,
        noise: str | None,
        level: Fraction,
        weights: Mapping[str, Number] | None,
    ) -> Spend:
        if epsilon is None:
            raise InvalidParameter("say what to spend or how exact to be\nhint: epsilon=1, or error='2%'")
        read = read_weights(weights, [output.name for output in self.query.outputs])
        budget = self.session.registered.budget
        return make_spend(epsilon, delta, noise, budget, confidence=level, weights=read)

    def _plan_at(self, spend: Spend) -> Plan:
        return make_plan(self.query, self.session.declaration, spend)

    def _solve(
        self,
        epsilon: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        spend_at: Callable[[Number], Spend],
        level: Fraction,
    ) -> Solved | None:
        if error is None:
            return None
        if epsilon is not None:
            raise InvalidParameter("give epsilon or error, not both: either one decides the other")
        population = self.session.declaration.population
        return solve_epsilon(
            error,
            lambda tried: self._plan_at(spend_at(tried)),
            level,
            lambda plan: group_rows(plan, population, for_groups_of),
        )

    def __repr__(self) -> str:
        asked = ", ".join(output.name for output in self.query.outputs)
        return (
            f"<question about '{self.query.table}': {asked}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>"
        )


def _answer(
    session: Session,
    query: Query,
    answered: Answered,
    confidence: Fraction,
    analyst: str | None,
    *,
    consistent: bool,
    notes: tuple[str, ...],
) -> Answer:
    """Make an answer of noisy integers: post-processing only."""
    plan, noisy = answered.plan, answered.noisy
    columns = noisy_columns(plan, noisy, confidence)
    columns = made_consistent(plan, columns) if consistent else columns
    types: dict[str, str] = {key.name: key.type for key in plan.keys}
    named: dict[str, Sequence[Any]] = {name: [key[at] for key in noisy.keys] for at, name in enumerate(types)}
    for output, column in zip(plan.outputs, columns, strict=True):
        whole_steps = output.kind in ("sum", "quantile") and plan.measured[output.column or 0].step.denominator == 1
        kind = "int" if output.kind in WHOLE or whole_steps else "float"
        for end, values in (("", column.values), ("_low", column.low), ("_high", column.high)):
            types[column.name + end] = kind
            named[column.name + end] = values
    rows = Rows(named)
    receipt = answered.receipt
    facts = Facts(
        loss=loss_record(plan.loss),
        left=_left(session, analyst),
        unit="each row" if plan.unit is None else f"all rows of one {plan.unit}",
        neighbours="add or remove one" if plan.neighbours == "add-remove" else "replace one",
        confidence=confidence,
        durable=receipt.durable,
        free=answered.free,
        receipt={"ledger": receipt.ledger, "entry": receipt.number, "hash": receipt.hash, "time": receipt.time},
        notes=(*_notes(plan), *notes, *((CONSISTENT,) if consistent else ())),
    )
    shown = rows if query.after == After() else apply_after(rows, query.after)
    kinds = {output.name: output.kind for output in plan.outputs if output.kind != "top"}
    certify = partial(session.ledger.certificate, receipt.number)
    return Answer(shown, plan.columns, types, tuple(kinds), facts, kinds, certify)


def _notes(plan: Plan) -> tuple[str, ...]:
    if plan.threshold is None:
        return ()
    return (f"Groups are shown where the noisy count of units is at least {plan.threshold.least}; others may exist.",)


def _place(ledger: object) -> str | PathLike[str] | None:
    if ledger is None or isinstance(ledger, str | PathLike):
        return ledger
    raise InvalidParameter(
        f"ledger must be a path, a postgresql:// address or ':memory:', not {type(ledger).__name__}"
        "\nhint: leave it out for the one in your home"
    )


def _table_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_LENGTH_MAX:
        raise InvalidParameter(f"name must be text of 1 to {NAME_LENGTH_MAX} characters\nhint: name='visits'")
    return name


def _unit(unit: object, opened: Source) -> str | RowUnit:
    if unit is ROW:
        return ROW
    if not isinstance(unit, str):
        raise InvalidParameter(
            "unit must name the column that says whose row it is"
            "\nhint: unit='person_id', or unit=tacit.ROW if each row is its own person"
        )
    if unit not in opened.columns:
        raise QueryRefused(f"the table has no column '{unit}' for the unit{did_you_mean(unit, opened.columns)}")
    return unit


def _neighbours(neighbours: str) -> Literal["add-remove", "replace"]:
    if neighbours == "add-remove":
        return "add-remove"
    if neighbours == "replace":
        return "replace"
    raise InvalidParameter("neighbours must be 'add-remove' or 'replace'")


def _with_checked_keys(column: str, facts: ColumnFacts) -> ColumnFacts:
    """Read declared keys as the column's type does, so that they meet the rows' own values."""
    if facts.keys is None:
        return facts
    kind = kind_of_column(column, facts)
    keys = tuple(key_value(key, kind, column=column) for key in facts.keys)
    if len(set(keys)) != len(keys):
        raise InvalidParameter(f"the keys of '{column}' name one key twice\nhint: give each key once")
    return replace(facts, keys=keys)


def _left(session: Session, analyst: str | None) -> dict[str, Any]:
    """Say what is left: composition is not a plain sum, so it is the largest epsilon one more question could have."""
    left = session.ledger.left(session.registered, analyst)
    text = f"up to ε = {show(left.epsilon, up=False)} for one more question" if left.epsilon else "nothing"
    if left.questions:
        text += f", or about {left.questions:,} more like the last"
    return {"epsilon": float(left.epsilon), "questions": left.questions, "text": text}
