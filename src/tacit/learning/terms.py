"""The terms of a fitted additive model, as tables, in words and as pictures: every bin with its effect and the ± of it.

The ± is for 95 % and holds the noise of privacy, the chance of sampling, and how far shrinking may have moved the
effect (`priors.py`). If a term was made monotone afterwards, the ± is that of the effect before.

Fitted models as SQL, to score rows in a database: CASE, EXP and arithmetic only.

The SQL is made of public facts and released numbers. Its results equal those of `predict_proba` and `predict`, except
for the last digits. `tacit.query` escapes it for a database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, NoReturn

from tacit.errors import InvalidParameter, did_you_mean, printable
from tacit.learning.additive_model import MARGIN, AdditiveModel
from tacit.learning.features import Feature, plain
from tacit.learning.linear_fit import DesignCell
from tacit.learning.priors import FALSE_ALARM
from tacit.learning.scorable import in_floats
from tacit.learning.shapes import Shape
from tacit.pictures import Panel, Sheet, SheetCell, Spec, as_chart, chart, check_path, page, write
from tacit.plan import UNIT
from tacit.query import in_dialect, quoted_name, show_value

# Of a picture: the letters of a line of its title and its notes, and its most terms.
# From this share on, a list is reported to match no values.
UNMATCHED = 0.9
LETTERS = (64, 96)
TERMS_MOST = 12


@dataclass(frozen=True)
class TermBin:
    """A bin of a term: its values in words, about how many people, its effect and the ± of it."""

    holds: str
    people: float  # noisy
    effect: float
    error: float
    place: float | None = None  # on the axis of an ordered number: the middle of the bin


@dataclass(frozen=True, repr=False)
class ShownTerm:
    """A term: its bins for one class of several, or for the model's score; printed as a table."""

    name: str
    unit: str  # the unit of effects
    by_class: Mapping[Any, tuple[TermBin, ...]]
    signal: float = 0.0  # how far its bins, all together, are from noise; at most 1: they could be noise

    @property
    def bins(self) -> tuple[TermBin, ...]:
        """The bins, of the last class if there are several."""
        return list(self.by_class.values())[-1]

    @property
    def size(self) -> float:
        """How far the term moves scores: the standard deviation of its effects over all people."""
        return max(_spread(bins) for bins in self.by_class.values())

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each bin as plain values."""
        several = len(self.by_class) > 1
        return [
            ({"class": name} if several else {})
            | {"bin": each.holds, "people": round(each.people), "effect": each.effect, "error": each.error}
            for name, bins in self.by_class.items()
            for each in bins
        ]

    def __str__(self) -> str:
        lines = []
        for name, bins in self.by_class.items():
            of_class = f", class {name}" if len(self.by_class) > 1 else ""
            rows = [(self.name + of_class, "about people", f"effect ({self.unit})")]
            rows += [
                (each.holds, f"{max(each.people, 0):,.0f}", f"{each.effect:+.3g} ± {each.error:.2g}") for each in bins
            ]
            widths = [max(len(row[place]) for row in rows) for place in range(3)]
            lines += [f" {row[0].ljust(widths[0])}   {row[1].rjust(widths[1])}   {row[2]}".rstrip() for row in rows]
        return printable("\n".join(lines), keeping="\n")

    __repr__ = __str__


class ModelTerms(dict[str, ShownTerm]):
    """The terms of a model by name: features, then interactions such as "age x sex"; printed with the largest first."""

    def __init__(self, model: AdditiveModel) -> None:
        super().__init__({name: _term(model, place, name) for place, name in enumerate(model.term_names)})

    def __missing__(self, name: str) -> NoReturn:
        raise InvalidParameter(f"the model has no term '{name}'{did_you_mean(name, self)}")

    def largest_first(self) -> list[ShownTerm]:
        """Return the terms in the order of how far they move scores."""
        return sorted(self.values(), key=lambda term: -term.size)

    def __str__(self) -> str:
        return "\n\n".join(str(term) for term in self.largest_first())

    __repr__ = __str__


def explained(model: AdditiveModel) -> str:
    """Return a model in words: its intercept, and its largest effects, each with its ±."""
    terms = ModelTerms(model)
    what = _predicted(model)
    lines = [f"{what}, as the sum of {len(terms)} terms and a start. Effects are in {unit_of(model)}, ± for 95 %."]
    quiet = []
    for term in terms.largest_first():
        if term.size < 1e-9 or term.signal <= 1:
            quiet.append(term.name)
            continue
        bins = [each for each in term.bins if each.error > 0] or list(term.bins)
        low, high = min(bins, key=lambda each: each.effect), max(bins, key=lambda each: each.effect)
        lines.append(
            f"- {term.name}: from {low.effect:+.2g} ± {low.error:.1g} ({low.holds})"
            f" to {high.effect:+.2g} ± {high.error:.1g} ({high.holds})"
        )
    if quiet:
        lines.append(
            f"Could be noise, all bins of a term together: {', '.join(quiet)}. Of terms without any effect,"
            f" {FALSE_ALARM:.0%} are not listed here."
        )
    lines += unmatched(model)
    lines.append("A bin's effect is beside the others of its term; it shows association, not causes.")
    return printable("\n".join(lines), keeping="\n")


def unmatched(model: AdditiveModel) -> list[str]:
    """Return a line for each listed feature if, by noisy counts, almost none of its values match the list."""
    found = []
    for feature, shape in zip(model.features, model.shapes.shapes, strict=False):
        others = shape.people[shape.bins[feature.cells - 1]]
        if feature.column.measured is None and others >= UNMATCHED * sum(shape.people):
            found.append(
                f"Almost no listed value of {feature.name} was found: about {others:,.0f} of "
                f"{sum(shape.people):,.0f} people have a missing or another value. Are its keys written as they "
                "are stored, blanks and capitals included?"
            )
    return found


def unit_of(model: AdditiveModel) -> str:
    if model.link == "identity":
        return model.target
    return "log-odds" if model.link == "logistic" else "log"


def _predicted(model: AdditiveModel) -> str:
    if model.link == "logistic":
        return f"The log-odds that {model.target} is {model.classes[1]}"
    if model.link == "softmax":
        return f"The log of how probable each {model.target} is (effects below: {model.classes[-1]})"
    what = f"{model.target}, within {model.low:.6g} to {model.low + model.width:.6g}"
    return what if model.link == "identity" else f"The log of {what}"


def _spread(bins: tuple[TermBin, ...]) -> float:
    people = sum(each.people for each in bins) or 1.0
    mean = sum(each.people * each.effect for each in bins) / people
    return sqrt(sum(each.people * (each.effect - mean) ** 2 for each in bins) / people)


def _term(model: AdditiveModel, place: int, name: str) -> ShownTerm:
    shape = model.shapes.shapes[place]
    scale = model.width if model.link == "identity" else 1.0
    names = model.classes if model.link == "softmax" else (None,)
    words, places = _words_of_bins(model, place, shape)
    by_class = {
        each: tuple(
            TermBin(words[at], shape.people[at], scale * effect, scale * MARGIN * deviation, places[at])
            for at, (effect, deviation) in enumerate(zip(effects, deviations, strict=True))
        )
        for each, effects, deviations in zip(names, shape.effects, shape.deviations, strict=True)
    }
    return ShownTerm(name, unit_of(model), by_class, shape.signals[-1])


def _words_of_bins(model: AdditiveModel, place: int, shape: Shape) -> tuple[list[str], list[float | None]]:
    """Return what each bin holds in words, and the middle of each bin of an ordered number."""
    cells: list[list[int]] = [[] for _ in shape.people]
    for cell, found in enumerate(shape.bins):
        cells[found].append(cell)
    if place < len(model.features):
        feature = model.features[place]
        inner = [[cell for cell in group if cell != feature.cells - 1] for group in cells]
        is_number = feature.column.measured is not None
        middles = [sum(feature.span(each[0], each[-1])) / 2 if is_number and each else None for each in inner]
        return [feature.words(group) for group in cells], middles
    first, second = (model.features[each] for each in model.pairs[place - len(model.features)])
    ofs = [({cell // second.cells for cell in group}, {cell % second.cells for cell in group}) for group in cells]
    return [f"{first.words(sorted(a))} / {second.words(sorted(b))}" for a, b in ofs], [None] * len(cells)


# ---- Pictures ------------------------------------------------------------------------------------------------------


def term_picture(model: AdditiveModel, term: str | None, path: str | Path | None) -> Any:
    if path is not None:
        check_path(Path(path))
    terms = ModelTerms(model)
    shown = [terms[term]] if term is not None else terms.largest_first()[:TERMS_MOST]
    bodies: list[Spec] = [chart(_sheet(each)) for each in shown]
    for body, each in zip(bodies, shown, strict=True):
        body["title"] = {"text": each.name, "anchor": "start", "fontSize": 13, "offset": 8}
    body = bodies[0] if len(bodies) == 1 else {"vconcat": bodies, "spacing": 30}
    title = f"Effects on {model.target}" if term is None else f"{term}: contribution to {model.target}"
    notes = [f"Effects in {unit_of(model)}; lines are ± for 95 %, the noise of privacy included."]
    if len(terms) > len(shown) and term is None:
        notes.append(f"The {len(shown)} largest of {len(terms)} terms.")
    spec = page(body, title=title, notes=notes, letters=LETTERS)
    return as_chart(spec) if path is None else write(spec, Path(path))


def _sheet(term: ShownTerm) -> Sheet:
    """Return a term as labels with points: ordered bins stay in their order, from top to bottom."""
    cells: list[SheetCell] = []
    groups = [] if len(term.by_class) == 1 else [str(name) for name in term.by_class]
    for name, bins in term.by_class.items():
        group = str(name) if groups else ""
        for each in bins:
            low, high = each.effect - each.error, each.effect + each.error
            text = f"{each.effect:+.2f} ± {each.error:.2f}"
            cells.append(SheetCell(each.holds, None, group, each.effect, low, high, text))
    labels = tuple(dict.fromkeys(cell.label for cell in cells))
    panel = Panel(f"effect ({term.unit})", "point", tuple(cells))
    return Sheet((panel,), term.name, "none", "class" if groups else None, labels, tuple(groups), None)


SCORE = "tacit_score"


def score_sql(model: AdditiveModel, table: str, dialect: str | None) -> str:
    """Return a SELECT of all columns of a table with the model's probabilities, or its prediction."""
    if not isinstance(table, str) or not table.strip():
        raise InvalidParameter("name the table to score\nhint: to_sql('people')")
    count = len(model.shapes.intercept)
    names = [f"{SCORE}_{place}" if count > 1 else SCORE for place in range(count)]
    # PostgreSQL reads 1e0 as a decimal, of which EXP is slow
    scores = [
        f"CAST({_score_of_class(model, place)} AS DOUBLE PRECISION) AS {name}" for place, name in enumerate(names)
    ]
    shown = ",\n  ".join(_outputs(model, names))
    inner = ",\n  ".join(scores)
    # without an OFFSET PostgreSQL writes the scores into every place that names them: many times the work
    once = " OFFSET 0" if dialect == "postgres" else ""
    sql = f"SELECT scored.*,\n  {shown}\nFROM (SELECT *,\n  {inner}\nFROM {quoted_name(table)}{once}) AS scored"
    return in_dialect(sql, dialect)


