"""Coded rows: every cell and sum is what the slow oracle says, in every engine and by either kind of loop.

What one unit can move is measured, not believed: units are taken out one by one, and what they moved is compared with
what the sums say of themselves. Each such test is shown to fail where the engine would not bound what it should.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tacit.asking import Table
from tacit.engine import coded_rows, coding_rows, cutting, residuals
from tacit.engine.coded_rows import CodedRows
from tacit.engine.coding_rows import ROWS_MOST
from tacit.engine.engine import FAILED
from tacit.engine.part import block_from_bytes, block_to_bytes
from tacit.errors import EngineError, InvalidParameter
from tacit.exact import ExactIntegers
from tacit.plan import (
    STEPS_MOST,
    UNIT,
    CodedColumn,
    CodedPlan,
    PairDistances,
    PairedBins,
    PairTables,
    Scores,
    SquaredErrors,
    measured_column,
)
from tacit.query import Aggregate, Column
from tacit.tables import ROW
from tacit_gauntlet.stage.parts import coded_in_parts, stand_in
from tests.engine import coded_reference as reference
from tests.learning.coded_people import COLUMNS, ROWS, people, plan_of, scores_of

LINKS = ("logistic", "softmax", "identity", "log")


def exact(table: Table, plan: CodedPlan, ask: Callable[[CodedRows], ExactIntegers]) -> list[int]:
    """Return what is asked of coded rows, in the clear."""
    with table.session.engine.coded(plan) as rows:
        return [int(each) for each in ask(rows).values]


def test_every_engine_counts_the_oracles_cells(engine):
    table = engine(ROWS, unit="person", columns=COLUMNS)
    plan = plan_of(table)
    assert exact(table, plan, CodedRows.counts) == reference.counts(ROWS, plan)


def with_rows_before(plan: CodedPlan) -> CodedPlan:
    """Return a plan with the number of rows, and age, pay and sex of the row before, in the order of age."""
    before = (replace(plan.columns[at], of="before") for at in range(3))
    number = CodedColumn("rows", Column("person"), edges=(1, 2, 3), of="unit")
    return replace(plan, columns=(*plan.columns, number, *before), order=0)


def test_every_engine_reads_the_row_before_and_the_number_of_rows(engine):
    table = engine(ROWS, unit="person", columns=COLUMNS)
    plan = with_rows_before(plan_of(table))
    by_age = reference.beside_rows_before(
        ROWS, plan, lambda row: -1 if row["age"] is None else min(max(row["age"], 0), 9)
    )
    assert exact(table, plan, CodedRows.counts) == reference.counts(ROWS, plan, by_age)


def test_the_row_before_is_the_units_own_and_alike_rows_change_nothing():
    """The order of the table's rows changes no count, even if some rows of a unit are alike."""
    twice = pa.concat_tables([ROWS, ROWS.slice(0, 6)])
    found = set()
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(twice))
        table = people(twice.take(pa.array(order)))
        found.add(tuple(exact(table, with_rows_before(plan_of(table)), CodedRows.counts)))
    assert len(found) == 1


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("unit", ["person", None])
def test_residuals_are_the_oracles(link, unit):
    table = people() if unit else people(unit=ROW)
    plan = plan_of(table, unit=unit)
    for seed, reach, clip in ((1, 1 << 13, UNIT // 2), (2, 1 << 20, UNIT // 7), (3, 1 << 10, 2 * UNIT)):
        scores = scores_of(link, seed=seed, reach=reach, clip=clip)
        found = exact(table, plan, lambda rows, scores=scores: rows.residuals(scores))
        assert found == reference.residuals(ROWS, plan, scores)


def without(person: int) -> pa.Table:
    """Return the rows without one person's."""
    return ROWS.filter(pa.compute.fill_null(pa.compute.not_equal(ROWS["person"], person), True))


def moved(ask: Callable[[CodedRows], ExactIntegers]) -> int:
    """Return the square of the farthest that leaving out one person moves what is asked."""
    table = people()
    plan = plan_of(table)
    whole = exact(table, plan, ask)
    farthest = 0
    for person in (1, 2, 3, 4):
        fewer = exact(people(without(person)), plan, ask)
        farthest = max(farthest, sum((a - b) ** 2 for a, b in zip(whole, fewer, strict=True)))
    return farthest


def claimed(ask: Callable[[CodedRows], ExactIntegers]) -> int:
    """Return how far sums say that one unit moves them, squared."""
    table = people()
    with table.session.engine.coded(plan_of(table)) as rows:
        return ask(rows).moves_squared


def far_off(link: str) -> Scores:
    """Return a model that is far off for a person of one row, with a small clip."""
    scores = scores_of(link, clip=UNIT // 16)
    return replace(scores, intercept=np.array([1 << 17, -(1 << 17)][-scores.classes :]))


ASKED: dict[str, Callable[[CodedRows], ExactIntegers]] = {
    "counts": CodedRows.counts,
    **{link: lambda rows, link=link: rows.residuals(far_off(link)) for link in LINKS},
}


@pytest.mark.parametrize("asked", ASKED)
def test_no_unit_moves_sums_farther_than_they_say(asked):
    assert 0 < moved(ASKED[asked]) <= claimed(ASKED[asked])


@pytest.mark.parametrize("asked", LINKS)
def test_the_bound_is_reached_by_a_person_of_one_row(asked):
    """The bound is no looser than it has to be: within a thousandth, which is rounding."""
    assert moved(ASKED[asked]) >= 0.999 * claimed(ASKED[asked])


def unclipped(residuals: Any, _clip: int) -> Any:
    """Mutant: the residuals as they are."""
    return residuals


def undivided(residuals: Any, _rows: Any) -> Any:
    """Mutant: every row has the weight of a unit."""
    return residuals


@pytest.mark.parametrize("asked", LINKS)
def test_mutant_unclipped_residuals_are_caught(monkeypatch, asked):
    monkeypatch.setattr(residuals, "clipped", unclipped)
    assert moved(ASKED[asked]) > claimed(ASKED[asked])


def test_mutant_rows_that_do_not_share_their_units_weight_are_caught(monkeypatch):
    monkeypatch.setattr(residuals, "divided", undivided)
    ask = ASKED["identity"]  # of person 1, two rows are far off
    assert moved(ask) > claimed(ask)


def test_mutant_an_intercept_that_is_not_counted_is_caught(monkeypatch):
    monkeypatch.setattr(Scores, "moves_squared", property(lambda self: len(self.columns) * self.clip**2))
    ask = ASKED["logistic"]
    assert moved(ask) > claimed(ask)


def test_a_person_of_many_rows_weighs_one():
    many = pa.table({"person": [1] * 1000 + [2], "sex": ["f"] * 500 + ["m"] * 500 + ["f"]})
    table = people(many, columns={})
    plan = CodedPlan("person", None, (CodedColumn("sex", Column("sex"), listed=("f", "m")),))
    assert exact(table, plan, CodedRows.counts) == [500 * (UNIT // 1000) + UNIT, 500 * (UNIT // 1000), 0]


def test_maps_make_coarser_bins_and_pairs_make_new_columns():
    table = people()
    plan = plan_of(table)
    maps = [np.array([0, 0, 1, 1, 1, 2]), None, None, None, PairedBins(2, 3, np.arange(9).reshape(3, 3))]
    with table.session.engine.coded(plan) as rows:
        coarse = rows.mapped(maps)
        assert coarse.sizes == (3, 3, 3, 3, 9)
        fine, found = rows.counts([0]).values, coarse.counts([0, 4])
    assert found.values[:3].tolist() == [fine[:2].sum(), fine[2:5].sum(), fine[5]]
    both = [[0] * 3 for _ in range(3)]
    for row, alike in reference.rows_of(ROWS, plan):
        both[reference.cell_of(row, plan, 2)][reference.cell_of(row, plan, 3)] += UNIT // alike
    assert found.values[3:].tolist() == [number for line in both for number in line]
    assert found.moves_squared == 2 * UNIT**2


ODD = pa.table(
    {
        "person": range(12),
        "float": [
            0.0,
            -0.0,
            float("nan"),
            None,
            float("inf"),
            -float("inf"),
            0.49999999999999994,
            9.5,
            10.0,
            -3.0,
            2.5,
            1e300,
        ],
        "whole": [0, 5, 2**63 - 1, -(2**63), None, 10, 11, -1, 3, 7, 9, 2],
        "word": ["a", "a ", "A", "", None, "ä", "a\u0308", "b", "c", "b", "\x00", "a"],
        "flag": [True, False, None, True, False, True, None, False, True, True, False, False],
        "few": [1, 2, 3, 2**62, -5, None, 1, 2, 3, 1, 0, 2],
    }
)


@pytest.mark.parametrize("planted", [False, True])
def test_arrays_place_odd_values_as_the_engine_does(monkeypatch, planted):
    table = people(ODD, columns={"float": {"between": (0, 10)}, "whole": {"between": (0, 10)}})
    whole, part = (
        measured_column(Aggregate("mean", Column(name)), table.session.declaration, steps_most=STEPS_MOST)
        for name in ("whole", "float")
    )
    plan = CodedPlan(
        "person",
        None,
        (
            CodedColumn("whole", Column("whole"), measured=whole, edges=(0, 1, 5, 11)),
            CodedColumn("float", Column("float"), measured=part, edges=(0, 1, part.height // 2, part.height + 1)),
            CodedColumn("coarse", Column("float"), measured=part, edges=(0, part.height + 1)),
            CodedColumn("word", Column("word"), listed=("a", "ä", "", "\x00")),
            CodedColumn("flag", Column("flag"), listed=(False, True)),
            CodedColumn("few", Column("few"), listed=(2, 1, 2**62)),
        ),
    )
    kinds = table.session.engine._kinds
    assert [coding_rows.is_plain(column, kinds) for column in plan.columns] == [False] * 3 + [True] * 3
    with monkeypatch.context() as patch:
        if planted:  # a value that is not listed gets a cell of those that are
            right = coding_rows._Reader.steps
            patch.setattr(coding_rows._Reader, "steps", lambda reader, found: np.minimum(right(reader, found), 2))
        by_arrays = exact(table, plan, CodedRows.counts)
    monkeypatch.setattr(coding_rows, "is_plain", lambda *_: False)
    assert (by_arrays == exact(table, plan, CodedRows.counts)) == (not planted)


@pytest.mark.parametrize("plain", [True, False])
def test_wide_lists_give_the_same_cells_by_arrays_and_joined(monkeypatch, plain):
    monkeypatch.setattr(coding_rows, "is_plain", lambda *_: plain)
    words = [f"word {n}" for n in range(200)]
    rows = pa.table({"person": range(400), "word": [words[n % 200] if n % 7 else None for n in range(400)]})
    table = people(rows, columns={})
    listed = tuple(words[:150])
    plan = CodedPlan("person", None, (CodedColumn("word", Column("word"), listed=listed),))
    assert exact(table, plan, CodedRows.counts) == reference.counts(rows, plan)


def test_rows_and_sums_print_as_withheld():
    table = people()
    with table.session.engine.coded(plan_of(table)) as rows:
        shown = [repr(each) for each in (rows, rows.blocks, rows.counts())]
    assert shown == ["CodedRows(withheld)", "(Block(withheld),)", "ExactIntegers(withheld)"]


def test_a_failure_while_rows_are_coded_says_the_fixed_words(monkeypatch):
    table = people()

    def fail(*_: object, **__: object) -> None:
        raise ValueError("cell 'secret'")

    monkeypatch.setattr("tacit.engine.coding_rows._block", fail)
    with pytest.raises(EngineError) as caught, table.session.engine.coded(plan_of(table)):
        pass
    assert str(caught.value) == FAILED
    assert caught.value.__context__ is None


def test_models_of_another_shape_are_refused_by_public_facts():
    table = people()
    scores = scores_of()
    with table.session.engine.coded(plan_of(table)) as rows:
        for wrong in (
            replace(scores, tables=scores.tables[:2]),
            replace(scores, tables=(scores.tables[1], *scores.tables[1:])),
            replace(scores, target=replace(scores.target, classes=(0, 2, -1))),
            replace(scores, target=replace(scores.target, column=9)),
        ):
            with pytest.raises(InvalidParameter):
                rows.residuals(wrong)


def test_rows_beyond_the_limit_are_read_from_a_private_file(monkeypatch):
    table, scores = people(), scores_of()
    plan = plan_of(table)
    monkeypatch.setattr(coded_rows, "memory_limit", lambda: 0)
    with table.session.engine.coded(plan) as rows:
        assert isinstance(rows.blocks[0].cells[0].base, np.memmap)
        assert rows.counts().values.tolist() == reference.counts(ROWS, plan)
        assert rows.mapped([None] * 4).residuals(scores).values.tolist() == reference.residuals(ROWS, plan, scores)


@pytest.mark.parametrize("rows", [ROWS.slice(0, 0), ROWS.set_column(0, "person", pa.nulls(len(ROWS), pa.int64()))])
def test_rows_that_belong_to_no_unit_add_zeros(rows):
    table, scores = people(rows), scores_of()
    plan = plan_of(table)
    assert set(exact(table, plan, CodedRows.counts)) == {0}
    assert set(exact(table, plan, lambda coded: coded.mapped([None] * 4).residuals(scores))) == {0}


@pytest.mark.parametrize("unit", ["text", "float", "int"])
def test_units_of_any_type_share_their_weight(unit):
    names = pa.array([None if each is None else f"p{each}" for each in ROWS["person"].to_pylist()])
    units = {"text": names, "float": ROWS["person"].cast("float64"), "int": ROWS["person"]}
    rows = ROWS.set_column(0, "person", units[unit])
    table = people(rows)
    plan = plan_of(table)
    assert exact(table, plan, CodedRows.counts) == reference.counts(rows, plan)


def test_more_rows_than_are_told_apart_still_weigh_nothing():
    """A row's number is divided by ROWS_MOST where its unit has more rows: that gives 0 for all that may be asked."""
    with pytest.raises(InvalidParameter, match="clip"):
        scores_of(clip=ROWS_MOST)
    with pytest.raises(InvalidParameter, match="cap"):
        SquaredErrors((), (), 0, (), np.empty(0, dtype=np.int64), 0, ROWS_MOST)
    alike = np.array([ROWS_MOST], dtype=np.int32)
    assert residuals.divided(np.array([[4 * UNIT]]), alike).tolist() == [[0]]


def coded_by_parts(unit: str | None, *, parts: int, adding: Callable[[CodedRows], ExactIntegers]) -> bool:
    """Return whether rows that are coded in parts add up to what they are together."""
    named = ROWS.append_column(
        "name", pa.array([None if each is None else f"é{each}" for each in ROWS["person"].to_pylist()])
    )
    here, there = (people(rows, unit=unit or ROW) for rows in (named, stand_in(named)))
    plan = plan_of(here, unit=unit)
    coded = coded_in_parts(there.session.engine.source, plan, parts=parts, places=2)
    return [int(each) for each in adding(coded).values] == exact(here, plan, adding)


@pytest.mark.parametrize("unit", ["person", "name", None])
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_rows_are_coded_in_parts_as_in_the_whole(unit, parts):
    for adding in (CodedRows.counts, lambda rows: rows.residuals(scores_of("logistic"))):
        assert coded_by_parts(unit, parts=parts, adding=adding)


def test_a_unit_that_is_cut_in_two_is_found(monkeypatch):
    """Its rows would be counted in each part by themselves, and it would weigh two."""

    def by_row(words: Any, parts: int) -> Any:
        return (np.arange(len(words)) % parts).astype(np.uint16)

    monkeypatch.setattr(cutting, "part_of", by_row)
    assert not coded_by_parts("person", parts=3, adding=CodedRows.counts)


def test_blocks_travel_some_rows_at_a_time():
    table = people()
    plan = plan_of(table)
    with table.session.engine.coded(plan) as rows:
        (block,) = rows.blocks
    written = list(block_to_bytes(block, most=40))
    assert 1 < len(written) <= block.length
    read = CodedRows.of(plan, [block_from_bytes(each, plan) for each in written])
    assert [int(each) for each in read.counts().values] == exact(table, plan, CodedRows.counts)


PAIRS = ((0, 1), (0, 2), (2, 3))


def asked_pairs(rows: CodedRows) -> tuple[PairDistances, PairTables]:
    """Return made-up guesses of pairs, and weights of their tables."""
    rng = np.random.default_rng(5)
    sizes = {pair: rows.sizes[pair[0]] * rows.sizes[pair[1]] for pair in PAIRS}
    guesses = {pair: rng.integers(0, 2 * UNIT, size) for pair, size in sizes.items()}
    return PairDistances(guesses), PairTables({pair: 3 + 7 * at for at, pair in enumerate(PAIRS)})


def exact_pairs(table: Table) -> tuple[list[int], list[int], tuple[int, int]]:
    """Return distances and weighed tables of pairs in the clear, and the squares of how far one unit moves them."""
    plan = plan_of(table)
    with table.session.engine.coded(plan) as rows:
        distances, tables = asked_pairs(rows)
        found = rows.distances(distances), rows.pair_tables(tables)
    return found[0].values.tolist(), found[1].values.tolist(), (found[0].moves_squared, found[1].moves_squared)


def test_every_engine_counts_pairs_as_the_oracle(engine):
    table = engine(ROWS, unit="person", columns=COLUMNS)
    plan = plan_of(table)
    distances, tables, _ = exact_pairs(table)
    wanted = reference.pair_counts(ROWS, plan, PAIRS)
    assert tables == [(3 + 7 * at) * each for at, one in enumerate(wanted) for each in one]
    with table.session.engine.coded(plan) as rows:
        guesses = asked_pairs(rows)[0].guesses
    assert distances == [
        sum(abs(each - int(guess)) for each, guess in zip(one, guesses[pair], strict=True))
        for pair, one in zip(PAIRS, wanted, strict=True)
    ]


def pairs_keep_to_their_moves(rows: pa.Table) -> bool:
    """Whether leaving out any one unit moves distances and tables of pairs by no more than they say."""
    base = exact_pairs(people(rows))
    moved = []
    for person in {each for each in rows["person"].to_pylist() if each is not None}:
        left = exact_pairs(people(rows.filter(pc.fill_null(pc.not_equal(rows["person"], person), True))))
        moved += [
            sum((one - other) ** 2 for one, other in zip(base[at], left[at], strict=True)) <= base[2][at]
            for at in (0, 1)
        ]
    return all(moved)


def test_one_unit_moves_distances_and_tables_of_pairs_by_no_more_than_they_say():
    assert pairs_keep_to_their_moves(ROWS)


def test_rows_that_weigh_one_each_would_move_pairs_too_far(monkeypatch):
    add = residuals.add_pairs
    monkeypatch.setattr(coded_rows, "add_pairs", lambda block, *rest: add(replace(block, rows_of_unit=None), *rest))
    assert not pairs_keep_to_their_moves(ROWS)


@pytest.mark.parametrize(
    "asked",
    [
        PairTables({(0, 9): 1}),
        PairTables({}),
    ],
)
def test_pairs_of_columns_that_are_not_coded_are_refused(asked):
    table = people()
    with table.session.engine.coded(plan_of(table)) as rows, pytest.raises(InvalidParameter):
        rows.pair_tables(asked)


def test_guesses_of_another_size_are_refused():
    table = people()
    with table.session.engine.coded(plan_of(table)) as rows, pytest.raises(InvalidParameter):
        rows.distances(PairDistances({(0, 1): np.zeros(3, dtype=np.int64)}))
    with pytest.raises(InvalidParameter):
        PairDistances({(1, 0): np.zeros(3, dtype=np.int64)})
    with pytest.raises(InvalidParameter):
        PairTables({(0, 1): 0})
