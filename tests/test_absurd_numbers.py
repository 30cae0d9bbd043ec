"""Numbers of absurd size are refused in our own words, at once, wherever a public name takes one."""

from decimal import Decimal
from fractions import Fraction

import pytest

import tacit
import tacit.local

ABSURD = [10**400, -(10**400), "1e4000", "1e-4000", Fraction(1, 10**3999), Decimal("1e4000"), float("nan"), 2**64 + 0.5]
OTHER = [None, [], {}, b"1", "x", object()]
TAKES = {
    "explain": lambda value: str(tacit.explain(value)),
    "explain priors": lambda value: str(tacit.explain(1, priors=[value])),
    "explain groups": lambda value: str(tacit.explain(1, groups=[value])),
    "tradeoff epsilon": lambda value: tacit.tradeoff("fraction", people=100, epsilon=value),
    "tradeoff error": lambda value: tacit.tradeoff("fraction", people=100, error=value),
    "compose epsilon": lambda value: tacit.compose([tacit.epsilon(1)], epsilon=value),
    "compose times": lambda value: tacit.compose({tacit.epsilon(1): value}, delta=1e-6),
    "confidence": lambda value: tacit.Laplace(sensitivity=1, epsilon=1).error(confidence=value),
    "local range": lambda value: tacit.local.choose(between=(0, value)),
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
@pytest.mark.parametrize("value", ABSURD, ids=lambda value: repr(value)[:12])
def test_an_absurd_number_is_taken_or_refused_in_our_words(take, value):
    said = " must "
    try:
        take(value)
    except tacit.TacitError as refusal:
        said = str(refusal)
    assert " must " in said or " has more than " in said


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
@pytest.mark.parametrize("value", OTHER, ids=lambda value: repr(value)[:12])
def test_what_is_no_number_is_refused_in_our_words(take, value):
    with pytest.raises(tacit.TacitError, match=r"\w+ .+"):
        take(value)


@pytest.mark.parametrize("listed", [5, None, "12", 0.5])
def test_what_is_no_list_is_refused_in_our_words(listed):
    for take in (lambda: tacit.explain(1, priors=listed), lambda: tacit.explain(1, groups=listed)):
        with pytest.raises(tacit.InvalidParameter, match="must be a list of numbers"):
            take()
    with pytest.raises(tacit.InvalidParameter, match="cannot compose a"):
        tacit.compose(listed, delta=1e-6)


def test_weights_of_any_size_are_proportions():
    import pyarrow as pa

    rows = pa.table({"id": [1], "x": [1]})
    table = tacit.table(rows, name="t", unit="id", rows_per_unit=1, ledger=":memory:", budget=tacit.epsilon(3))
    asked = table.agg(n=tacit.count(), m=tacit.median("x", between=(0, 9)))

    def shares(**weights):
        plan = asked.plan(epsilon=1, weights=weights).plan
        return [release.share for release in plan.releases] + [draw.share for draw in plan.quantiles]

    assert shares(n=1e308, m=1e308) == shares(n="1e4000", m="1e4000") == shares(n=1, m=1)
    assert shares(n="1e4000") == shares(n=1e308) != shares(m=1e308)
