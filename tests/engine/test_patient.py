"""The patient path gives the integers of the path it takes over from, and needs no more memory for more rows."""

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.engine import external_sort
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.external_sort import SortedRecords
from tacit.engine.patience import patient_path
from tacit.query.frame import count, count_distinct, count_units, mean, median, quantile
from tests.engine.exact import KEYS, SALT, UNITS, XS, YS, as_table, on_path, question

pytestmark = pytest.mark.usefixtures("kernel")
EVERYTHING = {"n": count(), "x_mean": mean("x"), "middle": median("x"), "high": quantile("y", 0.9), "p": count_units()}
LITTLE = 1 << 16  # memory for a few hundred records at a time


def tables_of(asked, *, path, salt=SALT, patient=False, memory=LITTLE):
    """Return {key: (sums, values)} of the groups, on the quick path or on the one that takes over from it."""
    plan, engine = asked.plan(epsilon=1).plan, asked.session.engine
    with on_path(path), pytest.MonkeyPatch.context() as patched:
        if patient:
            patched.setattr(EmbeddedEngine, "_quick", lambda *_: None)
            patched.setattr(engine, "_memory", memory)
        exact = engine.aggregate(plan, salt)
    found = {}
    for at, key in enumerate(exact.keys):
        sums = {name: each[at] for name, each in exact.sums.items() if plan.needs_rows or name != "rows"}
        found[key] = sums, {place: each[at].tolist() for place, each in exact.values.items()}
    return found


def assert_same(asked, path, **words):
    assert tables_of(asked, path=path, patient=True, **words) == tables_of(asked, path=path, **words)


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.parametrize("unit", UNITS)
def test_same_integers_for_units_of_every_type(path, unit):
    kind, cells = UNITS[unit]
    rows = [(cells[n * n % len(cells)], "abcde"[n % 5], XS[n * 7 % len(XS)], YS[n % len(YS)]) for n in range(150)]
    assert_same(question(as_table(rows, unit=kind), EVERYTHING), path)


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.parametrize("key", KEYS)
def test_same_integers_for_keys_of_every_type(path, key):
    kind, cells = KEYS[key]
    rows = [(n * n % 7, cells[n % len(cells)], XS[n * 7 % len(XS)], YS[n % len(YS)]) for n in range(150)]
    assert_same(question(as_table(rows, key=kind), EVERYTHING), path)


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.parametrize("words", [{"by": ("g", "x")}, {"by": ()}, {"keys": ["b", None, "z" * 90]}])
@pytest.mark.parametrize("bounds", [(1, 2), (3, 1)])
def test_same_integers_for_every_kind_of_question_and_bound(path, words, bounds):
    rows = [(n * n % 40, "abc"[n % 3] * (1 + n % 2 * 30), n * 7 % 11, (n % 7) / 2) for n in range(3000)]
    rows += [(7, "zzz"[: n % 4] * 30, n % 5, 0.0) for n in range(3000)]  # one unit has as much as all others
    asked = question(as_table(rows), EVERYTHING, rows_per_unit=bounds[0], groups_per_unit=bounds[1], **words)
    assert_same(asked, path, salt=str(bounds))


@pytest.mark.parametrize("unit", ["id", tacit.ROW])
@pytest.mark.parametrize("words", [{}, {"by": ()}, {"keys": ["a", None, "q"]}])
def test_same_numbers_of_different_values(unit, words):
    rows = [(n * n % 40, "abc"[n % 3], n * 7 % 11 if n % 5 else None, 0.0) for n in range(2000)]
    asked = question(as_table(rows), {"d": count_distinct("x", per_unit=2), "n": count()}, unit=unit, **words)
    assert_same(asked, "sql")


@pytest.mark.parametrize("path", ["sql", "kernel"])
def test_no_row_is_no_group(path):
    for by in ((), ("g",)):
        assert_same(question(as_table([]), EVERYTHING, by=by), path)


def test_records_come_back_in_order_however_little_memory_there_is(monkeypatch, tmp_path):
    monkeypatch.setattr(external_sort, "MERGED_MOST", 3)
    monkeypatch.setattr(external_sort, "RUN_RECORDS_LEAST", 7)
    records = np.random.default_rng(1).integers(0, 6, (1000, 3)).astype(np.uint64) << np.uint64(61)
    with SortedRecords(words=3, memory=0, folder=tmp_path) as all_records:
        for start in range(0, 1000, 90):
            all_records.add(records[start : start + 90])
        blocks = list(all_records.blocks())
        assert not list(tmp_path.iterdir())  # no file has a name
    assert max(map(len, blocks)) <= 2 * 7
    assert np.vstack(blocks).tolist() == sorted(records.tolist())


@pytest.mark.parametrize("kind", KEYS)
def test_words_are_equal_and_ordered_as_the_cells_are(kind):
    type_of, cells = KEYS[kind]
    cells = [cell for cell in cells if cell == cell] * 2  # NaN is NULL before it comes here
    words = external_sort.encode(pa.array(cells, type_of))
    assert external_sort.decode(words, type_of) == cells
    places = sorted(range(len(cells)), key=lambda at: words[at].tolist())
    known = [cells[at] for at in places if cells[at] is not None]
    assert known == sorted(known)
    assert all(cells[at] is None for at in places[len(known) :])


def test_found_groups_come_in_parts_and_every_part_is_released(monkeypatch):
    monkeypatch.setattr(EmbeddedEngine, "_quick", lambda *_: None)
    monkeypatch.setattr(patient_path, "GROUPS_SHARE", 1 << 40)
    asked = question(as_table([(n, f"g{n % 900}", 1, 0.0) for n in range(9000)]), {"n": count()}, groups_per_unit=1)
    parts = list(asked.session.engine.parts(asked.plan(epsilon=500).plan, SALT))
    assert len(parts) > 2
    answer = asked.answer(epsilon=500)
    assert [row["g"] for row in answer.to_dicts()] == sorted(f"g{n}" for n in range(900))
