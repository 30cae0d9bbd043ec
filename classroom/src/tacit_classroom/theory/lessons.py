"""The teaching pages: each has a few inputs, a picture that follows them, and its numbers.

The people are made up, so the pages cost no budget and need no sign-in. Inputs are sliders and lists with few
values, and values from an address are read the same way: so every page takes a small, known amount of work. The work
is done in turns, by address. Random results stand in the address of a page's picture, so that both show the same.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from starlette.datastructures import QueryParams

from tacit.numbers import show
from tacit.pictures import Spec, as_svg, themed
from tacit.server import OutsidePages, Problem, Turns, page, unknown
from tacit_classroom.theory import drawings, experiments, risks, selections

TURNS = 2
WAITING_MAX = 20  # pages that one address waits for
KEPT_MAX = 200
_DECIMAL = re.compile(r"\d{1,9}(?:\.\d{1,12})?(?:[eE]-?\d{1,2})?", re.ASCII)
_DRAWN = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,59}", re.ASCII)

Inputs = tuple[tuple[str, Fraction], ...]
Visitor = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Field:
    """An input: a list to choose from, or a slider from `least` to `most` in steps."""

    name: str
    words: str
    begins: str
    choices: tuple[str, ...] = ()
    least: str = ""
    most: str = ""
    step: str = ""
    sign: str = ""  # behind the number

    def read(self, written: str) -> Fraction | None:
        """Return what was typed, a slider's on its nearest step; None if it is not an allowed number.

        >>> EPSILON.read("0.52"), EPSILON.read(""), EPSILON.read("nan"), EPSILON.read("1e400"), EPSILON.read("-1")
        (Fraction(1, 2), Fraction(1, 1), None, None, None)
        """
        text = written.strip() or self.begins
        if not _DECIMAL.fullmatch(text):
            return None
        value = Fraction(text)
        if self.choices:
            return value if value in {Fraction(each) for each in self.choices} else None
        if not Fraction(self.least) <= value <= Fraction(self.most):
            return None
        return round(value / Fraction(self.step)) * Fraction(self.step)

    @property
    def shown_choices(self) -> tuple[tuple[str, str], ...]:
        """The choices with the words that stand for them."""
        return tuple((each, f"{int(each):,}" if each.isdigit() else each) for each in self.choices)


@dataclass(frozen=True)
class Topic:
    """A page: its words, its inputs, its experiment and its picture."""

    name: str
    title: str
    sentence: str
    alt: str
    fields: tuple[Field, ...]
    run: Callable[..., Any]
    draw: Callable[[Any], Spec]
    deeper: tuple[str, ...]
    is_drawn: bool = True  # by chance, so that it can be drawn again

    @property
    def template(self) -> str:
        """The file with its text."""
        return f"theory_{self.name.replace('-', '_')}.html"


EPSILON = Field("epsilon", "ε", "1", least="0.1", most="6", step="0.1")
DELTA = Field("delta", "δ", "1e-6", choices=("1e-4", "1e-6", "1e-9", "1e-12"))

TOPICS = {
    topic.name: topic
    for topic in (
        Topic(
            "randomized-response",
            "Randomized response",
            "Every answer is randomized before it is sent, and the total is still right.",
            "The share of yes among the reports, and the debiased one, which comes close to the truth",
            (
                Field("people", "people", "1000", choices=("100", "1000", "10000", "100000")),
                Field("share", "true share of yes", "30", least="0", most="100", step="1", sign="%"),
                EPSILON,
            ),
            experiments.poll,
            drawings.draw_polls,
            ("docs/guide/students.md", "docs/guide/local-or-central.md", "docs/proofs/randomized-response.md"),
        ),
        Topic(
            "laplace-or-gaussian",
            "Laplace or Gaussian noise",
            "For a few counts Laplace noise is smaller, for many Gaussian noise is.",
            "The error of Laplace and of Gaussian noise along the number of counts: the lines cross",
            (
                Field("counts", "counts", "20", choices=("1", "2", "5", "10", "20", "50", "100", "300", "1000")),
                EPSILON,
                DELTA,
            ),
            experiments.compare_noises,
            drawings.draw_noises,
            ("docs/proofs/laplace.md", "docs/proofs/gaussian.md", "docs/proofs/gaussian-vector.md"),
        ),
        Topic(
            "odds",
            "The effect of ε on an attacker's odds",
            "No belief about a person grows beyond a known curve, with any other knowledge.",
            (
                "The most that every belief can become after an answer, above the line of an answer that reveals "
                "no information"
            ),
            (
                EPSILON,
                Field("belief", "belief before the answer", "50", least="1", most="99", step="1", sign="%"),
            ),
            experiments.attack_odds,
            drawings.draw_odds,
            ("docs/guide/attacks.md", "docs/proofs/tradeoff.md"),
        ),
        Topic(
            "composition",
            "Many questions together",
            "Losses add up, and for many small ones a smaller total is true as well.",
            "The total loss by several rules along the number of questions: addition is a straight line",
            (
                Field("questions", "questions", "100", least="2", most="500", step="2"),
                Field("epsilon", "ε of each question", "0.1", least="0.01", most="1", step="0.01"),
                DELTA,
            ),
            experiments.compose_questions,
            drawings.draw_totals,
            ("docs/guide/composition.md", "docs/proofs/composition.md", "docs/proofs/ledger.md"),
            is_drawn=False,
        ),
        Topic(
            "reconstruction",
            "Rebuilding a secret column",
            "Enough exact counts give every secret back; counts through a budget do not.",
            "The share of secrets that comes back along the number of questions, by how they are answered",
            (
                Field("questions", "questions", "40", least="5", most="100", step="5"),
                Field("epsilon", "ε for all questions together", "1", choices=("0.1", "1", "5", "20", "100", "500")),
            ),
            experiments.rebuild_secrets,
            drawings.draw_rebuilt,
            ("docs/guide/attacks.md",),
        ),
        Topic(
            "noisy-max",
            "Only the winner",
            "To release which of many is the most common costs far less than all their counts.",
            "The share of right picks along ε: only the winner is right at a far smaller ε than all counts",
            (
                Field("candidates", "candidates", "20", choices=("2", "5", "10", "20", "50", "100")),
                Field("epsilon", "ε", "0.2", choices=("0.02", "0.05", "0.1", "0.2", "0.4", "0.8")),
            ),
            selections.pick_best,
            drawings.draw_picked,
            ("docs/proofs/selection.md", "docs/guide/sql.md"),
        ),
        Topic(
            "sparse-vector",
            "Waiting for an alarm",
            "A count is watched every day for one price: each no is free, and the yes is paid for.",
            "The share of watches that have given the alarm, day by day, beside the day on which it is due",
            (
                Field("threshold", "threshold", "250", least="150", most="350", step="10"),
                Field("epsilon", "ε for all days together", "1", least="0.1", most="3", step="0.1"),
            ),
            selections.watch_count,
            drawings.draw_watched,
            ("docs/proofs/sparse-vector.md",),
        ),
        Topic(
            "membership",
            "Is this person in the data?",
            "Averages of many facts give members away; averages through a budget do not.",
            "The advantage of an attacker over a coin, along the number of facts about each person",
            (
                Field("facts", "facts about each person", "200", choices=("10", "50", "100", "200", "500", "1000")),
                Field("epsilon", "ε for all facts together", "1", choices=("0.1", "0.5", "1", "2", "5", "20")),
            ),
            risks.detect_members,
            drawings.draw_membered,
            ("docs/guide/attacks.md",),
        ),
        Topic(
            "name-and-shame",
            "Why δ must be tiny",
            "A release that publishes single rows in the clear satisfies its promise, if δ is large.",
            "The probability that the row of at least one person is published, along δ",
            (
                Field("people", "people", "10000", choices=("100", "1000", "10000", "100000")),
                Field("delta", "δ", "1e-4", choices=("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-8")),
            ),
            risks.shame,
            drawings.draw_shamed,
            ("docs/guide/attacks.md", "docs/proofs/losses.md"),
        ),
    )
}


def add_theory(app: FastAPI, visitor: Visitor) -> None:
    """Add the pages that teach."""
    theory = Theory(visitor)
    routes: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("/theory", theory.index),
        ("/theory/{topic}.svg", theory.picture),
        ("/theory/{topic}", theory.topic),
    )
    for path, route in routes:
        app.add_api_route(path, route, methods=["GET"], include_in_schema=False)


PAGES = OutsidePages(Path(__file__).parent, "/theory", "How it works", add_theory)


class Theory:
    """The contents of every teaching page."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor  # returns the visitor, if signed in: the pages are open to all
        self._turns = Turns(TURNS, waiting_max=WAITING_MAX)

    async def index(self, request: Request) -> Response:
        """Show every topic, with its picture."""
        return page(request, "theory.html", topics=TOPICS.values(), **await self._visitor(request))

    async def topic(self, request: Request, topic: str) -> Response:
        """Show a topic; only the part that follows the inputs, for a page that asks as one moves them."""
        shown = _topic(topic)
        inputs, wrong = _read(shown, request.query_params)
        found = None if wrong else await self._in_turn(request, found_in, shown.name, inputs)
        values = {name: show(value) for name, value in inputs}
        drawn = {} if found is None or not found.drawn else {"drawn": ".".join(map(str, found.drawn))}
        return page(
            request,
            shown.template,
            422 if wrong else 200,
            topic=shown,
            found=found,
            wrong=wrong,
            values={field.name: values.get(field.name, field.begins) for field in shown.fields},
            picture=f"/theory/{shown.name}.svg?{urlencode(values | drawn)}",
            is_part=request.headers.get("tacit-part") == "live",
            **await self._visitor(request),
        )

    async def picture(self, request: Request, topic: str) -> Response:
        """Give a topic's picture: of the numbers drawn for its page, or of new ones."""
        shown = _topic(topic)
        inputs, wrong = _read(shown, request.query_params)
        if wrong:
            raise Problem("refused", 422, f"'{wrong[0].name}' must be {_may_be(wrong[0])}", f"/theory/{shown.name}")
        written = request.query_params.get("drawn", "")
        drawn = tuple(map(int, written.split("."))) if _DRAWN.fullmatch(written) else ()
        svg = await self._in_turn(request, picture_of, shown.name, inputs, drawn)
        return Response(svg, media_type="image/svg+xml")

    async def _in_turn(self, request: Request, work: Callable[..., Any], *given: Any) -> Any:
        """Return what the work gives, done in a thread: two at once, and of one address one."""
        async with self._turns.turn("" if request.client is None else request.client.host):
            return await asyncio.to_thread(work, *given)


