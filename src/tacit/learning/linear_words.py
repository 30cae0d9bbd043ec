"""A linear model in words: its plan before it is paid for, its summary afterwards, and itself as SQL."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.asking import Table
from tacit.errors import printable
from tacit.learning.linear_design import DesignCell, LinearDesign
from tacit.learning.linear_state import least_of
from tacit.learning.undeclared import KnownColumns
from tacit.plan import UNIT
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import in_dialect, quoted_name, show_value

NOTE_WIDTH = 96


@dataclass(frozen=True)
class Coefficient:
    """A term: its coefficient, standard error and interval; `noise` is the part of its variance that is noise."""

    term: str
    coefficient: float
    error: float
    low: float
    high: float
    noise: float


@dataclass(frozen=True, repr=False)
class LinearPlan:
    """The columns and the cost of a linear model. The plan is made of public facts, and free."""

    design: LinearDesign
    events: tuple[GaussianNoise, ...]
    asked: ApproximateLoss
    table: Table  # with the known facts of its columns
    known: KnownColumns  # of undeclared columns

    @property
    def loss(self) -> ApproximateLoss:
        """The cost of fitting: the requested epsilon, and the delta of its noise."""
        return ApproximateLoss(self.asked.epsilon, self.asked.delta)

    def __str__(self) -> str:
        design, target = self.design, self.design.target
        products = self.events[1 if design.listed else 0]
        lines = [
            "principal components" if target is None else f"linear model of {target.name}",
            f"numbers: {', '.join(each.name for each in design.numbers) or 'none'}",
            f"lists: {', '.join(f'{each.name} ({each.cells - 1})' for each in design.listed) or 'none'}",
            f"noise of a sum of products: a standard deviation of {float(products.sigma) / UNIT:,.1f} people",
        ]
        if target is not None:
            of_target = float(self.events[-2].sigma) / UNIT * target.half
            lines.append(f"noise of a sum of {target.name}: a standard deviation of {of_target:,.0f}")
        if design.listed:
            lines.append(f"a value has a separate term from about {least_of(self.events):,.0f} people on")
        whole = self.asked.epsilon + self.known.cost
        lines.append(f"cost: epsilon {float(whole):.6g} at delta {float(self.asked.delta):.2g}")
        lines += [self.known.words] if self.known.words else []
        return printable("\n".join(lines), keeping="\n")

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class LinearSummary:
    """The terms that noise leaves readable, with their intervals; `print` it, or take it `to_dicts`."""

    target: str
    rows: tuple[float, float]  # the number of units, and its standard error
    explained: tuple[float, float]  # R², and its standard error
    confidence: float
    width: float  # of the interval, in standard errors
    coefficients: tuple[Coefficient, ...]
    left_out: tuple[str, ...]
    bases: tuple[tuple[str, ...], ...]
    cost: str

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each term."""
        return [vars(each).copy() for each in self.coefficients]

    def __str__(self) -> str:
        below, above = (1 - self.confidence) / 2, (1 + self.confidence) / 2
        head = ("", "coef", "std err", f"[{below:.3g}", f"{above:.3g}]", "noise")
        rows = [
            (each.term, *map(_digits, (each.coefficient, each.error, each.low, each.high)), f"{each.noise:.0%}")
            for each in self.coefficients
        ]
        widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
        table = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in (head, *rows)
        ]
        rule = "=" * len(table[0])
        lines = [
            f"Linear regression of {self.target}",
            rule,
            f"people: {self.rows[0]:,.0f} ± {self.width * self.rows[1]:,.0f}",
            f"R²: {self.explained[0]:.3f} ± {self.width * self.explained[1]:.3f}",
            f"cost: {self.cost}",
            rule,
            table[0],
            "-" * len(table[0]),
            *table[1:],
            rule,
            *self._notes(),
        ]
        return printable("\n".join(lines), keeping="\n")

    __repr__ = __str__

    def _notes(self) -> list[str]:
        notes = [
            "Standard errors and intervals are of the sample and of the noise; 'noise' is its part of the variance."
            " The coefficients estimate least squares on these terms in the whole population, with numbers "
            "clamped to their ranges, and each person counted once."
        ]
        if self.bases:
            notes.append(f"Compared with: {'; '.join(f'{name}: {value}' for name, value in self.bases)}.")
        if self.left_out:
            notes.append(
                f"Left out, since the noise hides their effect: {', '.join(_by_column(self.left_out))}. Values "
                "left out of a list count with its base value. predict() uses all terms, drawn to 0 by the noise"
                " they have (coef_)."
            )
        return [line for note in notes for line in textwrap.wrap(note, NOTE_WIDTH)]


def _by_column(terms: Sequence[str]) -> list[str]:
    """Return terms with those of one column together: "race (Black, other)"."""
    found: dict[str, list[str]] = {}
    for term in terms:
        column, _, value = term.partition(": ")
        found.setdefault(column, []).extend([value] if value else [])
    return [f"{column} ({', '.join(values)})" if values else column for column, values in found.items()]


def _digits(value: float) -> str:
    """Return a number with four significant digits, without an exponent if possible."""
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3e}"
    places = max(0, 4 - len(f"{abs(value):.0f}")) if abs(value) >= 1 else 4
    return f"{value:,.{places}f}"


def model_sql(
    intercept: float,
    numbers: Sequence[tuple[str, tuple[float, float], float]],
    listed: Sequence[Sequence[tuple[DesignCell, float]]],
    dialect: str | None,
) -> str:
    """Return a linear model as a SQL expression for a database; NULL if a number is missing."""
    parts = [in_floats(intercept)]
    for name, (low, high), coefficient in numbers:
        clamped = f"LEAST(GREATEST({quoted_name(name)}, {_number(low)}), {_number(high)})"
        # LEAST and GREATEST skip NULL in some databases
        parts.append(f"{in_floats(coefficient)} * CASE WHEN {quoted_name(name)} IS NULL THEN NULL ELSE {clamped} END")
    for cells in listed:
        rest = next(((cell, effect) for cell, effect in cells if cell.missing), None)
        named = [(cell, effect) for cell, effect in cells if cell.values and not cell.missing]
        tests = " ".join(
            f"WHEN {quoted_name(cell.feature)} IN ({', '.join(map(show_value, cell.values))}) THEN {in_floats(effect)}"
            for cell, effect in named
        )
        otherwise = in_floats(0.0 if rest is None else rest[1])
        parts.append(f"CASE {tests} ELSE {otherwise} END" if tests else otherwise)
    return in_dialect("\n  + ".join(parts), dialect)


def in_floats(value: float) -> str:
    """Return a number as SQL computes with floats: written as a decimal, 16 digits times a column may be too many.

    >>> in_floats(-0.1171918148662402)
    '(-0.1171918148662402e0)'
    """
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


def _number(value: float) -> str:
    return repr(value) if isinstance(value, int) else f"({float(value)!r})" if value < 0 else repr(float(value))
