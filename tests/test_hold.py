"""The public clock: whatever happens after a charge leaves at a tick, and what is refused before it at once."""

from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.errors import EngineError, InvalidParameter
from tacit.hold import PublicClock, hold_text, holding, noting, past_the_charge, read_hold


class Watch:
    """A clock that a test moves, and that sleeping moves."""

    def __init__(self) -> None:
        self.time = 50.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@pytest.mark.parametrize(
    ("taken", "leaves"),
    [(0.0, 2), (1.9, 2), (2.0, 2), (2.1, 4), (4.1, 8), (8.1, 16), (16.1, 20), (21.0, 24), (63.0, 64), (65.0, 80)],
)
def test_an_outcome_leaves_at_a_doubling_of_t_and_after_8_t_at_four_ticks_in_each(taken: float, leaves: float) -> None:
    watch = Watch()
    clock = PublicClock(Fraction(2), watch.now)
    clock.is_past_charge = True
    watch.time += taken
    assert taken + clock.seconds_left() == pytest.approx(leaves)


def test_a_long_question_waits_for_at_most_a_third_of_its_time_and_leaves_at_few_times() -> None:
    leaves = set()
    for taken in range(30, 36_000, 4):  # tenths of a second, at a T of 0.2 s: from 15 T on, to an hour
        watch = Watch()
        clock = PublicClock(Fraction(1, 5), watch.now, watch.sleep)
        clock.is_past_charge = True
        watch.time += taken / 10
        clock.wait_to_write()
        left = watch.time - 50 + clock.seconds_left()
        assert taken / 10 < left <= 1.34 * taken / 10
        leaves.add(round(left, 6))
    assert len(leaves) == 42


@pytest.mark.parametrize(
    ("taken", "written", "leaves"), [(0.1, 1, 2), (1.0, 1, 2), (1.1, 3, 4), (3.1, 6, 8), (12.1, 18, 20), (18.1, 22, 24)]
)
def test_the_time_of_an_entry_shows_no_more_than_its_tick(taken: float, written: float, leaves: float) -> None:
    watch = Watch()
    clock = PublicClock(Fraction(2), watch.now, watch.sleep)
    clock.is_past_charge = True
    watch.time += taken
    clock.wait_to_write()
    assert watch.time - 50 == pytest.approx(written)
    watch.time += 0.001  # writing takes a moment
    assert watch.time - 50 + clock.seconds_left() == pytest.approx(leaves)


@pytest.mark.parametrize(
    ("taken", "written", "leaves"),
    [
        ([0.1, 0.9], [1, 2], 4),
        ([0.3, 0.1, 0.9], [1, 2, 3], 4),
        ([0.9, 0.1, 1.1], [1, 2, 5], 8),  # the answer missed its first middle
        ([5.0, 0.1, 0.1], [6, 7, 8], 16),  # what was learned first took long, and does not multiply the rest
        ([0.1] * 5, [1, 2, 3, 4, 5], 8),
    ],
)
def test_each_part_of_a_call_is_written_between_ticks_of_its_own(
    taken: list[float], written: list[float], leaves: float
) -> None:
    watch = Watch()
    clock = PublicClock(Fraction(2), watch.now, watch.sleep)
    clock.is_past_charge = True
    for each, due in zip(taken, written, strict=True):
        watch.time += each
        clock.wait_to_write()
        assert watch.time - 50 == pytest.approx(due)
    assert watch.time - 50 + clock.seconds_left() == pytest.approx(leaves)


def test_what_was_not_charged_leaves_at_once() -> None:
    clock = PublicClock(Fraction(2), Watch().now)
    assert clock.seconds_left() == 0
    with noting(clock):
        past_the_charge()
    assert clock.seconds_left() > 0


@pytest.mark.parametrize("outcome", ["value", "error", "interrupt"])
def test_each_outcome_waits_for_the_tick(outcome: str) -> None:
    slept: list[float] = []
    errors: dict[str, type[BaseException]] = {"error": EngineError, "interrupt": KeyboardInterrupt}
    try:
        with holding(Fraction(3), sleep=slept.append):
            past_the_charge()
            if outcome in errors:
                raise errors[outcome]
    except (EngineError, KeyboardInterrupt):
        pass
    assert len(slept) == 1
    assert 0 < slept[0] <= 3


def test_inside_of_another_call_the_outer_one_waits() -> None:
    slept: list[float] = []
    clock = PublicClock(Fraction(5))
    with noting(clock), holding(Fraction(3), sleep=slept.append):
        past_the_charge()
    assert slept == []
    assert clock.is_past_charge
    assert clock.every == 5


def test_inside_of_a_call_with_a_shorter_hold_the_longer_one_is_kept() -> None:
    clock = PublicClock(Fraction(5))
    with noting(clock), holding(Fraction(30)), holding(None), holding(Fraction(7)):
        pass
    assert clock.every == 30


@pytest.fixture
def visits() -> Any:
    frame = pd.DataFrame({"patient": range(60), "days": [1, 2, 3] * 20})
    return tacit.table(
        frame,
        unit="patient",
        rows_per_unit=1,
        groups_per_unit=1,
        most_rows_per_unit=1,
        columns={"days": {"between": (0, 30)}},
        budget=tacit.epsilon(5),
        ledger=tacit.TRYOUT,
        hold="2s",
    )


def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(holding.__wrapped__, "__kwdefaults__", {"sleep": slept.append})
    return slept


def test_a_declared_hold_keeps_answers_stored_answers_and_failures(
    visits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = waits(monkeypatch)
    visits.count().answer(epsilon=1)
    assert visits.count().answer(epsilon=1).facts.free
    monkeypatch.setattr(type(visits.session), "release", lambda self, plan: 1 / 0)
    with pytest.raises(EngineError):
        visits.mean("days").answer(epsilon=1)
    # half-way before it is written, and to the tick; the stored one is not written
    assert len(slept) == 5
    assert all(0 < each <= limit for each, limit in zip(slept, (1, 2, 2, 1, 2), strict=True))


def test_a_refusal_before_the_charge_is_told_at_once(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = waits(monkeypatch)
    with pytest.raises(tacit.BudgetExceeded):
        visits.count().answer(epsilon=6)
    with pytest.raises(InvalidParameter):
        visits.count().answer(epsilon=1, hold="soon")
    assert slept in ([], [0.0])


def test_a_call_may_be_held_longer(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = waits(monkeypatch)
    visits.count().answer(epsilon=1, hold="500s")
    assert 200 < slept[0] <= 250
    assert 400 < slept[1] <= 500


def test_a_call_cannot_shorten_the_declared_hold(visits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = waits(monkeypatch)
    visits.count().answer(epsilon=1, hold="1ms")
    assert slept[1] > 0.5


@pytest.mark.parametrize("written", [0, -1, "2", "2 h", "0s", True, float("nan"), 1e9, "1e9s", [], "99999999999s"])
def test_a_hold_that_says_no_time_is_refused(written: Any) -> None:
    with pytest.raises(InvalidParameter, match="hold='2s'"):
        read_hold(written)


@pytest.mark.parametrize("written", ["2s", "500ms", "1ms", "60s"])
def test_a_hold_is_written_as_it_is_read(written: str) -> None:
    found = read_hold(written)
    assert found is not None
    assert hold_text(found) == written
