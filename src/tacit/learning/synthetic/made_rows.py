"""`MadeRows`: what `synthesize` returns. Rows are drawn for free; tables of them have their errors.

Everything here follows from noisy integers and public facts, so all of it may be published.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.files import path_of
from tacit.learning.rounds import Rounds, train
from tacit.learning.synthetic.linked_rows import linked_rows
from tacit.learning.synthetic.noisy_tables import RowsState, deviations, plan_of_rows, whole_guess
from tacit.learning.synthetic.row_rules import keeping_rules
from tacit.learning.synthetic.rows_report import NORMAL_95, RowsReport, TableError, report_of
from tacit.learning.undeclared import FitPlan, one_call
from tacit.ledger import Receipt
from tacit.noise import Keystream
from tacit.numbers import Number, whole
from tacit.plan import UNIT, PairDistances
from tacit.privacy import ApproximateLoss

ROWS_MOST = 10**9
# How often rows that break a rule are drawn again.
TRIES = 50
# A column is said to come out as missing if more of its rows than this do.
GAP = 0.2
# A printed crosstab has this many columns at most.
COLUMNS_SHOWN = 12


@dataclass(eq=False, repr=False)
class MadeRows:
    """Made-up rows of a protected table: draw any number of rows, count them, and see their errors.

    made = visits.synthesize(epsilon=1)
    made.to_pandas()
    made.report()
    """

    state_: RowsState
    loss_: ApproximateLoss
    receipt_: Receipt | None = None
    learned_: str = ""
    _certify: Callable[[], Mapping[str, Any]] | None = None
    _table: Table | None = None  # for a paid report
    # of rows from a server: the paid part of a report, by what it may cost
    _elsewhere: Callable[[Number, Number | None], Mapping[str, Any]] | None = None

    plan_of = staticmethod(plan_of_rows)

    @classmethod
    def paid_for(cls, plan: Callable[[], FitPlan], *, analyst: str | None, request_id: str | None) -> "MadeRows":
        """Charge for the noisy tables of a plan, ask for them and return their rows; asked again, they are free."""
        with one_call(plan, analyst) as planned:
            paid = train(
                planned.table,
                planned.coded,
                planned.events,
                asked=planned.asked,
                key=repr(planned.recipe),
                words=planned.words,
                steps=planned.learn,
                analyst=analyst,
                request_id=request_id,
            )
        certify = partial(planned.table.session.ledger.certificate, paid.receipt.number)
        return cls(planned.model(paid.value), planned.loss, paid.receipt, planned.known.words, certify, planned.table)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.state_.design.columns)

    @property
    def people(self) -> int:
        """The number of people, as the noisy tables show it."""
        return max(round(self.state_.total), 0)

    def rows(self, count: int | None = None) -> pa.Table:
        """Draw rows as an Arrow table, `count` or those of the noisy number of people; new ones at each call."""
        wanted = self.people if count is None else whole(count, name="count", least=0)
        if wanted > ROWS_MOST:
            raise InvalidParameter(f"at most {ROWS_MOST:,} rows are drawn at once\nhint: made.rows(1_000_000)")
        rules = self.state_.design.rules
        if self.state_.design.people is not None:
            return linked_rows(self.state_, self.people if count is None else wanted, count)
        found = self._drawn_once(wanted)
        if not rules:
            return found
        parts = [found.filter(pa.array(keeping_rules(found, rules)))]
        missing = wanted - parts[0].num_rows
        for _ in range(TRIES):
            if not missing:
                break
            more = self._drawn_once(min(2 * missing + 100, ROWS_MOST))
            parts.append(more.filter(pa.array(keeping_rules(more, rules))).slice(0, missing))
            missing -= parts[-1].num_rows
        if missing:
            raise QueryRefused(
                "nearly all rows of the noisy tables break the rules, so no rows are shown\nhint: check the rules, or"
                " leave one out: rules=[...]"
            )
        return pa.concat_tables(parts)

    def _drawn_once(self, wanted: int) -> pa.Table:
        """Draw rows, without regard to rules."""
        bits, state = Keystream(), self.state_
        cells = state.field.rows(wanted, bits)
        return pa.table({name: state.values(at, cells[:, at], bits) for at, name in enumerate(self.columns)})

    @cached_property
    def _drawn(self) -> pa.Table:
        return self.rows()

    def to_arrow(self) -> pa.Table:
        """Return the made-up rows as an Arrow table: the noisy number of people, the same at each call."""
        return self._drawn

    def to_pandas(self) -> Any:
        """Return the made-up rows as a pandas frame, the same at each call."""
        return self._drawn.to_pandas()

    def to_polars(self) -> Any:
        """Return the made-up rows as a Polars frame, the same at each call."""
        import polars as pl

        return pl.from_arrow(self._drawn)

    def to_parquet(self, path: str | Path, count: int | None = None) -> None:
        """Write the made-up rows to a Parquet file, or `count` new ones."""
        pq.write_table(self._drawn if count is None else self.rows(count), path_of(path))

    def crosstab(self, first: str, second: str) -> "Crosstab":
        """Return the counts by two columns with their ±: measured ones if the pair was chosen, else the model's."""
        names, state = self.state_.names, self.state_
        for name in (first, second):
            if name not in names:
                raise InvalidParameter(f"there is no column '{name}' here\nhint: the columns are {', '.join(names)}")
        if first == second:
            raise InvalidParameter("a crosstab is of two different columns\nhint: made.crosstab('age', 'ward')")
        pair = (names.index(first), names.index(second))
        inner = (min(pair), max(pair))
        fitted = state.field.table(inner) * state.total
        measured = next((each for each in state.pair_tables if each.columns == inner), None)
        noisy = None
        if measured is not None:
            own = measured.counts if pair == inner else measured.counts.T
            noisy = tuple(tuple(float(each) for each in row) for row in own)
        labels = [tuple(state.words(at)) for at in pair]
        return Crosstab(
            (first, second),
            (labels[0], labels[1]),
            tuple(tuple(float(each) for each in row) for row in (fitted if pair == inner else fitted.T)),
            noisy,
            None if measured is None else NORMAL_95 * float(np.max(measured.sigma)),
            state.distances.get(inner, 0.0) / max(state.total, 1) / 2,
            NORMAL_95 * deviations(state.events)[1] / max(state.total, 1) / 2,
        )

    def report(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        table: Table | None = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> RowsReport:
        """Return the errors of the rows against the noisy tables, for free; with an epsilon, also of other pairs.

        The paid report measures how far each pair that was not chosen is from the protected table, as one charge. Rows
        from a file need their `table` for it.
        """
        if epsilon is None:
            return report_of(self.state_)
        of = self._table if table is None else table
        if of is None and self._elsewhere is not None and analyst is None and request_id is None:
            paid_for = self._elsewhere(epsilon, delta)
            found = [TableError(tuple(each["columns"]), each["apart"], each["error"]) for each in paid_for["others"]]
            return report_of(self.state_, found, paid_for["paid"])
        if of is None:
            raise InvalidParameter(
                "a paid report reads the protected table\nhint: made.report(epsilon=0.2, table=visits)"
            )
        state = self.state_
        measured = {each.columns for each in state.pair_tables}
        others = [pair for pair in state.design.pairs if pair not in measured]
        if not others:
            return report_of(state)
        events, asked = noise_for(of.session, epsilon, delta, [(len(others) * UNIT**2, Fraction(1))])
        distances = PairDistances({pair: whole_guess(state.field.table(pair) * state.total) for pair in others})
        noisy = hashlib.sha256(json.dumps(state.noisy).encode()).hexdigest()

        def measure(rounds: Rounds) -> list[int]:
            rounds.use_bins(state.maps)
            return [int(each) for each in rounds.distances(distances)]

        paid = train(
            of,
            state.design.coded(of.session.declaration.unit_column, of.frame.where),
            events,
            asked=asked,
            key=repr(("report of rows 1", state.design, noisy)),
            words=f"a report of made-up rows of {', '.join(state.names)}",
            steps=measure,
            analyst=analyst,
            request_id=request_id,
        )
        people = 2 * UNIT * state.total
        error = NORMAL_95 * float(events[0].sigma) / people
        errors = [
            TableError(tuple(state.names[at] for at in pair), min(max(each / people, 0.0), 1.0), error)
            for pair, each in zip(others, paid.value, strict=True)
        ]
        loss = ApproximateLoss(asked.epsilon, asked.delta)
        return report_of(state, errors, "Free: paid for before." if paid.free else f"Spent {loss} on this report.")

    def certificate(self) -> Mapping[str, Any]:
        """Return the ledger's signed certificate of the charge; rows from a file cannot reach it."""
        if self._certify is None:
            number = "" if self.receipt_ is None else f" {self.receipt_.number}"
            raise InvalidParameter(
                f"these rows were read from a file and cannot reach their ledger\nhint: tacit certificate{number}, on"
                " the machine with the ledger"
            )
        return self._certify()

    def save(self, path: str | Path) -> None:
        """Write what rows are made of to a file of JSON, noisy integers and public facts; `learning.load` reads it."""
        from tacit.learning.model_file import save

        save(self, path)

    @classmethod
    def read(
        cls, text: str, *, elsewhere: Callable[[Number, Number | None], Mapping[str, Any]] | None = None
    ) -> "MadeRows":
        """Return made-up rows from the text of a file that `save` wrote; `elsewhere` charges for their reports."""
        from tacit.learning.model_file import model_from

        found = model_from(text)
        if not isinstance(found, cls):
            raise InvalidParameter("the text is of another model, and not of made-up rows\nhint: tacit.learning.load")
        found._elsewhere = elsewhere
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return what is saved: noisy numbers and public facts; never a table or a ledger."""
        kept = {name: value for name, value in vars(self).items() if name != "_drawn"}
        return kept | {"_certify": None, "_table": None, "_elsewhere": None}

    def __repr__(self) -> str:
        pairs = len(self.state_.noisy["pairs"])
        return printable(
            f"Made-up rows of {', '.join(self.columns)}: about {self.people:,} people, {pairs} of"
            f" {len(self.state_.design.pairs)} pairs of columns measured.\n"
            f"Good for averages and models; not for rare people, extremes or joins. made.report() shows the errors.\n"
            f"{self._gaps()}Spent {self.loss_}; all rows and tables of it are free.",
            keeping="\n",
        )

    def _gaps(self) -> str:
        """Return which columns were left out, and which come out as missing more often than their keys."""
        state, lines = self.state_, []
        if "left out: " in self.learned_:
            names = self.learned_.split("left out: ", 1)[1].split(";")[0]
            lines.append(
                f"Left out: {names}. Declare keys, ranges or types: the columns of a CSV file are text until then."
            )
        for at, column in enumerate(state.design.columns):
            gone = 0.0 if column.is_binned else float(state.field.table((at,))[state.bins[at][-1]])
            if gone > GAP and state.bins[at][-1] not in state.bins[at][:-1]:
                lines.append(
                    f"{gone:.0%} of {column.name} come out as missing: no value, or none that is listed or found."
                )
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, repr=False)
class Crosstab:
    """Counts of people by two columns: it prints as a table; `to_pandas` returns a frame.

    `counts` are of the rows' own law. `measured` are the noisy counts, with `error` as their ± (95 %), if the pair was
    measured; if not, `apart` is how far the pair is from independence, as a share of people, ± `apart_error`.
    """

    columns: tuple[str, str]
    labels: tuple[tuple[str, ...], tuple[str, ...]]
    counts: tuple[tuple[float, ...], ...]
    measured: tuple[tuple[float, ...], ...] | None
    error: float | None
    apart: float
    apart_error: float

    def to_arrow(self) -> pa.Table:
        """Return the counts of the rows' law as an Arrow table: a row for each value of the first column."""
        cells = {label: [row[at] for row in self.counts] for at, label in enumerate(self.labels[1])}
        return pa.table({self.columns[0]: list(self.labels[0]), **cells})

    def to_pandas(self) -> Any:
        """Return the counts of the rows' law as a pandas frame."""
        return self.to_arrow().to_pandas().set_index(self.columns[0])

    def __str__(self) -> str:
        shown = self.counts if self.measured is None else self.measured
        left = len(self.labels[1]) - COLUMNS_SHOWN
        head = [f"{self.columns[0]} \\ {self.columns[1]}", *self.labels[1][:COLUMNS_SHOWN]]
        body = [
            [label, *(f"{each:,.0f}" for each in row[:COLUMNS_SHOWN])]
            for label, row in zip(self.labels[0], shown, strict=True)
        ]
        widths = [max(len(row[place]) for row in (head, *body)) for place in range(len(head))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True))]
            )
            for row in (head, *body)
        ]
        lines.insert(1, "─" * len(lines[0]))
        return printable(
            "\n".join([*lines, *([f"{left} more columns are in to_pandas()."] if left > 0 else []), "", self._note()]),
            keeping="\n",
        )

    __repr__ = __str__

    def _note(self) -> str:
        if self.error is not None:
            return (
                f"Measured: each count is noisy, ± {self.error:,.0f} (95 %), and may be below 0. Made-up rows follow"
                " .counts, which fit all tables best."
            )
        return (
            "Not measured: the counts follow from other tables, without an interval. The pair was found to be"
            f" {max(self.apart, 0):.1%} ± {self.apart_error:.1%} from independence."
        )
