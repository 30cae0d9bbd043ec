"""`tacit.toml`: tables, units, ranges, keys, bounds, budgets and the ledger, written once by the curator."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tacit.errors import InvalidParameter, TacitError
from tacit.files import read_small
from tacit.hold import read_hold
from tacit.options import TABLE, SignOn
from tacit.privacy import Loss, LossPerPeriod, epsilon, rho
from tacit.tables import ROW, read_facts

FILE_NAME = "tacit.toml"
BYTES_MAX = 4 << 20
TABLE_OPTIONS = tuple(TABLE)
PUBLIC_OPTIONS = ("source", "columns", "most")
BUDGET_OPTIONS = ("epsilon", "delta", "rho", "period")
SIGN_ON_OPTIONS = ("issuer", "client_id", "claim", "audience", "secret_file", "new_people")
PERSON_OPTIONS = ("role", "tables", "until", "budget", "period")

Checked = TypeVar("Checked")
Place = tuple[str, ...]  # the words that lead to a value: a table, an option


@dataclass(frozen=True)
class CatalogEntry:
    """A table of a catalog: its name, its source, and the other options of `tacit.table`."""

    name: str
    source: str = field(repr=False)  # an address may have a password in it
    options: Mapping[str, Any]

    @property
    def shown(self) -> str:
        return without_password(self.source)


SHOWN = ("use_ssl", "user_id", "session_id", "user_agent")  # options of an address of Spark Connect


def without_password(source: str) -> str:
    """Return a source as it may be shown or kept: an address without its password or token, else as it is."""
    if "://" not in source:
        return source
    address, mark, asked = source.partition("?")
    if address.startswith("sc://"):  # Spark Connect: ;name=value after the place, of which any may be a secret
        place, *options = address.split(";")
        address = ";".join([place, *(each for each in options if each.partition("=")[0].strip().lower() in SHOWN)])
    address = re.sub(r"^(\w+://[^:@]*):.*@", r"\1@", address, flags=re.DOTALL)
    words = [word for word in asked.split("&") if word.partition("=")[0].lower() not in ("password", "sslpassword")]
    return f"{address}{mark if words != [''] else ''}{'&'.join(words)}"


@dataclass(frozen=True)
class CatalogPerson:
    """A person who may ask: role, tables (None: all), end of access, and budget for each."""

    name: str
    role: str
    tables: tuple[str, ...] | None
    until: str | None
    budget: Loss | None
    period: str | None


@dataclass(frozen=True)
class CatalogFile:
    """A catalog as read: its protected tables, the ledger they share (None: the default one), and public tables."""

    path: Path
    ledger: str | None
    tables: Mapping[str, CatalogEntry]
    public: Mapping[str, CatalogEntry] = field(default_factory=dict)
    people: Mapping[str, CatalogPerson] = field(default_factory=dict)
    sign_on: SignOn | None = None

    def owner_of(self, name: str) -> str | None:
        """Return the table that has the unit of a table's rows; None where they have it themselves."""
        written = str(self.tables[name].options["unit"])
        if "via" not in self.tables[name].options:
            return None
        return next(other for other in self.tables if written == f"{other}.{self.unit_of(other)}")

    def units(self) -> list[str]:
        """Return what `unit` may be in a table with `via`: each table with its column of people."""
        return [f"{name}.{self.unit_of(name)}" for name, each in self.tables.items() if each.options["unit"] is not ROW]

    def unit_of(self, name: str) -> str:
        """Return the column of people of a table, or of the table that has it."""
        options = self.tables[name].options
        return str(options["unit"]).rpartition(".")[2] if "via" in options else str(options["unit"])


