"""Asking in many runs without a ledger: the product's own facts, plans, noise and intervals, and rows read once.

Every run begins without facts, learns what the question lacks, plans with the epsilon that is left, is refused where
the product refuses, and draws all noise anew. What is left out is what no number depends on: the ledger, the
certificate and the printing. Exact sums are kept by plan; of a plan that draws rows of a person at random, those of
the first run.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from bench.learned.asking import open_table
from bench.questions.questions import Question, Shown, asked, group_name
from bench.questions.remembered import about
from bench.questions.tables import Table
from tacit import ROW
from tacit.answer.columns import noisy_columns
from tacit.asking.learned import USUAL, _numbers_of, next_facts
from tacit.asking.verbs import rows_most
from tacit.errors import QueryRefused
from tacit.exact import ExactTable
from tacit.forecast import refuse_useless
from tacit.plan import Fact, Plan, make_plan, make_spend, refuse_no_groups
from tacit.release import NoisyTable, joined, release

CONFIDENCE = Fraction(19, 20)


def can_replay(question: Question) -> bool:
    """Whether the numbers of a question are outputs of one plan, rather than computed or of two plans."""
    return not question.beside and "share" not in question.numbers


class Replayed:
    """A question of a table, asked again and again."""

    def __init__(self, path: Path, table: Table, question: Question, epsilon: float) -> None:
        opened = open_table(path, table.unit or ROW, epsilon=epsilon)
        made = asked(opened, path, table, question)
        self.numbers, self.session, self.query = question.numbers, made.session, made.query
        self.declared, self.kept = made.session.declaration, dict[str, list[ExactTable]]()
        self.spend = make_spend(Fraction(str(epsilon)), None, None, made.session.registered.budget)

    def ask(self) -> dict[str, dict[str, Shown]]:
        """Ask once, and return each number by group; without groups if the question was refused."""
        try:
            plan, noisy = self._answered()
        except QueryRefused:
            return {number: {} for number in self.numbers}
        columns = {column.name: column for column in noisy_columns(plan, noisy, CONFIDENCE)}
        groups = [group_name(key) for key in noisy.keys]
        found = {}
        for number in self.numbers:
            column = columns[number]
            ends = zip(column.values, column.low, column.high, strict=True)
            shown = (Shown(*(None if end is None else float(end) for end in each)) for each in ends)
            found[number] = dict(zip(groups, shown, strict=True))
        return found

    def _answered(self) -> tuple[Plan, NoisyTable]:
        facts: dict[str, Fact] = {}
        learned: list[Fact] = []
        while missing := next_facts(self.query, self.declared, self.spend, USUAL, facts, learned, {}.get):
            for wanted in missing:
                facts[wanted.key] = self._fact(wanted.key, wanted.words, wanted.plan, len(facts) + 1)
                learned.append(facts[wanted.key])
        left = self.spend.epsilon - sum((fact.epsilon for fact in learned), Fraction(0))
        plan = make_plan(self.query, self.declared, replace(self.spend, epsilon=left), facts)
        refuse_no_groups([plan])
        refuse_useless([plan], rows_most(self.declared), CONFIDENCE)
        return plan, self._noisy(plan)

    def _fact(self, key: str, words: str, plan: Plan, entry: int) -> Fact:
        noisy, scales = self._noisy(plan), tuple(release.scale for release in plan.releases)
        parts = tuple(tuple(map(int, part)) for part in _numbers_of(plan, noisy))
        found = plan.threshold
        keys, delta = ((), Fraction(0)) if found is None else (noisy.keys, found.delta)
        return Fact(key, words, parts, scales, plan.spend.epsilon, entry, "", keys, delta)

    def _noisy(self, plan: Plan) -> NoisyTable:
        return joined([release(plan, exact) for exact in self._exact(plan)])

    def _exact(self, plan: Plan) -> Sequence[ExactTable]:
        of = f"{about(plan)} {plan.quantiles and [(draw.column, plan.measured) for draw in plan.quantiles]}"
        if of not in self.kept:
            with self.session.engine.moment(), closing(self.session.engine.parts(plan, "00" * 16)) as parts:
                self.kept[of] = list(parts)
        return self.kept[of]
