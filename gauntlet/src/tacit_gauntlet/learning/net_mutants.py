"""Bugs of nets: clipping after summing, or by layer; batches of a fixed size; floats as noise; repeated rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted, standing

BOUND = 1 << 30


@mutant(
    "clipping after summing",
    killed_by="M31",
    published="the batch's mean gradient is clipped, as torch's own clip_grad_norm_ does",
)
@contextmanager
def clipped_after() -> Iterator[None]:
    def unclipped(_: Any, clip: float, live: Any) -> Any:
        return live.double() * (BOUND / clip)

    with planted("weights of people", unclipped), planted("people within the bound", lambda steps: steps >= 0):
        yield


@mutant(
    "each layer clipped to the whole bound",
    killed_by="M31",
    published="per-layer clipping charged as if the whole gradient were clipped",
)
@contextmanager
def clipped_by_layer() -> Iterator[None]:
    def by_layer(norms_squared: Any, clip: float, live: Any) -> Any:
        return original("weights of people")(norms_squared / 4, clip, live)

    with planted("weights of people", by_layer), planted("people within the bound", lambda steps: steps >= 0):
        yield


@mutant(
    "noise for one layer of several",
    killed_by="M31",
    published="noise is scaled to each layer's own bound, and the whole is charged",
)
@contextmanager
def noise_by_layer() -> Iterator[None]:
    def narrow(exact: Any, event: Any) -> Any:
        noisy = original("release of a net's round")(exact, event)
        return exact.values + (noisy - exact.values) // 2

    with planted("release of a net's round", narrow):
        yield


@mutant(
    "a person's rows are people",
    killed_by="M31",
    published="Opacus clips each example, whoever it belongs to (issue 366)",
)
@contextmanager
def rows_as_people() -> Iterator[None]:
    with planted("people of rows", lambda _, rows: (np.arange(rows, dtype=np.int64), rows)):
        yield


@mutant(
    "batches of a fixed size",
    killed_by="M32",
    published="shuffled batches of one size, accounted as Poisson samples (Chua et al. 2024)",
)
@contextmanager
def fixed_batches() -> Iterator[None]:
    def fixed(rate: Any, people: int) -> Any:
        chosen = np.zeros(people, dtype=np.bool_)
        order = np.argsort(original("Keystream")().words(people))
        chosen[order[: int(rate * people)]] = True
        return chosen

    with planted("sample of people", fixed):
        yield


@mutant(
    "one sample for all rounds", killed_by="M32", published="a subset is drawn once and its rounds are each amplified"
)
@contextmanager
def one_sample() -> Iterator[None]:
    drawn: dict[int, Any] = {}

    def kept(rate: Any, people: int) -> Any:
        if people not in drawn:
            drawn[people] = original("sample of people")(rate, people)
        return drawn[people]

    with planted("sample of people", kept):
        yield


@mutant(
    "floats as noise",
    killed_by="M33",
    published="Opacus adds torch.normal in 32-bit floats; secure_mode too (issue 616)",
)
@contextmanager
def float_noise() -> Iterator[None]:
    def normal(exact: Any, event: Any) -> Any:
        draws = np.random.default_rng().normal(0, float(event.sigma), len(exact.values)).astype(np.float32)
        return (exact.values.astype(np.float32) + draws).astype(np.int64)

    with planted("release of a net's round", normal):
        yield


@mutant(
    "noise by the round's number",
    killed_by="M34",
    published="a generator is seeded at the start, and again after a resume",
)
@contextmanager
def seeded_noise() -> Iterator[None]:
    def seeded(exact: Any, event: Any) -> Any:
        draws = np.random.default_rng(7).normal(0, float(event.sigma), len(exact.values))
        return exact.values + np.rint(draws).astype(np.int64)

    with planted("release of a net's round", seeded):
        yield


@mutant(
    "rounds are begun again",
    killed_by="M34",
    published="a resumed run starts from its checkpoint's round, as often as it is resumed",
)
@contextmanager
def begun_again() -> Iterator[None]:
    with planted("SampledRounds.begun", lambda *_: 0), planted("SampledRounds.claim", lambda *_: None):
        yield


@mutant(
    "people are read before the charge",
    killed_by="M35",
    published="a budget is checked by an accountant after the step it is for",
)
@contextmanager
def read_first() -> Iterator[None]:
    def later(self: Any, payment: Any, count: Any) -> Any:
        standing("sample of people")(Fraction(1, 2), 3)
        return original("SampledRounds.begin")(self, payment, count)

    with planted("SampledRounds.begin", later):
        yield
