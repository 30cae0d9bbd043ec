"""COLUMN=VALUE on a command line: what it says is public about a column, read as the column's own type."""

import csv
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.tables.source import Source


def read_ends(name: str, written: str) -> tuple[str, str]:
    """Return the two ends of LOW:HIGH."""
    low, colon, high = written.partition(":")
    if not colon:
        raise InvalidParameter(f"--between {name}=... needs two ends\nhint: --between {name}=0:100")
    return low, high


def named(written: Iterable[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """Return each COLUMN=VALUE as a pair; a column may be named once."""
    pairs: list[tuple[str, str]] = []
    for text in written or ():
        column, equals, value = text.partition("=")
        if not (column and equals and value):
            raise InvalidParameter(f"{option} must be COLUMN=VALUE\nhint: {option} {example}")
        if column in dict(pairs):
            raise InvalidParameter(f"{option} names '{column}' twice\nhint: say it once, e.g. {option} {example}")
        pairs.append((column, value))
    return pairs


def column_kinds(source: "Source", columns: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return every column's public type, as declared or as the file's schema says."""
    from tacit.tables.schema import read_facts
    from tacit.tables.source import open_source

    described = open_source(source, {column: read_facts(column, said) for column, said in columns.items()})
    return {column: facts.type for column, facts in described.columns.items()}


def read_key(column: str, text: str, kind: str) -> Any:
    """Return a key as its column's type: the words of a command line are all text."""
    from tacit.privacy.number import decimal_meaning

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
