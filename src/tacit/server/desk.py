"""`Desk`: takes a question from a person to its answer, on the table's public clock.

Every answering thread has separate connections to the sources, so that a slow question does not delay others; all share
the ledger. A question runs to its end whoever waits for it: a client that goes away has been charged, and gets the
answer by its key. If the process dies before that, the next process that is asked for the key carries out the same
charge.
"""

import asyncio
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from tacit.answer import Answer, advised, answer_record, loss_record
from tacit.asking import (
    Catalog,
    Description,
    Question,
    QuestionCall,
    Table,
    answer_columns,
    learn_ahead,
    left_record,
    question_of,
    sent_as,
    travelled_question,
    what_is_left,
)
from tacit.catalog_file import CatalogEntry, CatalogFile, read_catalog
from tacit.errors import BeingAnswered, InvalidParameter, LedgerError, QueryRefused, TacitError, printable
from tacit.hold import PublicClock, hold_text, noting
from tacit.json_wire import write_json
from tacit.ledger import Ledger, Person, name_key
from tacit.options import Wording, read_wording
from tacit.query import public_declaration, question_from
from tacit.server.access import Guesses, KnowsTokens, has_token, person_of, require, sees, too_many_guesses
from tacit.server.problems import Problem, problem_of, refused_after_learning, unauthorised, unknown
from tacit.server.sign_on import Provider, is_signed_token
from tacit.server.turns import Turns
from tacit.server.warming import Warming
from tacit.tables import Declaration, PublicTable

HOLD = Fraction(2)
TURNS = 8
PLANNERS = 2
BESIDE = 4  # acts of curators and pages of the record at once
ELSEWHERE_TICKS = (1, 2, 4)  # how long a question is waited for that another replica may be answering
KEPT_MAX = 500  # answers that stay in memory for clients that come back
KEPT_BYTES_MAX = 1 << 20
READ_MAX = 100  # questions that a thread keeps as they were read
KEY_BYTES = 16  # of a key that a client did not choose
ASK_THE_CURATOR = "ask the curator: the server's log says why"

log: logging.Logger = logging.getLogger("tacit.server")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Given:
    """An answer as it leaves: its bytes, and the rest of the budget."""

    body: bytes
    left: str


@dataclass(frozen=True)
class _Asked:
    """A question that is being answered, or was: the request with its key, and the task that answers it."""

    digest: str
    task: "asyncio.Task[Given]"


