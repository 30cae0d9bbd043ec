"""The compiled kernel gives the SQL path's integers where nothing is over its bound, and obeys the same rule where
something is."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import tacit_gauntlet as gauntlet
from tacit.engine.kernel import coding, coding_loops, kernel_path, summing
from tacit.engine.kernel import loops as kernel_loops
from tacit.engine.kernel.summing import Bounded, Columns, sum_batches
from tacit.engine.relation import leaving_text
from tacit_gauntlet.frame.case import run
from tests.engine.exact import KEYS, UNITS, XS, YS, added, as_table, exact_of, question

pytestmark = pytest.mark.usefixtures("kernel")
several = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


ANY_X, ANY_Y = st.sampled_from(XS), st.sampled_from(YS)
UNBOUNDED = {"rows_per_unit": 10**6, "groups_per_unit": 10**6}


@pytest.mark.parametrize("unit", UNITS)
@settings(several, max_examples=5)
@given(data=st.data())
def test_same_integers_as_sql_for_units_of_every_type(unit, data):
    kind, cells = UNITS[unit]
    rows = data.draw(
        st.lists(st.tuples(st.sampled_from(cells), st.sampled_from(["a", "b", None]), ANY_X, ANY_Y), max_size=30)
    )
    asked = question(as_table(rows, unit=kind), **UNBOUNDED)
    assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


@pytest.mark.parametrize("key", KEYS)
@settings(several, max_examples=5)
@given(data=st.data())
def test_same_integers_as_sql_for_keys_of_every_type(key, data):
    kind, cells = KEYS[key]
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(cells), ANY_X, ANY_Y), max_size=30))
    asked = question(as_table(rows, key=kind), **UNBOUNDED)
    assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


@settings(several, max_examples=6)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), ANY_X, ANY_Y), max_size=30))
def test_same_integers_as_sql_for_composite_listed_and_no_keys(rows):
    table = as_table(rows)
    for words in ({"by": ("g", "x")}, {"by": ("x", "g", "y")}, {"by": ()}, {"keys": ["b", None, "z"]}):
        asked = question(table, **UNBOUNDED, **words)
        assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


WIDE = [0, 1, -1, 2**63 - 1, -(2**63), 7, None]


@settings(several, max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(WIDE), ANY_X, ANY_Y), max_size=30),
    st.lists(st.sampled_from([*WIDE, 5, 6]), min_size=1, max_size=9, unique=True),
)
def test_same_integers_as_sql_for_listed_whole_numbers(rows, keys):
    asked = question(as_table(rows, key=pa.int64()), **UNBOUNDED, keys=keys)
    assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


LONG = "é" * 32  # 64 bytes: it leaves DuckDB as a digest
TEXTS = ["", "a", "A", "a\0", "é", "x" * 63, "x" * 64, LONG, LONG[:-1], None]


@settings(several, max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TEXTS), ANY_X, ANY_Y), max_size=30),
    st.lists(st.sampled_from([*TEXTS, "b", "y" * 70]), min_size=1, max_size=9, unique=True),
)
def test_same_integers_as_sql_for_listed_texts(rows, keys):
    asked = question(as_table(rows), **UNBOUNDED, keys=keys)
    assert kernel_path.looks_up_keys(asked.plan(epsilon=1).plan)
    assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


def test_a_listed_text_is_no_other_that_has_its_digest_as_text():
    digest = leaving_text(LONG)
    rows = [(1, LONG, 1, 0.0), (2, digest, 1, 0.0)]
    found = exact_of(question(as_table(rows), keys=[LONG, "a"]), path="kernel")
    assert {key: sums["units"] for key, sums in found.items()} == {(LONG,): 1}


def test_many_rows_in_many_batches_are_added_up_as_few_are(monkeypatch):
    rows = [(unit % 70, "ab"[unit % 2], unit % 7, 0.5) for unit in range(400)]
    asked = question(as_table(rows), keys=["a", "b"], rows_per_unit=2, groups_per_unit=1)
    few = exact_of(asked, path="kernel")
    monkeypatch.setattr(summing, "ROWS_ALONE", 0)
    assert exact_of(asked, path="kernel") == few


def test_rows_of_keys_that_are_not_listed_take_no_groups_place():
    rows = [(unit, key, 1, 0.0) for unit in range(50) for key in range(20)]
    found = exact_of(question(as_table(rows, key=pa.int64()), keys=[3, 4], groups_per_unit=2), path="kernel")
    assert {key: sums["units"] for key, sums in found.items()} == {(3,): 50, (4,): 50}


@pytest.mark.parametrize("rows", [[], [(1, "a", 3, 0.5)], [(None, "a", 3, 0.5)]])
@pytest.mark.parametrize("by", [(), ("g",)])
def test_no_row_and_one_row(rows, by):
    asked = question(as_table(rows), by=by)
    assert exact_of(asked, path="kernel") == exact_of(asked, path="sql")


def test_values_near_the_ends_of_64_bits_add_up_exactly():
    rows = [(n, "a", 2**32 - n % 2, 0.0) for n in range(1000)]
    asked = question(as_table(rows), x={"between": (0, 2**32)}, rows_per_unit=1, groups_per_unit=1)
    assert asked.plan(epsilon=900).plan.measured[0].height == 2**32  # more than one word holds, so it goes in limbs
    assert exact_of(asked, path="kernel", epsilon=900) == exact_of(asked, path="sql", epsilon=900)


people = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from("abcdef"), st.sampled_from([None, 1, 2, 9]), st.sampled_from([0.0, 1.0])
    ),
    max_size=60,
)


@several
@given(people, people, st.sampled_from([(1, 1), (2, 2), (1, 5), (3, 1)]), st.integers(0, 2**32))
def test_a_unit_that_is_added_leaves_every_other_units_kept_rows_as_they_were(crowd, mine, bounds, salt):
    words = {"rows_per_unit": bounds[0], "groups_per_unit": bounds[1]}
    mine = [(9, *row[1:]) for row in mine]
    together = [row for pair in zip(mine, crowd[::-1], strict=False) for row in pair]
    together += mine[len(crowd) :] + crowd[::-1][len(mine) :]
    both, one, others = (
        exact_of(question(as_table(rows), **words), salt=str(salt), path="kernel") for rows in (together, mine, crowd)
    )
    assert both == added(one, others)


@several
@given(people, st.sampled_from([(1, 1), (2, 2), (1, 5), (3, 1)]))
def test_bounds_are_enforced_and_nothing_within_them_is_left_out(rows, bounds):
    rows_most, groups_most = bounds
    found = exact_of(
        question(as_table(rows), rows_per_unit=rows_most, groups_per_unit=groups_most), path="kernel", salt="1"
    )
    groups = Counter()
    for unit in {row[0] for row in rows}:
        groups[unit] = min(groups_most, len({row[1] for row in rows if row[0] == unit}))
    assert sum(sums["units"] for sums in found.values()) == sum(groups.values())
    for (key,), sums in found.items():
        per_unit = Counter(row[0] for row in rows if row[1] == key)
        most = sum(sorted((min(rows_most, n) for n in per_unit.values()), reverse=True)[: sums["units"]])
        assert sums["units"] <= sums["rows"] <= most


def test_heavy_units_are_cut_to_their_bounds_whatever_their_size():
    rows = [(unit, f"g{n % 90}", n % 11, 0.0) for unit in range(3) for n in range(20_000)]
    for rows_most, groups_most in ((2, 5), (50, 80), (3, 70), (10**6, 2)):
        asked = question(as_table(rows), rows_per_unit=rows_most, groups_per_unit=groups_most)
        found = exact_of(asked, path="kernel")
        per_group = 20_000 // 90
        assert sum(sums["units"] for sums in found.values()) == 3 * groups_most
        for sums in found.values():
            lowest = sums["units"] * min(rows_most, per_group)
            assert lowest <= sums["rows"] <= sums["units"] * min(rows_most, per_group + 1)


def shuffled(table, seed):
    return table.take(np.random.default_rng(seed).permutation(len(table)))


def test_neither_the_order_of_rows_nor_batches_nor_threads_decide_what_is_kept(monkeypatch):
    rows = [(n % 40, "abcdefgh"[n * n % 8], n % 11, (n % 7) / 2) for n in range(3000)]
    table = as_table(rows)
    first = exact_of(question(table), path="kernel")
    assert exact_of(question(shuffled(table, 1)), path="kernel") == first
    monkeypatch.setattr(kernel_path, "BATCH_ROWS", 7)
    monkeypatch.setattr(kernel_path, "TEXT_BATCH_ROWS", 2048)
    monkeypatch.setattr("tacit.engine.kernel.summing.THREADS", 1)
    monkeypatch.setattr("tacit.engine.kernel.summing.PART_BITS", 3)
    monkeypatch.setattr("tacit.engine.kernel.summing.PART_ROWS", 16)
    assert exact_of(question(shuffled(table, 2)), path="kernel") == first


def tied_cells(key_hash, key_rank, keys, values):
    """Add up one unit's rows under hashes of our choice; one row and one group are kept."""
    rows = np.zeros((len(keys), 4), dtype=np.uint32)
    rows[:, 2], rows[:, 3] = keys, values
    sums = np.zeros((len(key_hash), 4), dtype=np.int64)
    hashes, ranks = np.array(key_hash, np.uint64), np.array(key_rank, np.int64)
    add_up(rows, sums, 3, hashes, ranks, 1, 1)
    return sums


