"""Processes that ask at the same time, one of them stopped at a chosen point: `python -m tests.door.racers SPEC`.

This program imports everything and reads no row, so that its forks may. It prints what became of each process.
"""

import json
import os
import signal
import sys

from tacit.asking.request import Request
from tacit.asking.session import Session
from tacit.errors import BudgetExceeded
from tacit.ledger import locks
from tests.door.orders import ITEMS, orders

import tacit  # isort: skip


class Racer:
    """One process: it says "ready", "waiting" (for another's charge) or "stopped", and at last how it ended."""

    def __init__(self, number, spec):
        self._lines, out = os.pipe()
        go, self._go = os.pipe()
        self.process = os.fork()
        if not self.process:
            code = 70
            try:
                _ask(number, spec, lambda line: os.write(out, f"{line}\n".encode()), lambda: os.read(go, 1))
                code = 0
            finally:
                os._exit(code)
        os.close(out)
        os.close(go)
        self._reader = os.fdopen(self._lines)

    def go(self):
        os.write(self._go, b"!")

    def until(self, word):
        """Read lines up to one that begins with a word."""
        for line in self._reader:
            if line.startswith(word):
                return line[len(word) :].strip()
        raise EOFError(word)

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        return {"killed": True}

    def end(self):
        ended = json.loads(self.until("ended"))
        os.waitpid(self.process, 0)
        return ended


def _ask(number, spec, say, wait):
    """Open the table in this process, wait for the others, and ask."""
    table = orders(spec["where"], budget=tacit.epsilon(spec["budget"]))
    top = 6000 + (0 if spec["same"] else number)
    asked = table.group_by("item", keys=ITEMS).agg(n=tacit.count(), m=tacit.sum("x", between=(0, top)))
    _stop_at(spec["stop"] if number == 0 else None, say, wait)
    pause = locks.time.sleep

    def waiting(seconds):
        say("waiting")
        pause(seconds)

    locks.time.sleep = waiting
    say("ready")
    wait()
    try:
        ended = {"answer": asked.answer(epsilon=spec["epsilon"]).to_dicts()}
    except BudgetExceeded as refused:
        ended = {"refused": str(refused)}
    say(f"ended {json.dumps(ended)}")


def _stop_at(point, say, wait):
    """Stop before the answer is charged, or after a charge and before its rows are read: the first, second or third."""
    release, charged, seen = Session.release, Request.charged, []

    def stop():
        say("stopped")
        wait()

    def stopping_release(self, plan):
        seen.append(plan)
        if point == len(seen):
            stop()
        return release(self, plan)

    def stopping_charge(self, *given):
        if point == "before the answer's charge":
            stop()
        return charged(self, *given)

    Session.release, Request.charged = stopping_release, stopping_charge


def race(spec):
    """Start the first and have it stop, if it is to; let all others ask; then let the first go on, or kill it."""
    racers = [Racer(number, spec) for number in range(spec["count"])]
    for each in racers:
        each.until("ready")
    first, *others = racers
    if spec["stop"] is not None:
        first.go()
        first.until("stopped")
    for each in others:
        each.go()
    if spec["stop"] is None:
        first.go()
        return [each.end() for each in racers]
    if spec["wait"]:
        for each in others:
            each.until("waiting")
        ends = []
    else:
        ends = [each.end() for each in others]
    first.kill() if spec["kill"] else first.go()
    ended = {"killed": True} if spec["kill"] else first.end()
    return [ended, *(ends or [each.end() for each in others])]


if __name__ == "__main__":
    print(json.dumps(race(json.loads(sys.argv[1]))))
