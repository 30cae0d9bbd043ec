"""What is known when a scaled plan is made: a question's vectors, and the facts that each one's cap is read off."""

from dataclasses import dataclass

from tacit.plan.bounds.caps import Told
from tacit.plan.bounds.ceilings import under_ceilings
from tacit.plan.bounds.facts import Fact, Facts
from tacit.plan.bounds.found_keys import Keys, KeySearch, grouping_in, known_keys
from tacit.plan.bounds.known import reading_of
from tacit.plan.bounds.missing_bounds import widens
from tacit.plan.bounds.moment_vectors import all_vectors
from tacit.plan.bounds.profiles import Reading, below, people_above
from tacit.plan.bounds.vectors import Wanted
from tacit.plan.groups import refuse_private_keys
from tacit.plan.plan import NoiseKind, Spend
from tacit.query import Query
from tacit.tables import Declaration


@dataclass(frozen=True)
class KnownSizes:
    """A question's vectors, and the rounds of facts that each one's cap is read off."""

    wanted: Wanted
    rounds: tuple[tuple[Fact, ...], ...]
    keys: Keys  # the groups: listed, or found by the rounds below
    found: tuple[Fact, ...]  # the rounds that found the groups
    declaration: Declaration
    spend: Spend
    totals: tuple[Reading | None, ...] = ()  # of each vector: what its L1 profile tells, under its ceilings
    ceilings: tuple[Fact, ...] = ()  # those that lowered one
    of_all_rows: tuple[bool, ...] = ()  # of each vector: whether its rounds are, though fewer rows are asked about

    @property
    def cells_most(self) -> int:
        """In how many groups one unit can be."""
        return len(self.keys) or 2  # where none was found, nothing is added up, and any number does

    @property
    def is_one_number(self) -> bool:
        """Whether all units are in one and the same group."""
        return self.cells_most == 1

    @property
    def public_rows(self) -> int | None:
        """How many rows the whole table has, where that is declared and all of them are asked about."""
        is_whole = self.wanted.grouping.where is None and not self.found
        return self.declaration.rows if is_whole else None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All of the facts, each once."""
        profiles = (fact for rounds in self.rounds for fact in rounds)
        return tuple(dict.fromkeys((*self.wanted.used, *profiles, *self.found, *self.ceilings)))


def known_facts(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> KnownSizes | None:
    """Return the vectors of a question with the facts that their caps are read off; None where one is missing."""
    grouping = grouping_in(query, declaration, spend, facts)
    if grouping.public_keys is None and spend.delta_keys == 0:
        refuse_private_keys(query)
    wanted = all_vectors(query, grouping, facts)
    if wanted is None:
        return None
    found: list[tuple[Fact, ...]] = []
    totals: list[Reading | None] = []
    ceilings: list[Fact] = []
    of_all_rows: list[bool] = []
    wide = widens(query)
    for each in wanted.vectors:
        subject = None if each.subject is None else each.subject.at_hand(facts, spend.epsilon, widens=wide)
        rounds = () if subject is None else tuple(subject.rounds(facts))
        if each.learned_from is not None and not rounds:
            return None
        found.append(rounds)
        of_all_rows.append(subject != each.subject)
        if each.subject is None or not rounds:
            totals.append(None)
            continue
        read = reading_of(rounds, 0, each.subject.profiles[0].vector, safe=each.safe)
        total, used = under_ceilings(read, each.subject, facts)
        totals.append(total)
        ceilings += used
    rounds_of_keys = tuple(KeySearch(grouping).at_hand(facts).rounds(facts)) if grouping.public_keys is None else ()
    if grouping.public_keys is None and not rounds_of_keys:
        return None
    keys = known_keys(rounds_of_keys) if grouping.public_keys is None else grouping.public_keys
    more = (tuple(totals), tuple(ceilings), tuple(of_all_rows))
    return KnownSizes(wanted, tuple(found), keys, rounds_of_keys, declaration, spend, *more)


def told_of(known: KnownSizes, place: int, noise: NoiseKind) -> Told:
    """Return what is known of one vector, for the norm of this noise."""
    each, rounds, total = known.wanted.vectors[place], known.rounds[place], known.totals[place]
    if each.subject is None or total is None:
        raise ValueError("a vector whose cap is one unit is not profiled")
    profiled = each.subject.profiles[0].vector
    rows = known.declaration.rows_per_unit
    times = float(rows) if rows is not None and profiled.kind == "units" and each.role != "units" else 1.0
    if noise == "laplace":
        return Told(total, times=times)
    if profiled.kind == "units":
        return Told(total, times=times, is_rooted=True)
    length = reading_of(rounds, 1, profiled, safe=each.safe) if len(rounds[0].parts) > 1 else None
    if length is not None and length.top is None:  # it has so much more noise that it tells nothing
        length = None
    length = None if length is None else below(length, total) if total.ceiling is not None else length
    return Told(total, length, cells=float(max(known.cells_most, 1)))


def people_longer(known: KnownSizes, place: int, noise: NoiseKind, cap: float) -> tuple[float, float] | None:
    """Return how many people's vectors are longer than a cap, in steps, at least and at most as far as noise tells."""
    told = told_of(known, place, noise)
    reading, profile = (told.total, 0) if told.length is None else (told.length, 1)
    size = cap**2 if told.is_rooted else cap
    rounds = [(fact.parts[profile], float(fact.scales[profile])) for fact in known.rounds[place]]
    found = people_above(rounds, size / told.times, reading)
    if found is None or noise == "laplace" or told.is_rooted or told.length is not None:
        return found
    return 0.0, found[1]  # of the L1 norm, which is the longer one
