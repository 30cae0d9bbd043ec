"""Reads the COLUMN=VALUE options of a command line, and opens tables that a tacit.toml declares.

COLUMN=VALUE declares a public fact of a column, and is read as the column's own type. A table of a catalog is found by
name. Its options need not be repeated; an option that contradicts the catalog is refused, because one of them is wrong.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidParameter, LedgerError, QueryRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.asking import Table
    from tacit.cli.options import TableOptions
    from tacit.ledger import Ledger, RegisteredTable
    from tacit.tables import CatalogEntry, CatalogFile, ColumnFacts, PublicTable, Source

    Opened = Callable[[Any], Source]


def read_ends(name: str, written: str) -> tuple[str, str]:
    """Return the two ends of LOW:HIGH."""
    low, colon, high = written.partition(":")
    if not colon:
        raise InvalidParameter(f"--between {name}=... needs two ends\nhint: --between {name}=0:100")
    return low, high


def whole_number(written: str) -> int:
    """Return a whole number in ASCII digits; Python's own int() also reads 1_000 and the digits of other scripts."""
    if not re.fullmatch("-?[0-9]{1,18}", written, re.ASCII):
        raise InvalidParameter("a whole number is written in digits only, at most 18 of them\nhint: e.g. 1000")
    return int(written)


def read_bound_option(written: str | None, option: str) -> int | None:
    """Return a bound that is set by hand; None if it is left out or "auto", and so learned."""
    if written is None or written == "auto":
        return None
    if not (written.isascii() and written.isdecimal() and len(written) <= 18 and int(written) > 0):
        raise InvalidParameter(
            f"{option} must be a whole number of at least 1, or auto\nhint: leave it out to have it learned"
        )
    return int(written)


