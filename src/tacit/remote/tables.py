"""`RemoteTable` and `RemoteQuestion`: a table on a server and a question to it, with the words of those that are here.

`tacit.connect(...)` gives the tables of a server by name. The table's declaration is public and fetched once: questions
are built and refused here as on the server. A question travels as its tree's JSON, or as SQL text. Its answer is an
ordinary `Answer`: it prints, draws and exports like a local one, and its certificate is fetched when it is needed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, Self

from tacit.answer import Answer, answer_from
from tacit.asking import (
    Description,
    QuestionCall,
    QuestionVerbs,
    Verbs,
    asked_of_public_facts,
    described_as_asked,
    warn_if_large,
)
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.noise import fresh_bytes
from tacit.numbers import decimal_meaning
from tacit.options import SPENDING, as_sent
from tacit.query import (
    AggregateSpec,
    Frame,
    PublicRows,
    Query,
    RowsSent,
    Side,
    TableRows,
    question_record,
    question_text,
)
from tacit.remote.curator import Curator
from tacit.remote.http import Reply, Wire, path_of
from tacit.remote.remote_rows import (
    RemotePlan,
    RemoteRunning,
    RemoteSynthesis,
    where_of,
)
from tacit.tables import Declaration, declaration_from

KEY_BYTES = 16


@dataclass(frozen=True)
class RemotePublic:
    """A public table on a server: no row of it is a person's. Join it."""

    name: str
    declaration: Declaration = field(repr=False)

    @property
    def side(self) -> Side:
        """The table as a side of a join; its rows are read on the server."""
        return Side(PublicRows(self.name, ""), self.declaration)


@dataclass(frozen=True, repr=False)
class RemoteTable(Verbs["RemoteQuestion"]):
    """A protected table on a server, perhaps filtered and grouped; `hold` is when its answers leave."""

    wire: Wire
    frame: Frame
    hold: str
    name: str  # of the table that is asked, which the path of a request has
    rows: RowsSent  # the definition of its rows, if they are not the table's own

    def _with(self, frame: Frame) -> Self:
        return replace(self, frame=frame)

    def _question(self, query: Query) -> "RemoteQuestion":
        record = question_record(query)
        if self._is_made:
            record["rows"] = self.rows.record
        return RemoteQuestion(self.wire, self.name, {"question": record}, question_text(query))

    @property
    def _is_made(self) -> bool:
        return not isinstance(self.rows.relation, TableRows)

    def sql(
        self,
        text: str,
        *,
        between: Mapping[str, Any] | None = None,
        per_unit: Mapping[str, int] | None = None,
        dialect: str | None = None,
        most: Mapping[str, int] | None = None,
    ) -> "RemoteQuestion | Description":
        """Return the question a SELECT asks; JOIN may name the server's other tables. The server parses it."""
        if (asked := asked_of_public_facts(text)) is not None:
            return described_as_asked(asked, {self.frame.declaration.name: self.frame.declaration})
        if self._is_made:
            raise QueryRefused(
                "sql asks stored tables, and this one is joined already\nhint: write the JOIN into the SELECT:"
                " server['visits'].sql('SELECT ... FROM visits JOIN wards USING (ward)')"
            )
        if self.frame != Frame(self.frame.declaration):
            raise QueryRefused("sql asks the whole table\nhint: put the filter and the groups into the SELECT")
        asked_as = {"sql": text, "between": between, "per_unit": per_unit, "dialect": dialect, "most": most}
        return RemoteQuestion(self.wire, self.name, as_sent(asked_as), text)

    @property
    def synthesize(self) -> RemoteSynthesis:
        """Make rows that resemble the table's, charged once, as here: visits.synthesize(epsilon=1)."""
        self._require_stored()
        return RemoteSynthesis(self.wire, self.name, where_of(self.frame))

    def running(
        self, column: str, *, until: str | date, since: str | date | None = None, zone: str | None = None
    ) -> RemoteRunning:
        """Return the days of this table, for a count that runs on, as here (`Table.running`)."""
        self._require_stored()
        days = {name: None if day is None else str(day) for name, day in (("until", until), ("since", since))}
        asked = {"day": column, "where": where_of(self.frame), "zone": zone, **days}
        return RemoteRunning(self.wire, self.name, asked, partial(answer_in, self.wire))

    def _require_stored(self) -> None:
        if self._is_made:
            raise QueryRefused("this is of stored tables, and this one is joined already\nhint: name a stored table")

    def workload(self, **questions: "RemoteQuestion") -> "RemoteQuestion":
        """Return several questions to this table as one, by name, as here (`Table.workload`)."""
        if not questions:
            raise InvalidParameter(
                "a workload needs a question\nhint: workload(by_ward=visits.group_by('ward').count())"
            )
        for name, each in questions.items():
            if not isinstance(each, RemoteQuestion) or (each.wire.address, each.table) != (
                self.wire.address,
                self.name,
            ):
                raise InvalidParameter(f"'{name}' must be a question to this table\nhint: server['visits'].count()")
        text = "; ".join(f"{name}: {each.text}" for name, each in questions.items())
        return RemoteQuestion(
            self.wire, self.name, {"questions": {k: each.asking for k, each in questions.items()}}, text
        )

    def join(self, other: "RemoteTable | RemotePublic", *, on: Any, how: str = "inner", most: int = 1) -> "RemoteTable":
        """Return this table's rows beside the rows of another of the server that match them, as here (`Table.join`).

        A public table of the server is `server.public("wards")`.
        """
        if isinstance(other, RemotePublic):
            beside: Any = other.side
        elif isinstance(other, RemoteTable) and other.wire.address == self.wire.address:
            beside = (other.frame, other.rows)
        else:
            raise InvalidParameter(
                f"a {type(other).__name__} of elsewhere cannot be joined\nhint: join tables of one server:"
                " server['visits'].join(server.public('wards'), on='ward')"
            )
        frame, rows = self.rows.joined(self.frame, beside, on=on, how=how, most=most)
        return replace(self, frame=frame, rows=rows)

    def per_unit(self, **aggregates: AggregateSpec) -> "RemoteTable":
        """Return a table with one row for each unit, or for each unit and group, as here (`Table.per_unit`)."""
        frame, rows = self.rows.by_unit(self.frame, aggregates)
        return replace(self, frame=frame, rows=rows)

    @property
    def left(self) -> str:
        """How much may still be spent, in words."""
        return str(self.wire.send("GET", path_of("tables", self.name, "budget")).record["text"])

    def __repr__(self) -> str:
        declared = self.frame.declaration
        return printable(f"<protected table '{declared.name}' on {self.wire.address}, unit {declared.unit}>")


