"""One answer followed through the product: which files run, how often it plans, reads and writes, how deep noise is.

`python -m tests.house` prints the figures of a question with facts that were learned before; test_walk.py limits them.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import tacit
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.table import in_sql

PACKAGE = Path(tacit.__file__).parent
PLAN, READ, WRITE = "planner.py:make_plan", "sqlite.py:SqliteStore.reading", "sqlite.py:SqliteStore.transact"
NOISE, ANSWER = "threshold.py:IntegerNoise.sample", "verbs.py:QuestionVerbs.answer"
ROWS = pa.table({"who": [n // 3 for n in range(3000)], "ward": ["abc"[n % 3] for n in range(3000)]})


@dataclass
class Walk:
    """What ran in one thread: files of the product, the calls of each function, and the deepest draw of noise."""

    files: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    frames: int = 0  # from the answer's own frame down to the noise

    def follow(self, work: Callable[[], Any]) -> "Walk":
        """Run some work with every call of the product noted."""
        seen: set[int] = set()  # a generator is one call, however often it goes on

        def hook(frame: FrameType, event: str, _: object) -> None:
            if event != "call" or id(frame) in seen or name_of(frame) is None:
                return
            if frame.f_code.co_flags & 0x20:
                seen.add(id(frame))
                kept.append(frame)
            name = name_of(frame) or ""
            self.files.add(frame.f_code.co_filename)
            self.calls[name] += 1
            if name == NOISE:
                self.frames = max(self.frames, depth_of(frame))

        kept: list[FrameType] = []  # so that no other frame gets the id of one that was seen
        sys.setprofile(hook)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self

    @property
    def figures(self) -> dict[str, int]:
        """The counts that are limited."""
        return {
            "files executed": len(self.files),
            "plans made": self.calls[PLAN],
            "transactions that read the ledger": self.calls[READ],
            "transactions that write it": self.calls[WRITE],
            "frames from the answer to its noise": self.frames,
        }


def name_of(frame: FrameType) -> str | None:
    """Return the function of a frame if it is the product's: its file and its name."""
    path = Path(frame.f_code.co_filename)
    inside = str(path).startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>"
    return f"{path.name}:{frame.f_code.co_qualname}" if inside else None


def depth_of(frame: FrameType | None) -> int:
    """Return how many frames of the product are below the answer's."""
    depth = 0
    while frame is not None and name_of(frame) != ANSWER:
        depth += name_of(frame) is not None
        frame = frame.f_back
    return depth


def learned_answer() -> Walk:
    """Follow a grouped count with facts that an earlier question has learned."""
    with open_ledger(":memory:") as ledger, in_sql():
        budget = tacit.epsilon(9, delta=1e-6)
        table = tacit.table(ROWS, unit="who", name="visits", version=1, budget=budget, ledger=ledger)
        question = table.group_by("ward", keys=["a", "b", "c"]).count()
        question.answer(epsilon=1)
        return Walk().follow(lambda: question.answer(epsilon="0.9"))
