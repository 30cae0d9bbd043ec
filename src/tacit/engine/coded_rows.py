"""`CodedRows`: rows as cells, and the sums that a model may ask for: counts of cells, and sums of clipped residuals.

All of it is exact and secret. A unit with k rows weighs one: each row's whole number is divided by k towards zero, so
one unit moves a block of sums by at most the largest number of a row (docs/proofs/rounds.md).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TypeVar

import numpy as np

from tacit.engine.coding_rows import Block, Cells, cell_type
from tacit.engine.residuals import (
    add_centre_sums,
    add_grid_counts,
    add_judgement,
    add_moments,
    add_pairs,
    add_residuals,
    add_squared_errors,
    by_cell,
)
from tacit.errors import InvalidParameter
from tacit.exact import ExactIntegers
from tacit.memory import memory_limit, spill_folder
from tacit.numbers import Integers
from tacit.plan import (
    SUMS_MOST,
    UNIT,
    BinMaps,
    CentreSums,
    ClassTarget,
    CodedPlan,
    GridCounts,
    Judgement,
    Moments,
    PairDistances,
    PairedBins,
    PairTables,
    Scores,
    SquaredErrors,
    count_moves_squared,
)
from tacit.query import INT_MOST
from tacit.system import cores

THREADS_MOST = 8
# Rows take this fraction (1 / MEMORY_SHARE) of the memory limit, and the rest of them a file.
MEMORY_SHARE = 4

Found = TypeVar("Found")
Asked = TypeVar("Asked", GridCounts, CentreSums)


@dataclass(frozen=True, repr=False)
class CodedRows:
    """Rows as cells of public grids. The cells are secret, and print as "withheld"."""

    plan: CodedPlan
    sizes: tuple[int, ...]  # how many cells or bins each column has; public
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, plan: CodedPlan, blocks: Iterable[Block]) -> "CodedRows":
        return cls(plan, tuple(column.cells for column in plan.columns), held(blocks))

    def __repr__(self) -> str:
        return "CodedRows(withheld)"

    def counts(self, columns: Sequence[int] | None = None) -> ExactIntegers:
        """Return the weight of units in each cell of each column, in steps of UNIT, block after block."""
        chosen = range(len(self.sizes)) if columns is None else columns
        if not len(chosen) or any(not 0 <= index < len(self.sizes) for index in chosen):
            raise InvalidParameter("counts are of one or more of the coded columns")
        exact_counts = [np.zeros(self.sizes[index], dtype=np.int64) for index in chosen]
        for block in self.blocks:
            alike = block.rows_of_unit
            weights = np.full(block.length, UNIT) if alike is None else UNIT // alike.astype(np.int64)
            for total, index in zip(exact_counts, chosen, strict=True):
                total += by_cell(block.cells[index], weights, len(total))
        return ExactIntegers(np.concatenate(exact_counts), count_moves_squared(len(chosen)))

    def mapped(self, maps: BinMaps) -> "CodedRows":
        """Return the rows with coarser bins: one map for each column, then pairs of columns that become new ones."""
        if len(maps) < len(self.sizes):
            raise InvalidParameter("every column needs a map\nhint: None keeps the cells of a column")
        readers = [_reader(index, each, self.sizes) for index, each in enumerate(maps)]
        sizes = tuple(size for _, size, _ in readers)
        coarser = (
            replace(block, cells=tuple(_read_block(block, places, table) for places, _, table in readers))
            for block in self.blocks
        )
        return CodedRows(self.plan, sizes, held(coarser))

    def residuals(self, scores: Scores) -> ExactIntegers:
        """Return the sums of a model's residuals, by class and bin of each of its columns, then the intercept's."""
        self._refuse_other_shape(scores)

        def added_up(first: int, steps: int) -> list[Integers]:
            sizes = [*(self.sizes[index] for index in scores.columns), 1]
            exact_part = [np.zeros((scores.classes, size), dtype=np.int64) for size in sizes]
            for block in self.blocks[first::steps]:
                add_residuals(block, scores, self.plan, exact_part)
            return exact_part

        exact_sums = [sum(parts).ravel() for parts in zip(*on_threads(added_up, len(self.blocks)), strict=True)]
        return ExactIntegers(np.concatenate(exact_sums), scores.moves_squared)

    def moments(self, moments: Moments) -> ExactIntegers:
        """Return the sums of products of cells and numbers, one block of them after the other."""
        self._refuse_other_places(moments.columns, moments.known)
        moments.refuse_too_many(self.sizes)
        length = sum(each.length(self.sizes) for each in moments.blocks)

        def added_up(first: int, steps: int) -> Integers:
            exact_part = np.zeros(length, dtype=np.int64)
            for block in self.blocks[first::steps]:
                add_moments(block, moments, self.plan, self.sizes, exact_part)
            return exact_part

        return ExactIntegers(np.sum(on_threads(added_up, len(self.blocks)), axis=0), moments.moves_squared)

    def distances(self, asked: PairDistances) -> ExactIntegers:
        """Return how far the counts of each pair of columns are from a public guess: the sum of the differences."""
        self._refuse_other_pairs({pair: guess.size for pair, guess in asked.guesses.items()})
        exact_tables = self._pair_tables([*asked.guesses])
        exact_distances = [
            int(np.abs(exact - guess).sum()) for exact, guess in zip(exact_tables, asked.guesses.values(), strict=True)
        ]
        return ExactIntegers(np.array(exact_distances, dtype=np.int64), asked.moves_squared)

    def pair_tables(self, asked: PairTables) -> ExactIntegers:
        """Return the counts by each pair of columns times its weight, one table after the other."""
        self._refuse_other_pairs(dict.fromkeys(asked.weights))
        exact_tables = self._pair_tables([*asked.weights])
        weighed = zip(exact_tables, asked.weights.values(), strict=True)
        # a count that would not fit 64 bits stays at the largest that does: it moves by no more
        exact = [np.minimum(exact, INT_MOST // weight) * weight for exact, weight in weighed]
        return ExactIntegers(np.concatenate(exact), asked.moves_squared)

    def _pair_tables(self, pairs: Sequence[tuple[int, int]]) -> list[Integers]:
        """Return the weight of units in each cell of pairs of columns, in steps of UNIT."""
        sizes = [self.sizes[first] * self.sizes[second] for first, second in pairs]

        def added_up(first: int, steps: int) -> list[Integers]:
            exact_part = [np.zeros(size, dtype=np.int64) for size in sizes]
            for block in self.blocks[first::steps]:
                add_pairs(block, pairs, self.sizes, exact_part)
            return exact_part

        return [sum(parts) for parts in zip(*on_threads(added_up, len(self.blocks)), strict=True)]

    def _refuse_other_pairs(self, pairs: Mapping[tuple[int, int], int | None]) -> None:
        """Refuse pairs that are not coded, guesses of another size, or more sums than may be asked for; all public."""
        if not pairs or {place for pair in pairs for place in pair} - {*range(len(self.sizes))}:
            raise InvalidParameter("pairs are of two coded columns")
        cells = {pair: self.sizes[pair[0]] * self.sizes[pair[1]] for pair in pairs}
        if any(size not in (None, cells[pair]) for pair, size in pairs.items()) or sum(cells.values()) > SUMS_MOST:
            raise InvalidParameter(
                f"a guess must have a number for each cell of its pair, and all pairs {SUMS_MOST} cells at most"
                "\nhint: name fewer columns, or list fewer keys"
            )

    def squared_errors(self, model: SquaredErrors) -> ExactIntegers:
        """Return the sums of a linear model's squared errors: in all, by squared number, and by cell."""
        self._refuse_other_places(model.columns, (*model.values, model.target))
        if any(len(table) != self.sizes[column] for column, table in zip(model.columns, model.tables, strict=True)):
            raise InvalidParameter("a linear model has an entry for each bin of its columns")
        length = 1 + len(model.values) + sum(self.sizes[column] for column in model.columns)
        exact_sums = np.zeros(length, dtype=np.int64)
        for block in self.blocks:
            add_squared_errors(block, model, self.plan, self.sizes, exact_sums)
        return ExactIntegers(exact_sums, model.moves_squared)

    def grid_counts(self, asked: GridCounts) -> ExactIntegers:
        """Return the weight of units in each cell of a public grid, in steps of UNIT."""
        return self._numbers_summed(asked, add_grid_counts)

    def centre_sums(self, asked: CentreSums) -> ExactIntegers:
        """Return the counts, squared distances and distances of units about their nearest public centre."""
        return self._numbers_summed(asked, add_centre_sums)

    def _numbers_summed(self, asked: Asked, add: Callable[[Block, Asked, CodedPlan, Integers], None]) -> ExactIntegers:
        self._refuse_other_places((), asked.values)

        def added_up(first: int, steps: int) -> Integers:
            exact_part = np.zeros(asked.size, dtype=np.int64)
            for block in self.blocks[first::steps]:
                add(block, asked, self.plan, exact_part)
            return exact_part

        return ExactIntegers(np.sum(on_threads(added_up, len(self.blocks)), axis=0), asked.moves_squared)

    def _refuse_other_places(self, columns: Sequence[int], values: Sequence[int]) -> None:
        """Refuse columns or values that are not coded; all of it is public."""
        if not ({*columns} <= {*range(len(self.sizes))} and {*values} <= {*range(len(self.plan.values))}):
            raise InvalidParameter("moments are of coded columns, and of values that are kept in steps")

    def judged(self, judgement: Judgement) -> ExactIntegers:
        """Return how well a public model does on the rows: the sums that a judgement asks for."""
        self._refuse_other_shape(judgement.scores)
        exact_sums = np.zeros(judgement.size, dtype=np.int64)
        for block in self.blocks:
            add_judgement(block, judgement, self.plan, exact_sums)
        return ExactIntegers(exact_sums, judgement.moves_squared)

    def _refuse_other_shape(self, scores: Scores) -> None:
        """Refuse a model of other columns or bins; all of it is public."""
        is_shaped = len(scores.tables) == len(self.sizes) and all(
            table is None or table.shape == (scores.classes, size)
            for table, size in zip(scores.tables, self.sizes, strict=True)
        )
        if not is_shaped:
            raise InvalidParameter("the scores must have a table of (classes, bins) for each coded column, or None")
        target = scores.target
        if isinstance(target, ClassTarget):
            most = scores.classes if scores.link == "softmax" else 2
            is_known = 0 <= target.column < len(self.sizes) and len(target.classes) == self.sizes[target.column]
            if not is_known or any(not -1 <= each < most for each in target.classes):
                raise InvalidParameter("the target must give a class, or -1, for each cell of a coded column")
        elif not 0 <= target.index < len(self.plan.values):
            raise InvalidParameter("the target must be one of the values that are kept in steps")


