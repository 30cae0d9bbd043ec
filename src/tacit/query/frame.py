"""The Python door: filters, derived columns, keys and aggregates become the same tree that SQL becomes.

A derived column is replaced by its expression at once, and its name must be new, so it never replaces a column that was
filtered, grouped or bounded before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

from tacit.errors import InvalidParameter, QueryRefused, did_you_mean
from tacit.numbers import Number, decimal_meaning, is_long, positive, whole
from tacit.query.check import check
from tacit.query.column_expressions import Col, written
from tacit.query.compound import refuse_unnested_time
from tacit.query.literal import fraction_meant, refuse_broken_text
from tacit.query.nodes import (
    Aggregate,
    AggregateKind,
    Call,
    Column,
    Expression,
    Key,
    Ordering,
    Output,
    PostProcessing,
    PublicTotals,
    QuantileOf,
    Query,
    Scalar,
    level_word,
    value_of,
)
from tacit.query.sql.expressions import show_value
from tacit.query.sql.rows import parse_expression
from tacit.query.typecheck import LEVELS_MOST, canonical, column_kinds
from tacit.tables import Declaration, RowUnit, is_auto, read_between

Between: TypeAlias = Sequence[Number] | None
Step: TypeAlias = Number | None
Of: TypeAlias = QuantileOf | None
SMALLEST_MOST = 10**9
QUANTILE_WORDS = {Fraction(0): "min", Fraction(1, 2): "median", Fraction(1): "max"}


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate as written in Python: `of` is a column, a derived name or an expression, read when it is used."""

    kind: AggregateKind
    of: Any = None  # text once it is made
    between: object = None
    step: object = None
    fraction: Fraction | None = None
    other: Any = None
    other_between: object = None
    per_unit: int | None = None
    best: int | None = None
    counting: QuantileOf | None = None

    def __post_init__(self) -> None:
        for name in ("of", "other"):
            object.__setattr__(self, name, written(getattr(self, name)))


def count(of: str | Col | None = None) -> AggregateSpec:
    """Return a count of rows; with a column or an expression, of the rows in which it is not NULL."""
    return AggregateSpec("count", of)


def count_units() -> AggregateSpec:
    """Return a count of units."""
    return AggregateSpec("count_units")


def count_distinct(of: str | Col, *, per_unit: int | None = None) -> AggregateSpec:
    """Return the number of different values of a column, with at most `per_unit` (or rows_per_unit) from one unit."""
    return AggregateSpec("count_distinct", of, per_unit=None if per_unit is None else whole(per_unit, name="per_unit"))


def sum(of: str | Col, *, between: Between = None, step: Step = None) -> AggregateSpec:
    """Return the sum of a column or an expression; `between` is its public range if none is declared."""
    return AggregateSpec("sum", of, between, step)


def mean(of: str | Col, *, between: Between = None, step: Step = None) -> AggregateSpec:
    """Return the mean of a column or an expression; `between` is its public range if none is declared."""
    return AggregateSpec("mean", of, between, step)


def variance(of: str | Col, *, between: Between = None, step: Step = None) -> AggregateSpec:
    """Return the variance of a column (the mean squared distance from the mean), with count, sum and mean for free."""
    return AggregateSpec("variance", of, between, step)


def std(of: str | Col, *, between: Between = None, step: Step = None) -> AggregateSpec:
    """Return the standard deviation of a column."""
    return AggregateSpec("std", of, between, step)


def quantile(
    column: str | Col, fraction: Number, *, between: Between = None, step: Step = None, of: Of = None
) -> AggregateSpec:
    """Return a quantile of a column, e.g. quantile("days", 0.9); its interval is paid for in the same call.

    `of="people"`: each unit counts once, evenly in all its groups and by all its rows, so no bound is needed. `"rows"`:
    each row counts, up to the bounds per unit. By default it is of rows if the bounds it needs are declared.
    """
    if of not in (None, "people", "rows"):
        raise QueryRefused("of must be 'people' or 'rows'\nhint: median('days', of='people')")
    meant = fraction_meant(_fraction(fraction))
    if meant is None:
        raise QueryRefused(
            "a quantile's fraction may have at most four decimals\nhint: e.g. 0.9999, or max for the greatest value"
        )
    return AggregateSpec("quantile", column, between, step, meant, counting=of)


