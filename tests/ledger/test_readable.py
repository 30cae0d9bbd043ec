"""A ledger can be read: an entry has the question in words and the numbers as they left, with their error bars."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import tacit as root
from tacit.answer.text import ROWS_KEPT, ROWS_SHOWN, html_table, kept_text
from tacit.asking import question, united_question
from tacit.cli import app as door
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.ledger import ask, register

WARDS = ["north", "south", "west"]


@pytest.fixture
def tacit(capsys):
    def run(*words, code=0):
        with pytest.raises(SystemExit) as stopped:
            door.main(words)
        written = capsys.readouterr()
        assert (stopped.value.code or 0) == code, written.err
        return written.err if code else written.out

    return run


def visits(place):
    rows = {"person": list(range(300)), "ward": [WARDS[n % 2] for n in range(300)], "pay": [n % 50 for n in range(300)]}
    return root.table(
        pa.table(rows),
        unit="person",
        name="visits",
        version=1,
        columns={"pay": {"between": (0, 50)}, "ward": {"keys": WARDS}},
        rows_per_unit=1,
        groups_per_unit=1,
        ledger=place,
        budget=root.epsilon(5),
    )


def numbers_of(answer):
    """Return every cell of the table with all digits, as text: a ledger keeps them."""
    lines = answer.details().partition("\n\n")[0].splitlines()
    return [line.split() for line in lines if "─" not in line]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT ward, COUNT(*), AVG(pay) AS a FROM visits WHERE pay > 3 GROUP BY ward ORDER BY a DESC LIMIT 2",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ROLLUP(ward)",
        "SELECT SUM(pay) / COUNT(*) AS ratio FROM visits",
        "SELECT MEDIAN(pay) FROM visits",
    ],
)
def test_an_entry_and_its_certificate_show_the_question_and_the_numbers_as_released(tacit, tmp_path, select):
    place, file = str(tmp_path / "ledger.db"), str(tmp_path / "answer.json")
    answer = visits(place).sql(select).answer(epsilon=1, analyst="Ben", learn=False)
    number = answer.facts.receipt["entry"]
    tacit("certificate", str(number), "--ledger", place, "--output", file)
    shown = tacit("ledger", "show", str(number), "--ledger", place)
    certified = tacit("certificate", "verify", file)
    for text in (shown, certified):
        assert "FROM visits" in text
        words = [line.split() for line in text.splitlines()]
        for row in numbers_of(answer):
            assert row in words, text
    assert "asked: SELECT" in shown
    assert "spent: ε = 1; in the ledger's sums: ε = 1, ρ = " in shown
    assert "left now: ε = 4" in shown
    assert "by Ben" in shown
    assert tacit("ledger", "show", str(number - 1), "--ledger", place).count("asked: SELECT") == 1  # the charge's
    tacit("ledger", "verify", "--ledger", place)


def test_the_order_and_every_clause_are_in_the_words(tacit, tmp_path):
    place = str(tmp_path / "ledger.db")
    select = (
        "SELECT ward, COUNT(*) AS n FROM visits WHERE pay >= 3 GROUP BY ward HAVING n > 5 ORDER BY n DESC"
        " LIMIT 2 OFFSET 1"
    )
    visits(place).sql(select).answer(epsilon=1, learn=False)
    assert f": {select[:90]}" in tacit("ledger", "show", "--ledger", place)
    shown = tacit("ledger", "show", "4", "--ledger", place)
    assert f"asked: {select}\n" in shown


def test_what_a_call_learned_first_is_named_with_its_answer(tacit, tmp_path):
    place = str(tmp_path / "ledger.db")
    rows = pa.table({"person": list(range(300)), "ward": [WARDS[n % 2] for n in range(300)]})
    table = root.table(rows, unit="person", name="v", version=1, ledger=place, budget=root.epsilon(3, delta=1e-6))
    answer = table.group_by("ward").count().answer(epsilon=1)
    shown = tacit("ledger", "show", str(answer.facts.receipt["entry"]), "--ledger", place)
    assert "and for the facts that the same call learned first: ε = " in shown
    assert "(entries 4" in shown


def test_a_ledger_that_kept_no_words_is_read_as_before(tacit, tmp_path):
    place, file = str(tmp_path / "ledger.db"), str(tmp_path / "answer.json")
    with open_ledger(place) as ledger:
        ask(ledger, register(ledger, root.epsilon(1)), "one")
        ledger.verify()
    assert "asked: unknown" in tacit("ledger", "show", "5", "--ledger", place)
    tacit("certificate", "5", "--ledger", place, "--output", file)
    assert "asked: unknown" in tacit("certificate", "verify", file)
    assert "entry 9 does not exist" in tacit("ledger", "show", "9", "--ledger", place, code=2)


def test_a_certificate_whose_words_were_changed_does_not_verify(tacit, tmp_path):
    place, file = str(tmp_path / "ledger.db"), tmp_path / "answer.json"
    visits(place).count().answer(epsilon=1, learn=False)
    tacit("certificate", "5", "--ledger", place, "--output", str(file))
    whole = json.loads(file.read_text())
    for word in ("question", "shown"):
        file.write_text(json.dumps({**whole, word: whole[word].replace("visits", "others").replace("3", "4") + " "}))
        assert "does not verify" in tacit("certificate", "verify", str(file), code=2)


def test_an_answer_is_stored_though_its_text_could_not_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.asking.question.kept_text", lambda _: 1 / 0)
    place = str(tmp_path / "ledger.db")
    answer = visits(place).count().answer(epsilon=1, learn=False)
    assert not answer.facts.free
    with open_ledger(place) as ledger:
        assert "as_shown" not in ledger.answer_of(4).record
        ledger.verify()


def test_the_text_of_a_long_answer_is_its_first_rows_and_says_how_many_more_there_are(tacit, tmp_path):
    place, file = str(tmp_path / "ledger.db"), str(tmp_path / "answer.json")
    table = visits(place)
    listed = [*WARDS, *(f"ward {n}" for n in range(ROWS_KEPT))]
    answer = table.group_by("ward", keys=listed).agg(n=root.count()).answer(epsilon=1, learn=False)
    assert len(answer) == ROWS_KEPT + 3
    entry = str(answer.facts.receipt["entry"])
    tacit("certificate", entry, "--ledger", place, "--output", file)
    for shown in (tacit("ledger", "show", entry, "--ledger", place), tacit("certificate", "verify", file)):
        assert f"ward {ROWS_KEPT - 4} " in shown
        assert f"ward {ROWS_KEPT - 3} " not in shown
        assert "… and 3 more rows, which are kept as numbers, not as text" in shown


def test_no_cell_is_written_as_text_beyond_the_rows_that_are_shown_or_kept(tmp_path):
    answer = visits(str(tmp_path / "ledger.db")).group_by("ward").agg(n=root.count()).answer(epsilon=1, learn=False)
    row, unwritable = answer.rows[0], dict.fromkeys(answer.rows[0], object())
    for rows, write in ((ROWS_SHOWN, str), (ROWS_SHOWN, html_table), (ROWS_KEPT, kept_text)):
        assert str(row["n"]) in write(replace(answer, rows=[row] * rows + [unwritable]))
        with pytest.raises(TypeError):
            write(replace(answer, rows=[row] * (rows - 1) + [unwritable]))


@pytest.mark.parametrize("by", ["ward", "ROLLUP(ward)"])
def test_the_numbers_of_an_answer_are_computed_once_for_its_record_and_its_asker(tmp_path, monkeypatch, by):
    table, computed = visits(str(tmp_path / "ledger.db")), []
    for module, name in ((question, "make_answer"), (united_question, "make_compound_answer")):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *words, make=make, **more: computed.append(1) or make(*words, **more))
    asked = table.sql(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY {by}")
    first = asked.answer(epsilon=1, learn=False)
    assert computed == [1]
    assert not first.facts.free
    again = asked.answer(epsilon=1, learn=False)
    assert computed == [1, 1]
    assert again.facts.free
    assert again.to_dicts() == first.to_dicts()
