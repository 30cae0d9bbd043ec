"""Learning: which facts a question needs, and the plans that learn them.

A fact is learned once, by a plan of its own that is charged as any other, and serves every later question about the
same people and the same cells. Its key says what it is about, never at which epsilon it was learned.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.plan.facts import Fact, Facts, WantedFact
from tacit.plan.groups import public_keys
from tacit.plan.plan import Cells, KeyColumn, Measured, NoisyRelease, Part, Plan, Sensitivity, Spend
from tacit.plan.profiles import Reading, read_profile
from tacit.plan.scaling import BINS, UNBOUNDED, Profile, Vector
from tacit.privacy import LaplaceNoise
from tacit.query import Aggregate, Expression, PostProcessing, Query, Scalar, Value, columns_of, type_of
from tacit.tables import Declaration, RowUnit

# Which part of a call's epsilon learns, of each profile by its norm: the L1 norm is also what tail caps are read off.
COUNT_SHARES = {1: Fraction(8, 100), 2: Fraction(2, 100)}
# Without GROUP BY both norms are the same, and the cap is all there is to choose.
SHARE_OF_ONE_NUMBER = Fraction(20, 100)
# Where nothing is believed, another round gets this part, if its noise is clearly smaller than that of all before it.
AGAIN_SHARE = Fraction(25, 100)
CLEARLY_SMALLER = 0.75
# In profiles of rows a row is 2^8 fine steps, so that the L2 norm of a few rows is told from a whole number.
ROW_SHIFT = 8
ROWS = Vector("rows", shift=ROW_SHIFT)


@dataclass(frozen=True)
class Grouping:
    """What a profile is about: the rows, whose they are, and the cells that they fall into."""

    declaration: Declaration
    where: Expression | None
    keys: tuple[KeyColumn, ...]
    public_keys: tuple[tuple[Scalar, ...], ...] | None

    @property
    def unit(self) -> str | None:
        """The unit's column; None: every row is its own unit."""
        return None if isinstance(self.declaration.unit, RowUnit) else self.declaration.unit

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
        return (self.unit, self.declaration.neighbours, self.where, keys, self.public_keys, types)


def grouping_of(query: Query, declaration: Declaration) -> Grouping:
    """Return what the profiles of a question are about."""
    keys = tuple(KeyColumn(key.name, key.expression, type_of(key.expression, declaration)) for key in query.keys)
    return Grouping(declaration, query.where, keys, public_keys(query, declaration))


def is_scaled(query: Query, declaration: Declaration) -> bool:
    """Whether a question is answered by scaling units into learned caps: no bound on its units is given by hand."""
    if isinstance(declaration.unit, RowUnit) or declaration.rows_per_unit is not None:
        return False
    if public_keys(query, declaration) is None:
        return False
    return all(output.aggregate.kind == "count" and _counts_rows(output.aggregate) for output in query.outputs)


def _counts_rows(aggregate: Aggregate) -> bool:
    constant = isinstance(aggregate.expression, Value) and aggregate.expression.value is not None
    return aggregate.expression is None or constant


def needed_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return the facts that a question is planned from, known or not, as this call would learn them.

    Later ones depend on earlier ones: where some are not known yet, those that depend on them are not in the list.
    `learn` is the part of the call's epsilon that all of them have together, if not the usual one.
    """
    if not is_scaled(query, declaration):
        return ()
    return _profiles_needed(grouping_of(query, declaration), spend, facts, learn)


def missing_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return what must be learned next; nothing where all is known, or nothing is needed."""
    return tuple(wanted for wanted in needed_facts(query, declaration, spend, facts, learn) if wanted.key not in facts)


def _profiles_needed(grouping: Grouping, spend: Spend, facts: Facts, learn: Fraction | None) -> tuple[WantedFact, ...]:
    norms = norms_of(grouping, spend)
    usual = {1: SHARE_OF_ONE_NUMBER} if not grouping.keys else {norm: COUNT_SHARES[norm] for norm in norms}
    whole = sum(usual.values(), Fraction(0))
    epsilons = [spend.epsilon * share * (1 if learn is None else learn / whole) for share in usual.values()]
    return rounds_of(grouping, (), ROWS, norms, epsilons, spend, facts)


def norms_of(grouping: Grouping, spend: Spend) -> tuple[int, ...]:
    """Return the norms whose profiles are learned: with one cell they are the same, and pure noise needs L1 alone."""
    return (1,) if not grouping.keys or spend.delta_rho == 0 else (1, 2)


