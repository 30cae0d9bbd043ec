"""Which vectors a scaled question is answered from, and which facts or bounds by hand each of them needs.

A count is the vector of a unit's rows in each group; a sum is that of its sums. A mean is two vectors with one weight:
the rows, and the sums about a centre. No range is needed: a learned size gives the grid, wide enough for all that is
believed, and the profile of the sums about the centre gives the cap.

Ceilings: facts about more rows limit the estimates for fewer.

A filter leaves rows out, a group is a part of a person's rows, and a value counts once for each row at most. So a
person has at most the rows, values or groups in a question that a profile of the whole table shows, if one was ever
learned. A profile of few people is read off much noise: its ceiling is then what keeps a cap from being set by it. Like
all that is learned, a ceiling decides how well an answer comes out, and never whether it is safe.

Which bounds on a unit a question lacks, and whether its units are scaled into caps or their rows dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, sqrt
from typing import Literal

from tacit.errors import QueryRefused
from tacit.plan.bounds.facts import Fact, Facts, Grouping, Subject, reading_of, span_in
from tacit.plan.bounds.profiles import BelievedSpan, Reading, at_most, below, clipped
from tacit.plan.bounds.scaling import Profile, Vector
from tacit.plan.groups import public_keys
from tacit.plan.layout import QUANTILE_STEPS, measured_column, power_of_two_at_most
from tacit.plan.plan import (
    FAMILIES,
    Mean,
    Measured,
    NoiseKind,
    PlannedOutput,
    StandardDeviation,
    Sum,
    Variance,
    planned,
)
from tacit.query import (
    INT_LEAST,
    INT_MOST,
    Aggregate,
    AggregateKind,
    Column,
    Expression,
    Output,
    Query,
    Type,
    Value,
    ends_of,
    type_of,
)
from tacit.tables import ColumnFacts, Declaration, RowUnit

# Variances need the sums of squares beside those of a mean (`moment_vectors.py`).
MOMENTS_OF_ONE: frozenset[AggregateKind] = frozenset(("variance", "std"))
# Aggregates that are made of scaled vectors.
SCALED_KINDS: frozenset[AggregateKind] = MOMENTS_OF_ONE | frozenset(
    ("count", "count_units", "sum", "mean", "covariance", "correlation")
)
# The same where bounds are given by hand. Everything about a mean or a moment then comes from one joint release, which
# errs less than several vectors do (docs/decisions.md has the figures).
COUNTED_KINDS: frozenset[AggregateKind] = frozenset(("count", "count_units", "sum"))


def lacks_bound(query: Query, declaration: Declaration) -> bool:
    """Whether a question needs a bound on its units that is not given by hand."""
    return lacks_rows_bound(query, declaration) or lacks_groups(query, declaration)


def lacks_rows_bound(query: Query, declaration: Declaration) -> bool:
    """Whether rows of a unit are to be bounded, and no bound on them is given by hand."""
    if _has_no_bounds(query, declaration) or declaration.rows_per_unit is not None:
        return False
    return any(
        FAMILIES[output.aggregate.kind] not in ("units", "distinct") and output.aggregate.of != "people"
        for output in query.outputs
    )


def lacks_groups(query: Query, declaration: Declaration) -> bool:
    """Whether groups of a unit are to be bounded, and no bound on them is given by hand."""
    if _has_no_bounds(query, declaration) or not query.keys or declaration.groups_per_unit is not None:
        return False
    of_people = all(output.aggregate.of == "people" for output in query.outputs)
    return not of_people or public_keys(query, declaration) is None


def _has_no_bounds(query: Query, declaration: Declaration) -> bool:
    ranking = any(FAMILIES[output.aggregate.kind] == "ranking" for output in query.outputs)
    return ranking or isinstance(declaration.unit, RowUnit)


def is_scaled(query: Query, declaration: Declaration) -> bool:
    """Whether a question is answered by scaling units into caps, which are learned, or given by hand.

    If all bounds are given by hand it is not where a mean or a moment is asked for (see COUNTED_KINDS), or where groups
    are to be found: a noisy count of people, made beside the numbers, then shows them, and nothing is learned.
    """
    if isinstance(declaration.unit, RowUnit):
        return False
    is_given = not lacks_bound(query, declaration)
    kinds = COUNTED_KINDS if is_given else SCALED_KINDS
    if any(output.aggregate.kind not in kinds for output in query.outputs):
        return False
    return not is_given or public_keys(query, declaration) is not None


def widens(query: Query) -> bool:
    """Whether a cap that is too low makes the answer wrong, and not only that of fewer rows, as it does a mean."""
    return any(output.aggregate.kind in ("count", "count_units", "sum") for output in query.outputs)


# In profiles of counts one is 2^8 fine steps, so that the L2 norm of a few differs from a whole number.
COUNT_SHIFT = 8
# The binary digits of a believed value in steps, and of a grid on either side of its centre: values up to 256 times
# every believed one still count whole.
VALUE_BITS = 22
GRID_BITS = 30
# A float's octave without a believed value.
OCTAVE_UNKNOWN = 16
# The most steps of a range given by hand.
STEPS_MOST = 1 << GRID_BITS


# ---- Columns: their grids, and the facts that these need.


@dataclass(frozen=True)
class ValueColumn:
    """An expression that is summed or averaged."""

    aggregate: Aggregate
    grouping: Grouping
    about_zero: bool  # only a sum is asked: its sums are about 0, and no centre is needed

    @property
    def expression(self) -> Expression:
        """The expression."""
        if self.aggregate.expression is None:
            raise QueryRefused(f"{self.aggregate.kind} needs a column\nhint: e.g. {self.aggregate.kind}('age')")
        return self.aggregate.expression

    @property
    def type(self) -> Type:
        """The type of its values."""
        return type_of(self.expression, self.grouping.declaration)

    @property
    def facts(self) -> ColumnFacts | None:
        """Its declaration, if it is a column."""
        if not isinstance(self.expression, Column):
            return None
        return self.grouping.declaration.columns.get(self.expression.name)

    @property
    def between(self) -> tuple[Fraction, Fraction] | None:
        """The range given by hand."""
        return self.aggregate.between or (self.facts.between if self.facts else None)

    def size(self) -> Subject | None:
        """Return the fact of how large its values are; None if a range is given by hand."""
        if self.between is not None:
            return None
        return Subject(*self._of_values(), (Profile("largest", Vector("centred", 0)),))

    def _of_values(self) -> tuple[Grouping, tuple[Measured, ...]]:
        measured = _measured_about(self.expression, self.type, Fraction(1), 0)
        return self.grouping.of_whole_table(), (measured,)

    def span(self, facts: Facts) -> BelievedSpan | None:
        """Return the largest size of its believed values; None if that is not known yet."""
        size = self.size()
        if size is None:
            return BelievedSpan(None, None)
        rounds = size.rounds(facts)
        return span_in(rounds, size) if rounds else None

    def range(self, facts: Facts) -> tuple[Fraction, Fraction] | None:
        """Return the range in which its centre is searched; None if its size is not known yet."""
        if self.between is not None:
            return self.between
        span = self.span(facts)
        if span is None:
            return None
        if span.top is None:
            return self.possible(-(Fraction(2) ** OCTAVE_UNKNOWN), Fraction(2) ** OCTAVE_UNKNOWN)
        low, high = self.possible(*span.range)
        step = self.own_step()
        if step is None or floor(high / step) > ceil(low / step):
            return low, high
        low = floor(low / step) * step  # fewer than two values
        return low, max(high, low + step)

    def possible(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Return a range without impossible values, such as a negative count; a range of only impossible ones does not
        change."""
        least, most = ends_of(self.expression, self.grouping.declaration)
        low_end, high_end = low if least is None else max(low, least), high if most is None else min(high, most)
        return (low_end, high_end) if low_end < high_end else (low, high)

    def has_no_size(self, facts: Facts) -> bool:
        """Whether no value of it is believed, all of them being 0 or too few people having any."""
        span = self.span(facts)
        return self.between is None and span is not None and span.top is None

    def centre(self, facts: Facts) -> Subject | None:
        """Return the fact of its centre; None if it is not needed, or its size is not known yet."""
        between = self.range(facts)
        if self.about_zero or between is None or self.has_no_size(facts):
            return None
        aggregate = replace(self.aggregate, kind="quantile", fraction=Fraction(1, 2), between=between, step=None)
        measured = measured_column(
            aggregate, self.grouping.declaration, steps_most=QUANTILE_STEPS, float_steps=QUANTILE_STEPS
        )
        return Subject(self.grouping.of_whole_table(), (measured,), ())

    def known(self, facts: Facts) -> list[Fact]:
        """Return the facts that its grid is made from."""
        return [fact for each in (self.size(), self.centre(facts)) if each is not None for fact in each.rounds(facts)]

    def middle(self, facts: Facts) -> Fraction | None:
        """Return its centre, 0 if it is not needed or no value is believed; None if it is not known yet."""
        if self.about_zero or self.has_no_size(facts):
            return Fraction(0)
        centre = self.centre(facts)
        rounds = [] if centre is None else centre.rounds(facts)
        if centre is None or not rounds:
            return None
        (drawn,) = centre.measured
        return (drawn.low + rounds[-1].parts[1][0]) * drawn.step

    def grid(self, facts: Facts) -> "Grid | None":
        """Return the grid of its values, with the centre; None if a fact is missing."""
        span, middle = self.span(facts), self.middle(facts)
        if span is None or middle is None:
            return None
        if self.between is not None:
            measured = measured_column(self.aggregate, self.grouping.declaration, steps_most=STEPS_MOST)
            at = min(max(round(middle / measured.step), measured.low), measured.high)
            centre = (0 if self.about_zero else at) - measured.low
            return Grid(measured, centre, float(max(abs(centre), abs(measured.height - centre), 1)))
        step = self._step(span)
        at = round(middle / step)
        largest = float((1 if span.top is None else Fraction(2) ** (span.top + 1)) / step)
        measured = _measured_about(
            self.expression, self.type, step, at, Fraction(0) if step == self.own_step() else step / 2
        )
        return Grid(measured, at - measured.low, max(largest, 1.0), span.up is not None and span.down is None)

    def _step(self, span: BelievedSpan) -> Fraction:
        """Return a step of which the largest believed value has about 2^VALUE_BITS."""
        octave = span.top if span.top is not None else OCTAVE_UNKNOWN
        wanted = Fraction(2) ** (octave + 1 - VALUE_BITS)
        own = self.own_step()
        if own is None:
            return power_of_two_at_most(wanted)
        while own < wanted:
            own *= 2
        return own

    def own_step(self) -> Fraction | None:
        """Return the step that is declared, or that its type has; None if there is none, as of floats."""
        known = self.facts
        given = self.aggregate.step or (known.step if known else None)
        if given is not None or self.type == "float":
            return given
        if self.type == "decimal":  # of an expression only the column's digits would tell
            return None if known is None else Fraction(1, 10**known.scale)
        return Fraction(1)