def quantile_name(of: str, fraction: Number) -> str:
    """Return the name of one quantile among several.

    >>> quantile_name("days", 0.9), quantile_name("days", "0.999")
    ('days_p90', 'days_p99_9')
    """
    return f"{of}_p{float(_fraction(fraction) * 100):g}".replace(".", "_")


def _fraction(given: Number) -> Fraction:
    exact = decimal_meaning(given, name="fraction")
    if not 0 <= exact <= 1:
        raise QueryRefused(
            "a quantile's fraction must be between 0 and 1\nhint: 0.5 is the median; 0.9 starts the upper tenth"
        )
    return exact


def median(column: str | Col, *, between: Between = None, step: Step = None, of: Of = None) -> AggregateSpec:
    """Return the median of a column, of people or of rows as `quantile` is."""
    return quantile(column, Fraction(1, 2), between=between, step=step, of=of)


def min(column: str | Col, *, between: Between = None, step: Step = None, of: Of = None) -> AggregateSpec:
    """Return about the least value of a column: a low quantile, far enough inside for its noise."""
    return quantile(column, 0, between=between, step=step, of=of)


def max(column: str | Col, *, between: Between = None, step: Step = None, of: Of = None) -> AggregateSpec:
    """Return about the greatest value of a column: a high quantile, far enough inside for its noise."""
    return quantile(column, 1, between=between, step=step, of=of)


def covariance(
    of: str | Col, other: str | Col, *, between: Between = None, other_between: Between = None
) -> AggregateSpec:
    """Return the covariance of two columns, over the rows where both have a value."""
    return AggregateSpec("covariance", of, between, other=other, other_between=other_between)


def correlation(
    of: str | Col, other: str | Col, *, between: Between = None, other_between: Between = None
) -> AggregateSpec:
    """Return the correlation of two columns, over the rows where both have a value."""
    return AggregateSpec("correlation", of, between, other=other, other_between=other_between)