def rounds_of(
    grouping: Grouping,
    measured: tuple[Measured, ...],
    vector: Vector,
    norms: Sequence[int],
    epsilons: Sequence[Fraction],
    spend: Spend,
    facts: Facts,
) -> tuple[WantedFact, ...]:
    """Return the rounds of one vector's profiles: those that are known, and the next one if there should be one."""
    found = [profile_fact(grouping, measured, vector, norms, epsilons, again=0)]
    while found[-1].key in facts:
        reading = reading_of([facts[each.key] for each in found], 0, vector)
        again = [spend.epsilon * AGAIN_SHARE * epsilon / sum(epsilons) for epsilon in epsilons]
        if reading.top is not None or _moves(grouping) / float(again[0]) > CLEARLY_SMALLER * reading.scale:
            following = profile_fact(grouping, measured, vector, norms, again, again=len(found))
            if following.key not in facts:
                break
        found.append(profile_fact(grouping, measured, vector, norms, again, again=len(found)))
    return tuple(found)


def known_rounds(
    grouping: Grouping, measured: tuple[Measured, ...], vector: Vector, norms: Sequence[int], facts: Facts
) -> list[Fact]:
    """Return the rounds of one vector's profiles that are known."""
    known: list[Fact] = []
    while (key := _key(grouping, measured, vector, norms, again=len(known))) in facts:
        known.append(facts[key])
    return known


def reading_of(rounds: Sequence[Fact], profile: int, vector: Vector) -> Reading:
    """Return what all rounds of one profile tell together."""
    bins = [(fact.parts[profile], float(fact.scales[profile])) for fact in rounds]
    return read_profile(bins, shift=vector.shift, whole=vector.kind != "centred")


def profile_fact(
    grouping: Grouping,
    measured: tuple[Measured, ...],
    vector: Vector,
    norms: Sequence[int],
    epsilons: Sequence[Fraction],
    *,
    again: int,
) -> WantedFact:
    """Return the fact that one round of a vector's profiles is."""
    profiles = tuple(Profile(1 if norm == 1 else 2, vector) for norm in norms)
    plan = profile_plan(grouping, measured, profiles, epsilons)
    return WantedFact(_key(grouping, measured, vector, norms, again=again), _words(grouping), plan)


def _key(
    grouping: Grouping, measured: tuple[Measured, ...], vector: Vector, norms: Sequence[int], *, again: int
) -> str:
    record = (grouping.record(*(column.expression for column in measured)), measured, vector, tuple(norms), again)
    return "profile " + hashlib.sha256(repr(record).encode("utf-8", "surrogatepass")).hexdigest()


def _words(grouping: Grouping) -> str:
    who = "a row" if grouping.unit is None else f"a {grouping.unit}"
    by = ", ".join(key.name for key in grouping.keys)
    where = " (of the rows that are asked about)" if grouping.where is not None else ""
    return f"how many rows {who} has{', in all and by ' + by if by else ''}{where}"


def profile_plan(
    grouping: Grouping, measured: tuple[Measured, ...], profiles: tuple[Profile, ...], epsilons: Sequence[Fraction]
) -> Plan:
    """Return the plan that learns profiles: a unit is in one bin of each, and every bin gets Laplace noise.

    Privacy: a unit changes one bin of a profile by 1; where it is replaced, two bins (docs/proofs/scaling.md).
    """
    moves = _moves(grouping)
    how_far = Sensitivity(l0=moves, l1=moves, l2_squared=moves, linf=1)
    releases = tuple(
        _people(place, how_far, epsilon, epsilon / sum(epsilons)) for place, epsilon in enumerate(epsilons)
    )
    declaration = grouping.declaration
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=grouping.unit,
        neighbours=declaration.neighbours,
        where=grouping.where,
        keys=(KeyColumn("bin", Value(0, "int"), "int"),),
        public_keys=tuple((place,) for place in range(BINS)),
        rows_per_unit=UNBOUNDED,
        groups_per_unit=UNBOUNDED,
        measured=measured,
        products=(),
        releases=releases,
        quantiles=(),
        distincts=(),
        choice=None,
        threshold=None,
        outputs=(),
        columns=("bin",),
        after=PostProcessing(),
        spend=Spend(sum(epsilons, Fraction(0))),
        profiles=profiles,
        cells=Cells(grouping.keys, grouping.public_keys),
    )


def _moves(grouping: Grouping) -> int:
    return 1 if grouping.declaration.neighbours == "add-remove" else 2


def _people(place: int, how_far: Sensitivity, epsilon: Fraction, share: Fraction) -> NoisyRelease:
    scale = how_far.l1 / epsilon
    event = LaplaceNoise(scale=scale, sensitivity=Fraction(how_far.l1))
    return NoisyRelease((Part("people", index=(place,)),), how_far, share, "laplace", scale, event)
