"""Random bits: fresh for every release, out of reach of seeds and callers, refused where there are none."""

import inspect
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import NoRandomness
from tacit.noise import bits
from tacit.noise.bits import Keystream, fresh_bytes
from tacit.noise.coins import Bernoulli
from tacit.noise.gaussian import DiscreteGaussian
from tacit.noise.laplace import DiscreteLaplace, laplace_tables
from tacit.numbers import working_precision
from tacit_gauntlet.stage.processes import in_forks, wide_numbers

DRAWERS = [DiscreteLaplace.sample, DiscreteGaussian.sample, Bernoulli.sample]


def test_the_keystream_is_aes_256_in_counter_mode(monkeypatch):
    """The first block under a key of zeros is the standard's test vector for an all-zero block."""
    monkeypatch.setattr(bits, "_fresh_key", lambda: bytes(32))
    words = Keystream().words(2)
    assert words.astype("<u8").tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_a_stream_goes_on_where_it_stopped(monkeypatch):
    monkeypatch.setattr(bits, "_fresh_key", lambda: bytes(range(32)))
    whole = Keystream().words(100_001)
    stream = Keystream()
    parts = [stream.words(n) for n in (1, 0, 60_000, 40_000)]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("width", [1, 4, 17, 64])
def test_words_have_their_width(width):
    words = Keystream().words(2000, width)
    assert words.dtype == np.uint64
    assert int(words.max()).bit_length() == width


def test_every_release_has_a_key_of_its_own(monkeypatch):
    keys = []
    fresh = bits._fresh_key

    def remembered():
        keys.append(fresh())
        return keys[-1]

    monkeypatch.setattr(bits, "_fresh_key", remembered)
    for _ in range(5):
        tacit.Laplace(epsilon=1).release(0)
        tacit.Gaussian(epsilon=1, delta=1e-6).release(np.zeros(3))
        Bernoulli("1/3").sample(1)
    assert len(keys) == len(set(keys)) == 15


def test_no_key_outlives_its_release(monkeypatch):
    given = []

    def remembered(n):
        given.append(os.getrandom(n))
        return given[-1]

    monkeypatch.setattr(os, "urandom", remembered)
    tacit.Laplace(epsilon=1).release(0)
    key = given[0][: bits.KEY_BYTES]
    assert not any(isinstance(value, bytes) and key[:8] in value for value in vars(bits).values())


@pytest.mark.parametrize(
    "source",
    [
        lambda n: bytes(n),
        lambda n: bytes(range(1, n)),
        lambda n: b"",
        lambda n: None,
        lambda n: bytearray(range(1, n + 1)),
    ],
    ids=["zeros", "short", "empty", "none", "not bytes"],
)
def test_a_broken_source_is_refused(monkeypatch, source):
    monkeypatch.setattr(os, "urandom", source)
    with pytest.raises(NoRandomness, match="hint"):
        tacit.Laplace(epsilon=1).release(5)


def test_a_source_that_repeats_itself_is_refused(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: bytes(range(100, 100 + n)))
    tacit.Laplace(epsilon=1).release(5)
    with pytest.raises(NoRandomness):
        tacit.Laplace(epsilon=1).release(5)


def test_fresh_bytes_are_as_many_as_asked():
    assert len(fresh_bytes(16)) == 16
    assert fresh_bytes(16) != fresh_bytes(16)


@pytest.mark.parametrize("drawer", [*DRAWERS, tacit.Laplace.release, tacit.Gaussian.release])
def test_no_public_call_takes_bits_or_a_seed(drawer):
    assert len(inspect.signature(drawer).parameters) == 2  # self, and how many or what


@pytest.mark.parametrize("kind", [tacit.Laplace, tacit.Gaussian, DiscreteLaplace, DiscreteGaussian])
def test_no_constructor_takes_bits_or_a_seed(kind):
    allowed = {"sensitivity", "epsilon", "delta", "scale", "sigma", "textbook"}
    assert set(inspect.signature(kind).parameters) <= allowed


def test_no_public_name_reaches_the_seam_that_fixes_bits():
    """Nothing one can call on a public name, underscores aside, takes bits, a seed or a generator."""
    barred = {"bits", "seed", "rng", "words", "generator", "random_state"}
    taken = {
        f"{name}.{method}": barred & set(inspect.signature(call).parameters)
        for name in tacit.__all__
        for method, call in inspect.getmembers(getattr(tacit, name), callable)
        if inspect.isfunction(call) and (not method.startswith("_") or method in ("__init__", "__call__"))
    }
    assert taken
    assert not {call for call, names in taken.items() if names}
    assert Keystream not in [getattr(tacit, name) for name in tacit.__all__]


def test_a_child_forked_while_a_table_is_built_can_still_draw():
    """A thread that held a lock at the fork does not exist in the child, so nothing there may wait for it."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with working_precision(200):
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    laplace_tables.cache_clear()
    try:
        drawn = in_forks(1, wide_numbers)
    finally:
        done.set()
        thread.join()
    assert len(drawn[0]) == 8


# Who reads words outside noise, and for what: as they come, or to draw a place by exact weights.
WORD_READERS = {
    "auditing/selftest.py": "whether two streams differ",
    "learning/synthetic/field.py": "cells of made-up rows, by the law of a released model",
    "local/client.py": "ids of reports",
    "local/collector.py": "which reports a sample keeps; an order",
    "local/protocols/hashing.py": "hashes",
    "selection/quantile.py": "places by weights, and the order of ties",
    "selection/weights.py": "places by weights",
}


def readers_of_words(sources):
    return {path for path, text in sources.items() if re.search(r"(\bbits|Keystream\(\))\.words\(", text)}


def test_coins_and_noise_are_drawn_in_noise_alone():
    """Every other coin would be a second one, with a law of its own to prove."""
    root = Path(tacit.__file__).parent
    sources = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    assert {path for path in readers_of_words(sources) if not path.startswith("noise/")} == set(WORD_READERS)
    assert readers_of_words({"plan/coin.py": "heads = bits.words(1) < threshold"}) == {"plan/coin.py"}