@dataclass(frozen=True, repr=False)
class RemoteQuestion(QuestionVerbs[RemotePlan]):
    """A question to a server: `plan` it for free, `answer` it at its cost."""

    wire: Wire = field(repr=False)
    table: str
    asking: Mapping[str, Any]  # the question as it travels
    text: str

    def _planned(self, call: QuestionCall) -> RemotePlan:
        found = self.wire.send("POST", path_of("tables", self.table, "plan"), self._asked(call)).record
        return RemotePlan(found["text"], found["loss"]["text"], bool(found["fits"]))

    def _answered(self, call: QuestionCall) -> Answer:
        """Return the private answer, after the server has charged for it, on the table's public clock.

        Its request id is charged once: given again, also after the connection was lost, it gets the same answer.
        """
        flags = {"consistent": call.consistent or None, "accept_noise": call.accept_noise or None}
        asked = {**self._asked(call), **as_sent(flags)}
        if call.hold is not None:
            raise InvalidParameter("hold is declared on the server\nhint: leave it out")
        if call.epsilon is not None:
            warn_if_large(decimal_meaning(call.epsilon, name="epsilon"))
        key = fresh_bytes(KEY_BYTES).hex() if call.request_id is None else call.request_id
        if not isinstance(key, str) or not key.isascii() or not key.isprintable() or not 0 < len(key) <= 200:
            raise InvalidParameter("request_id must be a text of 1 to 200 letters, digits and signs\nhint: 'report-7'")
        reply = self.wire.send("POST", path_of("tables", self.table, "questions"), asked, {"Idempotency-Key": key})
        return answer_in(self.wire, reply)

    def _asked(self, call: QuestionCall) -> dict[str, Any]:
        if call.analyst is not None:
            raise InvalidParameter("the analyst is the owner of the token\nhint: leave it out")
        return {**self.asking, **as_sent({name: getattr(call, name) for name in SPENDING})}

    def __repr__(self) -> str:
        return printable(f"<question: {self.text}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>")


def connect(url: str, *, token: str) -> "Server":
    """Return the tables that a token may ask on a server, by name.

    `tacit.connect("https://data.example.org", token=...)["visits"].group_by("ward").count().answer(epsilon=1)`
    """
    return Server(Wire(url, token))


class Server(Curator, Mapping[str, RemoteTable]):
    """The tables of a server that a token may ask; and, for a curator's or an auditor's token, the ledger's words."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._tables: dict[str, RemoteTable] = {}

    def __getitem__(self, name: str) -> RemoteTable:
        if name not in self._tables:
            record = self._wire.send("GET", path_of("tables", str(name))).record
            frame = Frame(declaration_from(record["declaration"]))
            self._tables[name] = RemoteTable(self._wire, frame, record["hold"], str(name), RowsSent.stored(str(name)))
        return self._tables[name]

    def public(self, name: str) -> RemotePublic:
        """Return a public table of the server, to be joined with."""
        record = self._wire.send("GET", path_of("public", str(name))).record
        return RemotePublic(str(name), declaration_from(record["declaration"]))

    def __iter__(self) -> Iterator[str]:
        return iter([each["name"] for each in self._listed()])

    def __len__(self) -> int:
        return len(self._listed())

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def _listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._wire.send("GET", path_of("tables")).record["tables"]
        return found

    def agent(self, message: bytes) -> bytes:
        """Return the reply of the server's door for agents to one message (MCP); empty if it needs none."""
        return self._wire.send("POST", "/mcp", message, once=True).body

    def __repr__(self) -> str:
        return f"<server {self._wire.address}: {', '.join(self)}>"


def answer_in(wire: Wire, reply: Reply) -> Answer:
    """Return the answer in a reply, with the rest of the budget when it was sent."""
    record = reply.record
    entry = record["facts"]["receipt"].get("entry")
    certify = None if entry is None else partial(Server(wire).certificate, int(entry))
    return answer_from(record, json.loads(reply.headers.get("tacit-left", "{}")), certify)
