"""Published tables: one layout in CSV, HTML and the workbook, and a note for the public in two languages."""

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import tacit
from tacit.answer import answer_of_certificate
from tacit.answer.answer_json import kept_answer
from tacit.answer.panel import sheet
from tacit.answer.text import kept_text
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
    assert "Each single record of the data is protected" in kept.note()
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


def test_a_total_without_parts_of_its_own_is_in_the_words_above_and_has_no_empty_panel():
    places = [(each, f"{each} {n}", age) for each in ("a", "b") for n in range(3) for age in (*AGES, "?")]
    rows = [places[n % len(places)] for n in range(6000)]
    table = tacit.table(
        pa.table(dict(zip(("region", "town", "age"), zip(*rows, strict=True), strict=True))),
        name="towns",
        unit=tacit.ROW,
        budget=tacit.epsilon(2),
        ledger=tacit.TRYOUT,
    )
    drawn = sheet(table.group_by("region", "town", "age", keys=places, totals=True).count().answer(epsilon=1))
    assert [panel.name.partition(":")[0] for panel in drawn.panels] == ["count, a", "count, b"]
    assert drawn.cut.startswith("Total: ")
    assert drawn.cut.endswith(" in all")


def test_a_kept_answer_with_totals_is_drawn_as_the_fresh_one(answer):
    kept = kept_answer(kept_text(answer), answer.facts)
    assert sheet(kept) == sheet(answer)
    assert kept.to_csv() == answer.to_csv()


def test_whole_numbers_that_add_up_are_printed_with_all_digits(answer):
    large = replace(answer, rows=[{**row, "count_high": row["count_high"] + 5000} for row in answer.rows])
    printed = [line.split() for line in str(large).splitlines()[2:14]]
    numbers = {(region, age): int(count.replace(",", "")) for region, age, count, *_ in printed}
    assert numbers["Total", "Total"] == sum(numbers[region, age] for region in REGIONS for age in AGES)
    assert f"{numbers['Total', AGES[0]]:,}  (" in str(sheet(large))


def table_of(keys):
    rows = {"key": [keys[n % len(keys)] for n in range(3000)], "age": [AGES[n % 2] for n in range(3000)]}
    facts = {"key": {"keys": keys}, "age": {"keys": AGES}}
    return tacit.table(pa.table(rows), unit=tacit.ROW, budget=tacit.epsilon(1000), columns=facts, ledger=tacit.TRYOUT)


def test_sums_of_decimals_add_up_as_printed_and_in_files_too():
    table = tacit.table(
        pa.table({"region": REGIONS * 800, "paid": [n % 977 / 100 for n in range(2400)]}),
        name="bills",
        unit=tacit.ROW,
        budget=tacit.epsilon(2),
        columns={"region": {"keys": REGIONS}, "paid": {"between": (0, 9.76)}},
        ledger=tacit.TRYOUT,
    )
    answer = table.group_by("region", totals=True).sum("paid").answer(epsilon=1)
    printed = [line.split() for line in str(answer).splitlines()[2:6]]
    whole, *parts = [Decimal(words[1].replace(",", "")) for words in printed]
    assert printed[0][0] == "Total"
    assert sum(parts) == whole
    row = answer.to_csv(columns="region").splitlines()[1].split(",")[1:5]
    assert sum(map(Decimal, row[:3])) == Decimal(row[3]) == whole
    assert all(low <= value <= high for _, value, low, high in (tuple(each.values()) for each in answer.to_dicts()))


def test_groups_that_are_called_total_or_other_stay_beside_the_totals(tmp_path):
    keys = ["Total", "Other", '"Total"', "NULL", "a"]
    made = table_of(keys).group_by("key", "age", totals=True).count().answer(epsilon=100)
    _, *rows = csv.reader(io.StringIO(made.to_csv(columns="age")))
    assert [row[1] for row in rows] == ["Total", '"Total"', "Other", '""Total""', "NULL", "a"]
    assert [row[4] for row in rows] == ["3000", *["600"] * 5]
    assert set(json.loads(made.to_json(areas="key"))["areas"]) == {row[1] for row in rows}
    long = csv.DictReader(io.StringIO(made.to_csv()))
    assert [row["count"] for row in long if row["key"] == "Total"] == ["3000"]
    made.to_excel(tmp_path / "a.xlsx", columns="age")
    assert len(set(str(made).splitlines()[2:18])) == 16


def test_others_are_not_divided_further_and_that_is_not_marked_as_hidden():
    question = table_of(["a", "b"]).group_by("key", "age", keys=[("a", AGES[0])], totals=True, other=True).count()
    _, *rows = csv.reader(io.StringIO(question.answer(epsilon=100).to_csv(columns="age")))
    assert [row[:5] for row in rows] == [
        ["count", "Total", "[z]", "[z]", "3000"],
        ["count", "a", "1500", "0", "1500"],
        ["count", "Other", "[z]", "1500", "1500"],
    ]


def test_decimals_that_differ_in_a_late_digit_are_groups_of_their_own():
    texts = ["1234567.25", "1234567.26", "12345678901234567890.5"]
    rows = pa.table({"key": pa.array([Decimal(texts[n % 3]) for n in range(3000)], pa.decimal128(30, 2))})
    frame = rows.append_column("age", pa.array([AGES[n % 2] for n in range(3000)]))
    table = tacit.table(frame, unit=tacit.ROW, budget=tacit.epsilon(100, delta="1e-6"), ledger=tacit.TRYOUT)
    made = table.group_by("key", "age", totals=True).count().answer(epsilon=50)
    _, *found = csv.reader(io.StringIO(made.to_csv(columns="age")))
    assert sorted(row[1] for row in found) == sorted([*texts, "Total"])
    assert all(text in str(made) for text in texts)


@pytest.mark.parametrize(
    ("given", "english"),
    [
        ({}, "No total is the data's exact number"),
        ({"public_totals": {"total": 3000}}, "were public before, and are exact"),
    ],
)
def test_a_note_says_which_totals_have_noise(given, english):
    made = table_of(["a", "b"]).group_by("key", "age", totals=True, **given).count().answer(epsilon=10)
    assert english in made.note()
    assert "Counts and sums add up" in made.note()


def test_a_note_does_not_promise_sums_of_what_does_not_add_up():
    made = table_of(["a", "b"]).group_by("key", totals=True).count_distinct("age", per_unit=1)
    note = made.answer(epsilon=10, accept_noise=True).note()
    assert "the parts of a total do not add up to it" in note
    assert "add up to their totals exactly" not in note
