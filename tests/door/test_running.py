"""Counts that run on: charged once, each day drawn once and stored, however often and wherever a step is taken."""

import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.answer import RunningTotals
from tacit.cli.app import main
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.plan import RunningPlan
from tacit.plan.running_days import root_of_running_sum
from tacit.query import Column

BIG = tacit.epsilon(10**9, delta=1e-6)  # so little noise that totals are exact
START = datetime(2026, 3, 1, 8, tzinfo=UTC)


class Days:
    """A table of visits in a ledger of its own, with a clock that a test sets."""

    def __init__(self, folder, rows, **more):
        self.now, self.rows, self.more, self.place = START, rows, more, folder / "ledger.db"
        self.ledger = open_ledger(str(self.place), clock=lambda: self.now)

    def table(self, rows=None, ledger=None, **more):
        given = {"unit": "id", "name": "visits", "budget": BIG, "version": 1, **self.more, **more}
        return tacit.table(frame(rows or self.rows), ledger=ledger or self.ledger, **given)

    def running(self, until="2026-03-20", **more):
        return self.table(**more).running("day", until=until, since="2026-03-01")


def frame(rows):
    ids, days = ([row[at] for row in rows] for at in (0, 1))
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array(days, pa.date32())})


def march(day):
    return None if day is None else date(2026, 3, day)


ROWS = [(1, march(1)), (1, march(2)), (2, march(2)), (2, march(2)), (3, march(4)), (None, march(1)), (4, None)]


@pytest.fixture
def days(tmp_path):
    made = Days(tmp_path, ROWS)
    yield made
    made.ledger.close()


def totals(answer):
    return [row[answer.aggregates[0]] for row in answer.to_dicts()]


def test_each_person_counts_on_their_first_day_and_rows_without_day_or_person_never(days):
    running = days.running().count_units()
    running.start(epsilon=10**8)
    days.now = datetime(2026, 3, 6, 12, tzinfo=UTC)
    answer = running.step()
    assert totals(answer) == [1, 2, 2, 3, 3]
    assert [row["day"] for row in answer.to_dicts()] == [march(day) for day in range(1, 6)]


def test_a_cap_keeps_the_first_rows_of_a_person_in_the_order_of_days(days):
    expected = {1: [1, 2, 2, 3, 3], 2: [1, 4, 4, 5, 5], 3: [1, 4, 4, 5, 5]}
    started = {cap: days.running().count(rows_per_unit=cap).start(epsilon=10**8) for cap in expected}
    days.now = datetime(2026, 3, 6, 12, tzinfo=UTC)
    assert {cap: totals(running.step()) for cap, running in started.items()} == expected


def test_it_is_charged_once_before_a_row_is_read_and_steps_are_free(days):
    running = days.running().count_units()
    before = running.session.ledger.spent(running.session.registered).rho
    running.start(epsilon=1)
    charged = running.session.ledger.spent(running.session.registered).rho
    assert charged > before
    assert running.start(epsilon=1) is running
    days.now += timedelta(days=5)
    running.step()
    running.show()
    assert running.session.ledger.spent(running.session.registered).rho == charged
    assert days.ledger.verify().kinds["step"] == 1


def test_a_day_has_one_number_however_often_and_by_whom_it_is_stepped(days):
    days.running().count_units().start(epsilon=0.1)
    days.now += timedelta(days=3)
    first = days.running().count_units().step()
    with pytest.raises(InvalidParameter, match="2026-03-03 is not over"):
        days.running().count_units().step()
    again = open_ledger(str(days.place), clock=lambda: days.now)  # as another process has it
    running = days.table(ledger=again).running("day", until="2026-03-20", since="2026-03-01").count_units()
    assert totals(running.show()) == totals(first)
    days.now += timedelta(days=4)
    later = running.step()
    assert totals(later)[: len(first)] == totals(first)
    assert totals(days.running().count_units().show()) == totals(later)
    again.close()


def test_of_two_that_draw_the_same_days_the_numbers_of_the_first_stand(days, monkeypatch):
    running = days.running().count_units()
    running.start(epsilon=0.1)
    days.now += timedelta(days=6)
    drawn = []
    engine = type(running.session.engine)
    read = engine.running

    def meanwhile(self, *given):
        if not drawn:
            drawn.append(None)
            drawn[0] = totals(days.running().count_units().step())  # another process, while this one reads
        return read(self, *given)

    monkeypatch.setattr(engine, "running", meanwhile)
    assert totals(running.step()) == drawn[0]
    assert len(days.ledger.steps(running._started(None).receipt.charge)) == 1


