"""Reconstruction: a secret column is rebuilt from counts about it (Dinur and Nissim), for four ways to answer them.

First the solvers, from answers back to secrets: least squares by numpy, and Dinur and Nissim's linear program by scipy.
The unknowns of a block are the numbers of people with a yes in each place. Blocks do not share unknowns, so each is a
small separate system. The linear program is solved for several blocks at once, as one sparse matrix.

Then the attack: it measures the fraction of secrets that is recovered, at one size, and along the number of questions
and along epsilon.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting import explain
from tacit.errors import InvalidParameter
from tacit.numbers import Integers, Number
from tacit_classroom.attacks.answerers import (
    Answers,
    Questions,
    budgeted_answers,
    direct_answers,
    exact_answers,
    k_anonymous_answers,
    random_questions,
    small_noise_answers,
)
from tacit_classroom.attacks.people import (
    PLACES,
    People,
    Progress,
    loss_to_try,
    made_up,
    percent,
    silent,
    size,
    without_warnings,
)

# ---- The solvers.

LEAST_SQUARES, LINEAR_PROGRAM = "least squares", "linear program"
BLOCKS_AT_ONCE = 10

Solver = Callable[[Questions, Answers, Integers, Progress], Answers]


def least_squares(questions: Questions, answers: Answers, sizes: Integers, progress: Progress = silent) -> Answers:
    """Return the estimated yeses of each place: those with the least squared difference between their counts and the
    answers.

    Ties go to the values nearest to half of each place.
    """
    known, peopled = ~np.isnan(answers), sizes > 0
    patterns, which = np.unique(np.hstack([known, peopled]), axis=0, return_inverse=True)
    estimates = np.zeros(sizes.shape)
    for at, pattern in enumerate(patterns):
        blocks = np.flatnonzero(which.ravel() == at)
        asked, places = np.split(pattern, [len(questions)])
        matrix = questions.inside[np.ix_(asked, places)].astype(np.float64)
        middle = sizes[np.ix_(blocks, places)] / 2
        wanted = answers[np.ix_(blocks, asked)] - middle @ matrix.T
        moved, *_ = np.linalg.lstsq(matrix, wanted.T, rcond=None)
        estimates[np.ix_(blocks, places)] = middle + moved.T
        progress("solving by least squares", (at + 1) / len(patterns))
    return estimates


def linear_program(questions: Questions, answers: Answers, sizes: Integers, progress: Progress = silent) -> Answers:
    """Return the yeses of each place that minimize the largest error of an answer in each block."""
    _need_scipy()
    estimates = np.zeros(sizes.shape)
    for start in range(0, len(answers), BLOCKS_AT_ONCE):
        chosen = range(start, min(start + BLOCKS_AT_ONCE, len(answers)))
        found = _solve([_system(questions, answers[at], sizes[at]) for at in chosen])
        for at, values in zip(chosen, found, strict=True):
            estimates[at, sizes[at] > 0] = values
        progress("solving by a linear program", (start + len(chosen)) / len(answers))
    return estimates


SOLVERS: dict[str, Solver] = {LEAST_SQUARES: least_squares, LINEAR_PROGRAM: linear_program}


def solvers_named(solver: str | None) -> dict[str, Solver]:
    """Return the solver asked for, or all that are installed."""
    if solver is None:
        return SOLVERS if find_spec("scipy") else {LEAST_SQUARES: least_squares}
    named = {"squares": LEAST_SQUARES, "linear": LINEAR_PROGRAM}.get(solver)
    if named is None:
        raise InvalidParameter(f"solver must be squares or linear, not {solver!r}\nhint: leave it out for both")
    if named == LINEAR_PROGRAM:
        _need_scipy()
    return {named: SOLVERS[named]}


def share_right(people: People, estimates: Answers) -> float:
    """Return the share of people whose secret is right when each place gets its more probable answer."""
    guessed_yes = estimates > people.sizes / 2
    right = np.where(guessed_yes, people.exact_yes, people.sizes - people.exact_yes)
    return float(right.sum() / len(people))


def _system(questions: Questions, answers: Answers, sizes: Integers) -> tuple[NDArray[Any], Answers, Integers]:
    """Return one block's matrix, its answers, and how many people each of its places has."""
    known, places = ~np.isnan(answers), sizes > 0
    return questions.inside[np.ix_(known, places)].astype(np.float64), answers[known], sizes[places]


