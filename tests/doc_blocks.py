"""Read and run the fenced blocks of a Markdown page, so that a page that lies fails.

- ```python blocks run in order in one namespace per page.
- ```text output, right after one, is its exact output; ```text sample is its shape (same lines, numbers may differ).
- ```sql blocks are asked statement by statement, split at `;`, with the function `ask` that the page defines in Python;
  of ```sql refused every statement must be refused before anything is charged.
- ```console blocks run each `$ tacit ...` line through the command line; `exit=3` in the info string is the exit code
  expected of the last one. With `output` or `sample` in the info string the lines below a command are compared too.
Blocks of other kinds, and commands other than tacit's, are for reading only.
"""

import contextlib
import io
import re
import shlex
from dataclasses import dataclass

from tacit.cli.app import main
from tacit.errors import QueryRefused

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-−+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


class PageError(Exception):
    """A page says something that does not happen."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its kind, the other words of its info string, its text and its line in the page."""

    kind: str
    words: tuple[str, ...]
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """Return a page's fenced blocks, in order."""
    found = []
    for fence in FENCE.finditer(page):
        kind, *words = fence.group(1).split() or [""]
        found.append(Block(kind, tuple(words), fence.group(2), page.count("\n", 0, fence.start()) + 1))
    return found


def run_page(page: str) -> int:
    """Run every block of a page that runs, compare what it claims, and return how many ran."""
    namespace: dict[str, object] = {"__name__": "__page__"}
    shown: str | None = None
    ran = 0
    for block in blocks(page):
        if block.kind == "python":
            shown = run_python(block, namespace)
            ran += 1
        elif block.kind == "text" and block.words:
            if shown is None:
                raise PageError(f"line {block.line}: this output follows no python block")
            compare(shown, block.text, block, exactly="output" in block.words)
            shown = None
        elif block.kind == "sql":
            ran += run_sql(block, namespace)
            shown = None
        elif block.kind == "console":
            ran += run_console(block)
            shown = None
        else:
            shown = None
    return ran


def run_python(block: Block, namespace: dict[str, object]) -> str:
    """Run one block in the page's namespace and return what it printed."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        # line numbers in a traceback are the page's
        exec(compile("\n" * block.line + block.text, "<page>", "exec"), namespace)
    return shown.getvalue()


def run_sql(block: Block, namespace: dict[str, object]) -> int:
    """Ask every statement of a block and return how many there were."""
    ask = namespace.get("ask")
    if not callable(ask):
        raise PageError(f"line {block.line}: no python block above defines ask(text)")
    statements = [text.strip() for text in re.sub(r"--[^\n]*", "", block.text).split(";") if text.strip()]
    for text in statements:
        try:
            ask(text)
        except QueryRefused as error:
            if "refused" not in block.words:
                raise PageError(f"line {block.line}: this is refused: {text}\n{error}") from error
        else:
            if "refused" in block.words:
                raise PageError(f"line {block.line}: this is answered, and not refused: {text}")
    return len(statements)


def run_console(block: Block) -> int:
    """Run the block's tacit commands and return how many there were."""
    expected_code = next((int(word.removeprefix("exit=")) for word in block.words if word.startswith("exit=")), 0)
    commands = [(words, below) for words, below in split_commands(block.text) if words[:1] == ["tacit"]]
    for position, (words, below) in enumerate(commands):
        code, shown = run_tacit(words[1:])
        wanted = expected_code if position == len(commands) - 1 else 0
        if code != wanted:
            raise PageError(f"line {block.line}: `{shlex.join(words)}` exits {code}, not {wanted}\n{shown}")
        if {"output", "sample"} & set(block.words):
            compare(shown, below, block, exactly="output" in block.words)
    return len(commands)


def split_commands(text: str) -> list[tuple[list[str], str]]:
    """Return each `$ command` of a console block as words, with the lines printed below it."""
    parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [
        (shlex.split(command, comments=True), below) for command, _, below in (part.partition("\n") for part in parts)
    ]


def run_tacit(words: list[str]) -> tuple[int, str]:
    """Run the command line in this process and return its exit code and everything it printed."""
    shown = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            main(words)
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
    return code, shown.getvalue()


def compare(shown: str, claimed: str, block: Block, *, exactly: bool) -> None:
    """Raise where the output is not what the page claims, numbers aside for a sample."""
    view = normal if exactly else shape
    if view(shown) != view(claimed):
        raise PageError(f"line {block.line}: the page claims\n{claimed}\nbut what is printed is\n{shown}")


def normal(text: str) -> list[str]:
    """A text's lines without trailing space."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def shape(text: str) -> list[str]:
    """A text's lines with every number the same, and runs of space or rule as one: they follow a number's width."""
    return [re.sub(r"\s+", " ", re.sub(r"─+", "─", NUMBER.sub("#", line))).strip() for line in normal(text)]
