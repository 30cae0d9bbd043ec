"""Check that this installation works: a few tests of the foundations of every answer, in seconds. `tacit selftest`
runs them.

A check compares a result here with a known one: published, computed before with another program, or computed a second
way. Checks are neither proofs nor attacks; the gauntlet, a separate package, has those. The checks use made-up rows
and a ledger in memory, and spend no budget.

>>> [finding.passed for finding in run_selftest(["thresholds", "ledger"])]
[True, True]
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from tacit.asking import Payment, spend
from tacit.engine import Engine, ExecutionPath, interpreted_kernel, open_engine, why_off
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError, SelfTestFailed
from tacit.exact import ExactTable
from tacit.ledger import MEMORY, Ledger, RegisteredTable, open_ledger
from tacit.noise import (
    Keystream,
    ThresholdTable,
    fresh_bytes,
    gaussian_table,
    keystream_is_as_published,
    laplace_tables,
)
from tacit.numbers import Words
from tacit.plan import Plan, Spend, make_plan
from tacit.privacy import PureChoice, PureLoss
from tacit.query import Frame, count, count_units, mean
from tacit.tables import Declaration, open_source, read_columns

FRESH_BYTES = 32
FRESH_TIMES = 8

# floor(2^64·Pr[X <= x]) for x = -3 … 3, from sums of 400 bits with mpmath.
FROM = -3
LAPLACE_OF_2 = (
    0x238E424E9CF00935,
    0x3A9F168A16CCD5E5,
    0x60A6815965E37A0E,
    0x9F597EA69A1C85F1,
    0xC560E975E9332A1A,
    0xDC71BDB1630FF6CA,
    0xEA6F336A0637CE6C,
)
GAUSSIAN_OF_3 = (
    0x3383F9D39DF01C50,
    0x4EC66C8E727F4F4F,
    0x6EFA7C881D311FA1,
    0x91058377E2CEE05E,
    0xB13993718D80B0B0,
    0xCC7C062C620FE3AF,
    0xE121F48B2ECA08A5,
)
# The Laplace law of scale 1/2, of all strings of two words of 8 bits: how many stand for each distance from zero on
# either side, and how many lie across the edge of two values and need a third word.
ENUMERATED_BITS = 8
ENUMERATED_SCALE = Fraction(1, 2)
ENUMERATED = {0: 49_910, 1: 6_754, 2: 913, 3: 123, 4: 16, 5: 1}
UNDECIDED = 12

# 50 rows of 25 people: rows beyond a bound are copies of kept rows, so every choice of rows has the same sums.
ROWS = 50
SALT = "5e1f"


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: its name, whether all is well, and the finding in words."""

    name: str
    passed: bool
    words: str

    def __str__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.name}: {self.words}"


def run_selftest(names: Sequence[str] | None = None, *, compiled: bool = False) -> Iterator[CheckResult]:
    """Yield the result of each check when it is done: those named, or all; machine code only if requested."""
    known = CHECKS | MORE_CHECKS
    for name in (known if compiled else CHECKS) if names is None else names:
        if name not in known:
            raise InvalidParameter(f"'{name}' is not a check\nhint: the checks are: {', '.join(known)}")
        try:
            yield CheckResult(name, passed=True, words=known[name]())
        except SelfTestFailed as fault:
            yield CheckResult(name, passed=False, words=str(fault))
        except Exception as problem:  # noqa: BLE001 - whatever stops a check, the installation does not pass it
            yield CheckResult(name, passed=False, words=f"stopped with {type(problem).__name__}: {problem}")


def check_randomness() -> str:
    """Check that the system gives bytes that differ every time, and that the cipher is the published one."""
    given = [fresh_bytes(FRESH_BYTES) for _ in range(FRESH_TIMES)]
    streams = [Keystream().words(4).tobytes() for _ in range(FRESH_TIMES)]
    _require(len({*given}) == FRESH_TIMES, "the system's generator gave the same bytes twice")
    _require(len({*streams}) == FRESH_TIMES, "two releases would have had the same random bits")
    _require(keystream_is_as_published(), "the keystream is not that of AES-256 in counter mode")
    return f"the system gives fresh bytes, {FRESH_TIMES} times out of {FRESH_TIMES}; the keystream is AES-256's"


def check_thresholds() -> str:
    """Check the tables that noise is drawn from against stored ones, and one law word by word."""
    tables = {
        "Laplace": (laplace_tables(Fraction(2), 64), LAPLACE_OF_2),
        "Gaussian": (gaussian_table(Fraction(3), 64), GAUSSIAN_OF_3),
    }
    for law, (table, stored) in tables.items():
        if not isinstance(table, ThresholdTable):
            raise SelfTestFailed(f"the table of the {law} law is missing")
        start = FROM - table.first
        found = tuple(table.thresholds[start : start + len(stored)])
        _require(found == stored, f"the thresholds of the {law} law differ from the stored ones")
    counts, undecided = _enumerated()
    wanted = Counter({sign * value: count for value, count in ENUMERATED.items() for sign in (1, -1)})
    _require(counts == wanted and undecided == UNDECIDED, "an enumerated distribution differs from the exact one")
    strings = f"all {1 << 2 * ENUMERATED_BITS:,} strings follow one"
    return f"the tables of the Laplace and the Gaussian law are exact; {strings}"


