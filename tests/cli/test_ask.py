"""`tacit ask`: an answer and a zero, or a reason and a code; what is refused is neither charged nor declared."""

import json

import pyarrow.parquet as pq
import pytest

from tacit.ledger.home import default_ledger, open_ledger
from tacit.tables import formats
from tacit.tables.source import Source

BOUNDS = ("--unit", "patient", "--rows-per-unit", 1, "--groups-per-unit", 1, "--most-rows-per-unit", 1)
BUDGET = ("--budget", 3, "--delta", "1e-6")
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits"


def charges() -> int:
    """How often the ledger was charged."""
    if not default_ledger().exists():
        return 0
    with open_ledger() as ledger:
        return sum(entry.kind == "charge" for entry in ledger.entries())


def test_an_answer_has_bars_what_it_cost_and_whom_it_protects(tacit_command, visits):
    ran = tacit_command("ask", visits, BY_WARD, *BOUNDS, *BUDGET, "--between", "days=0:10", "--epsilon", 1)
    assert (ran.code, ran.err) == (0, "")
    assert "± 95 %" in ran.out
    assert "Spent ε 1" in ran.out
    assert "all rows of one patient" in ran.out
    assert charges() == 1


def test_json_is_one_object(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", "0.1", "--format", "json")
    answer = json.loads(ran.out)
    assert {"rows", "loss", "left", "unit", "neighbours", "receipt"} <= set(answer)
    assert answer["loss"]["epsilon"] == 0.1
    (row,) = answer["rows"]
    assert row["n_low"] <= row["n"] <= row["n_high"]


def test_csv_has_a_low_and_a_high_column(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1, "--format", "csv")
    assert ran.out.splitlines()[0] == "n,n_low,n_high"
    assert len(ran.out.splitlines()) == 2


def test_parquet_goes_to_a_file(tacit_command, visits, tmp_path):
    file = tmp_path / "answer.parquet"
    words = ("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1, "--format", "parquet")
    assert tacit_command(*words, "--output", file).code == 0
    assert pq.read_table(file).column_names == ["n", "n_low", "n_high"]


def test_a_second_name_shares_the_budget_when_the_words_say_so(tacit_command, visits):
    """Without them it is refused, with the words to add: a second name would be a second budget for the same people."""
    assert tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 2).code == 0
    again = ("ask", visits, "SELECT COUNT(*) AS n FROM stays", *BOUNDS, "--name", "stays")
    refused = tacit_command(*again, "--epsilon", 1, *BUDGET)
    assert refused.code == 2
    assert "--same-people-as visits" in refused.err
    assert tacit_command(*again, "--same-people-as", "visits", "--epsilon", "1.5").code == 3
    assert tacit_command(*again, "--same-people-as", "visits", "--epsilon", "0.5").code == 0


def test_the_same_question_again_is_free_and_the_same(tacit_command, visits):
    words = ("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1, "--format", "csv")
    assert tacit_command(*words).out == tacit_command(*words).out
    assert charges() == 1


def test_no_room_is_code_3_with_the_reason_on_stderr(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 4)
    assert (ran.code, ran.out) == (3, "")
    assert "has no room" in ran.err
    assert charges() == 0


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (("--format", "xml"), "--format must be one of"),
        (("--format", "parquet"), "--output answer.parquet"),
        (("--output", "/no/such/folder/answer.csv"), "answer.csv cannot be written"),
        (("--between", "days"), "COLUMN=VALUE"),
        (("--between", "days=5"), "--between days=0:100"),
        (("--between", "=0:1"), "COLUMN=VALUE"),
        (("--between", "days=0:9", "--between", "days=0:8"), "names 'days' twice"),
        (("--between", "dayz=0:9"), "dayz"),
        (("--keys", "floor=ground"), "a key of 'floor' must be a number"),
        (("--type", "floor=number"), "must be one of bool, int"),
        (("--neighbours", "next-door"), "add-remove"),
        (("--noise", "pink"), "laplace"),
        (("--confidence", "2"), "confidence"),
        (("--epsilon", "nan"), "finite"),
        (("--unit", "patent"), "did you mean 'patient'"),
    ],
)
def test_a_mistake_is_code_2_before_anything_is_charged(tacit_command, visits, extra, reason):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1, *extra)
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert "Traceback" not in ran.err
    assert charges() == 0


