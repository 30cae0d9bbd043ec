"""`tacit ask --server` and `tacit plan --server`: the same words and codes, with the token out of sight."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tacit.cli.app import main
from tests.server.conftest import House
from tests.server.test_connect import WireInHere

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
WHERE = ("--server", "http://localhost:1")


@pytest.fixture
def command(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str, str]]:
    monkeypatch.setenv("TACIT_TOKEN", "tacit_ada")
    monkeypatch.setattr("tacit.remote.tables.Wire", lambda url, token: WireInHere(house, token))

    def run(*words: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(word) for word in words])
        shown = capsys.readouterr()
        return stopped.value.code, shown.out, shown.err

    return run


def test_an_answer_a_plan_and_their_formats(command: Callable[..., tuple[Any, str, str]]) -> None:
    code, out, _ = command("plan", "visits", COUNT, "--epsilon", "0.5", *WHERE)
    assert code == 0
    assert "Loss: ε = 0.5" in out
    code, out, _ = command("ask", "visits", COUNT, "--epsilon", "0.5", *WHERE)
    assert code == 0
    assert "Spent ε 0.5" in out
    code, out, _ = command("ask", "visits", COUNT, "--epsilon", "0.5", "--format", "json", *WHERE)
    assert json.loads(out)["free"]


def test_codes_are_those_of_a_table_that_is_here(command: Callable[..., tuple[Any, str, str]]) -> None:
    assert command("ask", "visits", COUNT, "--epsilon", 21, *WHERE)[0] == 3
    assert command("ask", "visits", "SELECT days FROM visits", "--epsilon", 1, *WHERE)[0] == 2
    assert command("ask", "nowhere", COUNT, "--epsilon", 1, *WHERE)[0] == 2
    code, _, err = command("ask", "visits", COUNT, "--epsilon", 1, "--unit", "patient", *WHERE)
    assert code == 2
    assert "--unit is declared on the server" in err
    assert command("audit", "ask", "visits", COUNT, "--epsilon", 1, *WHERE)[0] == 2


def test_the_token_is_in_the_environment(
    command: Callable[..., tuple[Any, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TACIT_TOKEN")
    code, _, err = command("ask", "visits", COUNT, "--epsilon", 1, *WHERE)
    assert code == 2
    assert "TACIT_TOKEN" in err


def test_what_a_token_may_ask_and_spend_is_listed(command: Callable[..., tuple[Any, str, str]]) -> None:
    code, out, _ = command("tables", *WHERE)
    assert code == 0
    assert "'visits', protected by patient" in out
    assert "answers leave" in out
    code, out, _ = command("budget", *WHERE)
    assert code == 0
    assert "visits: left: ε = 20" in out
    assert command("tables", "--catalog", "x.toml", *WHERE)[0] == 2
    assert command("budget", *WHERE, "grant", "visits", "--epsilon", 1)[0] == 2


def test_a_wrong_token_is_told_where_one_belongs(
    command: Callable[..., tuple[Any, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_TOKEN", "tacit_nobody")
    code, _, err = command("tables", *WHERE)
    assert code == 2
    assert "TACIT_TOKEN" in err
