"""Audit a model: train it again and again with and without one planted person, and guess which training it was.

The tables are made up, so no real row is read and the audit is free. The attacker is the strongest: they
know every other person's row, see the noisy integers of every round, and compute the exact likelihood ratio of the two
tables. The ratio is known before a draw is made, so the event is fixed beforehand and every training is a test.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tacit.accounting import FOR_NOISE
from tacit.asking import Table, table
from tacit.auditing import outcome
from tacit.auditing.distinguish import Event
from tacit.auditing.function_audit import Claim
from tacit.auditing.lower_bound import gaussian_epsilon, gaussian_exceeds, gaussian_mu, mu_lower, prove
from tacit.auditing.outcome import read_outcomes
from tacit.auditing.result import AuditResult, Finding
from tacit.errors import InvalidParameter
from tacit.learning import Rounds
from tacit.numbers import Floats, Integers, Number, confidence_meaning, whole
from tacit.plan import CodedPlan
from tacit.privacy import ApproximateLoss, GaussianNoise, Loss, delta_meaning
from tacit.privacy import epsilon as loss

if TYPE_CHECKING:
    from tacit.engine import CodedRows

PEOPLE = 300
PEOPLE_LEAST = 20
DRAWS_LEAST = 50
USUAL_DELTA = "1e-6"
TARGET = "target"
WORDS = "the noisy rounds are likelier with the person than without"
FEATURES = {
    "age": {"between": (0, 9)},
    "sex": {"keys": ["f", "m"]},
    "ward": {"keys": ["a", "b", "c"]},
}


class Planned(Protocol):
    """A model's plan: its reads, its charge, and its algorithm of noisy rounds."""

    coded: CodedPlan
    events: tuple[GaussianNoise, ...]
    asked: ApproximateLoss

    def learn(self, rounds: Any) -> Any:
        """Return what is made of noisy rounds."""


def audit_model(
    model: Any, *, draws: int = 500, classes: int = 2, people: int = PEOPLE, confidence: Number = "0.999999"
) -> AuditResult:
    """Return the loss that training a model `draws` times with, and again without, one planted person demonstrates.

    `model` is an estimator that is not fitted, with its epsilon and delta. A made-up crowd of `people` has 3 columns
    and one target, a number or one of `classes`; the planted person is unlike all of them. Free; no row is read.

    >>> import tacit
    >>> from tacit.learning import AdditiveClassifier
    >>> tacit.audit_model(AdditiveClassifier(epsilon=1, delta=1e-5, rounds=4), draws=50).violated
    False
    """
    count = whole(draws, name="draws", least=DRAWS_LEAST)
    crowd = whole(people, name="people", least=PEOPLE_LEAST)
    kinds = whole(classes, name="classes", least=2)
    if not hasattr(model, "plan") or isinstance(model, Table):
        raise InvalidParameter(
            "audit_model takes an estimator\nhint: tacit.audit_model(AdditiveClassifier(epsilon=1, delta=1e-5))"
        )
    numeric = getattr(model, "_kind", "classifier") != "classifier"
    # a budget keeps an eighth of its delta for noise, and a model's own delta is all for noise
    budget = loss(model.epsilon, delta=USUAL_DELTA if model.delta is None else delta_meaning(model.delta) / FOR_NOISE)
    tables = [_made_up(crowd, kinds, budget, numeric=numeric, planted=planted) for planted in (False, True)]
    plans: list[Planned] = [model.plan(each, target=TARGET) for each in tables]
    with ExitStack() as stack:
        sides = [
            stack.enter_context(each.session.engine.coded(planned.coded))
            for each, planned in zip(tables, plans, strict=True)
        ]
        with outcome.progress("training", 2 * count) as tick:
            ratios = [_ratios(plans[0], sides, side, count, tick) for side in (0, 1)]
    return _judged(ratios[0], ratios[1], plans[0].asked, confidence_meaning(confidence))


