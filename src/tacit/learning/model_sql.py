"""Fitted models as SQL, to score rows in a database: CASE, EXP and arithmetic only.

The SQL is made of public facts and released numbers. Its results equal those of `predict_proba` and `predict`, except
for the last digits. `tacit.query` escapes it for a database.
"""

from collections.abc import Sequence

from tacit.errors import InvalidParameter
from tacit.learning.additive_model import AdditiveModel
from tacit.learning.features import Feature, plain
from tacit.learning.linear_state import DesignCell
from tacit.learning.scoring.scorable import in_floats
from tacit.plan import UNIT
from tacit.query import in_dialect, quoted_name, show_value

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
    """Return the score of one class: the intercept and a CASE for each term."""
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
