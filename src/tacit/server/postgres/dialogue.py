"""One connection's dialogue: the person signs in, and sends statements by the simple or the extended protocol.

The token is looked up again before every statement, so that the end of a token holds at once. If a client goes away or
cancels, its question still runs to its end and is charged; the same question is then free.
"""

import asyncio
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, TypeVar

from tacit.errors import InvalidParameter, TacitError
from tacit.ledger import Person
from tacit.server.desk import told
from tacit.server.postgres import messages, postgres_types, scram
from tacit.server.postgres.messages import Broken, Fields
from tacit.server.postgres.postgres_types import Constant
from tacit.server.postgres.row_cells import Column, StatementResult, cells_of, described
from tacit.server.postgres.settings import Settings, settings_in
from tacit.server.postgres.statements import BEGINS, ENDS, SAMPLES, ClientStatement, Statements, StatementText, fetched
from tacit.server.postgres.transport import ClientWire, Gone
from tacit.server.problems import Problem
from tacit.server.watching import Watching

SIGN_IN_SECONDS = 10.0
KEPT_MAX = 500  # prepared statements, and portals, of one connection
KEPT_CHARACTERS_MAX = 4 << 20
ROWS_AT_ONCE = 500
OUR_PARAMETERS = frozenset({"user", "database", "options", "replication"})
# the kind of a problem -> SQLSTATE
STATES = {
    "refused": "42000",
    "refused-after-learning": "42000",
    "no-room": "53400",
    "being-answered": "55006",
    "failed-after-charge": "58000",
    "unauthorised": "42501",
    "unknown": "42P01",
    "too-many": "53300",
    "too-large": "54000",
    "unavailable": "57P03",
}
WRONG_PASSWORD, CANCELLED, READ_ONLY = "28P01", "57014", "25006"
_PLACE = re.compile(r"\(line (\d{1,6}), column (\d{1,6})\)")
Found = TypeVar("Found")


class Cancelled(Exception):
    """The client has cancelled its statement."""


@dataclass(frozen=True)
class Prepared:
    """A statement that was parsed, with the types of its parameters."""

    asked: ClientStatement
    given: StatementText
    types: tuple[int, ...]


@dataclass
class Portal:
    """A statement with its parameters' values, and the rows that are not sent yet."""

    prepared: Prepared
    constants: Sequence[Constant]
    formats: Sequence[int]
    columns: Sequence[Column] | None = None
    result: StatementResult | None = None
    sent: int = 0


