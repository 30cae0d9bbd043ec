"""A rehearsal runs a release on public rows beside the truth; protected rows are refused, and nothing is charged."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import InvalidParameter, QueryRefused

COLUMNS = {"ward": {"keys": ["a", "b"]}, "days": {"between": (0, 10)}}


def rows(shift=0):
    return pa.table(
        {
            "who": [n % 400 for n in range(2000)],
            "ward": [("a", "b")[(n + shift) % 2] for n in range(2000)],
            "days": [float(n % 7) for n in range(2000)],
        }
    )


def protected(source, **more):
    given = {"unit": "who", "name": "visits", "budget": tacit.epsilon(3, delta=1e-6), "ledger": tacit.TRYOUT}
    return tacit.table(source, **{**given, "rows_per_unit": 5, "groups_per_unit": 2, "columns": COLUMNS, **more})


def asked(table):
    return table.group_by("ward").agg(n=tacit.count(), people=tacit.count_units(), days=tacit.mean("days"))


def test_errors_are_against_the_truth_about_the_public_rows_and_nothing_is_charged():
    table = protected(rows())
    found = asked(table).rehearse(epsilon=[1, 500], on=rows(shift=1).slice(500))
    assert [(row["epsilon"], row["number"]) for row in found.rows] == [
        (each, name) for each in (1, 500) for name in ("n", "people", "days")
    ]
    # at ε = 500 a larger error has a probability below 1e-9, so the truth is that of these 1,500 rows
    last = {row["number"]: row for row in found.rows[3:]}
    assert last["people"]["most"] <= 2
    assert last["n"]["most"] <= 2
    assert last["days"]["most"] <= 0.1
    assert all(row["hidden"] == 0 for row in last.values())
    assert "treated as public" in str(found)
    assert [entry.kind for entry in table.session.ledger.entries() if entry.kind == "charge"] == []


def test_totals_are_rehearsed_too():
    table = protected(rows())
    found = table.group_by("ward", totals=True).count().rehearse(epsilon=[1], on=rows(shift=1))
    assert found.rows[0]["hidden"] == 0


def test_an_epsilon_without_any_group_is_a_row_in_words_beside_the_others():
    open_wards = {name: facts for name, facts in COLUMNS.items() if name != "ward"}
    table = protected(rows(), columns=open_wards, rows_per_unit=None, groups_per_unit=None)
    question = table.group_by("ward").count()
    found = question.rehearse(epsilon=[0.01, 20], on=rows(shift=1))
    refused, shown = found.rows
    assert (refused["half"], refused["hidden"], shown["hidden"]) == (None, 1, 0)
    assert shown["refused"] is None
    assert f"ε = 0.01 is refused: {refused['refused']}." in str(found)
    assert "no group" in refused["refused"]
    assert "spent" not in refused["refused"]
    with pytest.raises(QueryRefused, match="larger epsilon"):
        question.rehearse(epsilon=[0.01], on=rows(shift=1))


def test_protected_rows_are_refused_in_words_however_they_are_given(tmp_path):
    frame = rows().to_pandas()
    path = tmp_path / "visits.parquet"
    pq.write_table(rows(), path)
    table, filed = protected(frame), protected(str(path), name="filed")
    for question, on in ((asked(table), frame), (asked(filed), str(path)), (asked(filed), str(tmp_path / "*.parquet"))):
        with pytest.raises(QueryRefused, match="protected here"):
            question.rehearse(epsilon=[1], on=on)
    for on in (table, filed, None):
        with pytest.raises(InvalidParameter, match="public or no longer secret"):
            asked(table).rehearse(epsilon=[1], on=on)
    with pytest.raises(TypeError, match="on"):
        asked(table).rehearse(epsilon=[1])


def test_public_rows_may_be_used_again_and_amounts_are_a_list():
    table, public = protected(rows()), pd.DataFrame(rows(shift=1).to_pandas())
    for _ in range(2):
        asked(table).rehearse(epsilon=[1], on=public)
    for wrong in ([], "1", 1, [0]):
        with pytest.raises(InvalidParameter, match="epsilon"):
            asked(table).rehearse(epsilon=wrong, on=public)


def test_a_picture_has_a_panel_for_each_number(tmp_path):
    found = asked(protected(rows())).rehearse(epsilon=[1, 3], on=rows(shift=1))
    path = tmp_path / "rehearsal.svg"
    found.plot(path)
    text = path.read_text()
    assert all(f"error of {name}" in text for name in ("n", "people", "days"))
    assert "treated as public" in text
