"""An answer as a workbook to publish: one table a sheet, numbers as numbers, and a sheet of notes for the reader.

The layout follows public guidance on statistics in spreadsheets: a title in A1, no merged cells, shorthand in brackets,
notes on a sheet that comes first. Everything in it is released already. Needs the `excel` extra.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.answer.published import (
    HIDDEN,
    LEGEND,
    UNASKED,
    UNSURE,
    cell_of,
    certificate_lines,
    crossed,
    ends_of,
    is_unsure,
    keys_down,
)
from tacit.answer.text import decimals_of, key_labels, key_text
from tacit.errors import InvalidParameter, printable

if TYPE_CHECKING:
    from tacit.answer.answer import Answer

SHEET_NAME_MOST = 31
BARRED_IN_SHEET_NAMES = str.maketrans(dict.fromkeys("[]:*?/\\", " "))
WIDTH_LEAST, WIDTH_MOST = 10, 40
PORTRAIT_MOST = 7  # columns
FONT = "Calibri"

Sheet = Any  # openpyxl has no types


def write_workbook(answer: "Answer", path: Path, *, columns: str | None, title: str | None, unsure_from: float) -> None:
    """Write the workbook; `columns` is the key whose values go across, and `unsure_from` the limit of certain numbers.

    A number is marked as uncertain if half of its interval is more than that part of it.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        raise InvalidParameter("a workbook needs the excel extra\nhint: pip install 'tacit[excel]'") from None
    down = keys_down(answer, columns, unsure_from)
    book = Workbook()
    name = title or "A table with noise that protects people"
    _notes(book.active, answer, name, unsure_from)
    for number in answer.aggregates:
        sheet = book.create_sheet(_sheet_name(number, book.sheetnames))
        if columns is None:
            _long(sheet, answer, down, number, name, unsure_from)
        else:
            _wide(sheet, answer, down, columns, number, name, unsure_from)
            ends = book.create_sheet(_sheet_name(f"{number} intervals", book.sheetnames))
            _wide_ends(ends, answer, down, columns, number, name)
    try:
        book.save(path)
    except OSError:
        raise InvalidParameter(
            "the file cannot be written to this path\nhint: name a file in a folder that you may write to"
        ) from None


def _notes(sheet: Sheet, answer: "Answer", title: str, unsure_from: float) -> None:
    from openpyxl.styles import Alignment

    sheet.title = "Notes"
    percent = f"{float(answer.facts.confidence) * 100:g} %"
    facts = answer.facts
    lines = [title, "", "Every number has random noise, which protects people in the data."]
    lines += [f"Low and high are the ends of an interval that holds the table's number with {percent} probability."]
    lines += [printable(line) for line in (facts.reading, facts.advice) if line] + [""]
    lines += [f"{mark}   {text.format(limit=f'{unsure_from:.0%}')}" for mark, text in LEGEND]
    lines += ["", f"Cost: {facts.loss['text']}. Protected: {facts.unit}."]
    lines += certificate_lines(answer)
    for row, line in enumerate(lines, 1):
        _write_text(sheet, row, 1, line)
        sheet.cell(row, 1).alignment = Alignment(wrap_text=True, vertical="top")
    sheet.column_dimensions["A"].width = 110
    _fit_to_pages(sheet)


def _long(sheet: Sheet, answer: "Answer", keys: Sequence[str], number: str, title: str, unsure_from: float) -> None:
    """One row a group, with the ends of the interval beside the number."""
    percent = f"{float(answer.facts.confidence) * 100:g} %"
    _head(sheet, f"{title}: {number}", len(keys), [*keys, number, f"low ({percent})", f"high ({percent})"])
    labels = [key_labels(answer, key) for key in keys]
    for at, row in enumerate(answer.rows):
        for column, each in enumerate(labels, 1):
            _write_key(sheet, at + 4, column, row[keys[column - 1]], each[at])
        ends = row[f"{number}_low"], row[f"{number}_high"]
        _write_number(sheet, at + 4, len(keys) + 1, row[number], ends, unsure_from)
        for place, end in enumerate(ends):
            _write_number(sheet, at + 4, len(keys) + 2 + place, end, None, unsure_from)
    _widths(sheet)


