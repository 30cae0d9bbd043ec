"""The command line: its help teaches, its version is ours, and an error is a message and a code, never a trace."""

from collections.abc import Callable

import pytest

import tacit
from tacit.cli import app as door
from tacit.errors import BudgetExceeded, EngineError, InvalidParameter, NoRandomness


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        door.main(words)
    return stopped.value.code or 0


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], None]:
    def fail_with(error: Exception) -> None:
        def stand_in(**_: object) -> None:
            raise error

        monkeypatch.setattr(door, "app", stand_in)

    return fail_with


def test_version_is_the_package_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"tacit {tacit.__version__}\n"


def test_help_shows_where_to_start(capsys):
    assert run("--help") == 0
    assert "tacit demo" in capsys.readouterr().out


def test_no_words_at_all_show_the_help(capsys):
    run()
    assert "Usage: tacit" in capsys.readouterr().out


def test_an_unknown_command_is_refused_by_name(capsys):
    assert run("dmeo") == 2
    assert "dmeo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidParameter("epsilon must be above 0"), 2),
        (BudgetExceeded("no room for epsilon 1"), 3),
        (EngineError("the charge stands"), 4),
        (NoRandomness("no randomness, no answer"), 4),
    ],
)
def test_our_error_is_its_message_on_stderr_and_a_code(failing, capsys, error, code):
    failing(error)
    assert run("demo") == code
    shown = capsys.readouterr()
    assert shown.err == f"tacit: {error}\n"
    assert shown.out == ""


def test_an_unexpected_error_shows_its_class_and_never_its_text(failing, capsys):
    failing(ValueError("could not convert 'Ada Lovelace' to a number"))
    assert run("demo") == 1
    shown = capsys.readouterr().err
    assert "ValueError" in shown
    assert "Ada" not in shown
    assert "Traceback" not in shown


def test_the_curator_can_ask_for_the_trace(failing, monkeypatch):
    monkeypatch.setenv("TACIT_DEBUG", "1")
    failing(ValueError("the whole story"))
    with pytest.raises(ValueError, match="the whole story"):
        door.main(["demo"])
