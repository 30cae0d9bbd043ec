"""Reads GROUP BY with ROLLUP, CUBE and GROUPING SETS: which levels an answer has."""

from collections.abc import Callable, Sequence
from itertools import product

from sqlglot import exp

from tacit.query.sql.refusals import only, refusal

# More levels than this are not asked at once: each gets its share of epsilon.
LEVELS_MOST = 64

Names = tuple[str, ...]


def read_levels(group: exp.Expr, name_of: Callable[[exp.Expr], str]) -> tuple[Names, ...]:
    """Return the keys of each level, by name, each level once for each time that it is asked for.

    `name_of` reads a key; several parts of a GROUP BY are combined, each level of one with each of the others.
    """
    only(group, "expressions", "rollup", "cube", "grouping_sets")
    whole = _with(group)
    if whole is not None:  # GROUP BY a, b WITH ROLLUP
        parts = [_sets(whole, [[name_of(node)] for node in group.expressions], group)]
    else:
        parts = [_element(node, name_of) for node in group.expressions]
    found = []
    for combined in product(*parts):
        found.append(tuple(dict.fromkeys(name for names in combined for name in names)))
        if len(found) > LEVELS_MOST:
            raise refusal(
                group, f"this GROUP BY has more than {LEVELS_MOST} levels", "ask for fewer, with GROUPING SETS"
            )
    return tuple(found)


def _with(group: exp.Expr) -> type[exp.Expr] | None:
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(name):
            return kind
    return None


def _element(node: exp.Expr, name_of: Callable[[exp.Expr], str]) -> list[Names]:
    """Return the levels of one element of a GROUP BY."""
    if isinstance(node, exp.Rollup | exp.Cube):
        return _sets(type(node), [list(_names(each, name_of)) for each in node.expressions], node)
    if isinstance(node, exp.GroupingSets):
        return [level for each in node.expressions for level in _element(each, name_of)]
    return [_names(node, name_of)]


def _names(node: exp.Expr, name_of: Callable[[exp.Expr], str]) -> Names:
    if isinstance(node, exp.Tuple):
        return tuple(name_of(each) for each in node.expressions)
    return (name_of(node),)


def _sets(kind: type[exp.Expr], parts: Sequence[Sequence[str]], node: exp.Expr) -> list[Names]:
    """Return the levels of a ROLLUP or a CUBE of parts, each of which is kept whole or rolled up."""
    if kind is exp.Rollup:
        return [tuple(name for part in parts[:end] for name in part) for end in range(len(parts), -1, -1)]
    if len(parts) > LEVELS_MOST.bit_length() - 1:
        raise refusal(node, f"this CUBE has more than {LEVELS_MOST} levels", "ask for fewer, with GROUPING SETS")
    choices = product((True, False), repeat=len(parts))
    return [
        tuple(name for part, kept in zip(parts, choice, strict=True) if kept for name in part) for choice in choices
    ]
