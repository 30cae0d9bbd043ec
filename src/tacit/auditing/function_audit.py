"""`tacit.audit`: try to refute a mechanism's claim by its outputs on two neighbouring inputs.

The draws of each input are split: half of them choose events that distinguish the inputs, half test the chosen events.
A verdict of "violated" is wrong with probability at most 1 - confidence. The other verdict states only that this
audit, on this pair of inputs, found no loss above the claim.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from tacit.auditing import outcome
from tacit.auditing.distinguish import Event, Worth, choose_events, gaussian_move, loss_at
from tacit.auditing.lower_bound import Bets, gaussian_epsilon, gaussian_exceeds, mu_lower, prove
from tacit.auditing.outcome import Outcomes, read_outcomes
from tacit.auditing.result import AuditResult, Finding, make_figure
from tacit.errors import InvalidParameter
from tacit.numbers import Number, confidence_meaning, decimal_meaning, whole
from tacit.privacy import delta_meaning

EVENTS_TESTED = 3
# The bets on a slow callable are shared by this many events.
EVENTS_BET_ON = 2
DRAWS_LEAST = 100
PILOT, PILOT_OF_BATCH = 10, 100
# Of the time a slow callable is given, the part in which events are chosen.
CHOOSING_SHARE = 0.3
# Plain numbers are sorted in one way, other outputs in another; all draws decide which, so each has a part of alpha.
PLAIN_SHARE = Fraction(9, 10)


@dataclass(frozen=True)
class Claim:
    """The claim to refute, and the confidence that a refutation needs."""

    epsilon: Fraction
    delta: Fraction
    confidence: Fraction

    @property
    def alpha(self) -> Fraction:
        """The probability that a refutation may be wrong."""
        return 1 - self.confidence

    def alpha_for(self, outcomes: Outcomes) -> Fraction:
        """The part of alpha for outputs of this kind."""
        return self.alpha * (PLAIN_SHARE if outcomes.plain else 1 - PLAIN_SHARE)

    def result(self, outcomes: Outcomes, event: Event | None, *, demonstrated: float, **found: Any) -> AuditResult:
        return AuditResult(
            claimed=float(self.epsilon),
            delta=float(self.delta),
            demonstrated=demonstrated,
            event=event.words if event is not None and demonstrated > 0 else "none found",
            confidence=float(self.confidence),
            deterministic=all(outcomes.constant),
            figure=make_figure(outcomes, event),
            **found,
        )


def audit(
    fn: Callable[..., Any],
    d0: Any,
    d1: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    draws: int = 120_000,
    confidence: Number = "0.999999",
    batch: bool = False,
    noise: Literal["gaussian"] | None = None,
    seconds: float | None = 60.0,
) -> AuditResult:
    """Return the loss that can be demonstrated against the claim that `fn` is (epsilon, delta)-DP for the neighbours
    d0, d1.

    `fn(d)` gives one output, anything made of numbers, text and None; an error it raises is an output too. With
    `batch`, `fn(d, n)` gives n independent outputs at once. `noise="gaussian"` assumes that the noise is Gaussian, and
    needs far fewer draws to see too little of it. A callable too slow for `draws` in `seconds` is audited for that
    time with bets that may stop at any time, or in a batch with fewer draws; None sets no time limit.

    >>> import tacit
    >>> honest = tacit.RandomizedResponse(epsilon=1)
    >>> tacit.audit(lambda bit, n: honest.release([bit] * n), 0, 1, epsilon=1, draws=20_000, batch=True).violated
    False
    >>> tacit.audit(lambda bit, n: honest.release([bit] * n), 0, 1, epsilon=0.5, draws=20_000, batch=True).violated
    True
    """
    claim = _read_claim(epsilon, delta, confidence)
    count = whole(draws, name="draws", least=DRAWS_LEAST)
    _check(fn, noise, claim, seconds)
    notes: tuple[str, ...] = ()
    if seconds is not None:
        pace = _pace(fn, d0, d1, batch=batch)
        if pace * count > seconds and not batch:
            return _sequential(fn, d0, d1, claim, count, seconds)
        fitting = max(DRAWS_LEAST, int(seconds / pace)) if pace > 0 else count
        if fitting < count:  # decided before any draw that counts
            notes, count = (f"{fitting:,} of the {count:,} draws asked for fit in {seconds:g} seconds",), fitting
    with outcome.progress("drawing", 2 * count) as tick:
        sides = [outcome.draw_outputs(fn, data, count, batch=batch, tick=tick) for data in (d0, d1)]
    found = judge(sides[0], sides[1], claim, noise=noise)
    return replace(found, notes=(*found.notes, *notes))


def judge(one: Any, other: Any, claim: Claim, *, noise: Literal["gaussian"] | None = None) -> AuditResult:
    """Return the verdict on outputs already drawn, the same number on each input."""
    outcomes = read_outcomes(one, other)
    _refuse_only_errors(outcomes)
    count = min(outcomes.first, outcomes.second)
    worth: Worth = loss_at(float(claim.delta)) if noise is None else gaussian_move
    events = choose_events(outcomes, learned=count // 4, chosen=count // 2, worth=worth, most=EVENTS_TESTED)
    alpha = claim.alpha_for(outcomes) / EVENTS_TESTED
    tested = [(event, _tested(event, outcomes, count // 2, alpha)) for event in events]
    tested.sort(key=lambda each: -each[1].proved.epsilon(claim.delta))
    best = tested[0][0] if tested else None
    violated = any(each.proved.exceeds(claim.epsilon, claim.delta) for _, each in tested)
    demonstrated = tested[0][1].proved.epsilon(claim.delta) if tested else 0.0
    notes = [] if noise is None else ["the noise is taken to be Gaussian"]
    if noise == "gaussian":
        mus = sorted(((mu_lower(each.proved), event) for event, each in tested), key=lambda pair: -pair[0])
        if mus and gaussian_epsilon(mus[0][0], claim.delta) > demonstrated:
            demonstrated, best = gaussian_epsilon(mus[0][0], claim.delta), mus[0][1]
            violated = violated or gaussian_exceeds(mus[0][0], claim.epsilon, claim.delta)
    return claim.result(
        outcomes,
        best,
        violated=violated,
        demonstrated=demonstrated,
        draws=count,
        method="split sample",
        notes=tuple(notes),
        tested=tuple(each for _, each in tested),
    )


def _tested(event: Event, outcomes: Outcomes, start: int, alpha: Fraction) -> Finding:
    tally = event.tally(outcomes, start)
    return Finding(event.words, event.likelier_first, tally, prove(tally, alpha=alpha))


# ---- slow callables ------------------------------------------------------------------------------------------------


def _pace(fn: Callable[..., Any], d0: Any, d1: Any, *, batch: bool) -> float:
    """Return how long a pair of draws takes, after a first that may be slower; the outputs are not used."""

    def draw(count: int) -> None:
        for data in (d0, d1):
            outcome.draw_outputs(fn, data, count, batch=batch, tick=lambda _: None)

    count = PILOT_OF_BATCH if batch else PILOT
    draw(1)
    start = outcome.clock()
    draw(count)
    return (outcome.clock() - start) / count


def _sequential(fn: Callable[..., Any], d0: Any, d1: Any, claim: Claim, most: int, seconds: float) -> AuditResult:
    """Choose events for a part of the time, then bet on them until the claim falls or the time is up."""
    start = outcome.clock()
    outputs: tuple[list[Any], list[Any]] = ([], [])

    def draw_until(count: int, end: float) -> None:
        while len(outputs[0]) < count and (outcome.clock() < end or len(outputs[0]) < PILOT):
            outputs[0].append(outcome.call(fn, d0))
            outputs[1].append(outcome.call(fn, d1))
            tick(2)

    with outcome.progress("drawing, for the time given", 2 * most) as tick:
        draw_until(most // 2, start + CHOOSING_SHARE * seconds)
        chosen = len(outputs[0])
        bets: list[Bets] = []
        fallen = False
        while not fallen and len(outputs[0]) < most and outcome.clock() < start + seconds:
            draw_until(max(len(outputs[0]) + 16, len(outputs[0]) * 5 // 4), start + seconds)
            outcomes = read_outcomes(*outputs)
            events = _bet_events(outcomes, chosen, claim)
            bets = [_bets(event, outcomes, chosen) for event in events]
            alpha = claim.alpha_for(outcomes) / EVENTS_BET_ON
            fallen = any(each.refutes(claim.epsilon, claim.delta, alpha) for each in bets)
    return _sequential_result(outputs, chosen, claim)


def _bet_events(outcomes: Outcomes, chosen: int, claim: Claim) -> list[Event]:
    """Return the events that the first draws chose: later draws do not change them."""
    worth = loss_at(float(claim.delta))
    return choose_events(outcomes, learned=chosen // 2, chosen=chosen, worth=worth, most=EVENTS_BET_ON)


def _bets(event: Event, outcomes: Outcomes, start: int) -> Bets:
    one, other = event.inside[start : outcomes.first], event.inside[outcomes.first + start :]
    return Bets().seen(one, other) if event.likelier_first else Bets().seen(other, one)


def _sequential_result(outputs: tuple[list[Any], list[Any]], chosen: int, claim: Claim) -> AuditResult:
    outcomes = read_outcomes(*outputs)
    _refuse_only_errors(outcomes)
    alpha = claim.alpha_for(outcomes) / EVENTS_BET_ON
    events = _bet_events(outcomes, chosen, claim)
    bets = [_bets(event, outcomes, chosen) for event in events]
    losses = [each.epsilon(claim.delta, alpha) for each in bets]
    place = int(np.argmax(losses)) if losses else -1
    demonstrated = losses[place] if losses else 0.0
    return claim.result(
        outcomes,
        events[place] if losses else None,
        violated=any(each.refutes(claim.epsilon, claim.delta, alpha) for each in bets),
        demonstrated=demonstrated,
        draws=outcomes.first,
        method="bets",
        notes=("the callable is slow: it was audited with bets for the time given",),
    )


# ---- what is refused -----------------------------------------------------------------------------------------------


def _read_claim(epsilon: Number, delta: Number, confidence: Number) -> Claim:
    exact = decimal_meaning(epsilon, name="epsilon")
    if exact < 0:
        raise InvalidParameter("epsilon must be at least 0: it is the claimed loss\nhint: e.g. epsilon=1")
    return Claim(exact, delta_meaning(delta), confidence_meaning(confidence))


def _check(fn: object, noise: object, claim: Claim, seconds: float | None) -> None:
    if not callable(fn):
        raise InvalidParameter(
            f"fn must be a function of one input, not a {type(fn).__name__}\nhint: e.g. lambda rows: noisy_count(rows)"
        )
    if noise not in (None, "gaussian"):
        raise InvalidParameter("noise must be 'gaussian'\nhint: leave it out to assume nothing about the noise")
    if noise == "gaussian" and claim.delta == 0:
        raise InvalidParameter("Gaussian noise needs a delta\nhint: give the claimed delta, e.g. delta=1e-6")
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise InvalidParameter("seconds must be above 0\nhint: seconds=None removes the limit")


def _refuse_only_errors(outcomes: Outcomes) -> None:
    names = set(outcomes.kind_names)
    if all(name.startswith("raised ") for name in names):
        classes = ", ".join(sorted(name.removeprefix("raised ") for name in names))
        raise InvalidParameter(
            f"fn raised {classes} on every draw of both inputs, which leaves no outputs to compare\nhint: call "
            "fn(d0) once by hand to see the error"
        )
