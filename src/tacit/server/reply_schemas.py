"""The schema of every reply, from which clients in other languages are generated.

A route names its record here, and the OpenAPI document has it as a JSON schema. The server's tests compare every reply
that they get with the schema of its route. A record may get further names later; it never loses one.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from fastapi import FastAPI
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic reads no other before Python 3.12

from tacit.server.problems import MEDIA_TYPE

TEXT_OF_CSV, TEXT_OF_SVG = "text/csv", "image/svg+xml"
WITHOUT_TOKEN = frozenset({"/health", "/ready", "/api/v1/sign-on"})
SCHEME = "token"
_REFERENCE = "#/components/schemas/{model}"

ExactAmount = Annotated[str, Field(description="a decimal or a fraction, exact")]
Hold = Annotated[str, Field(description="the public clock of the table: answers leave at its ticks")]

# values without a JSON form of their own
TaggedDate = TypedDict("TaggedDate", {"$date": str})
TaggedTimestamp = TypedDict("TaggedTimestamp", {"$timestamp": str})
TaggedDecimal = TypedDict("TaggedDecimal", {"$decimal": ExactAmount})
TaggedFloat = TypedDict("TaggedFloat", {"$float": str})
Cell = bool | int | float | str | TaggedDate | TaggedTimestamp | TaggedDecimal | TaggedFloat | None
Measure = float | TaggedFloat | None


class ProblemReply(TypedDict):
    """A refusal or a failure (RFC 9457); its words depend only on the request and on public facts."""

    type: str
    title: str
    status: int
    detail: str
    hint: str
    error: Annotated[str, Field(description="the class of the error in tacit.errors")]


class TableName(TypedDict):
    """A table that the token may see."""

    name: str
    hold: Hold


class TableNames(TypedDict):
    """The tables that the token may see."""

    tables: list[TableName]


class ColumnRecord(TypedDict):
    """The public facts of a column."""

    type: Literal["bool", "int", "float", "decimal", "text", "date", "timestamp", "other"]
    between: list[ExactAmount] | None
    step: ExactAmount | None
    keys: list[Cell] | None
    scale: int | None
    digits: int | None


class BlockRecord(TypedDict):
    """The calendar blocks of a table's rows, each with the whole budget."""

    column: str
    every: str
    zone: str | None
    is_instant: bool


class OwnersRecord(TypedDict):
    """The table that has the unit of a table's rows, and the columns that are equal in both."""

    table: str
    on: list[list[str]]
    version: int


class DeclarationRecord(TypedDict):
    """All public facts of a table."""

    name: str
    unit: Annotated[str | None, Field(description="the column of people; null if each row is a person")]
    neighbours: Literal["add-remove", "replace"]
    rows_per_unit: int | None
    groups_per_unit: int | None
    population: int | None
    version: int
    rows: int | None
    most_rows_per_unit: int | None
    columns: dict[str, ColumnRecord]
    block: NotRequired[BlockRecord]
    owners: NotRequired[OwnersRecord]


class Room(TypedDict):
    """The room for one more question with one kind of noise."""

    epsilon: Measure
    delta: Measure


class BudgetRecord(TypedDict):
    """The amounts that may still be spent on a table."""

    epsilon: Measure
    laplace: Room
    gaussian: Room
    rho: Measure
    questions: int | None
    text: str


class TableRecord(TypedDict):
    """The declaration of a table, its public clock, and the rest of its budget."""

    declaration: DeclarationRecord
    hold: Hold
    budget: BudgetRecord


class PublicTableRecord(TypedDict):
    """The declaration of a public table, and how many of its rows one row may match in a join."""

    declaration: DeclarationRecord
    most: int


class LossRecord(TypedDict):
    """The cost of an answer, or of one that is planned."""

    epsilon: Measure
    delta: Measure
    text: str
    meaning: str


class PlanRecord(TypedDict):
    """The steps, the cost and the expected error of an answer."""

    text: str
    loss: LossRecord
    fits: Annotated[bool, Field(description="whether the rest of the budget is large enough")]


class MadeRowsRecord(TypedDict):
    """What made-up rows are made of: words about them, and the text of a file that `tacit.learning.load` reads."""

    text: str
    made: Annotated[str, Field(description="JSON: noisy integers and public facts, from which rows are free")]


class PairErrorRecord(TypedDict):
    """How far a pair of columns is from made-up rows, as a share of people, with the half-width of its interval."""

    columns: list[str]
    apart: float
    error: float


class RowsReportRecord(TypedDict):
    """A paid report of made-up rows: its text, and the pairs that it measured."""

    text: str
    others: list[PairErrorRecord]
    paid: str


class CellsRecord(TypedDict):
    """The rows of an answer: a cell for each name."""

    names: list[str]
    rows: list[list[Cell]]


class ReceiptRecord(TypedDict):
    """The ledger's entry of an answer."""

    ledger: str
    entry: int
    hash: str
    time: str


class FactsRecord(TypedDict):
    """The facts about an answer."""

    loss: LossRecord | dict[str, Any]
    unit: str
    neighbours: str
    durable: bool
    free: bool
    version: int
    has_changed: bool | None
    receipt: ReceiptRecord | dict[str, Any]
    bounds: Annotated[dict[str, Any], Field(description="learned facts, and what the intervals leave out")]
    is_public: bool
    confidence: ExactAmount
    notes: list[str]
    reading: Annotated[str, Field(description="how to read the intervals")]
    advice: Annotated[str, Field(description="hidden parts, and how to ask for a closer answer")]


