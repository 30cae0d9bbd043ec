"""A sign of life: after a while, on a terminal alone, and with no number that rows could have set."""

import io
import time

import pytest

from tacit.cli import screen as progress


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def stand_at(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Put a screen in the place of stderr: in the test itself, since capturing starts anew after its fixtures."""
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_quick_work_shows_nothing(monkeypatch):
    screen = stand_at(Terminal(), monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 3600)  # any machine is quick enough
    with progress.working("working"):
        pass
    assert screen.getvalue() == ""


def test_long_work_shows_a_sign_of_life(monkeypatch):
    until = time.monotonic() + 60
    screen = stand_at(Terminal(), monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.working("working"):
        while "working" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "working" in screen.getvalue()


def test_a_pipe_gets_nothing(monkeypatch):
    pipe = stand_at(io.StringIO(), monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress.working("working"):
        time.sleep(0.05)
    assert pipe.getvalue() == ""