def test_a_failure_while_rows_are_read_stores_no_number_and_the_next_step_draws_them(days, monkeypatch):
    running = days.running().count_units()
    running.start(epsilon=10**8)
    days.now += timedelta(days=6)
    with monkeypatch.context() as patched:
        patched.setattr("tacit.engine.engine.counted_days", lambda *_: 1 / 0)
        with pytest.raises(EngineError, match="could not finish"):
            running.step()
    assert len(running.show()) == 0
    assert totals(running.step())[-1] == 3


@pytest.mark.parametrize("rows", [[], [(1, march(2))], [(1, march(2)), (2, march(3))], [(1, march(2))] * 500])
def test_no_rows_one_person_two_people_and_all_rows_of_one_person_have_every_day(tmp_path, rows):
    days = Days(tmp_path, rows)
    asked = days.running().count_units(), days.running().count(rows_per_unit=3)
    started = [each.start(epsilon=1) for each in asked]
    days.now = datetime(2026, 3, 25, tzinfo=UTC)
    for running in started:
        answer = running.step()
        assert len(answer) == 20
        assert str(answer)
        with pytest.raises(InvalidParameter, match="all days to 2026-03-20 are released"):
            running.step()
    days.ledger.close()


def test_days_of_instants_are_those_of_the_zone_also_when_clocks_change(tmp_path):
    zone = "Europe/Berlin"
    moments = ["2026-03-28 22:59:59", "2026-03-28 23:00:00", "2026-03-29 21:59:59", "2026-03-29 22:00:00"]
    times = pa.array([datetime.fromisoformat(each).replace(tzinfo=UTC) for each in moments], pa.timestamp("us", "UTC"))
    days = Days(tmp_path, ROWS)
    opened = tacit.table(
        pa.table({"id": [1, 2, 3, 4], "at": times}), unit="id", name="moments", budget=BIG, ledger=days.ledger
    )
    running = opened.running("at", until="2026-03-31", since="2026-03-27", zone=zone).count_units()
    running.start(epsilon=10**8)
    days.now = datetime(2026, 3, 31, 22, tzinfo=UTC)  # midnight in Berlin
    assert totals(running.step()) == [0, 1, 3, 4, 4]
    days.ledger.close()


def test_what_cannot_run_on_is_refused_in_words_before_the_charge(days):
    table = days.table()
    times = tacit.table(
        pa.table({"id": [1], "at": [datetime(2026, 3, 1)]}),  # noqa: DTZ001
        unit="id",
        name="times",
        budget=BIG,
        ledger=days.ledger,
    )
    yearly = tacit.table(
        frame(ROWS), unit="id", name="yearly", budget=tacit.epsilon(1, delta=1e-6, period="year"), ledger=days.ledger
    )
    pure = tacit.table(frame(ROWS), unit="id", name="pure", budget=tacit.epsilon(1), ledger=days.ledger)
    refused = [
        (lambda: table.running("id", until="2026-12-31"), "is int"),
        (lambda: table.running("dya", until="2026-12-31"), "did you mean"),
        (lambda: table.running("day", until="soon"), "until must be a day"),
        (lambda: table.running("day", until="2026-12-31", zone="Mars"), "no time zone"),
        (lambda: times.running("at", until="2026-12-31"), "need a zone"),
        (lambda: yearly.running("day", until="2026-12-31"), "new each year"),
        (lambda: table.group_by("id").running("day", until="2026-12-31"), "without groups"),
        (lambda: table.running("day", until="2026-12-31").count(), "the most rows that one unit counts for"),
        (lambda: table.running("day", until="2026-02-28").count_units().start(1), "until is over"),
        (lambda: table.running("day", until="2026-02-27", since="2026-01-01").count_units().start(1), "until is over"),
        (lambda: table.running("day", until="2199-12-31").count_units().start(1), "at most 20,000 days"),
        (lambda: table.running("day", until="2026-12-31").count_units().step(), "not started yet"),
        (lambda: pure.running("day", until="2026-12-31").count_units().start(1), "needs a delta|need.* a delta"),
    ]
    length = days.ledger.length()
    for ask, why in refused:
        with pytest.raises((InvalidParameter, QueryRefused), match=why):
            raise AssertionError(why, ask())
    assert days.ledger.length() == length


def test_a_stream_has_one_price_and_a_new_version_has_a_stream_of_its_own(days):
    days.running().count_units().start(epsilon=1)
    with pytest.raises(InvalidParameter, match="goes on at that"):
        days.running().count_units().start(epsilon=2)
    with pytest.raises(InvalidParameter, match="not started yet, on this version"):
        days.running(version=2).count_units().step()


