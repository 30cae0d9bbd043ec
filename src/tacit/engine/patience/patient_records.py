"""Turns batches of rows into records of words, which the patient path sorts on disk.

A record begins with the words that decide the kept rows of a unit, in the order of the path that stopped: the kernel's
keyed hashes of the same cells, or the hash that SQL computed. Sorting is left to `external_sort.py`.
"""

from typing import Literal

import numpy as np
import pyarrow as pa

from tacit.engine import external_sort
from tacit.engine.kernel import coding, summing
from tacit.engine.patience.patient import NO_VALUE
from tacit.engine.relation import GROUP_ORDER, ROW_ORDER, STEPS, UNIT, VALUE
from tacit.privacy import Words

Orders = Literal["kernel", "sql"]


def place_words(places: pa.Array | None, rows: int) -> Words:
    """Return the indexes of listed keys as words; without keys, the index 0 for every row."""
    if places is None:
        return np.zeros((rows, 1), dtype=np.uint64)
    return coding.as_words(places).astype(np.uint64)[:, None]


class RowRecords:
    """Turns batches into records, with the orders of the path that stopped."""

    def __init__(self, schema: pa.Schema, columns: summing.Columns, salt: str, orders: Orders) -> None:
        self._columns, self._salt, self._orders_of = columns, salt, orders
        self._places = summing.place_finder(columns, salt) if orders == "kernel" else None
        self.unit_words = external_sort.word_count(schema.field(UNIT).type) if UNIT in schema.names else 0

    def keys(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' keys as words."""
        columns = [batch.column(key) for key in self._columns.keys]
        if self._columns.listed is None:
            return external_sort.encode_all(columns, len(batch))
        return place_words(columns[0] if columns else None, len(batch))

    def values(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' values, each in one word."""
        values = np.empty((len(batch), len(self._columns.values)), dtype=np.uint64)
        for index, limbs in enumerate(self._columns.values):
            words = [coding.cells_of(batch.column(limb)).astype(np.uint64) for limb in limbs]
            whole = words[0] if len(words) == 1 else (words[0] << np.uint64(summing.LIMB_BITS)) | words[1]
            values[:, index] = np.where(words[-1] == summing.NULL_WORD, NO_VALUE, whole)
        return values

    def records(self, batch: pa.RecordBatch) -> Words:
        """Return unit, order of the group, key, order of the row and values of each row."""
        if self._places is not None:
            places = self._places.find(batch.column(self._columns.keys[0]))
            batch = batch.filter(pa.array(places >= 0))
            keys = places[places >= 0].astype(np.uint64)[:, None]
        else:
            keys = self.keys(batch)
        group_order, row_order = self._orders(batch, keys)
        units = external_sort.encode(batch.column(UNIT))
        return np.column_stack([units, group_order, keys, row_order, self.values(batch)])

    def _orders(self, batch: pa.RecordBatch, keys: Words) -> tuple[Words, Words]:
        if self._orders_of == "sql":
            return _order(batch, GROUP_ORDER), _order(batch, ROW_ORDER)
        salt, listed = self._salt, self._columns.listed is not None
        units = hashes_of(batch.column(UNIT), coding.make_secret(salt, "unit"))
        if listed:
            of_keys = coding.hashed(keys[:, 0].astype(np.int64), summing.place_secret(salt))
        else:
            of_keys = hashes_of(batch.column(self._columns.keys[0]), coding.key_secret(salt, 0))
            for index, key in enumerate(self._columns.keys[1:], 1):
                of_keys = coding.mixed(of_keys, hashes_of(batch.column(key), coding.key_secret(salt, index)))
        group_order = order = coding.mixed(units, of_keys)
        for limb in self._columns.limbs:
            order = coding.mixed(order, coding.cells_of(batch.column(limb)).astype(np.uint64))
        return group_order, order


def hashes_of(column: pa.Array, secret: coding.Secret) -> Words:
    """Return the keyed hash of each cell, equal to the hash of the kernel's coders."""
    from tacit.engine.kernel import coding_loops as loops

    if coding.is_number(column.type):
        hashes = coding.hashed(coding.as_words(column), secret)
    else:
        data, ends = coding.bytes_of(column)
        hashes = np.empty(len(column), dtype=np.uint64)
        loops.hash_texts(coding.as_input(data), coding.as_input(ends), secret, hashes)
    if column.null_count:
        hashes[coding.is_null(column)] = coding.null_hash(secret)
    return hashes


def _order(batch: pa.RecordBatch, name: str) -> Words:
    """Return the words of an order, which is never NULL."""
    return external_sort.encode(batch.column(name))[:, 1]


def value_records(batch: pa.RecordBatch, keys: Words) -> Words:
    """Return unit, order of the group, key, order of the value and the value of each row."""
    value = external_sort.encode(batch.column(VALUE))
    order = np.where(value[:, 0] == 0, _order(batch, ROW_ORDER), NO_VALUE)  # NULL is not a value, and comes last
    units = external_sort.encode(batch.column(UNIT))
    return np.column_stack([units, _order(batch, GROUP_ORDER), keys, order, value])


def weighed_records(batch: pa.RecordBatch, keys: Words) -> Words:
    """Return unit, order of the group, key and value of each row that gets a weight."""
    value = external_sort.encode(batch.column(STEPS))
    steps = np.where(value[:, 0] == 0, value[:, 1] ^ external_sort.SIGN, NO_VALUE)
    units = external_sort.encode(batch.column(UNIT))
    return np.column_stack([units, _order(batch, GROUP_ORDER), keys, steps])