class AnswerRecord(TypedDict):
    """An answer; the table's value of an aggregate x is between x_low and x_high at the stated confidence."""

    format: int
    columns: list[str]
    types: dict[str, str]
    aggregates: list[str]
    kinds: dict[str, str]
    cells: CellsRecord
    at_least: dict[str, list[Cell]]
    totals: dict[str, list[bool]]
    others: NotRequired[list[str]]
    parts: "NotRequired[dict[str, AnswerRecord]]"
    facts: FactsRecord


class NotYet(TypedDict):
    """The question is being answered: ask again for its key."""

    answer: Literal["not yet"]


class EntryRecord(TypedDict):
    """An entry of the ledger as its reader may see it."""

    number: int
    time: str
    kind: str
    text: str
    previous: str
    hash: str
    body: str
    withheld: Annotated[
        bool, Field(description="whether a text was left out of the body, which then differs from the hashed one")
    ]


class EntriesPage(TypedDict):
    """Entries of the ledger, and the number from which the next page begins."""

    entries: list[EntryRecord]
    next: int | None


class ChainedEntry(TypedDict):
    """An entry in a certificate, with its place in the chain."""

    number: int
    previous: str
    body: str
    hash: str


class CertificateChain(TypedDict):
    """The entries that a certificate is about."""

    table: ChainedEntry
    charge: ChainedEntry
    answer: ChainedEntry


class CertificateRecord(TypedDict):
    """A signed certificate; `tacit verify` checks it without the ledger."""

    what: str
    ledger: str
    software: str
    number: int
    time: str
    table: dict[str, Any]
    unit: str | None
    neighbours: str | None
    events: list[dict[str, Any]]
    loss: dict[str, Any]
    answer: str
    question: NotRequired[str]
    shown: NotRequired[str]
    chain: CertificateChain
    public_key: str
    signature: str


class PersonRecord(TypedDict):
    """A person in the ledger."""

    name: str | None
    role: Literal["curator", "analyst", "auditor"]
    tables: Annotated[list[str] | None, Field(description="null means every table")]
    until: str | None
    ended: bool
    since: int
    usual_epsilon: Annotated[str | None, Field(description="of a question by PostgreSQL's protocol without an amount")]


class TokenRecord(TypedDict):
    """A token without its secret."""

    id: str
    made: str
    until: str | None
    ended: bool
    first_used: str | None
    last_used: str | None
    holds: bool


class PersonWithTokens(PersonRecord):
    """A person with their tokens."""

    tokens: list[TokenRecord]


class PeopleRecord(TypedDict):
    """People, their roles, and their tokens."""

    people: list[PersonWithTokens]


class NewToken(TypedDict):
    """A new token with its secret, which is shown only in this reply."""

    id: str
    token: str
    note: str


class EndedToken(TypedDict):
    """A token that was ended."""

    id: str
    ended: Literal[True]


class GrantRecord(TypedDict):
    """A budget from now on."""

    table: str
    budget: str
    left: str | None
    note: str | None


class DeclaredTable(TableRecord):
    """A table that was declared, and the lines that the catalog has for it."""

    name: str
    lines: str


class SignOnRecord(TypedDict):
    """The provider of single sign-on, for programs that sign a person in there."""

    issuer: str
    client_id: str
    scope: str


class JsonRpcFault(TypedDict):
    """An error of JSON-RPC."""

    code: int
    message: str


class JsonRpcReply(TypedDict):
    """A reply of JSON-RPC 2.0: a result or an error."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: NotRequired[dict[str, Any]]
    error: NotRequired[JsonRpcFault]


NOT_YET: dict[int | str, dict[str, Any]] = {202: {"model": NotYet, "description": "The question is being answered"}}
WITH_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer",
        "headers": {
            "Tacit-Left": {"schema": {"type": "string"}, "description": "the rest of the budget, as JSON"},
            "Idempotency-Key": {"schema": {"type": "string"}, "description": "the key under which it was charged"},
        },
    }
}


def text_as(media_type: str) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI has of a reply that is a text of another type than JSON."""
    return {200: {"description": "OK", "content": {media_type: {"schema": {"type": "string"}}}}}


class TypedApi(FastAPI):
    """The application, with a document that has the problems' schema and the token's security scheme."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            components = document.setdefault("components", {})
            schema = TypeAdapter(ProblemReply).json_schema(ref_template=_REFERENCE)
            components.setdefault("schemas", {})["ProblemReply"] = schema
            components["securitySchemes"] = {
                SCHEME: {"type": "http", "scheme": "bearer", "description": "a token that the curator made"}
            }
            document["security"] = [{SCHEME: []}]
            for unused in (
                "HTTPValidationError",
                "ValidationError",
            ):  # FastAPI's own, in which this server never replies
                components["schemas"].pop(unused, None)
            for path, verbs in document["paths"].items():
                for verb in verbs.values():
                    _complete(path, verb)
        return self.openapi_schema or {}


def _complete(path: str, verb: dict[str, Any]) -> None:
    verb["responses"].pop("422", None)
    if path in WITHOUT_TOKEN:
        verb["security"] = []
    if path != "/health":
        problem: Mapping[str, Any] = {"schema": {"$ref": _REFERENCE.format(model="ProblemReply")}}
        verb["responses"]["default"] = {"description": "A problem (RFC 9457)", "content": {MEDIA_TYPE: problem}}
