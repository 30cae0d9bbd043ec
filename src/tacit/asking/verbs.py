"""The verbs of a table (filter, derive, group, ask for an aggregate), each checked at once, and those of a question.

Tables that are open here and tables on a server (the room `remote`) have these verbs.

Before a question is paid, its plan gives the range of its errors, numbers that would be useless, and closer
questions.

All of it is planned from the question, public facts and facts that were paid for, without reading a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, Self, TypeVar, overload

from tacit import query as language
from tacit.answer import Answer, Summary
from tacit.asking.describing import Description, described, summary_asked
from tacit.asking.dummy_rows import DummyRows
from tacit.asking.learned import Learn
from tacit.asking.request import Request
from tacit.asking.request_parts import OnePart
from tacit.asking.session import Session
from tacit.errors import InvalidParameter, QueryRefused, TacitError, unknown_name
from tacit.forecast import PEOPLE, ROWS_MOST, Wanted, closer_words, expected_error, useless_line
from tacit.hold import Hold
from tacit.numbers import Number, confidence_meaning, decimal_meaning
from tacit.plan import CountRows, CountUnits, CountValues, Plan, Quantile, make_plan
from tacit.query import AggregateSpec, Col, Frame, PostProcessing, QuantileOf, Query
from tacit.tables import Declaration

Asked = TypeVar("Asked", bound="QuestionVerbs[Any]")

_ROWS = "rows are protected and not shown: ask for an aggregate, such as .mean('x'); .describe() shows the columns"
# Names that other libraries have, and the words for them here.
WORDS = {
    "groupby": "write group_by('ward')",
    "budget": "write .left for the budget that is left",
    "epsilon": "give the epsilon to the question: table.count().answer(epsilon=1)",
    "avg": "write mean('x')",
    "average": "write mean('x')",
    "var": "write variance('x')",
    "corr": "write correlation('x', 'y')",
    "cov": "write covariance('x', 'y')",
    "nunique": "write count_distinct('x')",
    "n_unique": "write count_distinct('x')",
    "value_counts": "write group_by('x').count()",
    "size": "write count()",
    "query": "write where('x > 1') to filter, or sql('SELECT ...') to ask",
    "merge": "write join(other, on='id')",
    "assign": "write derive(total='x + y')",
    "mutate": "write derive(total='x + y')",
    "with_columns": "write derive(total='x + y')",
    **dict.fromkeys(("aggregate", "summarise", "summarize"), "write agg(n=tacit.count(), stay=tacit.mean('days'))"),
    **dict.fromkeys(("n", "tally", "count_rows"), "write count()"),
    **dict.fromkeys(
        ("pivot", "pivot_table", "crosstab"),
        "write group_by('x', 'y').count(), and pivot the answer: answer.to_pandas().pivot(index='x', columns='y')",
    ),
    **dict.fromkeys(("dtypes", "schema", "info", "glimpse", "summary"), "write describe()"),
    **dict.fromkeys(
        ("sort_values", "sort", "order_by", "arrange", "nlargest", "top_k"),
        "sort the answer: answer.to_pandas().sort_values('count'), or sql('SELECT ... ORDER BY count DESC LIMIT 3')",
    ),
    **dict.fromkeys(
        ("isna", "isnull", "is_null", "notna", "dropna", "drop_nulls", "fillna", "fill_null", "drop_na"),
        "write where('x IS NOT NULL'), or derive(filled='COALESCE(x, 0)')",
    ),
    **dict.fromkeys(
        ("unique", "distinct", "drop_duplicates", "levels"),
        "write group_by('x').count(), which finds the groups that enough people share",
    ),
    **dict.fromkeys(("apply", "map", "transform", "pipe", "map_elements", "replace"), "write derive(double='2 * x')"),
    **dict.fromkeys(("drop", "rename", "melt", "unpivot"), "columns stay as they are: ask about those that you need"),
    **dict.fromkeys(("cut", "qcut", "bin"), "write histogram('x', bins=20)"),
    **dict.fromkeys(
        ("resample", "rolling", "dt"), "write derive(month=\"DATE_TRUNC('month', day)\").group_by('month')"
    ),
    "running": "a running count is started where the rows are: in Python there, or tacit running",
    "answer": "ask for an aggregate first: table.count().answer(epsilon=1)",
    "plan": "ask for an aggregate first: table.count().plan(epsilon=1)",
    "synthesize": "rows are made where the data is: tacit synthesize, or tacit.table(...).synthesize(epsilon=1)",
    "plot": "draw an answer: table.count().answer(epsilon=1).plot('count.png')",
    **dict.fromkeys(
        ("head", "tail", "sample", "limit", "show", "collect", "fetch", "execute", "rows", "loc", "iloc"), _ROWS
    ),
    **dict.fromkeys(
        ("values", "shape", "iterrows", "to_pandas", "to_polars", "to_pyarrow", "to_arrow", "select"), _ROWS
    ),
}


class Verbs(Generic[Asked]):
    """The verbs before a question: every step returns a new table, and reads no row."""

    frame: Frame

    def _with(self, frame: Frame) -> Self:
        """Return the same table with another frame."""
        raise NotImplementedError

    def _question(self, query: Query) -> Asked:
        """Return a checked question about this table."""
        raise NotImplementedError

    def where(self, condition: str | Col) -> Self:
        """Return the table's rows that satisfy a condition: "age >= 18 AND ward = 'A'", or tacit.col("age") >= 18."""
        return self._with(self.frame.filtered(condition))

    def filter(self, condition: str | Col) -> Self:
        """Return the table's rows that satisfy a condition: another word for `where`."""
        return self.where(condition)

    def derive(self, **expressions: str | Col) -> Self:
        """Return the table with new columns made from its own, e.g. derive(total="price * quantity")."""
        return self._with(self.frame.deriving(expressions))

    def group_by(
        self,
        *names: str | Col | Sequence[str | Col],
        keys: Any = None,
        smallest: int | None = None,
        totals: bool | Literal["all"] = False,
        other: bool = False,
        public_totals: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the table grouped by columns; `keys` lists the public groups, as values, tuples or a frame.

        Groups that are not listed are found, once, for a part of epsilon: down to about 100 people, or to `smallest`,
        e.g. group_by("ward", smallest=50). plan(epsilon=1) shows the cost.

        With `totals`, the answer has the total of all groups and of each key inside the one before it, or with "all"
        of every combination of keys. Counts and sums of all levels add up. With `other`, all rows of groups that are
        not shown are one more group, of several keys one in each parent; it has noise of its own. `public_totals` gives
        a level whose totals are public, {"state": {"a": 900, "b": 700}}: they are held exactly.
        """
        return self._with(self.frame.grouped(names, keys, smallest, totals, other, public_totals))

    def agg(self, *unnamed: AggregateSpec, **aggregates: AggregateSpec) -> Asked:
        """Return a question for several aggregates in one pass, e.g. agg(n=tacit.count(), stay=tacit.mean("days")).

        An unnamed one, as in agg(tacit.mean("days")), gets a default name: mean_days.
        """
        for each in unnamed:
            if not isinstance(each, AggregateSpec):
                raise InvalidParameter(
                    f"agg takes aggregates, not a {type(each).__name__}\nhint: {_aggregates_meant(each)}"
                )
        return self._question(self.frame.query([*unnamed, *aggregates.items()]))

    def count(self, column: str | Col | None = None) -> Asked:
        """Return the question how many rows; with a column, how many have a value there."""
        return self._one(language.count(column))

    def count_units(self) -> Asked:
        """Return the question how many units."""
        return self._one(language.count_units())

    def sum(self, column: str | Col, *, between: Any = None, step: Number | None = None) -> Asked:
        """Return the question for the sum of a column; `between` is its public range if none is declared."""
        return self._one(language.sum(column, between=between, step=step))

    def mean(self, column: str | Col, *, between: Any = None, step: Number | None = None) -> Asked:
        """Return the question for the mean of a column; `between` is its public range if none is declared."""
        return self._one(language.mean(column, between=between, step=step))

    def variance(self, column: str | Col, *, between: Any = None, step: Number | None = None) -> Asked:
        """Return the question for the variance of a column."""
        return self._one(language.variance(column, between=between, step=step))

    def std(self, column: str | Col, *, between: Any = None, step: Number | None = None) -> Asked:
        """Return the question for the standard deviation of a column."""
        return self._one(language.std(column, between=between, step=step))

    def median(
        self, column: str | Col, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Asked:
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
    ) -> Asked:
        """Return the question for one quantile, or for a list of them, each named as days_p90 is."""
        ask = partial(language.quantile, column, between=between, step=step, of=of)
        if not isinstance(fractions, list | tuple):
            return self._one(ask(fractions))
        return self.agg(**{language.quantile_name(column, fraction): ask(fraction) for fraction in fractions})

    def min(
        self, column: str | Col, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Asked:
        """Return the question for about the least value of a column: a low quantile."""
        return self._one(language.min(column, between=between, step=step, of=of))

    def max(
        self, column: str | Col, *, between: Any = None, step: Number | None = None, of: QuantileOf | None = None
    ) -> Asked:
        """Return the question for about the greatest value of a column: a high quantile."""
        return self._one(language.max(column, between=between, step=step, of=of))

    def covariance(self, column: str | Col, other: str, *, between: Any = None, other_between: Any = None) -> Asked:
        """Return the question for the covariance of two columns."""
        asked = language.covariance(column, other, between=between, other_between=other_between)
        return self._one(asked)

    def correlation(self, column: str | Col, other: str, *, between: Any = None, other_between: Any = None) -> Asked:
        """Return the question for the correlation of two columns."""
        asked = language.correlation(column, other, between=between, other_between=other_between)
        return self._one(asked)

    def count_distinct(self, column: str | Col, *, per_unit: int | None = None) -> Asked:
        """Return the question how many distinct values a column has; each unit counts for at most `per_unit` values."""
        return self._one(language.count_distinct(column, per_unit=per_unit))

    def histogram(self, column: str, bins: Any, *, between: Any = None) -> Asked:
        """Return the question how many rows fall in each bin; `bins` is a number of equal bins, or a list of edges.

        A bin is named by its lower end and reaches up to the next. Values outside the edges count in the first or the
        last bin.
        """
        return self._question(self.frame.histogram(column, bins, between))

    def workload(self, **questions: Any) -> Asked:
        """Return several questions as one, by name: workload(by_ward=visits.group_by("ward").count(), in_all=...).

        They are planned and charged together, and answer["by_ward"] is the answer of one. `weights` and `error` are by
        these names. Counts of the same rows that share cells are fitted together.
        """
        raise NotImplementedError

    def marginals(self, columns: Sequence[str], order: int = 2, *, bins: Mapping[str, Any] | None = None) -> Asked:
        """Return the counts by every pair of columns (every `order` of them) as one workload: answer["age, sex"].

        The values of each column are its declared keys, or `bins` of numbers, as of a histogram. Rows with another
        value, or none, in any of the columns are in no table, so that all tables agree where they overlap.
        """
        asked = self.frame.marginals(columns, order, bins)
        return self.workload(**{name: self._question(query) for name, query in asked.items()})

    def top(self, column: str, k: int, *, keys: Any = None) -> Asked:
        """Return the question for the k most common values of a column: those that most units have.

        A unit counts once for each value it has, however many of its rows have it. Of public keys only their order is
        chosen, which costs far less than counts, and every value of a unit counts. Keys that are found are shown with
        their counts, and a unit counts for at most `groups_per_unit` of its values, picked at random.
        """
        return self._question(self.frame.ranked(column, k, keys))

    def mode(self, column: str, *, keys: Any = None) -> Asked:
        """Return the question for the mode of people: the value that most units have, as `top` counts them.

        The mode of rows differs: a unit with a hundred rows of one value counts once for it here. Where each row is its
        own unit, the two are the same.
        """
        return self.top(column, 1, keys=keys)

    @overload
    def describe(self, epsilon: None = None) -> Description: ...
    @overload
    def describe(
        self,
        epsilon: Number,
        delta: Number | None = None,
        *,
        columns: Sequence[str] | None = None,
        analyst: str | None = None,
        confidence: Number = 0.95,
    ) -> Summary: ...
    def describe(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        columns: Sequence[str] | None = None,
        analyst: str | None = None,
        confidence: Number = 0.95,
    ) -> Description | Summary:
        """Return the public facts of the table, for free; with an epsilon, a private summary of its numbers.

        The summary has each column's count, mean, standard deviation and quartiles, every one with its ±. The summary
        is one question, charged as a whole: with few columns it is closer. With little epsilon for each it leaves out
        the standard deviation, and a number that could be nearly anything is called too vague.
        """
        if epsilon is None:
            return described(self.frame.declaration)
        if self.frame.keys:
            raise QueryRefused("describe is of the whole table\nhint: call it before group_by, or after where")
        asked, learn = summary_asked(self.frame, columns, decimal_meaning(epsilon, name="epsilon"))
        question = self._question(self.frame.query(asked))
        answer = question.answer(epsilon, delta, analyst=analyst, confidence=confidence, learn=learn, accept_noise=True)
        facts = self.frame.declaration.columns.items()
        return Summary(answer, {name: [float(end) for end in each.between] for name, each in facts if each.between})

    def dummy(self, rows: int = 1000) -> DummyRows:
        """Return made-up rows with the table's columns, from public facts only: free, to try a script on.

        Types, keys and ranges are as declared. Columns are independent. `.to_pandas()` gives a frame, `.table()` a
        table that is declared in the same way, with a budget to try.
        """
        return DummyRows.of(self.frame.declaration, rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns: public, and free."""
        return tuple(self.frame.declaration.columns)

    def _one(self, asked: AggregateSpec) -> Asked:
        return self._question(self.frame.query([asked]))

    def __getitem__(self, name: object) -> Never:
        """Refuse table["x"]: the values of a protected table are not shown."""
        raise QueryRefused(
            "a column of a protected table cannot be picked out"
            "\nhint: ask about it, such as table.mean('x'), or filter with table.where('x > 1')"
        )

    if not TYPE_CHECKING:  # a checker should go on finding names that do not exist

        def __getattr__(self, name: str) -> Never:
            frame = vars(self).get("frame")  # not there yet while a copy is made
            if frame is not None and name in frame.declaration.columns:
                ways = f"'{name}' is a column: ask about it with .mean('{name}'), or filter with .where(\"{name} > 1\")"
                raise unknown_name(self, name, {name: ways})
            raise unknown_name(self, name, WORDS)

    def __dir__(self) -> list[str]:  # what Tab offers; the session and the frame are the product's own
        return sorted(name for name in dir(type(self)) if not name.startswith("_"))


_COLUMN_KINDS = ("count", "sum", "mean", "median", "min", "max", "std", "variance")


def _aggregates_meant(given: object) -> str:
    """Return the words for what agg was given: pandas' {"x": "mean"} is written as aggregates of the same columns."""
    if isinstance(given, Mapping):
        kinds = {name: each if isinstance(each, list | tuple) else (each,) for name, each in given.items()}
        written = [f"tacit.{kind}('{name}')" for name, each in kinds.items() for kind in each if kind in _COLUMN_KINDS]
        if written:
            return f"agg({', '.join(written)})"
    return "agg(tacit.mean('days')), or agg(stay=tacit.mean('days')) to name it"


Made = TypeVar("Made")
# Names that other libraries have, and the words for them here.
QUESTION_WORDS = {
    **dict.fromkeys(("execute", "run", "collect", "show", "compute", "result"), "write answer(epsilon=1)"),
    **dict.fromkeys(("to_pandas", "to_polars", "to_dicts", "plot"), "answer it first: .answer(epsilon=1)"),
    **dict.fromkeys(("group_by", "groupby", "where", "filter"), "group and filter the table, before the aggregate"),
    **dict.fromkeys(("explain", "cost", "epsilon", "loss"), "write plan(epsilon=1): what the answer costs and gives"),
}


@dataclass(frozen=True)
class QuestionCall:
    """The words of a call: how much it may spend and on what, and who asks."""

    epsilon: Number | None = None
    delta: Number | None = None
    error: Wanted | None = None
    for_groups_of: int | None = None
    weights: Mapping[str, Number] | None = None
    noise: str | None = None
    confidence: Number = 0.95
    learn: Learn = None
    analyst: str | None = None
    # only of an answer
    consistent: bool = False
    request_id: str | None = None
    accept_noise: bool = False
    hold: Hold | None = None

    @property
    def level(self) -> Fraction:
        """The confidence, as an exact number."""
        return confidence_meaning(self.confidence)


class QuestionVerbs(Generic[Made]):
    """The verbs of a question: `plan` it for free, `answer` it for what it costs."""

    def _planned(self, call: QuestionCall) -> Made:
        """Return the plan of a call."""
        raise NotImplementedError

    def _answered(self, call: QuestionCall) -> Answer:
        """Charge for the answer to a call, and return it."""
        raise NotImplementedError

    def _about_population(self) -> "QuestionVerbs[Made]":
        """Return the question with what intervals about the population need beside it."""
        raise InvalidParameter(
            "this question cannot be asked about the population here"
            "\nhint: ask means of one table where it is, e.g. table.mean('x').answer(epsilon=1, about='population')"
        )

    def plan(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        error: Wanted | None = None,
        for_groups_of: int | None = None,
        weights: Mapping[str, Number] | None = None,
        analyst: str | None = None,
        noise: str | None = None,
        confidence: Number = 0.95,
        learn: Learn = None,
    ) -> Made:
        """Return what answering would do, cost and give, and whether it fits: free, and no row is read.

        Give `epsilon`, for the whole call, or the `error` to stay within, from which it is solved: a percent ("2%"), a
        number, or a dict of them by aggregate. `weights` says which aggregates' errors matter more. Before bounds are
        known, it says what the call would learn and for how much.
        """
        return self._planned(
            QuestionCall(epsilon, delta, error, for_groups_of, weights, noise, confidence, learn, analyst)
        )

    @overload
    def answer(self, epsilon: Number | None = ..., *, about: Literal["population"], **words: Any) -> Any: ...
    @overload
    def answer(
        self,
        epsilon: Number | None = ...,
        delta: Number | None = ...,
        *,
        error: Wanted | None = ...,
        for_groups_of: int | None = ...,
        weights: Mapping[str, Number] | None = ...,
        consistent: bool = ...,
        request_id: str | None = ...,
        analyst: str | None = ...,
        noise: str | None = ...,
        confidence: Number = ...,
        learn: Learn = ...,
        accept_noise: bool = ...,
        hold: Hold | None = ...,
        about: Literal["table"] = ...,
    ) -> Answer: ...
    def answer(  # type: ignore[misc] # the words of the first are those of the second
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
        learn: Learn = None,
        accept_noise: bool = False,
        hold: Hold | None = None,
        about: Literal["table", "population"] = "table",
    ) -> Any:
        """Return the private answer, after charging for it: what `plan` with the same words shows.

        The same question asked again is answered from the record, with the same numbers, for free. `consistent` makes
        the numbers possible ones, at no cost: counts not negative, quantiles rising, values inside their ranges.
        Bounds that nobody gave or learned yet are learned first, once, for a part of epsilon: `learn` is another share
        (0.1), "reuse" or "fresh" for a question with a filter, or False, which refuses instead.
        A question with a number that is foreseen to be mostly noise is refused before the rest is charged, unless
        `accept_noise`; the plan says so, and names what mends it.
        `hold` delays the outcome after a charge until "2s" after asking, or a later tick of that public clock (4 s,
        8 s ...), so that the time shows nothing of the rows. A table's declared hold is kept if it is longer.
        With `about="population"` the table is a simple random sample, and intervals have the sampling error too: the
        spread of each mean is asked beside it. The result is
        that of `Answer.population`, and has the answer about the table as `answer`.
        """
        if about not in ("table", "population"):
            raise InvalidParameter("about must be 'table' or 'population'")
        for name, given in (("consistent", consistent), ("accept_noise", accept_noise)):
            if not isinstance(given, bool):  # all words are read before the charge
                raise InvalidParameter(f"{name} must be True or False, not {type(given).__name__}")
        spending = (epsilon, delta, error, for_groups_of, weights, noise, confidence, learn, analyst)
        call = QuestionCall(*spending, consistent, request_id, accept_noise, hold)
        return self._answered(call) if about == "table" else self._about_population()._answered(call).population()

    if not TYPE_CHECKING:  # a checker should go on finding names that do not exist

        def __getattr__(self, name: str) -> Never:
            raise unknown_name(self, name, QUESTION_WORDS)

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["answer", "plan"]


@dataclass(frozen=True)
class Foresight:
    """A question as it is planned: how much it may spend, and who asks."""

    session: Session
    query: Query
    request: Request
    level: Fraction

    def ends(self) -> Iterator[tuple[int, Plan]]:
        """Yield the plans from made-up facts in which each person has one row, and in which each has many."""
        for rows in rows_of_people(self.session.declaration, self.query):
            yield rows, self.request.foresee(rows).plan

    def advice(self, plan: Plan, ends: Sequence[tuple[int, Plan]]) -> tuple[str, ...]:
        """Return that answering will be refused, if it will, and the closer questions; `ends` has plans from
        made-up facts."""
        useless = "" if ends else useless_line([plan], rows_most(self.session.declaration), self.level)
        return tuple(line for line in (useless, self._closer(plan, ends)) if line)

    def _closer(self, plan: Plan, ends: Sequence[tuple[int, Plan]]) -> str:
        """Return what would be closer than a plan: before anything is learned, as if each person had one row."""
        rows = float(PEOPLE) if ends else None
        plan = ends[0][1] if ends else plan
        widths: dict[str, float | None] = {}
        shown = plan.after.shown_outputs([output.name for output in plan.outputs])
        for each in (each for each in plan.outputs if each.name in shown):
            error = expected_error(each, plan, self.level, rows=rows)
            is_count = isinstance(each, CountRows | CountUnits | CountValues)
            is_known = error is None or is_count or (not ends and not isinstance(each, Quantile))
            widths[each.name] = error if is_known else nan

        def planned(epsilon: Fraction, output: str | None) -> Plan | None:
            if not ends or output is None:
                return planned_as(self.session, self.query, plan, epsilon, output)
            alone = OnePart(((self.session, _alone(self.query, output)),))
            request = replace(self.request, parts=alone, spend=replace(self.request.spend, weights=()))
            return request.foresee(ends[0][0]).plan

        learned = [fact for fact in plan.learned if not fact.entry]
        closer = closer_words(plan, learned, planned, widths, self.level, rows=rows, most=len(plan.outputs) + 2)
        return f"{closer[:-1]} (with one row each)." if closer and ends[1:] else closer


def planned_as(session: Session, query: Query, plan: Plan, epsilon: Fraction, output: str | None) -> Plan | None:
    """Return a question's plan at another epsilon from the same facts, of one output only if one is named."""
    weights = tuple(each for each in plan.spend.weights if output in (None, each[0]))
    spend = replace(plan.spend, epsilon=epsilon, weights=weights)
    asked = query if output is None else _alone(query, output)
    try:
        return make_plan(asked, session.declaration, spend, {fact.key: fact for fact in plan.learned})
    except TacitError:
        return None


def _alone(query: Query, output: str) -> Query:
    outputs = tuple(each for each in query.outputs if each.name == output)
    return replace(query, outputs=outputs, after=PostProcessing(), columns=())


def rows_of_people(declared: Declaration, query: Query) -> list[int]:
    """Return the fewest and the most rows that a person is taken to have before anything is learned."""
    if not isinstance(declared.unit, str):
        return [1]
    groups = min(declared.groups_per_unit or ROWS_MOST, ROWS_MOST) if query.keys else 1
    by_hand = ROWS_MOST if declared.rows_per_unit is None else declared.rows_per_unit * groups
    return sorted({1, min(ROWS_MOST, by_hand, declared.most_rows_per_unit or ROWS_MOST)})


def rows_most(declared: Declaration) -> int | None:
    """Return how many rows there are at most, if that is public."""
    most = declared.rows_per_unit if isinstance(declared.rows_per_unit, int) else None
    people = None if declared.population is None or most is None else declared.population * most
    return min((each for each in (declared.rows, people) if each is not None), default=None)
