"""The reference is the code's own words of today, and has a word for everything that is public."""

import inspect
import re
from pathlib import Path

import pytest

import tacit
import tacit.local
from tacit.asking.protected_table import Table
from tacit.asking.question import Question
from tests import reference_page as made
from tests.doc_blocks import run_page

PROJECT = Path(__file__).resolve().parent.parent
GUIDE = "\n".join(page.read_text() for page in sorted((PROJECT / "docs" / "guide").glob("*.md")))
README = (PROJECT / "README.md").read_text()


def test_the_page_is_that_of_today():
    assert made.PAGE.read_text() == made.page(), "make it again: make reference"


def test_its_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(made.PAGE.read_text()) == len(made.SUBJECTS) + 1


def test_every_public_name_is_on_it():
    page = made.PAGE.read_text()
    names = [*tacit.__all__, *(f"local.{name}" for name in made.LOCAL)]
    assert [name for name in names if f"**`tacit.{name}" not in page] == []
    methods = [f".{name}" for kind in (Table, Question, tacit.Answer) for name in made.public(kind)]
    assert [name for name in methods if f"**`{name}" not in page] == []


def arguments() -> set[str]:
    called = [Table.where, tacit.table, tacit.catalog]
    called += [inspect.getattr_static(kind, name) for kind in (Table, Question) for name in made.public(kind)]
    called += [getattr(tacit, name) for name in made.SUBJECTS["Aggregates"][1]]
    found = [
        each for thing in called if inspect.isfunction(thing) for each in inspect.signature(thing).parameters.values()
    ]
    return {each.name for each in found if each.kind is not each.VAR_KEYWORD and each.kind is not each.VAR_POSITIONAL}


def test_every_argument_of_a_question_has_a_meaning_on_it():
    told = {"self", "condition", "text", "names", "known"}  # by the docstring of the one that takes it
    assert arguments() - told - set(made.WORDS) == set()


def test_every_command_and_option_is_on_it():
    page = made.PAGE.read_text()
    for path, command in made.all_commands():
        assert f"**`tacit {' '.join(path)}" in page
        for option in command.params:
            if made.is_option(option):
                assert option.help, f"{' '.join(path)} {option.opts[0]} says nothing"
                assert option.opts[0] in page


def test_every_variable_that_the_code_reads_is_on_it():
    source = "\n".join(
        path.read_text() for path in (PROJECT / "src" / "tacit").rglob("*.py") if "auditing" not in path.parts
    )
    read = set(re.findall(r"environ(?:\.get\(|\[)\s*\"([A-Z_]+)\"", source))
    assert read
    assert read - set(made.ENVIRONMENT) == set()


@pytest.mark.parametrize(
    "word", ["top", "mode", "count_distinct", "--analyst", "--period", "TACIT_HOME", "rows_per_unit", "groups_per_unit"]
)
def test_what_people_look_for_is_in_a_guide(word):
    assert word in GUIDE


def test_every_guide_and_the_reference_are_linked_from_the_readme():
    pages = [path.name for path in (PROJECT / "docs" / "guide").glob("*.md")] + ["reference.md"]
    assert [page for page in pages if page not in README] == []