NEVER = ("--learn", "no")


def test_a_refused_question_declares_no_budget(tacit_command, visits):
    """A budget is for life, so a mistyped first question must not fix it."""
    assert tacit_command("ask", visits, COUNT, "--unit", "patient", "--budget", 3, "--epsilon", 1, *NEVER).code == 2
    assert tacit_command("ask", visits, COUNT, *BOUNDS, "--budget", 5, "--epsilon", 1).code == 0


def test_a_new_table_needs_a_budget(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, "--epsilon", 1)
    assert ran.code == 2
    assert "budget" in ran.err


def test_delta_belongs_to_the_budget_with_one_and_to_the_call_without(tacit_command, visits):
    words = ("ask", visits, BY_WARD, *BOUNDS, "--between", "days=0:10", "--epsilon", 1, "--format", "json")
    first = json.loads(tacit_command(*words, *BUDGET).out)
    assert 0 < first["loss"]["delta"] <= 1e-6 / 3 * 1.0001  # a third of the budget's epsilon has a third of its delta
    call = json.loads(tacit_command(*words, "--delta", "1e-7").out)
    assert 0 < call["loss"]["delta"] <= 1e-7


@pytest.mark.parametrize(
    ("column", "written", "keys"),
    [
        ("ward", 'A,"B, west"', ["A", "B, west"]),
        ("floor", "1, 2,3", [1, 2, 3]),
        ("urgent", "true,false", [True, False]),
        ("day", "2026-01-01,2026-01-02", ["2026-01-01", "2026-01-02"]),
        ("days", "1,2.0", [1.0, 2.0]),
    ],
)
def test_keys_are_read_as_the_columns_type(tacit_command, visits, column, written, keys):
    sql = f"SELECT {column}, COUNT(*) AS n FROM visits GROUP BY {column}"
    words = (*BOUNDS, "--budget", 30, "--epsilon", 20, "--keys", f"{column}={written}", "--format", "json")
    rows = json.loads(tacit_command("ask", visits, sql, *words).out)["rows"]
    assert [row[column] for row in rows] == keys
    assert all(row["n"] > 100 for row in rows)  # they met the rows' own values


def test_csv_columns_are_text_unless_typed(tacit_command, tmp_path):
    path = tmp_path / "pay.csv"
    path.write_text("who,pay\n" + "".join(f"{who},{who % 7}\n" for who in range(2000)))
    words = ("ask", path, "SELECT AVG(pay) AS pay FROM pay", "--unit", "who", "--rows-per-unit", 1, *BUDGET)
    assert tacit_command(*words, "--epsilon", 1, "--between", "pay=0:7").code == 2
    assert tacit_command(*words, "--epsilon", 1, "--between", "pay=0:7", "--type", "pay=int").code == 0


def test_each_row_can_be_its_own_unit(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, "--unit", "ROW", "--budget", 3, "--epsilon", 1)
    assert ran.code == 0
    assert "Protects each row." in ran.out


def test_a_column_named_row_is_not_taken_for_the_row(tacit_command, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("ROW\n1\n1\n")
    ran = tacit_command("ask", path, "SELECT COUNT(*) FROM t", "--unit", "ROW", "--budget", 3, "--epsilon", 1)
    assert ran.code == 2
    assert "a column named ROW" in ran.err


def test_a_failure_after_the_charge_is_code_4_and_quotes_nothing(tacit_command, visits, monkeypatch):
    def fail(self, *_):
        raise ValueError("Ada Lovelace has 12 visits")

    monkeypatch.setattr(Source, "fetch", fail)
    monkeypatch.setattr(Source, "stream", fail)
    monkeypatch.setattr(Source, "streaming", fail)  # nor does the path that goes on where a quick one stops
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1)
    assert (ran.code, ran.out) == (4, "")
    assert "Ada" not in ran.err
    assert "the charge stands" in ran.err
    assert charges() == 1


