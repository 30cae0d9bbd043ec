"""The guide's table of functions is the catalogue, and its common rules are the catalogue's."""

import re

from tacit.query.language import catalogue
from tacit.query.language.catalogue import FUNCTIONS
from tests.query.functions_page import PAGE, table, with_table


def test_the_page_has_the_catalogue_of_today():
    page = PAGE.read_text()
    assert with_table(page) == page, "make it again: python -m tests.query.functions_page"


def test_the_table_has_every_function_and_what_it_means():
    rows = [line for line in table().splitlines() if line.startswith("| `")]
    assert len(rows) == len(FUNCTIONS)
    for row, entry in zip(rows, FUNCTIONS.values(), strict=True):
        assert entry.form.replace("|", "\\|") in row
        assert entry.meaning in row


def test_the_rules_that_all_share_are_those_of_the_catalogue():
    said = " ".join(PAGE.read_text().split())
    rules = re.findall(r"^- (.+?)(?=\n- |\Z)", (catalogue.__doc__ or "").strip(), re.DOTALL | re.MULTILINE)
    assert len(rules) >= 6
    for rule in rules:
        assert " ".join(rule.split()) in said