def add_up(rows, sums, *rule):
    kernel_loops.sum_rows(rows, np.array([0, len(rows)]), 8, 0, kernel_loops.BoundingRule(*rule), sums)


def test_groups_whose_hashes_tie_are_chosen_by_their_keys_and_not_by_their_codes():
    for rank in ([0, 1], [1, 0]):
        for order in ([0, 1], [1, 0]):
            for often in (1, 9):  # few rows are sorted, many are counted unless groups tie
                found = tied_cells([5, 5], rank, order * often, [3, 3] * often)
                assert found[:, 1].tolist() == [1 - rank[0], 1 - rank[1]]


def test_units_whose_hashes_are_one_are_told_apart_by_their_codes():
    rows = np.zeros((4, 5), dtype=np.uint32)  # one hash, one key
    rows[:, 3], rows[:, 4] = [1, 2, 1, 2], [5, 6, 7, 8]
    sums = np.zeros((1, 4), dtype=np.int64)
    one = np.zeros(1, np.uint64), np.zeros(1, np.int64)
    add_up(rows, sums, 4, *one, 10, 10)
    assert sums.tolist() == [[4, 2, 4, 26]]


def test_rows_that_tie_are_identical_and_one_is_kept():
    found = tied_cells([5], [0], [0, 0, 0], [3, 3, 3])
    assert found.tolist() == [[1, 1, 1, 3]]


