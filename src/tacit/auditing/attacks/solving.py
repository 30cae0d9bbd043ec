"""From answers back to secrets: least squares, which numpy has, and Dinur and Nissim's linear program, by scipy.

A block's unknowns are how many people of each place have a yes. Blocks share no unknown, so each is a small system of
its own; the program is solved for several blocks at once, as one sparse matrix.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.attacks.answerers import Answers
from tacit.auditing.attacks.people import Integers, People
from tacit.auditing.attacks.questions import Questions
from tacit.auditing.attacks.sizes import Progress, silent
from tacit.errors import InvalidParameter

LEAST_SQUARES, LINEAR_PROGRAM = "least squares", "linear program"
BLOCKS_AT_ONCE = 10

Solver = Callable[[Questions, Answers, Integers, Progress], Answers]


def least_squares(questions: Questions, answers: Answers, sizes: Integers, progress: Progress = silent) -> Answers:
    """Return the estimated yeses of each place: those whose counts differ least from the answers, squared.

    Where the answers leave a choice, it is the one nearest to half of each place.
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
    """Return possible yeses of each place such that no answer of a block is off by more than must be."""
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
    """Return the share of people whose secret is right when each place gets the answer that more of it seem to have."""
    said_yes = estimates > people.sizes / 2
    right = np.where(said_yes, people.exact_yes, people.sizes - people.exact_yes)
    return float(right.sum() / len(people))


def _system(questions: Questions, answers: Answers, sizes: Integers) -> tuple[NDArray[Any], Answers, Integers]:
    """Return one block's matrix, its answers, and how many people each of its places has."""
    known, places = ~np.isnan(answers), sizes > 0
    return questions.inside[np.ix_(known, places)].astype(np.float64), answers[known], sizes[places]


def _solve(systems: list[tuple[NDArray[Any], Answers, Integers]]) -> list[Answers]:
    """Minimise, for each block, the largest distance between an answer and its count; none is negative or too large."""
    from scipy import optimize, sparse

    counts = sparse.block_diag([matrix for matrix, _, _ in systems], format="csc")
    # one more unknown for each block: how far its answers are off at most
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
            "a linear program needs the attacks extra\nhint: pip install 'tacit[attacks]', or take least squares"
        )