@dataclass(frozen=True)
class Grid:
    """A column on its grid, with the centre that its sums are about, in steps above the low end."""

    measured: Measured
    centre: int
    largest: float  # about how far one row is from the centre at most, in steps: the safe cap
    one_sign: bool = False  # no value below 0 was believed


def _measured_about(
    expression: Expression, kind: Type, step: Fraction, centre: int, off: Fraction = Fraction(0)
) -> Measured:
    low, high = centre - (1 << GRID_BITS), centre + (1 << GRID_BITS)
    if kind == "int":  # no further than an int goes
        low, high = max(low, -(-INT_LEAST // step)), min(high, INT_MOST // step)
    return Measured(expression, kind, step, low, high, off=off)


# ---- Vectors.

Role = Literal["rows", "units", "counted", "centred"]


@dataclass(frozen=True)
class GivenCap:
    """A cap given by hand: the length of a person at both bounds, with rows of the largest size."""

    rows: int
    groups: int
    most: int | None = None  # the most rows of any person, if declared
    each: float = 1.0  # how much one row adds at most, in steps

    def size(self, noise: NoiseKind) -> float:
        """Return the cap in the norm of this noise, in steps."""
        length = self.rows * (float(self.groups) if noise == "laplace" else sqrt(self.groups))
        return self.each * min(length, float(self.most or length))


def rows_given(grouping: Grouping) -> GivenCap | None:
    """Return the cap of a unit's rows that is given by hand; None if one of its bounds is missing."""
    declaration = grouping.declaration
    if declaration.rows_per_unit is None:
        return None
    groups = _groups_given(grouping)
    return None if groups is None else GivenCap(declaration.rows_per_unit, groups, declaration.most_rows_per_unit)


def _groups_given(grouping: Grouping) -> int | None:
    groups = grouping.declaration.groups_per_unit if grouping.keys else 1
    return groups if groups is None or not grouping.cells else min(groups, grouping.cells)


@dataclass(frozen=True)
class WantedVector:
    """A vector of a question: its kind, the outputs with its error, and the fact for its cap."""

    role: Role
    vector: Vector  # its profile's definition, without its column, which is the plan's
    subject: Subject | None  # None: its cap is one unit, with any facts
    names: tuple[str, ...] = ()  # of the outputs that it is released for
    signed: bool = False
    rows: int | None = None  # the vector that counts the rows of a mean
    of_mean: bool = False  # only a mean uses it
    safe: float = 1.0  # the cap without a believed value, in steps
    one_sign: bool = False  # no value below 0 was believed
    factors: tuple[int, int] | None = None  # the vectors of the sums with multiplied columns
    given: GivenCap | None = None  # the cap that is given by hand, so that its fact need not be learned

    @property
    def learned_from(self) -> Subject | None:
        """The fact that has to be learned for its cap; None if that is given, or one unit."""
        return self.subject if self.given is None else None


@dataclass
class Wanted:
    """All vectors of a question, and where each output comes from."""

    grouping: Grouping
    measured: list[Measured] = field(default_factory=list)
    vectors: list[WantedVector] = field(default_factory=list)
    together: list[list[int]] = field(default_factory=list)
    outputs: dict[str, PlannedOutput] = field(default_factory=dict)
    used: list[Fact] = field(default_factory=list)  # which decided what the vectors are

    def add(self, vector: WantedVector, *, beside: int | None = None) -> int:
        """Add a vector, scaled by itself or beside another, and return its index."""
        self.vectors.append(vector)
        at = len(self.vectors) - 1
        group = next((group for group in self.together if beside in group), None)
        if group is None:
            self.together.append([at])
        else:
            group.append(at)
        return at

    def together_with(self, place: int) -> list[int]:
        """Return the vectors that have one weight with this one, itself included."""
        return next(group for group in self.together if place in group)

    def place_of_sums(self, name: str) -> int:
        """Return the vector of the sums that an output of one column is made from."""
        made = self.outputs[name]
        if not isinstance(made, Sum | Mean | Variance | StandardDeviation):
            raise TypeError("this output is not made from the sums of one column")
        return made.release


def value_columns(query: Query, grouping: Grouping) -> Iterator[tuple[ValueColumn, list[Output]]]:
    """Yield each expression that is summed or averaged, with the outputs that come from it."""
    found: dict[tuple[object, ...], list[Output]] = {}
    for output in query.outputs:
        aggregate = output.aggregate
        if aggregate.kind in ("sum", "mean") or aggregate.kind in MOMENTS_OF_ONE:
            found.setdefault((aggregate.expression, aggregate.between, aggregate.step), []).append(output)
    for outputs in found.values():
        about_zero = all(output.aggregate.kind == "sum" for output in outputs)
        yield ValueColumn(outputs[0].aggregate, grouping, about_zero), outputs


def counts_rows(aggregate: Aggregate) -> bool:
    """Whether it is COUNT(*), or as good as that."""
    constant = isinstance(aggregate.expression, Value) and aggregate.expression.value is not None
    return aggregate.kind == "count" and (aggregate.expression is None or constant)


def count_subject(grouping: Grouping, role: Role, measured: tuple[Measured, ...] = ()) -> Subject:
    """Return the fact of how long a vector of counts is, in both norms if it has several cells."""
    kind: Literal["rows", "units", "counted"] = role  # type: ignore[assignment]
    vector = Vector(kind, 0 if measured else None, shift=COUNT_SHIFT)
    profiles = profiles_of(grouping, vector)[: 1 if kind == "units" else None]  # of ones the L1 norm tells the L2
    if kind != "units" and len(profiles) == 1 and not grouping.has_own_list:
        grouping = grouping.of_all_groups()  # the rows of a person are the same in number under every grouping
    return Subject(grouping, measured, profiles)


def profiles_of(grouping: Grouping, vector: Vector) -> tuple[Profile, ...]:
    """Return the profiles of a vector: with one cell both norms are the same."""
    one = Profile(1, vector)
    return (one,) if grouping.only_l1 or not grouping.keys else (one, Profile(2, vector))


def wanted_vectors(query: Query, grouping: Grouping, facts: Facts) -> Wanted | None:
    """Return the vectors of a question; None if a fact that decides which they are is missing.

    A mean has two separate vectors, rows and sums with one weight, and shares neither with a count: a count beside it
    is then as good as a count asked with its share of the loss.
    """
    wanted = Wanted(grouping)
    rows_names = tuple(output.name for output in query.outputs if counts_rows(output.aggregate))
    if rows_names:
        rows = wanted.add(count_vector(wanted, "rows", rows_names))
        wanted.outputs |= {
            output.name: planned(replace(output, aggregate=Aggregate("count")), rows)
            for output in query.outputs
            if output.name in rows_names
        }
    for column, outputs in value_columns(query, grouping):
        grid = column.grid(facts)
        if grid is None:
            return None
        wanted.measured.append(grid.measured)
        wanted.used += column.known(facts)
        _add_column(wanted, column, outputs, grid)
    _add_counts(wanted, query, rows_names)
    units = tuple(output.name for output in query.outputs if output.aggregate.kind == "count_units")
    if units:
        is_one = bool(rows_names) and _has_one_row(wanted.vectors[0], grouping, facts)
        at = 0 if is_one else wanted.add(count_vector(wanted, "units", units))
        if is_one:  # rows and units are the same numbers, so they are one release
            wanted.vectors[0] = replace(wanted.vectors[0], names=(*rows_names, *units))
        wanted.outputs |= {o.name: planned(o, at) for o in query.outputs if o.name in units}
    return wanted


def _has_one_row(rows: WantedVector, grouping: Grouping, facts: Facts) -> bool:
    """Whether a unit has one row at most: declared for each group, or learned of all of them."""
    if grouping.declaration.rows_per_unit is not None:
        return grouping.declaration.rows_per_unit == 1
    known = [] if rows.subject is None else rows.subject.rounds(facts)
    reading = reading_of(known, 0, rows.vector) if known else None
    return reading is not None and reading.top is not None and reading.tail_cap <= 1


def count_vector(
    wanted: Wanted, role: Role, names: tuple[str, ...], measured: tuple[Measured, ...] = (), at: int | None = None
) -> WantedVector:
    """Return a vector of counts; where rows in a group are bounded by hand, its cap is read off the groups."""
    if role == "units" and not wanted.grouping.keys:
        return WantedVector(role, Vector("units"), None, names)
    subject, given = count_subject(wanted.grouping, role, measured), rows_given(wanted.grouping)
    if role != "units" and given is None and wanted.grouping.declaration.rows_per_unit is not None:
        subject = count_subject(wanted.grouping, "units")
    kind: Literal["rows", "units", "counted"] = role  # type: ignore[assignment]
    if role == "units":
        groups = _groups_given(wanted.grouping)
        given = None if groups is None else GivenCap(1, groups, wanted.grouping.declaration.most_rows_per_unit)
    return WantedVector(role, Vector(kind, at, shift=COUNT_SHIFT), subject, names, given=given)


def _add_column(wanted: Wanted, column: ValueColumn, outputs: list[Output], grid: Grid) -> None:
    """Add the vectors of one column."""
    place = len(wanted.measured) - 1
    vector = Vector("centred", 0, centre=grid.centre)
    subject = Subject(wanted.grouping, (grid.measured,), profiles_of(wanted.grouping, vector))
    names = tuple(output.name for output in outputs if output.aggregate.kind not in MOMENTS_OF_ONE)
    of_mean = all(output.aggregate.kind != "sum" for output in outputs)
    denominator = None
    if not column.about_zero:
        counted = count_vector(wanted, "counted", (), (grid.measured,), place)
        # a person has values in at most all of their rows
        denominator = wanted.add(replace(counted, subject=count_vector(wanted, "rows", ()).subject))
    at = wanted.add(
        WantedVector(
            "centred",
            replace(vector, column=place),
            subject,
            names,
            signed=not column.about_zero,
            rows=denominator,
            of_mean=of_mean,
            safe=grid.largest,
            one_sign=grid.one_sign,
            given=sums_given(wanted.grouping, grid, column),
        ),
        beside=denominator,
    )
    wanted.outputs |= {output.name: planned(output, at, place) for output in outputs}


def sums_given(grouping: Grouping, grid: Grid, column: ValueColumn) -> GivenCap | None:
    """Return the cap of sums that is given by hand; None if a bound or the range is missing."""
    given = rows_given(grouping)
    return None if given is None or column.between is None else replace(given, each=grid.largest)


def _add_counts(wanted: Wanted, query: Query, rows_names: tuple[str, ...]) -> None:
    """Add the vectors of COUNT(x): one for each expression."""
    counted: dict[Expression, int] = {}
    places: dict[Expression, int] = {}
    for output in query.outputs:
        aggregate = output.aggregate
        if aggregate.kind != "count" or output.name in rows_names or aggregate.expression is None:
            continue
        expression = aggregate.expression
        if expression not in counted:
            measured = Measured(expression, "null", Fraction(1), 0, 1, counts_only=True)
            wanted.measured.append(measured)
            places[expression] = len(wanted.measured) - 1
            names = tuple(o.name for o in query.outputs if o.aggregate == aggregate)
            counted[expression] = wanted.add(count_vector(wanted, "counted", names, (measured,), places[expression]))
        at = counted[expression]
        column = wanted.vectors[at].vector.column
        wanted.outputs[output.name] = planned(output, at, 0 if column is None else column)


# How the key of a fact begins that is a ceiling; and of one about all rows, which may be known of the table that the
# rows of a question are made from.
AT_MOST = "at most "
AT_MOST_OF_TABLE = "at most, of all rows, "
# Counts, which leaving out rows cannot raise; a sum of values on either side of its middle can be larger.
COUNTING = ("rows", "counted", "units")


def keys_of_ceilings(subject: Subject, facts: Facts) -> Iterator[str]:
    """Yield the keys of facts that would be ceilings of a subject, if they are known: of each, the next round."""
    for wider in wider_than(subject):
        yield _prefix(wider) + wider.key(len(_rounds(wider, facts)))


def under_ceilings(reading: Reading, subject: Subject, facts: Facts) -> tuple[Reading, tuple[Fact, ...]]:
    """Return a reading of a subject's totals, cut to the ceilings from facts about more rows; and those facts.

    A declared maximum of rows holds for every count, and a person is in no more groups than there are.
    """
    used: list[Fact] = []
    kind, most = subject.profiles[0].vector.kind, subject.grouping.declaration.most_rows_per_unit
    if most is not None and kind in COUNTING:
        reading = at_most(reading, float(most))
    if kind == "units" and subject.grouping.cells:
        reading = clipped(reading, float(subject.grouping.cells))  # a profile of found groups has the small ones too
    for wider in wider_than(subject):
        rounds = _rounds(wider, facts)
        if not rounds:
            continue
        lower = below(reading, reading_of(rounds, 0, wider.profiles[0].vector))
        used += rounds if lower is not reading else []
        reading = lower
    return reading, tuple(used)


def wider_than(subject: Subject) -> Iterator[Subject]:
    """Yield the facts of more rows, or of larger cells, in which every person has at least the same."""
    vector, grouping = subject.profiles[0].vector, subject.grouping
    if vector.kind not in COUNTING or subject.profiles[0].norm != 1:
        return
    one = Profile(1, vector)
    if grouping.where is not None and (grouping.keys or vector.kind != "rows"):
        for profiles in ((one,), (one, Profile(2, vector)))[: 2 if grouping.keys else 1]:
            yield replace(subject, grouping=grouping.of_all_rows(), profiles=profiles)
    for where in dict.fromkeys((grouping.where, None)):
        one_cell: Grouping = replace(grouping.of_all_groups(), where=where)
        if one_cell != grouping or vector.kind != "rows":
            yield count_subject(one_cell, "rows")


def _prefix(subject: Subject) -> str:
    grouping = subject.grouping
    is_of_table = grouping.where is None and not grouping.keys and not subject.measured
    return AT_MOST_OF_TABLE if is_of_table else AT_MOST


def _rounds(subject: Subject, facts: Facts) -> list[Fact]:
    known: list[Fact] = []
    while (key := _prefix(subject) + subject.key(len(known))) in facts:
        known.append(subject.sound(facts[key]))
    return known