def kept(keys, xs, salt):
    """Return (key, total of x) of the one row that is kept of one unit's rows."""
    schema = pa.schema([("unit", pa.int64()), ("g", pa.string()), ("x", pa.uint32())])
    batch = pa.RecordBatch.from_pydict({"unit": [7] * len(keys), "g": keys, "x": xs}, schema=schema)
    bounded = Bounded(rows_most=1, groups_most=1, salt=str(salt))
    found = sum_batches([batch], schema, Columns("unit", ["g"], [["x"]], None), bounded, memory=1 << 30)
    (at,) = np.flatnonzero(found.sums[1])
    return found.keys[at][0], int(found.sums[3][at])


def assert_uniform(drawn, count):
    """Fail where `count` outcomes are not equally likely: a false alarm in a million runs."""
    found, expected = Counter(drawn), len(drawn) / count
    assert len(found) == count
    assert sum((times - expected) ** 2 / expected for times in found.values()) < chi2.isf(1e-6, count - 1)


def test_each_group_of_a_unit_is_equally_likely_to_be_kept():
    assert_uniform([kept(list("abcde"), [1] * 5, salt)[0] for salt in range(1000)], 5)


def test_each_row_of_a_group_is_equally_likely_to_be_kept():
    assert_uniform([kept(["a"] * 5, [10, 11, 12, 13, 14], salt)[1] for salt in range(1000)], 5)


