"""Relations are compiled in few passes, and to the same rows as in all of Ibis's."""

import threading

import ibis
import pyarrow as pa
import pytest
from ibis.common import patterns

from tacit.tables import connection
from tacit.tables.connection import TotalCompiler, our_connection

ROWS = ibis.memtable(pa.table({"a": [3, 1, 2], "s": ["x", "yz", None]}))
RELATIONS = {
    "plain": ROWS.filter(ROWS.a > 1).mutate(b=ROWS.a.cast("string")).group_by("b").agg(n=ibis._.count()),
    "a window": ROWS.mutate(place=ibis.row_number().over(order_by=ROWS.a)),
    "a list of nothing": ROWS.filter(ROWS.a.isin([])),
    "lowered": ROWS.mutate(t=ROWS.s.capitalize()),
    "inner SELECTs": ROWS.mutate(b=ROWS.a + 1).filter(ibis._.b > 2).select("b").mutate(c=ibis._.b * 2),
}


def rows_of(relation):
    return sorted(our_connection().to_pyarrow(relation).to_pylist(), key=str)


@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_a_relation_has_the_rows_that_all_passes_give(name, monkeypatch):
    found = rows_of(RELATIONS[name])
    monkeypatch.setattr(connection, "_REWRITTEN", None)  # then nothing is known of what Ibis rewrites
    assert rows_of(RELATIONS[name]) == found


def test_where_nothing_is_rewritten_the_text_is_the_same(monkeypatch):
    quick = TotalCompiler().to_sqlglot(RELATIONS["plain"]).sql("duckdb")
    monkeypatch.setattr(connection, "_REWRITTEN", None)
    assert TotalCompiler().to_sqlglot(RELATIONS["plain"]).sql("duckdb") == quick


def test_what_a_pattern_of_another_kind_rewrites_is_not_known():
    assert connection._operations_of(patterns.AnyOf(patterns.InstanceOf(int), patterns.Any())) is None
    assert connection._operations_of(patterns.InstanceOf((int, str))) == {int, str}


def test_the_option_of_the_whole_process_is_as_it_was():
    before = ibis.options.sql.fuse_selects
    compiler = TotalCompiler()
    workers = [threading.Thread(target=compiler.to_sqlglot, args=(RELATIONS["plain"],)) for _ in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert ibis.options.sql.fuse_selects is before is True
