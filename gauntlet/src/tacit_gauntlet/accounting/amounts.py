"""An amount is read by one grammar at every door: digits that two readers take for different numbers are refused.

Python's own readers take digits of other scripts, underscores and spaces. A person, a log or another program may read
such a text as another amount than the ledger was charged with.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

import tacit
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import protected_here

# Each is a number to Python's Decimal, Fraction, float or int.
STRANGE = (
    "１.５",
    "1__0",
    "1_000",
    " 1 ",
    "1\n",
    "\u00a01",
    "١",
    "1/ 3",
    "1 /3",
    "1_0/3",
    "०.५",
    "+ 1",
    "0x1",
    "1e1_0",
)
# Each means one number, everywhere.
PLAIN = {"1": "1", "0.5": "1/2", "+2": "2", ".5": "1/2", "2.": "2", "1e-3": "1/1000", "5E-1": "1/2", "1/3": "1/3"}


@case("L40", title="an amount has one grammar of ASCII digits at every door", feature="accounting")
def amounts(_: Size) -> Evidence:
    wrong: list[str] = []
    with _doors() as doors:
        for door, ask in doors.items():
            wrong += [f"{door} reads {text!r}" for text in STRANGE if _reads(ask, text) is not None]
            wrong += [f"{door} refuses {text!r}" for text in PLAIN if _reads(ask, text) is None]
    for text, meant in PLAIN.items():
        read = tacit.epsilon(text).epsilon
        wrong += [] if read == Fraction(meant) else [f"{text} is read as {read}"]
    return Evidence(not wrong, {"doors": len(doors), "texts": len(STRANGE) + len(PLAIN), "wrong": wrong[:5]})


def _reads(ask: Callable[[str], Any], text: str) -> Any:
    """Return what a door made of a text, or None if it refused."""
    try:
        return ask(text)
    except TacitError:
        return None


@contextmanager
def _doors() -> Iterator[dict[str, Callable[[str], Any]]]:
    rows = pa.table({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})

    def declared(**columns: Any) -> Any:
        bounds = {"rows_per_unit": 1, "groups_per_unit": 1, "budget": tacit.epsilon(10)}
        return protected_here(rows, columns={"x": columns} if columns else {}, **bounds)

    asked = declared().count()
    found: dict[str, Callable[[str], Any]] = {
        "a budget": tacit.epsilon,
        "a mechanism": lambda text: tacit.Laplace(sensitivity=1, epsilon=text),
        "an end of a range": lambda text: declared(between=("-9", text)),
        "a step": lambda text: declared(between=(-9, 9), step=text),
        "a question": lambda text: asked.answer(epsilon=text),
        "a plan": lambda text: asked.plan(epsilon=text),
    }
    if find_spec("fastapi") is None:
        yield found
        return
    from tacit_gauntlet.stage.server import catalog_with, servers, token_of

    with servers() as (server,):
        token = token_of(server, "ada")

        def over_http(text: str) -> Any:
            before = server.charges()
            reply = server.ask(token, {"sql": "SELECT COUNT(*) AS n FROM t", "epsilon": text})
            return reply if reply.status == 200 or server.charges() > before else None

        yield found | {"a catalog": lambda text: catalog_with(json.dumps(text)), "a server": over_http}
