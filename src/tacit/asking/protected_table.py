"""`Table`: a protected table that is filtered, grouped and asked, in Python or in SQL.

It builds questions. `question.py` plans and answers them; the language itself is in the room `query`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Self, cast

from tacit import query as language
from tacit.asking.describing import (
    asked_of_public_facts,
    described_as_asked,
)
from tacit.asking.dummy_rows import DummyRows, with_learned
from tacit.asking.learned import KnownFacts
from tacit.asking.listed_keys import listed_question
from tacit.asking.question import Question, question_of, workload_question
from tacit.asking.request import what_is_left
from tacit.asking.running import RunningRows, running_rows
from tacit.asking.session import ALONE, Beside, Session
from tacit.asking.synthesize import Synthesis
from tacit.asking.united_question import several_parts
from tacit.asking.verbs import Verbs
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.hold import holding
from tacit.ledger import Left
from tacit.numbers import Number, whole
from tacit.plan import make_spend
from tacit.query import AggregateSpec, Frame, Query, Relation, SomeUnits, TableRows
from tacit.tables import PublicTable


@dataclass(frozen=True, repr=False)
class Table(Verbs[Question]):
    """A protected table, perhaps filtered and grouped: ask it for a count, a sum, a mean, or several at once.

    Every step returns a new one; no row is read until `.answer()`.
    """

    session: Session
    frame: Frame

    def _with(self, frame: Frame) -> Self:
        return replace(self, frame=frame)

    def _question(self, query: Query) -> Question:
        return question_of(self.session, query)

    def workload(self, **questions: Question) -> Question:
        """Return several questions as one, by name: workload(by_ward=visits.group_by("ward").count(), in_all=...).

        They are planned and charged together, and answer["by_ward"] is the answer of one. `weights` and `error` are by
        these names. Counts of the same rows that share cells are fitted together.
        """
        return workload_question(questions)

    def join(self, other: "Table | PublicTable", *, on: Any, how: str = "inner", most: int = 1) -> "Table":
        """Return this table's rows beside the rows of another that match them.

        Another protected table is about the same people (`same_people_as`) and joined on the unit; a public one
        (`tacit.public`) on any column, with at most `most` matches for a row. `on` names the columns that are equal, in
        a dict where their names differ; other columns that both have are then called "visits.day" and "wards.day".
        `how` is "inner", "left" (rows without a match stay), "semi" or "anti" (only rows with, or without, a match).
        """
        if isinstance(other, PublicTable):
            right, beside = language.public_side(other), self.session.beside.and_also(other)
        elif isinstance(other, Table):
            right = language.frame_side(other.frame, _relation(other.session))
            beside = self.session.beside.and_also(other.session)
        else:
            raise InvalidParameter(
                f"a {type(other).__name__} cannot be joined\nhint: open it first: tacit.public(frame) if no person is"
                " in it, tacit.table(frame, same_people_as=...) if it is about the same people"
            )
        left = language.frame_side(self.frame, _relation(self.session))
        relation, frame = language.joined_frame(left, right, self.frame.tables or {}, on, how, most)
        return Table(self.session.about(relation, beside.and_also(self.session)), frame)

    def per_unit(self, **aggregates: AggregateSpec) -> "Table":
        """Return a table with one row for each unit, or for each unit and group, aggregated only from its own rows.

        visits.per_unit(n=tacit.count(), longest=tacit.max("days")).mean("n") is how often people come: each counts
        once. Aggregates are count, count_distinct, sum, mean, min and max, exact and secret until they are asked about.
        """
        relation, frame = language.per_unit(self.frame, _relation(self.session), aggregates)
        return Table(self.session.about(relation), frame)

    def running(
        self, column: str, *, until: str | date, since: str | date | None = None, zone: str | None = None
    ) -> RunningRows:
        """Return the days of this table, for a count that runs on: visits.running("day", until="2028-12-31").

        Then ask `.count_units()`, or `.count()`. Days begin with `since`, or with the day of the start.
        Times need a `zone`. The whole is charged once, by `.start(epsilon=1)`; each `.step()` is free.
        """
        return running_rows(self, column, until=until, since=since, zone=zone)

    def sql(
        self,
        text: str,
        *,
        between: Mapping[str, Any] | None = None,
        per_unit: Mapping[str, int] | None = None,
        dialect: str | None = None,
        tables: "Sequence[Table | PublicTable]" = (),
        most: Mapping[str, int] | None = None,
    ) -> Question:
        """Return the question a SELECT asks; FROM names this table, and JOIN those in `tables`. DESCRIBE is free.

        `between` gives public ranges of columns, or of an aggregate's argument, by its name in the SELECT: sql("SELECT
        SUM(price * pieces) AS spent FROM orders", between={"spent": (0, 1000)}), or {"price": (0, 100), "pieces": (0,
        10)}. SELECTs with semicolons between them are a workload, whose answers are answer["1"], answer["2"] ...
        `per_unit` gives the bound of a COUNT(DISTINCT x), by its name. `dialect` names the engine of the SQL,
        such as "postgres" or "bigquery"; functions mean what the catalogue says. `most` gives the rows of a public
        table that one row may match, by the table's name.
        """
        if (asked := asked_of_public_facts(text)) is not None:
            declared = [self.frame.declaration, *(each.frame.declaration for each in tables if isinstance(each, Table))]
            publics = {each.name: each for each in tables if isinstance(each, PublicTable)}
            facts = described_as_asked(asked, {each.name: each for each in declared}, publics)
            return cast(Question, facts)  # it is its own plan and answer
        if not isinstance(_relation(self.session), TableRows | SomeUnits):
            raise QueryRefused(
                "sql asks stored tables, and this one is joined already\nhint: write the JOIN into the SELECT:"
                " visits.sql('SELECT ... FROM visits JOIN wards USING (ward)', tables=[wards])"
            )
        if self.frame != Frame(self.frame.declaration):
            raise QueryRefused("sql asks the whole table\nhint: put the filter and the groups into the SELECT")
        if not isinstance(tables, list | tuple):
            raise InvalidParameter("tables must be a list\nhint: tables=[patients, tacit.public(wards)]")
        known, beside = _named_tables((self, *tables), {} if most is None else most)
        ranges = {} if between is None else between
        bounds = {} if per_unit is None else per_unit

        def session_of(query: Query, *, alone: bool = False) -> tuple[Session, Query]:
            bounded = language.with_bounds(query, bounds if alone else _given_about(bounds, query))
            session = beside.sessions[language.tables_of(query.relation)[0] if query.relation else query.table]
            session = session.about(query.relation, beside)
            own = ranges if alone else _given_about(ranges, query, session)
            return session, language.with_ranges(bounded, own, session.declaration)

        selects = language.selects_of(text, dialect)

        def question(select: str) -> Question:
            is_only = len(selects) == 1
            read = language.parse_question(select, self.frame.declaration, dialect if is_only else None, known)
            if isinstance(read, Query):
                session, query = session_of(read, alone=is_only)
                listed = language.listed_keys(query, session.declaration)
                return Question(session, query) if listed is None else listed_question(session, query, listed)
            alone = is_only and len(read.branches) == 1 and not read.branches[0].asides
            return Question(*several_parts(read, partial(session_of, alone=alone)))

        if len(selects) == 1:
            return question(text)
        return workload_question({str(number): question(each) for number, each in enumerate(selects, 1)})

    def learn(
        self,
        epsilon: Number,
        *,
        columns: Sequence[str] = (),
        by: Sequence[str] = (),
        keys: Any = None,
        again: bool = False,
        analyst: str | None = None,
    ) -> KnownFacts:
        """Learn ahead of time the facts for questions about these columns, with this grouping, for at most `epsilon`.

        Return the learned facts, which print as text. Known facts are not paid for, unless `again`.
        """
        for word, given in (("columns", columns), ("by", by)):
            if not isinstance(given, list | tuple):
                raise InvalidParameter(f"{word} must be a list of names\nhint: {word}=['ward']")
        grouped = self.group_by(*by, keys=keys) if by else self
        asked = {f"of {column}": language.mean(column) for column in columns} | {"rows": language.count()}
        query = grouped.frame.query(asked)
        spend = make_spend(epsilon, None, None, self.session.registered.budget)
        with holding(self.session.hold):
            return self.session.learn(query, spend=spend, again=again, analyst=analyst)

    @property
    def synthesize(self) -> Synthesis:
        """Make rows that resemble the table's, charged once: visits.synthesize(epsilon=1); .plan(epsilon=1) is free."""
        return Synthesis(self)

    def dummy(self, rows: int = 1000) -> DummyRows:
        """Return made-up rows with the table's columns, from public facts only: free, to try a script on.

        Types, keys and ranges are as declared, or as learned before: what was learned is public. Columns are
        independent. `.to_pandas()` gives a frame, `.table()` a table that is declared in the same way.
        """
        return DummyRows.of(with_learned(self.session), rows)

    @property
    def facts(self) -> KnownFacts:
        """The known facts of this table, with their date and cost: free for every question; printed as text."""
        return self.session.facts()

    @property
    def left(self) -> Left:
        """The amount that may still be spent; it prints as text, and has the amounts as exact numbers."""
        return what_is_left(self.session, None)

    def __repr__(self) -> str:
        declared = self.frame.declaration
        budget = self.session.registered.budget_words
        return printable(f"<protected table '{declared.name}', unit {declared.unit}, budget {budget}>")

    def _repr_html_(self) -> str:
        """Return the public facts and the amount that is left, as a notebook shows a table."""
        public = self.describe()
        return replace(public, title=f"{public.title}\nLeft: {self.left}")._repr_html_()


