"""Published bugs of local collection, planted in our clients and collectors: each must be killed by its case."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted

# ---- the law -------------------------------------------------------------------------------------------------------


@mutant("modulo bias", killed_by="T01", published="a random word's remainder taken for an even choice")
def modulo_bias() -> AbstractContextManager[None]:
    """Keep the words that should be drawn again."""

    def fold(most: int, n: int, bits: Any, width: int = 64) -> Any:
        return (bits.words(n, width) % np.uint64(most)).astype(np.int64)

    return planted("draw_below", fold)


@mutant("each bit at the whole epsilon", killed_by="T01", published="unary encodings that forget that two bits differ")
def bit_at_whole_epsilon() -> AbstractContextManager[None]:
    """Keep the true bit with the chance that one bit alone could afford."""
    keep = property(lambda self: original("kept_chance")(self.epsilon, outside=1))
    return planted("Permanent.permanent_keep", keep)


@mutant("true bit kept too often", killed_by="T01", published="a client whose coin is not the one its law states")
def true_bit_kept_too_often() -> AbstractContextManager[None]:
    """Toss the sender's own bit with another chance than stated."""
    toss = original("draw_heads")
    return planted("draw_heads", lambda chance, n, bits: toss((chance + Fraction(1, 16)), n, bits))


@mutant("chances rounded up", killed_by="T01", published="floating-point chances, a little beyond e^ε")
@contextmanager
def chances_rounded_up() -> Iterator[None]:
    """Round the chance of keeping an answer up by one step of the grid."""
    original("kept_chance").cache_clear()
    with planted("certain_floor", lambda formula: original("certain_floor")(formula) + 1):
        yield
    original("kept_chance").cache_clear()


@mutant(
    "amplified epsilon with sampling", killed_by="T01", published="a sampled attribute reported at ln(m(e^ε − 1) + 1)"
)
def amplified_with_sampling() -> AbstractContextManager[None]:
    """Give the sampled attribute the larger epsilon that is published for sampling one of several."""
    build = original("attributes of a survey")

    def amplified(question: Any, method: str, protocol: str, epsilon: Fraction) -> Any:
        honest = build(question, method, protocol, epsilon)
        if method != "sample":
            return honest
        count = len(question.parts)
        larger = original("rounded_up")(lambda: arb.log(count * original("ball")(epsilon).expm1() + 1))
        parts = tuple(original("frequency_protocol")("response", part.size, larger) for part in question.parts)
        return original("Attributes")(epsilon, "sample", parts)

    return planted("attributes of a survey", amplified)


# ---- over time -----------------------------------------------------------------------------------------------------


@mutant("memo forgotten", killed_by="T02", published="permanent answers kept in memory alone, drawn anew at each start")
def memo_forgotten() -> AbstractContextManager[None]:
    """Do not write the memo."""
    return planted("LongitudinalClient.save", lambda *_: None)


@mutant("fresh noise each time", killed_by="T02", published="one-time reports sent again and again, and averaged")
def fresh_noise_each_time() -> AbstractContextManager[None]:
    """Draw a permanent answer for every report."""

    def reports(self: Any, value: Any, times: int, *, tokens: Any = None) -> Any:
        codes = np.full(times, self._labels.read_one(value))
        return original("label_reports")(self.survey, self._protocol.draw(codes, original("Keystream")()), tokens)

    return planted("LongitudinalClient.reports", reports)


@mutant("a new answer for a new value, without limit", killed_by="T02", published="memos whose loss is not capped")
def no_limit_of_values() -> AbstractContextManager[None]:
    """Draw another permanent answer for every value."""
    begin = original("LongitudinalClient.__init__")

    def unlimited(self: Any, survey: Any, *, memo: Any = None, values_most: int = 1) -> None:
        begin(self, survey, memo=memo, values_most=10**9 * values_most)

    return planted("LongitudinalClient.__init__", unlimited)


# ---- poisoning -----------------------------------------------------------------------------------------------------


@mutant("no look at patterns", killed_by="T03", published="collectors that trust every well-formed report")
def no_look_at_patterns() -> AbstractContextManager[None]:
    """Never look for answers that are supported together."""
    return planted("find_patterns", lambda *_: ())


@mutant(
    "a sample of the first reports", killed_by="T03", published="checks that a sender can arrange to be left out of"
)
def sample_of_the_first() -> AbstractContextManager[None]:
    """Look for patterns among the first few reports alone."""
    find = original("find_patterns")
    return planted("find_patterns", lambda protocol, payloads, counts: find(protocol, payloads[:200], counts))


@mutant("worst shift without debiasing", killed_by="T03", published="poisoning bounds for the raw counts")
def worst_shift_without_debiasing() -> AbstractContextManager[None]:
    """State that a fake moves a count by one."""

    return planted(
        "FrequencyEstimate.poisoning",
        lambda self, fraction: original("Shift")(-fraction * self.used, fraction * self.used),
    )


# ---- bad reports ---------------------------------------------------------------------------------------------------


@mutant("duplicates counted", killed_by="T04", published="replayed reports")
def duplicates_counted() -> AbstractContextManager[None]:
    """Take every id for a new one."""
    return planted("Store.first_seen", lambda _, ids: np.ones(len(ids), dtype=np.bool_))


