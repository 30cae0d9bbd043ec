"""The people of an attack: a public list, in small blocks of neighbours, each with a secret yes or no.

The list is public: the people of each block, and their addresses there. Rows that the list cannot distinguish share an
address, called a place here. The curator's own table becomes such a list by its public columns; `made_up` makes one up.

Two smaller subjects come first. The options that all attacks share: limits, progress, percentages. And `Choices`: what
an attacker chooses at random, the same for the same seed on every machine. Choices and made-up people are never noise:
noise cannot be seeded, and comes only from `tacit.noise`.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, LargeEpsilonWarning
from tacit.numbers import Integers, Number, decimal_meaning, positive, show, whole

# ---- Options that all attacks share.

EPSILON_MOST = 1000

# the current step, and the finished part of the whole, from 0 to 1
Progress = Callable[[str, float], None]


def size(value: int, *, name: str, least: int, most: int) -> int:
    """Return a whole number between two ends, or refuse it."""
    whole(value, name=name, least=least)
    if value > most:
        raise InvalidParameter(
            f"{name} must be at most {most:,}, not {value:,}\nhint: a smaller attack shows the same result"
        )
    return value


def loss_to_try(epsilon: Number) -> Fraction:
    """Return an epsilon an attack can be shown at."""
    exact = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if exact > EPSILON_MOST:
        raise InvalidParameter(
            f"epsilon must be at most {EPSILON_MOST}, not {show(exact)}\nhint: above 10 there is hardly any protection"
        )
    return exact


def silent(_: str, __: float) -> None:
    """Show no progress."""


@contextmanager
def without_warnings() -> Iterator[None]:
    """Let an attack try large epsilons without a warning: they are the attack's choice, on a table in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LargeEpsilonWarning)
        yield


def at_most(share: float) -> str:
    """Return an upper bound in percent, rounded up, with the digits of `percent`.

    >>> at_most(0.99991), at_most(0.46212), at_most(0.5)
    ('100 %', '46.3 %', '50.0 %')
    """
    tenths = ceil(share * 1000 - 1e-9)  # a float's last bits do not justify rounding up
    return "100 %" if tenths >= 1000 else f"{tenths / 10:.1f} %"


def percent(share: float) -> str:
    """Return a share in percent; 100 % only if it is all of it.

    >>> percent(1), percent(0.99999), percent(0.5)
    ('100 %', '99.9 %', '50.0 %')
    """
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"


# ---- Random choices that follow from a seed.

BYTES_OF_WORD = 8
SEED_MOST = 10**18


class Choices:
    """Choices that follow from a seed: each kind of choice has a label, and labels do not disturb each other.

    >>> bool((Choices(1).coins("a", 5) == Choices(1).coins("a", 5)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = size(seed, name="seed", least=0, most=SEED_MOST)

    def coins(self, label: str, n: int) -> NDArray[np.bool_]:
        """Return `n` coins, heads and tails alike."""
        heads: NDArray[np.bool_] = (self._words(label, n) >> np.uint64(63)).astype(bool)
        return heads

    def fractions(self, label: str, n: int) -> NDArray[np.float64]:
        """Return `n` numbers between 0 and 1, spread evenly."""
        return self._words(label, n).astype(np.float64) / 2.0**64

    def _words(self, label: str, n: int) -> NDArray[np.uint64]:
        stretched = hashlib.shake_256(f"{label}:{self.seed}".encode()).digest(BYTES_OF_WORD * n)
        return np.frombuffer(stretched, dtype="<u8").astype(np.uint64)


# ---- The public list and its secrets.

PLACES = 20  # on the list of one block
ROWS_LEAST, ROWS_MOST = 2 * PLACES, 1_000_000
ROWS = 2_000
YES, NO = ("true", "1", "yes"), ("false", "0", "no")
READERS = {".parquet": "read_parquet(?)", ".pq": "read_parquet(?)", ".csv": "read_csv(?, all_varchar = true)"}


@dataclass(frozen=True, repr=False)
class People:
    """A public list of people with their secrets: for each person a block, a place in it, and yes or no."""

    name: str
    block: Integers
    place: Integers
    exact_secret: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.block)

    def __repr__(self) -> str:
        return f"<{len(self):,} people on the public list of {self.name}; their secrets are withheld>"

    @cached_property
    def blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block.max()) + 1

    @cached_property
    def sizes(self) -> Integers:
        """How many people share each place of each block: public."""
        return self._counted(np.ones(len(self), dtype=np.int64))

    @cached_property
    def exact_yes(self) -> Integers:
        """The number of them with a secret yes: the attacker's target."""
        return self._counted(self.exact_secret.astype(np.int64))

    @property
    def told_apart(self) -> float:
        """The share of people whom the public list distinguishes from everyone else."""
        return float((self.sizes == 1).sum() / len(self))

    @property
    def exact_baseline(self) -> float:
        """How often a guess is right that gives everyone the more common answer."""
        share = float(self.exact_secret.mean())
        return max(share, 1 - share)

    def first(self, rows: int) -> "People":
        """Return the people of the first whole blocks, `rows` of them or a few fewer."""
        if rows >= len(self):
            return self
        per_block = np.cumsum(np.bincount(self.block))
        blocks = max(1, int(np.searchsorted(per_block, rows, side="right")))
        kept = self.block < blocks
        return People(self.name, self.block[kept], self.place[kept], self.exact_secret[kept])

    def _counted(self, weights: Integers) -> Integers:
        table = np.zeros((self.blocks, PLACES), dtype=np.int64)
        np.add.at(table, (self.block, self.place), weights)
        return table