def travelled_question(
    table: Table, record: object, tables: Callable[[str], Table], publics: Callable[[str], PublicTable]
) -> Question:
    """Return a question about joins or rows by unit that came as JSON, from a table on; others are given."""
    found: dict[str, PublicTable] = {}

    def side(name: str) -> language.Side:
        found[name] = publics(name)
        return language.public_side(found[name])

    query, relation = language.question_about(record, lambda name: tables(name).frame.declaration, side)
    names = language.tables_of(relation)
    if names[0] != table.frame.declaration.name:
        raise QueryRefused(f"this question is about '{names[0]}' first\nhint: send it to that table")
    beside = table.session.beside.and_also(table.session)
    for name in dict.fromkeys(names):
        beside = beside.and_also(tables(name).session)
    for public in found.values():
        beside = beside.and_also(public)
    return question_of(table.session.about(relation, beside), query)


def _relation(session: Session) -> Relation:
    return session.relation or TableRows(session.declaration.name)


def _named_tables(
    tables: "Sequence[Table | PublicTable]", most: Mapping[str, int]
) -> tuple[list[language.NamedRows], Beside]:
    """Return tables as the names that a SELECT may use, and as the tables that a session may be joined with."""
    if not isinstance(most, Mapping):
        raise InvalidParameter("most must be a dict from a public table's name to a number\nhint: most={'wards': 2}")
    known: list[language.NamedRows] = []
    beside = ALONE
    for table in tables:
        if isinstance(table, PublicTable):
            side, more = language.public_side(table), beside.and_also(table)
        elif isinstance(table, Table) and table.frame == Frame(table.frame.declaration):
            side = language.Side(_relation(table.session), table.frame.declaration)
            more = beside.and_also(table.session)
        else:
            raise InvalidParameter("tables must be whole tables\nhint: tables=[patients, tacit.public(wards)]")
        if any(side.name.lower() == each.name.lower() for each in known):
            raise InvalidParameter(f"two tables are named '{side.name}'\nhint: open one of them with another name=")
        known.append(language.NamedRows(side.name, side, whole(most.get(side.name, 1), name="most")))
        beside = more
    unknown = [name for name in most if name not in {each.name for each in known}]
    if unknown:
        raise InvalidParameter(f"most names '{unknown[0]}', but no table here has that name\nhint: most={{'wards': 2}}")
    return known, beside


def _given_about(given: Mapping[str, Any], query: Query, session: Session | None = None) -> dict[str, Any]:
    """Return what is given for the outputs, or the columns, of one SELECT of several."""
    names = {output.name for output in query.outputs} | set(session.declaration.columns if session else ())
    return {name: value for name, value in given.items() if name in names}