@mutant("ids forgotten at a restart", killed_by="T04", published="replay after a crash")
@contextmanager
def ids_forgotten() -> Iterator[None]:
    """Remember ids in memory alone."""
    opened = original("Store.__init__")
    with planted("Store.__init__", lambda self, _: opened(self, None)):
        yield


@mutant("old epochs accepted", killed_by="T04", published="reports replayed from another round")
def old_epochs_accepted() -> AbstractContextManager[None]:
    """Do not look at the epoch."""
    check = original("check_report")

    def careless(one: Any, wanted: Any) -> str | None:
        reason = check(one, wanted)
        return None if reason == original("WRONG_EPOCH") else reason

    return planted("check_report", careless)


@mutant("out of range, half added", killed_by="T04", published="a collector that counts before it checks")
def half_added() -> AbstractContextManager[None]:
    """Count reports before looking whether they are valid."""
    add = original("Collector.add_batch")

    def adds(self: Any, ids: Any, payloads: Any, tokens: Any) -> None:
        good = self.survey.protocol.valid(payloads)
        if not good.all():
            self._take(0, Counter(), self.survey.protocol.tally(np.resize(payloads[good], (1, payloads.shape[1]))))
        add(self, ids, payloads, tokens)

    return planted("Collector.add_batch", adds)


# ---- estimates -----------------------------------------------------------------------------------------------------


@mutant("naive mean without debiasing", killed_by="T05", published="the raw share of reports taken for the truth")
def naive_mean() -> AbstractContextManager[None]:
    """Return the reports' own counts."""
    return planted("Counting.unbiased", lambda self, supports: supports * (self.people / self.reports))


@mutant("intervals of the wrong variance", killed_by="T05", published="error bars as if reports were answers")
def intervals_of_the_wrong_variance() -> AbstractContextManager[None]:
    """Forget that the noise is divided by p - q too."""
    bounds = original("Counting.bounds")

    def narrow(self: Any, supports: Any, confidence: float) -> Any:
        low, high = bounds(self, supports, confidence)
        middle, gain = (low + high) / 2, float(self.keep - self.stray)
        return middle - gain * (high - low) / 2, middle + gain * (high - low) / 2

    return planted("Counting.bounds", narrow)


# ---- size and time -------------------------------------------------------------------------------------------------


@mutant("report length that depends on the value", killed_by="T06", published="variable-length encodings of numbers")
def length_depends_on_the_value() -> AbstractContextManager[None]:
    """Write a report without its leading zeros."""
    write = original("report_line")

    def shorter(one: Any) -> Any:
        line = write(one)
        data = one.payload.hex()
        return line.replace(data, data.lstrip("0") or "0")

    return planted("report_line", shorter)


@mutant("answers looked up one by one", killed_by="T06", published="time that grows with the answer's place")
def answers_looked_up_one_by_one() -> AbstractContextManager[None]:
    """Search the list of answers from its start."""
    read = original("Labels.read_one")

    def search(self: Any, value: Any) -> Any:
        code = read(self, value)
        until = time.perf_counter_ns() + 2000 * code
        while time.perf_counter_ns() < until:
            pass
        return code

    return planted("Labels.read_one", search)


@mutant("a memo read once", killed_by="T07", published="two tabs of one browser: each draws its own and writes over it")
def memo_read_once() -> AbstractContextManager[None]:
    """Trust what the memo said when the client was opened, and write over whatever is there now."""

    def permanent(self: Any, code: int) -> Any:
        if code not in self._answers and len(self._answers) < self.values_most:
            self._answers[code] = self._protocol.draw_permanent(np.array([code]), original("Keystream")())
            self._save(self._answers)
        return self._answers[code] if code in self._answers else next(reversed(self._answers.values()))

    return planted("LongitudinalClient.permanent", permanent)


@mutant("modulo bias in a response", killed_by="T01", published="a random word reduced modulo the number of answers")
def modulo_bias_in_a_response() -> AbstractContextManager[None]:
    """Fold the left-over words back onto the first answers."""

    def below(most: int, n: int, bits: Any, width: int = original("WIDTH")) -> Any:
        return (bits.words(n, width) % np.uint64(most)).astype(np.int64)

    return planted("draw_below in a response", below)


@mutant("two answers' chance for k", killed_by="T01", published="e^ε/(1 + e^ε) used for any number of answers")
def two_answers_chance() -> AbstractContextManager[None]:
    """Keep as often as with two answers, however many there are."""
    chance = original("kept_chance")

    def for_two(epsilon: Fraction, *, inside: int = 1, outside: int) -> Fraction:
        return chance(epsilon, inside=inside, outside=min(outside, 1))  # type: ignore[no-any-return]

    return planted("kept_chance", for_two)


@mutant("the answer among the others", killed_by="T01", published="else any answer, the true one included")
def answer_among_the_others() -> AbstractContextManager[None]:
    """Draw the other answer from all of them."""

    def respond(codes: Any, size: int, keep: Fraction, bits: Any) -> Any:
        kept = original("draw_heads")(keep, len(codes), bits)
        return np.where(kept, codes, original("draw_below")(size, len(codes), bits))

    return planted("respond", respond)