def _score_of_class(model: AdditiveModel, place: int) -> str:
    parts = [_double(model.shapes.intercept[place])]
    count = len(model.features)
    for at, shape in enumerate(model.shapes.shapes):
        effects = [_double(each) for each in shape.effects[place]]
        if at < count:
            parts.append(_case_of_cells(model.features[at], [effects[found] for found in shape.bins]))
            continue
        first, second = (model.features[each] for each in model.pairs[at - count])
        rows = [shape.bins[cell * second.cells : (cell + 1) * second.cells] for cell in range(first.cells)]
        inner = {tuple(row): _case_of_cells(second, [effects[found] for found in row]) for row in rows}
        parts.append(_case_of_cells(first, [inner[tuple(row)] for row in rows]))
    return "\n    + ".join(parts)


def _outputs(model: AdditiveModel, scores: Sequence[str]) -> list[str]:
    if model.link == "identity":
        return [f"{_double(model.low)} + {_double(model.width)} * LEAST(GREATEST({scores[0]}, 0e0), 1e0) AS prediction"]
    if model.link == "log":
        return [f"{_double(model.low)} + {_double(model.width)} * EXP(LEAST({scores[0]}, 0e0)) AS prediction"]
    if model.link == "softmax":
        return [
            f"1e0 / (1e0 + {_others(own, scores)}) AS {quoted_name(f'probability of {name}')}"
            for own, name in zip(scores, model.classes, strict=True)
        ]
    clip = min(max(model.shapes.clip / UNIT, 0.5), 1.0)
    chance, written = f"(1e0 / (1e0 + EXP(-{scores[0]})))", _double(clip)
    second = (
        f"CASE WHEN {chance} < {_double(1 - clip)} THEN {chance} / ({chance} + {written})"
        f" WHEN {chance} > {written} THEN {written} / (1e0 - {chance} + {written}) ELSE {chance} END"
    )
    return [f"{second} AS {quoted_name(f'probability of {model.classes[1]}')}"]


