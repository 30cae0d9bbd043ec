"""Attacks on what an answer shows: cells in errors and files, keys of one person, groups, schemas and digits."""

import json
import logging
import os
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from tacit import count, epsilon, mean
from tacit import sum as sum_of
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import reading_does
from tacit_gauntlet.stage.statistic import clopper_pearson_lower
from tacit_gauntlet.stage.table import (
    Ear,
    Table,
    exact_cells,
    exact_table,
    in_sql,
    keys_shown,
    pandas,
    plan_of,
    protected,
)

CANARY = "CANARY-4711-é"


class _Speaks:
    """A cell whose own text cannot be taken without it complaining aloud."""

    def __str__(self) -> str:
        raise ValueError(CANARY)


def _with_canary() -> pa.Table:
    odd = [CANARY, "x", "9" * 40]
    return pa.table({"id": [CANARY, "b", "c"], "g": odd, "x": pa.array([1, 2, 3]), "n": [CANARY, "2", "3"]})


@case("Q02", title="a cell's text is in no error, log, trace, repr, plan, ledger or file left behind", feature="engine")
def canary(_: Size) -> Evidence:
    ear = Ear()
    heard = ear.heard
    logging.getLogger().addHandler(ear)
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            for call in _failures(Path(folder) / "seen"):
                try:
                    heard.append(repr(call()))
                except Exception as error:
                    heard.extend(_whole(error))
            left = [str(path) for path in Path(folder).rglob("*") if path.is_file() and "seen" not in path.parts]
            heard.extend(Path(path).read_text(errors="replace") for path in left)
        finally:
            tempfile.tempdir = before
            logging.getLogger().removeHandler(ear)
    hits = [text[:200] for text in heard if "CANARY" in text]
    return Evidence(passed=not hits and len(heard) > 10, details={"texts searched": len(heard), "hits": hits[:3]})


def _whole(error: BaseException | None) -> Iterator[str]:
    """Every text an error carries, its causes and contexts included."""
    while error is not None:
        yield "".join(traceback.format_exception_only(error))
        yield repr(error.args)
        error = error.__cause__ or error.__context__


def _failures(folder: Path) -> Iterator[Callable[[], Any]]:
    """Yield calls that fail, or show something, where a cell might be quoted."""
    folder.mkdir()
    table = protected(_with_canary(), budget=epsilon(5, delta="1e-6"))
    yield lambda: table
    yield table.count
    yield lambda: table.group_by("g").agg(n=count(), m=mean("x", between=(0, 5))).plan(epsilon=1)
    yield lambda: exact_table(table.group_by("g").count())
    for failing in (f"Conversion Error: could not convert string '{CANARY}'", CANARY):
        yield lambda failing=failing: _on_failing_engine(table, failing)  # type: ignore[misc]
    for text in ("n", "CAST(n AS INT)", "CAST(n AS DATE)", "1 / CAST(n AS INT)", "CAST(n AS DECIMAL(3, 2))"):
        yield lambda text=text: table.sql(f"SELECT COUNT({text}) AS n FROM t WHERE g LIKE '%x%'").answer(epsilon=0.1)  # type: ignore[misc]
    yield lambda: table.group_by("g").count().answer(epsilon=0.1)
    yield lambda: table.count().answer(epsilon=100)
    lines = ["id,g", f"1,{CANARY}", f'2,"{CANARY}', f"{CANARY},{CANARY},{CANARY}", CANARY, ""]
    (folder / "odd.csv").write_text("\n".join(lines))
    (folder / "bad.csv").write_bytes(b"id,g\n" + CANARY.encode("latin-1") + b",1\n")
    (folder / "not.parquet").write_text(CANARY)
    for name in ("odd.csv", "bad.csv", "not.parquet"):
        place = str(folder / name)
        yield lambda place=place: protected(place, unit="nosuch")  # type: ignore[misc]
        yield lambda place=place: protected(place).group_by("g").count().answer(epsilon=1)  # type: ignore[misc]
    yield lambda: protected(_odd_frame()).group_by("g").count().answer(epsilon=1)
    yield lambda: [entry.body for entry in table.session.ledger.entries()]


def _on_failing_engine(table: Table, failing: str) -> Any:
    def fail(*_: Any) -> None:
        raise RuntimeError(failing)

    with reading_does(fail):
        return table.count().answer(epsilon=0.1)


def _odd_frame() -> Any:
    return pandas().DataFrame({"id": [1, 2, 3], "g": pandas().Series([_Speaks(), CANARY, [CANARY]], dtype=object)})


@case("Q03", title="a key that one unit alone has is shown with chance at most delta", feature="release")
def unique_key(size: Size) -> Evidence:
    n = 20_000 if size == "quick" else 200_000
    delta = Fraction(1, 5)
    details: dict[str, object] = {"alone": n}
    passed = True
    noises: tuple[Literal["laplace"], Literal["gaussian"]] = ("laplace", "gaussian")
    for noise in noises:
        rows = pa.table({"id": [1], "g": ["a"]})
        table = protected(rows, groups_per_unit=1, budget=epsilon(1, delta=2 * delta), accept_large_delta=True)
        # n tables of one unit each, whose key nobody else has
        shown, charged = keys_shown(table.group_by("g").count_units(), alone=n, noise=noise)
        low = clopper_pearson_lower(shown, n)
        details[f"{noise}: shown share"] = f"{shown / n:.4f}, charged {float(charged):.4f}"
        passed &= low <= charged <= delta
    differ = _keys_that_differ()
    return Evidence(passed=passed and not differ, details=details | {"keys wrongly told apart or not": differ})


