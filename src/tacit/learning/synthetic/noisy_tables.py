"""Plan made-up rows, ask for their tables in three rounds, and derive everything else from the noisy integers.

One batch of Gaussian noise pays for all: the counts of each column, the distance of every pair from the product of its
columns, and the tables of the chosen pairs. All else is post-processing (docs/proofs/pair-distances.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np

from tacit.asking import Learn, Table, noise_for
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean, printable
from tacit.learning.features import Feature
from tacit.learning.priors import Coarse
from tacit.learning.rounds import Rounds
from tacit.learning.synthetic.field import Field
from tacit.learning.synthetic.fitting import NoisyCounts, fitted
from tacit.learning.synthetic.linked_rows import (
    PeopleDesign,
    bins_of_rows,
    first_share,
    people_design,
    shares_of_rows,
    words_of_rows,
)
from tacit.learning.synthetic.made_columns import (
    MadeColumn,
    Range,
    bins_most,
    cell_shares,
    made_columns,
    read_columns,
)
from tacit.learning.synthetic.pair_choice import PAIR_WEIGHT, Candidates, Pair, chosen_pairs
from tacit.learning.synthetic.row_rules import RowRule, possible_bins, read_rules
from tacit.learning.undeclared import FitPlan, known_columns
from tacit.noise import Keystream
from tacit.numbers import Flags, Floats, Integers, Number, brief
from tacit.plan import UNIT, CodedColumn, CodedPlan, PairDistances, PairTables, count_moves_squared
from tacit.privacy import GaussianNoise

# The parts of the loss: counts of columns, distances of pairs, tables of pairs.
FOR_COLUMNS, FOR_DISTANCES = Fraction(12, 100), Fraction(12, 100)
VERSION = "rows 1"

# What the rounds gave: lists of integers by name.
Noisy = dict[str, Any]


@dataclass(frozen=True)
class RowsDesign:
    """What made-up rows are made of, from public facts: the columns, and the coarse cells of wide ones."""

    columns: tuple[MadeColumn, ...]
    coarse: tuple[tuple[int, Feature, tuple[int, ...]], ...]
    target: int | None = None
    rules: tuple[RowRule, ...] = ()
    people: PeopleDesign | None = None  # of rows that are held together

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns of the fit: of rows, then the number of rows and the row before."""
        return tuple(
            f"{each.name} of the row before" if each.of == "before" else each.name for each in self.coded_columns
        )

    @property
    def varying(self) -> tuple[int, ...]:
        """The columns that differ between rows of one person."""
        once = () if self.people is None else self.people.once
        return tuple(at for at in range(len(self.columns)) if at not in once)

    @property
    def before(self) -> tuple[int, ...]:
        """The columns of the row before, one for each that differs."""
        return () if self.people is None else tuple(range(self.singles, self.singles + len(self.varying)))

    @property
    def known(self) -> tuple[int, ...]:
        """The columns that a row follows from: the person's, the number of rows and those of the row before."""
        return () if self.people is None else (*self.people.once, len(self.columns), *self.before)

    @property
    def singles(self) -> int:
        """How many columns are counted by themselves: those of rows, and the number of rows."""
        return len(self.columns) + (self.people is not None)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of columns."""
        return tuple(combinations(range(self.singles + len(self.before)), 2))

    @property
    def counted(self) -> list[int]:
        """The coded columns of which cells are counted, wide ones twice."""
        start = self.singles + len(self.before)
        return [*range(self.singles), *range(start, start + len(self.coarse))]

    @property
    def coded_columns(self) -> list[CodedColumn]:
        """The columns of the fit, as they are coded."""
        columns = [column.feature.column for column in self.columns]
        if self.people is None:
            return columns
        before = [replace(columns[at], of="before") for at in self.varying]
        return [*columns, self.people.rows_column(), *before]

    def coded(self, unit: str | None, where: Any) -> CodedPlan:
        """Return how rows are read."""
        columns = (*self.coded_columns, *(feature.column for _, feature, _ in self.coarse))
        return CodedPlan(unit, where, columns, order=None if self.people is None else self.people.order)

    @property
    def rounds(self) -> list[tuple[int, Fraction]]:
        """The square of how far one unit moves each kind of round, and its share of the loss."""
        return [
            (count_moves_squared(len(self.counted)), FOR_COLUMNS),
            (len(self.pairs) * UNIT**2, FOR_DISTANCES),
            ((PAIR_WEIGHT * UNIT) ** 2, 1 - FOR_COLUMNS - FOR_DISTANCES),
        ]


def plan_of_rows(
    table: Table,
    epsilon: Number = 1,
    delta: Number | None = None,
    *,
    columns: Iterable[str] | Mapping[str, Range | None] | None = None,
    target: str | None = None,
    rules: Iterable[str] = (),
    once: Sequence[str] | None = None,
    order: str | None = None,
    learn: Learn = None,
    analyst: str | None = None,
) -> FitPlan:
    """Return the plan of made-up rows: free, made of public facts, and printed as text."""
    if not isinstance(table, Table):
        raise InvalidParameter("rows are made from a protected table\nhint: tacit.table(...).synthesize(epsilon=1)")
    if table.frame.keys:
        raise QueryRefused("rows are made from the whole table\nhint: call synthesize before group_by, or after where")
    if table.frame.derived:
        raise QueryRefused("rows are made of stored columns\nhint: call synthesize before derive(...)")
    names, ranges = read_columns(columns)
    known = known_columns(table, _usual(table, ranges) if names is None else names, None, epsilon, kind="regressor",
                          learn=learn, analyst=analyst)  # fmt: skip
    if len(known.features or ()) < 2 and (lost := (*known.left_out, *known.unseen)):
        raise QueryRefused(
            f"of {', '.join(lost)} too few people share a value, or its range is unclear: fewer than two columns are"
            " left\nhint: declare keys or ranges; the columns of a CSV file are text until their type is declared:"
            f" columns={{'{lost[0]}': {{'type': 'int'}}}}"
        )
    found, coarse = made_columns(known.table, known.features or (), ranges)
    declaration = known.table.frame.declaration
    kept, people = read_rules(rules, found, declaration), people_design(once, order, found, declaration)
    design = RowsDesign(found, coarse, _target_of(target, [column.name for column in found]), kept, people)
    events, asked = noise_for(table.session, known.epsilon, delta, design.rounds)
    return FitPlan(
        known.table,
        tuple(column.feature for column in found),
        design.coded(table.session.declaration.unit_column, known.table.frame.where),
        events,
        asked,
        known,
        recipe=(VERSION, design),
        words=f"made-up rows of {', '.join(column.name for column in found)}",
        text=_rows_plan_text(design, events, known.words, float(asked.epsilon + known.cost), float(asked.delta)),
        learn=partial(ask, design=design, events=events),
        model=partial(RowsState, design, events),
    )


def _usual(table: Table, ranges: Mapping[str, Range]) -> list[str]:
    """Return the columns that rows are made of by default: all but the unit, and times without a range."""
    facts = table.frame.declaration.columns
    return [
        name
        for name, each in facts.items()
        if name != table.frame.declaration.unit_column
        and (each.keys is not None or each.type not in ("date", "timestamp", "other") or name in ranges)
    ]


def _target_of(target: str | None, names: Sequence[str]) -> int | None:
    if target is None:
        return None
    if target not in names:
        raise QueryRefused(
            f"the target '{target}' is not among the columns of made-up rows{did_you_mean(str(target), names)}"
            "\nhint: name it in columns, and declare its keys or its range"
        )
    return names.index(target)


def _rows_plan_text(
    design: RowsDesign, events: Sequence[GaussianNoise], learned: str, epsilon: float, delta: float
) -> str:
    """Return the plan in words: the columns, the noise and the cost."""
    of_column, of_distance, of_pair = deviations(events)
    some = usual_pairs(design)
    of_rows = design.names[: len(design.columns)]
    lines = [
        f"Made-up rows of {len(of_rows)} columns: {', '.join(of_rows)}.",
        *([] if design.people is None else [_words_of_people(design, design.people)]),
        f"Counts of each column: noise of ± {1.96 * of_column:,.0f} people a cell (95 %).",
        f"Distances of {len(design.pairs)} pairs of columns from independence: ± {1.96 * of_distance:,.0f} people.",
        f"Tables of chosen pairs: if {some} are chosen, ± {1.96 * of_pair * sqrt(some):,.0f} people a cell.",
        "Other pairs, and three columns at once, follow only through chosen pairs.",
        f"Cost: ε {brief(epsilon)} at δ {brief(delta)}, whatever the rows hold; all rows and tables are then free.",
    ]
    lines += [learned] if learned else []
    return printable("\n".join(lines), keeping="\n")


def usual_pairs(design: RowsDesign) -> int:
    """Return about how many pairs are chosen."""
    return min(len(design.pairs), 2 * len(design.columns))


def _words_of_people(design: RowsDesign, people: PeopleDesign) -> str:
    once = ", ".join(design.names[at] for at in people.once)
    ordered = "" if people.order is None else f", in the order of {design.names[people.order]}"
    return (
        f"Several rows of one {people.unit}{ordered}, held together by a made-up {people.unit}"
        + (f"; {once} once for all of them" if once else "")
        + ". The number of rows and the row before count as columns."
    )


def deviations(events: Sequence[GaussianNoise]) -> tuple[float, float, float]:
    """Return the noise of a count, of a distance, and of a cell if one pair had all of its round, in people."""
    of_column, of_distance, of_pair = (float(event.sigma) / UNIT for event in events)
    return of_column, of_distance, of_pair / PAIR_WEIGHT


def ask(rounds: Rounds, design: RowsDesign, events: tuple[GaussianNoise, ...]) -> Noisy:
    """Ask for counts, distances and tables of pairs; return the noisy integers."""
    noisy: Noisy = {"counts": [each.tolist() for each in rounds.counts(design.counted)]}
    state = RowsState(design, events, noisy)
    noisy["bins"] = [bins.tolist() for bins in state.found_bins()]
    rounds.use_bins(state.maps)
    guesses = {pair: whole_guess(guess) for pair, guess in state.guesses.items()}
    noisy["distances"] = rounds.distances(PairDistances(guesses)).tolist()
    linked = [rule for rule in state.possible if len(rule) == 2]
    weights = chosen_pairs(state.candidates, linked)
    noisy["pairs"] = [[*pair, weight] for pair, weight in weights.items()]
    noisy["tables"] = []
    if weights:
        sizes = [state.sizes[first] * state.sizes[second] for first, second in weights]
        found = rounds.pair_tables(PairTables(weights))
        noisy["tables"] = [each.tolist() for each in np.split(found, np.cumsum(sizes)[:-1])]
    return noisy


def whole_guess(people: Floats) -> Integers:
    """Return a guessed table in whole steps of UNIT."""
    found: Integers = np.rint(np.maximum(people, 0).ravel() * UNIT).astype(np.int64)
    return found


@dataclass(eq=False)
class RowsState:
    """Made-up rows as noisy integers and public facts; everything else follows from them."""

    design: RowsDesign
    events: tuple[GaussianNoise, ...]
    noisy: Noisy

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.design.names

    @property
    def column_counts(self) -> list[Floats]:
        """The noisy number of people in each cell of each column, as coded."""
        return [np.array(each, dtype=np.float64) / UNIT for each in self.noisy["counts"]]

    def found_bins(self) -> list[Integers]:
        """Return the bins of each column, by its noisy counts."""
        counts, many = self.column_counts, self.design.singles
        coarse = {
            place: Coarse(counts[many + at], np.array(of_cells, dtype=np.int64))
            for at, (place, _, of_cells) in enumerate(self.design.coarse)
        }
        sigma, _, of_pair = deviations(self.events)
        people = float(np.mean([each.sum() for each in counts]))
        most = bins_most(people, of_pair * sqrt(usual_pairs(self.design)))
        of_rows = [] if self.design.people is None else [bins_of_rows(counts[many - 1], sigma)]
        columns = enumerate(self.design.columns)
        own = [column.bins(counts[place], sigma, coarse.get(place), most) for place, column in columns]
        return [*own, *of_rows]

    @cached_property
    def bins(self) -> list[Integers]:
        """The bin of each cell of each column."""
        found = [np.array(each, dtype=np.int64) for each in self.noisy["bins"]]
        varying = self.design.varying if self.design.people is not None else ()
        return [*found, *(np.append(found[at], found[at].max() + 1) for at in varying)]

    def words(self, at: int) -> list[str]:
        """Return what each bin of a column holds, in words."""
        design = self.design
        if at < len(design.columns):
            return design.columns[at].words(self.bins[at])
        if at < design.singles:
            return words_of_rows(self.bins[at])
        own = design.varying[at - design.singles]
        return [*design.columns[own].words(self.bins[own]), "first row"]

    def values(self, at: int, bins: Integers, bits: Keystream) -> Any:
        """Return values for the bins that made-up rows have in a column."""
        return self.design.columns[at].values(bins, self.bins[at], self.shares[at], bits)

    @property
    def maps(self) -> list[Integers | None]:
        """The bin of each cell of all columns that are coded; coarse ones stay."""
        return [*self.bins, *(None for _ in self.design.coarse)]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many bins each column has."""
        return tuple(int(each.max()) + 1 for each in self.bins)

    @cached_property
    def shares(self) -> list[Floats]:
        """How likely each fine cell is within its bin."""
        found = []
        for column, of_cells, counts in zip(self.design.columns, self.bins, self.column_counts, strict=False):
            edges = column.feature.column.edges
            widths = np.append(np.diff(edges), 1).astype(np.float64) if edges else np.ones(len(counts))
            found.append(cell_shares(counts, of_cells, widths, deviations(self.events)[0]))
        if self.design.people is not None:
            at = len(self.design.columns)
            found.append(shares_of_rows(self.column_counts[at], self.bins[at], deviations(self.events)[0]))
        return found

    @cached_property
    def single_tables(self) -> list[NoisyCounts]:
        """The noisy counts of each column's bins, of fine cells and coarse ones together."""
        sigma, found = deviations(self.events)[0], []
        wide = {place: (at, np.array(of_cells)) for at, (place, _, of_cells) in enumerate(self.design.coarse)}
        for place, of_cells in enumerate(self.bins[: self.design.singles]):
            counts, variance = self.column_counts[place], np.bincount(of_cells).astype(np.float64)
            if place in wide:
                at, groups = wide[place]
                coarse = self.column_counts[self.design.singles + at]
                for group in range(int(groups.max()) + 1):
                    inside = np.flatnonzero(groups == group)
                    counts[inside] += (coarse[group] - counts[inside].sum()) / (len(inside) + 1)
                    variance -= np.bincount(of_cells[inside], minlength=len(variance)) ** 2 / (len(inside) + 1)
            of_bins: Floats = np.bincount(of_cells, weights=counts).astype(np.float64)
            found.append(NoisyCounts((place,), of_bins, sigma * np.sqrt(variance)))
        return found

    @cached_property
    def total(self) -> float:
        """The number of people, by all tables: each weighs as its noise allows."""
        tables = [*self.single_tables, *(self.pair_tables if "tables" in self.noisy else ())]
        return _total_of(tables)

    @cached_property
    def first_total(self) -> float:
        """The number of people by the columns' counts, as it was when pairs were chosen."""
        return _total_of(self.single_tables)

    @cached_property
    def possible(self) -> dict[tuple[int, ...], Flags]:
        """The bins that rules of one or two columns leave possible; other rules only have rows drawn again."""
        found: dict[tuple[int, ...], Flags] = {}
        for rule in self.design.rules:
            if len(rule.columns) <= 2:
                allowed = possible_bins(rule, self.design.columns, self.bins)
                found[rule.columns] = found.get(rule.columns, np.ones_like(allowed)) & allowed
        return found

    @cached_property
    def first_field(self) -> Field:
        """The field of independent columns; the row before is like any row, if there is one."""
        tables = [*self.single_tables]
        if self.design.before:
            share = first_share(self.column_counts[len(self.design.columns)], deviations(self.events)[0])
            for at, own in zip(self.design.before, self.design.varying, strict=True):
                counts = np.append(tables[own].counts * (1 - share), self.first_total * share)
                tables.append(NoisyCounts((at,), counts, np.append(tables[own].sigma, deviations(self.events)[0])))
        return fitted(self.sizes, tables, self.first_total, possible=self.possible)[0]

    @cached_property
    def guesses(self) -> dict[Pair, Floats]:
        """The number of people in each pair's cells if its columns were independent, but for rules."""
        field, total = self.first_field, self.first_total
        if any(len(columns) > 1 for columns in self.possible):
            return {pair: field.table(pair) * total for pair in self.design.pairs}
        each = [field.table((at,)) for at in range(len(self.sizes))]
        return {pair: np.outer(each[pair[0]], each[pair[1]]) * total for pair in self.design.pairs}

    @property
    def distances(self) -> dict[Pair, float]:
        """The noisy distance of each pair from independence, in people."""
        each = (float(distance) / UNIT for distance in self.noisy["distances"])
        return dict(zip(self.design.pairs, each, strict=True))

    @property
    def candidates(self) -> Candidates:
        """The pairs to choose from."""
        _, of_distance, of_pair = deviations(self.events)
        return Candidates(
            self.sizes, self.guesses, self.distances, of_distance, of_pair, self.first_total, self.design.target
        )

    @cached_property
    def pair_tables(self) -> list[NoisyCounts]:
        """The noisy counts of the chosen pairs."""
        sigma = deviations(self.events)[2] * PAIR_WEIGHT
        return [
            NoisyCounts(
                (first, second),
                np.array(table, dtype=np.float64).reshape(self.sizes[first], self.sizes[second]) / (UNIT * weight),
                sigma / weight,
            )
            for (first, second, weight), table in zip(self.noisy["pairs"], self.noisy["tables"], strict=True)
        ]

    @cached_property
    def field(self) -> Field:
        """The fitted law of all columns together."""
        return fitted(self.sizes, [*self.single_tables, *self.pair_tables], self.total, possible=self.possible)[0]


def _total_of(tables: Sequence[NoisyCounts]) -> float:
    """Return the number of people that noisy tables show together, 1 at least."""
    weights = [1 / float((np.zeros(each.counts.shape) + each.sigma**2).sum()) for each in tables]
    return max(float(np.average([float(each.counts.sum()) for each in tables], weights=weights)), 1.0)
