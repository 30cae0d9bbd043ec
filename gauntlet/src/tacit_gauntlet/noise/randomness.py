"""Randomness under attack: whether noise ever repeats, and what happens where the operating system gives none."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tacit.errors import NoRandomness
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.noise.laws import MECHANISMS
from tacit_gauntlet.stage import processes
from tacit_gauntlet.stage.samplers import gaussian_noise, generators_that_raise, laplace_noise, randomness_from, tossed

# How many draw at once, and how often each does in the quick run.
THREADS, THREAD_CALLS = 32, 40


@case("N11", title="seeding a global generator changes nothing, and none is used", feature="noise")
def no_global_generator(size: Size) -> Evidence:
    """Seed numpy's and Python's generators before every release, then replace them by functions that raise."""
    count = 50 if size == "quick" else 500
    seen: list[int] = []
    for _ in range(count):
        np.random.seed(0)
        random.seed(0)
        seen += processes.wide_numbers()
    if len(seen) > len(set(seen)):
        return _all_distinct(seen)
    with generators_that_raise():
        for _ in range(count):
            seen += processes.wide_numbers()
    return _all_distinct(seen)


@case("N12", title="forks, pool workers and pre-forked servers draw different noise", feature="noise")
def forks_draw_different_noise(size: Size) -> Evidence:
    """Draw, so that there is a state to copy, then draw in four processes of each kind."""
    rounds = 1 if size == "quick" else 5
    seen = processes.wide_numbers()
    for _ in range(rounds):
        for drawn in (processes.in_forks(4), processes.in_pool(4), processes.in_prefork_server(4)):
            seen += [number for numbers in drawn for number in numbers]
    return _all_distinct(seen)


@case("N13", title="a fork with the same process id, and a raw clone, draw different noise", feature="noise")
def same_process_id_draws_different_noise(size: Size) -> Evidence:
    """Draw in processes that getpid() cannot tell apart, and in clones that no fork handler has seen."""
    rounds = 1 if size == "quick" else 5
    seen, how = processes.wide_numbers(), set()
    for _ in range(rounds):
        for drawn, arranged in (processes.in_nested_namespaces(), processes.in_raw_clones(4)):
            seen += [number for numbers in drawn for number in numbers]
            how.add(arranged)
    distinct = _all_distinct(seen)
    return Evidence(distinct.passed, {**distinct.details, "arranged by": sorted(how)})


@case("N14", title="32 threads never share a draw", feature="noise")
def threads_never_share_a_draw(size: Size) -> Evidence:
    """Draw 64,000 numbers of scale 2^56 in 32 threads; any two of them are equal with a chance below 1e-8."""
    calls = THREAD_CALLS if size == "quick" else 2 * THREAD_CALLS
    noise = laplace_noise(2**56)

    def draw(_: int) -> list[int]:
        return [int(value) for _ in range(calls) for value in noise.sample(2000 // calls)]

    with ThreadPoolExecutor(THREADS) as pool:
        return _all_distinct([value for values in pool.map(draw, range(THREADS)) for value in values])


def _all_distinct(seen: list[int]) -> Evidence:
    repeated = len(seen) - len(set(seen))
    return Evidence(passed=repeated == 0, details={"draws": len(seen), "repeated": repeated})


@case("N15", title="without fresh randomness nothing is answered", feature="noise")
def nothing_is_answered_without_randomness(size: Size) -> Evidence:
    """Break the operating system's source in seven ways; every release must refuse, and none may come out."""
    rounds = 3 if size == "quick" else 30
    releases: dict[str, Callable[[], object]] = {
        "Laplace": lambda: MECHANISMS["Laplace"]().release(0),
        "Laplace vector": lambda: MECHANISMS["Laplace"]().release(np.zeros(100)),
        "Gaussian": lambda: MECHANISMS["Gaussian"]().release(0.0),
        "wide Gaussian": lambda: gaussian_noise(2**40).sample(10),
        "Bernoulli": lambda: tossed("1/3"),
    }
    answered, refused = [], 0
    for source_name, source in _broken_sources().items():
        with randomness_from(source):
            if source_name == "the same again":
                MECHANISMS["Laplace"]().release(0)  # only the second use shows it
            for name, release in list(releases.items()) * rounds:
                try:
                    release()
                    answered.append(f"{name} with {source_name}")
                except NoRandomness:
                    refused += 1
    return Evidence(passed=not answered, details={"refused": refused, "answered": answered[:4]})


def _broken_sources() -> dict[str, Callable[[int], object]]:
    def fails(_: int) -> bytes:
        raise OSError("getrandom failed")

    def is_missing(_: int) -> bytes:
        raise NotImplementedError("no source")

    again = bytes(range(7, 256)) * 2
    return {
        "an error": fails,
        "no source": is_missing,
        "a short read": lambda n: bytes(range(1, n)),
        "an empty read": lambda _: b"",
        "zeros": bytes,
        "not bytes": lambda n: [1] * n,
        "the same again": lambda n: again[:n],
    }
