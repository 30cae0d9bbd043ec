"""`KMeans`: clusters of a protected table from a noisy grid, plain k-means on its cells, and one noisy round after it.

Rows are counted once in a public grid. Cells that noise rules are dropped, and k-means with many starts runs on the
rest: it reads only released numbers. A last round adds up how far people are off from the centre that is nearest to
them, cut at a length that the grid foretells, and moves each centre by the part that its noise leaves. With many
columns the grid is in the three directions of the largest noisy variance.

No centre begins at a row, and no round depends on rows except through noise (docs/proofs/rounds.md).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.learning.estimator import Estimator
from tacit.learning.features import features_of
from tacit.learning.linear_fit import LinearDesign, design_of_numbers, gram_of
from tacit.learning.rounds import Rounds
from tacit.learning.terms import LETTERS
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns
from tacit.numbers import Floats, Integers
from tacit.pictures import Panel, Sheet, SheetCell, as_chart, chart, check_path, page, write
from tacit.plan import NUMBER_ONE, UNIT, CentreSums, CodedPlan, GridCounts
from tacit.privacy import GaussianNoise

CLUSTERS_MOST = 256
# Up to this many columns the grid is of the columns themselves, and beyond of the directions of the largest variance.
COLUMNS_OF_GRID, DIRECTIONS = 10, 3
# The part of the loss for the number of people, for the products of a table of many columns, and for the last round.
FOR_PEOPLE, FOR_PRODUCTS, FOR_SUMS = Fraction(2, 100), Fraction(20, 100), Fraction(38, 100)
# The sides of a grid: at most this many bins, and cells; a cell has this many deviations of noise.
BINS_MOST, CELLS_MOST, PEOPLE_OF_NOISE = 64, 1 << 16, 4.0
# The cut of the last round, in root mean squares of the distances that the grid foretells.
CUT = 1.2
STARTS, STEPS = 20, 60
# Fewer people than this many deviations of the grid's noise for each centre are not told apart from one centre.
PEOPLE_LEAST = 7.0
WIDTH = NormalDist().inv_cdf(0.975)

Released = dict[str, Any]


@dataclass(eq=False)
class ClusterState:
    """Clusters as released integers and public facts; everything else follows from them."""

    design: LinearDesign
    events: tuple[GaussianNoise, ...]
    noisy: (
        Released  # people, the centres of the grid and the cut in steps of NUMBER_ONE, and the sums of the last round
    )

    @property
    def names(self) -> tuple[str, ...]:
        return self.design.features

    @cached_property
    def people(self) -> float:
        """About how many people have all numbers."""
        return max(float(self.noisy["people"]) / UNIT, 1.0)

    @cached_property
    def _sums(self) -> Floats:
        """The noisy sums: counts and squares in people, then each number's in parts of the cut: (sums, centres)."""
        sums = np.array(self.noisy["sums"], dtype=np.float64).reshape(-1, len(self.noisy["centres"]))
        scale = np.full(len(sums), float(UNIT))
        scale[:2] = CentreSums.weight
        return np.asarray(sums / scale[:, None])

    @cached_property
    def counts(self) -> Floats:
        """How many people are nearest to each centre."""
        return np.asarray(np.maximum(self._sums[0], 0.0))

    @property
    def counts_error(self) -> float:
        """The ± of a count for the noise."""
        return WIDTH * float(self.events[-1].sigma) / CentreSums.weight

    @cached_property
    def cut(self) -> float:
        return float(self.noisy["cut"]) / NUMBER_ONE

    @cached_property
    def errors(self) -> Floats:
        """The standard deviation of the noise in a centre's numbers, in half ranges."""
        return np.asarray(float(self.events[-1].sigma) / UNIT * self.cut / np.maximum(self._sums[0], 1.0))

    @cached_property
    def centres(self) -> Floats:
        """The centres in half ranges, each moved to the noisy mean of its people by the part that the noise leaves."""
        base = np.array(self.noisy["centres"], dtype=np.float64) / NUMBER_ONE
        step = self._sums[2:].T * self.cut / np.maximum(self._sums[0], 1.0)[:, None]
        length = np.maximum((step**2).sum(axis=1), 1e-300)
        kept = np.clip(1 - len(self.names) * self.errors**2 / length, 0.0, 1.0)  # James and Stein
        return np.asarray(np.clip(base + step * kept[:, None], -1.0, 1.0))

    @cached_property
    def inertia(self) -> float:
        """The sum of squared distances to the grid's centres, in half ranges; beyond the cut they count as it."""
        return max(float(self._sums[1].sum()), 0.0) * self.cut**2

    @cached_property
    def explained(self) -> tuple[float, float]:
        """The part of the variance that lies between the centres, and the ± of it for the noise."""
        weights, centres = self.counts, np.array(self.noisy["centres"], dtype=np.float64) / NUMBER_ONE
        people = max(float(weights.sum()), 1.0)
        apart = ((centres - weights @ centres / people) ** 2).sum(axis=1)
        between, sigma = float(weights @ apart), float(self.events[-1].sigma) / CentreSums.weight
        total = max(between + self.inertia, 1e-300)
        noise = sigma * sqrt(float((apart**2).sum()) + len(centres) * self.cut**4)
        return between / total, min(1.0, WIDTH * noise / total)

    @cached_property
    def warning(self) -> str:
        """Why one centre may be as good, by released numbers; empty if the clusters are clear."""
        part, error = self.explained
        if self.people < people_least(len(self.noisy["centres"]), self.events):
            return "There are too few people for this many clusters at this ε: one centre may be as good."
        if part <= error:
            return "The noise hides any difference between these clusters: one centre may be as good."
        return ""

    def nearest(self, numbers: Floats) -> Integers:
        """Return the nearest centre of rows in half ranges; -1 without all numbers."""
        apart = ((numbers[:, None, :] - self.centres[None]) ** 2).sum(axis=2)
        return np.where(np.isnan(numbers).any(axis=1), -1, np.nan_to_num(apart, nan=np.inf).argmin(axis=1))