def _others(own: str, scores: Sequence[str]) -> str:
    """Return how much more probable all other classes are; beyond e^700 a database may refuse."""
    return " + ".join(f"EXP(LEAST({each} - {own}, 700e0))" for each in scores if each != own)


def _case_of_cells(feature: Feature, texts: Sequence[str]) -> str:
    """Return a CASE that gives each cell its text; neighbours with the same text share a condition."""
    column, missing = quoted_name(feature.name), texts[-1]
    if len(set(texts)) == 1:
        return f"({missing})"
    if feature.column.measured is None:
        return _listed_case(feature, column, texts)
    or_nan = f" OR LOWER(CAST({column} AS VARCHAR)) = 'nan'" if feature.type == "float" else ""
    lines = [f"WHEN {column} IS NULL{or_nan} THEN {missing}"]
    inner = list(texts[:-1])
    for cell, start in enumerate(feature.starts):
        if inner[cell] != inner[cell + 1]:
            lines.append(f"WHEN {column} < {_double(float(start))} THEN {inner[cell]}")
    return f"(CASE {' '.join(lines)} ELSE {inner[-1]} END)"


def _listed_case(feature: Feature, column: str, texts: Sequence[str]) -> str:
    by_text: dict[str, list[str]] = {}
    for value, text in zip(feature.column.listed, texts, strict=False):
        if text != texts[-1]:
            by_text.setdefault(text, []).append(show_value(plain(value)))
    lines = [f"WHEN {column} IN ({', '.join(values)}) THEN {text}" for text, values in by_text.items()]
    return f"(CASE {' '.join(lines)} ELSE {texts[-1]} END)"


def _double(value: float) -> str:
    """Return a float as a DOUBLE that is read as the same one."""
    written = f"{value:.17e}"
    return f"({written})" if value < 0 else written


# --- linear models ---


def linear_sql(
    intercept: float,
    numbers: Sequence[tuple[str, tuple[float, float], float]],
    listed: Sequence[Sequence[tuple[DesignCell, float]]],
    dialect: str | None,
) -> str:
    """Return a linear model as a SQL expression for a database; NULL if a number is missing."""
    parts = [in_floats(intercept)]
    for name, ends, coefficient in numbers:
        low, high = (f"({end!r})" if end < 0 else repr(end) for end in ends)
        clamped = f"LEAST(GREATEST({quoted_name(name)}, {low}), {high})"
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
