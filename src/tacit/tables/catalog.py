"""`tacit.toml`: tables, units, ranges, keys, bounds, budgets and the ledger, written once by the curator.

This file reads and checks the catalog. An error names the line and what to write there. Opening tables is left to the
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
    "rows",
    "most_rows_per_unit",
    "version",
    "accept_large_delta",
    "same_people_as",
)
BUDGET_OPTIONS = ("epsilon", "delta", "rho")


@dataclass(frozen=True)
class CatalogEntry:
    """One table of a catalog: its name, its source, and the other options of `tacit.table`."""

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
        raise InvalidParameter(f"a catalog must be the path of a file, not a {type(path).__name__}\nhint: 'tacit.toml'")
    file = Path(path)
    try:
        text = read_small(file, bytes_max=BYTES_MAX)
    except (OSError, ValueError):  # the latter: no file can have this name
        raise InvalidParameter(f"there is no catalog at {str(path)!r}\nhint: write one with: tacit init") from None
    return _Reader(file, text).catalog()


class _Reader:
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

    def catalog(self) -> CatalogFile:
        """Return the checked content."""
        self._only(("tables", "ledger"), self.content, ())
        tables = self.content.get("tables")
        if not isinstance(tables, dict) or not tables:
            self._refuse(
                (), "this catalog declares no table", "add one, e.g. [tables.visits] with source, unit and budget"
            )
        ledger = self.content.get("ledger")
        if ledger is not None and not isinstance(ledger, str):
            self._refuse(("ledger",), "ledger must be text", 'a path or an address, e.g. ledger = "ledger.db"')
        entries = {name: self._entry(name, written) for name, written in tables.items()}
        return CatalogFile(self.path, self._beside(ledger) if ledger else None, entries)

    def _entry(self, name: str, written: Any) -> CatalogEntry:
        at = ("tables", name)
        if not isinstance(written, dict):
            self._refuse(at, f"'{name}' is not a table", f"write [tables.{name}] on a line of its own")
        self._only(TABLE_OPTIONS, written, at)
        for word in ("source", "unit"):
            if not isinstance(written.get(word), str):
                self._refuse(at, f"[tables.{name}] has no {word}", f'add a line such as {word} = "{_EXAMPLES[word]}"')
        options = {
            word: value for word, value in written.items() if word not in ("source", "unit", "budget", "columns")
        }
        options["unit"] = ROW if written["unit"] == "ROW" else written["unit"]
        options["columns"] = self._columns(written.get("columns", {}), (*at, "columns"))
        if "budget" in written:
            options["budget"] = self._budget(written["budget"], (*at, "budget"))
        return CatalogEntry(name, self._beside(written["source"]), options)

    def _columns(self, written: Any, at: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(written, dict):
            self._refuse(at, "columns must be a table", "e.g. [tables.visits.columns.age] with between = [0, 120]")
        for column, facts in written.items():
            try:
                read_facts(column, facts)
            except TacitError as problem:
                self._refuse((*at, column), str(problem))
        return dict(written)

    def _budget(self, written: Any, at: tuple[str, ...]) -> Loss:
        if not isinstance(written, dict) or ("epsilon" in written) == ("rho" in written):
            self._refuse(at, "budget needs epsilon or rho", "budget = { epsilon = 3, delta = 1e-6 }")
        self._only(BUDGET_OPTIONS, written, at)
        try:
            if "rho" in written:
                return rho(written["rho"], delta=written.get("delta", 0))
            return epsilon(written["epsilon"], delta=written.get("delta", 0))
        except TacitError as problem:
            self._refuse(at, str(problem))

    def _only(self, known: tuple[str, ...], written: Mapping[str, Any], at: tuple[str, ...]) -> None:
        for word in written:
            if word not in known:
                self._refuse((*at, word), f"'{word}' is not an option here", f"the options are {', '.join(known)}")

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


_EXAMPLES = {"source": "visits.parquet", "unit": "patient_id"}
