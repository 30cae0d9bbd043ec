"""Statements: what each of a client's statements gives, by the same desk as over HTTP.

A SELECT that names a declared table is a question. A question is charged and leaves on the clock; the rest is free: an
EXPLAIN is a plan, a SELECT of the catalog reads public facts, SET and SHOW are about the connection, and transactions
do nothing.
"""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tacit.answer import answer_from, closing_lines
from tacit.errors import InvalidParameter, QueryRefused, TacitError
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.options import Wording, read_wording
from tacit.query import PostgresSelect
from tacit.server.access import sees
from tacit.server.desk import KEY_BYTES, Desk, Given
from tacit.server.postgres import postgres_types
from tacit.server.postgres.postgres_types import Constant
from tacit.server.postgres.public_catalog import PublicCatalog
from tacit.server.postgres.row_cells import Column, StatementResult
from tacit.server.postgres.settings import Settings

# PostgreSQL's cursors: DECLARE "c" CURSOR FOR SELECT …, FETCH FORWARD 100 FROM "c", CLOSE "c"
CURSOR_CHARACTERS_MAX = 200  # of a FETCH
_NAME = r'(?P<name>"[^"]{1,63}"|\w{1,63})'
_DECLARE = re.compile(
    rf"DECLARE\s{{1,20}}{_NAME}(?P<how>[\s\w]{{0,60}}?)\bCURSOR\b(?P<holds>[\s\w]{{0,60}}?)\bFOR\s(?P<select>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FETCH = re.compile(
    r"(?:FETCH|MOVE|CLOSE)\s+(?:(?:FORWARD|NEXT)\b\s*)?(?:(?P<rows>\d{1,9}|ALL)\b\s*)?(?:(?:FROM|IN)\s+)?"
    rf"{_NAME}?\s*",
    re.IGNORECASE,
)
StatementText = tuple[str, tuple[str, ...], int]  # from its first word on; its first words; where it begins
CATALOGS_MAX = 8
READ_MAX = 100  # texts that are kept as they were read, and how long each may be
READ_CHARACTERS_MAX = 4_000
Found = TypeVar("Found")
QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
TAGS = {
    "BEGIN": "BEGIN",
    "START": "START TRANSACTION",
    "COMMIT": "COMMIT",
    "END": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "ABORT": "ROLLBACK",
    "SAVEPOINT": "SAVEPOINT",
    "RELEASE": "RELEASE",
    "DISCARD": "DISCARD ALL",
    "DEALLOCATE": "DEALLOCATE",
    "UNLISTEN": "UNLISTEN",
    "LISTEN": "LISTEN",
}
BEGINS, ENDS = frozenset({"BEGIN", "START"}), frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
# a constant for each type, in place of a parameter whose value is not known yet
SAMPLES: dict[str, Constant] = {"int": 1, "float": 1.0, "decimal": 1, "bool": True, "text": "x"}


@dataclass(frozen=True)
class ClientStatement:
    """A statement as it was read: its first words, and for a SELECT its tree and the declared table it is about."""

    text: str
    words: tuple[str, ...] = ()
    select: PostgresSelect | None = None
    table: str | None = None
    is_plan: bool = False
    declares: str | None = None  # the cursor that a DECLARE makes of its SELECT
    is_held: bool = False  # it stays after the transaction

    @property
    def first(self) -> str:
        return self.words[0] if self.words else ""


