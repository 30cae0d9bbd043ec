"""Small nets and people for the tests of deep nets, and what a round hears before and after its noise."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tacit
from tacit.learning.deep import sampling as of_rounds
from tacit.learning.deep import train

torch = pytest.importorskip("torch", reason="torch is not installed; the tests of nets need it: the extra 'deep'")
torch.set_num_threads(1)  # tests run side by side

BUDGET = tacit.epsilon(100, delta="1e-6")
# one run's settings, so that its noise is solved for once
RUN: dict[str, Any] = {"epsilon": 8, "delta": "1e-7", "epochs": 2, "rate": 1 / 4}
ROUNDS = 8


def bce(outputs: Any, targets: Any) -> Any:
    return torch.nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)


def small(width: int = 3) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def convolution() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 3)), torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1)
    )


def people(n: int, width: int = 3) -> tuple[Any, Any]:
    made = torch.Generator().manual_seed(1)
    inputs = torch.randn(n, width, generator=made)
    return inputs, (inputs[:, 0] > 0).float()


def trained(module: Any, rows: Any, loss: Any = bce, **more: Any) -> Any:
    return train(module, rows, loss, **{"budget": BUDGET, "ledger": tacit.TRYOUT, **RUN, **more})


@dataclass
class Heard:
    exact: list[Any] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    samples: list[Any] = field(default_factory=list)
    left: list[Any] = field(default_factory=list)


@contextmanager
def heard(*, everyone: bool = False, quiet: bool = False) -> Iterator[Heard]:
    """Keep each round's sample, exact sum and event; take everyone; add no noise."""
    kept, release, sample = Heard(), of_rounds.release_vector, of_rounds.sample

    def released(exact: Any, event: Any) -> Any:
        kept.exact.append(exact.values.copy())
        kept.moves.append(exact.moves_squared)
        kept.events.append(event)
        kept.left.append(exact.values if quiet else release(exact, event))
        return kept.left[-1]

    def sampled(rate: Any, people: int) -> Any:
        found = np.ones(people, dtype=bool) if everyone else sample(rate, people)
        kept.samples.append(found)
        return found

    with mock.patch.object(of_rounds, "release_vector", released), mock.patch.object(of_rounds, "sample", sampled):
        yield kept
