"""The pictures of the attacks: their lines, their words, and the levels to compare them with."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.accounting import explain
from tacit.pictures import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    Axis,
    LevelLine,
    Look,
    decades,
    line_panel,
    mark_at,
    side_by_side,
    write,
)
from tacit_classroom.attacks.people import at_most

if TYPE_CHECKING:
    from tacit_classroom.attacks.averaging import Averaging
    from tacit_classroom.attacks.differencing import Differencing
    from tacit_classroom.attacks.exposure import Exposure
    from tacit_classroom.attacks.members import Membership
    from tacit_classroom.attacks.reconstruction import Reconstruction

CURVE_POINTS = 60
WORDS_DOWN = 262  # pixels from the top: below the lines


def draw_reconstruction(found: "Reconstruction", path: Path) -> Path:
    """Draw the share of secrets recovered along the number of questions, and along epsilon."""
    from tacit_classroom.attacks.reconstruction import BUDGET, DIRECT, EXACT, K_ANONYMOUS, SMALL_NOISE

    y = Axis("secrets recovered", form="~%", values=(0.5, 0.6, 0.7, 0.8, 0.9, 1), domain=(0.42, 1.03))
    if min(point.share for point in (*found.by_questions, *found.by_epsilon)) < 0.44:
        y = Axis("secrets recovered", form="~%", domain=(0, 1.03))
    guess = [LevelLine(found.baseline, f"guessing without answers: {found.baseline:.0%}", below=True)]
    answerers = {
        EXACT: Look("exact counts", RED, "circle", size=150),
        K_ANONYMOUS: Look(f"k-anonymous: no group under {found.k}", ORANGE, "triangle-up", (6, 3)),
        SMALL_NOISE: Look(f"fixed small noise: ± {found.spread}", PINK, "square", (2, 2)),
        BUDGET: Look(f"Tacit, ε = {found.epsilon:g} for all questions", BLUE, "diamond", size=80),
    }
    left = line_panel(
        [(point.answers, point.at, point.share) for point in found.by_questions],
        answerers,
        x=Axis("questions asked", form=",d"),
        y=y,
        title="More questions",
        levels=guess,
    )
    budgets = {
        BUDGET: Look(f"Tacit, the same {found.questions} questions", BLUE, "diamond", size=80),
        DIRECT: Look("Tacit, one question about each person", GREEN, "triangle-down", joined=False, size=80),
    }
    epsilons = sorted({point.at for point in found.by_epsilon})
    right = line_panel(
        [(point.answers, point.at, point.share) for point in found.by_epsilon],
        budgets,
        x=Axis("ε of the whole budget", log=True, values=decades(epsilons[0], epsilons[-1])),
        y=y,
        title="Larger budgets",
        levels=guess,
        curve=_most(epsilons, found.baseline, "the most any\nattack can expect", at=2.6),
    )
    title = "Enough accurate counts give a secret column back; counts through a budget do not"
    note = (
        f"{found.curve_rows:,} people ({found.people}), each with a secret yes or no. Every question counts the yeses "
        "in a random half of each block of 20 neighbours."
    )
    return write(side_by_side([left, right], title=title, notes=[note]), path)


def draw_averaging(found: "Averaging", path: Path) -> Path:
    """Draw the typical error of an average along the number of repeats."""
    from tacit_classroom.attacks.averaging import OTHER, SAME, UNBUDGETED

    looks = {
        UNBUDGETED: Look("noise without a budget: fresh every time", RED, "circle"),
        SAME: Look("Tacit, the same question: always the same answer", BLUE, "diamond", (6, 3), size=80),
        OTHER: Look(f"Tacit, other questions: refused after {found.others_answered}", GREEN, "triangle-down", size=80),
    }
    errors = [point.error for point in found.points]
    x = Axis("times asked", log=True, values=decades(1, found.repeats), form=",")
    panel = line_panel(
        [(point.answers, point.repeats, point.error) for point in found.points],
        looks,
        x=x,
        y=Axis("typical error of the average, in people", log=True, values=(0.1, 0.3, 1, 3, 10, 30, 100)),
        levels=[LevelLine(0.5, "below: exact when rounded", below=True, left=112)] if min(errors) < 0.5 else [],
        more=mark_at(found.others_answered, "the budget ends", axis=x, down=WORDS_DOWN),
    )
    title = "Averaging removes noise, unless an account is kept"
    note = (
        f"Counts in {found.groups} groups; every answer costs ε = {found.each:g}, of a budget of ε = {found.epsilon:g}."
    )
    return write(side_by_side([panel], title=title, notes=[note]), path)


def draw_differencing(found: "Differencing", path: Path) -> Path:
    """Draw how the difference of two counts falls for a yes and for a no, exact and through a budget."""
    from tacit_classroom.attacks.differencing import BUDGET, EXACT

    looks = {
        "yes": Look("the person is in debt", RED, "circle"),
        "no": Look("the person is not", BLUE, "diamond", (6, 3), size=80),
    }
    y = Axis("share of the pairs", form="~%", zero=True)
    far = max(6, min(40, round(9 / found.epsilon)))
    names = {
        EXACT: (f"Exact counts: right {found.right_exact:.0%}", 4),
        BUDGET: (f"Tacit, ε = {found.epsilon:g} for the two: right {found.right_budget:.0%} (a coin: 50%)", far),
    }
    panels = [
        line_panel(
            [
                (said, at, shares.get(at, 0.0))
                for said, shares in found.differences[answers].items()
                for at in range(-reach, reach + 1)
            ],
            looks,
            x=Axis("first count minus the second", form="d"),
            y=y,
            title=title,
        )
        for answers, (title, reach) in names.items()
    ]
    title = "Two counts that differ by one person: exact ones tell on them, noisy ones hardly"
    note = (
        "How many of a street's 20 people are in debt, minus how many without house 20; in "
        f"{found.streets:,} made-up streets. "
        f"No attack on this budget can expect to be right more than {at_most(found.bound)} of the time."
    )
    return write(side_by_side(panels, title=title, notes=[note]), path)


def draw_membership(found: "Membership", path: Path) -> Path:
    """Draw the attackers' advantage along epsilon, under the most that any can have."""
    from tacit_classroom.attacks.members import MANY_FACTS, ONE_MEAN

    looks = {
        MANY_FACTS: Look(f"knows {found.facts:,} facts about the person", BLUE, "diamond", size=80),
        ONE_MEAN: Look("knows everyone else in the data, sees one mean", GREEN, "triangle-down", joined=False, size=80),
    }
    epsilons = sorted({point.epsilon for point in found.points})
    curve = [
        (at, height * 2 - 1, words)
        for at, height, words in _most(epsilons, 0.5, "the most any\nattack can expect", at=1.3)
    ]
    panel = line_panel(
        [(point.attacker, point.epsilon, point.advantage) for point in found.points],
        looks,
        x=Axis("ε of the whole budget", log=True, values=decades(epsilons[0], epsilons[-1])),
        y=Axis("advantage over a coin", form="~%", domain=(-0.1, 1.08), values=(0, 0.25, 0.5, 0.75, 1)),
        levels=[
            LevelLine(0.0, "a coin", below=True),
            LevelLine(
                found.exact_many_facts,
                f"{found.facts:,} facts, exact: {found.exact_many_facts:.0%}",
                below=True,
                left=205,
            ),
        ],
        curve=curve,
    )
    title = "Is this person in the data?"
    note = f"Averages over {found.members} members; advantage: members detected, less others accused."
    return write(side_by_side([panel], title=title, notes=[note]), path)