@dataclass(eq=False, repr=False)
class KMeans(Estimator[ClusterState]):
    """Clusters of the ranged numbers of a protected table, charged once.

    `epsilon` and `delta` are the cost of fitting. Distances are in parts of each column's range, declared or learned.
    `cluster_centers_` are in the columns' own units, and `counts_` are about how many people each has.
    `cluster_centers_error_` and `counts_error_` are their ± for the noise, with 95 % probability. A person with k rows
    counts 1/k in each. `warning_` is a sentence if one centre may be as good, and else empty.

        model = KMeans(5, epsilon=1).fit(adult, features=["age", "hours_per_week"])
        model.predict(anybodys_rows)
    """

    n_clusters: int = 8
    _: KW_ONLY

    _kind: ClassVar[Kind] = "transformer"
    _version: ClassVar[str] = "clusters 1"
    _state: ClassVar[str] = "state_"

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:  # noqa: ARG002
        many = self.n_clusters
        if isinstance(many, bool) or not isinstance(many, int) or not 2 <= many <= CLUSTERS_MOST:
            raise InvalidParameter(f"n_clusters must be a whole number from 2 to {CLUSTERS_MOST}\nhint: n_clusters=5")
        design = design_of_numbers(table, known.features, "clusters are")
        wanted = [(GridCounts.moves_squared, FOR_PEOPLE)]
        if len(design.numbers) > COLUMNS_OF_GRID:
            wanted.append((design.products.moves_squared, FOR_PRODUCTS))
        wanted += [(GridCounts.moves_squared, Fraction(0)), (CentreSums.moves_squared, FOR_SUMS)]
        left = 1 - sum((share for _, share in wanted), Fraction(0))
        events, asked = noise_for(
            table.session, known.epsilon, self.delta, [(squared, share or left) for squared, share in wanted]
        )
        _refuse_few_people(table, many, events)
        coded = CodedPlan(
            table.session.declaration.unit_column, table.frame.where, (), tuple(each.grid for each in design.numbers)
        )
        words = f"{many} clusters of {', '.join(design.features)}"
        text = [
            words,
            f"noise of a cell of the grid: a standard deviation of {float(events[-2].sigma) / UNIT:,.1f} people; of a "
            f"count of a cluster {float(events[-1].sigma) / CentreSums.weight:,.1f}",
            f"cost: {printable(f'epsilon {float(asked.epsilon + known.cost):.6g} at delta {float(asked.delta):.2g}')}",
            *([known.words] if known.words else []),
        ]
        return FitPlan(
            table, features_of(table, "", design.features), coded, events, asked, known,
            recipe=(design, many),
            words=words,
            text=printable("\n".join(text), keeping="\n"),
            learn=partial(ask, design=design, many=many, events=events),
            model=partial(ClusterState, design, events),
        )  # fmt: skip

    def _set_state(self, state: ClusterState) -> None:
        """Set what scikit-learn's users look for; all of it follows from noisy integers."""
        self.state_ = state
        middles, halves = (
            np.array([getattr(each, end) for each in state.design.numbers]) for end in ("middle", "half")
        )
        self.cluster_centers_: Floats = middles + halves * state.centres
        self.cluster_centers_error_: Floats = WIDTH * state.errors[:, None] * halves
        self.counts_: Floats = state.counts
        self.counts_error_: float = state.counts_error
        self.inertia_: float = state.inertia
        self.explained_, self.explained_error_ = state.explained
        self.warning_: str = state.warning

    def _scaled(self, rows: Any) -> Floats:
        columns = self._columns_of(rows)
        return np.column_stack([each.scaled(columns[each.name]) for each in self._fitted().design.numbers])

    def predict(self, rows: Any) -> Integers:
        """Return the nearest centre of unprotected rows, a frame or a dict of columns; -1 if a number is missing."""
        return self._fitted().nearest(self._scaled(rows))

    def transform(self, rows: Any) -> Floats:
        """Return the distances of unprotected rows to each centre, in half ranges: (rows, clusters)."""
        numbers = self._scaled(rows)
        return np.asarray(np.sqrt(((numbers[:, None, :] - self._fitted().centres[None]) ** 2).sum(axis=2)))

    def get_feature_names_out(self, _names: Any = None) -> Any:
        """Return what the columns of `transform` are called."""
        return np.array([f"kmeans{place}" for place in range(len(self._fitted().centres))], dtype=object)

    def summary(self) -> "ClusterSummary":
        """Return the centres, largest first, each with its ± for the noise."""
        cost = f"epsilon {float(self.loss_.epsilon):.2g}, entry {self.receipt_.number} of the ledger"
        return ClusterSummary(self._fitted(), self.cluster_centers_, self.cluster_centers_error_, cost)

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of the centres, a panel a column; with a path ending in .png, .svg or .html, write it."""
        if path is not None:
            check_path(Path(path))
        spec = page(
            chart(self.summary().sheet()),
            title=f"{len(self.counts_)} clusters of {', '.join(self._fitted().names)}",
            notes=["Lines are ± for 95 %: the noise of privacy.", *([self.warning_] if self.warning_ else [])],
            letters=LETTERS,
        )
        return as_chart(spec) if path is None else write(spec, Path(path))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: it is a clusterer that transforms too."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


@dataclass(frozen=True, repr=False)
class ClusterSummary:
    """The centres of clusters, largest first; `print` it, or take it `to_dicts`."""

    state: ClusterState
    centres: Floats
    errors: Floats
    cost: str

    @cached_property
    def _order(self) -> list[int]:
        return [int(at) for at in np.argsort(-self.state.counts, kind="stable")]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each cluster: its number in `predict`, its people, and its centre, each with its ±."""
        return [
            {"cluster": at, "people": float(self.state.counts[at]), "people_error": self.state.counts_error}
            | {name: float(value) for name, value in zip(self.state.names, self.centres[at], strict=True)}
            | {f"{name}_error": float(value) for name, value in zip(self.state.names, self.errors[at], strict=True)}
            for at in self._order
        ]

    def __str__(self) -> str:
        rows = [("cluster", "people", *self.state.names)]
        rows += [
            (
                str(row["cluster"]),
                f"{row['people']:,.0f} ± {row['people_error']:,.0f}",
                *(f"{row[name]:.4g} ± {row[f'{name}_error']:.2g}" for name in self.state.names),
            )
            for row in self.to_dicts()
        ]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        part, error = self.state.explained
        notes = [
            f"The centres explain {part:.0%} ± {error:.0%} of the variance. Each ± is for the noise (95 %).",
            f"Cost: {self.cost}",
            *([self.state.warning] if self.state.warning else []),
        ]
        return printable("\n".join([*table, "", *notes]), keeping="\n")

    __repr__ = __str__

    def sheet(self) -> Sheet:
        """Return the picture: a panel for the people, and one for each column."""
        dicts = self.to_dicts()
        panels = []
        for name in ("people", *self.state.names):
            cells = []
            for row in dicts:
                value, error = row[name], row[f"{name}_error"]
                text = f"{value:.4g} ± {error:.2g}"
                cells.append(SheetCell(str(row["cluster"]), None, "", value, value - error, value + error, text))
            panels.append(Panel(name, "bar" if name == "people" else "point", tuple(cells)))
        labels = tuple(str(row["cluster"]) for row in dicts)
        return Sheet(tuple(panels), "cluster", "none", None, labels, (), None)


