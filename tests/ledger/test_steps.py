"""Steps of a stream, on every store: each follows the one before, and if two write the same part the first stands."""

import threading

import pytest

from tacit.errors import LedgerError
from tacit.ledger import open_ledger
from tacit.privacy.loss import PureChoice
from tacit_gauntlet.stage.ledger import TENTH


@pytest.fixture
def stream(ledger, table):
    reserved = ledger.reserve(table, [PureChoice(TENTH)], question_key="running")
    return reserved.commit("{}").charge


def parts(ledger, stream, after=0):
    return [(step.first, step.end, step.text) for step in ledger.steps(stream, after=after)]


def test_steps_follow_one_another_and_are_found_again(ledger, where, stream):
    ledger.add_step(stream, first=0, end=3, text="a")
    ledger.add_step(stream, first=3, end=4, text="b")
    with open_ledger(where) as again:
        assert parts(again, stream) == [(0, 3, "a"), (3, 4, "b")]
        assert parts(again, stream, after=again.steps(stream)[0].number) == [(3, 4, "b")]
        assert again.verify().kinds["step"] == 2


@pytest.mark.parametrize("first", [0, 1, 2, 4])
def test_a_part_that_does_not_begin_where_the_last_one_ends_is_not_written(ledger, stream, first):
    ledger.add_step(stream, first=0, end=3, text="a")
    ledger.add_step(stream, first=first, end=9, text="b")
    assert parts(ledger, stream) == [(0, 3, "a")]


def test_of_many_that_write_at_once_one_stands(ledger, where, stream):
    gate, seen = threading.Barrier(6), []

    def write(text):
        with open_ledger(where) as own:
            gate.wait()
            own.add_step(stream, first=0, end=3, text=text)
            seen.append(parts(own, stream))

    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(seen) == 6
    assert seen == [parts(ledger, stream)] * 6
    assert len(seen[0]) == 1
    ledger.verify()


def test_a_stream_that_was_not_charged_has_no_steps(ledger, stream):
    with pytest.raises(LedgerError, match="the start of this stream"):
        ledger.add_step(stream + 100, first=0, end=1, text="a")
    assert parts(ledger, stream + 100) == []
