"""How the sentences of the code and of the pages are built: habits that make English hard to read, counted and limited.

`python -m tests.house` prints the figures. `python -m tests.prose src/tacit/noise` lists the sentences with a habit of
one folder, one file or one page.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parent.parent
WORDS_MIN = 4


class Habit(NamedTuple):
    """One construction, and how many sentences in a thousand may have it in the code and in the pages."""

    name: str
    pattern: str
    code_max: float
    pages_max: float


# A limit only falls: lower it whenever the figure is below it.
HABITS = (
    Habit(
        "'what …' or 'who …' as a noun",
        r"(?:^|[,;:(]\s|\b(?:of|from|for|by|with|than|and|or|to|as|in|on|is|are|has|have|say|says|reads?|tells?|keeps?)\s)"
        r"(?:what|who|whoever|whatever)\s(?!is the|are the)\w+",
        16.5,
        8.0,
    ),
    Habit("'is said', 'was told'", r"\b(?:is|are|was|were|be|been)\s(?:said|told|spoken|asked of)\b", 1.1, 0.5),
    Habit(
        "a thing that says, tells, knows or holds",
        r"\b(?:it|file|table|plan|ledger|bars?|line|profile|answer|server|noise|facts?|header|rule|key|page|ε)\s"
        r"(?:says|tells|knows|speaks|holds)\b",
        2.3,
        2.3,
    ),
    Habit(
        "'nobody', 'nothing' or 'none'",
        r"\b(?:nobody|nothing|no one|none|neither|nowhere|somebody|nobody's|anybody|everybody)\b",
        16.0,
        3.0,
    ),
    Habit("'… alone' for 'only'", r"\b\w+\salone\b", 2.0, 1.3),
    Habit("'as many as', 'so much'", r"\b(?:as|so)\s(?:many|much|long|large|far|often|few|little)\b", 5.0, 3.2),
    Habit(
        "'but for', 'of its own', 'at all', 'the more the'",
        r"\bbut for\b|\bof (?:its|their|his) own\b|\bat all\b|\bthe (?:more|less|fewer|larger) the\b",
        2.6,
        2.0,
    ),
    Habit("'whose'", r"\bwhose\b", 5.8, 1.0),
    Habit(
        "'is no …', 'has no …'",
        r"\b(?:is|are|has|have|with|of|in|as)\sno\s(?!longer|more|matter|other|such)\w+",
        6.5,
        3.8,
    ),
    Habit("begins with 'It', 'They', 'One', 'That'", r"^(?:It|They|Them|Those|These|One|Each|That)\s", 6.5, 11.7),
    Habit(
        "'where' for 'if' or 'when'",
        r"(?:^|[,;]\s|\s)where\s(?:it|they|there|nobody|nothing|no|a|the|one|that|these|this|somebody|memory|enough)\b",
        8.5,
        1.4,
    ),
)
# A call of a name like these makes an error or a warning.
ERRORS = re.compile(
    r"Error|Refused|Invalid|Exceeded|Request|Problem|Parameter|Unavailable|Warning|refusal|Changed|Denied"
)


class Sentence(NamedTuple):
    path: Path
    line: int
    text: str


def sentences(text: str) -> list[str]:
    """Split a text into sentences of at least four words; examples of code are left out."""
    flat = re.sub(r"\s+", " ", re.sub(r">>>.*", "", text).strip())
    return [
        each for each in re.split(r"(?<=[.;!?])\s+|hint: ", flat) if len(re.findall(r"[A-Za-z']+", each)) >= WORDS_MIN
    ]


def code_sentences(source: str, path: Path = Path()) -> Iterator[Sentence]:
    """Read the sentences of docstrings, error messages and comments."""
    for line, text in [*docstrings_and_messages(source), *comments(source)]:
        for each in sentences(text):
            yield Sentence(path, line, each)


def docstrings_and_messages(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield getattr(node, "lineno", 1), text
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if ERRORS.search(name) and (text := text_of(node.args[0])):
                yield node.lineno, text


def text_of(node: ast.AST) -> str | None:
    """Return a text as it is written, with {} for each value put into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(each) or "{}" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (text_of(node.left) or "{}") + (text_of(node.right) or "{}")
    return None


def comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def page_sentences(page: str, path: Path = Path()) -> Iterator[Sentence]:
    """Read the sentences of a page, paragraph by paragraph and cell by cell; blocks of code are left out."""
    prose = re.sub(r"(?ms)^```.*?^```$|<!--.*?-->", lambda block: re.sub(r"[^\n]", "", block[0]), page)
    line = 1
    for paragraph in re.split(r"(\n\s*\n|\n(?=\s*(?:[-|#]|\d+\.)\s?))", prose):
        for cell in re.split(r"\s\|\s|^\s*\|", re.sub(r"^\s*(?:[-#]+|\d+\.)\s", "", paragraph.strip())):
            for each in sentences(cell):
                yield Sentence(path, line, each)
        line += paragraph.count("\n")


def read_code(folder: Path = PROJECT / "src") -> list[Sentence]:
    return [each for path in sorted(folder.rglob("*.py")) for each in code_sentences(path.read_text(), path)]


def read_pages() -> list[Sentence]:
    """Read the README and the guide."""
    pages = [PROJECT / "README.md", *sorted((PROJECT / "docs" / "guide").glob("*.md"))]
    return [each for path in pages for each in page_sentences(path.read_text(), path)]


def per_thousand(found: Iterable[Sentence], habit: Habit) -> float:
    """Count the sentences with a habit, in each thousand."""
    every = [bool(re.search(habit.pattern, each.text)) for each in found]
    return 1000 * sum(every) / max(1, len(every))


def figures(code: list[Sentence], pages: list[Sentence]) -> list[str]:
    """Return each habit's figures beside their limits."""
    return [
        f"sentences with a habit, in each thousand: code (limit), README and guide (limit);"
        f" {len(code):,} and {len(pages):,} sentences"
    ] + [
        f"  {per_thousand(code, habit):5.1f} ({habit.code_max:g})"
        f"  {per_thousand(pages, habit):5.1f} ({habit.pages_max:g})  {habit.name}"
        for habit in HABITS
    ]


def above_limits(code: list[Sentence], pages: list[Sentence]) -> list[str]:
    """List the figures above their limits."""
    return [
        f"{name}: {figure:.1f} of a thousand sentences have {habit.name}, {limit:g} at most;"
        " `python -m tests.prose PATH` lists them"
        for habit in HABITS
        for name, found, limit in (("src", code, habit.code_max), ("README and guide", pages, habit.pages_max))
        if (figure := per_thousand(found, habit)) > limit
    ]


def listing(path: Path) -> list[str]:
    """List the sentences with a habit below a path."""
    found = (
        read_code(path)
        if path.is_dir()
        else [*(page_sentences if path.suffix == ".md" else code_sentences)(path.read_text(), path)]
    )
    return [
        f"{each.path}:{each.line} {each.text}\n    {', '.join(names)}"
        for each in found
        if (names := [habit.name for habit in HABITS if re.search(habit.pattern, each.text)])
    ]


if __name__ == "__main__":
    print("\n".join(line for path in sys.argv[1:] for line in listing(Path(path))))
