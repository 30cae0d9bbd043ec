"""`tacit.toml`: tables, units, ranges, keys, bounds, budgets and the ledger, written once by the curator.

Reads and checks the file, and says of a mistake which line it is on and what to write. Opening tables is left to the
door.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from tacit.errors import InvalidParameter, TacitError
from tacit.files import read_small
from tacit.privacy import Loss, epsilon, rho
from tacit.tables.schema import ROW, read_facts

FILE_NAME = "tacit.toml"
BYTES_MAX = 4 << 20
TABLE_OPTIONS = (
    "source",
    "unit",
    "budget",
    "columns",
    "rows_per_unit",
    "groups_per_unit",
    "neighbours",
    "population",
    "version",
    "accept_large_delta",
    "same_people_as",
)
BUDGET_OPTIONS = ("epsilon", "delta", "rho")


@dataclass(frozen=True)
class CatalogEntry:
    """One table of a catalog: the words `tacit.table` takes."""

    name: str
    source: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class CatalogFile:
    """A catalog as read: its tables, and the ledger they share (None: the default one)."""

    path: Path
    ledger: str | None
    tables: Mapping[str, CatalogEntry]


def read_catalog(path: str | os.PathLike[str]) -> CatalogFile:
    """Return the catalog in a file, or refuse it with the line and the fix."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidParameter(f"a catalog is the path of a file, not a {type(path).__name__}\nhint: 'tacit.toml'")
    place = Path(path)
    try:
        text = read_small(place, bytes_max=BYTES_MAX)
    except (OSError, ValueError):  # the latter: no file can have this name
        raise InvalidParameter(f"there is no catalog at {str(path)!r}\nhint: write one with: tacit init") from None
    return _Reader(place, text).catalog()


class _Reader:
    """Reads one file, and knows on which line each of its words is."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        try:
            self.content = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as problem:
            raise InvalidParameter(f"{path}: {problem}\nhint: check the quotes and brackets on that line") from None
        except (ValueError, ArithmeticError):  # an exponent that no decimal has, a whole number of thousands of digits
            raise InvalidParameter(f"{path}: a number in it is too long\nhint: give a shorter number") from None
        except RecursionError:
            raise InvalidParameter(
                f"{path} is nested too deeply\nhint: a catalog has tables, columns and lists"
            ) from None

    def catalog(self) -> CatalogFile:
        """Return the checked content."""
        self._only(("tables", "ledger"), self.content, ())
        tables = self.content.get("tables")
        if not isinstance(tables, dict) or not tables:
            self._refuse((), "there is no table in it", "add one, e.g. [tables.visits] with source, unit and budget")
        ledger = self.content.get("ledger")
        if ledger is not None and not isinstance(ledger, str):
            self._refuse(("ledger",), "ledger must be text", 'a path or an address, e.g. ledger = "ledger.db"')
        entries = {name: self._entry(name, said) for name, said in tables.items()}
        return CatalogFile(self.path, self._beside(ledger) if ledger else None, entries)

    def _entry(self, name: str, said: Any) -> CatalogEntry:
        at = ("tables", name)
        if not isinstance(said, dict):
            self._refuse(at, f"'{name}' is not a table", f"write [tables.{name}] on a line of its own")
        self._only(TABLE_OPTIONS, said, at)
        for word in ("source", "unit"):
            if not isinstance(said.get(word), str):
                self._refuse(at, f"[tables.{name}] lacks {word}", f'add a line such as {word} = "{_EXAMPLES[word]}"')
        options = {word: value for word, value in said.items() if word not in ("source", "unit", "budget", "columns")}
        options["unit"] = ROW if said["unit"] == "ROW" else said["unit"]
        options["columns"] = self._columns(said.get("columns", {}), (*at, "columns"))
        if "budget" in said:
            options["budget"] = self._budget(said["budget"], (*at, "budget"))
        return CatalogEntry(name, self._beside(said["source"]), options)

    def _columns(self, said: Any, at: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(said, dict):
            self._refuse(at, "columns must be a table", "e.g. [tables.visits.columns.age] with between = [0, 120]")
        for column, facts in said.items():
            try:
                read_facts(column, facts)
            except TacitError as problem:
                self._refuse((*at, column), str(problem))
        return dict(said)

    def _budget(self, said: Any, at: tuple[str, ...]) -> Loss:
        if not isinstance(said, dict) or ("epsilon" in said) == ("rho" in said):
            self._refuse(at, "budget needs epsilon or rho", "budget = { epsilon = 3, delta = 1e-6 }")
        self._only(BUDGET_OPTIONS, said, at)
        try:
            if "rho" in said:
                return rho(said["rho"], delta=said.get("delta", 0))
            return epsilon(said["epsilon"], delta=said.get("delta", 0))
        except TacitError as problem:
            self._refuse(at, str(problem))

    def _only(self, known: tuple[str, ...], said: Mapping[str, Any], at: tuple[str, ...]) -> None:
        for word in said:
            if word not in known:
                self._refuse((*at, word), f"'{word}' is not a word here", f"it knows {', '.join(known)}")

    def _beside(self, source: str) -> str:
        """Return a path as seen from the catalog's own folder; an address is left as it is."""
        return source if "://" in source or source == ":memory:" else str(self.path.parent / source)

    def _refuse(self, at: tuple[str, ...], problem: str, fix: str | None = None) -> NoReturn:
        message, _, own_fix = problem.partition("\nhint: ")
        raise InvalidParameter(f"{self.path}, line {self._line(at)}: {message}\nhint: {fix or own_fix or message}")

    def _line(self, at: tuple[str, ...]) -> int:
        """Return the line of a word, or of the closest table above it."""
        best, best_line = 0, 1
        header: tuple[str, ...] = ()
        here: tuple[str, ...]
        for number, line in enumerate(self.lines, 1):
            found = re.match(r"\s*\[+([^\]]+)\]+", line)
            if found:
                header = tuple(part.strip().strip("\"'") for part in found[1].split("."))
                here = header
            else:
                key = re.match(r"\s*([^=#]+?)\s*=", line)
                if not key:
                    continue
                here = (*header, *(part.strip().strip("\"'") for part in key[1].split(".")))
            if here == at[: len(here)] and len(here) > best:
                best, best_line = len(here), number
        return best_line


_EXAMPLES = {"source": "visits.parquet", "unit": "patient_id"}
