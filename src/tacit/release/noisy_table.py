"""The noisy table: the content of a release, and its form in the ledger; all of it is released already.

Noisy integers are kept, so a repeated answer has the same numbers, under any names, order or confidence.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import chain
from typing import Any

from tacit.errors import LedgerError

KeyValue = None | bool | int | float | Fraction | str | date | datetime
Key = tuple[KeyValue, ...]
FORMAT = 1
FORMAT_TOGETHER = 2  # of several tables that were released together
JSON_TYPES = frozenset({int, str, bool, type(None)})  # types that JSON writes as they are


@dataclass(frozen=True)
class NoisyTable:
    """The keys of the shown groups, and for each release and part, then for each end of a draw of quantiles, an integer
    for each."""

    keys: tuple[Key, ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]  # [release][part][group]
    totals: tuple[tuple[int, ...], ...] = ()  # [release of totals][part]
    levels: "tuple[NoisyTable, ...]" = ()  # of each level of the plan, its totals

    @classmethod
    def sorted_by_key(
        cls, keys: Sequence[Key], parts: Sequence[Sequence[Sequence[int]]], totals: tuple[tuple[int, ...], ...] = ()
    ) -> "NoisyTable":
        """Return the table with its groups in the order of their keys."""
        order = sorted(range(len(keys)), key=lambda group: tuple([_rank(part) for part in keys[group]]))
        return cls(
            tuple([keys[group] for group in order]),
            tuple(tuple(tuple([part[group] for group in order]) for part in each) for each in parts),
            totals,
        )

    def with_texts(self, texts: Mapping[str, str]) -> "NoisyTable":
        """Return it with long texts in place of their digests, in the order of its keys."""
        if not texts:
            return self
        keys = [tuple(texts.get(part, part) if isinstance(part, str) else part for part in key) for key in self.keys]
        levels = tuple(each.with_texts(texts) for each in self.levels)
        return replace(NoisyTable.sorted_by_key(keys, self.parts, self.totals), levels=levels)

    def to_json(self, *, stamp: str | None = None, basis: Mapping[str, Any] | None = None) -> str:
        """Return it as text for the ledger, with the files' state (`stamp`) and the facts that its plan was made from
        (`basis`)."""
        return _json_as_kept({"format": FORMAT, **self._record()}, stamp, basis)

    @classmethod
    def from_json(cls, text: str) -> "NoisyTable":
        return cls._from_record(_read_json(text, FORMAT))

    @staticmethod
    def all_to_json(
        tables: "Sequence[NoisyTable]", *, stamp: str | None = None, basis: Mapping[str, Any] | None = None
    ) -> str:
        """Return several tables that were released together as one text for the ledger."""
        return _json_as_kept(
            {"format": FORMAT_TOGETHER, "together": [table._record() for table in tables]}, stamp, basis
        )

    @classmethod
    def all_from_json(cls, text: str) -> "tuple[NoisyTable, ...]":
        return tuple(map(cls._from_record, _read_json(text, FORMAT_TOGETHER)["together"]))

    def _record(self) -> dict[str, Any]:
        record = {"keys": keys_record(self.keys), "parts": self.parts, "totals": self.totals}
        levels = [{"keys": keys_record(each.keys), "parts": each.parts} for each in self.levels]
        return record | ({"levels": levels} if levels else {})

    @classmethod
    def _from_record(cls, record: Mapping[str, Any]) -> "NoisyTable":
        keys = keys_from(record["keys"])
        parts = tuple(tuple(tuple(part) for part in release) for release in record["parts"])
        levels = tuple(map(cls._from_record, record.get("levels", ())))
        return cls(keys, parts, tuple(tuple(each) for each in record.get("totals", ())), levels)


def keys_record(keys: Sequence[Key]) -> Sequence[Sequence[Any]]:
    """Return keys as values that JSON can write."""
    if set(map(type, chain.from_iterable(keys))) <= JSON_TYPES:
        return keys
    return [[_key_to_json(part) for part in key] for key in keys]


def keys_from(record: Sequence[Sequence[Any]]) -> tuple[Key, ...]:
    return tuple(tuple(_key_from_json(part) for part in key) for key in record)


def _json_as_kept(record: dict[str, Any], stamp: str | None, basis: Mapping[str, Any] | None) -> str:
    """Return a record as the ledger keeps it; empty parts are left out."""
    totals = {"totals": record["totals"]} if record.get("totals") else {}
    record = {name: value for name, value in record.items() if name != "totals"}
    record |= {} if stamp is None else {"stamp": stamp}
    record |= totals | ({} if basis is None else {"basis": dict(basis)})
    return json.dumps(record, separators=(",", ":"))


def _read_json(text: str, wanted: int) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(text)
    if record.get("format") != wanted:
        raise LedgerError("this answer was stored by a newer version of tacit\nhint: update tacit to read it")
    return record


def stamp_in(text: str) -> str | None:
    stamp = json.loads(text).get("stamp")
    return stamp if isinstance(stamp, str) else None


def basis_in(text: str) -> dict[str, Any] | None:
    basis = json.loads(text).get("basis")
    return basis if isinstance(basis, dict) else None


def joined(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return one table, in the order of its keys, with the groups of several tables that were read in parts."""
    if len(tables) == 1:
        return tables[0]
    keys = [key for table in tables for key in table.keys]
    releases = range(len(tables[0].parts)) if tables else range(0)
    parts = [
        [list(chain.from_iterable(some)) for some in zip(*(table.parts[index] for table in tables), strict=True)]
        for index in releases
    ]
    totals = next((table.totals for table in tables if table.totals), ())
    return NoisyTable.sorted_by_key(keys, parts, totals)


def _rank(part: KeyValue) -> tuple[int, Any]:
    """Return what a key is sorted by: NULL first, then by value. The values of one column have one type."""
    if part is None:
        return (0, 0)
    return (1, part)


def _key_to_json(part: KeyValue) -> Any:
    if isinstance(part, datetime):
        return {"timestamp": part.isoformat()}
    if isinstance(part, date):
        return {"date": part.isoformat()}
    if isinstance(part, Fraction):
        return {"decimal": str(part)}
    if isinstance(part, float):
        return {"float": repr(part)}
    return part


def _key_from_json(part: Any) -> KeyValue:
    if not isinstance(part, dict):
        plain: KeyValue = part
        return plain
    (kind, text), *_ = part.items()
    readers: dict[str, Any] = {
        "timestamp": datetime.fromisoformat,
        "date": date.fromisoformat,
        "decimal": Fraction,
        "float": float,
    }
    read: KeyValue = readers[kind](text)
    return read
