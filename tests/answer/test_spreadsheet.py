"""A workbook to publish: sums hold in the file, texts are texts, and what is hidden or uncertain is marked."""

from dataclasses import replace

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

import tacit

RANDOM = np.random.default_rng(2)
ROWS = pa.table(
    {
        "region": [["north", "=1+1", "south"][n] for n in RANDOM.integers(0, 3, 3000)],
        "age": RANDOM.integers(0, 3, 3000),
        "x": RANDOM.integers(0, 9, 3000),
    }
)
COLUMNS = {"region": {"keys": ["=1+1", "north", "south"]}, "age": {"keys": [0, 1, 2, 7]}, "x": {"between": (0, 9)}}


@pytest.fixture(scope="module")
def answer():
    table = tacit.table(ROWS, unit=tacit.ROW, name="t", budget=tacit.epsilon(9), columns=COLUMNS, ledger=tacit.TRYOUT)
    return table.group_by("region", "age", totals="all").agg(n=tacit.count(), m=tacit.mean("x")).answer(epsilon=2)


def sheet_of(answer, tmp_path, name, **words):
    path = tmp_path / "out.xlsx"
    answer.to_excel(path, **words)
    book = openpyxl.load_workbook(path)
    return book, [[cell.value for cell in row] for row in book[name].iter_rows(min_row=3)]


def test_sums_hold_in_the_file(answer, tmp_path):
    book, rows = sheet_of(answer, tmp_path, "n", columns="age", title="Visits")
    assert book.sheetnames == ["Notes", "n", "n intervals", "m", "m intervals"]
    head, total, *regions = rows
    assert head == ["region", "0", "1", "2", "7", "Total"]
    assert total[0] == "Total"
    assert [row[0] for row in regions] == ["=1+1", "north", "south"]
    for column in range(1, 6):
        assert sum(row[column] for row in regions) == total[column]
    for row in rows[1:]:
        assert sum(row[1:5]) == row[5]
    assert book["n"]["A1"].value == "Visits: n"


def test_a_text_is_no_formula_and_a_number_is_a_number(answer, tmp_path):
    book, _ = sheet_of(answer, tmp_path, "n")
    kinds = {cell.value: cell.data_type for row in book["n"].iter_rows(min_row=4) for cell in row[:1]}
    assert kinds["=1+1"] == "s"
    assert all(cell.data_type == "n" for row in book["n"].iter_rows(min_row=4) for cell in row[2:])
    book, _ = sheet_of(answer, tmp_path, "n", columns="region", title="=CMD()")
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)


def test_a_sheet_is_as_wide_as_a_page_on_paper_and_tells_no_reader_what_the_office_has_left(answer, tmp_path):
    book, _ = sheet_of(answer, tmp_path, "n", columns="age")
    for sheet in book.worksheets[1:]:
        assert (sheet.sheet_properties.pageSetUpPr.fitToPage, sheet.page_setup.fitToHeight) == (True, 0)
        assert sheet.print_title_rows == "$1:$3"
    assert not any("is left" in str(row[0]) for row in book["Notes"].iter_rows(values_only=True))


def test_hidden_and_uncertain_numbers_are_marked(answer, tmp_path):
    small = {"n": 3, "n_low": 0, "n_high": 9, "m": None, "m_low": None, "m_high": None}
    made_up = [row | (small if row["age"] == 7 else {}) for row in answer.to_dicts()]  # so that no noise decides
    book, rows = sheet_of(replace(answer, rows=made_up), tmp_path, "m", columns="age")
    place = rows[0].index("7") + 1
    assert {row[place - 1] for row in rows[1:]} == {"[x]"}
    formats = [book["n"].cell(row, place).number_format for row in range(4, 8)]
    assert all("[low]" in each for each in formats)
    assert all("[low]" not in book["n"].cell(row, 2).number_format for row in range(4, 8))
    notes = [row[0].value for row in book["Notes"].iter_rows()]
    assert any("[low]" in (line or "") and "30%" in line for line in notes)
    assert any((line or "").startswith("Certificate: entry ") for line in notes)
    assert any("one row" in (line or "") or "each row" in (line or "") for line in notes)


@pytest.mark.parametrize("words", [{}, {"columns": "region"}])
def test_an_answer_without_a_group_is_a_file_too(answer, tmp_path, words):
    of_none = replace(answer, rows=[], rolled={"region": [], "age": []})
    _, rows = sheet_of(of_none, tmp_path, "n", **words)
    assert len(rows) <= 1
    assert of_none.to_html(**words).count("<table") == of_none.to_html().count("<table")


def test_every_number_of_a_file_is_the_answer_s(answer, tmp_path):
    _, rows = sheet_of(answer, tmp_path, "n")
    wanted = [[row["n"], row["n_low"], row["n_high"]] for row in answer.to_dicts()]
    assert [row[2:] for row in rows[1:]] == wanted
    assert answer.to_csv().splitlines()[1].startswith("Total,Total,")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"columns": "n"}, "is not a key of this answer"),
        ({"unsure_from": 0}, "must be above 0"),
        ({"path": "/nowhere/at/all.xlsx"}, "cannot be written"),
    ],
)
def test_what_cannot_be_is_refused_with_words(answer, tmp_path, words, said):
    with pytest.raises(tacit.TacitError, match=said):
        answer.to_excel(**{"path": tmp_path / "out.xlsx", **words})