def check_engine() -> str:
    """Check that the ways to add up rows give the same integers; the kernel's loops run as Python, which is quicker."""
    plan, engine = _question()
    reference = _sums(engine("sql").aggregate(plan, SALT))
    _require(_sums(engine("patient").aggregate(plan, SALT)) == reference, "SQL and the patient path disagree")
    with interpreted_kernel() as may_be_used:
        if not may_be_used:
            return f"SQL and the patient path agree on {ROWS} rows; kernel not checked, since TACIT_KERNEL is off"
        _require(_sums(engine("kernel").aggregate(plan, SALT)) == reference, "SQL and the kernel disagree")
    agreed = f"SQL, the patient path and the kernel agree on {ROWS} rows"
    return agreed if (fault := why_off()) is None else f"{agreed}; SQL answers here: {fault}"


def check_compiled() -> str:
    """Check that the kernel's machine code, if it was compiled, gives the same integers as SQL."""
    plan, engine = _question()
    if engine(None).path_of(plan) != "kernel":
        return f"the kernel was not checked, and SQL answers: {why_off() or 'it is not compiled here yet'}"
    reference = _sums(engine("sql").aggregate(plan, SALT))
    _require(_sums(engine("kernel").aggregate(plan, SALT)) == reference, "SQL and the compiled kernel disagree")
    _require(engine(None).path_of(plan) == "kernel", "the compiled kernel cannot be loaded")
    return f"SQL and the compiled kernel agree on {ROWS} rows"


def check_ledger() -> str:
    """Check that a ledger in memory charges, refuses to exceed the budget, verifies, and notices a changed entry."""
    opened: list[sqlite3.Connection] = []

    def connect(path: str) -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
        return opened[-1]

    with open_ledger(MEMORY, connect=connect) as ledger:
        declaration = {"unit": "person", "neighbours": "add-remove", "version": 1}
        table = ledger.register(name="selftest", declaration=declaration, budget=PureLoss(Fraction(1)))

        _require(_is_charged(ledger, table, Fraction(3, 4)), "a charge that fits was refused")
        _require(ledger.spent(table).epsilon == Fraction(3, 4), "a charge is not what was spent")
        _require(not _is_charged(ledger, table, Fraction(1, 2)), "a charge beyond the budget was admitted")
        _require(_is_charged(ledger, table, Fraction(1, 4)), "the rest of the budget could not be spent")
        kinds = ledger.verify().kinds
        _require((kinds["charge"], kinds["answer"], kinds["refusal"]) == (2, 2, 1), "an entry is missing")
        opened[0].execute("UPDATE tacit_entry SET body = replace(body, '3/4', '1/4')")
        try:
            ledger.verify()
        except LedgerError:
            return "charges, refuses what is over the budget, verifies, and notices a changed entry"
    raise SelfTestFailed("a changed entry was not noticed")


CHECKS: dict[str, Callable[[], str]] = {
    "randomness": check_randomness,
    "thresholds": check_thresholds,
    "engine": check_engine,
    "ledger": check_ledger,
}
# Slower checks, which run only if requested.
MORE_CHECKS: dict[str, Callable[[], str]] = {"compiled": check_compiled}


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001
    if not holds:
        raise SelfTestFailed(otherwise)


class _Spent(Exception):
    """No word is left."""


class _Given:
    """Bits that are given, one word at a time."""

    def __init__(self, *words: int) -> None:
        self._left = list(words)

    def words(self, n: int, width: int = 64) -> Words:  # noqa: ARG002 (the words have that width)
        if len(self._left) < n:
            raise _Spent
        taken, self._left = self._left[:n], self._left[n:]
        return np.array(taken, dtype=np.uint64)


def _enumerated() -> tuple[Counter[int], int]:
    """Return how many strings of two short words each value has, and how many are undecided after both."""
    table = laplace_tables(ENUMERATED_SCALE, ENUMERATED_BITS)
    counts: Counter[int] = Counter()
    undecided = 0
    size = 1 << ENUMERATED_BITS
    for first in range(size):
        try:
            counts[int(table.draw(1, _Given(first))[0])] += size  # for any second value
        except _Spent:
            for second in range(size):
                try:
                    counts[int(table.draw(1, _Given(first, second))[0])] += 1
                except _Spent:
                    undecided += 1
    return counts, undecided


def _question() -> tuple[Plan, Callable[[ExecutionPath | None], Engine]]:
    """Return a question about made-up people, and the engine that answers it on a path, or on the one it would take."""
    people = [row // 2 for row in range(ROWS)]
    rows = pa.table(
        {
            "person": [f"p{person}" for person in people],
            "ward": ["north" if person % 3 else "south" for person in people],
            "age": pa.array([None if person % 7 == 0 else 20 + person for person in people], pa.int64()),
            "score": [person / 8 - 1 for person in people],
        }
    )
    facts = {"age": {"between": (0, 40)}, "score": {"between": (-1, 1), "step": "0.25"}}
    source = open_source(rows, read_columns(facts))
    declared = Declaration("selftest", "person", source.columns, rows_per_unit=1, groups_per_unit=1)
    asked = {"n": count(), "people": count_units(), "age": mean("age"), "score": mean("score")}
    query = Frame(declared).grouped(["ward"], ["north", "south", "west"]).query(asked)
    plan = make_plan(query, declared, Spend(Fraction(1)))
    return plan, lambda path: open_engine(source, path=path)


def _sums(exact: ExactTable) -> dict[str, list[int]]:
    return {name: [int(value) for value in column] for name, column in sorted(exact.sums.items())}


def _is_charged(ledger: Ledger, table: RegisteredTable, epsilon: Fraction) -> bool:
    """Spend an epsilon as every answer does, and return whether the budget had room for it."""
    try:
        with spend(ledger, table, Payment([PureChoice(epsilon)], str(epsilon))) as charge:
            _require(charge.stored is None, "a new question had an answer already")
            charge.keep("7")
    except BudgetExceeded:
        return False
    return True
