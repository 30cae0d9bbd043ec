"""Published bugs of tables to publish, planted: each must be noticed by the case it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "totals that count hidden groups",
    killed_by="Q56",
    published="totals that give suppressed cells away: AI-SDC/ACRO, issue 198",
)
@contextmanager
def totals_of_all() -> Iterator[None]:
    """Each level is a question of its own, so that the total is of all rows."""
    with planted("levels add up", lambda _: False):
        yield


@mutant(
    "others from exact rows",
    killed_by="Q56",
    published="a bin for the rest that is made up, and weighed as if it were measured: OpenDP, pull request 2838",
)
@contextmanager
def exact_others() -> Iterator[None]:
    """The last group, which holds the others, is released without noise."""
    noisy = original("with noise")

    def released(each: Any, plan: Any, exact_table: Any, *, once: bool = False) -> Any:
        found = noisy(each, plan, exact_table, once=once)
        if plan.has_others and not once:
            for part, values in zip(each.parts, found, strict=True):
                values[-1] = int(exact_table.part_values(part, plan)[-1])
        return found

    with planted("with noise", released):
        yield


@mutant(
    "a workload charged as its first question",
    killed_by="Q57",
    published="composition forgotten: k answers for the price of one",
)
@contextmanager
def first_charged() -> Iterator[None]:
    """The events of one question stand for all."""
    with planted("events of plans together", property(lambda planned: planned.plans[0].events)):
        yield


@mutant(
    "questions of a workload at shares above the charge",
    killed_by="Q57",
    published="composition forgotten: k answers at epsilon each",
)
@contextmanager
def shares_of_one() -> Iterator[None]:
    """A weight is a share of its own."""
    with planted("shares of a workload", lambda sizes: [Fraction(1)] * len(sizes)):
        yield


@mutant(
    "tables made to agree that do not",
    killed_by="Q57",
    published="Abowd and others 2022: constraints that the counted tables do not meet bias what is published",
)
@contextmanager
def fitted_anyway() -> Iterator[None]:
    """A filter is taken to keep only listed values, whatever it is."""
    with planted("values that a filter keeps", lambda *_: True):
        yield
