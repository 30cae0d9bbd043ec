"""Rehearse a question: the whole release on public rows, at several ε, beside the truth.

Nothing is charged, and nothing protects those rows: a source that any ledger at hand knows as protected is refused.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.answer import Answer, Rehearsal
from tacit.asking.opening import FRAMES, table
from tacit.asking.session import Session
from tacit.asking.united_question import Several
from tacit.errors import InvalidParameter, LargeEpsilonWarning, QueryRefused
from tacit.ledger import TRYOUT, Ledger, has_default_ledger, open_ledger
from tacit.numbers import Number, decimal_meaning, positive
from tacit.privacy import ApproximateLoss, PureLoss, epsilon
from tacit.tables import open_source, read_columns

if TYPE_CHECKING:
    from tacit.asking.question import Question

# At this ε, and with bounds above any person's rows, the noise of a number is less than a unit of its last digit.
TRUTH, MOST = 10**18, 10**5
WHAT_WAS_LEARNED = re.compile(r"; this request spent .*")  # in a ledger that keeps nothing
_AS_DECLARED = ("name", "unit", "neighbours", "rows_per_unit", "groups_per_unit", "most_rows_per_unit")


def rehearse(question: "Question", epsilons: Sequence[Number], on: Any) -> Rehearsal:
    """Return the errors of a question's answers about public rows, at each ε, against the truth."""
    if isinstance(epsilons, str) or not hasattr(epsilons, "__iter__"):
        raise InvalidParameter("epsilon must be a list\nhint: epsilon=[0.3, 1, 3]")
    amounts = [positive(decimal_meaning(each, name="epsilon"), name="epsilon") for each in epsilons]
    if not amounts:
        raise InvalidParameter("epsilon must list at least one amount\nhint: epsilon=[0.3, 1, 3]")
    _refuse_protected(question.session, on)
    ask = _asked_on(question, on)
    answers: list[tuple[Number, Answer | str]] = []
    for each in amounts:
        try:
            answers.append((each, ask(each).answer(epsilon=each, accept_noise=True)))
        except QueryRefused as why:  # at this epsilon only, perhaps: another may show groups
            answers.append((each, WHAT_WAS_LEARNED.sub("", str(why).partition("\n")[0])))
    if all(isinstance(found, str) for _, found in answers):
        raise QueryRefused(f"{answers[-1][1]}\nhint: rehearse with a larger epsilon, or list the groups: keys=[...]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        exact = ask(Fraction(TRUTH), rows_per_unit=MOST, groups_per_unit=MOST, most_rows_per_unit=None)
        truth = exact.answer(epsilon=TRUTH, accept_noise=True)
    return Rehearsal.of(answers, truth)


def _asked_on(question: "Question", on: Any) -> "Callable[..., Question]":
    """Return what makes the question about other rows, declared as its table is, in a new ledger that keeps nothing."""
    session = question.session
    declared = session.declaration
    columns = {
        name: {fact: value for fact in ("between", "step", "keys") if (value := getattr(facts, fact)) is not None}
        for name, facts in declared.columns.items()
    }

    def ask(amount: Fraction, **instead: Any) -> "Question":
        budget = session.registered.budget
        whole = max(amount, budget.epsilon) if isinstance(budget, PureLoss | ApproximateLoss) else amount
        words = {name: getattr(declared, name) for name in _AS_DECLARED} | instead
        opened = table(
            on,
            budget=epsilon(whole, delta=budget.delta if isinstance(budget, ApproximateLoss) else 0),
            columns={name: facts for name, facts in columns.items() if facts},
            accept_large_delta=True,
            ledger=TRYOUT,
            **words,
        ).session
        FRAMES.pop(id(on), None)  # it was opened as a table, and is still public
        return replace(question, session=opened, several=_several_of(question, opened))

    return ask


def _several_of(question: "Question", session: Session) -> Several | None:
    if any(part.relation is not None for part, _ in question.parts.questions):
        raise QueryRefused("only questions about the rows of one table can be rehearsed\nhint: leave out the join")
    several = question.several
    if several is None:
        return None
    if not isinstance(several, Several):
        raise QueryRefused("a workload is rehearsed question by question\nhint: rehearse each of its questions")
    asides = tuple(tuple(session for _ in each) for each in several.aside_sessions)
    return replace(several, sessions=tuple(session for _ in several.sessions), aside_sessions=asides)


def _refuse_protected(session: Session, on: Any) -> None:
    """Refuse a table that is protected here, or a source that a ledger at hand knows: its rows would be seen."""
    if on is None or hasattr(on, "session"):
        raise InvalidParameter(
            "on must be data that is public or no longer secret, and not a protected table\nhint: "
            "on='last_year.parquet'"
        )
    opened = open_source(on, read_columns(None))
    name, source, marks = session.declaration.name, opened.identity, opened.aliases
    known = (each.known_as(name=name, source=source, marks=marks, by_name=False) for each in _at_hand(session))
    if FRAMES.get(id(on)) is on or any(known):
        raise QueryRefused(
            "the data given as on= is protected here: a rehearsal would show its exact numbers"
            "\nhint: rehearse on public data, on made-up rows, or on an old table that is not secret any more"
        )


def _at_hand(session: Session) -> Iterator[Ledger]:
    yield session.ledger
    if has_default_ledger():
        with open_ledger(create=False) as kept:
            yield kept