def people_least(many: int, events: Sequence[GaussianNoise]) -> float:
    """Return how many people this many clusters need."""
    return PEOPLE_LEAST * many * float(events[-2].sigma) / UNIT


def _refuse_few_people(table: Table, many: int, events: Sequence[GaussianNoise]) -> None:
    """Refuse clusters that the declared number of people foretells to be no better than one centre."""
    people = table.session.declaration.population
    if people is not None and people < people_least(many, events):
        raise QueryRefused(
            f"{people:,} people are too few for {many} clusters at this epsilon, which need about "
            f"{people_least(many, events):,.0f}: one centre would be as good"
            "\nhint: ask for fewer clusters (n_clusters=...), or spend a larger epsilon"
        )


# ---- The rounds ------------------------------------------------------------------------------------------------------


def ask(rounds: Rounds, design: LinearDesign, many: int, events: tuple[GaussianNoise, ...]) -> Released:
    """Ask for people, directions, the grid and the last round; return the integers that the clusters are made of."""
    values = tuple(range(len(design.numbers)))
    whole = np.zeros((0, len(values)), dtype=np.int64)
    people = int(rounds.grid_counts(GridCounts(values, whole, UNIT, 1))[0])
    directions, reach, middle, apart = np.eye(len(values)), 1.0, np.zeros(len(values)), 0.0
    if len(values) > COLUMNS_OF_GRID:
        gram = gram_of(rounds.moments(design.products), design.products, (), float(events[1].sigma))
        directions, reach, middle, apart = _directions(gram.matrix, gram.rows)
    steps = np.clip(np.rint(directions * NUMBER_ONE), -NUMBER_ONE, NUMBER_ONE).astype(np.int64)
    bins = _bins(people / UNIT, len(steps), many, float(events[-2].sigma) / UNIT)
    grid = GridCounts(values, steps, min(max(1, round(reach * UNIT)), UNIT * NUMBER_ONE), bins)
    counts = rounds.grid_counts(grid)
    places, weights = _cells(counts, grid, reach, many, float(events[-2].sigma))
    centres, inertia = weighted_means(places, weights, many, hashlib.sha256(counts.tobytes()).digest())
    radius = sqrt(inertia + len(steps) * (2 * reach / bins) ** 2 / 12 + apart)
    base = np.clip(middle + centres @ directions, -1.0, 1.0)
    whole = np.rint(base * NUMBER_ONE).astype(np.int64)
    cut = max(1, min(ceil(CUT * radius * NUMBER_ONE), 2 * NUMBER_ONE * len(values)))
    sums = rounds.centre_sums(CentreSums(values, whole, cut))
    return {"people": people, "centres": whole.tolist(), "cut": cut, "sums": sums.tolist()}