def held(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks to be read many times: in memory, and beyond a share of the limit in an unnamed private file."""
    kept: list[Block] = []
    with ExitStack() as opened:
        taken, file = 0, None
        for block in blocks:
            taken += block.nbytes
            if file is None and taken > memory_limit() // MEMORY_SHARE:
                file = opened.enter_context(TemporaryFile(dir=spill_folder()))
            kept.append(block if file is None else block.stored(file))
    return tuple(kept)


def threads() -> int:
    return min(THREADS_MOST, cores())


def on_threads(job: Callable[[int, int], Found], blocks: int) -> list[Found]:
    """Return the results of a job for each thread, by its number and their count; one block starts no thread."""
    many = max(1, min(threads(), blocks))
    if many == 1:
        return [job(0, 1)]
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(job, range(many), [many] * many))


Reader = tuple[tuple[int, ...], int, Cells | None]


def _reader(index: int, each: object, sizes: tuple[int, ...]) -> Reader:
    """Return which cells a new column is made of, how many bins it has, and the bin of each cell or pair of cells."""
    if each is None and index < len(sizes):
        return (index,), sizes[index], None
    if isinstance(each, PairedBins) and index >= len(sizes):
        places: tuple[int, ...] = (each.first, each.second)
        table = np.asarray(each.table)
    elif isinstance(each, np.ndarray) and index < len(sizes):
        places, table = (index,), each
    else:
        raise InvalidParameter("each column has a map of its own, and pairs come after them")
    shape = tuple(sizes[place] for place in places if 0 <= place < len(sizes))
    if table.shape != shape or table.dtype.kind not in "iu" or not 0 <= table.min() <= table.max() < 1 << 16:
        raise InvalidParameter("a map must give a bin from 0 on for each cell of its column, or pair of columns")
    size = int(table.max()) + 1
    return places, size, table.astype(cell_type(size))


def _read_block(block: Block, places: tuple[int, ...], table: Cells | None) -> Cells:
    if table is None:
        return block.cells[places[0]]
    found: Cells = table[tuple(block.cells[place] for place in places)]
    return found
