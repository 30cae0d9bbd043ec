"""Choosing among a million candidates, and a million reports: each in under a second, beside numpy's insecure way."""

from collections.abc import Iterator

import numpy as np

import tacit
from bench.measure import Ratio, Result, Seconds, best_of, best_of_each

MILLION = 1_000_000


def results() -> Iterator[Result]:
    """Yield each mechanism's time against the float version of the same choice, and its promise of one second."""
    generator = np.random.default_rng(0)
    scores = generator.integers(0, MILLION, MILLION)
    tied = np.zeros(MILLION, dtype=np.int64)

    def by_laplace() -> int:
        return int(np.argmax(scores + generator.laplace(0, 1, MILLION)))

    def by_gumbel() -> int:
        return int(np.argmax(scores * 0.5 + generator.gumbel(0, 1, MILLION)))

    mechanisms = {
        "noisy max": (tacit.NoisyMax(epsilon=1, monotone=True), by_laplace),
        "exponential": (tacit.Exponential(epsilon=1), by_gumbel),
        "permute-and-flip": (tacit.PermuteAndFlip(epsilon=1), by_gumbel),
    }
    for name, (mechanism, baseline) in mechanisms.items():
        ours, theirs, ties = best_of_each(
            lambda mechanism=mechanism: mechanism.release(scores),
            baseline,
            lambda mechanism=mechanism: mechanism.release(tied),
            repeats=5,
        )
        yield Ratio(f"{name}, 10^6, against numpy", ours, theirs)
        yield Seconds(f"{name}, 10^6", ours, limit=1.0)
        yield Seconds(f"{name}, 10^6 ties", ties, limit=1.0)
    top = tacit.TopK(k=10, epsilon=1)
    yield Seconds("top 10 of 10^6", best_of(lambda: top.release(scores), repeats=3), limit=1.0)
    above = tacit.AboveThreshold(threshold=MILLION, epsilon=1)
    yield Seconds("above threshold, 10^6 questions", best_of(lambda: above.release(tied), repeats=3), limit=1.0)
    yield from response_results(generator)


def response_results(generator: np.random.Generator) -> Iterator[Result]:
    """Yield a million reports' time against numpy's, and their estimate's."""
    for kinds in (2, 100):
        response = tacit.RandomizedResponse(epsilon=1, categories=range(kinds))
        answers = generator.integers(0, kinds, MILLION)

        def by_numpy(answers: np.ndarray = answers, kinds: int = kinds, keep: float = response.keep) -> np.ndarray:
            other = generator.integers(0, kinds - 1, MILLION)
            other += other >= answers
            return np.where(generator.random(MILLION) < keep, answers, other)

        ours, theirs = best_of_each(
            lambda response=response, answers=answers: response.release(answers), by_numpy, repeats=5
        )
        yield Ratio(f"10^6 reports of {kinds} answers, against numpy", ours, theirs)
        reports = response.release(answers)
        spent = best_of(lambda response=response, reports=reports: response.estimate(reports), repeats=3)
        yield Seconds(f"estimate from 10^6 reports of {kinds}", spent, limit=1.0)
