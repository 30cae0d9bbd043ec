"""`Table`: a protected table that is filtered, grouped and asked, in Python or in SQL.

It builds questions. `question.py` plans and answers them; the language itself is in the room `query`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit import query as language
from tacit.door.question import Question, what_is_left
from tacit.errors import QueryRefused, printable
from tacit.learned import KnownFacts
from tacit.ledger import Left
from tacit.plan import make_spend
from tacit.privacy import Number
from tacit.query import AggregateSpec, Frame, QuantileOf, binned, parse_query, ranked
from tacit.session import Session


@dataclass(frozen=True, repr=False)
class Table:
    """A protected table, perhaps filtered and grouped: ask it for a count, a sum, a mean, or several at once.

    Every step returns a new one; nothing is read until `.answer()`.
    """

    session: Session
    frame: Frame

    def where(self, condition: str) -> "Table":
        """Return the table's rows where a condition holds, e.g. "age >= 18 AND ward = 'A'"."""
        return Table(self.session, language.add_where(self.frame, condition))

    def derive(self, **expressions: str) -> "Table":
        """Return the table with new columns made from its own, e.g. derive(total="price * quantity")."""
        return Table(self.session, language.add_derived(self.frame, expressions))

    def group_by(self, *names: str, keys: Any = None) -> "Table":
        """Return the table grouped by columns; `keys` lists the public groups, as values, tuples or a frame."""
        return Table(self.session, language.add_keys(self.frame, names, keys))

    def agg(self, **aggregates: AggregateSpec) -> Question:
        """Return a question for several aggregates in one pass, e.g. agg(n=tacit.count(), stay=tacit.mean("days"))."""
        return Question(self.session, language.make_query(self.frame, aggregates))

    def count(self, column: str | None = None) -> Question:
        """Return the question how many rows; with a column, how many have a value there."""
        return self._one(language.count(column))

    def count_units(self) -> Question:
        """Return the question how many units."""
        return self._one(language.count_units())

    def sum(self, column: str, *, between: Any = None, step: Number | None = None) -> Question:
        """Return the question for the sum of a column; `between` is its public range where none is declared."""
        return self._one(language.sum(column, between=between, step=step))

    def mean(self, column: str, *, between: Any = None, step: Number | None = None) -> Question:
        """Return the question for the mean of a column; `between` is its public range where none is declared."""
        return self._one(language.mean(column, between=between, step=step))

    def variance(self, column: str, *, between: Any = None, step: Number | None = None) -> Question:
        """Return the question for the variance of a column."""
        return self._one(language.variance(column, between=between, step=step))

    def std(self, column: str, *, between: Any = None, step: Number | None = None) -> Question:
        """Return the question for the standard deviation of a column."""
        return self._one(language.std(column, between=between, step=step))

    def median(
        self, column: str, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Question:
        """Return the question for the median of a column, of people or of rows; its interval is paid for with it."""
        return self._one(language.median(column, between=between, step=step, of=of))

    def quantile(
        self,
        column: str,
        fractions: Any,
        *,
        between: Any = None,
        step: Number | None = None,
        of: QuantileOf | None = None,
    ) -> Question:
        """Return the question for one quantile, named as the column, or for a list of them, named e.g. days_p90."""
        ask = partial(language.quantile, column, between=between, step=step, of=of)
        if not isinstance(fractions, list | tuple):
            return self._one(ask(fractions))
        return self.agg(**{language.quantile_name(column, fraction): ask(fraction) for fraction in fractions})

    def min(
        self, column: str, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Question:
        """Return the question for about the least value of a column: a low quantile."""
        return self._one(language.min(column, between=between, step=step, of=of))

    def max(
        self, column: str, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Question:
        """Return the question for about the greatest value of a column: a high quantile."""
        return self._one(language.max(column, between=between, step=step, of=of))

    def covariance(self, column: str, other: str, *, between: Any = None, other_between: Any = None) -> Question:
        """Return the question for the covariance of two columns."""
        asked = language.covariance(column, other, between=between, other_between=other_between)
        return self.agg(covariance=asked)

    def correlation(self, column: str, other: str, *, between: Any = None, other_between: Any = None) -> Question:
        """Return the question for the correlation of two columns."""
        asked = language.correlation(column, other, between=between, other_between=other_between)
        return self.agg(correlation=asked)

    def count_distinct(self, column: str, *, per_unit: int | None = None) -> Question:
        """Return the question how many distinct values a column has; each unit counts for at most `per_unit` values."""
        return self._one(language.count_distinct(column, per_unit=per_unit))

    def histogram(self, column: str, bins: Any, *, between: Any = None) -> Question:
        """Return the question how many rows fall in each bin; `bins` is a number of equal bins, or a list of edges.

        A bin is named by its lower end and reaches up to the next. Values outside the edges count in the first or the
        last bin.
        """
        return Question(self.session, binned(self.frame, column, bins, between))

    def top(self, column: str, k: int, *, keys: Any = None) -> Question:
        """Return the question for the k most common values of a column: those that most units have.

        A unit counts once for each value it has, however many of its rows have it. Of public keys only their order is
        chosen, which costs far less than counts, and every value of a unit counts. Keys that are found are shown with
        their counts, and a unit counts for at most `groups_per_unit` of its values, picked at random.
        """
        return Question(self.session, ranked(self.frame, column, k, keys))

    def mode(self, column: str, *, keys: Any = None) -> Question:
        """Return the question for the mode of people: the value that most units have, as `top` counts them.

        It is not the mode of rows: a unit with a hundred rows of one value counts once for it. Where each row is its
        own unit, the two are the same.
        """
        return self.top(column, 1, keys=keys)

    def sql(
        self, text: str, *, between: Mapping[str, Any] | None = None, per_unit: Mapping[str, int] | None = None
    ) -> Question:
        """Return the question a SELECT asks; FROM names this table.

        `between` gives the public range of what an aggregate adds up, by its name in the SELECT, where no column has
        one: sql("SELECT SUM(price * pieces) AS spent FROM orders", between={"spent": (0, 1000)}). `per_unit` gives the
        bound of a COUNT(DISTINCT x), by its name.
        """
        if self.frame != Frame(self.frame.declaration):
            raise QueryRefused("sql asks the whole table\nhint: put the filter and the groups into the SELECT")
        query = language.with_bounds(parse_query(text, self.frame.declaration), {} if per_unit is None else per_unit)
        return Question(self.session, language.with_ranges(query, {} if between is None else between))

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
        """Learn ahead of time what questions about these columns, grouped so, will need, for at most `epsilon`.

        It returns what was learned, which prints. What is known already is not paid for, unless `again`.
        """
        grouped = self.group_by(*by, keys=keys) if by else self
        asked = {f"of {column}": language.mean(column) for column in columns} | {"rows": language.count()}
        query = language.make_query(grouped.frame, asked)
        spend = make_spend(epsilon, None, None, self.session.registered.budget)
        return self.session.learn(query, spend=spend, again=again, analyst=analyst)

    @property
    def facts(self) -> KnownFacts:
        """What is known of this table, since when and for how much: free for every question; it prints as text."""
        return self.session.facts()

    @property
    def left(self) -> Left:
        """How much may still be spent; it prints as text, and has the amounts as exact numbers."""
        return what_is_left(self.session, None)

    def _one(self, asked: AggregateSpec) -> Question:
        return Question(self.session, language.make_query(self.frame, [asked]))

    def __dir__(self) -> list[str]:  # what Tab offers; the session and the frame are the product's own
        return sorted(name for name in dir(type(self)) if not name.startswith("_"))

    def __repr__(self) -> str:
        declared = self.frame.declaration
        budget = self.session.registered.budget
        return printable(f"<protected table '{declared.name}', unit {declared.unit}, budget {budget}>")
