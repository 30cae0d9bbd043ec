"""Facts: noisy numbers that were paid for once and serve every later question, free, at any epsilon.

Facts cannot affect privacy: caps and ranges that are read off facts are public numbers like those a person writes, and
they bound people with any value. A wrong fact makes an answer worse, but never less private. An absurd fact, as only a
damaged or forged entry has, is cut to possible values before a plan is made from it, so that such a plan does not fail
once it is charged.

Known facts: what each is about, the key that it is found by, the plan that learns it, and what its numbers tell.

A key has everything that a fact is about: whose rows, which of them, in which cells, which expression of which types on
which grid. It never has an epsilon, a version or the name of an output, so that every later question finds it.

Found keys: which groups there are, learned once, in one or two rounds of a call, and known from then on.

Each unit shares one vote among its groups. A group whose noisy votes reach a threshold is shown, and its key is kept as
a fact. Every question then groups by a known list, as if a person had written it (docs/proofs/private-keys.md).

Others: the facts that a question for shown groups and all others is planned from.

Shown groups are listed, or were found by a fact that is public and paid for. The question is then one with listed
groups (`query/compound.py`), and its others have noise of their own (docs/proofs/private-keys.md).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from math import log
from types import MappingProxyType

from tacit.errors import QueryRefused
from tacit.plan.bounds.chosen import ASKED_MOST, CLEARLY_LESS, FIRST_SHARE, OWN_WHERE_FROM, SECOND_MOST, SMALLEST
from tacit.plan.bounds.profiles import BelievedSpan, Reading, people_beyond, read_profile, span_of
from tacit.plan.bounds.scaling import BINS, LARGEST_BINS, UNBOUNDED, Profile, Scaling, Vector
from tacit.plan.groups import (
    KEYS_MOST,
    UNIT_SHIFT,
    of_last_few,
    public_keys,
    refuse_private_keys,
    sensitivity_of_vector,
    threshold_for_weights,
)
from tacit.plan.plan import Cells, Cost, KeyColumn, Measured, NoisyRelease, Part, Plan, Sensitivity, Spend
from tacit.plan.split import with_noise
from tacit.privacy import SCALE_MAX, SCALE_MIN
from tacit.query import PUBLIC_KEYS_MAX, Expression, Query, Scalar, Type, Value, columns_of, type_of, with_listed_others
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
    smallest: tuple[int, ...] = ()  # people in a group that it can find: in this round, in the last one that may follow

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


Keys = tuple[tuple[Scalar, ...], ...]

# What the value of a key is made of.
MADE_OF: dict[Type, type] = {
    "bool": bool,
    "int": int,
    "float": float,
    "decimal": Fraction,
    "text": str,
    "date": date,
    "timestamp": datetime,
}

ROUNDS = 2
# A group of the size that is looked for is shown except for one time in so many.
MISSED_ONCE_IN = 20
# What one unit adds to all of its groups together, in fine steps.
VOTES = Vector("units", shift=UNIT_SHIFT, cap=1 << UNIT_SHIFT)


@dataclass(frozen=True)
class KeySearch:
    """The fact which groups a question has, told by all its rounds."""

    grouping: Grouping  # whose keys are not listed

    def key(self, again: int) -> str:
        """Return the key of one of its rounds."""
        record = (self.grouping.record(), again)
        return f"{OF_GROUPS}{hashlib.sha256(repr(record).encode('utf-8', 'surrogatepass')).hexdigest()}"

    def rounds(self, facts: Facts) -> list[Fact]:
        """Return the rounds that are known."""
        known: list[Fact] = []
        while (key := self.key(len(known))) in facts:
            known.append(self._sound(facts[key]))
        return known

    def _sound(self, fact: Fact) -> Fact:
        """Return a fact of this with groups that could have been found; refuse one that has other parts."""
        types = [key.type for key in self.grouping.keys]
        different, kinds = _kinds_of(fact.keys)
        could = different == len(fact.keys) <= PUBLIC_KEYS_MAX and all(_is_of(kind, types) for kind in kinds)
        return sound(fact, [different if could else -1, 1], scales=1)  # nothing has -1 numbers

    def of_all_rows(self) -> "KeySearch":
        """Return the search over all rows of the table."""
        return KeySearch(self.grouping.of_all_rows())

    def at_hand(self, facts: Facts) -> "KeySearch":
        """Return itself, or the search over all rows if that is known and this one is not."""
        wider = self.of_all_rows()
        return wider if self.key(0) not in facts and wider.key(0) in facts else self

    def next_round(
        self, facts: Facts, readings: Sequence[Reading], spend: Spend, learn: Fraction | None = None
    ) -> WantedFact | None:
        """Return the round to run next; None if no group of the smallest size is likely to be missing.

        Another round must have clearly less noise than all before it. `learn` is the part of the call's epsilon that
        all facts have together, if not the usual one.
        """
        known, asked = self.rounds(facts), self.grouping.smallest
        smallest = asked or SMALLEST
        if learn is None and known_keys(known) and smallest_shown(known) <= smallest:
            return None
        if learn is None and known and asked is None and _hold_enough(known, readings):
            return None
        delta = spend.delta_keys / ROUNDS
        if learn is not None:
            tried = [spend.epsilon * learn / 2]  # profiles have the other half
        else:
            most = spend.epsilon * (ASKED_MOST if asked else SECOND_MOST if known else FIRST_SHARE)
            tried = [min(most, _epsilon_for(smallest, delta) * self.grouping.moves)]
            tried += [] if known_keys(known) or not known else [most]  # none was found: smaller ones are looked for
        plans = [keys_plan(self.grouping, epsilon, delta) for epsilon in tried]
        before = min((fact.scales[0] for fact in known), default=None)
        plan = next((each for each in plans if before is None or each.releases[0].scale <= CLEARLY_LESS * before), None)
        if plan is None:
            return None
        names = ", ".join(key.name for key in self.grouping.keys)
        instead = () if self.grouping.where is None else (self.of_all_rows().key(0),)
        shown = plan.threshold.least >> UNIT_SHIFT if plan.threshold else 0
        last = shown if asked or learn is not None or shown <= SMALLEST else max(SMALLEST, _last_round(shown))
        sizes = tuple(dict.fromkeys((shown, last)))
        return WantedFact(self.key(len(known)), f"which groups by {names} there are", plan, instead, sizes)


def _last_round(shown: int) -> int:
    """Return the size of the groups that a second round finds, if the first finds groups of `shown` people."""
    return round(shown * FIRST_SHARE / SECOND_MOST)


def grouping_in(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Grouping:
    """Return what the profiles of a question are about, by the groups that are listed or known."""
    grouping = grouping_of(query, declaration, spend)
    if grouping.public_keys is not None:
        return grouping
    cells = len(known_keys(KeySearch(grouping).at_hand(facts).rounds(facts)))
    return replace(grouping, cells=cells, only_l1=grouping.only_l1 or 0 < cells <= FEW_CELLS)


def known_keys(rounds: Sequence[Fact]) -> Keys:
    """Return the keys that any round showed, in their order: NULL first."""
    return _keys_in_order(*rounds)


@of_last_few
def _keys_in_order(*rounds: Fact) -> Keys:
    found = {key for fact in rounds for key in fact.keys}
    return tuple(sorted(found, key=lambda key: [(part is not None, 0 if part is None else part) for part in key]))


@of_last_few
def _kinds_of(keys: Keys) -> tuple[int, frozenset[tuple[type, ...]]]:
    """Return how many different keys there are, and the types that their values have together."""
    return len(set(keys)), frozenset(tuple(map(type, key)) for key in keys)


def _is_of(kinds: tuple[type, ...], types: Sequence[Type]) -> bool:
    """Whether a key with values of these kinds has one of its type, or NULL, for each key column."""
    return len(kinds) == len(types) and all(
        kind is type(None) or kind is MADE_OF.get(name) for kind, name in zip(kinds, types, strict=True)
    )


def refuse_no_groups(plans: Sequence[Plan]) -> None:
    """Refuse questions of which no group was found: all of their epsilon would be spent on an empty table."""
    if any(plan.public_keys or not plan.found_by for plan in plans):
        return
    plan = plans[0]
    names = ", ".join(f"'{key.name}'" for key in plan.keys)
    raise QueryRefused(
        f"no group by {names} has about {smallest_shown(plan.found_by):,.0f} people or more, so none can be shown"
        "\nhint: group more coarsely, list the groups if they are public (keys=[...] or --keys), or look again with a"
        " larger epsilon: learn(epsilon=..., by=[...], again=True)"
    )


def smallest_shown(rounds: Sequence[Fact]) -> float:
    """Return about how many people a group needs to be shown by the best round."""
    return min(fact.parts[1][0] for fact in rounds) / 2.0**UNIT_SHIFT


def _hold_enough(known: Sequence[Fact], readings: Sequence[Reading]) -> bool:
    """Whether people without a vote for a known group are too few for one more group; no group is never enough."""
    votes = {key: count for fact in known for key, count in zip(fact.keys, fact.parts[0], strict=True)}
    held = sum(votes.values()) / 2.0**UNIT_SHIFT
    people = max((reading.count for reading in readings if reading.top is not None), default=0.0)
    return bool(votes) and people - held <= SMALLEST


def _epsilon_for(people: float, delta: Fraction) -> Fraction:
    """Return about the epsilon at which a group of so many people is nearly always shown, by units in many groups."""
    if delta <= 0:
        return Fraction(1)
    scales = log(KEYS_MOST / (2 * float(delta))) + log(MISSED_ONCE_IN / 2)
    return Fraction(round(scales / max(people - 1, 1.0), 4))


def keys_plan(grouping: Grouping, epsilon: Fraction, delta: Fraction) -> Plan:
    """Return the plan of one round: votes for every group, Laplace noise on each, shown from a threshold on.

    Privacy: a unit's votes add up to one at most; a group that only one unit has is shown with probability at most
    delta (docs/proofs/private-keys.md).
    """
    declaration = grouping.declaration
    groups = min(declaration.groups_per_unit or KEYS_MOST, KEYS_MOST)
    replaced = declaration.neighbours == "replace"
    how_far = sensitivity_of_vector(VOTES, norm=1, replaced=replaced, cells=max(groups, 2))
    spend = Spend(epsilon, delta_keys=delta)
    (made,) = with_noise([((Part("scaled", index=(0,)),), how_far, Fraction(1))], spend, "laplace")
    threshold = threshold_for_weights(
        made.summed, made.scale, cap=VOTES.cap, shift=VOTES.shift, norm=1, groups_most=groups, delta=delta, release=0
    )
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=grouping.unit,
        neighbours=declaration.neighbours,
        where=grouping.where,
        keys=grouping.keys,
        public_keys=None,
        rows_per_unit=declaration.rows_per_unit or UNBOUNDED,
        groups_per_unit=groups,
        releases=(made,),
        threshold=threshold,
        columns=tuple(key.name for key in grouping.keys),
        spend=replace(spend, delta=threshold.delta),
        scaling=Scaling(1, (VOTES,), ((0,),)),
    )


def with_others(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> tuple[Query, tuple[Fact, ...]]:
    """Return a question for shown groups and others as one with listed groups, and the facts that found the groups."""
    grouping = grouping_in(query, declaration, spend, facts)
    shown, rounds = grouping.public_keys, tuple[Fact, ...]()
    if shown is None:
        if spend.delta_keys == 0:
            refuse_private_keys(query)
        rounds = tuple(KeySearch(grouping).at_hand(facts).rounds(facts))
        if not rounds:
            raise QueryRefused(
                "which groups there are is not known yet, so that others are not either"
                "\nhint: list them (keys=[...]), or let them be learned first: leave out learn=False"
            )
        shown = known_keys(rounds)
    return _listed(query, shown), rounds


_listed = of_last_few(with_listed_others)