def draw_exposure(found: "Exposure", path: Path) -> Path:
    """Draw the probability that some row comes out, along delta."""
    looks = {"simulated": Look(f"seen in {found.runs} simulated runs", ORANGE, joined=False, size=110)}
    deltas = [point.delta for point in found.points]
    x = Axis("δ, the chance that the promise fails", log=True, values=decades(deltas[0], deltas[-1]), form="~e")
    steps = [deltas[0] * (deltas[-1] / deltas[0]) ** (at / CURVE_POINTS) for at in range(CURVE_POINTS + 1)]
    formula = [(delta, 1 - (1 - delta) ** found.rows, "") for delta in steps]
    middle = min(formula, key=lambda point: abs(point[1] - 0.5))
    panel = line_panel(
        [("simulated", point.delta, point.simulated) for point in found.points],
        looks,
        x=x,
        y=Axis("some row is published", form="~%", domain=(-0.03, 1.08), values=(0, 0.25, 0.5, 0.75, 1)),
        curve=[(*point[:2], "1 − (1 − δ)ⁿ" if point is middle else "") for point in formula],
        more=mark_at(
            found.delta_most, f"budgets of ours\nare refused from\nhere on: {_short(found.delta_most)}", axis=x
        ),
    )
    title = "A δ that looks small lets a person's row be published"
    note = f"Every one of {found.rows:,} rows is published with probability δ; this satisfies the promise (0, δ)."
    return write(side_by_side([panel], title=title, notes=[note]), path)


def _most(epsilons: list[float], baseline: float, words: str, *, at: float) -> list[tuple[float, float, str]]:
    """Return the most that any attack can expect along epsilon, with words near the epsilon `at`."""
    low, high = epsilons[0], epsilons[-1]
    steps = [low * (high / low) ** (step / CURVE_POINTS) for step in range(CURVE_POINTS + 1)]
    named = min(steps, key=lambda step: abs(step - at))
    return [(step, max(baseline, float(explain(step).one.accuracy)), words if step == named else "") for step in steps]


def _short(delta: float) -> str:
    return f"{delta:g}".replace("e-0", "e-")
