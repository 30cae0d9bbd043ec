"""Sessions of made-up messages: quick ones are the case W26, and these are the long ones (some minutes)."""

import pytest

from tacit_gauntlet.server.postgres_door import fuzzed


@pytest.mark.slow
def test_twenty_sessions_of_ten_thousand_messages_neither_crash_the_door_nor_charge() -> None:
    found = fuzzed(20, 10_000, lengths=0.01)
    assert found["messages"] == 200_000
    assert found["answered"] > 50_000
    assert found["charges"] == 0
    assert found["wrong"] == []