@dataclass
class Statements:
    """The statements of one desk's clients, and the catalogs of the tables that its people may see."""

    desk: Desk
    _catalogs: "OrderedDict[Any, PublicCatalog]" = field(default_factory=OrderedDict, init=False)
    _read: "OrderedDict[Any, Any]" = field(default_factory=OrderedDict, init=False)

    async def split(self, person: Person, text: str) -> list[StatementText]:
        return await self._kept(person, text, PostgresSelect.statements)

    async def read(self, person: Person, given: StatementText) -> ClientStatement:
        text, words, _ = given
        asked = ClientStatement(text, words)
        if asked.first == "DECLARE":
            return await self._declared(person, given)
        is_plan = asked.first == "EXPLAIN"
        if is_plan:
            text = text[len("EXPLAIN") :].lstrip() if asked.words[1:2] != ("(",) else text.partition(")")[2]
            if "ANALYZE" in asked.words[1:4]:
                raise QueryRefused("EXPLAIN ANALYZE would answer the question\nhint: EXPLAIN is the plan, and free")
            text = text[len("VERBOSE") :] if asked.words[1:2] == ("VERBOSE",) else text
        if not is_plan and asked.first not in QUERIES:
            return asked
        select = await self._kept(person, text, PostgresSelect.read)
        return replace(asked, select=select, table=self._about(person, select), is_plan=is_plan)

    async def _declared(self, person: Person, given: StatementText) -> ClientStatement:
        found = _DECLARE.fullmatch(given[0])
        if found is None or "BINARY" in found["how"].upper().split():
            raise QueryRefused("this DECLARE cannot be read\nhint: DECLARE c CURSOR FOR SELECT …")
        selects = await self.split(person, found["select"])
        asked = await self.read(person, selects[0] if selects else ("", (), 0))
        if asked.select is None or asked.is_plan or asked.declares is not None:
            raise QueryRefused("a cursor is of a SELECT\nhint: DECLARE c CURSOR FOR SELECT …")
        is_held = found["holds"].upper().split()[:1] == ["WITH"]
        return replace(asked, declares=cursor_name(found["name"]), is_held=is_held)

    async def _kept(self, person: Person, text: str, read: Callable[[str], Found]) -> Found:
        """Read a text once for a person; for others again, or the time would reveal that it was asked."""
        key = (person.name, read, text)
        if key not in self._read:
            found = await self.desk.free(person, lambda: read(text))
            if len(text) > READ_CHARACTERS_MAX:
                return found
            self._read[key] = found
            while len(self._read) > READ_MAX:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        kept: Found = self._read[key]
        return kept

    def _about(self, person: Person, select: PostgresSelect) -> str | None:
        """Return the first table of a SELECT that this person may ask about, under its declared name."""
        self.desk.look_again()
        known = {name.lower(): name for name in self.desk.file.tables if sees(person, name)}
        named = [name for schema, name in select.tables if schema in ("", "public")]
        found = next((known[name.lower()] for name in named if name.lower() in known), None)
        return None if select.is_empty else found

    async def parameters(self, person: Person, asked: ClientStatement) -> list[str]:
        """Return the types of a statement's parameters, by the columns that they are compared with."""
        if asked.select is None or not asked.select.parameters:
            return []
        select = asked.select
        declared = [each for each in await self.desk.declarations(person) if each.name == asked.table]
        columns = {name: facts.type for each in declared for name, facts in each.columns.items()}
        return select.parameter_types(columns)

    async def columns(
        self, person: Person, asked: ClientStatement, settings: Settings, constants: Sequence[Constant]
    ) -> Sequence[Column]:
        """Return the columns that a statement will give; none if it gives no rows. Free, and without a row."""
        if asked.declares is not None:
            return []
        if asked.is_plan:
            return [("QUERY PLAN", postgres_types.TEXT)]
        if asked.first == "SHOW":
            return [(_shown_name(asked), postgres_types.TEXT)]
        if asked.select is None:
            return []
        if asked.table is None:
            return (await self._of_catalog(person, asked.select, settings, constants)).columns
        wording = await self._wording(person, asked.select, settings, constants)
        try:
            types = await self.desk.columns(person, asked.table, wording)
        except QueryRefused as refused:
            raise _of_translated(refused, asked.select, wording) from None
        columns = [(name, postgres_types.OF_TYPE.get(kind, postgres_types.TEXT)) for name, kind in types.items()]
        return StatementResult(columns).chosen(asked.select.shown).columns

    async def run(
        self, person: Person, asked: ClientStatement, settings: Settings, constants: Sequence[Constant] = ()
    ) -> StatementResult:
        """Do what a statement says; only a question is charged."""
        if asked.select is not None and asked.table is not None:
            return await self._question(person, asked, settings, constants)
        if asked.is_plan:
            raise QueryRefused("only a question about a declared table has a plan\nhint: \\dt lists the tables")
        if asked.select is not None:
            return await self._of_catalog(person, asked.select, settings, constants)
        if not asked.words:
            return StatementResult(is_empty=True)
        if asked.first in TAGS:
            if asked.first == "DISCARD":
                settings.reset()
            return StatementResult(tag=TAGS[asked.first])
        return _about_settings(asked, settings)

    async def _question(
        self, person: Person, asked: ClientStatement, settings: Settings, constants: Sequence[Constant]
    ) -> StatementResult:
        if asked.select is None or asked.table is None:
            raise ValueError("a question has a table")
        wording = await self._wording(person, asked.select, settings, constants)
        try:
            if asked.is_plan:
                plan = await self.desk.plan(person, asked.table, replace(wording, flags={}))
                return StatementResult(
                    [("QUERY PLAN", postgres_types.TEXT)], [(line,) for line in plan["text"].split("\n")], tag="EXPLAIN"
                )
            if asked.select.shown:
                await self.columns(person, asked, settings, constants)  # a name without a column costs nothing
            given = await self.desk.ask(person, asked.table, wording, fresh_bytes(KEY_BYTES).hex())
        except QueryRefused as refused:
            raise _of_translated(refused, asked.select, wording) from None
        except TacitError as refused:
            raise _in_settings(refused, settings) from None
        shown = asked.select.shown
        return await self.desk.aside(lambda: answer_result(given).chosen(shown))

    async def _wording(
        self, person: Person, select: PostgresSelect, settings: Settings, constants: Sequence[Constant]
    ) -> Wording:
        def read() -> Wording:
            body = {"sql": select.in_our_words(constants), **settings.options()}
            return read_wording(write_json(body), may_answer=True)

        return await self.desk.free(person, read)

    async def _of_catalog(
        self, person: Person, select: PostgresSelect, settings: Settings, constants: Sequence[Constant]
    ) -> StatementResult:
        names = tuple(name for name in self.desk.file.tables if sees(person, name))
        catalog = self._catalogs.get(names)
        declarations = [] if catalog is not None else await self.desk.declarations(person)

        def ask() -> StatementResult:
            found = self._catalogs.get(names) or PublicCatalog(declarations)
            self._catalogs[names] = found
            while len(self._catalogs) > CATALOGS_MAX:
                self._catalogs.popitem(last=False)
            return found.ask(select, constants, person.name or "", settings.all())

        return await self.desk.free(person, ask)