def test_units_with_the_same_groups_do_not_all_keep_the_same_ones():
    rows = [(unit, key, 1, 0.0) for unit in range(2000) for key in "abcde"]
    found = exact_of(question(as_table(rows), groups_per_unit=1), path="kernel")
    assert_uniform([key for (key,), sums in found.items() for _ in range(sums["units"])], 5)


@pytest.mark.parametrize("case", ["S01", "S02", "S07", "S08", "S11", "S12", "S16", "S17"])
def test_the_gauntlets_cases_of_bounding_pass_in_the_kernel_too(case):
    gauntlet.load()
    report = run(case, "quick")
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("case", "bug"),
    [("S16", "codes decide"), ("S17", "bounds are trusted"), ("S16", "one hash for all salts and keys")],
)
def test_a_kernel_that_bounds_badly_is_caught(case, bug, monkeypatch):
    if bug == "codes decide":  # a unit's groups in the order their keys first came: another unit's rows move it
        monkeypatch.setattr(
            coding.TextCoder, "hashes", property(lambda coder: np.arange(coder._known[0] + 1, dtype="u8"))
        )
    elif bug == "bounds are trusted":
        monkeypatch.setattr(kernel_path.summing, "Bounded", lambda _rows, _groups, salt: Bounded(10**6, 10**6, salt))
    else:
        monkeypatch.setattr(
            coding.TextCoder, "hashes", property(lambda coder: np.zeros(coder._known[0] + 1, dtype="u8"))
        )
        monkeypatch.setattr(coding, "ranks", lambda keys, _: np.arange(len(keys)))
    gauntlet.load()
    assert not run(case, "quick").passed


def test_nothing_was_compiled_for_any_of_this_in_use():
    loops = {**vars(coding_loops), **vars(kernel_loops)}
    compiled_for = {name: len(each.signatures) for name, each in loops.items() if hasattr(each, "signatures")}
    used = {
        "hash_words",
        "hash_texts",
        "code_texts",
        "code_words",
        "find_texts",
        "refill",
        "scatter",
        "sum_rows",
    }
    assert {name: compiled_for[name] for name in used} == dict.fromkeys(used, 1)


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.int64(), pa.float64(), pa.decimal128(9, 2)], ids=str
)
def test_what_lies_under_a_null_is_no_value(kind):
    """Engines leave anything there, also what is no date; a key that is NULL must not make a question fail."""
    width = kind.bit_width // 8
    bitmap, data = pa.py_buffer(b"\x01"), pa.py_buffer(bytes(width) + b"\x7f" * width)
    column = pa.Array.from_buffers(kind, 2, [bitmap, data])
    coder = coding.make_coder(kind, coding.make_secret("7", "test"))
    codes = coder.code(column)
    found = coder.values(kind)
    assert [found[code] for code in codes] == column.to_pylist()
    assert set(found) <= {None, column[0].as_py()}


def test_listed_texts_have_their_places_however_many():
    listed = [str(number) for number in range(5000)] + [None]
    cells = ["7", "5000", None, "", "4999", "07"]
    found = coding.TextFinder(listed, coding.make_secret("7", "test")).find(pa.array(cells))
    assert found.tolist() == [7, -1, 5000, -1, 4999, -1]
    alone = coding.TextFinder([None], coding.make_secret("7", "test"))
    assert alone.find(pa.array(["a", None])).tolist() == [-1, 0]