def _topic(name: str) -> Topic:
    if name not in TOPICS:
        raise unknown("page")
    return TOPICS[name]


def _read(topic: Topic, given: QueryParams) -> tuple[Inputs, list[Field]]:
    """Return the inputs, and the fields with a text that is not allowed."""
    values = [(field, field.read(given.get(field.name, ""))) for field in topic.fields]
    inputs = tuple((field.name, value) for field, value in values if value is not None)
    return inputs, [field for field, value in values if value is None]


def _may_be(field: Field) -> str:
    return f"choose {', '.join(field.choices)}" if field.choices else f"a number from {field.least} to {field.most}"


def found_in(topic: str, inputs: Inputs, drawn: tuple[int, ...] = ()) -> Any:
    """Return what an experiment finds, drawn now; or for the numbers given, if they are possible."""
    given = {name: int(value) if name in WHOLE else value for name, value in inputs}
    return TOPICS[topic].run(**given, drawn=drawn)


@lru_cache(maxsize=KEPT_MAX)
def picture_of(topic: str, inputs: Inputs, drawn: tuple[int, ...]) -> bytes:
    """Return the picture of an experiment's results, as SVG."""
    return themed(as_svg(TOPICS[topic].draw(found_in(topic, inputs, drawn)))).encode()


WHOLE = frozenset({"people", "counts", "questions", "candidates", "threshold", "facts"})
