"""The local model under attack: the law of every client, averaging over time, bad reports, and what size or time tell.

Statistical verdicts have a false-alarm rate of 1e-6 for the whole case. Poisoning and estimates are in local_estimates.
"""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np

import tacit.local as local
from tacit.local import wire
from tacit.local.protocols.protocol import FrequencyProtocol, Law, Payloads, kept_chance
from tacit.local.protocols.unary import Permanent
from tacit.noise import coins
from tacit.noise.bits import Keystream
from tacit.privacy.rounding import ball, certainly_less
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.local.responses import responses_off_their_law
from tacit_gauntlet.stage.local import EPSILONS, SMALL, EveryWord, exact_laws, frequency_protocols, supports_of
from tacit_gauntlet.stage.statistic import FALSE_ALARM, binomial_at_least, binomial_at_most, chi_square_fit

# ---- the law -------------------------------------------------------------------------------------------------------


@case("T01", title="every client's exact law keeps its epsilon, and its sampler follows that law", feature="local")
def client_laws_are_exact(size: Size) -> Evidence:
    """Compare exact laws for every pair of answers; run coins on every word; draw, and compare with the law."""
    epsilons = EPSILONS[1:2] if size == "quick" else EPSILONS
    beyond = [f"{name} at ε = {epsilon}" for epsilon in epsilons for name in _beyond(epsilon)]
    unfair = [
        *_unfair_coins(),
        *_unfair_choices(),
        *responses_off_their_law((2, 4) if size == "quick" else (2, 3, 4, 7)),
    ]
    draws = 20_000 if size == "quick" else 200_000
    off = [line for protocol in frequency_protocols(SMALL, Fraction(1)) for line in _off_law(protocol, draws)]
    details = {"laws beyond e^ε": beyond, "coins and choices off": unfair, "draws off the law": off, "draws": draws}
    return Evidence(passed=not (beyond or unfair or off), details=details)


def _beyond(epsilon: Fraction) -> Iterator[str]:
    """Yield the randomizers with an output whose chances differ by more than e^epsilon, or do not add up to one."""
    for name, promised, laws in exact_laws(epsilon):
        whole = all(sum(law.values()) == 1 for law in laws)
        worst = max(_largest_ratio(one, other) for one, other in permutations(laws, 2))
        if not whole or not _is_within(worst, promised):
            yield name