@dataclass
class Desk:
    """A catalog, a ledger and those who may ask; `hold` is the public clock of tables that do not declare one."""

    file: CatalogFile
    ledger: Ledger
    tokens: KnowsTokens  # the ledger, replaced in tests
    hold: Fraction = HOLD
    turns_number: int = TURNS
    workers: int = 1  # how many processes have such a desk
    sign_on: Provider | None = None
    sources: tuple[Path, ...] = ()  # the folders from which tables may be declared over HTTP
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    wait: Callable[[float], None] = time.sleep  # the same, in a thread
    _own: threading.local = field(default_factory=threading.local, init=False)
    _asked: "OrderedDict[tuple[Hashable, str], _Asked]" = field(default_factory=OrderedDict, init=False)

    def __post_init__(self) -> None:
        self._mark = _mark(self.file.path)
        self.file = replace(self.file, tables=self._with_holds(self.file.tables))
        self.warming: Warming = Warming()
        self.turns: Turns = Turns(self.turns_number)
        self._plan_turns = Turns(PLANNERS)
        self._guesses = Guesses(self.now, self.workers)
        self._answering: Executor = ThreadPoolExecutor(self.turns_number, "tacit-answer")
        self._planning: Executor = ThreadPoolExecutor(PLANNERS, "tacit-plan")
        self._reading: Executor = ThreadPoolExecutor(PLANNERS, "tacit-read")
        self._doubting: Executor = ThreadPoolExecutor(1, "tacit-doubt")
        self._beside: Executor = ThreadPoolExecutor(BESIDE, "tacit-beside")

    def warm(self, then: Callable[[], None] = lambda: None) -> None:
        """Open every table once, so that a wrong declaration is reported now; `then` is called afterwards."""
        self._open_tables()
        self.warming.begin(self._answering, self.turns_number, self._open_tables, then)

    def _open_tables(self) -> None:
        """Open every table for this thread; no row is read."""
        for name in self.file.tables:
            self._catalog()[name]

    def close(self) -> None:
        """Let questions that run finish, and take no more."""
        self.warming.stop()
        for pool in (self._answering, self._planning, self._reading, self._doubting, self._beside):
            pool.shutdown(wait=True)

    # --- who asks ---

    async def who(self, authorization: str | None, address: str) -> Person:
        """Return who sent a request, as the ledger has it now; an address with many wrong tokens waits its turn."""
        is_limited = self._guesses.is_limited(address)
        pool = self._doubting if is_limited else self._reading
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, self._person_of, authorization)
        except Problem as problem:
            if not has_token(authorization):
                raise
            self._guesses.note(address)
            raise too_many_guesses() if is_limited else problem from None

    def _person_of(self, authorization: str | None) -> Person:
        token = (authorization or "").partition(" ")[2]
        if self.sign_on is not None and has_token(authorization) and is_signed_token(token):
            return self.sign_on.person(token)
        return person_of(authorization, self.tokens)

    async def scram(self, name: str, address: str) -> Any:
        """Return the keys that prove a token of this name; an address with many wrong proofs waits its turn."""
        pool = self._doubting if self._guesses.is_limited(address) else self._reading
        return await asyncio.get_running_loop().run_in_executor(pool, self.tokens.scram, name)

    def guessed(self, address: str) -> Problem:
        """Count a wrong proof, and return the reply to it."""
        is_limited = self._guesses.is_limited(address)
        self._guesses.note(address)
        return too_many_guesses() if is_limited else unauthorised()

    async def holder(self, id: str) -> Person:
        """Return the owner of a token that was proved when its session began, read from the ledger now."""
        person = await asyncio.get_running_loop().run_in_executor(self._reading, self.tokens.holder, id)
        if person is None or person.name is None:
            raise unauthorised()
        return person

    async def aside(self, make: Callable[[], Found]) -> Found:
        """Run what uses the ledger, and no row, beside the questions."""
        return await asyncio.get_running_loop().run_in_executor(self._beside, make)

    async def doubted(self, make: Callable[[], Found]) -> Found:
        """Run a look-up for a visitor without a sign-in, one at a time: guesses keep only each other waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._doubting, make)

    async def certificate(self, person: Person, number: int) -> Any:
        """Return a certificate to the analyst who was charged, to curators and auditors; for others it is missing."""
        require(person, "see")
        try:
            found = await self.aside(lambda: self.ledger.certificate(number))
        except InvalidParameter:
            raise unknown("answer") from None
        names = {table.id: table.name for table in await self.aside(self.ledger.tables)}
        charge = json.loads(found["chain"]["charge"]["body"])
        is_others = person.role == "analyst" and name_key(charge.get("analyst") or "") != name_key(person.name or "")
        read = [names.get(id) for id in (charge["table"], *charge.get("beside", ()))]  # all tables of a join
        if is_others or not all(name is not None and sees(person, name) for name in read):
            raise unknown("answer")
        return found

    # --- what is public ---

    def look_again(self) -> None:
        """Take in tables that were added to the catalog since it was read; others stay as they were at the start."""
        mark = _mark(self.file.path)
        if mark == self._mark:
            return
        self._mark = mark
        try:
            found = read_catalog(self.file.path, may_be_empty=True)
        except TacitError:  # the file is being written, or has a mistake
            return
        added = {name: entry for name, entry in found.tables.items() if name not in self.file.tables}
        if added:
            self.file = replace(self.file, tables={**self.file.tables, **self._with_holds(added)})

    def _with_holds(self, tables: Mapping[str, CatalogEntry]) -> dict[str, CatalogEntry]:
        """Return tables of which each has a hold, so that a question about several keeps the longest of them."""
        return {
            name: replace(entry, options={**entry.options, "hold": entry.options.get("hold") or self.hold})
            for name, entry in tables.items()
        }

    def listed(self, person: Person) -> list[dict[str, Any]]:
        require(person, "see")
        self.look_again()
        return [
            {"name": name, "hold": hold_text(self.hold_of(name))} for name in self.file.tables if sees(person, name)
        ]

    async def described(self, person: Person, name: str) -> dict[str, Any]:
        """Return the declaration of a table, its public clock, and the rest of the budget."""
        self._require(person, "see", name)

        def read() -> dict[str, Any]:
            table = self._table(name)
            declared = table.frame.declaration.record()
            return {
                "declaration": declared,
                "hold": hold_text(self.hold_of(name)),
                "budget": _budget_left(table, person),
            }

        return await self.free(person, read)

    async def known(self, person: Person, name: str) -> dict[str, list[Any]]:
        """Return the groups that were found and are free for this person, by the column that they are values of."""
        self._require(person, "see", name)

        def read() -> dict[str, list[Any]]:
            table = self._table(name)
            of_column = {f"which groups by {column} there are": column for column in table.frame.declaration.columns}
            facts = [each for each in table.session.facts(person.name) if each.words in of_column]
            return {of_column[each.words]: [key for (key,) in each.fact.keys] for each in facts}

        return await self.free(person, read)

    async def read(self, person: Person, name: str, bodies: Sequence[str]) -> list[Question | None]:
        """Return questions from their bodies, to put them in words; None for one that cannot be read any more."""
        self._require(person, "see", name)

        def one(body: str) -> Question | None:
            try:
                return self._question(person, name, read_wording(body.encode(), may_answer=True))
            except (TacitError, ValueError):
                return None

        return await self.free(person, lambda: [one(body) for body in bodies])

    async def budget(self, person: Person, name: str) -> dict[str, Any]:
        """Return what a person may still spend on a table."""
        self._require(person, "see", name)
        return await self.free(person, lambda: _budget_left(self._table(name), person))

    def facts_of(self, name: str) -> list[dict[str, Any]]:
        """Return what was learned of a table, for how much, and by whom if it is known to that analyst only."""
        session = self._table(name).session
        found: dict[int, dict[str, Any]] = {}
        # an analyst with a personal budget has separate facts
        for analyst in (None, *self.ledger.analysts(session.registered)):
            for each in session.facts(analyst).to_dicts():
                found.setdefault(each["entry"], {**each, "analyst": analyst})
        return [found[entry] for entry in sorted(found)]

    def hold_of(self, name: str) -> Fraction:
        """Return the public clock of a table."""
        held: Fraction = self.file.tables[name].options["hold"]
        return held

    # --- plans ---

    async def plan(self, person: Person, name: str, wording: Wording) -> dict[str, Any]:
        """Return what answering would do, cost and give; free, and no row is read."""
        self._require(person, "plan", name)

        def made() -> dict[str, Any]:
            question = self._question(person, name, wording)
            report = question.plan(**wording.spending, analyst=person.name)
            loss = report.loss
            fit = getattr(report, "fit", None)
            return {"text": str(report), "loss": loss_record(loss), "fits": fit is None or fit.short is None}

        return await self.free(person, made)

    async def learn(self, person: Person, name: str, wording: Wording) -> None:
        """Charge for and learn the facts that a question lacks, on the public clock: then its plan states its error."""

        def learned(_: Table) -> None:
            call = QuestionCall(**wording.spending, analyst=person.name)
            learn_ahead(self._question(person, name, wording), call)

        await self.charged(person, name, learned)

    async def planned(self, person: Person, name: str, make: Callable[[Table], Found]) -> Found:
        """Return what is planned about a table: free, and no row is read."""
        self._require(person, "plan", name)
        return await self.free(person, lambda: make(self._table(name)))

    async def charged(self, person: Person, name: str, make: Callable[[Table], Found]) -> Found:
        """Charge for what `make` asks of a table, and return it on the table's public clock, whatever comes of it."""
        self._require(person, "ask", name)
        async with self.turns.turn(person.name or ""):
            clock = PublicClock(self.hold_of(name), self.now, self.wait)

            def run() -> Found:
                with noting(clock):
                    try:
                        return make(self._table(name))
                    except TacitError as refused:
                        if clock.has_charged:
                            raise refused_after_learning(refused) from None
                        raise

            try:
                return await asyncio.get_running_loop().run_in_executor(self._answering, run)
            finally:
                await self.sleep(clock.seconds_left())

    async def columns(self, person: Person, name: str, wording: Wording) -> dict[str, str]:
        """Return the columns that an answer would have, with their types: from the words only, and free."""
        self._require(person, "plan", name)
        return await self.free(person, lambda: answer_columns(self._question(person, name, wording)))

    async def declarations(self, person: Person) -> list[Declaration]:
        """Return what is public of every table that a person may see, and of public tables."""
        require(person, "see")
        self.look_again()

        def read() -> list[Declaration]:
            seen = [self._table(name).frame.declaration for name in self.file.tables if sees(person, name)]
            return [*seen, *(public_declaration(self._public(name)) for name in self.file.public)]

        return await self.free(person, read)

    async def free(self, person: Person, make: Callable[[], Found]) -> Found:
        """Return what is free; people take turns, so that many plans of one person do not delay others."""
        async with self._plan_turns.turn(person.name or ""):
            return await asyncio.get_running_loop().run_in_executor(self._planning, make)

    # --- answers ---

    async def ask(self, person: Person, name: str, wording: Wording, key: str) -> Given:
        """Return the answer, at a tick of the table's clock; the same key gives the same bytes, and is charged once."""
        self._require(person, "ask", name)
        who, digest = (_standing(person), key), f"{name} {wording.digest}"
        asked = self._asked.get(who)
        if asked is None:
            task = asyncio.get_running_loop().create_task(self._answered(person, name, wording, key))
            asked = self._asked[who] = _Asked(digest, task)
            task.add_done_callback(lambda done: self._forget(who, done))
        elif asked.digest != digest:
            raise InvalidParameter(
                "this Idempotency-Key was sent with another question\nhint: send a new key with a new question"
            )
        return await asyncio.shield(asked.task)

    async def again(self, person: Person, key: str) -> Given | None:
        """Return the answer to a question that was asked with this key; None while it is unanswered."""
        require(person, "ask")
        asked = self._asked.get((_standing(person), key))
        if asked is not None:
            return asked.task.result() if asked.task.done() else None
        # forgotten here, before a restart, or on another replica: the ledger has the request
        run = asyncio.get_running_loop().run_in_executor
        found = await run(self._reading, self.ledger.sent_with, key, person.name)
        name, sent = ("", None) if found is None else found
        if name not in self.file.tables:
            self.look_again()  # another worker may have declared it
        if sent is None or name not in self.file.tables or not sees(person, name):
            raise replace(unknown("question"), hint="send the question again with its key: it is charged once")
        return await self.ask(person, name, read_wording(sent.encode(), may_answer=True), key)

    async def _answered(self, person: Person, name: str, wording: Wording, key: str) -> Given:
        async with self.turns.turn(person.name or ""):
            clock = PublicClock(self.hold_of(name), self.now, self.wait)
            try:
                return await self._answered_here_or_there(person, name, wording, key, clock)
            finally:  # for every outcome: an answer, a failure, a stored answer
                await self.sleep(clock.seconds_left())

    async def _answered_here_or_there(
        self, person: Person, name: str, wording: Wording, key: str, clock: PublicClock
    ) -> Given:
        """Return the answer; a key that another worker or replica has in hand is asked for again at later ticks."""
        run = asyncio.get_running_loop().run_in_executor
        for ticks in ELSEWHERE_TICKS:
            try:
                return await run(self._answering, self._run, person, name, wording, key, clock)
            except BeingAnswered:
                await self.sleep(float(clock.every * ticks))
        return await run(self._answering, self._run, person, name, wording, key, clock)

    def _run(self, person: Person, name: str, wording: Wording, key: str, clock: PublicClock) -> Given:
        """Return the answer as it leaves, in a thread; its key is in hand, so that a dead process's charge is carried
        out."""
        with noting(clock), sent_as(wording.body), self.ledger.in_hand(key, person.name):
            question = self._question(person, name, wording)
            try:
                answer = question.answer(**wording.spending, **wording.flags, request_id=key, analyst=person.name)
            except TacitError as refused:
                if clock.has_charged:
                    raise refused_after_learning(refused) from None
                raise
            if isinstance(answer, Description):
                raise InvalidParameter(
                    "DESCRIBE is not a question\nhint: GET /api/v1/tables/{table} has the public facts"
                )
            left = json.dumps(dict(answer.facts.left))
            return Given(write_json(answer_record(self._as_first_given(answer, question, key, person))), left)

    def _as_first_given(self, answer: Answer, question: Question, key: str, person: Person) -> Answer:
        """Return an answer as it was given first, to the request that paid for it: the same bytes, however often."""
        session, facts = question.session, answer.facts
        if not facts.free or facts.is_public:
            return answer
        registered = (session.base or session).registered
        if self.ledger.charged_for(registered, request_id=key, analyst=person.name) is None:
            return answer
        first = replace(facts, free=False, has_changed=None, notes=(*facts.notes, *session.notices))
        return advised(replace(answer, facts=first), *session.notices)

    def _forget(self, who: tuple[Hashable, str], task: "asyncio.Task[Given]") -> None:
        """Keep a finished answer for a while; an unanswered question is computed again when it is sent again."""
        if task.cancelled() or task.exception() is not None or len(task.result().body) > KEPT_BYTES_MAX:
            self._asked.pop(who, None)
        finished = [each for each, asked in self._asked.items() if asked.task.done()]
        for each in finished[: max(len(finished) - KEPT_MAX, 0)]:
            del self._asked[each]

    # --- questions ---

    def _question(self, person: Person, name: str, wording: Wording) -> Question:
        """Return a question as it was sent, parsed once for a person; for others again, or the time would reveal that
        it was asked."""
        read = self._read()
        asked = (person.name, person.tables, name, wording.asked)
        if asked not in read:
            if len(read) >= READ_MAX:
                read.popitem(last=False)
            read[asked] = self._read_question(person, name, wording)
        read.move_to_end(asked)
        return read[asked]

    def _read_question(self, person: Person, name: str, wording: Wording) -> Question:
        table = self._table(name)
        if wording.questions:
            return table.workload(
                **{each: self._read_question(person, name, own) for each, own in wording.questions.items()}
            )
        if wording.sql is None and isinstance(wording.tree, dict) and wording.tree.get("rows") is not None:
            return travelled_question(table, wording.tree, lambda each: self._seen(person, each), self._public)
        if wording.sql is None:
            return question_of(table.session, question_from(wording.tree, table.frame.declaration))
        others, most = self._others(person, table, wording)
        words = {**wording.sql_words, "most": {**most, **wording.sql_words.get("most", {})}}
        return table.sql(wording.sql, tables=others, **words)

    def _others(
        self, person: Person, table: Table, wording: Wording
    ) -> tuple[list[Table | PublicTable], dict[str, int]]:
        """Return the other tables that a SELECT names, of those that this person may see: others do not exist."""
        own, catalog, text = table.frame.declaration.name, self._catalog(), wording.sql or ""
        if not any(each.lower() in text.lower() for each in (*self.file.tables, *self.file.public) if each != own):
            return [], {}  # most have one table, and need not be read twice
        named = [each for each in catalog.named(text, wording.sql_words.get("dialect")) if each != own]
        return catalog.opened([each for each in named if each in self.file.public or sees(person, each)], self._table)

    def _seen(self, person: Person, name: str) -> Table:
        """Return a table that this person may see; others do not exist."""
        if name not in self.file.tables or not sees(person, name):
            raise QueryRefused(
                f"the table '{name[:40]}' does not exist here\nhint: GET /api/v1/tables lists the tables"
            )
        return self._table(name)

    def _public(self, name: str) -> PublicTable:
        if name not in self.file.public:
            raise QueryRefused(
                f"the public table '{name[:40]}' does not exist here\nhint: the curator's catalog names them"
            )
        return self._catalog().public(name)

    async def public(self, person: Person, name: str) -> dict[str, Any]:
        """Return what is public about a public table: columns, and how many rows of it one row may match."""
        require(person, "see")
        if name not in self.file.public:
            raise unknown("table")

        def read() -> dict[str, Any]:
            declared = public_declaration(self._public(name)).record()
            return {"declaration": declared, "most": self.file.public[name].options["most"]}

        return await self.free(person, read)

    def _require(self, person: Person, verb: Any, name: str) -> None:
        if name not in self.file.tables:
            self.look_again()
        if name not in self.file.tables:
            raise unknown("table")
        require(person, verb, name)

    def _table(self, name: str) -> Table:
        """Return a table as this thread has it; why one cannot be opened is for the machine's own people."""
        try:
            return self._catalog()[name]
        except LedgerError:
            raise
        except TacitError as problem:
            log.error("the table '%s' cannot be opened: %s", printable(name), problem)  # noqa: TRY400
            raise Problem("unavailable", 503, "this table cannot be opened now", ASK_THE_CURATOR) from None

    def _catalog(self) -> Catalog:
        """Return this thread's own catalog: its connections are not shared, so that no question waits for another's."""
        found: Catalog | None = getattr(self._own, "catalog", None)
        if found is None or found.file is not self.file:  # the first question of a thread, or a table was declared
            found = self._own.catalog = Catalog(self.file, self.ledger)
        return found

    def _read(self) -> "OrderedDict[Any, Question]":
        """Return the questions that this thread has read about its own catalog, the latest last."""
        catalog = self._catalog()
        if getattr(self._own, "read", (None, None))[0] is not catalog:
            self._own.read = catalog, OrderedDict()
        found: OrderedDict[Any, Question] = self._own.read[1]
        return found


def _standing(person: Person) -> Hashable:
    """Return for whom an answer is kept in memory; if their tables change, the ledger decides anew."""
    return person.name, person.tables


def told(error: Exception) -> Problem:
    """Return an error as the problem that leaves; texts of foreign and of ledger errors go only to the operators."""
    if not isinstance(error, TacitError | Problem):
        log.error("unexpected %s", type(error).__name__)
    problem = problem_of(error)
    if problem.kind == "unavailable" and isinstance(error, LedgerError):
        log.error("the ledger cannot be used: %s", printable(str(error)))
        return replace(problem, detail="the ledger cannot be used now", hint=ASK_THE_CURATOR)
    return problem


def _mark(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _budget_left(table: Table, person: Person) -> dict[str, Any]:
    return left_record(what_is_left(table.session, person.name))
