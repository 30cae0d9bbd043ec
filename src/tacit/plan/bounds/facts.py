"""Facts: noisy numbers that were paid for once and serve every later question, free, at any epsilon.

Facts cannot affect privacy: caps and ranges that are read off facts are public numbers like those a person writes, and
they bound people with any value. A wrong fact makes an answer worse, but never less private. An absurd fact, as only a
damaged or forged entry has, is cut to possible values before a plan is made from it, so that such a plan does not fail
once it is charged.

Known facts: what each is about, the key that it is found by, the plan that learns it, and what its numbers tell.

A key has everything that a fact is about: whose rows, which of them, in which cells, which expression of which types on
which grid. It never has an epsilon, a version or the name of an output, so that every later question finds it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from tacit.errors import QueryRefused
from tacit.plan.bounds.chosen import OWN_WHERE_FROM
from tacit.plan.bounds.profiles import BelievedSpan, Reading, people_beyond, read_profile, span_of
from tacit.plan.bounds.scaling import BINS, LARGEST_BINS, Profile, Vector
from tacit.plan.groups import of_last_few, public_keys
from tacit.plan.plan import Cells, Cost, KeyColumn, Measured, NoisyRelease, Part, Plan, Sensitivity, Spend
from tacit.plan.split import with_noise
from tacit.privacy import SCALE_MAX, SCALE_MIN
from tacit.query import Expression, Query, Scalar, Value, columns_of, type_of
from tacit.tables import Declaration, RowUnit

# A bin is taken to have at most this many people, and at least none: a float distinguishes whole numbers up to here.
PEOPLE_MOST = 1 << 53
# The beginning of a key of a fact about groups.
OF_GROUPS = "groups "
EPSILON_SHOWN_MOST = Fraction(1 << 53)


@dataclass(frozen=True)
class WantedFact:
    """A fact that a question needs and that is not paid for yet: its plan, and its name.

    `key` names its subject, and never an epsilon, so that it is found again by every later question.
    """

    key: str
    words: str  # e.g. "how many rows a user_id has, by item"
    plan: Plan = field(repr=False)
    instead: tuple[str, ...] = ()  # keys of facts that would do as well, if they are known

    @property
    def cost(self) -> Cost:
        """What it costs."""
        return self.plan.spend.epsilon, self.plan.threshold.delta if self.plan.threshold else Fraction(0)


@dataclass(frozen=True)
class Fact:
    """A learned fact: a plan's noisy integers, the scale of their noise, and the entry that paid for them."""

    key: str
    words: str
    parts: tuple[tuple[int, ...], ...]  # [release or draw's target][bin]
    scales: tuple[Fraction, ...]  # of the Laplace noise of each release, in people; None for a draw
    epsilon: Fraction
    entry: int = 0
    time: str = ""
    keys: tuple[tuple[Scalar, ...], ...] = ()  # the groups that were found, if the fact is about groups
    delta: Fraction = Fraction(0)  # of the threshold that groups were found by

    @property
    def cost(self) -> Cost:
        """What it costs."""
        return self.epsilon, self.delta

    @property
    def tells_range(self) -> bool:
        """Whether the fact is about the size of values, or their distance from the middle."""
        return bool(self.scales) and all(len(part) == LARGEST_BINS for part in self.parts)

    @property
    def finds_groups(self) -> bool:
        """Whether it is about which groups there are."""
        return self.key.startswith(OF_GROUPS)


Facts = Mapping[str, Fact]
NO_FACTS: Facts = MappingProxyType({})


def sound(fact: Fact, sizes: Sequence[int], *, scales: int, drawn_most: int | None = None) -> Fact:
    """Return a fact with numbers that could have been learned; refuse one with another count of numbers in a part.

    `drawn_most` is the highest step that can be drawn, for numbers that are drawn; others count people.
    """
    if [len(part) for part in fact.parts] != list(sizes) or len(fact.scales) != scales:
        raise QueryRefused(
            f"what is kept as '{fact.words}' is not what such a fact has, so no question can rest on it"
            "\nhint: run tacit ledger verify; learn(..., again=True) learns it once more"
        )
    least, most = (-PEOPLE_MOST, PEOPLE_MOST) if drawn_most is None else (0, drawn_most)
    parts = tuple(tuple(min(max(number, least), most) for number in part) for part in fact.parts)
    widths = tuple(min(max(scale, SCALE_MIN), SCALE_MAX) for scale in fact.scales)
    epsilon = min(max(fact.epsilon, Fraction(0)), EPSILON_SHOWN_MOST)
    if (parts, widths, epsilon) == (fact.parts, fact.scales, fact.epsilon):
        return fact
    return replace(fact, parts=parts, scales=widths, epsilon=epsilon)