def _solve(systems: list[tuple[NDArray[Any], Answers, Integers]]) -> list[Answers]:
    """Minimise, for each block, the largest distance between an answer and its count; values are neither negative nor
    too large."""
    from scipy import optimize, sparse

    counts = sparse.block_diag([matrix for matrix, _, _ in systems], format="csc")
    # another unknown for each block: the largest error of its answers
    apart = sparse.block_diag([np.ones((len(answers), 1)) for _, answers, _ in systems], format="csc")
    answers = np.concatenate([answers for _, answers, _ in systems])
    most = np.concatenate([sizes for _, _, sizes in systems]).astype(np.float64)
    matrix = sparse.vstack([sparse.hstack([counts, -apart]), sparse.hstack([-counts, -apart])], format="csc")
    cost = np.concatenate([np.zeros(len(most)), np.ones(len(systems))])
    bounds = np.column_stack([np.zeros(len(cost)), np.concatenate([most, np.full(len(systems), np.inf)])])
    found = optimize.linprog(cost, A_ub=matrix, b_ub=np.concatenate([answers, -answers]), bounds=bounds, method="highs")
    ends = np.cumsum([len(sizes) for _, _, sizes in systems])
    values = most / 2 if found.x is None else found.x[: len(most)]
    return list(np.split(values, ends[:-1]))


def _need_scipy() -> None:
    if find_spec("scipy") is None:
        raise InvalidParameter(
            "the linear program needs the attacks extra\nhint: pip install 'tacit[attacks]', or use solver='squares'"
        )


# ---- The attack.

EXACT, K_ANONYMOUS, SMALL_NOISE, BUDGET = "exact", "k-anonymous", "small noise", "budget"
DIRECT = "budget, asked directly"
QUESTIONS = 100
EPSILONS = tuple(Fraction(text) for text in ("0.1", "0.3", "1", "3", "10", "30", "100"))
SHARES = tuple(Fraction(text) for text in ("0.02", "0.05", "0.1", "0.2", "0.4", "0.7", "1"))
CURVE_ROWS = 2_000  # people whom the curves are about: they need not be all
K_MOST, SPREAD_MOST = 1_000, 1_000


@dataclass(frozen=True)
class Recovered:
    """The share of the people's secrets that came back, by answers and solver."""

    answers: str
    solver: str
    share: float


@dataclass(frozen=True)
class ReconstructionPoint:
    """The share that came back with this many questions, or at this epsilon."""

    answers: str
    at: float
    share: float


@dataclass(frozen=True)
class Reconstruction:
    """How much of a secret column came back: print it, `plot` it, or take `record()` as data."""

    people: str
    rows: int
    told_apart: float
    questions: int
    epsilon: float
    k: int
    spread: int
    seed: int
    baseline: float
    bound: float  # the most any attack on the budget can expect, on independent secrets
    recovered: tuple[Recovered, ...]
    curve_rows: int
    by_questions: tuple[ReconstructionPoint, ...]
    by_epsilon: tuple[ReconstructionPoint, ...]

    def share(self, answers: str, solver: str | None = None) -> float:
        """Return the share that came back from these answers, by this solver or by the better one."""
        return max(one.share for one in self.recovered if one.answers == answers and solver in (None, one.solver))

    @property
    def sentence(self) -> str:
        """The meaning, for decision makers."""
        return (
            f"Exact counts gave away the secrets of {percent(self.share(EXACT))} of the people, with small groups "
            f"hidden {percent(self.share(K_ANONYMOUS))}, with a little noise {percent(self.share(SMALL_NOISE))}; the "
            f"same counts through a budget of ε = {self.epsilon:g} gave {percent(self.share(BUDGET))}, and guessing "
            f"without any gives {percent(self.baseline)}."
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"attack": "reconstruct", "sentence": self.sentence}

    def plot(self, path: str | Path) -> Path:
        """Draw the share that came back along the number of questions and along epsilon: .png, .svg or .html."""
        from tacit_classroom.attacks.drawings import draw_reconstruction

        if not self.by_epsilon:
            raise InvalidParameter("this attack was run without its curves\nhint: reconstruct(..., curves=True)")

        return draw_reconstruction(self, Path(path))

    def __str__(self) -> str:
        solvers = list(dict.fromkeys(one.solver for one in self.recovered))
        names = {
            EXACT: "exact counts",
            K_ANONYMOUS: f"k-anonymous tables: no group under {self.k} people",
            SMALL_NOISE: f"fixed small noise: up to ± {self.spread}",
            BUDGET: f"Tacit, a budget of ε = {self.epsilon:g} for all of them",
        }
        lines = [
            f"Reconstruction of a secret yes or no: {self.rows:,} people ({self.people}), {self.questions:,} questions",
            f"A question counts the yeses in a random half of every block of {PLACES} neighbours; seed {self.seed}.",
            *(
                []
                if self.told_apart > 0.9995
                else [
                    f"{percent(self.told_apart)} of them are distinguished by public columns; the rest share a place."
                ]
            ),
            "",
            f"{'secrets recovered from':<52}" + "".join(f"{solver:>16}" for solver in solvers),
        ]
        for answers, name in names.items():
            shares = "".join(f"{percent(self.share(answers, solver)):>16}" for solver in solvers)
            lines.append(f"{name:<52}{shares}")
        lines += [
            f"{'nothing: the more common answer for everyone':<52}{percent(self.baseline):>16}",
            f"{f'at most, by any attack on ε = {self.epsilon:g}':<52}{percent(self.bound):>16}",
            *([] if LINEAR_PROGRAM in solvers or len(solvers) > 1 else [_NO_PROGRAM]),
            "",
            self.sentence,
        ]
        return "\n".join(lines)

    __repr__ = __str__