def _directions(matrix: Floats, rows: float) -> tuple[Floats, float, Floats, float]:
    """Return the directions of the largest noisy variance, how far the grid reaches, the middle of the table outside of
    them, and the variance outside of them."""
    middle = np.clip(matrix[0, 1:] / rows, -1.0, 1.0)
    values, vectors = np.linalg.eigh(matrix[1:, 1:] / rows - np.outer(middle, middle))
    directions = vectors[:, ::-1][:, :DIRECTIONS].T
    along = directions @ middle
    reach = float(np.abs(along).max() + 2.5 * sqrt(max(float(values[-1]), 1e-6)))
    outside = max(float(values[:-DIRECTIONS].sum()), 0.0)
    return directions, min(reach, sqrt(len(middle))), middle - along @ directions, outside


def _bins(people: float, sides: int, many: int, sigma: float) -> int:
    """Return the bins of a side: of fewer cells the middles are far from people, of more the noise is larger."""
    wanted = floor((max(people, 1.0) / (PEOPLE_OF_NOISE * sigma)) ** (2 / (sides + 2)))
    least = ceil((4 * many) ** (1 / sides))
    return int(min(max(wanted, least, 2), BINS_MOST, max(least, 2, floor(CELLS_MOST ** (1 / sides) + 1e-9))))