def _made_up(people: int, classes: int, budget: Loss, *, numeric: bool, planted: bool) -> Table:
    """Return a table of a crowd who are all alike in their target, and of one more person who is not."""
    kinds = [f"class {place}" for place in range(classes)]
    usual, unusual = (0, 100) if numeric else (kinds[0], kinds[-1])
    rows = [(place, place * 7 % 10, "fm"[place % 2], "abc"[place % 3], usual) for place in range(people)]
    rows += [(people, 9, "m", "c", unusual)] if planted else []
    names = ("person", *FEATURES, TARGET)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    declared: dict[str, Any] = {**FEATURES, TARGET: {"between": (0, 100)} if numeric else {"keys": kinds}}
    return table(
        pa.table(columns),
        unit="person",
        name="made_up",
        columns=declared,
        budget=budget,
        ledger=":memory:",
        accept_large_delta=True,
    )


def _ratios(planned: Planned, sides: "list[CodedRows]", side: int, count: int, tick: outcome.Tick) -> Floats:
    """Return the log likelihood ratio of each of `count` trainings on one side."""
    found = np.zeros(count)
    for turn in range(count):
        watched = Watched(Rounds(sides[side], planned.events), planned.events, tuple(sides))
        planned.learn(watched)
        found[turn] = watched.ratio
        tick(1)
    return found


@dataclass
class Watched:
    """The rounds an algorithm asks for, and the likelihood ratio of an attacker with both tables."""

    rounds: Rounds
    events: tuple[GaussianNoise, ...]
    sides: "tuple[CodedRows, ...]"
    ratio: float = 0.0  # the log of all rounds' likelihood ratio up to now, with the person against without
    _used: list[Fraction] = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells or bins each column has."""
        return self.rounds.sizes

    def use_bins(self, maps: Any) -> None:
        self.rounds.use_bins(maps)
        self.sides = tuple(side.mapped(maps) for side in self.sides)

    def __getattr__(self, name: str) -> Any:
        """Return the release of that name, watched: counts, residuals, moments and all other reads of rows."""
        if name.startswith("_"):
            raise AttributeError(name)

        def watched(*words: Any) -> Any:
            exact_sides = [getattr(side, name)(*words) for side in self.sides]
            noisy = getattr(self.rounds, name)(*words)
            flat = np.concatenate(noisy) if isinstance(noisy, list) else noisy
            self._see(flat, exact_sides[0].values, exact_sides[1].values, exact_sides[0].moves_squared)
            return noisy

        return watched

    def _see(self, noisy: Integers, exact_without: Integers, exact_with: Integers, moves_squared: int) -> None:
        """Add the log ratio of two discrete Gaussians around whole numbers: it is that of their squared distances."""
        moved = (exact_with - exact_without).astype(np.float64)
        away = (noisy - exact_without).astype(np.float64) - moved / 2
        self.ratio += float(moved @ away) / float(self._event(moves_squared).sigma) ** 2

    def _event(self, moves_squared: int) -> GaussianNoise:
        """Return the event that pays for a round: the first with room, by public facts."""
        self._used = self._used or [Fraction(0)]
        while len(self._used) < len(self.events):
            if self._used[-1] + moves_squared <= self.events[len(self._used) - 1].sensitivity_squared:
                break
            self._used.append(Fraction(0))
        self._used[-1] += moves_squared
        return self.events[len(self._used) - 1]


def _judged(without: Floats, planted: Floats, asked: ApproximateLoss, confidence: Fraction) -> AuditResult:
    """Return the verdict: by the one event that was fixed beforehand, and by the law of Gaussian batches."""
    claim = Claim(asked.epsilon, asked.delta, confidence)
    outcomes = read_outcomes(without.tolist(), planted.tolist())
    event = Event(WORDS, np.concatenate([without, planted]) > 0, likelier_first=False, promise=0.0)
    tally = event.tally(outcomes, 0)
    proved = prove(tally, alpha=claim.alpha)
    mu = mu_lower(proved)
    demonstrated = max(gaussian_epsilon(mu, claim.delta), proved.epsilon(claim.delta))
    return claim.result(
        outcomes,
        event,
        violated=proved.exceeds(claim.epsilon, claim.delta) or gaussian_exceeds(mu, claim.epsilon, claim.delta),
        demonstrated=demonstrated,
        draws=len(without),
        method="likelihood ratio",
        notes=(
            f"the person moves all rounds by {float(mu):.4g} deviations of their noise or more; up to"
            f" {gaussian_mu(claim.epsilon, claim.delta):.4g} is paid for",
            "the noise is taken to be Gaussian",
            "The people are made up. No row was read and no charge was made.",
        ),
        tested=(Finding(WORDS, False, tally, proved),),
    )
