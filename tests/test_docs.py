"""The README and the guide do what they say: their blocks run, and print what is printed below them."""

import re
from pathlib import Path

import pytest

from tacit.ledger.clock import system_clock, time_text
from tests.changes import changed_files
from tests.doc_blocks import PageError, blocks, run_page

PROJECT = Path(__file__).resolve().parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs" / "guide").glob("*.md"))]
# The pages that a newcomer reads first, and those that differ from the main branch; `make far` runs the others.
FIRST_PAGES = ("README.md", "first-answers.md", "bounds.md")
CHANGED = [page for page in PAGES if str(page.relative_to(PROJECT)) in changed_files()]

ASK = """```python
from tacit.errors import QueryRefused
def ask(text):
    if "no" in text:
        raise QueryRefused("no")
```
"""
TRUE_PAGES = {
    "questions": ASK + "```sql\nSELECT 1; -- a note\nSELECT 2\n```\n```sql refused\nSELECT no;\n```\n",
    "exact output": "```python\nx = 2\nprint(x)\n```\n\n```text output\n2\n```\n",
    "one namespace": "```python\nx = 2\n```\ntext\n```python\nprint(x)\n```\n```text output\n2\n```\n",
    "a sample's numbers": "```python\nprint('about 1,204.5 ± 3')\n```\n```text sample\nabout 7 ± 12\n```\n",
    "a command": "```console\n$ tacit --version\n```\n",
    "a command's output": "```console sample\n$ tacit --version\ntacit 9.9.9\n```\n",
    "a refused command": "```console exit=2\n$ tacit --version\n$ tacit nonsense\n```\n",
    "other commands are for reading": "```console\n$ rm --no-such-flag\n```\n```text\nanything\n```\n",
}

FALSE_PAGES = {
    "a question that is refused": ASK + "```sql\nSELECT 1;\nSELECT no\n```\n",
    "a question that is not refused": ASK + "```sql refused\nSELECT no;\nSELECT 1\n```\n",
    "a question to nobody": "```sql\nSELECT 1\n```\n",
    "wrong output": "```python\nprint(2)\n```\n```text output\n3\n```\n",
    "fewer lines": "```python\nprint(2)\nprint(3)\n```\n```text sample\n2\n```\n",
    "other words": "```python\nprint('noisy 2')\n```\n```text sample\nexact 2\n```\n",
    "output of nothing": "```text output\n3\n```\n",
    "a command that is refused": "```console\n$ tacit nonsense\n```\n",
    "a command that is not refused": "```console exit=3\n$ tacit --version\n```\n",
    "a command's wrong output": "```console output\n$ tacit --version\ntacit 9.9.9\n```\n",
}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=() if page.name in FIRST_PAGES or page in CHANGED else pytest.mark.far)
        for page in PAGES
    ],
    ids=lambda page: page.name,
)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    if page.name == "engines.md":  # its server is where the environment says; Spark's half runs with the tests of Spark
        text = text.partition("\n## Spark\n")[0]
        folder = request.getfixturevalue("postgres").partition("host=")[2]
        for name, value in {"PGHOST": folder, "PGUSER": "tacit", "PGDATABASE": "postgres"}.items():
            monkeypatch.setenv(name, value)
    if page.name == "nets.md":
        reason = "torch is not installed; docs/guide/nets.md needs it: the extra 'deep'"
        pytest.importorskip("torch", reason=reason).set_num_threads(1)  # pages run side by side
    if page.name == "running.md":  # it steps twice: no day may end in between
        now = time_text(system_clock)
        monkeypatch.setattr("tacit.ledger.ledger.time_text", lambda _: now)
    assert run_page(text) > 0, f"{page.name} shows nothing that runs"


@pytest.mark.parametrize("page", TRUE_PAGES.values(), ids=TRUE_PAGES)
def test_a_true_page_passes(page):
    run_page(page)


@pytest.mark.parametrize("page", FALSE_PAGES.values(), ids=FALSE_PAGES)
def test_a_page_that_lies_fails(page):
    with pytest.raises(PageError, match=r"^line \d+: "):
        run_page(page)


def test_an_error_in_a_block_is_raised():
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n")


def test_a_block_knows_its_line():
    assert [block.line for block in blocks("# Title\n\n```python\nx = 1\n```\n\n```text output\n1\n```\n")] == [3, 7]


def test_every_link_between_pages_leads_somewhere():
    pages = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *(PROJECT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(PROJECT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def missing_files(text):
    """Return the Python files that a page names and that do not exist; `room/{one,two}.py` names two."""
    roots = [
        PROJECT / root
        for root in (".", "src", "src/tacit", "gauntlet/src/tacit_gauntlet", "classroom/src/tacit_classroom", "tests")
    ]
    known = {
        path.name
        for root in ("src", "gauntlet/src", "classroom/src", "tests", "bench", "tools")
        for path in (PROJECT / root).rglob("*.py")
    }
    named = set()
    for start, braced, end in re.findall(r"`([\w/]*)(?:\{([\w, ]+)\})?([\w/]*\.py)\b", text):
        named |= {f"{start}{middle.strip()}{end}" for middle in braced.split(",")}
    return sorted(
        name for name in named if not (any((root / name).exists() for root in roots) if "/" in name else name in known)
    )


def test_a_file_that_is_not_there_is_noticed():
    text = "`noise/bits.py`, `bits.py`, `plan/{planner,absent}.py`, `tacit/gone.py` and `tests/gone.py · it`"
    assert missing_files(text) == ["plan/absent.py", "tacit/gone.py", "tests/gone.py"]


def test_every_file_that_a_page_names_is_there():
    history = {"decisions.md"}  # says what was, too
    pages = [PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")]
    missing = {
        str(page.relative_to(PROJECT)): missing_files(page.read_text()) for page in pages if page.name not in history
    }
    assert not {page: names for page, names in missing.items() if names}