@dataclass(frozen=True)
class Frame:
    """A question under construction: filters, derived columns and keys, each checked when it is added."""

    declaration: Declaration
    where: Expression | None = None
    derived: Mapping[str, Expression] = field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    public_keys: tuple[tuple[Scalar, ...], ...] | None = None
    smallest: int | None = None
    levels: tuple[tuple[int, ...], ...] = ()  # the totals asked with the groups, as places among the keys
    other: bool = False  # the rows of groups that are not shown are one more group
    public_totals: tuple[PublicTotals, ...] = ()
    within: int = 0  # the work that a row takes before these are there, in steps (`typecheck.py`)
    # of a join: the columns of each of its tables, as they are called there and in the declaration
    tables: Mapping[str, Mapping[str, str]] | None = None

    def filtered(self, text: str | Col) -> "Frame":
        """Return the question about the rows for which the expression is true."""
        condition = _parsed_expression(self, text)
        both = condition if self.where is None else Call("and", (self.where, condition))
        return replace(self, where=canonical(both, column_kinds(self.declaration)))

    def deriving(self, given: Mapping[str, str | Col]) -> "Frame":
        """Return the question with new names for expressions, usable from here on."""
        derived = dict(self.derived)
        for name, text in given.items():
            taken = {*self.declaration.columns, *derived}
            if any(name.lower() == each.lower() for each in taken):
                raise QueryRefused(
                    f"derive cannot use the name '{name}': a column already has it\nhint: use a new name, e.g. {name}_2"
                )
            derived[name] = _parsed_expression(replace(self, derived=derived), text)
        return replace(self, derived=derived)

    def grouped(
        self,
        given: Sequence[str | Col | Sequence[str | Col]],
        keys: object = None,
        smallest: object = None,
        totals: object = False,
        other: object = False,
        public_totals: object = None,
    ) -> "Frame":
        """Return the question asked of each group of rows, with public groups or with groups that are found.

        `totals` adds a ROLLUP or a CUBE, `other` one group of all rows that are not shown.
        """
        if self.keys:
            raise QueryRefused("group_by was already called\nhint: name all keys in one group_by('a', 'b')")
        flat = [each for name in given for each in (name if isinstance(name, list | tuple) else (name,))]
        for each in flat:
            if isinstance(each, Col) and each.name is None:
                raise QueryRefused("a key that is an expression needs a name\nhint: derive(key=...).group_by('key')")
        names = [written(each) for each in flat]
        if not names:
            raise QueryRefused("group_by needs the name of a column\nhint: group_by('ward')")
        made = tuple(Key(name, _expression_named(self, name)) for name in names)
        if smallest is not None and keys is not None:
            raise QueryRefused("groups that are listed are not looked for\nhint: give keys= or smallest=, not both")
        listed = None if keys is None else read_public_keys(keys, names)
        levels = levels_asked(len(made), totals)
        if not isinstance(other, bool):
            raise InvalidParameter("other must be True or False\nhint: group_by('town', other=True)")
        found = replace(
            self, keys=made, public_keys=listed, smallest=read_smallest(smallest), levels=levels, other=other
        )
        return replace(found, public_totals=read_public_totals(public_totals, names, levels))

    def query(
        self,
        asked: Mapping[str, AggregateSpec] | Sequence[AggregateSpec | tuple[str, AggregateSpec]],
        after: PostProcessing | None = None,
    ) -> Query:
        """Return the checked question for some aggregates; unnamed ones of a list get their default name."""
        pairs = asked.items() if isinstance(asked, Mapping) else asked
        named = [each if isinstance(each, tuple) else (default_name(self, each), each) for each in pairs]
        for name, each in named:
            refuse_broken_text(name)
            if not isinstance(each, AggregateSpec):
                raise InvalidParameter(
                    f"'{name}' must be an aggregate, not a {type(each).__name__}\nhint: {name}=tacit.mean('days')"
                )
        outputs = tuple(Output(name, _aggregate(self, name, each)) for name, each in named)
        query = Query(
            table=self.declaration.name,
            outputs=outputs,
            where=self.where,
            keys=self.keys,
            public_keys=self.public_keys,
            smallest=self.smallest,
            after=after or PostProcessing(),
        )
        checked = check(query, self.declaration, within=self.within)
        refuse_unfit(checked, other=self.other, has_public=bool(self.public_totals))
        refuse_unnested_time(checked.keys, self.levels)
        return replace(checked, levels=self.levels, other=self.other, public_totals=self.public_totals)

    def histogram(self, column: str, bins: object, between: object = None) -> Query:
        """Return the question how many rows fall in each bin of a column; rows without a value are not counted."""
        if not isinstance(column, str):
            raise QueryRefused(f"a column name must be text, not {type(column).__name__}\nhint: histogram('age', 10)")
        if self.keys:
            raise QueryRefused(
                "a histogram is grouped only by its bins\nhint: leave out group_by, or filter with where"
            )
        edges = _edges(self, column, bins, between)
        name, (written, cases, last) = f"{column}_from", _bin_cases(self, column, edges)
        filtered = self.filtered(f"{written} IS NOT NULL")
        derived = filtered.deriving({name: f"CASE {cases} ELSE {last} END" if cases else f"{last} + 0 * {written}"})
        keyed = derived.grouped([name], [_short(edge) for edge in edges[:-1]])
        return keyed.query({"count": AggregateSpec("count")})

    def marginals(self, columns: Sequence[str], order: object, bins: object) -> dict[str, Query]:
        """Return the counts by each `order` of some columns together, by their names. All are of the rows with a listed
        value in each of the columns, so that they agree where they overlap."""
        if not isinstance(columns, list | tuple) or not all(isinstance(each, str) for each in columns):
            raise QueryRefused("marginals take a list of column names\nhint: marginals(['age', 'sex', 'ward'])")
        if len(set(columns)) < len(columns) or len(columns) < 2:
            raise QueryRefused(
                "marginals are of two columns or more, each once\nhint: marginals(['age', 'sex', 'ward'])"
            )
        most = whole(order, name="order")
        if most > len(columns):
            raise QueryRefused(f"order={most} needs as many columns\nhint: order=2 is of all pairs")
        if self.keys:
            raise QueryRefused("marginals have their own groups\nhint: leave out group_by, or filter with where")
        cut = {} if bins is None else bins
        if not isinstance(cut, Mapping) or any(name not in columns for name in cut):
            raise QueryRefused("bins gives columns of numbers their bins\nhint: bins={'age': [0, 18, 65, 120]}")
        frame = self
        names: list[str] = []
        listed: list[tuple[Scalar, ...]] = []
        for column in columns:
            facts = self.declaration.columns.get(column)
            if column in cut:
                frame, edges = _with_bins(frame, column, cut[column])
                names.append(f"{column}_from")
                listed.append(edges)
            elif facts is not None and facts.keys is not None:
                names.append(column)
                listed.append(tuple(key for key in facts.keys if key is not None))
            elif facts is not None and facts.type == "bool":
                names.append(column)
                listed.append((False, True))
            else:
                raise QueryRefused(
                    f"the values of '{column}' are not listed\nhint: declare its keys, or give numbers bins:"
                    f" bins={{'{column}': 10}}"
                )
        for name, values in zip(names, listed, strict=True):
            inside: Expression = Call("in", (_expression_named(frame, name), *map(value_of, values)))
            where = inside if frame.where is None else Call("and", (frame.where, inside))
            frame = replace(frame, where=canonical(where, column_kinds(frame.declaration)))
        found = {}
        for chosen in combinations(range(len(names)), most):
            keys = tuple(product(*(listed[at] for at in chosen)))
            keyed = frame.grouped([names[at] for at in chosen], keys)
            found[", ".join(columns[at] for at in chosen)] = keyed.query({"count": AggregateSpec("count")})
        return found

    def ranked(self, column: str, best: int, keys: object = None) -> Query:
        """Return the question for the values that most units have; public keys are ranked without their counts."""
        if self.keys:
            raise QueryRefused(
                "a ranking is about the whole table and cannot have groups\n"
                "hint: leave out group_by, or filter with where"
            )
        most = whole(best, name="k")
        if not isinstance(column, str):
            raise InvalidParameter(
                f"a ranking is of one column, not of a {type(column).__name__}\nhint: top('ward', 3)"
            )
        keyed = self.grouped([column], keys)
        facts = self.declaration.columns.get(column)
        public = keyed.public_keys is not None or (facts is not None and facts.keys is not None)
        if public:
            return keyed.query({"rank": AggregateSpec("top", best=most)})
        counted = AggregateSpec("count") if isinstance(self.declaration.unit, RowUnit) else AggregateSpec("count_units")
        query = keyed.query({counted.kind: counted})
        after = PostProcessing(order=(Ordering(Column(counted.kind), descending=True),), limit=most)
        return check(replace(query, after=after), self.declaration, within=self.within)


