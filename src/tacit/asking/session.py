"""`Session`: a protected table with its engine and its ledger, where rows are read, and facts are learned.

Whatever is paid for out of a budget goes through `spend` (paying.py): answers, and what is learned for them.

The noise of a model's rounds for an epsilon: all of them together are one Gaussian batch.

The loss is divided among kinds of rounds by shares of 1/sigma², and no arithmetic on rows is involved. The whole batch
is within the call's epsilon at its delta, and within the rho that a budget of that size has room for: so it fits either
arm of the budget's rule (docs/proofs/rounds.md). Without a delta a model has its share of the eighth of the budget's
delta that is for noise. A given delta is the model's own, all of it for noise, since a model finds no keys: if it is
more than that share, three quarters of it are charged to a budget's thresholds (docs/proofs/ledger.md).
Such a batch is made for addition only, so it need not fit the other arm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import TypeVar

from tacit.accounting import (
    FOR_KEYS,
    FOR_NOISE,
    NoiseLoss,
    charge_of,
    gaussian_sigma_vector,
    noise_delta,
    rho_within,
    rule_of,
    sampled_rounds,
    shares_of,
)
from tacit.answer import protected_words
from tacit.asking.learned import (
    ALL,
    KnownFacts,
    LearnChoice,
    all_missing,
    events_of,
    explain_what_was_learned,
    fact_from,
    fact_text,
    limits_rows_of,
    missing_from,
    next_facts,
    rows_in_words,
    source_of,
    without_limit,
)
from tacit.asking.paying import OpenCharge, Payment, Release, failing_alike, spend
from tacit.engine import Engine, StoredRows, derived_source, open_engine
from tacit.errors import InvalidParameter, LedgerError, QueryRefused
from tacit.exact import all_groups
from tacit.hold import holding, longest
from tacit.ledger import Asker, Learning, Ledger, RegisteredTable
from tacit.noise import fresh_bytes
from tacit.numbers import Number, shortened, show
from tacit.plan import Fact, Plan, Spend, WantedFact, make_spend
from tacit.privacy import (
    SCALE_MAX,
    SCALE_MIN,
    ApproximateLoss,
    Event,
    GaussianNoise,
    Loss,
    SubsampledGaussian,
    delta_meaning,
)
from tacit.query import (
    Expression,
    Query,
    Relation,
    TableRows,
    blocks_allowed,
    question_text,
    relation_lines,
    relation_mark,
    tables_of,
)
from tacit.release import NoisyTable, joined, release
from tacit.tables import Declaration, PublicTable

SALT_BYTES = 16


@dataclass(frozen=True)
class Beside:
    """The tables that a table may be joined with: sessions of protected ones by name, and public ones by digest."""

    sessions: "Mapping[str, Session]"
    publics: Mapping[str, PublicTable]

    def and_also(self, other: "Session | PublicTable | Beside") -> "Beside":
        """Return these tables with further ones; two protected tables of one name are refused."""
        if isinstance(other, PublicTable):
            return replace(self, publics={**self.publics, other.digest: other})
        if isinstance(other, Beside):
            more = replace(self, publics={**self.publics, **other.publics})
            for each in other.sessions.values():
                more = more.and_also(each)
            return more
        table = other.base or other
        name = table.declaration.name
        more = self.and_also(other.beside)
        if name in more.sessions and more.sessions[name].engine.source is not table.engine.source:
            raise InvalidParameter(f"two different tables are named '{name}'\nhint: open one with another name=")
        return replace(more, sessions={**more.sessions, name: table})


ALONE = Beside({}, {})


@dataclass(frozen=True)
class Session:
    """A protected table with its engine and its ledger: the only way from a question about rows to an answer."""

    declaration: Declaration
    registered: RegisteredTable
    engine: Engine
    ledger: Ledger
    # Frames have no stable identity: a random mark keeps answers about one frame from being reused for another.
    source_mark: str = ""
    notices: tuple[str, ...] = ()  # printed with every answer about this table
    relation: Relation | None = None  # the rows that it is about, where they are not the table's own
    base: "Session | None" = None  # then the session of the table itself
    beside: Beside = ALONE  # the tables that the relation reads beside it
    hold: Fraction | None = None  # the public clock's ticks, in seconds; None: answers leave when they are ready

    def about(self, relation: Relation | None, beside: Beside | None = None) -> "Session":
        """Return a session about a relation of this table: the same people, budget and ledger, with a declaration of
        its own.

        Its answers and facts have keys by what the relation is, and by what the other tables in it declare.
        """
        base = self.base or self
        if relation is None or isinstance(relation, TableRows):
            return base
        beside = self.beside if beside is None else beside
        others = [beside.sessions[name] for name in dict.fromkeys(tables_of(relation)) if name != base.declaration.name]
        for other in others:
            base.refuse_other_people(other)
        sessions = [base, *others]
        stored = StoredRows(
            {each.declaration.name: each.engine.source for each in sessions},
            {each.declaration.name: each.declaration for each in sessions},
            beside.publics,
        )
        marks = [f"{each.registered.id} {each.registered.declaration_hash} {each.source_mark}" for each in others]
        return replace(
            base,
            declaration=stored.declaration(relation),
            engine=open_engine(derived_source(relation, stored)),
            source_mark=" ".join([base.source_mark, relation_mark(relation), *marks]),
            registered=replace(base.registered, beside=tuple(each.registered.id for each in others)),
            notices=tuple(dict.fromkeys(notice for each in sessions for notice in each.notices)),
            relation=relation,
            base=base,
            beside=beside,
            hold=longest(each.hold for each in sessions),
        )

    def narrowed(self, wheres: Iterable[Expression | None]) -> "Session":
        """Return this session, charged only for the blocks that these conditions allow; of a relation, for all."""
        base, found = self.base or self, set[str]()
        block = base.declaration.block
        if block is None:
            return self
        for where in wheres:
            allowed = blocks_allowed(where, block) if self.relation is None else None
            if allowed is None:
                return replace(self, registered=replace(self.registered, blocks=None, stamp=self.stamp()))
            found.update(allowed)
        return replace(self, registered=replace(self.registered, blocks=tuple(sorted(found)), stamp=self.stamp()))

    @property
    def block_notes(self) -> tuple[str, ...]:
        """What the details of an answer say about blocks."""
        block = (self.base or self).declaration.block
        if block is None:
            return ()
        charged = self.registered.blocks
        return (
            f"Charged to {'all blocks' if charged is None else 'the blocks ' + ', '.join(charged)}.",
            f"Rows without {block.column} are in no block: only questions that are charged to all blocks count them.",
        )

    @property
    def protected(self) -> str:
        block = (self.base or self).declaration.block
        record = None if block is None else block.record()
        return protected_words(self.declaration.unit_column, record, self.registered.period)

    def refuse_other_people(self, other: "Session") -> None:
        """Refuse to join a table whose budget is not this one's: what is learned would be charged to one of the two."""
        if (self.ledger.id, self.registered.cohort) == (other.ledger.id, other.registered.cohort):
            return
        mine, theirs = self.declaration.name, other.declaration.name
        raise QueryRefused(
            f"'{mine}' and '{theirs}' have budgets of their own, and a question about both is charged to one"
            f"\nhint: if they are about the same people, declare that: same_people_as='{mine}' for '{theirs}', in the"
            f" same ledger"
        )

    def learn(
        self, query: Query, *, spend: Spend, again: bool, analyst: str | None, learned: list[Fact] | None = None
    ) -> KnownFacts:
        """Charge for and learn facts ahead of a question, for at most epsilon; `again` replaces known ones.

        As a part of a larger call, the facts that were paid for here are added to `learned`.
        """
        self.ledger.require_may_ask(self.registered, self.asker(analyst))
        known: dict[str, Fact] = {}
        left = spend.epsilon

        def recall(key: str) -> Fact | None:
            return known.get(key) if again else self.recall_fact(key, analyst)

        _, wanted = all_missing(query, self.declaration, spend, ALL, recall)
        if not wanted:
            return KnownFacts()
        first, beside, found = wanted[0].plan.events, events_of(wanted[1:]), set()
        key = self.fact_key(wanted[0].key)
        call = self.ledger.call(self.registered, first, beside=beside, question_key=key, analyst=analyst)
        with call, explain_what_was_learned() if learned is None else nullcontext(learned) as paid:
            while missing := missing_from(query, self.declaration, spend, ALL, known, recall):
                left -= sum((each.plan.spend.epsilon for each in missing), Fraction(0))
                if left < 0:  # another round, where the first has told nothing, is a question's to pay
                    break
                for each in missing:
                    known[each.key], is_new = self.learn_fact(each, None, analyst, again=again)
                    paid += [known[each.key]] if is_new else []
                    found.add(known[each.key].entry)
        return self.facts(analyst).only(lambda each: each.entry in found)

    def facts(self, analyst: str | None = None) -> KnownFacts:
        """Return what is known of this table, and of rows made from its own: free for every question."""
        known = KnownFacts(self.ledger.facts(self.registered, analyst))
        mark = source_of(self.source_mark) if self.relation is None else ""
        return known.only(lambda each: each.source == mark or self.recall_fact(each.fact.key, analyst) == each.fact)

    def words(self, query: Query) -> str:
        unit = self.declaration.unit if isinstance(self.declaration.unit, str) else None
        return "\n".join([question_text(query, unit), *(relation_lines(self.relation) if self.relation else ())])

    def learn_missing(
        self,
        query: Query,
        spend: Spend,
        learn: LearnChoice,
        request_id: str | None,
        analyst: str | None,
        learned: list[Fact],
    ) -> dict[str, Fact]:
        """Charge for and learn the facts that a question lacks; add to `learned` those that this request paid for."""
        facts: dict[str, Fact] = {}

        def recall(key: str) -> Fact | None:
            return self.recall_fact(key, analyst)

        while missing := next_facts(query, self.declaration, spend, learn, facts, learned, recall):
            for each in missing:
                facts[each.key], is_new = self.learn_fact(each, request_id, analyst)
                learned += [facts[each.key]] if is_new else []
        learned += self.paid_within(request_id, analyst, facts, learned)
        return facts

    def paid_within(
        self, request_id: str | None, analyst: str | None, facts: Mapping[str, Fact], learned: Sequence[Fact] = ()
    ) -> list[Fact]:
        """Return the facts that an earlier attempt at a request has paid for: they are a part of its price."""
        if request_id is None:
            return []
        others = [fact for fact in facts.values() if fact.entry not in {each.entry for each in learned}]
        return [fact for fact in others if self.ledger.paid_within(fact.entry, request_id, analyst)]

    def learn_fact(
        self, wanted: WantedFact, request_id: str | None, analyst: str | None, *, again: bool = False
    ) -> tuple[Fact, bool]:
        """Charge for a fact and learn it; return also whether that was new. Of two learned at once the first holds."""
        plan, words = wanted.plan, wanted.words + rows_in_words(self.relation, wanted.plan.unit or "")
        with self.spend_on_fact(wanted, request_id, analyst, Learning(words, again=again)) as charge:
            if charge.stored is None:
                noisy = self.release(plan)
                charge.keep(fact_text(replace(wanted, words=words), noisy, source_of((self.base or self).source_mark)))
        fact = self.recall_fact(wanted.key, analyst)
        if fact is None:
            raise LedgerError("what was learned is not in the ledger any more\nhint: run tacit ledger verify")
        return fact, not charge.free

    def spend_on_fact(
        self, wanted: WantedFact, request_id: str | None, analyst: str | None, learning: Learning
    ) -> AbstractContextManager[OpenCharge]:
        plan = wanted.plan
        return self.narrowed([plan.where]).spend(
            Payment(plan.events, wanted.key, plan.asked, plan.loss, request_id, analyst, learning=learning)
        )

    def recall_fact(self, key: str, analyst: str | None) -> Fact | None:
        """Return a fact that was paid for; what limits it may be known, with less noise, of the table of its rows."""
        about = self.fact_key(without_limit(key))
        stored = self.ledger.recall(self.registered, question_key=about, analyst=analyst, is_fact=True)
        own = None if stored is None else replace(fact_from(stored.answer, stored.receipt), key=key)
        if self.base is None or not limits_rows_of(key, self.relation, self.base.declaration.name):
            return own
        of_table = self.base.recall_fact(key, analyst)
        return min((fact for fact in (own, of_table) if fact is not None), key=lambda fact: fact.scales, default=None)

    def spend(self, payment: Payment) -> AbstractContextManager[OpenCharge]:
        """Charge this table's budget for a release (`spend`); the key gets table, declaration and source."""
        self.engine.refuse_changes()  # a file that is gone is not charged for
        key = self.key_of(payment.key) if payment.learning is None else self.fact_key(payment.key)
        return spend(self.ledger, self.registered, replace(payment, key=key))

    @contextmanager
    def failing_alike(self, run: Release) -> Iterator[None]:
        """Raise one fixed message for any failure before a run that was charged earlier is released, on the clock."""
        with holding(self.hold), failing_alike(run):
            yield

    def asker(self, analyst: str | None) -> Asker:
        return self.ledger.asker(self.registered, analyst)

    def stamp(self) -> str | None:
        """Return what tells later whether the source's files were written since; nothing can be read off it."""
        stamp = self.engine.stamp()
        return None if stamp is None else source_of(f"{self.ledger.id} {stamp}")

    def release(self, plan: Plan) -> NoisyTable:
        """Read rows, add noise, and return the only thing that leaves."""
        salt = fresh_bytes(SALT_BYTES).hex()
        with self.engine.moment(), closing(self.engine.parts(plan, salt)) as exact:  # bounded, still secret
            tables = [all_groups(exact)] if plan.levels else exact  # a level is a total of all groups
            noisy = joined([*map(partial(release, plan), tables)])  # noise enters here and nowhere else
            return noisy.with_texts(self.engine.texts(plan, noisy.keys))

    def key_of(self, asked: str) -> str:
        """Return the key of an answer: the question, the whole declaration (types too), and the source."""
        return f"{asked}:{self.registered.declaration_hash}:{self.source_mark}"

    def fact_key(self, about: str) -> str:
        """Return the key of a fact: about what, with unit, types and source; what else is declared may change."""
        return f"{about}:{self.source_mark}"


