"""The stage for attacks on nets: small runs on made-up people, and each round's sample, exact sum, event and noise."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import tacit
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import NotTried
from tacit_gauntlet.targets import original, planted, standing

# one run's settings, so that its noise is solved for once
EPSILON, ROUNDS = 8, 8
RUN: dict[str, Any] = {"epsilon": EPSILON, "delta": "1e-7", "epochs": 2, "rate": 1 / 4, "rows_per_person": 8}
BUDGET = tacit.epsilon(10**6, delta="1e-6")
BOUND = 1 << 30
Row = tuple[float, float, float]


@dataclass
class HeardRun:
    """Each round's sample, exact sum, the event that hides it, and what left."""

    samples: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    noisy: list[Any] = field(default_factory=list)


def small_net(module: str = "linear") -> Any:
    """Return a small module: of linear layers, or with a convolution."""
    torch = _torch()
    torch.manual_seed(0)
    if module == "linear":
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    unflatten = torch.nn.Unflatten(1, (1, 3))
    return torch.nn.Sequential(unflatten, torch.nn.Conv1d(1, 2, 2), torch.nn.Flatten(), torch.nn.Linear(4, 1))


def net_loss(outputs: Any, targets: Any) -> Any:
    return _torch().nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)


def net_rows(people: Mapping[int, Sequence[Row]]) -> tuple[Any, list[int]]:
    """Return the rows of people as tensors, and the person of each."""
    torch = _torch()
    rows = [row for own in people.values() for row in own]
    owners = [person for person, own in people.items() for _ in own]
    inputs = torch.tensor(rows, dtype=torch.float32).reshape(len(rows), 3)
    return (inputs, (inputs[:, 0] > 0).float()), owners


def net_crowd(people: int) -> dict[int, list[Row]]:
    draws = random.Random(3)
    return {at: [(draws.gauss(0, 1), draws.gauss(0, 1), draws.gauss(0, 1))] for at in range(people)}


def train_net(people: Mapping[int, Sequence[Row]], *, module: str = "linear", ledger: Any = None, **more: Any) -> Any:
    """Train a small net on people."""
    rows, owners = net_rows(people)
    given = {"unit": owners, "budget": BUDGET, "ledger": tacit.TRYOUT if ledger is None else ledger}
    train = original("deep.train")
    return train(small_net(module), rows, net_loss, **{**RUN, **given, **more})


@contextmanager
def heard_run(*, everyone: bool = False, quiet: bool = False) -> Iterator[HeardRun]:
    """Hear a run's rounds; with `everyone` all people are sampled, and `quiet` ones add no noise."""
    kept = HeardRun()
    release, sample = standing("release of a net's round"), standing("sample of people")

    def released(exact: Any, event: Any) -> Any:
        kept.exact.append(np.array(exact.values))
        kept.events.append(event)
        found = exact.values if quiet else release(exact, event)
        kept.noisy.append(np.array(found))
        return found

    def sampled(rate: Any, people: int) -> Any:
        found = sample(rate, people)
        kept.samples.append(np.array(found))
        return np.ones(people, dtype=np.bool_) if everyone else found

    with planted("release of a net's round", released), planted("sample of people", sampled):
        yield kept


def first_sum(people: Mapping[int, Sequence[Row]], module: str = "linear") -> tuple[Any, Any]:
    """Return the exact sum of a run's first round over everyone, and the event that hides it."""
    with heard_run(everyone=True) as heard:
        train_net(people, module=module)
    return heard.exact[0], heard.events[0]


def refused_in_words(call: Callable[[], object]) -> bool:
    """Whether a call is refused in the product's own words."""
    try:
        call()
    except TacitError:
        return True
    return False


def _torch() -> Any:
    if find_spec("torch") is None:
        raise NotTried("torch is not installed: the extra 'deep'")
    import torch

    torch.set_num_threads(1)
    return torch
