"""No file is too small, no module name is in two rooms, no folder has few files, and no habit of hard English is above
its limit: each rule is shown to fail.
"""

import re

import pytest

from tests import house, prose

SHORT = "x = 1\n"
LONG = SHORT * 80


def test_the_package_keeps_its_files_whole():
    tree = house.read_package()
    broken = house.small_files(tree) + house.names_once(tree) + house.folder_sizes(tree) + house.repeated_names(tree)
    broken += house.wide_faces(tree) + house.size(tree)
    assert not broken, "\n".join(broken)


PLANTED = [
    (house.small_files, {"noise/tiny.py": SHORT, "noise/user.py": "from tacit.noise.tiny import x\n" + LONG}),
    (house.small_files, {"noise/nobodys.py": SHORT}),
    (house.names_once, {"noise/rows.py": LONG, "ledger/rows.py": LONG}),
    (house.names_once, {"engine/kernel/rows.py": LONG, "engine/rows.py": LONG}),
    (house.folder_sizes, {f"noise/cupboard/a{place}.py": LONG for place in range(3)}),
    (house.cycles, {"a/b.py": "from tacit.a.c import x\n", "a/c.py": "from tacit.a.b import y\n"}),
]
ALLOWED = [
    (house.small_files, {"noise/__init__.py": SHORT, "cli/explain.py": SHORT}),
    (
        house.small_files,
        {"errors.py": SHORT} | {f"noise/{name}.py": "from tacit.errors import x\n" + LONG for name in "ab"},
    ),
    (house.names_once, {"cli/ledger.py": LONG, "ledger/ledger.py": LONG}),
    (house.folder_sizes, {f"noise/a{place}.py": LONG for place in range(30)}),
    (house.folder_sizes, {f"noise/{room}/a{place}.py": LONG for room in "ab" for place in range(4)}),
    (house.cycles, {"a/b.py": "from tacit.a.c import x\n", "a/c.py": "def f():\n    from tacit.a.b import y\n"}),
]


@pytest.mark.parametrize(("rule", "tree"), PLANTED)
def test_a_planted_breach_is_found(rule, tree):
    assert rule(tree)


@pytest.mark.parametrize(("rule", "tree"), ALLOWED)
def test_what_is_allowed_passes(rule, tree):
    assert rule(tree) == []


def test_the_size_is_counted_and_limited():
    assert house.size({"noise/a.py": SHORT, "noise/b.py": LONG}, 81) == []
    assert house.size({"noise/a.py": SHORT, "noise/b.py": LONG}, 80)


def test_names_that_are_repeated_are_counted_and_limited():
    tree = {f"noise/{name}.py": "class Rows: ...\ndef _read(): ...\ndef shown(): ...\n" for name in "abc"}
    assert house.repeated(tree) == (["Rows"], ["_read"])
    assert house.repeated_names(tree, 1, 1) == []
    assert len(house.repeated_names(tree, 0, 0)) == 2
    two = {path: source for path, source in tree.items() if path != "noise/c.py"} | {"noise/c.py": "class _Rows: ..."}
    assert house.repeated(two) == (["Rows"], [])


def test_faces_are_counted_and_limited():
    names = [f"name_of_{at}" for at in range(41)]
    tree = {"noise/__init__.py": f"from tacit.noise.a import {', '.join(names)}\n", "noise/a.py": SHORT}
    tree |= {"plan/b.py": f"from tacit.noise import {', '.join(names)}\n", "engine/c.py": " ".join(names[1:])}
    assert house.faces_in_figures(tree) == (["noise"], ["noise.name_of_0"])
    assert house.wide_faces(tree, 1, 1) == []
    assert len(house.wide_faces(tree, 0, 0)) == 2


def test_what_is_small_on_purpose_is_there_and_small():
    tree = house.read_package()
    assert all(path in tree and tree[path].count("\n") < house.SMALL_LINES for path in house.SMALL_ALLOWED)


def test_the_figures_count_what_is_there():
    tree = {"noise/__init__.py": "__all__ = ['f']\n", "noise/b.py": "def f():\n    return 1\n"}
    shown = "\n".join(house.figures(tree))
    assert f"files: 2, 1 without faces\nlines: 3 ({house.LINES_MAX:,} at most), median 1.5, largest 2" in shown
    assert "rooms with a stated face: 1 of 1" in shown
    assert "longest function: 2 lines (noise/b.py f)" in shown


# For each habit a sentence that has it, and a plain one that means the same.
PROSE = {
    "'what …' or 'who …' as a noun": ("Read a part of what is cut.", "Read a part of the rows."),
    "'is said', 'was told'": ("The limit is said in the plan.", "The plan has the limit in it."),
    "a thing that says, tells, knows or holds": ("The ledger knows all of it.", "All of it is in the ledger."),
    "'nobody', 'nothing' or 'none'": ("Rows of nobody are in it.", "No row in it has an owner."),
    "'… alone' for 'only'": ("A salt depends on rows alone.", "A salt depends only on rows."),
    "'as many as', 'so much'": ("It takes as many words.", "The same number of words is taken."),
    "'but for', 'of its own', 'at all', 'the more the'": ("Each has a file of its own.", "Each file has one owner."),
    "'whose'": ("People whose rows are cut.", "People with rows that are cut."),
    "'is no …', 'has no …'": ("A table here has no key.", "A table here lacks a key."),
    "begins with 'It', 'They', 'One', 'That'": (
        "It is charged before reading.",
        "A question is charged before reading.",
    ),
    "'where' for 'if' or 'when'": ("Cut rows where there are many.", "Cut rows if there are many."),
}


def test_no_habit_of_hard_english_is_above_its_limit():
    broken = prose.above_limits(prose.read_code(), prose.read_pages())
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("habit", prose.HABITS, ids=lambda habit: habit.name)
def test_a_habit_is_counted_in_hard_sentences_and_not_in_plain_ones(habit):
    hard, plain = PROSE[habit.name]
    for text, has in ((hard, True), (plain, False)):
        assert bool(re.search(habit.pattern, text)) == has
        found = [*prose.code_sentences(f'"""{text}"""\n')]
        assert [each.text for each in found] == [text]
        assert any(habit.name in each for each in prose.above_limits(found, found)) == has


def test_sentences_are_read_from_docstrings_messages_comments_and_pages():
    docstring = '"""A first line here.\n\n>>> not this one here\n"""\n'
    code = docstring + '# A comment of four words.\nx = Refused(f"no {x} of all these", y)\n'
    assert sorted(each.text for each in prose.code_sentences(code)) == [
        "A comment of four words.",
        "A first line here.",
        "no {} of all these",
    ]
    page = (
        "# A title of words\n\n```python\nx = 'not this one here'\n```\n\n"
        "| a cell of words | another cell of words |\n\nTwo lines\nof text.\n"
    )
    assert [(each.line, each.text) for each in prose.page_sentences(page)] == [
        (1, "A title of words"),
        (7, "a cell of words"),
        (7, "another cell of words |"),
        (9, "Two lines of text."),
    ]
