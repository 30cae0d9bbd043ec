"""Published tables: one layout in CSV, HTML and the workbook, and a note for the public in two languages."""

import csv
import io
import json
from dataclasses import replace

import pyarrow as pa
import pytest

import tacit
from tacit.answer import answer_of_certificate
from tacit.answer.panel import sheet
from tacit.errors import InvalidParameter, QueryRefused

REGIONS = ["east", "<b>", "=1+1"]
AGES = ["0-17", "18+"]


@pytest.fixture(scope="module")
def answer():
    rows = [(REGIONS[n % 3], AGES[n % 2]) for n in range(6000)]
    table = tacit.table(
        pa.table({"region": [row[0] for row in rows], "age": [row[1] for row in rows]}),
        name="pupils",
        unit=tacit.ROW,
        budget=tacit.epsilon(2, period="year"),
        columns={"region": {"keys": REGIONS}, "age": {"keys": AGES}},
        ledger=tacit.TRYOUT,
    )
    return table.group_by("region", "age", totals="all").count().answer(epsilon=1)


def test_a_wide_csv_has_groups_down_a_key_across_and_sums_that_hold(answer):
    head, *rows = csv.reader(io.StringIO(answer.to_csv(columns="age")))
    assert head[:5] == ["number", "region", "0-17", "18+", "Total"]
    numbers = {row[1]: [int(each) for each in row[2:5]] for row in rows}
    assert all(young + old == total for young, old, total in numbers.values())
    regions = [numbers[name] for name in numbers if name != "Total"]
    assert "'=1+1" in numbers
    assert [sum(each) for each in zip(*regions, strict=True)] == numbers["Total"]
    assert head[5:] == [f"{each}, {end}" for each in ("0-17", "18+", "Total") for end in ("low", "high")] + ["[low]"]
    assert all(int(row[5]) <= int(row[2]) <= int(row[6]) for row in rows)


def test_html_escapes_every_text_and_marks_what_is_hidden_or_uncertain(answer):
    page = answer.to_html(columns="age", title="<i>Pupils</i>")
    assert "<b>" not in page
    assert "<i>" not in page
    assert page.count('<th scope="row">') == 4
    assert "Certificate: entry" in page
    assert page.count("[low] <small>") == 0
    assert answer.to_html(columns="age", unsure_from=1e-9).count("[low] <small>") == 12
    rows = [{**row, "count": None, "count_low": None, "count_high": None} for row in answer.rows]
    hidden = replace(answer, rows=rows)
    assert hidden.to_html(columns="age").count("<td>[x]</td>") == 12
    assert hidden.to_csv(columns="age").count("[x]") == 3 * 12


def test_a_total_that_was_not_asked_for_is_not_marked_as_hidden(answer):
    rows = [row for at, row in enumerate(answer.rows) if not answer.rolled["region"][at] or answer.rolled["age"][at]]
    rolled = {name: [each[name] is None for each in rows] for name in ("region", "age")}
    some = replace(answer, rows=rows, rolled=rolled)
    assert some.to_csv(columns="age").splitlines()[1].startswith("count,Total,[z],[z],")
    assert "<td>[z]</td>" in some.to_html(columns="age")
    without = [row for row in rows if (row["region"], row["age"]) != ("east", "18+")]
    few = replace(answer, rows=without, rolled={name: [each[name] is None for each in without] for name in rolled})
    assert "<td>[x]</td>" in few.to_html(columns="age")  # its level was asked for: too few people


def test_what_cannot_go_across_is_refused(answer):
    for write in (answer.to_csv, answer.to_html):
        with pytest.raises(QueryRefused, match="its keys are region, age"):
            write(columns="ages")
        with pytest.raises(InvalidParameter, match="above 0"):
            write(columns="age", unsure_from=0)


def test_a_note_says_the_same_in_both_languages(answer):
    english, german = answer.note(title="Pupils"), answer.note("de", title="Schüler")
    assert english.startswith("# Pupils: How the numbers protect people")
    assert german.startswith("# Schüler: Wie die Zahlen Menschen schützen")
    kinds = [[line[:2] if line[:1] in "#-" else bool(line) for line in text.splitlines()] for text in (english, german)]
    assert kinds[0] == kinds[1]
    assert "at most 2.72 times as likely or unlikely (ε = 1)" in english
    assert "höchstens 2,72-mal so wahrscheinlich" in german
    for text in (english, german):
        assert f"{answer.facts.receipt['ledger']}" in text
        assert "\\x" not in text
    with pytest.raises(InvalidParameter, match="language='en' or language='de'"):
        answer.note("fr")


def test_a_note_of_a_kept_answer_is_made_from_its_certificate_only(answer):
    kept = answer_of_certificate(answer.certificate())
    assert "Counts and sums add up to their totals exactly" in kept.note()
    assert "Protected is each single record" in kept.note()
    with pytest.raises(InvalidParameter, match="not kept"):
        answer_of_certificate({**answer.certificate(), "shown": None})


def test_numbers_for_a_map_are_by_area(answer):
    found = json.loads(answer.to_json(areas="region"))
    assert set(found["areas"]) == {*REGIONS, "Total"}
    assert [each["age"] for each in found["areas"]["east"]] == ["Total", *AGES]
    assert set(found["areas"]["east"][0]) == {"age", "count", "count_low", "count_high"}
    with pytest.raises(QueryRefused, match="not a key"):
        answer.to_json(areas="land")


def test_a_picture_of_totals_has_a_panel_for_each_group_with_its_total_above(answer):
    drawn = sheet(answer)
    assert [panel.name.partition(":")[0] for panel in drawn.panels] == [f"count, {each}" for each in ("Total", *AGES)]
    assert all(" in all" in panel.name for panel in drawn.panels)
    assert all({cell.label for cell in panel.cells} == set(REGIONS) for panel in drawn.panels)
    assert "NULL" not in str(drawn)
