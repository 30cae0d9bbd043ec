"""`train`, the one way a model reads rows: reserve every event, code rows once, ask in rounds, store the drawn numbers.

This is the only file of the room that sees a secret. An algorithm is a function of `Rounds`, which hands out only
noisy integers: each call takes its move from a reserved event, and is refused if the event is used up. So with any use
of the earlier results, all rounds together are the batch that was charged (docs/proofs/rounds.md).
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tacit.asking import Payment, Session, Table, replaced
from tacit.errors import InvalidParameter
from tacit.exact import ExactIntegers
from tacit.hold import holding
from tacit.ledger import Receipt
from tacit.numbers import Integers
from tacit.plan import (
    BinMaps,
    CentreSums,
    CodedPlan,
    GridCounts,
    Judgement,
    Merit,
    Moments,
    PairDistances,
    PairTables,
    Scores,
    SquaredErrors,
)
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.release import release_choice, release_integers
from tacit.selection import NoisyMax

if TYPE_CHECKING:
    from tacit.engine import CodedRows

Released = TypeVar("Released")

INT_MOST = (1 << 63) - 1

# Hears which part of the reserved loss a round has taken.
Tick = Callable[[float], None]


@contextmanager
def progress(events: Sequence[GaussianNoise], *, shown: bool) -> Iterator[Tick]:
    """Yield a function to call after each round, which moves a bar on a terminal and does nothing elsewhere.

    The bar shows rounds against the reserved ones, which are public, and never depends on rows. Where answers leave
    on a public clock it is not shown: how long a round takes may depend on rows.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning", total=float(sum(each.sensitivity_squared / each.sigma**2 for each in events)))
        yield lambda part: bar.advance(task, part)


class Rounds:
    """Noisy integers of one table's rows, round after round, within the events that were reserved for them.

    A round takes from the first event what one unit can move it by, squared; where too little is left, the rest of
    that event stays unused and the next event is taken. Beyond the last one a round is refused.
    """

    def __init__(
        self, rows: "CodedRows", events: Sequence[GaussianNoise], *, moves: int = 1, tick: Tick | None = None
    ) -> None:
        self._rows = rows
        self._left = [event.sensitivity_squared for event in events]
        self._events = tuple(events)
        self._moves = moves  # the factor for the square of a unit's move: 4 if a unit is replaced
        self._at = 0
        self._tick = tick

    def __repr__(self) -> str:
        return "Rounds(withheld)"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells or bins each column has; public."""
        return self._rows.sizes

    def counts(self, columns: Sequence[int] | None = None) -> list[Integers]:
        """Return the noisy weight of units in each cell of each column, in steps of UNIT."""
        sizes = [self.sizes[index] for index in (range(len(self.sizes)) if columns is None else columns)]
        noisy = self._released(self._rows.counts(columns))
        return np.split(noisy, np.cumsum(sizes)[:-1])

    def use_bins(self, maps: BinMaps) -> None:
        """Map cells to coarser bins from here on, by public maps."""
        self._rows = self._rows.mapped(maps)

    def residuals(self, scores: Scores) -> Integers:
        """Return the noisy sums of a model's residuals: its columns' blocks by class and bin, then the intercept's."""
        return self._released(self._rows.residuals(scores))

    def moments(self, moments: Moments) -> Integers:
        """Return the noisy sums of products of cells and numbers, in steps of UNIT."""
        return self._released(self._rows.moments(moments))

    def distances(self, asked: PairDistances) -> Integers:
        """Return the noisy distance of each pair of columns from a public guess, in steps of UNIT."""
        return self._released(self._rows.distances(asked))

    def pair_tables(self, asked: PairTables) -> Integers:
        """Return the noisy counts by pairs of columns, each in steps of UNIT over its weight."""
        return self._released(self._rows.pair_tables(asked))

    def squared_errors(self, model: SquaredErrors) -> Integers:
        """Return the noisy sums of a linear model's squared errors, in steps of UNIT."""
        return self._released(self._rows.squared_errors(model))

    def grid_counts(self, asked: GridCounts) -> Integers:
        """Return the noisy weight of units in each cell of a public grid, in steps of UNIT."""
        return self._released(self._rows.grid_counts(asked))

    def centre_sums(self, asked: CentreSums) -> Integers:
        """Return the noisy sums about each public centre: counts, then squared distances, then each number's."""
        return self._released(self._rows.centre_sums(asked))

    def judged(self, judgement: Judgement) -> Integers:
        """Return the noisy sums that say how well a public model does."""
        return self._released(self._rows.judged(judgement))

    def votes(self, counted: Callable[[Sequence[Integers]], Integers], moves_squared: int) -> Integers:
        """Return noisy counts of votes, of models that are trained on the rows here and are gone afterwards.

        `counted` has the votes, from the cells of each column; `moves_squared` is how far one unit moves them, squared.
        """
        cells = [np.concatenate(each) for each in zip(*(block.cells for block in self._rows.blocks), strict=True)]
        if not cells:
            cells = [np.zeros(0, dtype=np.int64) for _ in self.sizes]
        return self._released(ExactIntegers(counted(cells), moves_squared))

    def _released(self, exact: ExactIntegers) -> Integers:
        """Return noisy integers, charged to a reserved event."""
        event = self._taken(exact.moves_squared)
        noisy = release_integers(exact, event)
        if self._tick is not None:
            self._tick(float(event.sensitivity_squared / event.sigma**2))
        if max(map(abs, noisy), default=0) > INT_MOST:
            noisy = [max(-INT_MOST, min(INT_MOST, each)) for each in noisy]
        return np.array(noisy, dtype=np.int64)

    def _taken(self, moves_squared: int) -> GaussianNoise:
        """Return the noise of a round that one unit moves by this length, from the rest of the reserved events."""
        squared = Fraction(moves_squared) * self._moves
        while self._at < len(self._events) and self._left[self._at] < squared:
            self._at += 1
        if self._at == len(self._events):
            raise InvalidParameter("no reserved event has room for this round\nhint: reserve all rounds in advance")
        self._left[self._at] -= squared
        return replace(self._events[self._at], sensitivity_squared=squared)


