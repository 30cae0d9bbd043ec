"""Found keys: which groups there are, learned once, in one or two rounds of a call, and known from then on.

Each unit shares one vote among its groups. A group whose noisy votes reach a threshold is shown, and its key is kept as
a fact. Every question then groups by a known list, as if a person had written it (docs/proofs/private-keys.md).

Others: the facts that a question for shown groups and all others is planned from.

Shown groups are listed, or were found by a fact that is public and paid for. The question is then one with listed
groups (`query/compound.py`), and its others have noise of their own (docs/proofs/private-keys.md).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from math import log

from tacit.errors import QueryRefused
from tacit.plan.bounds.chosen import ASKED_MOST, CLEARLY_LESS, FIRST_SHARE, SECOND_MOST, SMALLEST
from tacit.plan.bounds.facts import FEW_CELLS, OF_GROUPS, Fact, Facts, Grouping, WantedFact, grouping_of, sound
from tacit.plan.bounds.profiles import Reading
from tacit.plan.bounds.scaling import UNBOUNDED, Scaling, Vector
from tacit.plan.groups import (
    KEYS_MOST,
    UNIT_SHIFT,
    of_last_few,
    refuse_private_keys,
    sensitivity_of_vector,
    threshold_for_weights,
)
from tacit.plan.plan import Part, Plan, Spend
from tacit.plan.split import with_noise
from tacit.query import PUBLIC_KEYS_MAX, Query, Scalar, Type, with_listed_others
from tacit.tables import Declaration

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
        return WantedFact(self.key(len(known)), f"which groups by {names} there are", plan, instead)


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