# sigma is rounded up to this many binary digits
SIGMA_BITS = 40
# the largest difference of the roundings, with a margin
ROUNDING = Fraction(1, 2**30)
# the most of a budget's delta that one model's noise may take, and the part of it that is charged as thresholds are
MOST = FOR_KEYS + FOR_NOISE
OF_KEYS = FOR_KEYS / MOST


def noise_for(
    session: Session,
    epsilon: Number,
    delta: Number | None,
    wanted: Sequence[tuple[int, Fraction]],
    *,
    only_adds: bool = False,
) -> tuple[tuple[GaussianNoise, ...], NoiseLoss]:
    """Return the events of a batch, and the (epsilon, delta) that its noise is made for: the batch is within it.

    `wanted` has, for each kind of round, the square of how far adding or removing one unit moves all its rounds
    together, and its share of the loss; shares add up to 1. If neighbours replace a unit, two units move here; with
    `only_adds`, no unit makes a number smaller.
    """
    if sum(share for _, share in wanted) != 1 or any(share <= 0 or squared <= 0 for squared, share in wanted):
        raise InvalidParameter("the shares of rounds must be above 0 and add up to 1")
    squares = [replaced(session, only_adds=only_adds) * Fraction(squared) for squared, _ in wanted]
    shares = [share for _, share in wanted]

    def events_for(loss: NoiseLoss, rho: Fraction | None) -> tuple[GaussianNoise, ...]:
        least = Fraction(0) if rho is None else sum(squares, Fraction(0)) / (2 * rho)
        return _batch(squares, shares, loss, least)

    return _first_admitted(session, epsilon, delta, events_for)


