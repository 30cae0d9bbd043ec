"""Published bugs of noise, planted in our samplers and mechanisms: each must be killed by the case that names it."""

import os
import random
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import NoRandomness
from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.noise.randomness import THREAD_CALLS, THREADS
from tacit_gauntlet.targets import original, planted

Planted = Iterator[None]
# Threads that should meet and have not by then go on alone.
MEETING_SECONDS = 60.0


def _noisy_float(scale: float) -> Callable[[object, Any], Any]:
    """Naive noise: one float plus another."""

    def release(_: object, exact: Any) -> Any:
        values = np.asarray(exact, dtype=np.float64)
        return values + np.random.default_rng().laplace(0.0, scale, values.shape)

    return release


# ---- digits --------------------------------------------------------------------------------------------------------


@mutant("float Laplace, off the grid", killed_by="N01", published="Mironov 2012, least significant bits")
def float_laplace() -> AbstractContextManager[None]:
    """Add a floating-point Laplace draw to a float."""
    return planted("Laplace.release", _noisy_float(1.0))


@mutant(
    "float Laplace, precision", killed_by="N02", published="Mironov 2012; Haney et al. 2022, precision-based attack"
)
def float_laplace_precision() -> AbstractContextManager[None]:
    """The same bug, seen through how precise outputs are."""
    return planted("Laplace.release", _noisy_float(1.0))


@mutant("float Gaussian, precision", killed_by="N02", published="Jin et al. 2022, floating-point Gaussian attacks")
def float_gaussian_precision() -> AbstractContextManager[None]:
    """Add a floating-point draw in the Gaussian mechanism too."""
    return planted("Gaussian.release", _noisy_float(4.2))


@mutant("input not rounded to the grid", killed_by="N01", published="snapping done on the noise alone")
def input_not_rounded() -> AbstractContextManager[None]:
    """Put the noise on the grid and leave the exact value off it."""
    release = original("Laplace.release")
    return planted("Laplace.release", lambda self, exact: exact + release(self, exact * 0))


@mutant("decimals cut after the noise", killed_by="N01", published="rounding for display taken for a defence")
def decimals_cut_after_noise() -> AbstractContextManager[None]:
    """Round to decimals after float noise."""
    naive = _noisy_float(1.0)
    return planted("Laplace.release", lambda self, exact: np.round(naive(self, exact), 6))


@mutant("grid from the data", killed_by="N01", published="bounds and scales inferred from the data")
@contextmanager
def grid_from_the_data() -> Planted:
    """Choose the step by the size of what is released."""
    step_of_old, read = original("float_step"), original("read onto a grid")
    seen = [1.0]

    def reads(exact: object) -> Any:
        values, is_float, shape = read(exact)
        seen[0] = float(np.abs(values.astype(np.float64)).max(initial=0.0)) or 1.0
        return values, is_float, shape

    def step_of(sensitivity: Fraction, *, spread: int) -> Any:
        return step_of_old(sensitivity, spread=spread) * Fraction(min(max(seen[0], 0.3), 3.0))

    with planted("read onto a grid", reads), planted("float_step", step_of):
        yield


# ---- the law -------------------------------------------------------------------------------------------------------


def _settle_by(resolve: Callable[[Any, int, Any], int]) -> AbstractContextManager[None]:
    """Replace what happens where a word equals a threshold."""
    settle = original("ThresholdTable.settle")

    def settles(self: Any, word: int, source: Any) -> int:
        place = bisect_left(self.thresholds, word)
        decided = place < len(self.thresholds) and self.thresholds[place] != word
        return settle(self, word, source) if decided else resolve(self, word, source)

    return planted("ThresholdTable.settle", settles)


@mutant("redraw where undecided", killed_by="N04", published="rejection of ties: mass moves to the values without one")
def redraw_where_undecided() -> AbstractContextManager[None]:
    """Throw an undecided word away and draw another."""

    settle = original("ThresholdTable.settle")

    def redraw(table: Any, word: int, source: Any) -> Any:
        for _ in range(8):
            word = int(source.words(1, table.width)[0])
            if word not in table.thresholds:
                break
        return settle(table, word, source)

    return _settle_by(redraw)


@mutant("at most instead of below", killed_by="N04", published="threshold off by one")
def at_most_instead_of_below() -> AbstractContextManager[None]:
    """Decide a tie for the lower value."""

    def lower(table: Any, word: int, _: Any) -> Any:
        return table.first + bisect_left(table.thresholds, word)

    return _settle_by(lower)


@mutant("tail cut at the table's end", killed_by="N04", published="truncated samplers: some outputs become impossible")
def tail_cut() -> AbstractContextManager[None]:
    """Extend bits as we do, but never leave the table."""
    settle = original("ThresholdTable.settle")

    def cut(table: Any, word: int, source: Any) -> Any:
        last = table.first + len(table.thresholds) - 1
        return min(max(settle(table, word, source), table.first), last)

    return _settle_by(cut)