def read_public_totals(
    given: object, names: Sequence[str], levels: Sequence[tuple[int, ...]]
) -> tuple[PublicTotals, ...]:
    """Return totals that are public, e.g. {"state": {"a": 900, "b": 700}} or {"total": 1600}, by level."""
    if given is None:
        return ()
    hint = "\nhint: group_by('state', 'town', totals=True, public_totals={'state': {'a': 900, 'b': 700}})"
    known = {level_word(names, levels, kept): kept for kept in levels if len(kept) < len(names)}
    if not isinstance(given, Mapping) or any(name not in known for name in given):
        raise InvalidParameter(f"public_totals gives levels their numbers; they are {', '.join(known) or 'none'}{hint}")
    found = []
    for name, numbers in given.items():
        read = []
        for key, number in (numbers if isinstance(numbers, Mapping) else {(): numbers}).items():
            parts = key if isinstance(key, tuple) else (key,)
            if len(parts) != len(known[name]):
                raise InvalidParameter(f"public_totals of '{name}' needs {len(known[name])} key(s) for a number{hint}")
            read.append((parts, decimal_meaning(number, name=f"a public total of '{name}'")))
        found.append((known[name], tuple(read)))
    return tuple(found)


def levels_asked(keys: int, totals: object) -> tuple[tuple[int, ...], ...]:
    """Return the levels of a table with totals, the groups first: all of them, or each inside the next one."""
    if totals is False:
        return ()
    everything = tuple(range(keys))
    if totals is True:
        return tuple(everything[:count] for count in range(keys, -1, -1))
    if totals != "all":
        raise InvalidParameter(
            "totals must be True, for the total of each key inside the one before it, or 'all', for every combination"
            "\nhint: group_by('state', 'town', totals=True)"
        )
    if 2**keys > LEVELS_MOST:
        raise QueryRefused(
            f"these keys have more than {LEVELS_MOST} levels of totals\nhint: totals=True, or fewer keys"
        )
    return tuple(each for count in range(keys, -1, -1) for each in combinations(everything, count))


