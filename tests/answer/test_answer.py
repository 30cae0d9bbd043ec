"""An answer as people use it: every format holds the same noisy numbers, and nothing in it is run or misread."""

import csv
import io
import json
from datetime import date
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.answer.answer import Answer, AnswerInfo, AnswerRows
from tacit.answer.text import cell_text
from tacit.ledger.certificate import verify_certificate

FACTS = AnswerInfo(
    loss={"epsilon": 1.0, "delta": 0.0, "text": "ε = 1", "meaning": "odds"},
    left={"epsilon": 2.0, "questions": 3, "text": "up to ε = 2 for one more question"},
    unit="all rows of one person",
    neighbours="add or remove one",
    confidence=Fraction(95, 100),
    durable=False,
    free=False,
    receipt={"entry": 3},
    notes=("A note.",),
)
KEYS = ["=HYPERLINK(1)", "<script>alert(1)</script>", "two\nlines", "quote\"'", "😀", None, "@x", "plain"]
TYPES = {"g": "text", "n": "int", "n_low": "int", "n_high": "int", "m": "float", "m_low": "float", "m_high": "float"}


def answer(keys=KEYS, types=TYPES, **facts):
    rows = [
        {
            "g": key,
            "n": 10 + at,
            "n_low": 7 + at,
            "n_high": 13 + at,
            "m": None if at == 0 else 1.5,
            "m_low": 0.0,
            "m_high": 3.0,
        }
        for at, key in enumerate(keys)
    ]
    from dataclasses import replace

    return Answer(rows, ("g", "n", "m"), types, ("n", "m"), replace(FACTS, **facts))


def test_every_format_holds_the_same_rows():
    made = answer()
    dicts = made.to_dicts()
    assert list(dicts[0]) == made.names == ["g", "n", "n_low", "n_high", "m", "m_low", "m_high"]
    assert made.to_arrow().to_pylist() == dicts
    assert made.to_polars().to_dicts() == dicts
    assert made.to_pandas()["n"].tolist() == [row["n"] for row in dicts]
    assert json.loads(made.to_json())["rows"] == dicts
    assert len(made) == len(dicts)


def test_json_is_one_object_with_the_answer_and_what_it_cost():
    said = json.loads(answer().to_json())
    assert {"rows", "loss", "left", "unit", "neighbours", "receipt"} <= set(said)
    assert said["loss"]["text"] == "ε = 1"


def test_csv_reads_back_and_runs_in_no_spreadsheet(tmp_path):
    text = answer().to_csv(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == text
    read = list(csv.DictReader(io.StringIO(text)))
    assert [row["g"] for row in read][1:6] == ["<script>alert(1)</script>", "two\nlines", "quote\"'", "😀", ""]
    assert all(row["g"][:1] not in set("=+-@") for row in read)
    assert [int(row["n"]) for row in read] == [row["n"] for row in answer().to_dicts()]


def test_html_is_escaped():
    html = answer()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_print_shows_bars_what_it_cost_and_that_nothing_is_durable():
    text = str(answer())
    assert "± 95 %" in text
    assert "not enough people" in text
    assert "Spent ε 1; ε 2 is left" in text
    assert "nothing is kept" in text
    assert "A note." not in text
    assert "A note." in answer().details()
    assert "two⏎lines" in text
    assert "nothing is kept" not in str(answer(durable=True))
    assert "already answered" in str(answer(free=True))


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (10.0, 9.8755, 10.1245, "10.00 ± 0.13"),
        (0.3, 0.05, 0.55, "0.30 ± 0.25"),
        (1.0, 0.501, 9.999, "1  (0 … 10)"),
        (-3.0, -9.01, 1.04, "-3  (-10 … 2)"),
        (7, 3, 11, "7 ± 4"),
        (62_247, 53_300, 71_194, "62,000 ± 9,000"),
        (62_247, 60_203, 64_291, "62,200 ± 2,100"),
        (62_247, 62_247, 62_247, "62,247 ± 0"),
        (40, 38, 900, "40  (30 … 900)"),  # not 0, which is outside of its interval
        (-40, -900, 820, "-40 ± 860"),
        (10**30 + 7, 10**30 - 400, 10**30 + 414, f"{10**30:,} ± 500"),
        (2e17, 1e17, 3e17, "200,000,000,000,000,000 ± 100,000,000,000,000,000"),
    ],
)
def test_bars_and_ends_are_printed_no_nearer_than_they_are(value, low, high, shown):
    assert cell_text(value, low, high) == shown


def test_an_empty_answer_keeps_its_types():
    empty = answer(keys=[])
    full = answer()
    assert empty.to_arrow().schema == full.to_arrow().schema
    assert str(empty).count("\n") >= 1


def test_keys_of_other_types_are_plain_in_json_and_csv():
    types = TYPES | {"g": "date"}
    made = answer(keys=[date(2020, 1, 31), None], types=types)
    assert json.loads(made.to_json())["rows"][0]["g"] == "2020-01-31"
    assert made.to_csv().splitlines()[1].startswith("2020-01-31,")


def test_a_count_beyond_64_bits_is_still_a_table():
    made = answer(keys=["a"])
    wide = Answer([{**made.rows[0], "n": 2**80}], made.columns, made.types, made.aggregates, made.facts)
    assert wide.to_arrow()["n"].to_pylist() == [float(2**80)]


@pytest.mark.parametrize("rows", [61, 200])
def test_a_long_answer_prints_its_beginning_and_says_so(rows):
    text = str(answer(keys=[f"k{place}" for place in range(rows)]))
    assert f"and {rows - 60} more rows" in text


def test_an_answers_certificate_is_the_ledgers_signed_record_of_it():
    table = tacit.table(
        pa.table({"id": [1, 2], "x": [1, 2]}), unit="id", rows_per_unit=1, budget=tacit.epsilon(3), ledger=":memory:"
    )
    answer = table.count().answer(epsilon=1)
    certificate = answer.certificate()
    assert certificate["number"] == answer.facts.receipt["entry"]
    assert certificate["signature"]
    assert verify_certificate(certificate)


COLUMNS = {"ward": ["A", "B", "C"], "n": (3, 4, 5)}
DICTS = [{"ward": "A", "n": 3}, {"ward": "B", "n": 4}, {"ward": "C", "n": 5}]


def test_rows_are_the_dicts_that_their_columns_make():
    rows = AnswerRows(COLUMNS)
    assert list(rows) == DICTS
    assert (rows[0], rows[-1], rows[1:], len(rows)) == (DICTS[0], DICTS[2], DICTS[1:], 3)
    assert repr(rows) == repr(DICTS)
    with pytest.raises(IndexError):
        rows[3]


def test_rows_are_equal_to_a_list_of_the_same_dicts():
    assert AnswerRows(COLUMNS) == DICTS
    assert AnswerRows(COLUMNS) == AnswerRows(COLUMNS)
    assert AnswerRows(COLUMNS) != DICTS[:2]
    assert AnswerRows({}) == []


def test_a_column_is_read_whole():
    assert list(AnswerRows(COLUMNS).column("n")) == [row["n"] for row in DICTS]