@dataclass(frozen=True)
class Paid(Generic[Released]):
    """What was released for a model, the ledger's receipt, and whether it is free: paid for before."""

    value: Released
    receipt: Receipt
    free: bool


def train(
    table: Table,
    coded: CodedPlan,
    events: Sequence[GaussianNoise],
    *,
    asked: ApproximateLoss | None,
    key: str,
    words: str,
    steps: Callable[[Rounds], Released],
    encode: Callable[[Released], str] = json.dumps,
    decode: Callable[[str], Released] = json.loads,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Paid[Released]:
    """Return what an algorithm makes of a table's noisy rounds, charged for all of them before a row is read.

    `steps` is the algorithm, and its result is all that leaves and is stored. `key` says which algorithm it is, with
    everything it depends on; the rows, the columns and the events are added here. Asked again, it is free and the same.
    """
    session = table.session
    if coded.unit != session.declaration.unit_column:
        raise InvalidParameter("the unit of a model must be the unit of its table")
    if any(event.scalar for event in events):
        raise InvalidParameter("the events of rounds are of vectors: one unit can move several of their numbers")

    def run() -> Released:
        with progress(events, shown=session.hold is None) as tick, session.engine.coded(coded) as rows:
            return steps(Rounds(rows, events, moves=replaced(session), tick=tick))

    payment = Payment(
        tuple(events),
        f"model {_digest_of_model(key, coded, tuple(events))}",
        asked=asked,
        loss=asked,
        request_id=request_id,
        analyst=analyst,
        words=words,
    )
    return paid_for(session, payment, run, encode, decode)


def choose(
    table: Table,
    coded: CodedPlan,
    judged: Sequence[tuple[BinMaps, Merit]],
    mechanism: NoisyMax,
    *,
    key: str,
    words: str,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Paid[int]:
    """Return which of several public models does about best on a table's rows: one noisy choice, charged first."""
    session = table.session

    def run() -> int:
        with session.engine.coded(coded) as rows:
            merits = [rows.mapped(maps).judged(merit) for maps, merit in judged]
        together = ExactIntegers(
            np.concatenate([each.values for each in merits]), sum(each.moves_squared for each in merits)
        )
        return release_choice(together, mechanism)

    payment = Payment(
        (mechanism.event,),
        f"choice {_digest_of_model(key, coded, mechanism.event)}",
        loss=mechanism.loss,
        request_id=request_id,
        analyst=analyst,
        words=words,
    )
    return paid_for(session, payment, run, str, int)


def paid_for(
    session: Session,
    payment: Payment,
    run: Callable[[], Released],
    encode: Callable[[Released], str],
    decode: Callable[[str], Released],
) -> Paid[Released]:
    """Charge for what `run` releases and keep it, as `encode` writes it; or return what was kept before."""
    with holding(session.hold), session.spend(payment) as charge:
        if charge.stored is None:
            released = run()
            charge.keep(encode(released))
            return Paid(released, charge.receipt, free=False)
    return Paid(decode(charge.stored), charge.receipt, free=True)


def _digest_of_model(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
