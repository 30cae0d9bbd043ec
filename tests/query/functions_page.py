"""The table of functions in docs/guide/functions.md, from the catalogue: `python -m tests.query.functions_page`."""

from pathlib import Path

from tacit.query.language.catalogue import FUNCTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "functions.md"
START, END = "<!-- the catalogue -->\n", "<!-- end of the catalogue -->\n"


def table() -> str:
    """Return the catalogue as a Markdown table, in its own order."""
    rows = [f"| `{_cell(entry.form)}` | {_cell(entry.meaning)} |\n" for entry in FUNCTIONS.values()]
    return "".join(["\n| Written | Means |\n|---|---|\n", *rows, "\n"])


def with_table(page: str) -> str:
    """Return the page with the table of today between its two marks."""
    before, rest = page.split(START)
    return before + START + table() + END + rest.split(END)[1]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