_NO_PROGRAM = "(a linear program recovers more from small noise: pip install 'tacit[attacks]')"


@without_warnings()
def reconstruct(
    people: People | None = None,
    *,
    rows: int = CURVE_ROWS,
    questions: int = QUESTIONS,
    epsilon: Number = 1,
    k: int = 5,
    spread: int = 2,
    solver: str | None = None,
    seed: int = 1,
    curves: bool = True,
    progress: Progress = silent,
) -> Reconstruction:
    """Return the part of a secret column that comes back from the same counts, answered in four ways.

    `people` are made up (`rows` of them) unless given. Small noise is up to `spread` on each count. The budget of
    `epsilon` is for all the questions together. `solver` is "squares" or "linear"; by default both, if scipy is
    installed. Without `curves` it cannot be plotted, and is several times faster.

    No attack on the budget expects more than e^epsilon/(1 + e^epsilon) of independent fair secrets: a no is as if the
    person were not counted, so guessing a secret is guessing between neighbours.
    """
    target = made_up(rows, seed=seed) if people is None else people
    asked = random_questions(questions, seed=seed)
    loss = loss_to_try(epsilon)
    size(k, name="k", least=1, most=K_MOST)
    size(spread, name="noise", least=1, most=SPREAD_MOST)
    with_solvers = solvers_named(solver)
    answered = {
        EXACT: exact_answers(target, asked),
        K_ANONYMOUS: k_anonymous_answers(target, asked, k=k),
        SMALL_NOISE: small_noise_answers(target, asked, spread=spread),
        BUDGET: budgeted_answers(target, asked, epsilon=loss, progress=progress),
    }
    recovered = [
        Recovered(answers, name, share_right(target, solve(asked, values, target.sizes, progress)))
        for name, solve in with_solvers.items()
        for answers, values in answered.items()
    ]
    part = target.first(CURVE_ROWS)
    by_squares, best = list(with_solvers.values())[0], list(with_solvers.values())[-1]
    shown = {name: values[: part.blocks] for name, values in answered.items() if name != BUDGET}
    return Reconstruction(
        people=target.name,
        rows=len(target),
        told_apart=target.told_apart,
        questions=len(asked),
        epsilon=float(loss),
        k=k,
        spread=spread,
        seed=seed,
        baseline=target.exact_baseline,
        bound=max(target.exact_baseline, float(explain(loss).one.accuracy)),
        recovered=tuple(recovered),
        curve_rows=len(part),
        by_questions=_by_questions(part, asked, shown, loss, (best, by_squares), progress) if curves else (),
        by_epsilon=_by_epsilon(part, asked, by_squares, progress) if curves else (),
    )


def _by_questions(
    people: People,
    asked: Questions,
    shown: dict[str, Answers],
    loss: Fraction,
    solvers: tuple[Solver, Solver],
    progress: Progress,
) -> tuple[ReconstructionPoint, ...]:
    """Return the share recovered from the first few questions, and so on; the budget is spent again on each number.

    Noise with tails is best undone by least squares, bounded noise by the program.
    """
    points = []
    counts = sorted({max(1, round(share * len(asked))) for share in SHARES})
    for at, count in enumerate(counts):
        few = asked.first(count)
        answered = {name: values[:, :count] for name, values in shown.items()}
        answered[BUDGET] = budgeted_answers(people, few, epsilon=loss)
        for name, values in answered.items():
            solve = solvers[1] if name == BUDGET else solvers[0]
            points.append(
                ReconstructionPoint(name, count, share_right(people, solve(few, values, people.sizes, silent)))
            )
        progress("following the number of questions", (at + 1) / len(counts))
    return tuple(points)


def _by_epsilon(people: People, asked: Questions, solve: Solver, progress: Progress) -> tuple[ReconstructionPoint, ...]:
    """Return the share recovered through larger and larger budgets, by the same questions and by direct ones."""
    points = []
    for at, epsilon in enumerate(EPSILONS):
        answers = budgeted_answers(people, asked, epsilon=epsilon)
        share = share_right(people, solve(asked, answers, people.sizes, silent))
        direct = share_right(people, direct_answers(people, epsilon=epsilon))
        points += [
            ReconstructionPoint(BUDGET, float(epsilon), share),
            ReconstructionPoint(DIRECT, float(epsilon), direct),
        ]
        progress("following epsilon", (at + 1) / len(EPSILONS))
    return tuple(points)
