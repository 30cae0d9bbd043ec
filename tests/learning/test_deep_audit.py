"""Audits of small trainings with and without one planted person: what they show stays under what was charged.

The event is fixed beforehand: the planted person pulls one weight the same way in every round, and the released sums of
that weight add up to more than half of what one round adds. Bounds are wrong with chance 1e-9.
"""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import tacit
from tacit.auditing.lower_bound import Tally, prove
from tacit.learning.deep import sampling
from tacit.learning.deep.whole import BOUND
from tacit.ledger import open_ledger
from tests.learning.nets import heard, torch, trained

EPSILON, DELTA = 1, Fraction(1, 10**7)
ALPHA = Fraction(1, 10**9)
CROWD = 3


def shown(draws, ledger):
    """Return the epsilon that so many trainings on each side show."""

    def count(planted):
        inputs = torch.tensor([[0.0]] * CROWD + [[1e6]] * planted)
        module, times = torch.nn.Linear(1, 1, bias=False), 0
        for _ in range(draws):
            with heard() as kept:
                trained(
                    module, (inputs, torch.ones(len(inputs))), lambda outputs, targets: (outputs[:, 0] * targets).sum(),
                    epsilon=EPSILON, delta=DELTA, epochs=2, rate=1 / 2, ledger=ledger,
                    budget=tacit.epsilon(10**6, delta="1e-6"),
                )  # fmt: skip
            times += sum(float(each[0]) for each in kept.left) > BOUND / 2
        return times

    tally = Tally(count(planted=1), draws, count(planted=0), draws)
    return prove(tally, alpha=ALPHA).epsilon(DELTA)


def quieter(factor):
    """Let rounds have this part of the noise that was charged."""
    release = sampling.release_vector

    def released(exact, event):
        noisy = release(exact, event)
        return exact.values + np.rint((noisy - exact.values) * factor).astype(np.int64)

    return mock.patch.object(sampling, "release_vector", released)


def test_an_audit_of_few_trainings_stays_under_the_claim_and_sees_a_sixtieth_of_the_noise():
    ledger = open_ledger(":memory:")
    assert shown(20, ledger) <= EPSILON
    with quieter(1 / 64):
        assert shown(120, ledger) > EPSILON


@pytest.mark.slow
def test_an_audit_of_a_thousand_trainings_stays_under_the_claim_and_sees_a_sixteenth_of_the_noise():
    ledger = open_ledger(":memory:")
    assert shown(1000, ledger) <= EPSILON
    with quieter(1 / 16):
        assert shown(1000, ledger) > EPSILON
