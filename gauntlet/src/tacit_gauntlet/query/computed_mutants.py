"""Bugs of what is computed, planted: windows, intervals, HAVING, inferred ranges and units with a condition."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a window counts from the other end", killed_by="Q53", published="ORDER BY of a window that is not looked at")
@contextmanager
def window_turned() -> Iterator[None]:
    """The values of a window are given to the rows in the opposite order."""
    values = original("values of a window")
    with planted("values of a window", lambda *given: values(*given)[::-1]):
        yield


@mutant(
    "like ends of a difference", killed_by="Q53", published="interval arithmetic: a - b from low - low to high - high"
)
@contextmanager
def like_ends() -> Iterator[None]:
    """The interval of a difference is too short."""
    rules = original("rules of intervals")

    def shorter(call: Any, parts: Any) -> Any:
        whole = rules["+"](call, parts)
        left, right = parts
        return replace(whole, low=left.low - right.low, high=left.high - right.high)

    with planted("rules of intervals", {**rules, "-": shorter}):
        yield


@mutant("HAVING without what is not shown", killed_by="Q53", published="clauses that are parsed and not looked at")
@contextmanager
def having_left_out() -> Iterator[None]:
    """A filter of groups is read and not applied."""
    apply = original("post-processing of an answer")
    with planted("post-processing of an answer", lambda rows, after: apply(rows, replace(after, having=None))):
        yield


@mutant("a CASE without its ELSE", killed_by="Q54", published="a range inferred from some of the branches")
@contextmanager
def branch_left_out() -> Iterator[None]:
    """The range of a CASE is that of its branches but the last."""
    rules = original("rules of ranges")

    def fewer(call: Any, inner: Any) -> Any:
        return rules["coalesce"](replace(call, arguments=call.arguments[1:-1:2]), inner)

    with planted("rules of ranges", {**rules, "case": fewer}):
        yield


@mutant("LEAST and GREATEST swapped", killed_by="Q54", published="a clamp that is read the wrong way round")
@contextmanager
def swapped() -> Iterator[None]:
    """A constant in LEAST is taken for a lower end."""
    rules = original("rules of ranges")
    with planted("rules of ranges", {**rules, "least": rules["greatest"], "greatest": rules["least"]}):
        yield


@mutant(
    "a product of like ends", killed_by="Q54", published="interval arithmetic that forgets signs: low·low to high·high"
)
@contextmanager
def narrow_products() -> Iterator[None]:
    """The range of a product is too narrow where a factor may be negative."""
    rules = original("rules of ranges")

    def narrow(call: Any, inner: Any) -> Any:
        (low, high), (low2, high2) = map(inner, call.arguments)
        return min(low * low2, high * high2), max(low * low2, high * high2)

    with planted("rules of ranges", {**rules, "*": narrow}):
        yield


@mutant(
    "units whatever the condition", killed_by="S51", published="a CASE inside COUNT(DISTINCT) that is not looked at"
)
@contextmanager
def condition_left_out() -> Iterator[None]:
    """COUNT(DISTINCT CASE WHEN c THEN id END) counts all units."""
    units = original("units with a condition")

    def all_units(self: Any, node: Any) -> Any:
        asked = units(self, node)
        return None if asked is None else replace(asked, kind="count_units", expression=None, per_unit=None)

    with planted("units with a condition", all_units):
        yield
