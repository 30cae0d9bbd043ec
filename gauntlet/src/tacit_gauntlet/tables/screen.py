"""Attacks on whoever reads an answer: keys and names that a terminal, a page or a spreadsheet would obey."""

import json

import pyarrow as pa

from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import protected

# a terminal's title, its clipboard and its colours; the same by one 8-bit character; a line drawn over another;
# writing from right to left; half a pair is no text, so it is in names alone
OBEYED = (
    "\x1b]0;owned\x07",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[2J",
    "\x9b31m",
    "ten\rnine",
    "a\x08b",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "a\x00b",
    "\x7f",
    "x\u2028y",
    "\U000e0041",
)
PAGE = ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a & b", "</table>")


@case("Q26", title="no key and no name is obeyed by a terminal or a page that shows it", feature="release")
def shown_and_not_obeyed(size: Size) -> Evidence:
    """Public keys and names of every kind, in each form that people look at; as data they come back as they are."""
    wrong, tries = [], 0
    for key in ("".join(OBEYED), "".join(PAGE)) if size == "quick" else (*OBEYED, *PAGE):
        column = key.replace("\0", "")  # which no engine has in a name
        table = protected(pa.table({"id": [1, 2], column: [key, key]}), name=f"t{key}")
        question = table.group_by(column, keys=[key]).count()
        answer = question.answer(epsilon=1)
        texts = {"text": str(answer), "repr": repr(answer), "html": answer._repr_html_(), "json": answer.to_json()}
        texts |= {"plan": str(question.plan(epsilon=1)), "table": repr(table), "question": repr(question)}
        texts["error"] = _refusal(lambda table=table, key=key: table.where(f'"{key}x" > 1'))
        tries += len(texts)
        wrong += [f"{form} of {key!r}" for form, text in texts.items() if _obeys(text)]
        if any(tag in texts["html"] for tag in ("<script", "<img", "</table></td>")):
            wrong.append(f"html of {key!r} runs")
        if json.loads(texts["json"])["rows"][0][column] != key or answer.to_dicts()[0][column] != key:
            wrong.append(f"data of {key!r} is another key")
    return Evidence(passed=not wrong, details={"texts": tries, "wrong": wrong[:20]})


def _obeys(text: str) -> bool:
    """Whether anything is left that is not for reading; nothing breaks a line but a newline."""
    return any(not (letter.isprintable() or letter == "\n") for letter in text)


def _refusal(ask: object) -> str:
    try:
        ask()  # type: ignore[operator]
    except TacitError as refusal:
        return str(refusal)
    return ""