def named(written: Iterable[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """Return each COLUMN=VALUE as a pair; a column may be named once."""
    pairs: list[tuple[str, str]] = []
    for text in written or ():
        column, equals, value = text.partition("=")
        if not (column and equals and value):
            raise InvalidParameter(f"{option} must be COLUMN=VALUE\nhint: {option} {example}")
        if column in dict(pairs):
            raise InvalidParameter(f"{option} names '{column}' twice\nhint: name it once, e.g. {option} {example}")
        pairs.append((column, value))
    return pairs


def read_matches(text: str) -> int:
    """Return how many rows of a public table one row may match."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise InvalidParameter("--most must be TABLE=N, with a whole number of at least 1\nhint: --most wards=2")
    return int(text)


def column_kinds(source: Source, columns: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return every column's public type, as declared or as the file's schema says."""
    from tacit.tables import open_source, read_facts

    described = open_source(source, {column: read_facts(column, facts) for column, facts in columns.items()})
    return {column: facts.type for column, facts in described.columns.items()}


def read_key(column: str, text: str, kind: str) -> Any:
    """Return a key as its column's type; on a command line everything is text."""
    from tacit.privacy import decimal_meaning

    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in ("int", "decimal", "float"):
        number = decimal_meaning(text, name=f"a key of '{column}'")
        if kind == "float":
            return float(number)
        return int(number) if number.denominator == 1 else number
    return text


def read_key_list(column: str, text: str, kind: str) -> list[Any]:
    """Return the keys in a comma-separated list, which may quote, as their column's type."""
    return [read_key(column, key, kind) for key in next(csv.reader([text], skipinitialspace=True), [])]


# --- tables of a catalog ---

MEMORY = ":memory:"


@dataclass(frozen=True)
class FoundEntry:
    """A table of a catalog, with its catalog."""

    entry: CatalogEntry
    file: CatalogFile

    def named(self, sql: str, dialect: str | None) -> tuple[list[str], list[str]]:
        """Return the catalog's other protected tables that a SELECT names, and its public ones."""
        from tacit.query import tables_named

        if not self.file.public and len(self.file.tables) == 1:
            return [], []
        names = {name.lower() for name in tables_named(sql, dialect)}
        others = [name for name in self.file.tables if name.lower() in names and name != self.entry.name]
        return others, [name for name in self.file.public if name.lower() in names]


def find_entry(name: str, catalog: str | None) -> FoundEntry | None:
    """Return the catalog's table with this name; None without a catalog, or if the name is a file's."""
    from tacit.errors import did_you_mean
    from tacit.tables import FILE_NAME, read_catalog

    if catalog is None and (os.path.exists(name) or not os.path.exists(FILE_NAME)):
        return None
    file = read_catalog(FILE_NAME if catalog is None else catalog)
    if name not in file.tables:
        if catalog is None and any(mark in name for mark in "./*?["):  # as names of files and addresses have
            return None
        raise QueryRefused(f"{file.path} does not declare '{name}'{did_you_mean(name, file.tables)}")
    return FoundEntry(file.tables[name], file)


def open_entry(
    found: FoundEntry, options: TableOptions, opened: Opened, *, to_plan: bool, others: Sequence[str]
) -> Table:
    """Return the catalog's table, after checking that the command line does not contradict it."""
    import tacit
    from tacit.asking import refuse_unapplied_people

    entry, file = found.entry, found.file
    _check_agreement(found, options)
    forgets = options.try_out or (to_plan and not all(is_known(file.ledger, name) for name in (entry.name, *others)))
    ledger: Any = MEMORY if forgets else file.ledger
    first = entry.options.get("same_people_as")
    if isinstance(first, str) and first in file.tables:  # the owner of a shared budget must be in the ledger
        people = file.tables[first]
        ledger = tacit.table(opened(people.source), name=first, ledger=ledger, **people.options).session.ledger
    try:
        table = tacit.table(opened(entry.source), name=entry.name, ledger=ledger, **entry.options)
    except (InvalidParameter, QueryRefused) as problem:
        raise type(problem)(f"{file.path}, [tables.{entry.name}]: {problem}") from None
    if not forgets:
        refuse_unapplied_people(file, table)
    _check_columns(found, table.frame.declaration.columns, options)
    return table


def open_others(
    found: FoundEntry, table: Table, names: Sequence[str], publics: Sequence[str], opened: Opened
) -> tuple[list[Table | PublicTable], dict[str, int]]:
    """Return the catalog's other tables of these names, and how many matches a row may have in public ones."""
    import tacit

    file = found.file
    others: list[Table | PublicTable] = []
    for name in names:
        entry = file.tables[name]
        others.append(tacit.table(opened(entry.source), name=name, ledger=table.session.ledger, **entry.options))
    for name in publics:
        entry = file.public[name]
        others.append(tacit.public(entry.source, name=name, columns=entry.options["columns"]))
    return others, {name: file.public[name].options["most"] for name in publics}


def known_table(ledger: Ledger, name: str) -> RegisteredTable | None:
    """Return the table of that name in a ledger, or None."""
    return ledger.table(name)


def is_known(ledger: str | None, name: str) -> bool:
    """Return whether a ledger exists and knows a table; the ledger is not changed or created."""
    from tacit.ledger import open_ledger

    try:
        with open_ledger(ledger, create=False) as opened:
            return known_table(opened, name) is not None
    except LedgerError:
        return False


def _check_agreement(found: FoundEntry, options: TableOptions) -> None:
    import tacit

    declared: dict[str, Any] = {"neighbours": "add-remove", **found.entry.options, "name": found.entry.name}
    declared["unit"] = "ROW" if declared["unit"] is tacit.ROW else declared["unit"]
    words = ("unit", "name", "rows", "most_rows_per_unit", "version", "neighbours", "same_people_as")
    given: dict[str, Any] = {word: getattr(options, word) for word in words}
    for word in ("rows_per_unit", "groups_per_unit"):
        given[word] = read_bound_option(getattr(options, word), option_of(word))
    if options.ledger is not None:
        given["ledger"], declared["ledger"] = map(os.path.realpath, (options.ledger, found.file.ledger or ""))
    if options.budget is not None:
        given["budget"] = tacit.epsilon(options.budget, delta=options.delta or 0)
    for word, value in given.items():
        _agree(found, option_of(word), value, declared.get(word))


def option_of(word: str) -> str:
    """Return an option as it is written: --rows-per-unit."""
    return f"--{word.replace('_', '-')}"


def _check_columns(found: FoundEntry, columns: Any, options: TableOptions) -> None:
    from tacit.tables import read_between

    def facts(column: str, option: str) -> ColumnFacts:
        if column not in columns:
            raise QueryRefused(f"{option} names '{column}', but the table has no such column")
        known: ColumnFacts = columns[column]
        return known

    for column, kind in named(options.type, "--type", "age=int"):
        _agree(found, f"--type {column}", kind, facts(column, "--type").type)
    for column, text in named(options.keys, "--keys", "ward=A,B"):
        known = facts(column, "--keys")
        keys = tuple(read_key_list(column, text, known.type))
        _agree(found, f"--keys {column}", keys, known.keys)
    for name, text in named(options.between, "--between", "age=0:120"):
        if name in columns and columns[name].between is not None:
            _agree(found, f"--between {name}", read_between(name, read_ends(name, text)), columns[name].between)


def _agree(found: FoundEntry, option: str, given: Any, declared: Any) -> None:
    if given is None or given == declared:
        return
    catalog = "declares another value" if declared is not None else "does not declare it"
    raise InvalidParameter(
        f"{option} contradicts {found.file.path}: [tables.{found.entry.name}] {catalog}"
        f"\nhint: leave out {option.split(maxsplit=1)[0]}, or ask the curator to change the catalog"
    )
