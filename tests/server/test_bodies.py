"""Bodies that no client of ours sends: each is refused before a plan, none is charged, none breaks the server."""

import json
from fractions import Fraction
from typing import Any

import pytest

from tacit.answer import answer_from, answer_record
from tacit.answer.answer import Answer, AnswerInfo, AnswerRows
from tacit.json_wire import write_json
from tests.server.conftest import House

COLUMN = "days"
TREE: dict[str, Any] = {
    "format": 2,
    "table": "visits",
    "where": None,
    "keys": [],
    "public_keys": None,
    "outputs": [{"name": "n", "aggregate": "count", "expression": None}],
    "order": [],
    "limit": None,
}

RAW: list[bytes] = [
    b"",
    b"null",
    b"[]",
    b'"SELECT 1"',
    b"{",
    b"\xff\xfe",
    b"NaN",
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": NaN}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": Infinity}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": -Infinity}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 1e400}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.1}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": "1", "epsilon": "0.1"}',
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": ' + b"9" * 5000 + b"}",
    b'{"sql": "SELECT COUNT(*) FROM visits", "epsilon": "1", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 500_000,
    b'{"a":' * 100_000,
    b'{"sql": "\\ud800", "epsilon": "1"}',
    b'{"sql": "' + b"x" * 2_000_000 + b'"}',
]

SQL = "SELECT COUNT(*) AS n FROM visits"
WORDED: list[dict[str, Any]] = [
    {"sql": SQL},
    {"epsilon": "1"},
    {"sql": SQL, "question": TREE, "epsilon": "1"},
    {"sql": 5, "epsilon": "1"},
    {"sql": SQL, "epsilon": True},
    {"sql": SQL, "epsilon": []},
    {"sql": SQL, "epsilon": "nan"},
    {"sql": SQL, "epsilon": "inf"},
    {"sql": SQL, "epsilon": "1e999999999"},
    {"sql": SQL, "epsilon": "1/0"},
    {"sql": SQL, "epsilon": "-1"},
    {"sql": SQL, "epsilon": "0"},
    {"sql": SQL, "epsilon": "one"},
    {"sql": SQL, "epsilon": "1", "delta": "2"},
    {"sql": SQL, "epsilon": "1", "confidence": "2"},
    {"sql": SQL, "epsilon": "1", "noise": "none"},
    {"sql": SQL, "epsilon": "1", "noise": 5},
    {"sql": SQL, "epsilon": "1", "weights": []},
    {"sql": SQL, "epsilon": "1", "weights": {"m": "1"}},
    {"sql": SQL, "epsilon": "1", "between": {"n": "0"}},
    {"sql": SQL, "epsilon": "1", "between": {"n": [0]}},
    {"sql": SQL, "epsilon": "1", "per_unit": {"n": "1"}},
    {"sql": SQL, "epsilon": "1", "most": {"visits": "x"}},
    {"sql": SQL, "epsilon": "1", "dialect": "klingon"},
    {"sql": SQL, "epsilon": "1", "learn": 5},
    {"sql": SQL, "epsilon": "1", "consistent": 1},
    {"sql": SQL, "epsilon": "1", "accept_noise": 1},
    {"sql": SQL, "error": {"n": {"n": "1"}}},
    {"sql": SQL, "error": "2%", "for_groups_of": "many"},
    {"sql": SQL, "error": "2%", "epsilon": "1"},
    {"sql": SQL, "epsilon": "1", "analyst": "ben"},
    {"sql": SQL, "epsilon": "1", "hold": "0s"},
    {"sql": "SELECT days FROM visits", "epsilon": "1"},
    {"sql": "SELECT COUNT(*) FROM visits; DROP TABLE visits", "epsilon": "1"},
]


def tree(**changes: Any) -> dict[str, Any]:
    return {"question": {**TREE, **changes}, "epsilon": "1"}


def output(**parts: Any) -> dict[str, Any]:
    return tree(outputs=[{"name": "n", "expression": COLUMN, **parts}])


