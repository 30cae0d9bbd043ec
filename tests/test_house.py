"""No file is too small to be one, no name stands in two rooms, no room is too full: each rule is shown to fail."""

import pytest

from tests import house

SHORT = "x = 1\n"
LONG = SHORT * 80


def test_the_package_keeps_its_files_whole():
    tree = house.read_package()
    broken = house.small_files(tree) + house.names_once(tree) + house.room_sizes(tree)
    assert not broken, "\n".join(broken)


PLANTED = [
    (house.small_files, {"noise/tiny.py": SHORT, "noise/user.py": "from tacit.noise.tiny import x\n" + LONG}),
    (house.small_files, {"noise/nobodys.py": SHORT}),
    (house.names_once, {"noise/rows.py": LONG, "ledger/rows.py": LONG}),
    (house.names_once, {"engine/kernel/rows.py": LONG, "engine/rows.py": LONG}),
    (house.room_sizes, {f"noise/a{place}.py": LONG for place in range(21)}),
    (house.cycles, {"a/b.py": "from tacit.a.c import x\n", "a/c.py": "from tacit.a.b import y\n"}),
]
ALLOWED = [
    (house.small_files, {"noise/__init__.py": SHORT, "cli/explain.py": SHORT}),
    (
        house.small_files,
        {"errors.py": SHORT} | {f"noise/{name}.py": "from tacit.errors import x\n" + LONG for name in "ab"},
    ),
    (house.names_once, {"cli/ledger.py": LONG, "ledger/ledger.py": LONG}),
    (house.room_sizes, {f"noise/{room}/a{place}.py": LONG for room in "ab" for place in range(15)}),
    (house.cycles, {"a/b.py": "from tacit.a.c import x\n", "a/c.py": "def f():\n    from tacit.a.b import y\n"}),
]


@pytest.mark.parametrize(("rule", "tree"), PLANTED)
def test_a_planted_breach_is_found(rule, tree):
    assert rule(tree)


@pytest.mark.parametrize(("rule", "tree"), ALLOWED)
def test_what_is_allowed_passes(rule, tree):
    assert rule(tree) == []


def test_what_is_small_on_purpose_is_there_and_small():
    tree = house.read_package()
    assert all(path in tree and tree[path].count("\n") < house.SMALL_LINES for path in house.SMALL_ALLOWED)


def test_the_figures_count_what_is_there():
    shown = "\n".join(house.figures({"noise/__init__.py": "__all__ = []\n", "noise/b.py": "def f():\n    return 1\n"}))
    assert "files: 2, 1 without faces\nlines: 3, median 1.5, largest 2" in shown
    assert "rooms with a stated face: 1 of 1" in shown
    assert "longest function: 2 lines (noise/b.py f)" in shown
