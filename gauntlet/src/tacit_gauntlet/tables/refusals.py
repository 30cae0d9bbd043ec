"""Wrong words: every one is refused with a typed error, before a row is read and before anything is charged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa

from tacit import ROW, count, epsilon, mean, table
from tacit import sum as sum_of
from tacit.errors import EngineError, TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import reading_does
from tacit_gauntlet.stage.ledger import Ledger, open_at
from tacit_gauntlet.stage.table import BUDGET, protected

Call = Callable[[], Any]

PURE = epsilon(100)

NAN, INF = float("nan"), float("inf")
NOT_NUMBERS: list[Any] = [None, "x", "", NAN, INF, -INF, 0, -1, True, [], {}, 1j, "1/0", "1e999999", b"1", "nan"]
NOT_WHOLE: list[Any] = ["2", 1.5, 0, -1, True, NAN, [], "x", Fraction(1, 2)]
NOT_RANGES: list[Any] = [
    5,
    "ab",
    (1,),
    (1, 2, 3),
    (2, 1),
    (1, 1),
    (NAN, 1),
    (0, INF),
    ("a", "b"),
    (None, 1),
    {},
    (1j, 2),
]
LONG_RANGES: list[Any] = [(0, 10**400), (0, "1e4000"), ("1e-3000", 1), (-(10**400), 0), (0, Fraction(1, 10**3999))]
NOT_TEXT: list[Any] = ["", 5, [], "x" * 2000]
BAD_KEYS: list[Any] = ["ab", 5, [], {}, [("a", 1)], ["a", "a"], [object()], [1.5], [date(2020, 1, 1)], b"a", [[]]]
BAD_COLUMNS: list[Any] = ["nosuch", "id", "odd", 5, None, ""]
BAD_EXPRESSIONS: list[Any] = [
    "",
    "x +",
    "nosuch > 1",
    "id = 1",
    "g",
    "x > 'a'",
    "1; 2",
    "SUM(x) > 1",
    None,
    5,
    "x = NULL(",
]


def _rows() -> pa.Table:
    return pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1, 2], "odd": pa.array([b"1", b"2"])})


@contextmanager
def unread(ledger: Ledger) -> Iterator[list[str]]:
    """Yield a list that says, when closed, whether a row was read or an entry of a charge was made meanwhile."""
    found: list[str] = []

    def aggregate(*_: object) -> None:
        found.append("a row was read")
        raise RuntimeError("read")

    before = _charges(ledger)
    with reading_does(aggregate):
        yield found
    if _charges(ledger) != before:
        found.append("something was charged")


def _charges(ledger: Ledger) -> int:
    return sum(entry.kind == "charge" for entry in ledger.entries())


def wrong_questions(good: Any) -> Iterator[tuple[str, Call]]:
    """Yield every question with one wrong word."""
    asked = good.count()
    for value in NOT_NUMBERS:
        for word in ("epsilon", "delta", "confidence"):
            if word == "delta" and value in (None, 0) and not isinstance(value, bool):
                continue
            words = {"epsilon": 1} | {word: value}
            yield f"answer({word}={value!r})", partial(asked.answer, **words)
            yield f"plan({word}={value!r})", partial(asked.plan, **words)
    for value in ("none", 5, "Laplace", "", []):
        yield f"noise={value!r}", partial(asked.answer, 1, noise=value)
    for value in NOT_TEXT:
        yield f"request_id={value!r:.20}", partial(asked.answer, 1, request_id=value)
        yield f"analyst={value!r:.20}", partial(asked.answer, 1, analyst=value)

    for value in (None, 1, 0, "yes", [], pa.array([True, False]), object()):
        yield f"consistent={value!r:.20}", partial(asked.answer, 1, consistent=value)
    for value in (5, "n", [], {"nosuch": 1}, {None: 1}, {"count": 0}, {"count": "x"}, {"count": NAN}, {"count": [1]}):
        yield f"weights={value!r}", partial(asked.answer, 1, weights=value)

    asks: list[tuple[str, list[Any], Callable[[Any], Any]]] = [
        ("between", NOT_RANGES, lambda value: good.mean("x", between=value)),
        ("long between", LONG_RANGES, lambda value: good.mean("x", between=value)),
        ("bins", [0, -1, 1.5, True, [], [1], [2, 1], [0, 10**400], "3", {}, 10**400], lambda v: good.histogram("x", v)),
        ("histogram", LONG_RANGES, lambda value: good.histogram("x", 3, between=value)),
        ("histogram of", [5, None, [], {}], lambda value: good.histogram(value, 3, between=(0, 1))),
        (
            "range of",
            [None, 5, (), "nosuch"],
            lambda value: good.sql("SELECT SUM(x) AS s FROM t", between={value: (0, 1)}),
        ),
        (
            "bound of",
            [None, 5, "x"],
            lambda value: good.sql("SELECT COUNT(DISTINCT x) AS s FROM t", per_unit={value: 1}),
        ),
        ("step", NOT_NUMBERS[1:], lambda value: good.sum("x", between=(0, 9), step=value)),
        ("keys", BAD_KEYS, lambda value: good.group_by("g", keys=value).count()),
        ("where", BAD_EXPRESSIONS, lambda value: good.where(value).count()),
        (
            "derive",
            [each for each in BAD_EXPRESSIONS if each != "g"],
            lambda value: good.derive(k=value).where("k > k").count(),
        ),
        ("sql", BAD_EXPRESSIONS, good.sql),
        ("group_by", BAD_COLUMNS, lambda value: good.group_by(value).count()),
        ("mean", BAD_COLUMNS, lambda value: good.mean(value, between=(0, 1))),
        ("agg", [5, None, "count"], lambda value: good.agg(n=value)),
        ("names", ["x_low", "x_high"], lambda value: good.agg(x=count(), **{value: sum_of("x", between=(0, 1))})),
    ]
    for word, values, ask in asks:
        for value in values:
            yield f"{word} {value!r}", partial(_answered, ask, value)
    yield "agg()", lambda: good.agg().answer(1)


def _answered(ask: Callable[[Any], Any], value: Any) -> object:
    return ask(value).answer(1)


def wrong_tables(ledger: Ledger) -> Iterator[tuple[str, Call]]:
    """Yield every declaration with one wrong word."""

    def make(**words: Any) -> Call:
        usual = {"source": _rows(), "unit": "id", "budget": BUDGET, "ledger": ledger, "name": "new"}
        arguments = usual | words
        return lambda: table(arguments.pop("source"), **arguments)

    for value in (None, 5, "nosuch.parquet", "nosuch*.csv", object(), [], {}, (1, 2), ("a", "b"), pa.table({}), ""):
        yield f"source={value!r:.40}", make(source=value)
    for value in (None, 5, "nosuch", "", [], "ID2"):
        yield f"unit={value!r}", make(unit=value)
    for value in (5, "3", 1.5, [], {}):
        yield f"budget={value!r}", make(budget=value)
    for word in ("rows_per_unit", "groups_per_unit", "population", "version"):
        for value in NOT_WHOLE:
            yield f"{word}={value!r}", make(**{word: value})
    for value in ("remove", 5, None, "", "ADD-REMOVE"):
        yield f"neighbours={value!r}", make(neighbours=value)
    for value in (5, "  ", "x" * 500, []):
        yield f"name={value!r:.20}", make(name=value)
    facts: list[Any] = [5, {"x": 5}, {"nosuch": {}}, {"x": {"betwen": (0, 1)}}, {"x": {"type": "number"}}, "x"]
    facts += [{"x": {"between": value}} for value in NOT_RANGES if value is not None]
    facts += [{"x": {"step": value}} for value in NOT_NUMBERS[1:]]
    facts += [{"g": {"keys": value}} for value in BAD_KEYS if value != [("a", 1)]] + [{"g": {"type": []}}]
    facts += [{"odd": {"keys": ["a"]}}, {5: {"between": (0, 1)}}]
    for value in facts:
        yield f"columns={value!r}", make(columns=value)
    for value in (5, "", [], b"x"):
        yield f"ledger={value!r}", make(ledger=value)


@case("S06", title="every wrong parameter is a typed refusal, with nothing read and nothing charged", feature="door")
def parameter_matrix(_: Size) -> Evidence:
    ledger = open_at(":memory:")
    good = protected(_rows(), ledger=ledger)
    tries, wrong = 0, []
    with unread(ledger) as leaks:
        for name, call in [*wrong_questions(good), *wrong_tables(ledger)]:
            tries += 1
            try:
                call()
                wrong.append(f"{name}: accepted")
            except EngineError:
                wrong.append(f"{name}: charged and read")
            except TacitError as refusal:
                if not str(refusal):
                    wrong.append(f"{name}: refused without a word")
            except Exception as other:
                wrong.append(f"{name}: {type(other).__name__}")
    return Evidence(passed=not wrong and not leaks, details={"calls": tries, "wrong": wrong[:20], "leaks": leaks})


@case("S15", title="what is missing and must not be learned is refused, with the exact words to add", feature="plan")
def missing_metadata(_: Size) -> Evidence:
    """Each refusal names a word, and with that word the same call is answered."""
    rows = _rows()
    free: dict[str, Any] = {"rows_per_unit": None, "groups_per_unit": None}
    between = {"columns": {"x": {"between": (0, 100)}}}
    wrong = []
    tries: list[tuple[str, Call, Call]] = [
        ("between=(0, 100)", lambda: protected(rows).sum("x"), lambda: protected(rows).sum("x", between=(0, 100))),
        (
            "columns={'x': {'between': (0, 100)}}",
            lambda: protected(rows).mean("x"),
            lambda: protected(rows, **between).mean("x"),
        ),
        (
            "rows_per_unit=1",
            lambda: protected(rows, **free).count(),
            lambda: protected(rows, **free | {"rows_per_unit": 1}).count(),
        ),
        (
            "groups_per_unit=1",
            lambda: protected(rows, groups_per_unit=None).group_by("g").count(),
            lambda: protected(rows, groups_per_unit=1).group_by("g").count(),
        ),
        ("budget=tacit.epsilon(3, delta=1e-6)", lambda: protected(rows, budget=None), lambda: protected(rows).count()),
        ("unit=tacit.ROW", lambda: protected(rows, unit=None), lambda: protected(rows, unit=ROW).count()),
        (
            "keys=['A', 'B']",
            lambda: protected(rows, budget=PURE).group_by("g").count(),
            lambda: protected(rows, budget=PURE).group_by("g", keys=["A", "B"]).count(),
        ),
        (
            "budget=tacit.epsilon(3, delta=1e-6)",
            lambda: protected(rows, budget=PURE).group_by("g").agg(m=mean("x", between=(0, 1))),
            lambda: protected(rows).group_by("g").agg(m=mean("x", between=(0, 1))),
        ),
    ]
    for word, without, with_it in tries:
        try:
            without().answer(epsilon=1, learn=False)
            wrong.append(f"answered without {word}")
        except TacitError as refusal:
            if word not in str(refusal):
                wrong.append(f"no '{word}' in: {refusal}")
        with_it().answer(epsilon=1)
    return Evidence(passed=not wrong, details={"words": len(tries), "wrong": wrong})
