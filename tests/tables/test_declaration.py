"""What may be declared of a table, and that what is left to be learned is declared as nothing."""

from typing import Any

import pandas as pd
import pytest

import tacit
from tacit import query as language
from tacit.asking import declared
from tacit.errors import InvalidParameter
from tacit.query import Frame, with_ranges

FRAME = pd.DataFrame({"who": [1, 1, 2], "amount": [1.0, 2.0, 3.0]})


def record(**options: Any) -> dict[str, Any]:
    return declared(FRAME, unit="who", **options)[1].public_record()


def test_auto_is_the_same_as_leaving_out():
    written = record(rows_per_unit="auto", groups_per_unit="auto", columns={"amount": {"between": "auto"}})
    assert written == record() == record(rows_per_unit=None, groups_per_unit=None)
    assert written["rows_per_unit"] is None
    assert written["columns"]["amount"]["between"] is None


def test_a_number_wins():
    written = record(rows_per_unit=3, groups_per_unit=2, columns={"amount": {"between": (0, 10)}})
    assert (written["rows_per_unit"], written["groups_per_unit"]) == (3, 2)
    assert written["columns"]["amount"]["between"] == ["0", "10"]


@pytest.mark.parametrize("word", ["rows_per_unit", "groups_per_unit"])
@pytest.mark.parametrize("bad", ["Auto", "3", "", 0, 2.0, True])
def test_another_word_is_no_bound(word: str, bad: object):
    with pytest.raises(InvalidParameter, match=f"{word} must be a whole number"):
        record(**{word: bad})


def test_public_numbers_of_rows_are_in_the_record_only_when_given():
    """A declaration that says nothing of them keeps the hash it had before there were such words."""
    assert not {"rows", "most_rows_per_unit"} & record().keys()
    assert record(rows=3)["rows"] == 3
    assert record(most_rows_per_unit=2)["most_rows_per_unit"] == 2


@pytest.mark.parametrize("word", ["rows", "most_rows_per_unit", "population"])
@pytest.mark.parametrize("bad", ["auto", 0, -1, 1.5, True])
def test_a_public_number_is_a_whole_number(word: str, bad: object):
    with pytest.raises(InvalidParameter, match=f"{word} must be a whole number"):
        record(**{word: bad})


def test_a_range_of_a_question_may_be_auto():
    frame = Frame(declared(FRAME, unit="who")[1])
    left_open = frame.query({"total": language.sum("amount")})
    assert frame.query({"total": language.sum("amount", between="auto")}) == left_open
    given = frame.query({"total": language.sum("amount", between=(0, 5))})
    assert with_ranges(given, {"total": "auto"}, frame.declaration) == left_open


def test_a_catalog_takes_the_same_words(tmp_path: Any):
    FRAME.to_parquet(tmp_path / "pay.parquet")
    (tmp_path / "tacit.toml").write_text(
        'ledger = ":memory:"\n[tables.pay]\nsource = "pay.parquet"\nunit = "who"\nrows_per_unit = "auto"\nrows = 3\n'
        'most_rows_per_unit = 2\nbudget = { epsilon = 1 }\n[tables.pay.columns.amount]\nbetween = "auto"\n'
    )
    declaration = tacit.catalog(str(tmp_path / "tacit.toml"))["pay"].frame.declaration
    assert (declaration.rows_per_unit, declaration.rows, declaration.most_rows_per_unit) == (None, 3, 2)
    assert declaration.columns["amount"].between is None