@dataclass
class PostgresSession:
    """One client's session."""

    wire: ClientWire
    statements: Statements
    watching: Watching
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    person: Person | None = None
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    _token: str = ""  # its id
    _settings: Settings = field(default_factory=Settings)
    _in_transaction: bool = False
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _portals: dict[str, Portal] = field(default_factory=dict)
    _is_skipping: bool = False  # after an error of the extended protocol, until Sync

    def __post_init__(self) -> None:
        self.idle.set()

    @property
    def is_busy(self) -> bool:
        return not self.idle.is_set()

    # --- who it is ---

    async def sign_in(self, options: Mapping[str, str]) -> bool:
        """Have the client prove that it has a token of the user's; return False after a refusal was sent."""
        try:
            self._read_options(options)
            if self.wire.can_encrypt and not self.wire.is_private:
                raise _unencrypted()
            await self._prove(options.get("user", ""))
        except (Problem, TacitError) as problem:
            found = _signing_in(told(problem))
            self._note(found)
            await self._tell(found, severity="FATAL", state=WRONG_PASSWORD if found.status == 401 else None)
            return False
        self._settings.user = self._asker.name or ""
        self._note(None)
        return True

    async def _prove(self, user: str) -> None:
        """Take SCRAM's messages; the token itself is never sent."""
        desk, address = self.statements.desk, self.wire.address
        known = await desk.scram(user, address)
        mechanisms = messages.text_field(scram.MECHANISM) + b"\0"
        first = await self._sign_in_step(messages.authentication(10, mechanisms))
        if first.text() != scram.MECHANISM:
            raise Broken
        exchange = scram.ScramExchange.begun(first.cell() or b"", known.salt, known.rounds)
        first.end()
        last = await self._sign_in_step(messages.authentication(11, exchange.server_first.encode()))
        proved = exchange.finished(last.rest(), known.keys)
        if proved is None:
            raise desk.guessed(address)
        self._token, signature = proved
        try:
            self.person = await self._who()
        except Problem as problem:
            raise desk.guessed(address) if problem.status == 401 else problem from None
        await self.wire.send(messages.authentication(12, signature))

    async def _sign_in_step(self, request: bytes) -> Fields:
        """Return the fields of a client's next message of signing in."""
        await self.wire.send(request)
        kind, body = await self.wire.message(bytes_max=messages.STARTUP_BYTES_MAX, seconds=SIGN_IN_SECONDS)
        if kind != b"p":
            raise Broken
        return Fields(body)

    async def _who(self) -> Person:
        """Return the person of the token, read from the ledger now."""
        person = await self.statements.desk.holder(self._token)
        self._settings.usual_epsilon = person.usual_epsilon
        return person

    def _read_options(self, options: Mapping[str, str]) -> None:
        if "replication" in options:
            raise InvalidParameter("replication is not possible here\nhint: connect as to a database")
        named = [(name, value) for name, value in options.items() if name not in OUR_PARAMETERS]
        for name, value in (*named, *settings_in(options.get("options", ""))):
            if not name.startswith("_pq_."):
                self._settings.set(name, value)

    # --- its messages ---

    async def run(self, process: int, secret: bytes) -> None:
        """Answer the client's messages until it goes."""
        told_first = [messages.parameter_status(*each) for each in self._settings.reported()]
        await self.wire.send(
            b"".join([messages.authentication(0), *told_first, messages.key_data(process, secret), self._ready()])
        )
        while True:
            kind, body = await self.wire.message()
            if kind == b"X":
                return
            await self._answer(kind, Fields(body))

    async def _answer(self, kind: bytes, fields: Fields) -> None:
        if kind == b"S":
            fields.end()
            self._is_skipping = False
            await self.wire.send(self._ready())
            return
        if kind == b"H" or (self._is_skipping and kind != b"Q"):
            return
        verb = _VERBS.get(kind)
        if verb is None:
            raise Broken
        self.cancelled.clear()
        self.idle.clear()
        problem: Problem | None = None
        start = 0
        try:
            if kind in (b"Q", b"P", b"E"):
                await self._refresh()
            await verb(self, fields)
        except Cancelled:
            problem = _cancelled()
        except (Broken, Gone):
            raise
        except _At as failed:
            problem, start = told(failed.error), failed.start
        except Exception as error:  # noqa: BLE001 - what leaves is a problem in our words
            problem = told(error)
        finally:
            self.idle.set()
        if kind in (b"Q", b"E") or problem is not None:
            self._note(problem)
        if problem is not None:
            self._is_skipping = kind != b"Q"
            await self._tell(problem, start=start)
        if kind == b"Q":
            await self.wire.send(self._ready())

    async def _refresh(self) -> None:
        """Look the token up again; the session is over if the token has ended."""
        try:
            self.person = await self._who()
        except Problem as problem:
            if problem.status not in (401, 429):
                raise
            self._note(problem)
            await self._tell(_signing_in(problem), severity="FATAL", state="57P01")
            raise Gone from None

    @property
    def _asker(self) -> Person:
        if self.person is None:
            raise Gone
        return self.person

    async def _simple(self, fields: Fields) -> None:
        text = fields.text()
        fields.end()
        self._prepared.pop("", None)
        self._portals.pop("", None)
        given = await self.statements.split(self._asker, text)
        if not given:
            await self.wire.send(messages.EMPTY)
        for each in given:
            try:
                asked = await self.statements.read(self._asker, each)
                if asked.select is not None and asked.select.parameters:
                    raise InvalidParameter(
                        "a parameter needs a value, which this protocol cannot send\nhint: write the value itself"
                    )
                result = await self._run(asked, each)
            except (TacitError, Problem) as error:
                raise _At(error, each[2]) from None
            await self._send_result(asked, result)

    async def _run(self, asked: ClientStatement, given: StatementText, constants: Sequence[Constant] = ()) -> Any:
        """Return what a statement gives; a cursor is a portal that was declared, and its first rows charge for it."""
        if asked.declares is not None:
            self._require_portal()
            prepared = Prepared(replace(asked, declares=None), given, ())
            self._portals[asked.declares] = Portal(prepared, constants, ())
            return StatementResult(tag="DECLARE CURSOR")
        named = fetched(asked)
        if named is None:
            return await self._waited(self.statements.run(self._asker, asked, self._settings, constants))
        if asked.first == "CLOSE":
            for name in [named[0]] if named[0] else list(self._portals):
                self._portals.pop(name, None)
            return StatementResult(tag="CLOSE CURSOR")
        portal, most = self._cursor(named[0]), named[1]
        result = await self._result_of(portal)
        rows = result.rows[portal.sent : None if most is None else portal.sent + most]
        portal.sent += len(rows)
        if asked.first == "MOVE":
            return StatementResult(tag=f"MOVE {len(rows)}")
        return replace(result, rows=rows, notices=(), tag=f"FETCH {len(rows)}")

    async def _send_result(self, asked: ClientStatement, result: StatementResult) -> None:
        """Send a result of the simple protocol: all cells are text."""
        self._note_transaction(asked)
        columns = list(result.columns)
        if columns:
            await self.wire.send(messages.row_description(described(columns, ())))
            await self._send_rows(result.rows, columns, ())
        await self._send_notices(result)
        await self.wire.send(messages.EMPTY if result.is_empty else messages.complete(result.words))

    async def _send_rows(self, rows: Sequence[Any], columns: Sequence[Column], formats: Sequence[int]) -> None:
        for at in range(0, len(rows), ROWS_AT_ONCE):
            cells = cells_of(rows[at : at + ROWS_AT_ONCE], columns, formats)
            await self.wire.send(messages.data_rows(cells))

    async def _send_notices(self, result: StatementResult) -> None:
        for line in result.notices:
            fields = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": line}
            await self.wire.send(messages.report(b"N", fields))

    # --- the extended protocol ---

    async def _parse(self, fields: Fields) -> None:
        name, text = fields.text(), fields.text()
        types = tuple(fields.int32() & 0xFFFFFFFF for _ in range(fields.count()))
        fields.end()
        given = await self.statements.split(self._asker, text)
        if len(given) > 1:
            raise InvalidParameter("a prepared statement is one statement\nhint: prepare each by itself")
        self._require_room(name, text)
        one = given[0] if given else ("", (), 0)
        asked = await self.statements.read(self._asker, one)
        inferred = await self.statements.parameters(self._asker, asked)
        numbers = [postgres_types.OF_TYPE.get(each, postgres_types.TEXT) for each in inferred]
        numbers += [postgres_types.TEXT] * (len(types) - len(numbers))
        own = [*types, *[0] * (len(numbers) - len(types))]
        found = [
            number if each in (0, postgres_types.UNKNOWN) else each for each, number in zip(own, numbers, strict=True)
        ]
        self._prepared[name] = Prepared(asked, one, tuple(found))
        await self.wire.send(messages.PARSED)

    def _require_room(self, name: str, text: str) -> None:
        if name and name in self._prepared:
            raise InvalidParameter("a prepared statement of this name exists\nhint: close it first")
        kept = sum(len(each.given[0]) for each in self._prepared.values()) + len(text)
        if len(self._prepared) >= KEPT_MAX or kept > KEPT_CHARACTERS_MAX:
            raise InvalidParameter(
                "this connection keeps too many prepared statements\nhint: DEALLOCATE, or close some"
            )

    async def _bind(self, fields: Fields) -> None:
        name, prepared = fields.text(), self._statement(fields.text())
        formats = [fields.int16() for _ in range(fields.count())]
        cells = [fields.cell() for _ in range(fields.count())]
        wanted = [fields.int16() for _ in range(fields.count())]
        fields.end()
        if len(cells) != len(prepared.types):
            raise InvalidParameter(
                f"the statement has {len(prepared.types)} parameters, and {len(cells)} values were sent"
                "\nhint: send a value for each"
            )
        if len(formats) not in (0, 1, len(cells)):
            raise Broken
        binary = list(formats) * len(cells) if len(formats) == 1 else list(formats) or [0] * len(cells)
        constants = [
            postgres_types.constant_of(cell, type, is_binary=bool(each))
            for cell, type, each in zip(cells, prepared.types, binary, strict=True)
        ]
        self._require_portal()
        self._portals[name] = Portal(prepared, constants, wanted)
        await self.wire.send(messages.BOUND)

    async def _describe(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.end()
        if kind == b"S":
            prepared = self._statement(name)
            await self.wire.send(messages.parameter_description(prepared.types))
            constants = [_sample(each) for each in prepared.types]
            columns = await self._columns(prepared, constants)
            formats: Sequence[int] = ()
        elif kind == b"P":
            portal = self._portal(name)
            columns, formats = await self._columns_of(portal), portal.formats
        else:
            raise Broken
        await self.wire.send(messages.row_description(described(columns, formats)) if columns else messages.NO_DATA)

    def _require_portal(self) -> None:
        if len(self._portals) >= KEPT_MAX:
            raise InvalidParameter("this connection has too many open results\nhint: close some")

    async def _columns(self, prepared: Prepared, constants: Sequence[Constant]) -> Sequence[Column]:
        named = fetched(prepared.asked)
        if named is not None:
            return await self._columns_of(self._cursor(named[0])) if prepared.asked.first == "FETCH" else []
        return await self.statements.columns(self._asker, prepared.asked, self._settings, constants)

    async def _columns_of(self, portal: Portal) -> Sequence[Column]:
        if portal.columns is None:
            portal.columns = await self._columns(portal.prepared, portal.constants)
        return portal.columns

    async def _execute(self, fields: Fields) -> None:
        portal, most = self._portal(fields.text()), fields.int32()
        fields.end()
        result = await self._result_of(portal)
        rest = result.rows[portal.sent : portal.sent + most] if most > 0 else result.rows[portal.sent :]
        await self._send_rows(rest, result.columns, portal.formats)
        portal.sent += len(rest)
        if portal.sent < len(result.rows):
            await self.wire.send(messages.SUSPENDED)
        else:
            await self.wire.send(messages.EMPTY if result.is_empty else messages.complete(result.words))

    async def _result_of(self, portal: Portal) -> StatementResult:
        if portal.result is None:
            columns = await self._columns_of(portal)
            found = await self._run(portal.prepared.asked, portal.prepared.given, portal.constants)
            portal.result = _as_described(found, columns)
            self._note_transaction(portal.prepared.asked)
            await self._send_notices(found)
        return portal.result

    async def _close(self, fields: Fields) -> None:
        kind, name = fields.take(1), fields.text()
        fields.end()
        if kind not in (b"S", b"P"):
            raise Broken
        (self._prepared if kind == b"S" else self._portals).pop(name, None)
        await self.wire.send(messages.CLOSED)

    def _statement(self, name: str) -> Prepared:
        found = self._prepared.get(name)
        if found is None:
            raise InvalidParameter("a prepared statement of this name is missing\nhint: prepare it again")
        return found

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise InvalidParameter("an open result of this name is missing\nhint: bind it again")
        return found

    def _cursor(self, name: str) -> Portal:
        """Return an open result that is a SELECT's: a FETCH of a FETCH would not end."""
        found = self._portal(name)
        if found.prepared.asked.select is None:
            raise InvalidParameter("a cursor is of a SELECT\nhint: DECLARE c CURSOR FOR SELECT …")
        return found

    # --- waiting, and replies ---

    async def _waited(self, work: Awaitable[Found]) -> Found:
        """Return what a statement gives, unless the client cancels or goes away first: that depends on no row."""
        task = asyncio.ensure_future(work)
        stops = [asyncio.ensure_future(each.wait()) for each in (self.cancelled, self.wire.lost)]
        try:
            await asyncio.wait([task, *stops], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.add_done_callback(_forgotten)
                raise Gone if self.wire.lost.is_set() else Cancelled
            return task.result()
        finally:
            for each in stops:
                each.cancel()

    def _note_transaction(self, asked: ClientStatement) -> None:
        if asked.first in BEGINS:
            self._in_transaction = True
        elif asked.first in ENDS and "TO" not in asked.words:
            self._in_transaction = False
        elif asked.first in ("DISCARD", "DEALLOCATE"):
            self._prepared.clear()

    def _ready(self) -> bytes:
        if not self._in_transaction:
            self._portals = {name: each for name, each in self._portals.items() if each.prepared.asked.is_held}
        return messages.ready(in_transaction=self._in_transaction)

    def _note(self, problem: Problem | None) -> None:
        """Count and log a statement as a request of HTTP is."""
        name = None if self.person is None else self.person.name
        scope = {
            "method": "QUERY",
            "route": SimpleNamespace(path_format="postgres"),
            "client": (self.wire.address, 0),
            "state": {"asker": {"person": name, "token": self._token or None}},
        }
        self.watching.note(scope, 200 if problem is None else problem.status, None if problem is None else problem.kind)

    async def _tell(
        self, problem: Problem, *, severity: str = "ERROR", state: str | None = None, start: int = 0
    ) -> None:
        # the position is of the client's own text: a translated one is quoted in the message
        place = _PLACE.search(problem.detail) if "read from" not in problem.hint else None
        fields = {
            "S": severity,
            "V": severity,
            "C": state or STATES.get(problem.kind, "XX000"),
            "M": problem.detail,
            "H": problem.hint,
            "P": str(start + int(place[2])) if place is not None and place[1] == "1" else "",
        }
        await self.wire.send(messages.report(b"E", fields))


class _At(Exception):
    """A refusal of one of several statements, with the place at which that statement begins."""

    def __init__(self, error: Exception, start: int) -> None:
        self.error, self.start = error, start


def _as_described(result: StatementResult, columns: Sequence[Column]) -> StatementResult:
    """Return a result with the types that were described before."""
    if [name for name, _ in result.columns] != [name for name, _ in columns]:
        raise InvalidParameter("the columns of this statement have changed\nhint: prepare it again")
    return StatementResult(columns, result.rows, result.notices, result.tag, is_empty=result.is_empty)


def _sample(type: int) -> Constant:
    kind = next((kind for kind, number in postgres_types.OF_TYPE.items() if number == type), "")
    if kind in ("date", "timestamp"):
        return postgres_types.EPOCH.date() if kind == "date" else postgres_types.EPOCH
    return 1 if type in postgres_types.INTEGERS else SAMPLES.get(kind, "x")


def _forgotten(task: "asyncio.Future[Any]") -> None:
    """Take the outcome of a statement that was cancelled or left."""
    if not task.cancelled():
        task.exception()


def _signing_in(problem: Problem) -> Problem:
    """Return a refusal of a token in this door's words."""
    hint = "the user is your name in the ledger, and the password your token (tacit_...), which the curator makes"
    if problem.status == 401:
        return Problem("unauthorised", 401, "no valid token was given for this user", hint)
    return Problem(problem.kind, problem.status, problem.detail, problem.hint or hint)


def _unencrypted() -> Problem:
    hint = "connect with sslmode=require"
    return Problem("unauthorised", 403, "from another machine this server is asked only inside TLS", hint)


def _cancelled() -> Problem:
    hint = "a question that was charged runs to its end: ask the same again, and it is free"
    return Problem("cancelled", 499, "the statement was cancelled, as its client asked", hint)


STATES["cancelled"] = CANCELLED
_VERBS: Mapping[bytes, Any] = {
    b"Q": PostgresSession._simple,
    b"P": PostgresSession._parse,
    b"B": PostgresSession._bind,
    b"D": PostgresSession._describe,
    b"E": PostgresSession._execute,
    b"C": PostgresSession._close,
}