def read_catalog(path: str | os.PathLike[str], *, may_be_empty: bool = False) -> CatalogFile:
    """Return the catalog in a file, or refuse it with the line and the fix; without tables if it may be."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(f"a catalog must be the path of a file, not a {type(path).__name__}\nhint: 'tacit.toml'")
    file = Path(path)
    try:
        text = read_small(file, bytes_max=BYTES_MAX)
    except (OSError, ValueError):  # the latter: no file can have this name
        raise InvalidParameter(f"there is no catalog at {str(path)!r}\nhint: write one with: tacit init") from None
    return catalog_from(file, text, may_be_empty=may_be_empty)


def catalog_ledger(path: str | os.PathLike[str]) -> str | None:
    """Return the ledger that a catalog names, if any, whether or not its tables are declared in full."""
    file = Path(path)
    return _CatalogReader(file, read_small(file, bytes_max=BYTES_MAX)).ledger() if file.exists() else None


def catalog_from(path: Path, text: str, *, may_be_empty: bool = False) -> CatalogFile:
    """Return the catalog that a text would be at a path, or refuse it with the line and the fix."""
    return _CatalogReader(path, text).catalog(may_be_empty=may_be_empty)


class _CatalogReader:
    """Reads one file, and knows the line of each of its keys."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        try:
            self.content = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as problem:
            raise InvalidParameter(f"{path}: {problem}\nhint: check the quotes and brackets on that line") from None
        except (ValueError, ArithmeticError):  # an exponent that no decimal has, a whole number of thousands of digits
            raise InvalidParameter(f"{path}: a number in this file is too long\nhint: write a shorter number") from None
        except RecursionError:
            raise InvalidParameter(
                f"{path} is nested too deeply\nhint: a catalog has tables, columns and lists"
            ) from None

    def catalog(self, *, may_be_empty: bool) -> CatalogFile:
        """Return the checked content."""
        self._only(("tables", "public", "people", "ledger", "sign_on"), self.content, ())
        tables = self.content.get("tables", {})
        if not isinstance(tables, dict) or not (tables or may_be_empty):
            self._refuse(
                (), "this catalog declares no table", "add one, e.g. [tables.visits] with source, unit and budget"
            )
        ledger = self.ledger()
        entries = {name: self._entry(("tables", name), written) for name, written in tables.items()}
        for name, entry in entries.items():
            self._check_people(name, entry, entries)
            self._check_owner(name, entries, ())
        public = {name: self._public(("public", name), each, entries) for name, each in self._section("public")}
        people = {name: self._person(("people", name), each, entries) for name, each in self._section("people")}
        return CatalogFile(self.path, ledger, entries, public, people, self._sign_on())

    def ledger(self) -> str | None:
        """Return the ledger that the file names, as seen from the file's own folder."""
        written = self._text(self.content, "ledger", (), "ledger.db")
        return self._beside(written) if written else None

    def _section(self, word: str) -> Iterable[tuple[str, Any]]:
        written = self.content.get(word, {})
        if not isinstance(written, dict):
            self._refuse((word,), f"{word} must be a table", f"write [{word}.NAME] on a separate line")
        return written.items()

    def _check_people(self, name: str, entry: CatalogEntry, entries: Mapping[str, CatalogEntry]) -> None:
        """A table of the same people as another shares its budget, and declares none."""
        other = entry.options.get("same_people_as")
        at = ("tables", name, "same_people_as")
        if other is None:
            return
        if not isinstance(other, str) or other == name:
            self._refuse(
                at, "same_people_as must be the name of another table", f'same_people_as = "{next(iter(entries))}"'
            )
        if other in entries and "same_people_as" in entries[other].options:
            first = entries[other].options["same_people_as"]
            self._refuse(at, f"'{other}' shares the budget of '{first}' itself", f'same_people_as = "{first}"')

    def _check_owner(self, name: str, entries: Mapping[str, CatalogEntry], before: tuple[str, ...]) -> None:
        """Rows with `via` have their unit in another table, which may have it from a third, and share its budget."""
        options = entries[name].options
        if "via" not in options:
            return
        at, file = ("tables", name, "unit"), CatalogFile(self.path, None, entries)
        written = "ROW" if options["unit"] is ROW else options["unit"]
        owner = file.owner_of(name) if written in file.units() else None
        if owner is None or owner in (name, *before):
            others = [
                each for each in file.units() if not each.startswith((f"{name}.", *(f"{one}." for one in before)))
            ]
            self._refuse(
                at,
                f"with via, unit must be another table's name and its unit, and '{written}' is not",
                f'unit = "{others[0] if others else "orders.customer_id"}"',
            )
        for word in ("budget", "same_people_as"):
            if word in options:
                self._refuse((*at[:2], word), f"'{name}' shares the budget of '{owner}'", f"leave out {word}")
        self._check_owner(owner, entries, (name, *before))

    def _entry(self, at: Place, written: Any) -> CatalogEntry:
        self._only(TABLE_OPTIONS, written, at)
        source, unit = self._source(written, at), self._text(written, "unit", at, "patient_id")
        if unit is None:
            self._refuse(at, f"[{'.'.join(at)}] has no unit", 'add a line such as unit = "patient_id"')
        options = {word: value for word, value in written.items() if word not in ("source", "budget")}
        options |= {"unit": ROW if unit == "ROW" else unit, "columns": self._columns(written, at)}
        if "hold" in written:
            options["hold"] = self._checked(read_hold, written["hold"], (*at, "hold"), 'hold = "2s"')
        if "budget" in written:
            options["budget"] = self._budget(written["budget"], (*at, "budget"))
        return CatalogEntry(at[-1], source, options)

    def _public(self, at: Place, written: Any, entries: Mapping[str, CatalogEntry]) -> CatalogEntry:
        """Return a public table: no unit, no budget."""
        self._only(PUBLIC_OPTIONS, written, at)
        source, most = self._source(written, at), written.get("most", 1)
        if at[-1] in entries:
            self._refuse(at, f"'{at[-1]}' is a protected table too", "give the public table another name")
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            self._refuse((*at, "most"), "most must be a whole number of rows that one row may match", "most = 1")
        return CatalogEntry(at[-1], source, {"columns": self._columns(written, at), "most": most})

    def _person(self, at: Place, written: Any, entries: Mapping[str, CatalogEntry]) -> CatalogPerson:
        """Return a person; the ledger checks names and roles."""
        self._only(PERSON_OPTIONS, written, at)
        tables, until, role = written.get("tables"), written.get("until"), self._text(written, "role", at, "analyst")
        if tables is not None and (not isinstance(tables, list) or any(each not in entries for each in tables)):
            self._refuse((*at, "tables"), "tables must name tables of this catalog", f"tables = {list(entries)[:3]}")
        return CatalogPerson(
            at[-1],
            "analyst" if role is None else role,
            None if tables is None else tuple(tables),
            until if until is None or isinstance(until, str) else until.isoformat(),
            self._loss(written["budget"], (*at, "budget")) if "budget" in written else None,
            self._text(written, "period", at, "month"),
        )

    def _sign_on(self) -> SignOn | None:
        at, written = ("sign_on",), self.content.get("sign_on")
        if written is None:
            return None
        self._only(SIGN_ON_OPTIONS, written, at)
        found = {word: self._text(written, word, at, "tacit") for word in SIGN_ON_OPTIONS}
        for word in ("issuer", "client_id"):
            if not found[word]:
                self._refuse(at, f"[sign_on] has no {word}", f'add a line such as {word} = "https://login.example.org"')
        if found["new_people"] not in (None, "analyst", "auditor"):
            self._refuse((*at, "new_people"), "new_people is analyst or auditor", 'new_people = "analyst"')
        if found["secret_file"] is not None:
            found["secret_file"] = self._beside(found["secret_file"])
        return SignOn(**{word: value for word, value in found.items() if value is not None})

    def _columns(self, written: Mapping[str, Any], above: Place) -> dict[str, Any]:
        at, columns = (*above, "columns"), written.get("columns", {})
        if not isinstance(columns, dict):
            self._refuse(at, "columns must be a table", "e.g. [tables.visits.columns.age] with between = [0, 120]")
        for column, facts in columns.items():
            self._checked(partial(read_facts, column), facts, (*at, column))
        return columns

    def _loss(self, written: Any, at: Place) -> Loss:
        """Return the budget of a person, who has its period beside it."""
        found = self._budget(written, at)
        if isinstance(found, LossPerPeriod):
            self._refuse(at, "a person's period stands beside the budget", f'period = "{found.period}"')
        return found

    def _budget(self, written: Any, at: Place) -> Loss | LossPerPeriod:
        if not isinstance(written, dict) or ("epsilon" in written) == ("rho" in written):
            self._refuse(at, "budget needs epsilon or rho", "budget = { epsilon = 3, delta = 1e-6 }")
        self._only(BUDGET_OPTIONS, written, at)
        read, amount = (rho, written["rho"]) if "rho" in written else (epsilon, written["epsilon"])
        more = {"delta": written.get("delta", 0), "period": written.get("period")}
        return self._checked(partial(read, **more), amount, at)

    def _checked(self, read: Callable[[Any], Checked], written: Any, at: Place, fix: str | None = None) -> Checked:
        """Return what a reader makes of a value; its refusal gets the line."""
        try:
            return read(written)
        except TacitError as problem:
            self._refuse(at, str(problem), fix)

    def _source(self, written: Mapping[str, Any], at: Place) -> str:
        source = self._text(written, "source", at, "visits.parquet")
        if source is None:
            self._refuse(at, f"[{'.'.join(at)}] has no source", 'add a line such as source = "visits.parquet"')
        return self._beside(source)

    def _text(self, written: Mapping[str, Any], word: str, at: Place, example: str) -> str | None:
        found = written.get(word)
        if found is not None and not isinstance(found, str):
            self._refuse((*at, word), f"{word} must be text", f'e.g. {word} = "{example}"')
        return found

    def _only(self, known: tuple[str, ...], written: Any, at: Place) -> None:
        """Refuse other options, and a value instead of a table of them."""
        if not isinstance(written, dict):
            self._refuse(at, f"{'.'.join(at)} is not a table", f"write [{'.'.join(at)}] on a separate line")
        for word in written:
            if word not in known:
                self._refuse((*at, word), f"'{word}' is not an option here", f"the options are {', '.join(known)}")

    def _beside(self, source: str) -> str:
        """Return a path as seen from the catalog's own folder; an address is left as it is."""
        return source if "://" in source or source == ":memory:" else str(self.path.parent / source)

    def _refuse(self, at: Place, problem: str, fix: str | None = None) -> NoReturn:
        message, _, own_fix = problem.partition("\nhint: ")
        raise InvalidParameter(f"{self.path}, line {self._line(at)}: {message}\nhint: {fix or own_fix or message}")

    def _line(self, at: Place) -> int:
        """Return the line of a word, or of the closest table above it."""
        best, best_line = 0, 1
        header: tuple[str, ...] = ()
        here: tuple[str, ...]
        for number, line in enumerate(self.lines, 1):
            heading = re.match(r"\s*\[+([^\]]+)\]+", line)
            if heading:
                header = tuple(part.strip().strip("\"'") for part in heading[1].split("."))
                here = header
            else:
                key = re.match(r"\s*([^=#]+?)\s*=", line)
                if not key:
                    continue
                here = (*header, *(part.strip().strip("\"'") for part in key[1].split(".")))
            if here == at[: len(here)] and len(here) > best:
                best, best_line = len(here), number
        return best_line