@mutant("chance as a float", killed_by="N04", published="Bernoulli(exp(-x)) by comparing doubles")
def chance_as_a_float() -> AbstractContextManager[None]:
    """Call a tie between a word and a chance a no."""
    return planted("settle_below", lambda *_: False)


@mutant("lookup off by one", killed_by="N04", published="guide table that returns the cell below its threshold")
@contextmanager
def lookup_off_by_one() -> Planted:
    """In arrays, forget the step past a cell's threshold."""

    def look_up(self: Any, words: Any, values: Any) -> Any:
        np.take(self.guide.values, (words >> self.guide.shift).view(np.int64), out=values)
        return np.flatnonzero(values >= 1 << 62)

    with planted("ThresholdTable.look_up", look_up):
        yield


@mutant("noise clipped at six scales", killed_by="N05", published="bounded noise taken for unbounded")
@contextmanager
def noise_clipped() -> Planted:
    """Clip what is drawn, where only tails show it."""
    draw_laplace = original("DiscreteLaplace.draw")

    def clipped(self: Any, n: int, source: Any) -> Any:
        most = int(6 * self.scale)
        return np.clip(draw_laplace(self, n, source), -most, most)

    with planted("DiscreteLaplace.draw", clipped):
        yield


@mutant("sign drawn twice", killed_by="N05", published="negative zero counted as a value of its own")
@contextmanager
def sign_drawn_twice() -> Planted:
    """A geometric size and a fair sign: zero gets twice its mass."""
    draw = original("DiscreteLaplace.draw")

    def doubled(self: Any, n: int, source: Any) -> Any:
        drawn = draw(self, n, source)
        return np.where(drawn < 0, drawn + 1, drawn)

    with planted("DiscreteLaplace.draw", doubled):
        yield


@mutant("Laplace scale off by 5 %", killed_by="N06", published="a wrong constant in the calibration")
def laplace_scale_off() -> AbstractContextManager[None]:
    """Draw with 95 % of the scale."""
    tables = original("laplace_tables")
    return planted("laplace_tables", lambda scale, width: tables(scale * Fraction(19, 20), width))


@mutant("every place in a block is kept", killed_by="N04", published="a histogram of the law instead of the law")
def blocks_without_rejection() -> AbstractContextManager[None]:
    """Draw a wide Gaussian's place in its block evenly."""
    return planted("WideGaussian.exponent", lambda *_: Fraction(0))


@mutant("Gaussian sigma off by 5 %", killed_by="N06", published="a wrong constant in the calibration")
def gaussian_sigma_off() -> AbstractContextManager[None]:
    """Draw with 95 % of the sigma."""
    sampler = original("gaussian_sampler")
    return planted("gaussian_sampler", lambda sigma, *, many: sampler(sigma * Fraction(19, 20), many=many))


# ---- time ----------------------------------------------------------------------------------------------------------


@mutant("time grows with the noise", killed_by="N07", published="Jin et al. 2022, timing of geometric samplers")
def time_grows_with_the_noise() -> AbstractContextManager[None]:
    """Count up to the noise, as samplers do that flip a coin for each step."""
    release = original("Laplace.release")

    def counting(self: Any, exact: Any) -> Any:
        noisy = release(self, exact)
        end = time.perf_counter_ns() + 500 * min(abs(int(noisy)), 200)
        while time.perf_counter_ns() < end:
            pass
        return noisy

    return planted("Laplace.release", counting)


# ---- randomness ----------------------------------------------------------------------------------------------------


def _numpy_words() -> AbstractContextManager[None]:
    def words(_: object, n: int, width: int = 64) -> Any:
        return np.frombuffer(np.random.bytes(8 * n), dtype=np.uint64) >> np.uint64(64 - width)

    return planted("Keystream.words", words)


@mutant("numpy's global generator", killed_by="N11", published="seeded noise: anyone with the seed subtracts it")
def numpy_generator() -> AbstractContextManager[None]:
    """Take words from numpy's global generator."""
    return _numpy_words()


@mutant("Python's global generator", killed_by="N11", published="Mersenne Twister: 624 outputs give the rest")
def python_generator() -> AbstractContextManager[None]:
    """Take keys from Python's global generator."""
    return planted("fresh_key", lambda: random.getrandbits(256).to_bytes(32, "little"))


@mutant("numpy's generator in forks", killed_by="N12", published="data loaders whose workers draw the same noise")
def numpy_generator_in_forks() -> AbstractContextManager[None]:
    """The same generator, copied by a fork."""
    return _numpy_words()


def _one_stream(renew: Callable[[], bool]) -> AbstractContextManager[None]:
    """One keystream for all releases, made anew only when `renew` says so."""
    start = original("Keystream.__init__")
    kept: dict[str, Any] = {}

    def begins(self: Any) -> None:
        if not kept or renew():
            start(self)
            kept["stream"] = self._encryptor
        self._encryptor = kept["stream"]

    return planted("Keystream.__init__", begins)