# Of at most so many groups, Gaussian noise is never smaller than Laplace noise: no L2 norm is below the L1 norm over
# the root of their number.
FEW_CELLS = 16


@dataclass(frozen=True)
class Grouping:
    """What a profile is about: the rows, whose they are, and the cells that they fall into."""

    declaration: Declaration
    where: Expression | None
    keys: tuple[KeyColumn, ...]
    public_keys: tuple[tuple[Scalar, ...], ...] | None
    only_l1: bool = False  # the noise is Laplace noise, so L2 norms are of no use
    has_own_list: bool = False  # the question itself lists its groups, which may hold few of the table's rows
    cells: int = 0  # how many groups are known; 0: it is not known yet
    smallest: int | None = None  # down to how many people groups are looked for, if the question says

    @property
    def unit(self) -> str | None:
        """The unit's column; None: every row is its own unit."""
        return None if isinstance(self.declaration.unit, RowUnit) else self.declaration.unit

    @property
    def moves(self) -> int:
        """How many bins of a profile one unit changes by 1."""
        return 1 if self.declaration.neighbours == "add-remove" else 2

    def of_all_rows(self) -> "Grouping":
        """Return the same cells without WHERE."""
        return replace(self, where=None)

    def of_all_groups(self) -> "Grouping":
        """Return the same rows as one cell."""
        return replace(self, keys=(), public_keys=((),), cells=1)

    def of_whole_table(self) -> "Grouping":
        """Return the whole table as one cell: what sizes and centres of columns are about."""
        return replace(self.of_all_groups(), where=None, has_own_list=False, only_l1=True)

    def record(self, *expressions: Expression) -> tuple[object, ...]:
        """Return what tells it from every other, with the types of all columns that it reads."""
        read: frozenset[str] = frozenset() if self.unit is None else frozenset((self.unit,))
        for expression in (self.where, *(key.expression for key in self.keys), *expressions):
            read |= columns_of(expression)
        facts = self.declaration.columns
        types = tuple(
            (name, facts[name].type, facts[name].digits, facts[name].scale) for name in sorted(read) if name in facts
        )
        keys = tuple((key.expression, key.type) for key in self.keys)
        return (self.unit, self.declaration.neighbours, self.where, keys, _as_text(self.public_keys), types)


