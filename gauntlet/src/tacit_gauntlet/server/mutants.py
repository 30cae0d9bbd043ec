"""Published bugs of servers, planted in ours, that the cases must kill."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("the analyst of the body", killed_by="W01", published="a user id that the client sends, believed")
@contextmanager
def analyst_of_the_body() -> Iterator[None]:
    """Charge whoever the body names."""
    read, run = original("read_wording"), original("Desk.run")
    named: dict[str, str] = {}

    def believing(body: bytes, **words: Any) -> Any:
        try:
            record = json.loads(body)
        except ValueError:
            record = {}
        name = record.pop("analyst", None) if isinstance(record, dict) else None
        wording = read(body if name is None else json.dumps(record).encode(), **words)
        if name is not None:
            named[wording.digest] = name
        return wording

    def as_named(self: Any, person: Any, table: str, wording: Any, *rest: Any) -> Any:
        return run(self, replace(person, name=named.get(wording.digest, person.name)), table, wording, *rest)

    with planted("read_wording", believing), planted("Desk.run", as_named):
        yield


@mutant("every table is seen", killed_by="W01", published="object-level authorization left out")
@contextmanager
def every_table_is_seen() -> Iterator[None]:
    """Let every token see every table."""
    with planted("sees", lambda _person, _table: True):
        yield


@mutant("answers by key alone", killed_by="W01", published="idempotency keys that are not per caller")
@contextmanager
def answers_by_key() -> Iterator[None]:
    """Give the answer of a key to whoever has the key."""

    async def again(self: Any, _person: Any, key: str) -> Any:
        found = [asked for (_, each), asked in self._asked.items() if each == key]
        if not found:
            raise original("unknown")("question")
        return found[0].task.result() if found[0].task.done() else None

    with planted("Desk.again", again):
        yield


@mutant("answers kept for a name", killed_by="W01", published="a cache of replies that outlives a permission")
@contextmanager
def answers_for_a_name() -> Iterator[None]:
    """Keep answers for a person, whatever tables they may see by now."""
    with planted("standing", lambda person: person.name):
        yield


@mutant("numbers of JSON as floats", killed_by="W02", published="0.1 read as a float, 1e400 as infinity")
@contextmanager
def floats() -> Iterator[None]:
    """Read a JSON number with a point as a float, and spend it."""
    with planted("refuse_float", float), planted("amount in a body", lambda written, _name: str(written)):
        yield


@mutant("the last of two names wins", killed_by="W02", published="duplicate keys that two readers read differently")
@contextmanager
def last_name_wins() -> Iterator[None]:
    """Take the last of two equal names in an object."""
    with planted("object of JSON", dict):
        yield


@mutant("answers leave when they are ready", killed_by="W04", published="timing of a query shows a heavy person")
@contextmanager
def no_hold() -> Iterator[None]:
    """Hold nothing back."""
    with planted("PublicClock.seconds_left", lambda _self: 0.0):
        yield


@mutant("failures leave at once", killed_by="W04", published="an error that is quicker than an answer")
@contextmanager
def failures_at_once() -> Iterator[None]:
    """Hold back answers alone."""
    left = original("PublicClock.seconds_left")
    with planted("PublicClock.seconds_left", lambda self: 0.0 if sys.exc_info()[0] is not None else left(self)):
        yield


@mutant("entries written when they are ready", killed_by="W04", published="timestamps in a record beside held answers")
@contextmanager
def written_at_once() -> Iterator[None]:
    """Hold back the answer, and not the entry with its time."""
    with planted("wait_to_write", lambda: None):
        yield


@mutant("a turn ends when its answer is ready", killed_by="W04", published="small differences added up in a queue")
@contextmanager
def turns_end_early() -> Iterator[None]:
    """Start the next question when the last is ready, while its answer waits."""

    async def answered(self: Any, person: Any, name: str, wording: Any, key: str) -> Any:
        clock = None
        try:
            async with self.turns.turn(person.name):
                clock = original("PublicClock")(self.hold_of(name), self.now, self.wait)
                return self._run(person, name, wording, key, clock)
        finally:
            if clock is not None:
                await self.sleep(clock.seconds_left())

    with planted("Desk.answered", answered):
        yield


@mutant("the first table's clock", killed_by="W04j", published="a setting of a join read from its first table")
@contextmanager
def first_clock() -> Iterator[None]:
    """Take the hold of the table that is named first."""
    with planted("longest of holds", lambda holds: next(iter(holds), None)):
        yield


@mutant("the clock of the address", killed_by="W04j", published="a limit of the route, whatever its query reads")
@contextmanager
def clock_of_the_address() -> Iterator[None]:
    """Keep the clock of the table in the address, whatever else is read."""
    with planted("holding", lambda _every, *, sleep=None: nullcontext(sleep)):
        yield


@mutant("a header with the time it took", killed_by="W05", published="X-Process-Time, Server-Timing")
@contextmanager
def duration_header() -> Iterator[None]:
    """Say in a header how long the engine took."""
    run, given = original("Desk.run"), original("given reply")
    taken: list[float] = []

    def timed(self: Any, *rest: Any) -> Any:
        began = self.now()
        found = run(self, *rest)
        taken.append(self.now() - began)
        return found

    def telling(found: Any, key: str) -> Any:
        reply = given(found, key)
        reply.headers["server-timing"] = f"engine;dur={taken[-1]}"
        return reply

    with planted("Desk.run", timed), planted("given reply", telling):
        yield


@mutant("no rows, no content", killed_by="W05f", published="204 or 404 for a query that finds no rows")
@contextmanager
def no_content() -> Iterator[None]:
    """A question of which no row counts has a reply of its own."""
    aggregate, given = original("Engine.aggregate"), original("given reply")
    found_any: list[bool] = []

    def noting(self: Any, plan: Any, salt: str) -> Any:
        for exact in aggregate(self, plan, salt):
            found_any.append(any(any(each) for each in exact.sums.values()))
            yield exact

    def telling(found: Any, key: str) -> Any:
        reply = given(found, key)
        reply.status_code = 200 if found_any[-1] else 204
        return reply

    with planted("Engine.aggregate", noting), planted("given reply", telling):
        yield


@mutant("tokens believed for a while", killed_by="W10", published="a cache of sessions that outlives a revocation")
@contextmanager
def tokens_cached() -> Iterator[None]:
    """Believe a token that was good once."""
    person_of = original("person_of")
    known: dict[Any, Any] = {}

    def cached(authorization: Any, tokens: Any) -> Any:
        if authorization not in known:
            known[authorization] = person_of(authorization, tokens)
        return known[authorization]

    with planted("person_of", cached):
        yield


@mutant("every address is this machine", killed_by="W12", published="a service meant for loopback on 0.0.0.0")
@contextmanager
def any_address() -> Iterator[None]:
    """Listen anywhere without encryption."""
    with planted("is_loopback", lambda _host: True):
        yield


@mutant("a stored answer leaves early", killed_by="W16", published="a cache hit that shows in the time")
@contextmanager
def hits_answer_early() -> Iterator[None]:
    """Hold back only what was charged now."""
    spend, noting, clock_of = original("spend"), original("noting"), original("PublicClock")

    @contextmanager
    def early(*given: Any, **words: Any) -> Any:
        with noting(clock_of(1)), spend(*given, **words) as charge:
            yield charge
        if not charge.free:
            original("past_the_charge")()

    with planted("spend", early):
        yield


@mutant("one queue for all", killed_by="W18", published="first come, first served")
@contextmanager
def one_queue() -> Iterator[None]:
    """Serve in the order of arrival."""
    turn = original("Turns.turn")
    with planted("Turns.turn", lambda self, _analyst: turn(self, "everybody")):
        yield


@mutant("numbers through a float", killed_by="W19", published="JSON numbers re-printed as doubles")
@contextmanager
def through_a_float() -> Iterator[None]:
    """Write whole numbers as floats."""
    cell = original("cell of JSON")

    def rounded(value: Any) -> Any:
        return int(float(value)) if isinstance(value, int) and not isinstance(value, bool) else cell(value)

    with planted("cell of JSON", rounded):
        yield