def sampled_noise_for(
    session: Session, epsilon: Number, delta: Number | None, *, rate: Fraction, rounds: int, step: int
) -> tuple[tuple[GaussianNoise, SubsampledGaussian], NoiseLoss]:
    """Return the events of a noisy count of units and of sums over samples of them, within the (epsilon, delta) beside.

    A unit is in a sample with chance `rate`, and then moves its sum by at most `step` in L2.
    """
    if replaced(session) != 1:
        raise QueryRefused(
            "sampled rounds protect a person who is added or removed, and this table declares neighbours='replace'"
            "\nhint: declare neighbours='add-remove'"
        )
    if not isinstance(session.registered.budget, ApproximateLoss):
        raise QueryRefused(
            "sampled rounds are charged in epsilon and delta, and this budget lacks a delta, or is in rho"
            "\nhint: declare the budget as tacit.epsilon(3, delta=1e-6)"
        )
    return _first_admitted(
        session,
        epsilon,
        delta,
        lambda loss, _: sampled_rounds(ApproximateLoss(loss.epsilon, loss.delta), rate, rounds, step),
    )


Events = TypeVar("Events", bound=tuple[Event, ...])


def _first_admitted(
    session: Session,
    epsilon: Number,
    delta: Number | None,
    events_for: Callable[[NoiseLoss, Fraction | None], Events],
) -> tuple[Events, NoiseLoss]:
    """Return the events that are made for an (epsilon, delta), and that loss, as the budget's rule admits it.

    `events_for` is given the loss, and the rho that the events must fit too, or None.
    """
    budget = session.registered.budget
    spend = make_spend(epsilon, _delta_of_question(delta, budget), "gaussian", budget)
    if spend.delta_rho == 0:
        raise QueryRefused(
            "models are learned with Gaussian noise, which needs a delta, but this budget is pure (delta = 0)"
            "\nhint: declare the budget with a delta, e.g. budget=tacit.epsilon(3, delta=1e-6)"
        )
    asked, rho = NoiseLoss(spend.epsilon, spend.delta_noise), rho_within(spend.epsilon, spend.delta_rho)
    if delta is None or not isinstance(budget, ApproximateLoss) or spend.epsilon > budget.epsilon:
        return events_for(asked, rho), asked
    rule, fair = rule_of(budget), shares_of(budget, spend.epsilon).asked
    also_of_keys = NoiseLoss(asked.epsilon, asked.delta, asked.delta * OF_KEYS)
    ways: list[tuple[NoiseLoss, Fraction | None]] = [(asked, rho), (also_of_keys, None)]
    if fair * FOR_NOISE < asked.delta <= fair * MOST:  # so that it fits beside others that take their fair share
        ways.reverse()
    for loss, least in ways:
        events = events_for(loss, least)
        if rule.admits(charge_of(events, asked=loss)):
            return events, loss
    raise QueryRefused(
        f"noise may take half of this budget's delta at most, {show(budget.delta * MOST)}, which is less than the"
        f" delta of {show(asked.delta)} that the model asks for\nhint: leave delta out, or declare the budget with"
        f" delta={show(asked.delta / MOST)}"
    )


