"""What others wrote is shown to people and obeyed by nothing."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import QueryRefused, json_text, printable

anything = st.text(st.characters())  # halves of pairs too


@given(anything)
def test_nothing_is_left_that_a_screen_obeys(text):
    assert not any(letter in printable(text) for letter in "\x00\x07\x08\x1b\r\n\t\x7f\x9b\u202e\u2066\u2028\ud800")


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S"])))
def test_what_is_for_reading_is_left_as_it_is(text):
    assert printable(text) == text


def test_words_keep_their_joiners_and_messages_their_lines():
    assert printable("می‌خواهم 👩‍🔬") == "می‌خواهم 👩‍🔬"
    assert str(QueryRefused("no column '\x1b[2J'\nhint: ask")) == "no column '\\x1b[2J'\nhint: ask"


@given(st.lists(anything) | st.dictionaries(anything, anything))
def test_json_means_the_same_and_is_not_obeyed(record):
    written = json_text(record)
    assert json.loads(written) == record
    assert all(printable(line) == line for line in written.split("\n"))
