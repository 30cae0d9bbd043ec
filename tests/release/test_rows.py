"""An answer's rows are read as dicts, and made only then."""

import pytest

from tacit.release.rows import Rows

COLUMNS = {"ward": ["A", "B", "C"], "n": (3, 4, 5)}
DICTS = [{"ward": "A", "n": 3}, {"ward": "B", "n": 4}, {"ward": "C", "n": 5}]


def test_rows_are_the_dicts_that_their_columns_make():
    rows = Rows(COLUMNS)
    assert list(rows) == DICTS
    assert (rows[0], rows[-1], rows[1:], len(rows)) == (DICTS[0], DICTS[2], DICTS[1:], 3)
    assert repr(rows) == repr(DICTS)
    with pytest.raises(IndexError):
        rows[3]


def test_rows_are_equal_to_a_list_of_the_same_dicts():
    assert Rows(COLUMNS) == DICTS
    assert Rows(COLUMNS) == Rows(COLUMNS)
    assert Rows(COLUMNS) != DICTS[:2]
    assert Rows({}) == []


def test_a_column_is_read_whole():
    assert list(Rows(COLUMNS).column("n")) == [row["n"] for row in DICTS]
