"""Bugs of counts that run on, planted in ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import comb, floor
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("noise drawn again at a restart", killed_by="L43", published="the state of a stream kept in memory only")
@contextmanager
def forgotten_steps() -> Iterator[None]:
    """Keep the steps of a stream beside the ledger, in memory: a ledger that is opened again has none."""
    kept: dict[int, list[Any]] = {}

    def steps(self: Any, _charge: int, *, after: int = 0) -> list[Any]:
        return [each for each in kept.get(id(self), []) if each.number > after]

    def add(self: Any, _charge: int, *, first: int, end: int, text: str) -> None:
        known = kept.setdefault(id(self), [])
        known.append(original("Step")(len(known) + 1, "", "2026-03-01T08:00:00.000000Z", first, end, text))

    with planted("Ledger.steps", steps), planted("Ledger.add_step", add):
        yield


@mutant(
    "a step written without looking",
    killed_by="L43",
    published="two workers of one stream, each with its own noise",
    raises="LedgerError: the ledger does not verify",
)
@contextmanager
def unseen_step() -> Iterator[None]:
    """Write the numbers of a step whatever was written meanwhile."""

    def add(draft: Any, charge: int, *, first: int, end: int, text: str) -> None:
        last = draft.last_step(charge)
        while last is not None and last.record["end"] > first:
            last = None if last.record["before"] is None else draft.entry(last.record["before"])
        before = None if last is None else last.number
        draft.append({"kind": "step", "charge": charge, "first": first, "end": end, "before": before, "noisy": text})

    with planted("write of a step", add):
        yield


@mutant("a step that moves no anchor", killed_by="L43", published="a restored copy that goes on from an old day")
@contextmanager
def unanchored_step() -> Iterator[None]:
    """Let a step leave without the mark that an old copy is detected by."""
    write = original("write of a step")

    def add(self: Any, charge: int, **words: Any) -> None:
        self._group_commit.submit(lambda draft: write(draft, charge, **words))

    with planted("Ledger.add_step", add):
        yield


@mutant(
    "sensitivity of unrounded coefficients", killed_by="L44", published="a matrix mechanism rounded after its proof"
)
@contextmanager
def unrounded() -> Iterator[None]:
    """Charge for the root of the running sum, and add up its rounded coefficients."""

    def moves_squared(plan: Any) -> int:
        squares = sum(floor((comb(2 * at, at) << 20) ** 2 / 16**at) for at in range(plan.days))
        return int(plan.rows_per_unit * plan.rows_per_unit * squares)

    with planted("moves of a stream", property(moves_squared)):
        yield


@mutant(
    "every row counts where first days were charged", killed_by="L44", published="user-level claims for row-level sums"
)
@contextmanager
def every_row() -> Iterator[None]:
    """Read rows without the cap that was charged for."""
    relation = original("rows of days")

    def uncapped(plan: Any, *rest: Any) -> Any:
        return relation(replace(plan, rows_per_unit=1 << 30), *rest)

    with planted("rows of days", uncapped):
        yield


@mutant("a cap for each day", killed_by="L44", published="a contribution bound per release, not per person")
@contextmanager
def daily_cap() -> Iterator[None]:
    """Keep as many rows of a person on every day as were charged for in all."""
    relation = original("rows of days")

    def daily(plan: Any, table: Any, kinds: Any) -> Any:
        unit, plan = plan.unit, replace(plan, rows_per_unit=max(plan.rows_per_unit, 2))
        return relation(replace(plan, unit=None), table.filter([table[unit].notnull()]).distinct(), kinds)

    with planted("rows of days", daily):
        yield


@mutant(
    "a stream of replaced people charged as added", killed_by="L44", published="bounded neighbours at unbounded cost"
)
@contextmanager
def replaced_as_added() -> Iterator[None]:
    """Charge for one person's move, though one goes and another comes."""
    with planted("moves of replaced units", lambda _session, **_words: 1):
        yield
