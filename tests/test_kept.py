"""Plans, ledgers, answers and reports are what they were: the kept texts are made again and are equal byte for byte."""

import pytest

from tests.kept.__main__ import FOLDER, KEPT, difference

HOW = "\nhint: if this was meant to change, `python -m tests.kept write` keeps the new text; say why in the commit"


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_is_made_again_byte_for_byte(name):
    found = difference(name, KEPT[name]())
    assert not found, found[:5000] + HOW


def test_a_text_that_differs_by_one_letter_is_shown():
    for name in KEPT:
        kept = (FOLDER / name).read_text(encoding="utf-8")
        assert len(kept.splitlines()) > 20
        assert difference(name, kept) == ""
        changed = kept.replace("5", "6", 1)
        assert difference(name, changed).count("\n-") == 1


def test_nothing_else_is_kept():
    assert {path.name for path in FOLDER.glob("*.txt")} == set(KEPT)