def _batch(
    squares: Sequence[Fraction], shares: Sequence[Fraction], loss: ApproximateLoss, least: Fraction
) -> tuple[GaussianNoise, ...]:
    """Return noise that is within the loss by its exact law, with a total variance of at least `least`."""
    total = sum(squares, Fraction(0))
    variance, growth = max(gaussian_sigma_vector(total, loss.epsilon, loss.delta) ** 2, least), ROUNDING
    while True:
        sigmas = [
            _root_above(variance * (1 + growth) * squared / (share * total))
            for squared, share in zip(squares, shares, strict=True)
        ]
        events = tuple(
            GaussianNoise(_drawable_sigma(sigma), squared) for sigma, squared in zip(sigmas, squares, strict=True)
        )
        if noise_delta(events, loss.epsilon) <= loss.delta:
            return events
        growth *= 2


def _delta_of_question(delta: Number | None, budget: Loss) -> Fraction | None:
    """Return the delta of a question that has a model's own delta for its noise."""
    if delta is None:
        return None
    own = delta_meaning(delta)
    if isinstance(budget, ApproximateLoss) and own >= FOR_NOISE:
        raise InvalidParameter(f"a model's delta must be below {show(FOR_NOISE)}\nhint: such as delta=1e-6")
    return own / FOR_NOISE if isinstance(budget, ApproximateLoss) else own


def replaced(session: Session, *, only_adds: bool = False) -> int:
    """Return the factor for the square of a move if neighbours replace a unit, since two units move: 4, or 2 if a unit
    only adds, since then one takes from what the other adds (docs/proofs/streams.md)."""
    if session.declaration.neighbours != "replace":
        return 1
    return 2 if only_adds else 4


def _root_above(variance: Fraction) -> Fraction:
    """Return a root, rounded up to SIGMA_BITS digits."""
    bits = 2 * (SIGMA_BITS + 8) + max(0, variance.denominator.bit_length() - variance.numerator.bit_length())
    bits += bits % 2
    whole = -(-variance.numerator * 2**bits // variance.denominator)
    root = isqrt(whole - 1) + 1
    return shortened(Fraction(root, 2 ** (bits // 2)), up=True, bits=SIGMA_BITS)


def _drawable_sigma(sigma: Fraction) -> Fraction:
    """Return a sigma that the sampler draws, or refuse one that is too wide."""
    if sigma > SCALE_MAX:
        raise QueryRefused("this epsilon asks for noise wider than can be drawn\nhint: give a larger epsilon")
    return max(sigma, SCALE_MIN)