def read_smallest(given: object) -> int | None:
    """Return down to how many people groups are looked for, or refuse; None: the usual number."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 2 <= given <= SMALLEST_MOST:
        raise InvalidParameter(
            f"smallest must be a whole number of people, from 2 to {SMALLEST_MOST:,}"
            "\nhint: group_by('ward', smallest=50)"
        )
    return given


def refuse_unfit(query: Query, *, other: bool, has_public: bool) -> None:
    """Refuse one group for all that are not shown beside a choice of groups, and public totals of other numbers."""
    kinds = [output.aggregate.kind for output in query.outputs]
    if other and "top" in kinds:
        raise QueryRefused("a ranking shows keys without counts, and has no others\nhint: leave out the others")
    if has_public and kinds not in (["count"], ["sum"]):
        raise QueryRefused("public totals are of one count or one sum\nhint: ask it by itself")


def default_name(frame: Frame, asked: AggregateSpec) -> str:
    """Return the name of an unnamed aggregate: by its word and its columns, mean_days; of an expression the word."""
    named = [each for each in (asked.of, asked.other) if isinstance(each, str)]
    known = all(each in frame.derived or each in frame.declaration.columns for each in named)
    columns = named if known else []
    if asked.kind == "quantile" and asked.fraction is not None:
        word = QUANTILE_WORDS.get(asked.fraction)
        if word is None:
            return quantile_name("_".join(columns) or "quantile", asked.fraction)
        return "_".join([word, *columns])
    return "_".join([asked.kind, *columns])


def read_public_keys(keys: object, names: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    """Return public keys as tuples in the order of `names`, from values, tuples, or a frame with those columns."""
    columns = _columns_of_frame(keys, names)
    if columns is not None:
        return tuple(zip(*columns, strict=True))
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise QueryRefused("keys must be a list of values or tuples, or a frame\nhint: keys=['A', 'B']")
    rows = tuple(tuple(key) if isinstance(key, tuple | list) else (key,) for key in keys)
    if any(len(row) != len(names) for row in rows):
        raise QueryRefused(
            f"every public key needs {len(names)} part(s): {', '.join(names)}\nhint: keys=[('A', 1), ...]"
        )
    return rows


def _columns_of_frame(keys: object, names: Sequence[str]) -> list[list[Any]] | None:
    """A pandas, Polars or Arrow frame as lists; recognised by its methods, so that no library has to be imported."""
    if isinstance(keys, list | tuple) or not hasattr(keys, "columns"):
        return None
    frame: Any = keys
    known = list(getattr(frame, "column_names", None) or frame.columns)
    missing = [name for name in names if name not in known]
    if missing:
        raise QueryRefused(
            f"the frame of keys lacks the column '{missing[0]}'{did_you_mean(missing[0], map(str, known))}"
        )
    columns = (frame[name] for name in names)
    return [
        list(map(_plain_name, each.to_list() if hasattr(each, "to_list") else each.to_pylist())) for each in columns
    ]


def _plain_name(value: Any) -> Any:
    """pandas writes missing values in three ways and dates as its own timestamps; both become Python's."""
    if hasattr(value, "to_pydatetime"):
        return value.to_pydatetime() if value == value else None  # only NaT differs from itself
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _aggregate(frame: Frame, name: str, asked: object) -> Aggregate:
    if not isinstance(asked, AggregateSpec):
        raise QueryRefused(f"'{name}' must be an aggregate\nhint: {name}=tacit.count() or {name}=tacit.mean('x')")
    between = None
    if not is_auto(asked.between):
        between = read_between(asked.of if isinstance(asked.of, str) else name, asked.between)
    step = None
    if asked.step is not None:
        step = positive(decimal_meaning(asked.step, name="step"), name="step")  # type: ignore[arg-type]
    return Aggregate(
        asked.kind,
        None if asked.of is None else named_or_expression(frame, asked.of),
        between,
        step,
        asked.fraction,
        None if asked.other is None else named_or_expression(frame, asked.other),
        None if is_auto(asked.other_between) else read_between(asked.other or name, asked.other_between),
        asked.per_unit,
        asked.best,
        asked.counting,
    )


