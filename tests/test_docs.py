"""The README and the guide do what they say: their blocks run, and print what is printed below them."""

from pathlib import Path

import pytest

from tests.doc_blocks import PageError, blocks, run_page

PROJECT = Path(__file__).resolve().parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs" / "guide").glob("*.md"))]

TRUE_PAGES = {
    "exact output": "```python\nx = 2\nprint(x)\n```\n\n```text output\n2\n```\n",
    "one namespace": "```python\nx = 2\n```\ntext\n```python\nprint(x)\n```\n```text output\n2\n```\n",
    "a sample's numbers": "```python\nprint('about 1,204.5 ± 3')\n```\n```text sample\nabout 7 ± 12\n```\n",
    "a command": "```console\n$ tacit --version\n```\n",
    "a command's output": "```console sample\n$ tacit --version\ntacit 9.9.9\n```\n",
    "a refused command": "```console exit=2\n$ tacit --version\n$ tacit nonsense\n```\n",
    "other commands are for reading": "```console\n$ rm --no-such-flag\n```\n```text\nanything\n```\n",
}

FALSE_PAGES = {
    "wrong output": "```python\nprint(2)\n```\n```text output\n3\n```\n",
    "fewer lines": "```python\nprint(2)\nprint(3)\n```\n```text sample\n2\n```\n",
    "other words": "```python\nprint('noisy 2')\n```\n```text sample\nexact 2\n```\n",
    "output of nothing": "```text output\n3\n```\n",
    "a command that is refused": "```console\n$ tacit nonsense\n```\n",
    "a command that is not refused": "```console exit=3\n$ tacit --version\n```\n",
    "a command's wrong output": "```console output\n$ tacit --version\ntacit 9.9.9\n```\n",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_page(page.read_text()) > 0, f"{page.name} shows nothing that runs"


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
    import re

    pages = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *(PROJECT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(PROJECT)} -> {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)
