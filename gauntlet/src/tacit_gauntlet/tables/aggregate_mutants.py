"""Published bugs of second moments and quantiles, planted in our own planner, engine and release."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted


@mutant(
    "second moments without the group factor",
    killed_by="S18",
    published="a covariance charged for one group although one unit may be in several",
)
@contextmanager
def one_group() -> Iterator[None]:
    def forgetful(parts: Any, *args: Any, **words: Any) -> Any:
        groups = 1 if parts[-1].kind == "moment" else words["groups_per_unit"]
        return original("sensitivity_of")(parts, *args, **(words | {"groups_per_unit": groups}))

    with planted("sensitivity_of", forgetful):
        yield


@mutant(
    "clipped after the sum",
    killed_by="S18",
    published="values added up as they are and only the total clipped, so that one row moves it without limit",
)
@contextmanager
def clipped_late() -> Iterator[None]:
    clamped = original("clamped")

    def hardly(value: Any, low: float, high: float) -> Any:
        return clamped(value, low - 3 * (high - low), high + 3 * (high - low))

    with in_sql(), planted("clamped", hardly):
        yield


@mutant(
    "different values of one unit without a bound",
    killed_by="S18",
    published="COUNT(DISTINCT x) charged as one per unit, whatever number of values a unit brings",
)
@contextmanager
def unbounded_values() -> Iterator[None]:
    bounded = original("distinct_relation")

    def unbounded(plan: Any, place: int, *args: Any) -> Any:
        wide = tuple(replace(each, per_unit=10**6) for each in plan.distincts)
        return bounded(replace(plan, distincts=wide), place, *args)

    with planted("distinct_relation", unbounded):
        yield


@mutant(
    "quantile score sensitivity 1 with r rows",
    killed_by="S19",
    published="the exponential mechanism's rank score taken to move by 1 although a unit has several rows",
)
@contextmanager
def one_row() -> Iterator[None]:
    def single(epsilon: Any, rows_per_unit: int, replace: bool = False) -> Any:  # noqa: FBT001 - as Rate is made
        del rows_per_unit
        return original("Rate")(epsilon, 1, replace)

    with planted("Rate", single):
        yield


@mutant(
    "error bar of a quantile read from exact data",
    killed_by="S19",
    published="intervals whose ends are the data's own order statistics, paid for by nobody",
)
@contextmanager
def exact_ends() -> Iterator[None]:
    def with_exact_ends(steps: Any, targets: Any, *, starts: Any, ends: Any, **words: Any) -> Any:
        found = original("draw_quantiles")(steps, targets, starts=starts, ends=ends, **words)
        for at, target in enumerate(targets):
            ranks = (float(target.fraction) * (ends - starts - 1)).astype(int)
            low, middle, high = found[at]
            np.minimum(middle, steps[starts + np.maximum(ranks - 2, 0)], out=low)
            np.maximum(middle, steps[np.minimum(starts + ranks + 2, ends - 1)], out=high)
        return found

    with planted("draw_quantiles", with_exact_ends):
        yield


@mutant(
    "intervals of several quantiles paid for once",
    killed_by="S19",
    published="a row counted in the first of several overlapping intervals only, as if they split the rows",
)
@contextmanager
def one_interval_charged() -> Iterator[None]:
    planned = original("draw_of")

    def cheap(*args: Any, **words: Any) -> Any:
        draw = planned(*args, **words)
        return replace(draw, ends_epsilon=draw.ends_epsilon * draw.ends, ends=1)

    with planted("draw_of", cheap):
        yield


@mutant(
    "score of the greatest taken to move one way",
    killed_by="S19",
    published="the rank score of a maximum taken for monotone, so that it is hidden half as well as it need be",
)
@contextmanager
def one_way_extreme() -> Iterator[None]:
    def narrow(rate: Any) -> Any:
        return rate.epsilon / (original("BEYOND") * rate.rows_per_unit)

    with planted("Rate.for_extreme", narrow):
        yield