def named_or_expression(frame: Frame, text: str) -> Expression:
    """Return what a column's name, a derived one, or an expression written as text stands for."""
    known = not isinstance(text, str) or text in frame.derived or text in frame.declaration.columns
    return _expression_named(frame, text) if known else _parsed_expression(frame, text)


def _expression_named(frame: Frame, name: str) -> Expression:
    if not isinstance(name, str):
        raise QueryRefused(f"a column name must be text, not {type(name).__name__}\nhint: group_by('ward')")
    if name in frame.derived:
        return frame.derived[name]
    if name not in frame.declaration.columns:
        hint = did_you_mean(name, [*frame.declaration.columns, *frame.derived])
        raise QueryRefused(f"there is no column '{name}' in '{frame.declaration.name}'{hint}")
    return Column(name)


def _parsed_expression(frame: Frame, given: str | Col) -> Expression:
    text = given.text if isinstance(given, Col) else given
    return parse_expression(text, frame.declaration, derived=frame.derived, tables=frame.tables)


# --- histograms, marginals and rankings ---

BINS_MAX = 200
# An edge that is not a short decimal is rounded to this number of digits after the point.
EDGE_DIGITS = 9


def _with_bins(frame: Frame, column: str, bins: object) -> tuple[Frame, tuple[Scalar, ...]]:
    """Return a frame with the low end of the bin of each value, and these ends."""
    edges = _edges(frame, column, bins, None)
    written, cases, last = _bin_cases(frame, column, edges)
    text = f"CASE WHEN {written} IS NULL THEN NULL {cases} ELSE {last} END"
    return frame.deriving({f"{column}_from": text}), tuple(map(_short, edges[:-1]))


def _bin_cases(frame: Frame, column: str, edges: list[Fraction]) -> tuple[str, str, str]:
    """Return a column in SQL, the WHENs of its bins but the last, and the low end of that."""
    written = f'"{column}"' if column in frame.declaration.columns else column
    texts = [show_value(_short(edge)) for edge in edges[:-1]]
    return written, " ".join(f"WHEN {written} < {high} THEN {low}" for low, high in pairwise(texts)), texts[-1]


def _edges(frame: Frame, column: str, bins: object, between: object) -> list[Fraction]:
    """Return the edges of the bins, in increasing order."""
    if isinstance(bins, Sequence) and not isinstance(bins, str):
        edges = [decimal_meaning(edge, name="an edge") for edge in bins]
        if any(is_long(edge) for edge in edges):
            raise QueryRefused("a bin edge has more digits than any column can hold\nhint: bins=[0, 18, 65, 120]")
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)) or len(edges) > BINS_MAX + 1:
            raise QueryRefused(
                f"bin edges must increase; give between 2 and {BINS_MAX + 1} of them\nhint: bins=[0, 18, 65, 120]"
            )
        return edges
    count: int = whole(bins, name="bins")
    facts = frame.declaration.columns.get(column)
    known = facts.between if facts is not None else None
    ends = known if is_auto(between) else read_between(column, between)
    if count > BINS_MAX:
        raise QueryRefused(f"a histogram has at most {BINS_MAX} bins, not {count}\nhint: histogram('{column}', 20)")
    if ends is None:
        raise QueryRefused(
            f"a number of bins needs a declared public range of '{column}'\nhint: histogram('{column}', {count}, "
            "between=(0, 100)), or give the edges: bins=[0, 18, 65, 120]"
        )
    low, high = ends
    edges = [_short(low + (high - low) * index / count) for index in range(count + 1)]
    if any(one >= two for one, two in pairwise(edges)):
        raise QueryRefused(
            f"the range of '{column}' is too narrow for {count} bins\nhint: give fewer bins, or give the edges"
        )
    return edges


def _short(edge: Fraction) -> Fraction:
    """Return an edge as a decimal of few digits."""
    return Fraction(round(edge * 10**EDGE_DIGITS), 10**EDGE_DIGITS)
