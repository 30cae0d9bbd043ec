"""The one file of this folder that sees a secret: people are sampled, their whole gradients added, and noise enters.

A round draws a fresh secret sample, each person by a separate coin, adds up the gradients of the sampled people, and
releases the sum with noise. Sampling and its price are one object: the event has the rate of the coins. The ledger
notes that rounds begin before their noise is drawn, so that no round is run twice, even if a run is stopped or copied
(docs/proofs/sampled-rounds.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.asking import Payment, Session
from tacit.errors import LedgerError
from tacit.exact import ExactIntegers
from tacit.hold import holding, past_the_charge
from tacit.learning.deep.gradients import Gradients
from tacit.learning.deep.people import PeopleTensors, people_of
from tacit.learning.features import Feature
from tacit.learning.teachers import matrix_of
from tacit.ledger import Receipt
from tacit.noise import Keystream, draw_heads, fresh_bytes
from tacit.numbers import Floats, Integers
from tacit.plan import CodedPlan
from tacit.privacy import GaussianNoise, SubsampledGaussian
from tacit.release import release_integers, release_vector

TOKEN_BYTES = 16


@dataclass(frozen=True)
class CodedPeople:
    """PeopleTensors of a protected table: their features' cells, the class or the number of their target."""

    plan: CodedPlan
    features: tuple[Feature, ...]
    classes: tuple[int, ...]  # of each cell of the target, -1 if it has none; empty for a number
    height: int  # of the target's range in steps, for a number

    def read(self, session: Session, rows: int, device: Any) -> PeopleTensors:
        """Read the rows of a table as people."""
        import torch

        with session.engine.coded(self.plan) as coded:
            blocks = coded.blocks
            columns = [
                np.concatenate([block.cells[at] for block in blocks] or [np.zeros(0, dtype=np.uint8)])
                for at in range(len(self.plan.columns))
            ]
            kept = [
                np.concatenate([block.values[at] for block in blocks] or [np.zeros(0, dtype=np.int64)]).astype(np.int64)
                for at in range(len(self.plan.values) + self.plan.is_by_unit)
            ]
        count = len(columns[0])
        inputs = torch.from_numpy(matrix_of(self.features, columns[: len(self.features)]).astype(np.float32))
        places = kept[-1] if self.plan.is_by_unit else np.arange(count)
        if self.classes:
            target = np.array(self.classes, dtype=np.int64)[columns[-1]]
            is_known, targets = target >= 0, torch.from_numpy(np.maximum(target, 0))
        else:
            is_known = kept[0] >= 0
            targets = torch.from_numpy((np.maximum(kept[0], 0) / max(self.height, 1)).astype(np.float32))
        people = int(places.max(initial=-1)) + 1
        return people_of(inputs, targets, np.where(is_known, places, -1), people, rows, device)


@dataclass(frozen=True, repr=False)
class Tensors:
    """PeopleTensors of tensors that a caller has."""

    inputs: Any
    targets: Any
    places: Integers
    people: int

    def read(self, session: Session, rows: int, device: Any) -> PeopleTensors:  # noqa: ARG002 - as of a table
        return people_of(self.inputs, self.targets, self.places, self.people, rows, device)


Source = CodedPeople | Tensors


@dataclass(frozen=True)
class Begun:
    """A run that is charged: the noisy count of people, and the receipt."""

    noisy_people: int
    receipt: Receipt


class SampledRounds:
    """The rounds of one run: each a noisy sum over a fresh sample of the people."""

    def __init__(self, session: Session, source: Source, rows: int, device: Any) -> None:
        self._session, self._source, self._rows, self._device = session, source, rows, device
        self._people: PeopleTensors | None = None

    def __repr__(self) -> str:
        return "SampledRounds(withheld)"

    def begin(self, payment: Payment, count: GaussianNoise) -> Begun:
        """Charge for all rounds before a row is read, and count the people with noise; charged before, it is free."""
        with holding(self._session.hold), self._session.spend(payment) as charge:
            if charge.stored is None:
                exact = ExactIntegers(np.array([len(self._read())], dtype=np.int64), 1)
                noisy = release_integers(exact, count)[0]
                charge.keep(str(noisy))
                return Begun(noisy, charge.receipt)
        return Begun(int(charge.stored), charge.receipt)

    def _read(self) -> PeopleTensors:
        if self._people is None:
            self._people = self._source.read(self._session, self._rows, self._device)
        return self._people

    def begun(self, charge: int) -> int:
        """Return how many rounds of a run were begun, finished or not."""
        steps = self._session.ledger.steps(charge)
        return steps[-1].end if steps else 0

    def claim(self, charge: int, first: int, end: int) -> None:
        """Note in the ledger that rounds begin; refuse if another process has begun them."""
        token = fresh_bytes(TOKEN_BYTES).hex()
        self._session.ledger.add_step(charge, first=first, end=end, text=token)
        last = self._session.ledger.steps(charge)[-1]
        if (last.first, last.end, last.text) != (first, end, token):
            raise LedgerError("another process goes on with this run\nhint: let one process resume a checkpoint")
        past_the_charge()

    def released(self, gradients: Gradients, event: SubsampledGaussian, bound: int) -> Floats:
        """Return the noisy sum over a fresh sample, in steps of the grid."""
        people = self._read()
        sampled = np.flatnonzero(sample(event.rate, len(people)))
        exact = ExactIntegers(gradients.sum_of(people, sampled).numpy(force=True), bound**2)
        noisy: Floats = release_vector(exact, GaussianNoise(event.sigma, event.sensitivity_squared)).astype(np.float64)
        return noisy


def sample(rate: Fraction, people: int) -> Any:
    """Return a coin for each person, from bits that are used only here."""
    return np.ones(people, dtype=np.bool_) if rate == 1 else draw_heads(rate, people, Keystream())