def _cells(counts: Integers, grid: GridCounts, reach: float, many: int, sigma: float) -> tuple[Floats, Floats]:
    """Return the middles and the noisy people of the cells that noise does not rule; never fewer than clusters."""
    cut = sigma * NormalDist().inv_cdf(1 - min(0.5 * sqrt(2 / len(counts)), 0.49))
    kept = np.flatnonzero(counts > cut)
    if len(kept) < many:
        kept = np.argsort(-counts, kind="stable")[:many]
    sides = np.stack(np.unravel_index(kept, (grid.bins,) * len(grid.directions)), axis=1)
    middles = ((sides + 0.5) * 2 / grid.bins - 1) * reach
    return middles, np.maximum(counts[kept], 1).astype(np.float64) / UNIT


def weighted_means(points: Floats, weights: Floats, many: int, seed: bytes) -> tuple[Floats, float]:
    """Return the best centres of several starts of k-means on weighted points, and the mean squared distance to them.

    The starts follow from the seed, a hash of released numbers, so that equal numbers give equal centres.
    """
    stream = hashlib.shake_256(seed).digest(8 * STARTS * many)
    luck = (np.frombuffer(stream, np.uint64) >> np.uint64(11)).astype(np.float64).reshape(STARTS, many) / 2.0**53
    found = [_one_start(points, weights, words) for words in luck]
    return min(found, key=lambda each: each[1])


def _one_start(points: Floats, weights: Floats, luck: Floats) -> tuple[Floats, float]:
    """Return centres from one start: each first one is drawn by weight and squared distance (k-means++)."""
    squares = (points**2).sum(axis=1)
    chosen: list[int] = []
    least = np.ones(len(points))
    for word in luck:
        sums = np.cumsum(weights * least)
        at = min(int(np.searchsorted(sums, word * sums[-1], side="right")), len(points) - 1)
        apart = ((points - points[at]) ** 2).sum(axis=1)
        least = apart if not chosen else np.minimum(least, apart)
        chosen.append(at)
    centres, nearest = points[chosen], np.full(len(points), -1)
    for _ in range(STEPS):
        apart = squares[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
        last, nearest = nearest, apart.argmin(axis=1)
        if np.array_equal(last, nearest):
            break
        total = np.bincount(nearest, weights, len(centres))
        sums = np.stack([np.bincount(nearest, weights * each, len(centres)) for each in points.T], axis=1)
        centres = np.where(total[:, None] > 0, sums / np.maximum(total, 1e-300)[:, None], centres)
    inertia = float(weights @ np.maximum(apart.min(axis=1), 0.0)) / float(weights.sum())
    return centres, inertia
