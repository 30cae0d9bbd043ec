"""`RowsReport`: how far the law of made-up rows is from the noisy tables, in numbers and as a picture.

The free report compares with released tables only, beside the distance that their noise explains. A paid one measures
the pairs that were not: the distance between the law and the protected table, with an interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import printable
from tacit.learning.synthetic.fitting import NoisyCounts
from tacit.learning.synthetic.noisy_tables import RowsState
from tacit.numbers import Floats
from tacit.pictures import Panel, Sheet, SheetCell, Spec, as_chart, chart, check_path, page, write

NORMAL_95 = 1.96
# The mean size of standard normal noise.
MEAN_NOISE = 0.8
PAIRS_SHOWN, COLUMNS_DRAWN, BINS_DRAWN = 8, 6, 30
LETTERS = (60, 84)


@dataclass(frozen=True)
class TableError:
    """How far the law is from one table, as a share of people, and how far noise puts a perfect law on average.

    Of a paid report `noise` is the ± of the distance (95 %), and 0 is a perfect law.
    """

    columns: tuple[str, ...]
    apart: float
    noise: float


@dataclass(frozen=True, repr=False)
class RowsReport:
    """The errors of made-up rows: it prints as a table, and `plot` draws columns beside their noisy counts."""

    state: RowsState
    columns: tuple[TableError, ...]
    pairs: tuple[TableError, ...]
    others: tuple[TableError, ...]  # pairs that were not measured, if the report was paid for
    paid: str = ""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each table."""
        kinds = (("column", self.columns), ("pair", self.pairs), ("other pair", self.others))
        return [
            {"table": ", ".join(each.columns), "kind": kind, "apart": each.apart, "noise": each.noise}
            for kind, tables in kinds
            for each in tables
        ]

    def __str__(self) -> str:
        state = self.state
        unmeasured = len(state.design.pairs) - len(self.pairs)
        lines = [
            f"Made-up rows beside {len(self.columns)} noisy columns and {len(self.pairs)} noisy pairs.",
            "Distances are shares of people in another cell; 'by noise' is the distance of a perfect law.",
            "",
            *_lines_of_tables("columns", self.columns),
            *_lines_of_tables("measured pairs", self.pairs),
        ]
        if self.others:
            lines += _lines_of_tables("other pairs, measured by this report", self.others, paid=True)
        elif unmeasured:
            lines.append(
                f"Pairs that were not measured: {unmeasured}; made.report(epsilon=0.2) measures their distances."
            )
        lines += [self.paid] if self.paid else []
        return printable("\n".join(lines), keeping="\n")

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of the columns that fit worst, made-up beside noisy; with a path, write it there."""
        if path is not None:
            check_path(Path(path))
        order = sorted(range(len(self.columns)), key=lambda at: -self.columns[at].apart + self.columns[at].noise)
        bodies: list[Spec] = []
        for at in order[:COLUMNS_DRAWN]:
            body = chart(_sheet(self.state, at))
            body["title"] = {"text": self.columns[at].columns[0], "anchor": "start", "fontSize": 13, "offset": 8}
            bodies.append(body)
        notes = ["Noisy counts with ± for 95 %; a count below 0 is noise."]
        spec = page(
            {"vconcat": bodies, "spacing": 26}, title="Made-up rows beside noisy counts", notes=notes, letters=LETTERS
        )
        return as_chart(spec) if path is None else write(spec, Path(path))


def _lines_of_tables(title: str, tables: Sequence[TableError], *, paid: bool = False) -> list[str]:
    if not tables:
        return []
    mean, noise = (float(np.mean([getattr(each, name) for each in tables])) for name in ("apart", "noise"))
    head = f"{title}: {mean:.1%} on average" + ("" if paid else f", {noise:.1%} by noise")
    worst = sorted(tables, key=lambda each: -each.apart)[:PAIRS_SHOWN]
    width = max(len(", ".join(each.columns)) for each in worst)
    return [
        head,
        *(
            f"  {', '.join(each.columns):{width}}  {each.apart:6.1%}  {'±' if paid else 'by noise'} {each.noise:.1%}"
            for each in worst
        ),
        "",
    ]


def report_of(state: RowsState, others: Sequence[TableError] = (), paid: str = "") -> RowsReport:
    """Return the report of made-up rows, from released numbers."""
    columns = tuple(_error(state, table) for table in state.single_tables)
    return RowsReport(state, columns, tuple(_error(state, table) for table in state.pair_tables), tuple(others), paid)


def _error(state: RowsState, table: NoisyCounts) -> TableError:
    law = state.field.table(table.columns) * state.total
    names = tuple(state.names[at] for at in table.columns)
    off = float(np.abs(law - table.counts).sum()) / 2 / state.total
    noise = MEAN_NOISE * float((np.zeros(table.counts.shape) + table.sigma).sum()) / 2 / state.total
    return TableError(names, min(off, 1.0), min(noise, 1.0))


def _sheet(state: RowsState, at: int) -> Sheet:
    """Return a column's bins as labels with points, made-up and noisy; the largest if there are many."""
    table = state.single_tables[at]
    law: Floats = state.field.table((at,)) * state.total
    labels = state.words(at)
    sigma = np.zeros(table.counts.shape) + table.sigma
    shown = sorted(np.argsort(-law, kind="stable")[:BINS_DRAWN].tolist())
    cells = []
    for place in shown:
        error = NORMAL_95 * float(sigma[place])
        made, noisy = float(law[place]), float(table.counts[place])
        cells.append(SheetCell(labels[place], None, "made-up rows", made, made, made, f"{made:,.0f}"))
        text = f"{noisy:,.0f} ± {error:,.0f}"
        cells.append(SheetCell(labels[place], None, "noisy count", noisy, noisy - error, noisy + error, text))
    shown_labels = tuple(dict.fromkeys(cell.label for cell in cells))
    panel = Panel("people", "point", tuple(cells))
    return Sheet((panel,), state.names[at], "none", "", shown_labels, ("made-up rows", "noisy count"), None)