@mutant("key made once, then forked", killed_by="N12", published="OpenSSL before 1.1.1: forks share their state")
def key_made_once() -> AbstractContextManager[None]:
    """Keep one stream for the life of the process."""
    return _one_stream(renew=lambda: False)


@mutant("key renewed when getpid() changes", killed_by="N13", published="LibreSSL 2.0.1: a fork with a reused pid")
def key_renewed_by_pid() -> AbstractContextManager[None]:
    """Notice forks by the process id alone."""
    last = [os.getpid()]

    def changed() -> bool:
        before, last[0] = last[0], os.getpid()
        return before != last[0]

    return _one_stream(renew=changed)


@mutant("key renewed by a fork handler", killed_by="N13", published="raw clone and vfork skip the handlers")
def key_renewed_by_handler() -> AbstractContextManager[None]:
    """Notice forks by a handler that a raw clone does not call."""
    forked = [False]
    os.register_at_fork(after_in_child=lambda: forked.__setitem__(0, True))

    def changed() -> bool:
        before, forked[0] = forked[0], False
        return before

    return _one_stream(renew=changed)


@mutant("threads share a buffer without a lock", killed_by="N14", published="double use of buffered random bytes")
@contextmanager
def shared_buffer() -> Planted:
    """Read at a shared position, then move it; at first all threads do so at the same moment."""
    words_of = original("Keystream.words")
    state: dict[str, Any] = {"buffer": words_of(original("Keystream")(), 1 << 16), "place": 0}
    moment, mine = threading.Barrier(THREADS), threading.local()

    def meet() -> None:
        mine.reads = getattr(mine, "reads", 0) + 1
        if mine.reads <= THREAD_CALLS:  # each thread reads at least so often
            with suppress(threading.BrokenBarrierError):
                moment.wait(MEETING_SECONDS)

    def words(self: Any, n: int, width: int = 64) -> Any:
        if state["place"] + n > len(state["buffer"]):
            state.update(buffer=words_of(self, 1 << 16), place=0)
        place, buffer = state["place"], state["buffer"]
        meet()
        state["place"] = place + n
        return (buffer if place + n <= len(buffer) else words_of(self, place + n))[place : place + n] >> np.uint64(
            64 - width
        )

    with planted("Keystream.words", words):
        yield


@mutant("zeros where randomness fails", killed_by="N15", published="ignored return codes of getrandom")
def zeros_where_randomness_fails() -> AbstractContextManager[None]:
    """Go on with zeros after an error."""
    fresh = original("fresh_bytes")

    def fresh_or_zeros(n: int) -> Any:
        try:
            return fresh(n)
        except NoRandomness:
            return bytes(n)

    return planted("fresh_key", lambda: fresh_or_zeros(original("KEY_BYTES")))


@mutant("short read filled up", killed_by="N15", published="short reads of /dev/urandom taken as full")
def short_read_filled() -> AbstractContextManager[None]:
    """Fill up what the operating system left out."""

    def filled(n: int) -> bytes:
        try:
            given = vars(os)["urandom"](n)
        except (OSError, NotImplementedError) as problem:
            raise NoRandomness("no randomness") from problem
        return bytes(given).ljust(n, b"\1")

    return planted("fresh_bytes", filled)


@mutant("zero drawn twice", killed_by="N20", published="a size and a fair sign: minus zero is zero again")
@contextmanager
def zero_twice() -> Iterator[None]:
    def draw(law: Any, n: int, bits: Any, width: int) -> Any:
        levels = original("level_table")(law, width).draw(n, bits)
        sign = 1 - 2 * original("draw_below")(2, n, bits)
        inner = original("draw_below")(law.width, n, bits)
        outer = original("draw_below")(law.sensitivity, n, bits)
        found: Any = sign * np.where(levels == 0, inner, law.width + (levels - 1) * law.sensitivity + outer)
        return found

    with planted("draw_staircase", draw):
        yield


@mutant("a staircase with shorter steps", killed_by="N20", published="noise scaled to less than the sensitivity")
@contextmanager
def shorter_steps() -> Iterator[None]:
    level = original("StaircaseLaw.level")
    with planted("StaircaseLaw.level", lambda law, size: level(law, 2 * size)):
        yield


@mutant(
    "a staircase for every group of a unit",
    killed_by="S30",
    published="one number's noise on a histogram, whatever number of bins one person is in",
)
@contextmanager
def for_every_group() -> Iterator[None]:
    pure = original("pure share")

    def forgetful(parts: Any, how_far: Any, share: Fraction, spend: Any) -> Any:
        one = replace(how_far, l0=1, l1=how_far.linf)
        return replace(pure(parts, one, share, spend), sensitivity=how_far)

    with planted("pure share", forgetful):
        yield
