"""Rules that made-up rows keep, such as "discharged >= admitted": which bins they leave possible, and which rows.

A rule is an expression of the question language. A row breaks it if it is false; with a missing value it is neither.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.synthetic.made_columns import MadeColumn
from tacit.numbers import Flags, Integers
from tacit.query import Expression, Frame, columns_of, evaluate
from tacit.tables import Declaration

RULES_MOST = 20


@dataclass(frozen=True)
class RowRule:
    """A rule in words and as an expression, and the places of its columns among the made ones."""

    text: str
    expression: Expression
    columns: tuple[int, ...]

    def is_kept(self, names: Sequence[str], values: Sequence[Any]) -> bool:
        """Whether values of the rule's columns keep it."""
        row = {
            name: Fraction(value) if isinstance(value, Decimal) else value
            for name, value in zip(names, values, strict=True)
        }
        return evaluate(self.expression, row) is not False


def read_rules(rules: Iterable[str], columns: Sequence[MadeColumn], declaration: Declaration) -> tuple[RowRule, ...]:
    """Return rules that are checked against a declaration; refuse those about other columns."""
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise InvalidParameter("rules must be a list\nhint: rules=['discharged >= admitted']")
    names, found = [column.name for column in columns], []
    for text in rules:
        if not isinstance(text, str):
            raise InvalidParameter("a rule is written as text\nhint: rules=['discharged >= admitted']")
        expression = Frame(declaration).filtered(text).where
        read = columns_of(expression)
        strangers = sorted(read - {*names})
        if expression is None or strangers or not read:
            raise QueryRefused(
                f"the rule '{text}' must be about columns of the made-up rows"
                + (f", and {', '.join(strangers)} is not among them" if strangers else "")
                + "\nhint: name the columns of the rule in columns=[...] as well"
            )
        found.append(RowRule(text, expression, tuple(at for at, name in enumerate(names) if name in read)))
    if len(found) > RULES_MOST:
        raise InvalidParameter(f"at most {RULES_MOST} rules are kept\nhint: join some of them with AND")
    return tuple(found)


def possible_bins(rule: RowRule, columns: Sequence[MadeColumn], bins: Sequence[Integers]) -> Flags:
    """Return which bins of a rule's columns have values that keep it, tried at the ends and in the middle of each."""
    names = [columns[at].name for at in rule.columns]
    values = [columns[at].examples(bins[at]) for at in rule.columns]
    shape = tuple(len(each) for each in values)
    allowed = np.zeros(shape, dtype=np.bool_)
    for place in np.ndindex(shape):
        tried = product(*(each[at] for each, at in zip(values, place, strict=True)))
        allowed[place] = any(rule.is_kept(names, each) for each in tried)
    return allowed if allowed.any() else np.ones(shape, dtype=np.bool_)


def keeping_rules(rows: pa.Table, rules: Sequence[RowRule]) -> Flags:
    """Return which rows keep all rules."""
    kept = np.ones(rows.num_rows, dtype=np.bool_)
    for rule in rules:
        names = sorted(columns_of(rule.expression))
        distinct: dict[tuple[Any, ...], bool] = {}
        values = zip(*(rows[name].to_pylist() for name in names), strict=True)
        for place, each in enumerate(values):
            if each not in distinct:
                distinct[each] = rule.is_kept(names, each)
            kept[place] &= distinct[each]
    return kept