def made_up(rows: int = ROWS, *, seed: int = 1) -> People:
    """Return made-up people: 20 houses in every street, and a coin for each that says whether they are in debt.

    >>> len(made_up(100)), made_up(100).blocks
    (100, 5)
    """
    number = np.arange(size(rows, name="rows", least=ROWS_LEAST, most=ROWS_MOST), dtype=np.int64)
    return People("made-up streets", number // PLACES, number % PLACES, Choices(seed).coins("debt", rows))


def read_people(path: str | Path, *, secret: str, by: Sequence[str], rows: int = 10_000) -> People:
    """Return the people of the curator's own Parquet or CSV file, one a row, listed by its public columns `by`.

    `secret` names a column of yes and no (true and false, 1 and 0), or a column and the value that means yes, such as
    diagnosis=flu. Only the first `rows` on the list are taken. The file is read here and not copied.
    """
    most = size(rows, name="rows", least=ROWS_LEAST, most=ROWS_MOST)
    column, equals, value = secret.partition("=")
    found = _read(Path(path), column, tuple(by), value if equals else None, most)
    cell, answer = np.asarray(found["cell"], dtype=np.int64), np.asarray(found["answer"])
    if not len(cell):
        raise InvalidParameter("the table is empty, so the attack lacks a target\nhint: name another file")
    if (answer == -1).any():
        raise InvalidParameter(
            f"'{column}' is not a column of yes and no (true and false, 1 and 0)"
            f"\nhint: name the value that means yes, e.g. --secret {column}=VALUE"
        )
    return People(Path(path).name, cell // PLACES, cell % PLACES, answer == 1)


def _read(path: Path, column: str, by: tuple[str, ...], value: str | None, rows: int) -> Any:
    import duckdb

    reader = READERS.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise InvalidParameter(
            f"no Parquet or CSV file exists at '{path}'\nhint: tacit attack reconstruct FILE.parquet"
        )
    connection = duckdb.connect()
    try:
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}", [str(path)]).fetchall()]  # noqa: S608
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise InvalidParameter(
            f"'{path}' cannot be read: its content does not match its ending\nhint: check the file"
        ) from None
    _check_columns(names, column, by)
    test = f"lower(CAST({_quoted(column)} AS VARCHAR))"
    yes, no = (", ".join(f"'{word}'" for word in words) for words in (YES, NO))
    answer = f"CASE WHEN {test} IN ({yes}) THEN 1 WHEN {test} IN ({no}) OR {test} IS NULL THEN 0 ELSE -1 END"
    if value is not None:
        answer = f"CASE WHEN CAST({_quoted(column)} AS VARCHAR) = ? THEN 1 ELSE 0 END"
    order = ", ".join(_quoted(name) for name in by)
    text = (
        f"SELECT dense_rank() OVER (ORDER BY {order}) - 1 AS cell, {answer} AS answer FROM {reader}"  # noqa: S608
        f" ORDER BY cell LIMIT {rows}"
    )
    return connection.execute(text, [*([] if value is None else [value]), str(path)]).fetchnumpy()


def _check_columns(names: Sequence[str], column: str, by: tuple[str, ...]) -> None:
    for name in (column, *by):
        if name not in names:
            raise InvalidParameter(
                f"there is no column '{name}' in the table\nhint: the columns are {', '.join(names)}"
            )
    if not by or column in by:
        raise InvalidParameter("by must name public columns, and not the secret column\nhint: --by postcode,age,sex")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
