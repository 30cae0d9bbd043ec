"""`consistent=True`: impossible numbers become the nearest possible ones, and it costs nothing."""

from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.asking import Question


@pytest.fixture
def question() -> Question:
    rows = pa.table({"id": range(40), "g": ["a"] * 40, "x": [100.0] * 40, "k": [3] * 40})
    table = tacit.table(
        rows, unit="id", budget=tacit.epsilon(100), ledger=":memory:", rows_per_unit=1, groups_per_unit=1,
        columns={"x": {"between": (0, 100)}, "k": {"between": (-2, 3)}},
    )  # fmt: skip
    keys = ["a", *(f"nobody {n}" for n in range(60))]
    return table.group_by("g", keys=keys).agg(
        n=tacit.count(),
        known=tacit.count("x"),
        people=tacit.count_units(),
        total=tacit.sum("x"),
        pieces=tacit.sum("k"),
        m=tacit.median("x"),
        hi=tacit.max("x"),
    )


def impossible(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {
        "negative counts": sum(min(row["n"], row["known"], row["people"], row["n_low"]) < 0 for row in rows),
        "parts above their whole": sum(max(row["known"], row["people"]) > row["n"] for row in rows),
        "sums outside their counts": sum(not 0 <= row["total"] <= 100 * row["known"] for row in rows),
        "values outside their range": sum(row["m_low"] < 0 or row["hi_high"] > 100 for row in rows),
        "values outside their interval": sum(
            not row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            for row in rows
            for name in ("n", "known", "people", "total", "pieces", "m", "hi")
        ),
    }


def test_impossible_numbers_are_gone_and_the_answer_is_free_again(question: Question) -> None:
    plain = question.answer(epsilon=1)
    made = question.answer(epsilon=1, consistent=True)
    assert made.facts.free
    assert "Made consistent" in made.details()
    found = impossible(plain.to_dicts())
    assert found["negative counts"] == 0  # cut in every answer
    rows = plain.to_dicts()  # so the test can fail: one row that has more values than rows
    assert (
        impossible([*rows, {**rows[0], "known": rows[0]["n"] + 1}])["parts above their whole"]
        > found["parts above their whole"]
    )
    assert set(impossible(made.to_dicts()).values()) == {0}


def test_what_was_possible_stays_as_it_was(question: Question) -> None:
    plain, made = (question.answer(epsilon=90, consistent=how).to_dicts()[0] for how in (False, True))
    assert (plain["n"], plain["m"]) == (made["n"], made["m"])