def test_without_a_zone_a_day_is_over_when_it_is_over_everywhere(days):
    running = days.running().count_units()
    running.start(epsilon=1)
    days.now = datetime(2026, 3, 2, 11, 59, tzinfo=UTC)
    with pytest.raises(InvalidParameter, match="from 2026-03-02 12:00 UTC on"):
        running.step()
    days.now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert len(running.step()) == 1
    days.now = datetime(2026, 3, 1, tzinfo=UTC)  # a clock that is set back takes nothing back
    assert len(running.show()) == 1


def test_a_cap_takes_noise_in_proportion_and_the_plan_says_what_people_with_fewer_rows_lose(days):
    one, five = (days.running().count(rows_per_unit=cap).plan(epsilon=1) for cap in (1, 5))
    assert five.events[0].sensitivity_squared == 25 * one.events[0].sensitivity_squared
    assert 4.9 < five.events[0].sigma / one.events[0].sigma < 5.1
    assert "1 row ε 0.2," in str(five)
    assert "5 or more ε 1" in str(five)


def test_a_command_plans_starts_steps_and_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    pq.write_table(frame(ROWS), "visits.parquet")
    which = "visits.parquet --unit id --day day --until 2060-12-31 --since 2026-03-01"
    for words, code in (
        (f"plan {which} --budget 3 --delta 1e-6 --epsilon 1", 0),
        (f"step {which} --budget 3 --delta 1e-6", 2),
        (f"start {which} --epsilon 1", 0),
        (f"step {which} --json", 0),
        (f"step {which}", 2),
        (f"show {which} --json", 0),
    ):
        with pytest.raises(SystemExit) as left:
            main(["running", *words.split()])
        assert left.value.code == code, words
    shown = capsys.readouterr()
    assert shown.out.count("total_units_low") > 2
    assert "not started yet" in shown.err
    assert "is not over" in shown.err


# ---- The arithmetic.


def test_coefficients_are_the_root_of_the_running_sum_to_half_a_step():
    exact = [Fraction(math.comb(2 * place, place), 4**place) for place in range(400)]
    assert all(
        abs(each - root * 2**20) <= Fraction(51, 100)
        for each, root in zip(root_of_running_sum(400).tolist(), exact, strict=True)
    )


def test_the_stream_moves_at_most_by_the_rounded_coefficients_wherever_a_person_has_rows():
    plan = RunningPlan("id", None, Column("day"), march(1), 60, 3)
    weights = np.array(
        [[plan.coefficients[t - s] if s <= t else 0 for s in range(60)] for t in range(60)], dtype=object
    )
    assert plan.moves_squared == 9 * int((weights[:, 0] ** 2).sum())
    some = np.random.default_rng(5)
    for _ in range(200):
        own = np.bincount(some.integers(0, 60, 3), minlength=60)
        assert int(((weights @ own) ** 2).sum()) <= plan.moves_squared


def test_rows_that_change_between_steps_move_a_stream_as_one_more_stream_would_for_each_change():
    plan = RunningPlan("id", None, Column("day"), march(1), 40, 2)
    weights = np.array(
        [[plan.coefficients[t - s] if s <= t else 0 for s in range(40)] for t in range(40)], dtype=object
    )
    some = np.random.default_rng(8)
    for changes in (0, 1, 3, 39):
        for _ in range(30):
            ends = [*np.sort(some.choice(np.arange(1, 40), changes, replace=False)), 40]
            moved, first = 0, 0
            for end in ends:  # between two changes all steps read the same parts of a person
                early = some.integers(first, end, 2) if some.random() < 0.5 else np.array([first, first])
                moved += sum(int(each) ** 2 for each in (weights @ np.bincount(early, minlength=40))[first:end])
                first = end
            assert moved <= (changes + 1) * plan.moves_squared


def test_totals_without_noise_are_the_running_sums_whatever_the_rounding_of_coefficients():
    plan = RunningPlan("id", None, Column("day"), march(1), 700, 1)
    counts = np.random.default_rng(6).integers(0, 10**6, 700)
    weighed = np.convolve(counts, plan.coefficients)[:700]
    assert np.abs(RunningTotals(plan.coefficients, Fraction(1)).of(weighed.tolist()) - np.cumsum(counts)).max() < 1e-4


def test_intervals_are_as_wide_as_the_law_of_the_noise_says():
    totals, runs = RunningTotals(root_of_running_sum(50), Fraction(10**7)), 4000
    noise = np.random.default_rng(7).normal(0, 10**7, (runs, 50))
    strays = np.array([totals.of(row) for row in noise])
    held = (np.abs(strays) <= totals.errors(50, Fraction(95, 100))).mean(axis=0)
    # each of 50 shares is off by at most 6 deviations, but for 1e-7 in all
    assert np.abs(held - 0.95).max() < 6.2 * math.sqrt(0.95 * 0.05 / runs)
