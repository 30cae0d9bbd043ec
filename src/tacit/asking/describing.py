"""A table's public facts, free (`describe()`, `DESCRIBE t`, `SHOW TABLES`); its private summary, a question with a row
for each column; and `PlanReport`: the steps, the cost and the errors of an answer, as data and as text."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa

from tacit.answer import Printed, Summary
from tacit.arrow_frames import as_pandas
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean, json_text, printable
from tacit.forecast import Solved, learning_in_words, plan_in_words
from tacit.ledger import Fit
from tacit.numbers import show
from tacit.plan import Plan, PlannedTogether, WantedFact
from tacit.privacy import Loss, PureLoss
from tacit.query import AggregateSpec, Column, Frame, public_declaration
from tacit.query import count as count_of
from tacit.query import mean as mean_of
from tacit.query import quantile as quantile_of
from tacit.query import std as std_of
from tacit.tables import ColumnFacts, Declaration, PublicTable, RowUnit

_NUMBERS = ("int", "float", "decimal")
_KEYS_SHOWN = 6
PUBLIC = "public, about nobody"
# The least part of epsilon for a column to have its spread in a summary.
SPREAD_FROM = Fraction(1, 5)
# The share of its epsilon by which a summary learns where its columns' numbers are.
SUMMARY_LEARNS = Fraction(3, 10)
# The most numbers of a summary, about four columns, that learns like any question.
SUMMARY_ALONE = 24


@dataclass(frozen=True, repr=False)
class Description(Printed):
    """Public facts as a small table: `print` it, or take it `to_dicts`, `to_arrow`, `to_pandas`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_free: ClassVar[bool] = True  # as a question that answers itself

    def __str__(self) -> str:
        widths = [max(map(len, cells)) for cells in zip(self.columns, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.columns, *self.rows)
        ]
        return printable("\n".join([self.title, "", *lines]), keeping="\n")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self.to_dicts())

    def answer(self, *_spend: object, **_options: object) -> "Description":
        """Return itself: public facts are free."""
        return self

    def plan(self, *_spend: object, **_options: object) -> "Description":
        """Return itself: public facts need no plan."""
        return self

    @property
    def loss(self) -> Loss:
        """The cost, which is zero."""
        return PureLoss(Fraction(0))

    def to_dicts(self) -> list[dict[str, str]]:
        """Return one dict for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_csv(self) -> str:
        """Return it as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.columns, *self.rows])
        return out.getvalue()

    def to_json(self) -> str:
        """Return one JSON object."""
        return json_text({"title": self.title, "rows": self.to_dicts()})

    def plot(self, *_path: object) -> None:
        """Refuse: facts cannot be drawn."""
        raise InvalidParameter("public facts have no numbers to draw\nhint: leave out plot")

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table of text."""
        return pa.table({name: [row[at] for row in self.rows] for at, name in enumerate(self.columns)})

    def to_pandas(self) -> Any:
        """Return a pandas frame of text."""
        return as_pandas(self.to_arrow())


def described(declaration: Declaration) -> Description:
    """Return what is declared of a table, a row for each column; no row of the table is read."""
    unit = "every row" if isinstance(declaration.unit, RowUnit) else declaration.unit
    rows = tuple(
        (name, facts.type if facts.type != "other" else "cannot be read", _public(name, facts, declaration))
        for name, facts in declaration.columns.items()
    )
    title = f"'{declaration.name}', protected by {unit}; neighbours: {declaration.neighbours}. Public facts:"
    return Description(title, ("column", "type", "public"), rows)


def described_as_asked(
    asked: tuple[str, str | None],
    declarations: Mapping[str, Declaration],
    publics: Mapping[str, PublicTable] | None = None,
) -> Description:
    """Return the public facts that a statement asks for, of these tables."""
    _, name = asked
    public = {} if publics is None else publics
    if name is None:
        listed = {each: _whose(of) for each, of in declarations.items()} | dict.fromkeys(public, PUBLIC)
        return Description("tables", ("table", "is"), tuple(listed.items()))
    known = [*declarations, *public]
    found = [each for each in known if each == name] or [each for each in known if each.lower() == name.lower()]
    if len(found) != 1:
        raise QueryRefused(f"there is no table '{name}' here{did_you_mean(name, known)}")
    if found[0] in declarations:
        return described(declarations[found[0]])
    table = public[found[0]]
    facts = public_declaration(table)
    rows = tuple((name, each.type, _public(name, each, facts)) for name, each in facts.columns.items())
    return Description(f"'{table.name}', {PUBLIC}. Its columns:", ("column", "type", "public"), rows)


def _whose(declaration: Declaration) -> str:
    return f"protected by {'every row' if isinstance(declaration.unit, RowUnit) else declaration.unit}"


def asked_of_public_facts(text: str) -> tuple[str, str | None] | None:
    """Return the public facts that a statement asks for: ("tables", None) or ("table", its name); None if it does not.

    >>> asked_of_public_facts("DESCRIBE visits;"), asked_of_public_facts("show tables")
    (('table', 'visits'), ('tables', None))
    """
    if not isinstance(text, str):
        return None
    if re.fullmatch(r"\s*show\s+(all\s+)?tables\s*;?\s*", text, re.IGNORECASE):
        return "tables", None
    found = re.fullmatch(
        r'\s*(?:describe|desc|show\s+columns\s+(?:from|in))\s+(?:table\s+)?("(?:[^"]|"")+"|[^\s;"]+)\s*;?\s*',
        text,
        re.IGNORECASE,
    )
    if found is None:
        return None
    name = found.group(1)
    return "table", name[1:-1].replace('""', '"') if name.startswith('"') else name


def _public(name: str, facts: ColumnFacts, declaration: Declaration) -> str:
    words = []
    if name == declaration.unit:
        return "the unit: whose privacy is protected; never shown"
    if facts.between is not None:
        words.append(f"between {_words_of_number(facts.between[0])} and {_words_of_number(facts.between[1])}")
    if facts.keys is not None:
        listed = ", ".join("NULL" if key is None else str(key) for key in facts.keys[:_KEYS_SHOWN])
        more = len(facts.keys) - _KEYS_SHOWN
        words.append(f"keys {listed}" + (f" and {more} more" if more > 0 else ""))
    return "; ".join(words)


def _words_of_number(value: Any) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):g}"


# --- the private summary ---


def summary_asked(
    frame: Frame, columns: Sequence[str] | None, epsilon: Fraction
) -> tuple[dict[str, AggregateSpec], Fraction | None]:
    """Return the aggregates of a summary, and the share of epsilon for learning, if it is not the usual one."""
    asked = summary_aggregates(frame, columns, epsilon)
    return asked, SUMMARY_LEARNS if len(asked) > SUMMARY_ALONE else None


def summary_aggregates(frame: Frame, columns: Sequence[str] | None, epsilon: Fraction) -> dict[str, AggregateSpec]:
    """Return a summary's question: each column's count, mean and quartiles, and its spread if epsilon is enough for
    that."""
    declaration = frame.declaration
    renamed = {each.name: name for name, each in frame.derived.items() if isinstance(each, Column)}
    known = [
        renamed.get(name, name)
        for name, facts in declaration.columns.items()
        if facts.type in _NUMBERS and name != declaration.unit
    ]
    chosen = known if columns is None else list(columns)
    for name in chosen:
        if name not in known:
            raise QueryRefused(f"'{name}' is not a column of numbers\nhint: describe(epsilon=1, columns={known[:3]})")
    if not chosen:
        raise QueryRefused(
            f"'{declaration.name}' has no column of numbers to describe\nhint: count() and group_by ask the others"
        )
    asked: dict[str, AggregateSpec] = {}
    for name in chosen:
        spread = {"std": std_of(name)} if epsilon >= SPREAD_FROM * len(chosen) else {}
        quartiles = {f"p{percent}": quantile_of(name, percent / 100) for percent in (25, 50, 75)}
        asked |= Summary.named(name, {"count": count_of(name), "mean": mean_of(name)} | spread | quartiles)
    return asked


@dataclass(frozen=True, repr=False)
class PlanReport(Printed):
    """The plan of a question, or of several that are charged as one; it prints as text."""

    planned: PlannedTogether
    confidence: Any
    solved: Solved | None = None
    path: str | None = None  # how the engine would run it now
    fit: Fit | None = None  # whether the budgets have room for it now
    wanted: tuple[WantedFact, ...] = ()  # the facts that the call would learn first; `plan` is then not the one to come
    joins: tuple[str, ...] = ()  # the effect of each join on one unit's rows, a line each
    ends: tuple[tuple[int, Plan], ...] = ()  # plans from made-up facts, by the rows that each person has in them
    advice: tuple[str, ...] = ()  # that it will be refused, and a closer question

    @property
    def plan(self) -> Plan:
        """The first plan, as data."""
        return self.planned.plans[0]

    @property
    def only_plan(self) -> Plan:
        """The plan, of a question that has one: used by audits."""
        return self.plan

    @property
    def loss(self) -> Loss:
        """The cost of the call."""
        return self.planned.loss_with(each.cost for each in self.wanted)

    def __str__(self) -> str:
        return printable("\n".join([*self._plan_lines(), *self._last_lines()]), keeping="\n")

    def _plan_lines(self) -> list[str]:
        if self.wanted:
            text = learning_in_words(self.plan, self.wanted, self.loss, {"": self.ends}, self.confidence)
        else:
            text = plan_in_words(self.plan, self.confidence, path=self.path)
        first, newline, rest = text.partition("\n")
        return [first, *self.joins, *([rest] if newline or self.joins else [])]

    def _last_lines(self) -> list[str]:
        """Return what would be closer, whether the budgets have room, and how an error was solved for."""
        fit = [] if self.fit is None else [f"Budget: {self.fit}."]
        solved = [] if self.solved is None else [f"ε = {show(self.solved.epsilon)} is {self.solved.words}."]
        return [*self.advice, *fit, *solved]


@dataclass(frozen=True, repr=False)
class FreeReport(Printed):
    """The plan of a free question, printed as text."""

    text: str

    @property
    def loss(self) -> Loss:
        """The cost of the call, which is zero."""
        return PureLoss(Fraction(0))

    def __str__(self) -> str:
        return printable(self.text, keeping="\n")