TREES: list[dict[str, Any]] = [
    {"question": 5, "epsilon": "1"},
    {"question": None, "epsilon": "1"},
    tree(format=1),
    tree(format="1"),
    tree(table="pay"),
    tree(table=5),
    tree(extra=1),
    tree(outputs=[]),
    tree(outputs=5),
    tree(outputs=[TREE["outputs"][0]] * 2),
    tree(outputs=[{"name": f"n{i}", "aggregate": "count", "expression": None} for i in range(500)]),
    tree(columns=["n", "patient"]),
    *(
        tree(where=where)
        for where in (
            COLUMN,
            5,
            [],
            {"column": "days"},
            "",
            "patient",
            "patient = 3",
            "nowhere",
            "days =",
            "ABS(days, days) = 1",
            "system('rm') = 1",
            "__class__(days) = 1",
            "days = 1e999999999",
            "days = DATE '0000-00-00'",
            "days = \ud800",
            "days > 1; DROP TABLE visits",
            "(SELECT MAX(days) FROM visits) > 1",
            "days IN (SELECT days FROM visits)",
            "ABS(" * 60 + "days" + ")" * 60 + " > 1",
        )
    ),
    tree(keys=[["k", "1"]]),
    tree(keys=[["k", "patient"]]),
    tree(keys=[["k"]]),
    tree(keys=[[5, "ward"]]),
    tree(keys=[["days", "ABS(days)"]]),
    tree(public_keys=[["A"]]),
    tree(public_keys=5),
    tree(keys=[["ward", "ward"]], public_keys=[["A", "B"]]),
    tree(keys=[["ward", "ward"]], public_keys=[[["A"]]]),
    tree(keys=[["ward", "ward"]], totals="some"),
    tree(keys=[["ward", "ward"]], other="yes"),
    tree(keys=[["ward", "ward"]], totals=True, public_totals={"nowhere": [[["A"], "1"]]}),
    tree(totals=True),
    tree(limit=-1),
    tree(limit="5"),
    tree(offset=1),
    tree(order=[["days", False]]),
    tree(order=[["n", "yes"]]),
    tree(having="n > 1"),
    output(aggregate="total"),
    output(aggregate="count_units"),
    output(aggregate="sum", between=["30", "0"]),
    output(aggregate="sum", between=["0"]),
    output(aggregate="sum", between=[0, 30]),
    output(aggregate="sum", step="0"),
    output(aggregate="sum", fraction="1/2"),
    output(aggregate="mean", best=1),
    output(aggregate="quantile", fraction="3/2"),
    output(aggregate="quantile", fraction="999999/1000000"),
    output(aggregate="quantile"),
    output(aggregate="quantile", fraction="1/2", of="nobody"),
    output(aggregate="covariance"),
    output(aggregate="covariance", other=COLUMN),
    output(aggregate="count_distinct", per_unit=0),
    output(aggregate="count_distinct", per_unit="all"),
    output(aggregate="top"),
    tree(outputs=[{"name": "n", "aggregate": "top", "best": 1}]),
]


@pytest.mark.parametrize("paths_each", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_none_is_answered_charged_or_an_error_of_the_servers(house: House, paths_each: int) -> None:
    """Both paths read a body by the same reader: here they take turns, and `make slow` sends each body to both."""
    bodies = [*RAW, *(json.dumps(each).encode() for each in (*WORDED, *TREES))]
    wrong = []
    for at, body in enumerate(bodies):
        for path in (("plan", "questions") * 2)[at % 2 :][:paths_each]:
            reply = house.send("POST", f"/api/v1/tables/visits/{path}", content=body)
            problem = reply.json()
            if not (400 <= reply.status_code < 500 and problem["type"].startswith("urn:tacit:") and problem["detail"]):
                wrong.append((path, body[:200], reply.status_code, reply.text[:200]))
    assert wrong == []
    assert [entry.kind for entry in house.desk.ledger.entries() if entry.kind == "charge"] == []
    assert house.ask({"question": TREE, "epsilon": "1"}).status_code == 200


def test_a_hundred_megabytes_are_refused_after_the_first(house: House) -> None:
    sent = 0

    async def chunks() -> Any:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b"x" * 1_000_000

    reply = house.send("POST", "/api/v1/tables/visits/questions", content=chunks())
    assert (reply.status_code, reply.json()["type"]) == (413, "urn:tacit:too-large")


@pytest.mark.parametrize("written", ["0.1", "1/10", "1e-1"])
def test_an_amount_is_exact_text(house: House, written: str) -> None:
    reply = house.ask({"sql": SQL, "epsilon": written})
    assert reply.json()["facts"]["loss"]["text"] == "ε = 0.1"
    table = house.desk.ledger.table("visits")
    assert table is not None
    assert str(house.desk.ledger.spent(table).epsilon) == "1/10"


def test_counts_have_all_their_digits() -> None:
    huge = 2**64 + 1
    info = AnswerInfo({}, {}, "each row", "replace one", Fraction(19, 20), True, False)
    columns = {
        "n": [huge],
        "n_low": [-huge],
        "n_high": [float("inf")],
        "x": [0.1],
        "x_low": [1e-300],
        "x_high": [1 / 3],
    }
    answer = Answer(AnswerRows(columns), ("n", "x"), dict.fromkeys(columns, "int"), ("n", "x"), info)
    body = write_json(answer_record(answer))
    assert b"18446744073709551617" in body
    assert answer_from(json.loads(body), {}).to_dicts() == answer.to_dicts()


@pytest.mark.parametrize("name", ["between", "weights", "per_unit", "most", "error"])
def test_an_object_with_very_many_names_is_refused_before_it_is_read(house: House, name: str) -> None:
    given = {f"c{number}": ["0", "1"] if name == "between" else "1" for number in range(1_001)}
    reply = house.send("POST", "/api/v1/tables/visits/plan", json={"sql": "SELECT COUNT(*) FROM visits", name: given})
    assert reply.status_code == 422
    assert "more than 1000 names" in reply.json()["detail"]
