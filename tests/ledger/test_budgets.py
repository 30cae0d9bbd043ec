"""Budgets are per table, per analyst and per period; every one that applies must have room, so the smallest wins."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError
from tacit.ledger import open_ledger
from tacit.privacy.loss import ApproximateLoss, GaussianNoise, KeyThreshold, PureChoice, PureLoss, epsilon, renyi, rho
from tacit_gauntlet.stage.ledger import DECLARATION, TENTH, ask, charge


def fitting(ledger, table, *, analyst=None, tries=12, prefix=""):
    return sum(ask(ledger, table, f"{prefix}{analyst}{turn}", analyst=analyst) is not None for turn in range(tries))


def test_an_analyst_has_the_smaller_of_their_own_budget_and_the_tables(ledger, table):
    ledger.grant("pay", epsilon(0.3), analyst="ann")
    ledger.grant("pay", epsilon(5), analyst="bob")
    assert fitting(ledger, table, analyst="ann") == 3
    assert fitting(ledger, table, analyst="bob") == 7


def test_each_analyst_has_a_budget_of_their_own_where_one_is_set_for_each(ledger, table):
    ledger.grant("pay", epsilon(0.2), analyst="*")
    ledger.grant("pay", epsilon(0.4), analyst="bob")
    assert [fitting(ledger, table, analyst=who) for who in ("ann", "bob", "cid", None)] == [2, 4, 2, 2]


def test_what_an_analyst_spent_before_their_budget_was_set_counts(ledger, table):
    assert fitting(ledger, table, analyst="ann", tries=2) == 2
    ledger.grant("pay", epsilon(0.3), analyst="ann")
    assert fitting(ledger, table, analyst="ann", prefix="later") == 1


def test_a_new_period_has_room_again_and_the_lifetime_budget_still_holds(where):
    now = [datetime(2026, 1, 31, 23, 59, tzinfo=UTC)]
    with open_ledger(where, clock=lambda: now[0]) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1))
        ledger.grant("pay", epsilon(0.4), period="month")
        assert fitting(ledger, table, prefix="january") == 4
        now[0] = datetime(2026, 2, 1, tzinfo=UTC)
        assert fitting(ledger, table, prefix="february") == 4
        now[0] = datetime(2027, 2, 1, tzinfo=UTC)
        assert fitting(ledger, table, prefix="next year") == 2
        ledger.verify()


@pytest.mark.parametrize(("period", "hours"), [("day", 24), ("month", 24 * 31), ("year", 24 * 366)])
def test_a_clock_set_back_finds_the_period_closed(period, hours):
    now = [datetime(2026, 6, 15, tzinfo=UTC)]
    with open_ledger(":memory:", clock=lambda: now[0]) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(100))
        ledger.grant("pay", epsilon(0.1), period=period)
        assert fitting(ledger, table, prefix="now") == 1
        now[0] = datetime.fromtimestamp(now[0].timestamp() - 3600 * hours, UTC)
        assert fitting(ledger, table, prefix="back") == 0


def test_a_clock_without_a_time_zone_is_refused():
    with pytest.raises(LedgerError, match="time zone"):
        open_ledger(":memory:", clock=lambda: datetime(2026, 6, 15))  # noqa: DTZ001


def test_a_new_table_needs_a_budget_and_the_error_gives_the_words(ledger):
    with pytest.raises(InvalidParameter, match=r"budget=tacit\.epsilon\(3, delta=1e-6\)"):
        ledger.register(name="pay", declaration=DECLARATION)


def test_a_different_budget_is_refused_naming_the_command_and_the_same_one_is_not(ledger, table):
    assert ledger.register(name="pay", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1)) == table
    with pytest.raises(InvalidParameter, match=r"already has a budget of ε = 1(.|\n)*tacit budget grant pay"):
        ledger.register(name="pay", declaration=DECLARATION, source="pay.parquet", budget=epsilon(2))


def test_a_grant_leaves_an_entry_and_the_first_budget_may_still_be_said(ledger, table):
    ledger.grant("pay", epsilon(2), reason="the board agreed")
    last = list(ledger.entries())[-1].record
    assert (last["kind"], last["reason"]) == ("budget", "the board agreed")
    now = ledger.register(name="pay", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1))
    assert now.budget == epsilon(2)
    assert fitting(ledger, table, tries=25) == 20
    ledger.verify()


def test_a_lowered_budget_holds_at_once_and_gives_nothing_back(ledger, table):
    assert fitting(ledger, table, tries=5) == 5
    ledger.grant("pay", epsilon(0.2))
    assert fitting(ledger, table, prefix="after") == 0
    assert ledger.left(table).epsilon == 0
    ledger.verify()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (epsilon(1, delta=2e-6), {}),
        (epsilon(1, delta=1e-8), {"population": 10**7}),
        (rho(0.1, delta=1e-3), {}),
        (epsilon(1, delta=0.1), {"population": 5}),
    ],
)
def test_a_delta_that_could_show_somebody_in_the_clear_is_refused_unless_it_is_accepted(ledger, budget, words):
    with pytest.raises(InvalidParameter, match="accept_large_delta=True"):
        ledger.register(name="pay", declaration=DECLARATION, budget=budget, **words)
    assert ledger.register(name="pay", declaration=DECLARATION, budget=budget, accept_large_delta=True, **words)


def test_a_delta_far_below_one_over_the_population_is_accepted(ledger):
    assert ledger.register(name="a", declaration=DECLARATION, budget=epsilon(1, delta=1e-6))
    assert ledger.register(name="b", declaration=DECLARATION, budget=epsilon(1, delta=1e-4), population=100)


def test_a_grant_remembers_the_population(ledger):
    ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1, delta=1e-9), population=10**6)
    with pytest.raises(InvalidParameter, match="population of 1000000"):
        ledger.grant("pay", epsilon(1, delta=1e-7))


@pytest.mark.parametrize("budget", [3, "1", None, renyi([(2, 1)])])
def test_what_is_no_loss_is_no_budget(ledger, budget):
    with pytest.raises(InvalidParameter, match="budget"):
        ledger.register(name="pay", declaration=DECLARATION, budget=budget)


def test_a_rho_budget_adds_rho_and_the_thresholds_delta(ledger):
    table = ledger.register(name="pay", declaration=DECLARATION, budget=rho(0.1, delta=1e-6))
    gaussian = GaussianNoise(sigma=Fraction(10), sensitivity_squared=Fraction(4))
    for turn in range(5):
        ledger.reserve(table, [gaussian, KeyThreshold(Fraction(2, 10**7))], question_key=str(turn))
    assert (ledger.spent(table).rho, ledger.spent(table).delta) == (TENTH, Fraction(1, 10**6))
    for event in (gaussian, KeyThreshold(Fraction(1, 10**12))):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(table, [event], question_key=f"more {event}")


def test_left_is_what_one_more_question_may_have_and_it_fits(ledger, table):
    assert fitting(ledger, table, tries=3) == 3
    left = ledger.left(table)
    assert (left.epsilon, left.questions) == (Fraction(7, 10), 7)
    assert charge(ledger, table, "the rest", epsilon=left.epsilon)
    assert ledger.left(table).epsilon == 0
    assert ledger.left(table).questions == 0


def test_left_of_an_approximate_budget_is_the_larger_of_its_arms(ledger):
    table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(3, delta=1e-6))
    assert ledger.left(table).epsilon >= 3
    charge(ledger, table, "pure", epsilon=Fraction(1))
    assert ledger.left(table).epsilon == 2
    other = ledger.register(name="other", declaration=DECLARATION, budget=epsilon(3, delta=1e-6))
    ledger.reserve(other, [GaussianNoise(sigma=Fraction(10), sensitivity_squared=Fraction(4))], question_key="g")
    left = ledger.left(other)
    assert 2 < left.epsilon < 3
    assert left.questions == ledger.budget_status(other)[0].questions > 3


def test_left_is_the_smallest_of_all_budgets_that_apply(ledger, table):
    ledger.grant("pay", epsilon(0.5), analyst="ann")
    ledger.grant("pay", epsilon(0.2), period="day")
    assert ledger.left(table, "ann").epsilon == Fraction(2, 10)
    ask(ledger, table, "q", analyst="ann")
    assert ledger.left(table, "ann").questions == 1
    assert [str(one.budget) for one in ledger.budget_status(table, "ann")] == [
        "ε = 1",
        "ε = 0.5 for ann",
        "ε = 0.2 per day",
    ]


def test_one_more_question_of_what_is_left_is_admitted_by_any_budget():
    for budget in (PureLoss(Fraction(1)), ApproximateLoss(Fraction(1), Fraction(1, 10**6)), rho(0.02)):
        with open_ledger(":memory:") as ledger:
            table = ledger.register(name="pay", declaration=DECLARATION, budget=budget)
            left = ledger.left(table)
            assert ledger.reserve(table, [PureChoice(left.laplace)], question_key="q") is not None


def test_what_others_paid_for_counts_for_an_analyst_with_a_budget(ledger, table):
    for turn in range(3):
        ask(ledger, table, f"q{turn}", analyst="bob")
    ledger.grant("pay", epsilon(0.2), analyst="ann")
    assert [ask(ledger, table, f"q{turn}", analyst="ann") is not None for turn in range(3)] == [True, True, False]
    assert ledger.recall(table, question_key="q0", analyst="ann") is not None
    assert ledger.recall(table, question_key="q2", analyst="ann") is None
    assert ledger.recall(table, question_key="q2", analyst="cid") is not None
    assert ledger.spent(table).epsilon == 5 * TENTH
    assert ledger.spent(table, analyst="ann").epsilon == 2 * TENTH
    ledger.verify()


def test_how_many_more_like_the_last_counts_a_budget_that_nothing_was_charged_to_yet(ledger, table):
    ask(ledger, table, "q", epsilon=Fraction(1, 4), analyst="bob")
    ledger.grant("pay", epsilon(0.2), analyst="ann")
    assert ledger.left(table, "bob").questions == 3
    assert ledger.left(table, "ann").questions == 0
    assert "more like" not in str(ledger.left(table, "ann"))


def test_a_budget_per_year_is_declared_renewed_and_never_sums_to_one_for_life():
    now = [datetime(2026, 12, 31, 23, 59, tzinfo=UTC)]
    with open_ledger(":memory:", clock=lambda: now[0]) as ledger:
        yearly = epsilon("0.4", period="year")
        table = ledger.register(name="pay", declaration=DECLARATION, budget=yearly)
        assert table.budget_words == "ε = 0.4 per year"
        assert fitting(ledger, table, prefix="this year") == 4
        now[0] = datetime(2027, 1, 1, tzinfo=UTC)
        assert ledger.register(name="pay", declaration=DECLARATION, budget=yearly) == table
        assert fitting(ledger, table, prefix="next year") == 4
        with pytest.raises(InvalidParameter, match=r"a budget of ε = 0\.4, per year"):
            ledger.register(name="pay", declaration=DECLARATION, budget=epsilon("0.4"))
        assert ledger.spent(table).epsilon == Fraction(8, 10)
        ledger.revoke("pay")
        assert fitting(ledger, table, prefix="revoked") == 0
        ledger.verify()


@pytest.mark.parametrize("period", ["week", "", 7, "block"])
def test_a_period_that_is_none_is_refused(period):
    with pytest.raises(InvalidParameter, match="day, month, year"):
        epsilon(1, period=period)