def _keys_that_differ() -> list[str]:
    """NULL is a key; case and blanks make others; −0.0 is 0.0 and NaN is NULL."""
    texts = [None, "", "a", "A", "a ", " a", "ä", "a\u0308"]
    floats = [None, float("nan"), 0.0, -0.0, 1.0, float("inf")]
    wrong = []
    for kind, values, wanted in (
        (pa.string(), texts, dict.fromkeys(texts, 1)),
        (pa.float64(), floats, {None: 2, 0.0: 2, 1.0: 1, float("inf"): 1}),
        (pa.decimal128(5, 2), [Decimal("1.10"), None], {Fraction(11, 10): 1, None: 1}),
    ):
        rows = pa.table({"id": range(len(values)), "g": pa.array(values, kind)})
        (cells,) = exact_cells(protected(rows).group_by("g").count_units())
        if cells != {(key, "units"): units for key, units in wanted.items()}:
            wrong.append(str(kind))
        listed = exact_table(protected(rows).group_by("g", keys=list(wanted)).count_units())
        if list(listed.sums["units"]) != list(wanted.values()):
            wrong.append(f"{kind}, listed")
    return wrong


@case("Q04", title="every public group is returned, in its place, whether or not anyone is in it", feature="engine")
def public_groups(_: Size) -> Evidence:
    keys = [f"k{place}" for place in range(1_000)] + [None, "", "quote'\"", "new\nline", "😀"]
    wrong = []
    for values in ([], ["k7"] * 3, ["unlisted"] * 3, [None], keys):
        rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "g": pa.array(values, pa.string())})
        for way in (nullcontext, in_sql):
            with way():
                answer = protected(rows).group_by("g", keys=keys).count().answer(epsilon=1).to_dicts()
            if [row["g"] for row in answer] != keys or any(row["count"] is None for row in answer):
                wrong.append(f"{values[:1]}, {way.__name__}")
    return Evidence(passed=not wrong, details={"groups": len(keys), "tables that lost one": wrong})


@case("Q05", title="no row changes a table's columns, types, ranges or keys", feature="tables")
def no_inference(_: Size) -> Evidence:
    pd = pandas()
    plain = "id,age,born\n" + "".join(f"{place},{place % 90},2001-01-0{place % 9 + 1}\n" for place in range(50))
    odd = ["x,old,never\n", "1\n", "1,2,3,4\n", '1,"2\n', "1;2;3\n", "\n", "1e400,NaN,Infinity\n", "-1,,\n", "#,#,#\n"]
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        for place, line in enumerate(["", *odd]):
            file = Path(folder) / f"{place}.csv"
            for text in (plain + line, "id,age,born\n" + line + plain[12:]):
                file.write_text(text)
                seen.add(_schema(str(file), columns={"age": {"type": "int", "between": (0, 120)}}))
    frames = set()
    for cell in (1, "x", None, 1.5, float("nan"), pd.NA, [1], b"x"):
        frame = pd.DataFrame({"id": [1, 2], "v": pd.Series([1, cell], dtype=object)})
        frames.add(_schema(frame))
    details = {"CSV schemas seen": len(seen), "object column schemas seen": len(frames)}
    return Evidence(passed=len(seen) == 1 and len(frames) == 1, details=details)


def _schema(source: Any, **declared: Any) -> str:
    """Return a table's columns as they are declared; or what it is refused with, which no row may change either."""
    try:
        table = protected(source, **declared)
    except (TacitError, pa.ArrowException) as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return json.dumps(table.session.declaration.public_record()["columns"])


@case("N03", title="numbers in JSON, CSV and Arrow have no digit that the noisy integers do not", feature="release")
def digits(size: Size) -> Evidence:
    """Counts are whole, sums are on the public step, and a mean is the same float for the same noisy integers."""
    rows = pa.table({"id": range(50), "y": [place / 7 for place in range(50)], "x": range(50)})
    table = protected(rows, columns={"y": {"between": (0, 7)}, "x": {"between": (0, 50)}})
    step = plan_of(table.sum("y")).measured[0].step
    wrong, numbers = [], 0
    for turn in range(5 if size == "quick" else 100):
        question = table.agg(n=count(), s=sum_of("y"), w=sum_of("x"), m=mean("x"))
        answer = question.answer(epsilon=Fraction(1000 + turn, 1000))
        again = question.answer(epsilon=Fraction(1000 + turn, 1000))
        (row,) = json.loads(answer.to_json())["rows"]
        cells = re.split(r"[,\n]", answer.to_csv())[len(row) : 2 * len(row)]
        for name, text in zip(row, cells, strict=True):
            numbers += 1
            if row[name] is None:  # a mean of hardly anybody has no interval
                wrong += [f"{name}: {text}"] if text else []
                continue
            grid = {"n": Fraction(1), "w": Fraction(1), "s": step}.get(name.split("_")[0])
            exact = Fraction(row[name])
            if float(text) != row[name] or (grid is not None and (exact / grid).denominator != 1):
                wrong.append(f"{name}: {text}")
        if again.to_dicts() != answer.to_dicts():
            wrong.append("the same noisy integers gave other digits")
    return Evidence(passed=not wrong, details={"numbers": numbers, "off the grid": wrong[:5]})


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
