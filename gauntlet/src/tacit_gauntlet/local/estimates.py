"""The local model's estimates under attack: fakes, and whether bias, variance and coverage are as stated."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.local as local
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.local import (
    FrequencyProtocol,
    Payloads,
    drawn,
    frequency_names,
    labelled,
    people,
    random_words,
    spread,
)
from tacit_gauntlet.stage.statistic import FALSE_ALARM, binomial_at_most

Floats = NDArray[np.float64]
DOMAIN = 100
TARGETS = 10
SHOWS_PATTERNS = ("subset", "local-hashing")

# ---- poisoning -----------------------------------------------------------------------------------------------------


@case("T03", title="fakes gain no more than is stated, and maximal-gain fakes are noticed", feature="local")
def poisoning_is_bounded_and_noticed(size: Size) -> Evidence:
    """Add fakes that gain most, and fakes that lie about their answer; compare gains with the bound and count flags."""
    honest, tries, shares = (20_000, 1, (0.05,)) if size == "quick" else (100_000, 5, (0.01, 0.05))
    excess, missed, alarms, attacks, quiet = [], list[str](), 0, 0, 0
    for name in frequency_names():
        client = local.Randomizer(DOMAIN, epsilon=1, protocol=name)
        protocol: FrequencyProtocol = client.survey.protocol  # type: ignore[assignment]
        targets = np.arange(DOMAIN - TARGETS, DOMAIN)
        for share in shares:
            for _ in range(tries):
                fakes = round(share * honest / (1 - share))
                clean = client.reports(people(DOMAIN, honest)).payloads
                crafted = _crafted(protocol, targets, fakes)
                for kind, payloads in (
                    ("maximal", crafted),
                    ("lying", drawn(protocol, np.full(fakes, DOMAIN - 1))),
                ):
                    gain, bound, flags = _gain(client.survey, clean, payloads)
                    if gain > bound * (1 + 1e-9):
                        excess.append(f"{name}, {kind}, {share:.0%}: {gain:.0f} of {bound:.0f}")
                    if kind == "maximal" and name in SHOWS_PATTERNS:
                        attacks += 1
                        missed += [] if flags else [f"{name}, {share:.0%}"]
                quiet += 1
                alarms += bool(_estimate(client.survey, clean).flags)
    details = {
        "gains beyond the bound": excess,
        "maximal-gain attacks noticed": f"{attacks - len(missed)} of {attacks}",
        "not noticed": missed,
        "false flags": f"{alarms} of {quiet}",
    }
    # a flag is false once in 10^4 times: three of them in so few tries have a chance below 1e-6
    return Evidence(passed=not excess and len(missed) <= 1 and alarms <= 2, details=details)


def _crafted(protocol: FrequencyProtocol, targets: NDArray[np.int64], fakes: int) -> Payloads:
    """Return the fakes that support as many targets as a report can, dressed up like honest ones otherwise."""
    if protocol.name == "subset":
        return _crafted_sets(protocol, targets, fakes)
    tried = drawn(protocol, np.repeat(targets, 300))
    supported = protocol.supporting(tried, targets).sum(axis=1)
    best = np.argsort(-supported, kind="stable")[: max(1, len(tried) // 200)]
    return tried[np.resize(best, fakes)]


def _crafted_sets(protocol: FrequencyProtocol, targets: NDArray[np.int64], fakes: int) -> Payloads:
    members = int(protocol.parameters()["members"])
    bits = np.zeros((fakes, 64 * -(-protocol.size // 64)), dtype=np.bool_)
    bits[:, targets[:members]] = True
    others = np.argsort(random_words(fakes * DOMAIN).reshape(fakes, DOMAIN)[:, : DOMAIN - TARGETS], axis=1)
    np.put_along_axis(bits, others[:, : max(members - TARGETS, 0)], values=True, axis=1)
    return np.packbits(bits, axis=1, bitorder="little")


def _gain(survey: "local.Survey", clean: Payloads, fakes: Payloads) -> tuple[float, float, tuple[str, ...]]:
    """Return the largest gain of an answer, the stated bound, and the flags."""
    before = _estimate(survey, clean)
    after = _estimate(survey, np.concatenate([clean, fakes]))
    bound = after.poisoning(len(fakes) / (len(clean) + len(fakes))).up
    return float((after.counts - before.counts).max()), bound, after.flags


def _estimate(survey: "local.Survey", payloads: Payloads) -> Any:
    collector = local.Collector(survey)
    collector.add_all(labelled(survey, payloads))
    return collector.estimate()


# ---- what an estimate promises -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """Many estimates of the same truth: their errors, whether intervals held it, and the variance promised."""

    name: str
    errors: Floats  # (tries, values)
    covered: NDArray[np.bool_]
    variance: float


@case("T05", title="estimates are right on average, vary as stated, and their intervals cover", feature="local")
def estimates_keep_their_promises(size: Size) -> Evidence:
    """Estimate the same people again and again, and judge mean error, mean squared error and coverage."""
    tries, count = (60, 2_000) if size == "quick" else (200, 50_000)
    wrong = []
    shown = {}
    for tried in (*_counts_tried(tries, count), *_means_tried(tries, count)):
        cells = tried.errors.size
        bias = float(tried.errors.mean(axis=0).std() if tried.errors.shape[1] > 1 else abs(tried.errors.mean()))
        expected = np.sqrt(tried.variance / tries)
        ratio = float((tried.errors**2).mean() / tried.variance)
        covered = int(np.count_nonzero(tried.covered))
        shown[tried.name] = f"variance {ratio:.3f} of the formula, coverage {covered / cells:.4f}"
        # a sum of `cells` squares, nearly independent, is off by 7 deviations with a chance far below 1e-6
        if abs(ratio - 1) > max(0.05, 7 * np.sqrt(2 / cells)):
            wrong.append(f"{tried.name}: variance")
        if bias > 7 * expected:
            wrong.append(f"{tried.name}: bias")
        # intervals of one try are not independent of each other; far fewer than promised is wrong all the same
        if binomial_at_most(covered, cells, Fraction(95, 100)) < float(FALSE_ALARM) and covered / cells < 0.94:
            wrong.append(f"{tried.name}: coverage")
    return Evidence(passed=not wrong, details={"wrong": wrong, **shown})


def _counts_tried(tries: int, count: int) -> Iterator[Tried]:
    size = 16
    answers = people(size, count)
    truth = np.bincount(answers, minlength=size)
    for name in frequency_names():
        client = local.Randomizer(size, epsilon=1, protocol=name)
        estimates = [_estimate(client.survey, client.reports(answers).payloads) for _ in range(tries)]
        protocol: FrequencyProtocol = client.survey.protocol  # type: ignore[assignment]
        variance = len(answers) * spread(protocol, size)
        yield Tried(
            name,
            np.array([each.counts - truth for each in estimates]),
            np.array([(each.low <= truth) & (truth <= each.high) for each in estimates]),
            variance,
        )


def _means_tried(tries: int, count: int) -> Iterator[Tried]:
    values = np.linspace(0, 100, count) ** 2 / 100  # more small ones than large
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3)):  # one bit only; half of both; nearly all piecewise
        client = local.Randomizer(between=(0, 100), epsilon=epsilon)
        errors, covered = [], []
        for _ in range(tries):
            collector = local.Collector(client.survey)
            collector.add_all(client.reports(values))
            found = collector.estimate()
            errors.append([found.mean - values.mean()])  # type: ignore[union-attr]
            covered.append([found.low <= values.mean() <= found.high])  # type: ignore[union-attr]
        protocol = client.survey.protocol
        shares = [Fraction(place, 50) for place in range(51)]
        each = [protocol.variance(share * share) for share in shares]  # type: ignore[union-attr]
        variance = float(np.mean(each)) * 100**2 / count
        yield Tried(f"mean at ε = {epsilon}", np.array(errors), np.array(covered), variance)
