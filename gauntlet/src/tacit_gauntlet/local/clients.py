"""The local model under attack: the law of every client, averaging over time, bad reports, and what size or time tell.

Statistical verdicts have a false-alarm rate of 1e-6 for the whole case. Poisoning and estimates are in `estimates`.
"""

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb

import tacit
import tacit.local as local
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.balls import at_precision, ball, is_less
from tacit_gauntlet.stage.local import (
    DUPLICATE,
    EPSILONS,
    LONGITUDINAL,
    MALFORMED,
    OUT_OF_RANGE,
    SMALL,
    WRONG_EPOCH,
    WRONG_SURVEY,
    WRONG_VERSION,
    EveryWord,
    FrequencyProtocol,
    Payloads,
    choices,
    counted,
    drawn,
    edge_of,
    exact_laws,
    frequency_protocols,
    header_line,
    heads,
    is_longitudinal,
    kept_chance,
    packed_heads,
    permanent_keep,
    random_words,
    report_line,
    report_lines,
    supports_of,
    wrong_reports,
)
from tacit_gauntlet.stage.local_laws import Law, law_of
from tacit_gauntlet.stage.processes import in_forks
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
    return is_less(lambda: ball(ratio).log(), lambda: ball(epsilon))


def _largest_ratio(one: Law, other: Law) -> Fraction:
    if set(one) != set(other):
        return Fraction(10) ** 100  # an output that one answer can give and the other cannot
    return max(one[output] / other[output] for output in one)


def _unfair_coins() -> Iterator[str]:
    """Run a coin on every 16-bit word, and the packed coin on every 8-bit one: heads must be exactly the chance."""
    chance = kept_chance(Fraction(1), outside=3)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
    seen = int(np.count_nonzero(heads(chance, 1 << 16, EveryWord(every))))
    # the one word that ties is decided by the next words, which are zeros here: heads
    if seen != int(chance * 2**16) + 1:
        yield f"coin: {seen} heads of 65536 words"
    digits = int(chance * 2**8)
    lanes = np.arange(1 << 8, dtype=np.uint64)
    levels = np.stack(
        [np.where(lanes >> np.uint64(7 - level) & np.uint64(1), ~np.uint64(0), np.uint64(0)) for level in range(8)]
    )
    tossed, undecided = packed_heads(digits, EveryWord(levels.ravel()), 1 << 8)
    if (int(np.count_nonzero(tossed)), int(np.count_nonzero(undecided))) != (digits, 1):
        yield "packed coin"


def _unfair_choices() -> Iterator[str]:
    """Run the even choice on every 8-bit word: each outcome must come up equally often among the words it keeps."""
    for most in (3, 5, 7, 99):
        kept = 256 - 256 % most
        chosen = choices(most, kept, EveryWord(np.arange(kept, dtype=np.uint64)), width=8)
        left = choices(most, 256 - kept, EveryWord(np.arange(kept, 256, dtype=np.uint64)), width=8)
        counts = np.bincount(chosen, minlength=most)
        # words left over are drawn again: here from zeros, so they all become 0
        if counts.min() != counts.max() or left.any():
            yield f"choice of {most}"


def _off_law(protocol: FrequencyProtocol, draws: int) -> Iterator[str]:
    """Draw, and yield what does not fit: outputs against the law, and supports against keep and stray."""
    codes = np.full(draws, 1, dtype=np.int64)
    payloads = drawn(protocol, codes)
    alarm = float(FALSE_ALARM) / 100
    if protocol.name != "local-hashing":  # whose law is given for one hash alone
        law = law_of(protocol, 1)
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
    keep = permanent_keep(survey)
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
    good_count, protocols = (600, 2) if size == "quick" else (5_000, 3)
    wrong = []
    for protocol in ("response", "subset", "local-hashing")[:protocols]:
        client = local.Randomizer(5, epsilon=1, protocol=protocol, epoch="w1")
        good = client.reports(np.arange(good_count) % 5)
        lines = report_lines(good)
        bad, expected = _bad_lines(client, lines)
        known = set(lines)
        mixed = [*lines, *(line for line in bad if line not in known)]
        mixed = [mixed[place] for place in np.argsort(random_words(len(mixed)))]
        mixed += [line for line in bad if line in known]  # duplicates come after what they repeat
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reports.jsonl"
            path.write_text("\n".join([header_line(client.survey), *mixed]) + "\n")
            store = Path(folder) / "seen.db"
            first = local.Collector(client.survey, store=store)
            first.add_file(path)
            first.close()
            second = local.Collector(client.survey, store=store)  # started anew, and everything is sent again
            second.add_file(path)
            second.close()
        once = {reason: count for reason, count in first.rejected.items() if count}
        twice = Counter(expected) + Counter(expected) + Counter({DUPLICATE: good_count})
        exact = supports_of(client.survey.protocol, good.payloads)  # type: ignore[arg-type]
        found = counted(second)
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
        (MALFORMED, lambda one: _line(one)[:-3]),
        (MALFORMED, lambda one: _line(one | {"data": str(one["data"])[:-1] + "g"})),
        (MALFORMED, lambda one: _line(one | {"data": str(one["data"]) + "00"})),
        (MALFORMED, lambda one: _line(one | {"id": "00"})),
        (MALFORMED, lambda one: _line(one | {"value": 3})),
        (MALFORMED, lambda one: _line(one).replace('"v":1', '"v":1,"v":1')),
        (MALFORMED, lambda one: " " + _line(one)),
        (MALFORMED, lambda one: _line(one | {"token": "me"})),
        (MALFORMED, lambda _: "[" * 5000),
        (MALFORMED, lambda _: "null"),
        (WRONG_VERSION, lambda one: _line(one | {"v": 2})),
        (WRONG_SURVEY, lambda one: _line(one | {"survey": "0" * 16})),
        (WRONG_EPOCH, lambda one: _line(one | {"epoch": "w2"})),
        (OUT_OF_RANGE, lambda one: _line(one | {"data": "ff" * size, "id": str(one["id"])[::-1]})),
        (DUPLICATE, _line),
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
        words = {"epsilon": 2, "epsilon_first": 1} if protocol == LONGITUDINAL else {"epsilon": 1}
        survey = local.make_survey(64, protocol=protocol, **words)  # type: ignore[arg-type]
        report = _reporter(survey)
        sizes = {
            (len(report_line(one)), len(one.payload)) for code in range(64) for one in (report(code), report(code))
        }
        lengths[protocol] = len(sizes)
        if protocol != LONGITUDINAL:
            slopes[protocol] = _correlation(report, count)
    mean = local.Randomizer(between=(0, 1), epsilon=1)
    lengths["mean"] = len({len(report_line(mean.report(value / 63))) for value in range(64)})
    allowed = 0.05 + (5 / np.sqrt(count) if size == "quick" else 0.0)
    fits = set(lengths.values()) == {1} and all(abs(slope) < allowed for slope in slopes.values())
    shown = {name: f"{slope:+.3f}" for name, slope in slopes.items()}
    return Evidence(passed=fits, details={"different sizes": lengths, "time against answer": shown, "reports": count})


