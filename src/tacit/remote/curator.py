"""The curator's and the auditor's functions on a server: those of the ledger, for tokens that may use them.

`Server` has them beside its tables. Acts leave a ledger entry with their reason.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any
from urllib.parse import quote

from tacit.errors import InvalidParameter
from tacit.json_wire import tagged
from tacit.ledger import Entry, Person, Token
from tacit.numbers import decimal_meaning, to_text
from tacit.privacy import ApproximateLoss, Loss, PureLoss, ZcdpLoss
from tacit.remote.http import Wire, path_of
from tacit.tables import RowUnit


class Curator:
    """The uses of a token beside asking: people, tokens, grants, tables, and reading the ledger."""

    _wire: Wire

    def add_person(
        self,
        name: str,
        *,
        role: str = "analyst",
        tables: "tuple[str, ...] | list[str] | None" = None,
        until: "str | date | None" = None,
        usual_epsilon: str | int | None = None,
        reason: str,
    ) -> Person:
        """Let a person in, or say anew what they may do; for the record."""
        asked: dict[str, Any] = {"name": name, "role": role, "reason": reason, **_until(until)}
        asked |= {} if tables is None else {"tables": list(tables)}
        asked |= {} if usual_epsilon is None else {"usual_epsilon": usual_epsilon}
        return _person(self._post("people", asked))

    def end_person(self, name: str, *, reason: str) -> Person:
        """Revoke a person's access, and their tokens; for the record. Spent budget stays spent."""
        return _person(self._post("people", {"name": name, "end": True, "reason": reason}))

    def people(self) -> tuple[Person, ...]:
        """Return every person, ended or not."""
        return tuple(_person(each) for each in self._get("people")["people"])

    def tokens(self, name: str | None = None) -> tuple[Token, ...]:
        """Return the tokens of a person, or of everyone; no secret is kept."""
        return tuple(
            Token(name=each["name"], **one)
            for each in self._get("people")["people"]
            for one in each["tokens"]
            if name is None or each["name"].casefold() == name.casefold()
        )

    def new_token(self, name: str, *, until: "str | date | None" = None, reason: str) -> str:
        """Return the secret of a new token of a person. The secret is shown only now."""
        return str(self._post("tokens", {"name": name, "reason": reason, **_until(until)})["token"])

    def end_token(self, id: str, *, reason: str) -> None:
        """End a token by its id, everywhere and at once; for the record."""
        self._wire.send("DELETE", f"{path_of('tokens', id)}?reason={quote(reason, safe='')}")

    def grant(
        self, name: str, budget: Loss, *, analyst: str | None = None, period: str | None = None, reason: str
    ) -> str:
        """Set the budget of a table's people from now on, and return it in words; spent budget stays spent."""
        asked = {"table": name, **_amounts(budget), "reason": reason, **_whose(analyst, period)}
        found = self._post("grants", asked)
        note = "" if found.get("note") is None else f"\n{found['note']}"
        return f"{found['table']}: {found['budget']} from now on{_words_of_left(found)}{note}"

    def revoke(self, name: str, *, analyst: str | None = None, period: str | None = None, reason: str) -> str:
        """Stop all further spending under a budget, from now on and for the record."""
        found = self._post("grants", {"table": name, "revoke": True, "reason": reason, **_whose(analyst, period)})
        return f"{found['table']}: {found['budget']}, from now on; spent budget stays spent"

    def declare(
        self, name: str, source: str, *, unit: str, budget: Loss | None = None, **options: Any
    ) -> Mapping[str, Any]:
        """Declare a table of files under a folder that the server allows, as its catalog would.

        `options` are those of a table in a tacit.toml: columns, rows_per_unit, population, hold and more.
        """
        asked = {"name": name, "source": source, "unit": unit, **_as_travelling(options)}
        asked |= {} if budget is None else {"budget": _amounts(budget)}
        found: Mapping[str, Any] = self._post("tables", asked)
        return found

    def entries(self, first: int = 1) -> Iterator[Entry]:
        """Yield the entries of the ledger that this token may read, in order, from number `first`."""
        for record in self.entry_records(first):
            yield Entry(int(record["number"]), str(record["body"]), str(record["hash"]))

    def entry_lines(self, first: int = 1) -> Iterator[str]:
        """Yield the same entries in words, a line each."""
        for record in self.entry_records(first):
            yield str(record["text"])

    def entry_records(self, first: int = 1) -> Iterator[dict[str, Any]]:
        """Yield them as they travel: number, time, kind, text, the hash before, the hash and the body."""
        place: int | None = first
        while place is not None:
            page = self._wire.send("GET", f"{path_of('ledger')}?from={int(place)}").record
            yield from page["entries"]
            place = page["next"]

    def certificate(self, number: int) -> Mapping[str, Any]:
        """Return the signed certificate of an answer, by its entry's number."""
        found: Mapping[str, Any] = self._get("answers", str(number), "certificate")
        return found

    def csv(self, number: int) -> str:
        """Return an answer's numbers with their error bars, as CSV."""
        return self._wire.send("GET", path_of("answers", f"{number}.csv")).body.decode("utf-8")

    def svg(self, number: int) -> str:
        """Return an answer's picture."""
        return self._wire.send("GET", path_of("answers", f"{number}.svg")).body.decode("utf-8")

    def _get(self, *parts: str) -> Any:
        return self._wire.send("GET", path_of(*parts)).record

    def _post(self, where: str, record: Mapping[str, Any]) -> Any:
        return self._wire.send("POST", path_of(where), record, once=True).record


def _person(record: Mapping[str, Any]) -> Person:
    tables = record["tables"]
    return Person(
        record["name"],
        record["role"],
        None if tables is None else tuple(tables),
        record["until"],
        record["ended"],
        record["since"],
        record["usual_epsilon"],
    )


def _until(until: "str | date | None") -> dict[str, str]:
    return {} if until is None else {"until": until if isinstance(until, str) else until.isoformat()}


def _whose(analyst: str | None, period: str | None) -> dict[str, str]:
    given = {"analyst": analyst, "period": period}
    return {name: value for name, value in given.items() if value is not None}


def _words_of_left(found: Mapping[str, Any]) -> str:
    return "" if found.get("left") is None else f"; left: {found['left']}"


def _amounts(budget: Loss) -> dict[str, str]:
    if not isinstance(budget, PureLoss | ApproximateLoss | ZcdpLoss):
        raise InvalidParameter("a budget is an epsilon or a rho\nhint: tacit.epsilon(3, delta=1e-6)")
    given = vars(budget)
    return {name: to_text(amount) for name, amount in given.items() if amount or name != "delta"}


def _as_travelling(value: Any) -> Any:
    """Return options as they travel: numbers with a point are exact text, and days are tagged."""
    if isinstance(value, RowUnit):
        return "ROW"
    if isinstance(value, Mapping):
        return {str(name): _as_travelling(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_as_travelling(each) for each in value]
    if isinstance(value, float):
        return to_text(decimal_meaning(value, name="a number"))
    return tagged(value)