def cursor_name(written: str) -> str:
    return written[1:-1] if written.startswith('"') else written.lower()


def fetched(asked: ClientStatement) -> tuple[str, int | None] | None:
    """Return the cursor that a FETCH, MOVE or CLOSE names, and how many rows (None: all); None of other statements."""
    if asked.first not in ("FETCH", "MOVE", "CLOSE"):
        return None
    found = _FETCH.fullmatch(asked.text) if len(asked.text) <= CURSOR_CHARACTERS_MAX else None
    if found is None or not (found["name"] or found["rows"]):
        raise QueryRefused("a cursor is only read forward here\nhint: FETCH 100 FROM c")
    if found["name"] is None:  # CLOSE ALL
        return "", None
    rows = (found["rows"] or "1").upper()
    return cursor_name(found["name"]), None if rows == "ALL" else int(rows)


def answer_result(given: Given) -> StatementResult:
    """Return an answer as rows, with the lines below it as notices."""
    answer = answer_from(json.loads(given.body), json.loads(given.left))
    names = answer.names
    columns = [
        (name, postgres_types.OF_TYPE.get(answer.types.get(name, "text"), postgres_types.TEXT)) for name in names
    ]
    return StatementResult(columns, [[row[name] for name in names] for row in answer.rows], closing_lines(answer, ""))


def _about_settings(asked: ClientStatement, settings: Settings) -> StatementResult:
    if asked.first == "SHOW":
        return StatementResult(
            [(_shown_name(asked), postgres_types.TEXT)], [(settings.show(_shown_name(asked)),)], tag="SHOW"
        )
    if asked.first == "RESET":
        name = asked.text.strip().removesuffix(";").split()[-1]
        settings.reset() if name.upper() == "ALL" else settings.set(name, "")
        return StatementResult(tag="RESET")
    if asked.first != "SET":
        raise QueryRefused(
            f"{asked.first[:20]} is not a statement of this server, which only answers questions"
            "\nhint: SELECT with aggregates, EXPLAIN SELECT, SET, SHOW"
        )
    if {"ROLE", "AUTHORIZATION"} & {*asked.words[1:3]}:
        settings.set("role", "x")
    found = PostgresSelect.setting(asked.text)
    if found is not None:
        settings.set(*found)
    elif asked.words[1:2] == ("NAMES",):
        settings.set("client_encoding", asked.words[2] if len(asked.words) > 2 else "")
    elif asked.words[1:2] not in (("TRANSACTION",), ("SESSION",), ("TIME",)):
        raise InvalidParameter("this SET cannot be read\nhint: SET tacit.epsilon = 0.5")
    return StatementResult(tag="SET")


def _shown_name(asked: ClientStatement) -> str:
    words = asked.text.strip().removesuffix(";").split()[1:]
    found = "_".join(words).lower().strip('"')
    return {"transaction_isolation_level": "transaction_isolation", "time_zone": "timezone"}.get(found, found)


def _of_translated(refused: QueryRefused, select: PostgresSelect, wording: Wording) -> QueryRefused:
    """Return a refusal with the text that its place is in, if that is not the client's own text."""
    if wording.sql == select.text or wording.sql is None:
        return refused
    return QueryRefused(f"{refused}\nread from postgres as: {wording.sql}")


def _in_settings(refused: TacitError, settings: Settings) -> TacitError:
    """Return a refusal for want of an amount with a hint in the words of this door."""
    if settings.options().keys() & {"epsilon", "error"} or not str(refused).startswith("give epsilon"):
        return refused
    return InvalidParameter(
        "this connection has not said how much a question may spend"
        "\nhint: SET tacit.epsilon = 0.5, or SET tacit.error = '2%'; EXPLAIN SELECT ... shows the plan of one"
    )
