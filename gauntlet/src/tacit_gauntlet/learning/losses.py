"""What a fit is charged, beside what its noise hides: by training again and again, and by a formula of our own."""

import math
from itertools import product
from typing import Any

import tacit
from tacit.learning import AdditiveClassifier, AdditiveRegressor, LinearRegression
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import FEATURES, people_table

# The noise may be wider than it has to be by this at most: two arms of a budget's rule, and rounding.
WIDER_MOST = 1.25


@case("M04", title="training with and without a planted person shows no more than is charged", feature="learning")
def trained_apart(size: Size) -> Evidence:
    """False alarms: 1e-6 for each audit."""
    draws = 60 if size == "quick" else 1500
    audits: dict[str, Any] = {
        f"classes, ε = {epsilon}": AdditiveClassifier(epsilon=epsilon, delta="1e-5", rounds=4)
        for epsilon in ((1,) if size == "quick" else (1, 8))
    }
    if size == "full":
        audits["numbers"] = AdditiveRegressor(epsilon=1, delta="1e-5", rounds=4)
    found = {name: tacit.audit_model(model, draws=draws) for name, model in audits.items()}
    shown = {name: f"{each.demonstrated:.3g} of {each.claimed:g}" for name, each in found.items()}
    return Evidence(not any(each.violated for each in found.values()), {"trainings": 2 * draws, **shown})


@case("M05", title="a fit's noise is at least what a formula of our own asks for", feature="learning")
def noise_is_enough(size: Size) -> Evidence:
    """The noise of all rounds is one Gaussian vector; its exact trade-off gives the delta at an epsilon.

    The noise is discrete and wide, so that the continuous formula differs by far less than a part in 10^6.
    """
    epsilons = (0.05, 1, 20) if size == "quick" else (0.01, 0.05, 0.1, 0.3, 0.7, 1, 2, 4, 8, 20)
    rounds = (1, 24) if size == "quick" else (1, 2, 7, 24, 100)
    deltas = ("1e-6",) if size == "quick" else ("1e-5", "1e-7", "1e-9")
    narrow, widest, tried = [], 0.0, 0
    for epsilon, delta, many, neighbours in product(epsilons, deltas, rounds, ("add-remove", "replace")):
        table = people_table(neighbours=neighbours)
        asked: list[Any] = [
            AdditiveClassifier(epsilon=epsilon, delta=delta, rounds=many).plan(table, target="kind", features=FEATURES)
        ]
        if many == 1:
            asked.append(LinearRegression(epsilon=epsilon, delta=delta).plan(table, target="hours", features=FEATURES))
        for plan in asked:
            mu = math.sqrt(sum(float(each.sensitivity_squared / each.sigma**2) for each in plan.events))
            paid = float(plan.asked.delta)
            if _delta(mu, epsilon) > paid * (1 + 1e-6):
                narrow.append(f"ε = {epsilon}, δ = {delta}, {many} rounds: δ is {_delta(mu, epsilon):.3g}")
            widest, tried = max(widest, _most(epsilon, paid) / mu), tried + 1
    return Evidence(
        not narrow and widest < WIDER_MOST,
        {"plans": tried, "noise beyond what is needed, at most": f"{widest - 1:.2%}", "too narrow": narrow[:5]},
    )


def _delta(mu: float, epsilon: float) -> float:
    """Return the delta at an epsilon of Gaussian noise that one person moves by `mu` deviations."""
    below = [math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)]
    return below[0] - math.exp(epsilon) * below[1]


def _most(epsilon: float, delta: float) -> float:
    """Return the most deviations that one person may move at this epsilon and delta."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(middle, epsilon) <= delta else (low, middle)
    return low