def _is_within(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether a ratio is at most e^epsilon, with certainty: they are never equal, since e^epsilon is irrational."""
    return certainly_less(lambda: ball(ratio).log(), lambda: ball(epsilon))


def _largest_ratio(one: Law, other: Law) -> Fraction:
    if set(one) != set(other):
        return Fraction(10) ** 100  # an output that one answer can give and the other cannot
    return max(one[output] / other[output] for output in one)


def _unfair_coins() -> Iterator[str]:
    """Run a coin on every 16-bit word, and the packed coin on every 8-bit one: heads must be exactly the chance."""
    chance = kept_chance(Fraction(1), outside=3)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
    heads = int(np.count_nonzero(coins.draw_heads(chance, 1 << 16, EveryWord(every))))
    # the one word that ties is decided by the next words, which are zeros here: heads
    if heads != int(chance * 2**16) + 1:
        yield f"coin: {heads} heads of 65536 words"
    digits = int(chance * 2**8)
    lanes = np.arange(1 << 8, dtype=np.uint64)
    levels = np.stack(
        [np.where(lanes >> np.uint64(7 - level) & np.uint64(1), ~np.uint64(0), np.uint64(0)) for level in range(8)]
    )
    tossed, undecided = coins._toss_levels(digits, np.full(1 << 8, ~np.uint64(0)), EveryWord(levels.ravel()))
    if (int(np.count_nonzero(tossed)), int(np.count_nonzero(undecided))) != (digits, 1):
        yield "packed coin"


def _unfair_choices() -> Iterator[str]:
    """Run the even choice on every 8-bit word: each outcome must come up equally often among the words it keeps."""
    for most in (3, 5, 7, 99):
        kept = 256 - 256 % most
        chosen = coins.draw_below(most, kept, EveryWord(np.arange(kept, dtype=np.uint64)), width=8)
        left = coins.draw_below(most, 256 - kept, EveryWord(np.arange(kept, 256, dtype=np.uint64)), width=8)
        counts = np.bincount(chosen, minlength=most)
        # words left over are drawn again: here from zeros, so they all become 0
        if counts.min() != counts.max() or left.any():
            yield f"choice of {most}"


def _off_law(protocol: FrequencyProtocol, draws: int) -> Iterator[str]:
    """Draw, and yield what does not fit: outputs against the law, and supports against keep and stray."""
    codes = np.full(draws, 1, dtype=np.int64)
    payloads = protocol.draw(codes, Keystream())
    alarm = float(FALSE_ALARM) / 100
    if protocol.name != "local-hashing":  # whose law is given for one hash alone
        law = protocol.law(1)
        seen = Counter(row.tobytes() for row in payloads)
        if set(seen) - set(law):
            yield f"{protocol.name}: an output that cannot be"
        elif chi_square_fit([seen[output] for output in law], [float(law[output]) * draws for output in law]) < alarm:
            yield f"{protocol.name}: outputs"
    for code, count in enumerate(supports_of(protocol, payloads)):
        chance = protocol.keep if code == 1 else protocol.stray
        if min(binomial_at_least(int(count), draws, chance), binomial_at_most(int(count), draws, chance)) < alarm:
            yield f"{protocol.name}: supports of {code}"


# ---- over time -----------------------------------------------------------------------------------------------------


@case(
    "T02", title="averaging reports over time, restarts and new values show the permanent answer alone", feature="local"
)
def averaging_shows_the_permanent_answer_alone(size: Size) -> Evidence:
    """Average blocks of each client's reports before and after a restart and a change of value, and compare."""
    clients, reports = (20, 800) if size == "quick" else (50, 10_000)
    survey = local.make_survey(8, epsilon=2, epsilon_first=1)
    block = reports // 4
    changed, own, other = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(clients):
            memo = Path(folder) / f"{number}.json"
            value = number % 8
            seen = []
            for now in (value, value, (value + 1) % 8, value):  # each from a client that has been started anew
                client = local.LongitudinalClient(survey, memo=memo, values_most=1)
                seen.append(_recovered(survey, client.reports(now, block).payloads))
            if len(set(seen)) > 1:
                changed.append(number)
            own += int(seen[0][value])
            other += sum(seen[0]) - int(seen[0][value])
    protocol = survey.protocol
    if not isinstance(protocol, Permanent):
        raise TypeError("the survey should be longitudinal")
    keep = protocol.permanent_keep
    # what was recovered follows the permanent answer's law: not the value itself
    chances = [
        binomial_at_least(own, clients, keep),
        binomial_at_most(other, 7 * clients, 1 - keep),
        binomial_at_least(other, 7 * clients, 1 - keep),
    ]
    details = {
        "clients": clients,
        "reports each": reports,
        "clients that showed more than one permanent answer": changed,
        "own bits shown": f"{own} of {clients}",
        "other bits shown": f"{other} of {7 * clients}",
    }
    return Evidence(passed=not changed and min(chances) > float(FALSE_ALARM) / 3, details=details)


def _recovered(survey: "local.Survey", payloads: Payloads) -> tuple[bool, ...]:
    """What an attacker makes of many reports: each bit as it was most of the time."""
    counts = survey.protocol.tally(payloads)
    return tuple(bool(count * 2 > len(payloads)) for count in counts)


# ---- bad reports ---------------------------------------------------------------------------------------------------


@case(
    "T04",
    title="malformed, duplicate, replayed and foreign reports are all rejected, and nothing else is",
    feature="local",
)
def bad_reports_are_rejected(size: Size) -> Evidence:
    """Mix good lines with every kind of bad one, feed them through a file, and compare counters and counts exactly."""
    good_count, protocols = (600, 2) if size == "quick" else (5_000, 4)
    wrong = []
    for protocol in ("response", "subset", "hadamard", "local-hashing")[:protocols]:
        client = local.Randomizer(5, epsilon=1, protocol=protocol, epoch="w1")
        good = client.reports(np.arange(good_count) % 5)
        lines = wire.report_lines(good).splitlines()
        bad, expected = _bad_lines(client, lines)
        known = set(lines)
        mixed = [*lines, *(line for line in bad if line not in known)]
        mixed = [mixed[place] for place in np.argsort(Keystream().words(len(mixed)))]
        mixed += [line for line in bad if line in known]  # duplicates come after what they repeat
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reports.jsonl"
            path.write_text("\n".join([wire.header_line(client.survey), *mixed]) + "\n")
            store = Path(folder) / "seen.db"
            first = local.Collector(client.survey, store=store)
            first.add_file(path)
            first.close()
            second = local.Collector(client.survey, store=store)  # started anew, and everything is sent again
            second.add_file(path)
            second.close()
        once = {reason: count for reason, count in first.rejected.items() if count}
        twice = Counter(expected) + Counter(expected) + Counter({wire.DUPLICATE: good_count})
        exact = supports_of(client.survey.protocol, good.payloads)  # type: ignore[arg-type]
        found = client.survey.protocol.supports(second._tally)  # type: ignore[union-attr]
        if once != expected or second.rejected != twice or second.used != good_count or (exact != found).any():
            wrong.append(f"{protocol}: {once} for {expected}, used {second.used} of {good_count}")
    return Evidence(passed=not wrong, details={"lines": 2 * len(mixed) * protocols, "wrong": wrong})


def _bad_lines(client: "local.Randomizer", lines: list[str]) -> tuple[list[str], dict[str, int]]:
    """Return bad lines and how many there are for each reason."""
    survey = client.survey
    part = lines[: len(lines) // 10]
    said = [json.loads(line) for line in part]
    size = survey.protocol.payload_bytes
    kinds: list[tuple[str, Callable[[dict[str, object]], str]]] = [
        (wire.MALFORMED, lambda one: _line(one)[:-3]),
        (wire.MALFORMED, lambda one: _line(one | {"data": str(one["data"])[:-1] + "g"})),
        (wire.MALFORMED, lambda one: _line(one | {"data": str(one["data"]) + "00"})),
        (wire.MALFORMED, lambda one: _line(one | {"id": "00"})),
        (wire.MALFORMED, lambda one: _line(one | {"value": 3})),
        (wire.MALFORMED, lambda one: _line(one).replace('"v":1', '"v":1,"v":1')),
        (wire.MALFORMED, lambda one: " " + _line(one)),
        (wire.MALFORMED, lambda one: _line(one | {"token": "me"})),
        (wire.MALFORMED, lambda _: "[" * 5000),
        (wire.MALFORMED, lambda _: "null"),
        (wire.WRONG_VERSION, lambda one: _line(one | {"v": 2})),
        (wire.WRONG_SURVEY, lambda one: _line(one | {"survey": "0" * 16})),
        (wire.WRONG_EPOCH, lambda one: _line(one | {"epoch": "w2"})),
        (wire.OUT_OF_RANGE, lambda one: _line(one | {"data": "ff" * size, "id": str(one["id"])[::-1]})),
        (wire.DUPLICATE, _line),
    ]
    bad = [make(one) for one in said for _, make in kinds]
    expected: Counter[str] = Counter()
    for reason, _ in kinds:
        expected[reason] += len(said)
    return bad, dict(expected)


def _line(said: dict[str, object]) -> str:
    return json.dumps(said, separators=(",", ":"))


# ---- size and time -------------------------------------------------------------------------------------------------


@case("T06", title="neither a report's size nor the time to make it depends on the answer", feature="local")
def size_and_time_tell_nothing(size: Size) -> Evidence:
    """Compare the length of every answer's report in every form, and correlate time with the answer."""
    count = 1_500 if size == "quick" else 10_000
    lengths, slopes = {}, {}
    for protocol in (*(each.name for each in frequency_protocols(64, Fraction(1))),):
        words = {"epsilon": 2, "epsilon_first": 1} if protocol == Permanent.name else {"epsilon": 1}
        survey = local.make_survey(64, protocol=protocol, **words)  # type: ignore[arg-type]
        report = _reporter(survey)
        sizes = {
            (len(wire.report_line(one)), len(one.payload)) for code in range(64) for one in (report(code), report(code))
        }
        lengths[protocol] = len(sizes)
        if protocol in ("response", "subset", "hadamard", "local-hashing"):
            slopes[protocol] = _correlation(report, count)
    mean = local.Randomizer(between=(0, 1), epsilon=1)
    lengths["mean"] = len({len(wire.report_line(mean.report(value / 63))) for value in range(64)})
    allowed = 0.05 + (5 / np.sqrt(count) if size == "quick" else 0.0)
    fits = set(lengths.values()) == {1} and all(abs(slope) < allowed for slope in slopes.values())
    shown = {name: f"{slope:+.3f}" for name, slope in slopes.items()}
    return Evidence(passed=fits, details={"different sizes": lengths, "time against answer": shown, "reports": count})


def _reporter(survey: "local.Survey") -> Callable[[int], "local.Report"]:
    if not isinstance(survey.protocol, Permanent):
        return local.Randomizer(survey).report
    return lambda code: local.LongitudinalClient(survey).report(code)


def _correlation(report: Callable[[int], "local.Report"], count: int) -> float:
    """Return the correlation of the answer with the time its report takes, by ranks: a slow moment weighs little."""
    codes = (Keystream().words(count) % np.uint64(64)).astype(np.int64).tolist()
    for code in codes[:50]:
        report(code)
    times = []
    for code in codes:
        start = time.perf_counter_ns()
        report(code)
        times.append(time.perf_counter_ns() - start)
    ranks = np.argsort(np.argsort(times))
    return float(np.corrcoef(codes, ranks)[0, 1])
