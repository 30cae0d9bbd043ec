"""Attacks on nets: one person's part of a round, samples, precision of released gradients, runs that are resumed."""

import math
import shutil
import tempfile
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import open_at
from tacit_gauntlet.stage.nets import (
    BOUND,
    EPSILON,
    ROUNDS,
    Row,
    first_sum,
    heard_run,
    net_crowd,
    train_net,
)

NEWCOMERS: dict[str, list[Row]] = {
    "one far away": [(1e20, -1e20, 1e20)],
    "one who is usual": [(0.5, -0.5, 2.0)],
    "rows that differ": [(100.0, 0.0, 0.0), (0.0, 100.0, 0.0), (-100.0, 0.0, 100.0)],
    "not a number": [(nan, nan, nan)],
    "infinite": [(inf, -inf, 0.0)],
}
QUICK = ("one far away", "rows that differ")
# A newcomer who moves a sum nearly as far as is hidden shows that the measure sees it.
SEEN = 0.9
CROWDS = (0, 1, 20)
# The chance that as few of so many fair bits are odd, or even, is below 1e-12.
PEOPLE, DRAWS_LEAST, FAR = 400, 100, 7.5


@case(
    "M31",
    title="one person moves a round of a net by at most the bound, and its noise is what was charged",
    feature="learning",
)
def bounded_round(size: Size) -> Evidence:
    farthest, broken = 0.0, list[str]()
    for module in ("linear",) if size == "quick" else ("linear", "convolution"):
        for people in CROWDS:
            crowd = net_crowd(people)
            before, _ = first_sum(crowd, module)
            for who in QUICK if size == "quick" else NEWCOMERS:
                after, event = first_sum({**crowd, people: NEWCOMERS[who]}, module)
                moved = sum(int(each) ** 2 for each in after - before)
                farthest = max(farthest, math.sqrt(moved) / BOUND)
                if moved > event.sensitivity_squared or event.sensitivity_squared != BOUND**2:
                    broken.append(
                        f"{module}, {people} people and {who}: moved by {math.sqrt(moved) / BOUND:.3f} bounds"
                    )
    broken += _noise_of_a_run()
    return Evidence(not broken and farthest > SEEN, {"farthest, of the bound": farthest, "broken": broken[:5]})


def _noise_of_a_run() -> list[str]:
    """Compare the noise of each round with the event in the ledger."""
    with heard_run() as heard:
        trained = train_net(net_crowd(5))
    (charged,) = (each for each in trained.certificate()["events"] if each["kind"] == "SubsampledGaussian")
    wrong = [f"noise of sigma {each.sigma}" for each in heard.events if str(each.sigma) != charged["sigma"]]
    if charged["rounds"] != str(ROUNDS) or len(heard.events) != ROUNDS:
        wrong.append(f"{len(heard.events)} rounds, {charged['rounds']} charged")
    noise = np.concatenate([noisy - exact for noisy, exact in zip(heard.noisy, heard.exact, strict=True)]) / BOUND
    sigma = float(heard.events[0].sigma) / BOUND
    # 168 numbers: their spread is within a third of sigma but with chance 1e-9
    if not 2 / 3 < float(noise.std()) / sigma < 4 / 3:
        wrong.append(f"noise of {float(noise.std()):.2f} bounds, {sigma:.2f} charged")
    return wrong


@case("M32", title="each round of a net samples people afresh, each by a coin, as it is charged", feature="learning")
def fresh_samples(_: Size) -> Evidence:
    with heard_run() as heard:
        train_net(net_crowd(PEOPLE))
    sizes = [int(each.sum()) for each in heard.samples]
    # eight sizes of 400 coins at 1/4 are alike with chance below 1e-9; each is 12 deviations off with less
    wrong = ["samples of one size"] if len(set(sizes)) == 1 else []
    wrong += ["one sample for several rounds"] if len({each.tobytes() for each in heard.samples}) < ROUNDS else []
    wrong += [f"a sample of {each}" for each in sizes if abs(each - PEOPLE / 4) > 12 * math.sqrt(PEOPLE * 3 / 16)]
    return Evidence(not wrong, {"sizes": sizes, "wrong": wrong})


@case("M33", title="no digit of a released gradient shows the sum below its noise", feature="learning")
def precision(_: Size) -> Evidence:
    """Count odd numbers: floats of 24 bits are whole multiples of large powers of two, and then of none that is odd."""
    with heard_run() as heard:
        train_net(net_crowd(20))
    drawn = np.concatenate(heard.noisy)
    odd, many = int((drawn % 2 == 1).sum()), len(drawn)
    is_whole = bool((drawn == np.rint(drawn)).all())
    is_fair = abs(odd - many / 2) < FAR * math.sqrt(many) / 2
    return Evidence(is_whole and is_fair and many >= DRAWS_LEAST, {"odd": odd, "of": many})


class Stopped(BaseException):
    """How a process ends in the middle of a run."""


@case(
    "M34",
    title="a net's run that is stopped, copied and resumed draws no round twice, for one charge",
    feature="learning",
)
def resumed(_: Size) -> Evidence:
    def stop(at: int, _: Any) -> None:
        if at == ROUNDS // 2:
            raise Stopped

    ledger, crowd = open_at(":memory:"), net_crowd(30)
    with tempfile.TemporaryDirectory() as folder, heard_run() as heard:
        path, copied = Path(folder) / "run", Path(folder) / "copied"
        try:
            train_net(crowd, ledger=ledger, checkpoint=path, on_round=stop)
        except Stopped:
            shutil.copy(path, copied)
        for each in (path, copied, path):
            train_net(crowd, ledger=ledger, checkpoint=each)
    charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    noise = [(noisy - exact).tobytes() for noisy, exact in zip(heard.noisy, heard.exact, strict=True)]
    wrong = [f"{len(charges)} charges"] if len(charges) != 1 else []
    wrong += [f"{len(noise)} rounds of {ROUNDS}"] if len(noise) > ROUNDS else []
    wrong += ["the same noise twice"] if len(set(noise)) < len(noise) else []
    return Evidence(not wrong, {"rounds": len(noise), "wrong": wrong})


@case(
    "M35",
    title="a net's whole run is charged before a person is read, and stopping early gives no refund",
    feature="learning",
)
def charged_first(_: Size) -> Evidence:
    ledger, order = open_at(":memory:"), list[str]()

    def stop(*_: object) -> None:
        order.append("a round")
        raise Stopped

    with heard_run() as heard:
        try:
            train_net(net_crowd(10), ledger=ledger, on_round=stop)
        except Stopped:
            order.append("stopped")
    (table,) = ledger.tables()
    spent = ledger.spent(table).epsilon
    wrong = [] if spent == EPSILON else [f"{spent} of {EPSILON} charged"]
    wrong += [] if len(heard.exact) == 1 else [f"{len(heard.exact)} rounds before the stop"]
    refused = open_at(":memory:")
    with heard_run() as unheard:
        try:
            train_net(net_crowd(10), ledger=refused, budget=tacit.epsilon(1, delta="1e-6"))
        except Exception as problem:
            wrong += [] if type(problem).__name__ == "BudgetExceeded" else [type(problem).__name__]
        else:
            wrong.append("a run beyond the budget")
    wrong += ["rows were read for a run that was refused"] if unheard.samples else []
    return Evidence(not wrong, {"order": order, "wrong": wrong})
