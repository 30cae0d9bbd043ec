"""Published bugs of questions with several parts, planted: each must be noticed by the case it names."""

from collections.abc import Iterator
from contextlib import contextmanager

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import planted


@mutant(
    "charged for one level only",
    killed_by="Q51",
    published="Kotsogiannis and others 2019: queries of one report that share a charge made for one of them",
)
@contextmanager
def one_level_charged() -> Iterator[None]:
    """The events of the first plan stand for all."""
    with planted("events of plans together", property(lambda self: self.plans[0].events)):
        yield


@mutant(
    "the whole epsilon for every level", killed_by="Q51", published="composition forgotten: k answers at epsilon each"
)
@contextmanager
def undivided() -> Iterator[None]:
    """Each level is planned with all of epsilon, and one of them is charged."""
    with (
        planted("shares of a spend", lambda spend, queries: (spend,) * len(queries)),
        planted("events of plans together", property(lambda self: self.plans[0].events)),
    ):
        yield
