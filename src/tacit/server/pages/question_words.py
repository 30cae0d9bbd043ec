"""A question in words, as the title of its answer: its numbers, its groups, its filter, its table.

The words are made from the question as it was read, never from rows.
"""

from collections.abc import Sequence

from tacit.asking import Question
from tacit.query import Column, Output, Query, name_of, show

NAMED_MOST = 3  # numbers that a title names; of more it has how many there are
LETTERS_MOST = 160
_KINDS = {
    "count_units": "number of people",
    "sum": "sum of {x}",
    "mean": "mean of {x}",
    "variance": "variance of {x}",
    "std": "standard deviation of {x}",
    "count_distinct": "number of different {x}",
    "covariance": "covariance of {x} and {y}",
    "correlation": "correlation of {x} and {y}",
    "top": "most common groups",
}
_QUANTILES = {0.0: "low end of {x}", 0.5: "median of {x}", 1.0: "high end of {x}"}


def title_of(question: Question) -> str:
    """Return a question in words: "Mean of days by ward, where age >= 65"."""
    query = question.query
    numbers = _numbers(query)
    said = _joined(numbers) if len(numbers) <= NAMED_MOST else f"{len(numbers)} numbers"
    keys = [key.name for key in query.keys]
    by = f" by {_joined(keys)}" if keys else ""
    where = f", where {show(query.where)}" if query.where is not None else ""
    totals = ", with totals" if query.levels or (question.several is not None and keys) else ""
    title = f"{said}{by}{totals}{where}"
    return _shortened(title[:1].upper() + title[1:])


def _numbers(query: Query) -> list[str]:
    """Return the numbers that a question shows: computed ones by the names that people gave them."""
    outputs = {output.name: output for output in query.outputs}
    keys = {key.name for key in query.keys}
    if not query.after.shown:
        return [_number(outputs[name]) for name in query.after.shown_outputs(list(outputs)) if name in outputs]
    found = []
    for each in query.after.shown:
        of = each.expression.name if isinstance(each.expression, Column) else None
        if of not in keys and each.name not in keys:
            found.append(_number(outputs[of]) if of in outputs else each.name)
    return found


def _number(output: Output) -> str:
    asked = output.aggregate
    x = "" if asked.expression is None else name_of(asked.expression)
    if asked.kind == "count":
        return f"number of values of {x}" if x else "number of rows"
    if asked.kind == "quantile":
        fraction = float(asked.fraction or 0)
        form = _QUANTILES.get(fraction, f"{100 * fraction:g}th percentile of {{x}}")
    else:
        form = _KINDS[asked.kind]
    return form.replace("{x}", x).replace("{y}", "" if asked.other is None else name_of(asked.other))


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _shortened(title: str) -> str:
    return title if len(title) <= LETTERS_MOST else title[: LETTERS_MOST - 1] + "…"