class _Written:
    """What prints as a text that is known."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


@of_last_few
def _as_text(keys: object) -> _Written:
    """Return a list of keys that prints as the list does, without going through it again."""
    return _Written(repr(keys))


def grouping_of(query: Query, declaration: Declaration, spend: Spend) -> Grouping:
    """Return what the profiles of a question are about."""
    keys = tuple(KeyColumn(key.name, key.expression, type_of(key.expression, declaration)) for key in query.keys)
    listed = public_keys(query, declaration)
    cells = 0 if listed is None else len(listed)
    only_l1 = spend.delta_rho == 0 or 0 < cells <= FEW_CELLS
    return Grouping(
        declaration, query.where, keys, listed, only_l1, query.public_keys is not None, cells, query.smallest
    )


@dataclass(frozen=True)
class Subject:
    """One fact, told by all its rounds: profiles of one vector, or of values of one expression, or a centre."""

    grouping: Grouping
    measured: tuple[Measured, ...]
    profiles: tuple[Profile, ...]  # none: a centre, drawn from the one measured column

    def key(self, again: int = 0) -> str:
        """Return the key of one of its rounds."""
        record = (
            self.grouping.record(*(column.expression for column in self.measured)),
            self.measured,
            self.profiles,
            BINS,
            again,
        )
        name = "profile" if self.profiles else "centre"
        return f"{name} {hashlib.sha256(repr(record).encode('utf-8', 'surrogatepass')).hexdigest()}"

    def rounds(self, facts: Facts) -> list[Fact]:
        """Return the rounds that are known."""
        known: list[Fact] = []
        while (key := self.key(len(known))) in facts:
            known.append(self.sound(facts[key]))
        return known

    def sound(self, fact: Fact) -> Fact:
        """Return a fact of this as it could have been learned; refuse one that has other parts."""
        if self.profiles:
            bins = _bins_of(self.profiles)
            return sound(fact, [bins] * len(self.profiles), scales=len(self.profiles))
        (drawn,) = self.measured  # the number itself and both ends of its interval
        return sound(fact, [1, 1, 1], scales=0, drawn_most=drawn.height)

    def without_where(self) -> "Subject":
        """Return the same of all rows."""
        return replace(self, grouping=self.grouping.of_all_rows())

    def at_hand(self, facts: Facts, epsilon: Fraction, *, widens: bool = False) -> "Subject":
        """Return itself, or the same of all rows where that serves this call better."""
        return self.tried(facts, epsilon, widens=widens)[-1]

    def tried(self, facts: Facts, epsilon: Fraction, *, widens: bool) -> tuple["Subject", ...]:
        """Return what to learn, one after the other, the last of which serves.

        A call that is too small to learn of its WHERE takes what is known of all rows. So does one that has
        learned too little of it, if it `widens`: people are then taken to be no larger than those of the whole table.
        """
        if self.grouping.where is None:
            return (self,)
        wider, rounds = self.without_where(), self.rounds(facts)
        if rounds:
            return (self, wider) if widens and not self._is_believed(rounds) else (self,)
        return (wider,) if epsilon < OWN_WHERE_FROM and wider.key() in facts else (self,)

    def _is_believed(self, rounds: Sequence[Fact]) -> bool:
        return not self.profiles or reading_of(rounds, 0, self.profiles[0].vector).top is not None


def reading_of(rounds: Sequence[Fact], profile: int, vector: Vector, *, safe: float = 1.0) -> Reading:
    """Return what all rounds of one profile tell together; `safe` is the cap, in steps, where nothing is believed."""
    bins = tuple((fact.parts[profile], float(fact.scales[profile])) for fact in rounds)
    whole = vector.kind != "centred"
    return read_profile(bins, shift=vector.shift, whole=whole, safe=safe, is_total=profile == 0)  # L1 comes first


def span_in(rounds: Sequence[Fact], subject: Subject, *, of_distances: bool = False) -> BelievedSpan:
    """Return how far values, or their distances from a middle, are believed to go above and below 0."""
    whole = all(column.type == "int" for column in subject.measured)
    bins = tuple((fact.parts[0], float(fact.scales[0])) for fact in rounds)
    return span_of(bins, whole=whole, from_one=whole and not of_distances)


def people_beyond_ranges(facts: Sequence[Fact]) -> dict[str, float]:
    """Return about how many people clearly have values of which no range is made, by the words of the fact."""
    found: dict[str, list[tuple[tuple[int, ...], float]]] = {}
    for fact in facts:
        if fact.scales and [len(part) for part in fact.parts] == [LARGEST_BINS]:
            found.setdefault(fact.words, []).append((fact.parts[0], float(fact.scales[0])))
    beyond = {words: people_beyond(rounds) for words, rounds in found.items()}
    return {words: people for words, people in beyond.items() if people is not None}


# ---- The plans that learn profiles: their groups are bins, and a unit's cells are those of the question they are for.


def profile_plan(subject: Subject, epsilons: Sequence[Fraction]) -> Plan:
    """Return the plan that learns profiles: a unit is in one bin of each, and every bin gets Laplace noise.

    Privacy: a unit changes one bin of a profile by 1; where it is replaced, two bins (docs/proofs/scaling.md).
    """
    grouping = subject.grouping
    moves = grouping.moves
    how_far = Sensitivity(l0=moves, l1=moves, l2_squared=moves, linf=1)
    whole = sum(epsilons, Fraction(0))
    declaration = grouping.declaration
    bins = _bins_of(subject.profiles)
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=grouping.unit,
        neighbours=declaration.neighbours,
        where=grouping.where,
        keys=(KeyColumn("bin", Value(0, "int"), "int"),),
        public_keys=tuple((place,) for place in range(bins)),
        measured=subject.measured,
        releases=tuple(_people(place, how_far, epsilon, whole) for place, epsilon in enumerate(epsilons)),
        columns=("bin",),
        spend=Spend(whole),
        profiles=subject.profiles,
        cells=Cells(grouping.keys, grouping.public_keys),
    )


def _bins_of(profiles: Sequence[Profile]) -> int:
    return LARGEST_BINS if profiles[0].norm == "largest" else BINS


def _people(place: int, how_far: Sensitivity, epsilon: Fraction, whole: Fraction) -> NoisyRelease:
    parts = (Part("people", index=(place,)),)
    (made,) = with_noise([(parts, how_far, epsilon / whole)], Spend(whole), "laplace")
    return made