def _wide(
    sheet: Sheet,
    answer: "Answer",
    down: Sequence[str],
    across: str,
    number: str,
    title: str,
    unsure_from: float,
) -> None:
    """One row a group of the other keys, with the values of one key across."""
    columns, rows = crossed(answer, down, across)
    _head(sheet, f"{title}: {number}", len(down), [*down, *columns])
    for at, (labels, cells) in enumerate(rows):
        for column, label in enumerate(labels, 1):
            _write_text(sheet, at + 4, column, label)
        for column, found in enumerate(cells, len(down) + 1):
            _write_number(sheet, at + 4, column, cell_of(found, number), ends_of(found, number), unsure_from)
    _widths(sheet)


def _wide_ends(sheet: Sheet, answer: "Answer", down: Sequence[str], across: str, number: str, title: str) -> None:
    """The low and the high end of every number of a wide table, side by side."""
    columns, rows = crossed(answer, down, across)
    _head(
        sheet,
        f"{title}: {number}, intervals",
        len(down),
        [*down, *(f"{each}, {end}" for each in columns for end in ("low", "high"))],
    )
    for at, (labels, cells) in enumerate(rows):
        for column, label in enumerate(labels, 1):
            _write_text(sheet, at + 4, column, label)
        for place, found in enumerate(cells):
            for side, end in enumerate(("low", "high")):
                value = cell_of(found, f"{number}_{end}")
                _write_number(sheet, at + 4, len(down) + 1 + 2 * place + side, value, None, 1.0)
    _widths(sheet)


# ---- Cells.


def _head(sheet: Sheet, title: str, keys: int, names: Sequence[str]) -> None:
    from openpyxl.styles import Alignment, Font

    _write_text(sheet, 1, 1, title)
    _write_text(
        sheet,
        2,
        1,
        f"Shorthand: {HIDDEN} hidden, {UNASKED} not asked for, {UNSURE} uncertain. The sheet Notes has more.",
    )
    for column, name in enumerate(names, 1):
        _write_text(sheet, 3, column, name)
        sheet.cell(3, column).font = Font(name=FONT, bold=True)
        sheet.cell(3, column).alignment = Alignment(horizontal="left" if column <= keys else "right", wrap_text=True)
    sheet.cell(1, 1).font = Font(name=FONT, bold=True)
    sheet.freeze_panes = "A4"
    sheet.print_title_rows = "1:3"
    _fit_to_pages(sheet)
    sheet.page_setup.orientation = "landscape" if len(names) > PORTRAIT_MOST else "portrait"


def _fit_to_pages(sheet: Sheet) -> None:
    """Let a sheet be as wide as a page on paper, and take as many pages as it needs."""
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.page_setup.fitToHeight = 0


def _write_text(sheet: Sheet, row: int, column: int, text: str) -> None:
    """Write a text as a text, whatever it begins with: a spreadsheet runs no part of it."""
    cell = sheet.cell(row, column)
    cell.value = printable(text)
    cell.data_type = "s"


def _write_key(sheet: Sheet, row: int, column: int, value: Any, label: str) -> None:
    if label == key_text(value) and isinstance(value, int | float) and not isinstance(value, bool):
        sheet.cell(row, column).value = value
    else:
        _write_text(sheet, row, column, label)


def _write_number(
    sheet: Sheet, row: int, column: int, value: Any, ends: tuple[Any, Any] | None, unsure_from: float
) -> None:
    from openpyxl.styles import Alignment

    if value is None or isinstance(value, str):
        _write_text(sheet, row, column, value or HIDDEN)
        sheet.cell(row, column).alignment = Alignment(horizontal="right")
        return
    cell = sheet.cell(row, column)
    cell.value = value if isinstance(value, int) and abs(value) < 1 << 53 else float(value)
    decimals = decimals_of(value)
    digits = f"#,##0.{'0' * (2 if decimals is None else decimals)}".rstrip(".")
    unsure = ends is not None and is_unsure(value, ends, unsure_from)
    cell.number_format = f'{digits} "{UNSURE}"' if unsure else digits


def _widths(sheet: Sheet) -> None:
    for column in sheet.columns:
        lengths = [len(str(cell.value or "")) for cell in column if cell.row > 2]  # the title is long
        sheet.column_dimensions[column[0].column_letter].width = min(max([WIDTH_LEAST - 2, *lengths]) + 2, WIDTH_MOST)


def _sheet_name(name: str, taken: Sequence[str]) -> str:
    wanted = printable(name).translate(BARRED_IN_SHEET_NAMES).strip("' ")[:SHEET_NAME_MOST] or "table"
    known = {each.lower() for each in taken}
    found, number = wanted, 2
    while found.lower() in known:
        found = f"{wanted[: SHEET_NAME_MOST - 4]} {number}"
        number += 1
    return found
