"""Worker processes: one that dies is replaced, one that cannot begin says why, and all end when told."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.errors import QueryRefused
from tacit.server.access import Guesses
from tacit.server.workers import Workers, share_of, usual_workers


def kept_running(notes: Path) -> Callable[[Callable[[], None]], None]:
    """Work that notes its process and runs until it is told to stop."""

    def work(tell: Callable[[], None]) -> None:
        stopped: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
        (notes / str(os.getpid())).touch()
        tell()
        while not stopped:
            time.sleep(0.01)
        (notes / f"{os.getpid()} ended").touch()

    return work


def in_a_child(story: Callable[[], None]) -> int:
    """Run a parent of workers in a process of its own; return its exit code."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            story()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def noted(notes: Path, number: int) -> list[int]:
    """The processes that have begun, once so many have."""
    while len(found := [int(each.name) for each in notes.iterdir() if each.name.isdigit()]) < number:
        time.sleep(0.01)
    return found


def test_a_worker_that_is_killed_is_replaced_and_all_end_when_told(tmp_path: Path) -> None:
    def story() -> None:
        parent = os.getpid()

        def watch() -> None:
            if os.fork():
                return
            first = noted(tmp_path, 2)
            os.kill(first[0], signal.SIGKILL)
            noted(tmp_path, 3)
            os.kill(parent, signal.SIGTERM)
            os._exit(0)

        Workers(2, kept_running(tmp_path), watch, lambda: None, sleep=lambda _: None).run()

    assert in_a_child(story) == 0
    names = {each.name for each in tmp_path.iterdir()}
    assert len([name for name in names if name.isdigit()]) == 3
    assert len([name for name in names if name.endswith("ended")]) == 2


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    def story() -> None:
        Workers(2, kept_running(tmp_path), lambda: None, lambda: None).run()

    pid = os.fork()
    if not pid:
        story()
        os._exit(0)
    noted(tmp_path, 2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while len([each for each in tmp_path.iterdir() if each.name.endswith("ended")]) < 2:
        time.sleep(0.01)


def test_what_the_first_worker_cannot_begin_for_is_told() -> None:
    def refused(_: Callable[[], None]) -> None:
        raise QueryRefused("the table has no column 'x'\nhint: there are a, b")

    with pytest.raises(QueryRefused, match="no column 'x'"):
        Workers(2, refused, lambda: None, lambda: None).run()


def guesses_let_through(workers: int) -> int:
    """How many wrong tokens one worker of several looks at in a minute."""
    guesses, number = Guesses(lambda: 0.0, workers), 0
    while number < 20 and not guesses.is_limited("there"):
        guesses.note("there")
        number += 1
    return number


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 10])
def test_guesses_on_all_workers_together_are_no_more_than_on_one(workers: int) -> None:
    assert 0 < workers * guesses_let_through(workers) <= 10


def test_each_has_a_share() -> None:
    assert [share_of(8, workers) for workers in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    assert 1 <= usual_workers() <= 4
