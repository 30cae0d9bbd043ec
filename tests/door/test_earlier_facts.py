"""Facts that earlier versions of tacit stored: listed with words, never a reason to fail, learned again when needed."""

import json
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.asking.learned import EARLIER, source_of
from tacit.errors import LedgerError, QueryRefused
from tacit.ledger import Learning, open_ledger
from tacit.plan import BINS, make_spend, missing_facts
from tacit.privacy.loss import PureChoice
from tests.door.orders import spent

BUDGET = tacit.epsilon(30, delta=1e-6)
# Of two people in three, each with three rows in one group; every group has thousands.
ROWS = pa.table({"id": [n // 3 for n in range(18_000)], "g": [f"g{n // 3 % 2}" for n in range(18_000)]})

# As they were stored: a profile of one bin an octave, in two norms, and a noisy number of groups.
PROFILE = {
    "format": 1,
    "key": "profile c1622e6bea02",
    "words": "how many rows an id has, in all and by g",
    "parts": [[0] * 9 + [6003] + [-4, 11] * 27, [0] * 8 + [5988] + [3] * 55],
    "scales": ["25000/2439", "100000/2439"],
    "epsilon": "2439/20000",
}
NUMBER = {
    "format": 1,
    "key": "groups 2a16055a3550b",
    "words": "about how many different g there are",
    "parts": [[17]],
    "scales": ["31250/2439"],
    "epsilon": "2439/31250",
}


@pytest.fixture
def book():
    with open_ledger(":memory:") as opened:
        yield opened


def opened(book, version=1):
    return tacit.table(ROWS, name="t", unit="id", budget=BUDGET, ledger=book, version=version)


def store(table, record, key=None, **changes):
    """Store a fact as an earlier version did, charged for its epsilon."""
    session = table.session
    about = f"{key or record['key']}:{session.source_mark}"
    events, learning = [PureChoice(Fraction(record["epsilon"]))], Learning(record["words"])
    session.ledger.reserve(session.registered, events, question_key=about, learning=learning).commit(
        json.dumps(record | {"source": source_of(session.source_mark)} | changes)
    )


def by_group(table):
    return table.group_by("g").count()


def key_of_profile(table):
    """The key by which a question with these listed groups looks for its profile."""
    question = table.group_by("g", keys=["g0", "g1"]).count()
    spend = make_spend(1, None, None, BUDGET)
    (wanted,) = missing_facts(question.query, question.session.declaration, spend, {})
    return wanted.key


def test_they_are_listed_as_those_of_an_earlier_version_and_learned_again_by_the_first_question(book):
    table = opened(book)
    for record in (PROFILE, NUMBER):
        store(table, record)
    assert [fact.words for fact in table.facts] == [each["words"] + EARLIER for each in (PROFILE, NUMBER)]
    assert str(table.facts).count(EARLIER) == 2
    before = spent(table)
    assert "learned in this call" in str(by_group(table).plan(epsilon=2))
    answer = by_group(table).answer(epsilon=2)
    assert [row["g"] for row in answer.to_dicts()] == ["g0", "g1"]
    assert spent(table) == before + 2
    words = [fact.words for fact in table.facts]
    assert [each for each in words if not each.endswith(EARLIER)] == ["which groups by g there are", PROFILE["words"]]


def test_one_with_other_bins_under_todays_key_is_refused_before_the_charge_and_can_be_learned_again(book):
    table = opened(book)
    assert len(PROFILE["parts"][0]) == BINS // 2
    store(table, PROFILE, key=key_of_profile(table))
    question, before = table.group_by("g", keys=["g0", "g1"]).count(), spent(table)
    for ask in (question.answer, question.plan):
        with pytest.raises(QueryRefused, match=r"is not what such a fact has[^$]*again=True"):
            ask(epsilon=1)
    assert spent(table) == before
    table.learn(epsilon=Fraction(1, 2), by=["g"], keys=["g0", "g1"], again=True)
    assert spent(table) == before + Fraction(1, 2)
    assert len(question.answer(epsilon=1).to_dicts()) == 2


def test_one_of_a_newer_version_is_refused_with_words_before_the_charge(book):
    table = opened(book)
    store(table, PROFILE, key=key_of_profile(table), format=99)
    before = spent(table)
    with pytest.raises(LedgerError, match="newer version of tacit"):
        table.group_by("g", keys=["g0", "g1"]).count().answer(epsilon=1)
    assert spent(table) == before