def test_what_a_select_adds_up_can_be_given_a_range_by_name(tacit_command, visits):
    words = ("ask", visits, "SELECT SUM(days * floor) AS total FROM visits", *BOUNDS, *BUDGET, "--epsilon", 1)
    refused = tacit_command(*words, "--learn", "no")
    assert refused.code == 2
    assert "--between total=0:100" in refused.err
    assert tacit_command(*words, "--between", "total=0:30").code == 0


def test_only_a_sum_or_mean_has_a_range(tacit_command, visits):
    ran = tacit_command("ask", visits, COUNT, *BOUNDS, *BUDGET, "--epsilon", 1, "--between", "n=0:30")
    assert ran.code == 2
    assert "nor a sum or mean" in ran.err


def test_a_consistent_answer_has_no_negative_count(tacit_command, visits):
    keys = ",".join(f"nobody {place}" for place in range(40))
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    words = ("ask", visits, sql, *BOUNDS, *BUDGET, "--epsilon", "0.1", "--keys", f"ward={keys}", "--format", "json")
    counts = [
        [row["n"] for row in json.loads(tacit_command(*words, *more).out)["rows"]] for more in ((), ["--consistent"])
    ]
    assert min(counts[0]) == min(counts[1]) == 0  # of 40 draws, none is below 0 with a chance of 1e-11


def test_one_command_opens_its_table_once(tacit_command, visits, monkeypatch):
    opened, from_files = [], formats._from_files

    def counted(*given):
        opened.append(given)
        return from_files(*given)

    monkeypatch.setattr(formats, "_from_files", counted)
    ran = tacit_command("ask", visits, BY_WARD, *BOUNDS, *BUDGET, "--between", "days=0:10", "--epsilon", 1)
    assert (ran.code, len(opened)) == (0, 1)


def test_an_epsilon_above_10_is_warned_about_in_one_line_and_answered(tacit_command, visits):
    ran = tacit_command("ask", visits, "SELECT COUNT(*) FROM visits", *BOUNDS, "--budget", 30, "--epsilon", 20)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        f"tacit: warning: ε = {large} is above 10: the promise to one person is close to none" for large in (30, 20)
    ]


def test_a_grant_above_10_is_warned_about(tacit_command, visits):
    assert tacit_command("ask", visits, "SELECT COUNT(*) FROM visits", *BOUNDS, *BUDGET, "--epsilon", 1).err == ""
    ran = tacit_command("budget", "grant", "visits", "--epsilon", 40)
    assert (ran.code, "warning: ε = 40 is above 10" in ran.err) == (0, True)


SEVERAL = f"{COUNT}; {BY_WARD}"


def test_selects_with_semicolons_are_one_charge_and_an_answer_each(tacit_command, visits, tmp_path):
    common = (*BOUNDS, *BUDGET, "--between", "days=0:10", "--epsilon", 1)
    planned = tacit_command("plan", visits, SEVERAL, *common)
    assert "2 questions, charged together" in planned.out
    ran = tacit_command("ask", visits, SEVERAL, *common)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.index("--- 1") < ran.out.index("--- 2") < ran.out.index("Spent ε 1")
    assert charges() == 1
    as_json = tacit_command("ask", visits, SEVERAL, *common, "--format", "json")
    assert list(json.loads(as_json.out)["parts"]) == ["1", "2"]
    assert tacit_command("ask", visits, SEVERAL, *common, "--format", "csv").out.startswith("1\nn,n_low,n_high\n")
    refused = tacit_command(
        "ask", visits, SEVERAL, *common, "--format", "parquet", "--output", tmp_path / "answer.parquet"
    )
    assert refused.code == 2
    assert "several questions" in refused.err
    assert charges() == 1
    weighed = tacit_command("plan", visits, SEVERAL, *common, "--weights", "1=27")
    assert weighed.code == 0
    assert "ε = 0.75 for one unit" in weighed.out