def _reporter(survey: "local.Survey") -> Callable[[int], "local.Report"]:
    if not is_longitudinal(survey):
        return local.Randomizer(survey).report
    return lambda code: local.LongitudinalClient(survey).report(code)


def _correlation(report: Callable[[int], "local.Report"], count: int) -> float:
    """Return the correlation of the answer with the time its report takes, by ranks: a slow moment weighs little."""
    codes = (random_words(count) % np.uint64(64)).astype(np.int64).tolist()
    for code in codes[:50]:
        report(code)
    times = []
    for code in codes:
        start = time.perf_counter_ns()
        report(code)
        times.append(time.perf_counter_ns() - start)
    ranks = np.argsort(np.argsort(times))
    return float(np.corrcoef(codes, ranks)[0, 1])


def responses_off_their_law(kinds_tried: Sequence[int]) -> list[str]:
    """Feed every 16-bit word, ties on either side of the chance to keep, and every other answer to each report.

    The chance is computed here from its definition, and rounded down to a whole number of 2^-64: that is what the
    coins are to have. The loss is then that of the exact law, and no more than promised.
    """
    wrong: list[str] = []
    for kinds in kinds_tried:
        epsilon = Fraction(1)
        protocol = local.make_survey(kinds, epsilon=epsilon, protocol="response").protocol
        front = tacit.RandomizedResponse(epsilon=epsilon, categories=range(kinds))
        if front.survey.protocol != protocol:
            wrong.append(f"{kinds} answers: the front draws by another law")
        for answer in range(kinds):
            wrong += wrong_reports(protocol, answer, kinds, epsilon)
        with at_precision(256):
            keep = ball(Fraction(edge_of(epsilon, kinds), 1 << 64))
            loss = (keep * (kinds - 1) / (1 - keep)).log()
            promised = ball(front.loss.epsilon)
            if not (loss <= promised and promised - loss < arb(10) ** -12):
                wrong.append(f"{kinds} answers: the loss is {loss}")
    return wrong


# Of 400 reports at these losses a bit shows as it is not, most of the time, with a chance below 1e-12.
LOSSES: dict[str, Any] = {"epsilon": 4, "epsilon_first": 3}
REPORTS = 400
ANSWERS = 40


@case("T07", title="clients that share a memo show one permanent answer, in threads and in processes", feature="local")
def shared_memo_shows_one_answer(size: Size) -> Evidence:
    """Open clients before any has answered, let all of them report, and count the permanent answers that show."""
    people, clients = (3, 4) if size == "quick" else (20, 12)
    survey = local.make_survey(ANSWERS, **LOSSES)
    shown: dict[str, list[int]] = {"one after the other": [], "threads": [], "processes": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(people):
            memos = {how: Path(folder) / f"{how} {number}" for how in shown}
            opened = {
                how: [local.LongitudinalClient(survey, memo=memo) for _ in range(clients)]
                for how, memo in memos.items()
            }
            value = number % ANSWERS
            shown["one after the other"].append(len({_bits(client, value) for client in opened["one after the other"]}))
            shown["threads"].append(len(_in_threads(opened["threads"], value)))
            shown["processes"].append(len(_in_processes(opened["processes"][0], value, clients)))
    details = {f"permanent answers shown, {how}": counts for how, counts in shown.items()}
    return Evidence(passed=all(set(counts) == {1} for counts in shown.values()), details=details)


def _bits(client: "local.LongitudinalClient", value: int) -> tuple[int, ...]:
    """What an attacker makes of many reports: each bit as it was most of the time."""
    counts = client.survey.protocol.tally(client.reports(value, REPORTS).payloads)
    return tuple(int(count * 2 > REPORTS) for count in counts)


def _in_threads(clients: "list[local.LongitudinalClient]", value: int) -> set[tuple[int, ...]]:
    start, found = threading.Barrier(len(clients)), []

    def ask(client: "local.LongitudinalClient") -> None:
        start.wait()
        found.append(_bits(client, value))

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return set(found)


def _in_processes(client: "local.LongitudinalClient", value: int, count: int) -> set[tuple[int, ...]]:
    """Each fork has its own copy of the client, made before it has answered."""
    return {tuple(bits) for bits in in_forks(count, lambda: list(_bits(client, value)))}
