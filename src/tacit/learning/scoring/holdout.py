"""`Holdout`: some units of a protected table are set aside, so that models are scored on people they have never seen.

Both sides are protected tables themselves: the same people, the same budget, questions in Python and SQL. A salted
hash of the unit decides the side, independent of the order of rows, and the same on every day and engine
(docs/proofs/holdout.md). A score is a release like any other: it is charged, noisy and has an error bar.
"""

from typing import Any

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.scoring.judge import Score, ScorePlan, plan_score, score_model
from tacit.learning.scoring.scorable import Freshness, Scoring, freshness, rows_used, scoring_of
from tacit.privacy import Number, decimal_meaning
from tacit.query import PLACES, Frame, SomeUnits, TableRows, relation_mark


class Holdout:
    """A protected table in two: `training`, to learn from, and `rest`, to score on.

    `share` of the units, about, are in the rest. The same table, share and seed give the same two sides for ever; a
    larger share only moves units from training to the rest.

    >>> holdout = Holdout(people, share=0.2)                          # doctest: +SKIP
    >>> model = AdditiveClassifier(epsilon=1).fit(holdout.training, target="income")  # doctest: +SKIP
    >>> holdout.score(model, epsilon=0.5)                             # doctest: +SKIP
    """

    def __init__(self, table: Table, share: Number = 0.2, *, seed: int | str = 0) -> None:
        self.share = decimal_meaning(share, name="share")
        self.table = _whole_table(table)
        self.seed = seed
        cut = int(self.share * PLACES)
        if not 0 < cut < PLACES:
            raise InvalidParameter(
                "share must be between 0 and 1: the part of the units that is set aside\nhint: share=0.2"
            )
        self.training = units_between(table, f"holdout {seed}", cut, PLACES)
        self.rest = units_between(table, f"holdout {seed}", 0, cut)

    def __repr__(self) -> str:
        name = self.table.session.declaration.name
        return f"<holdout of '{name}': about {float(self.share):.4g} of its units are set aside, seed {self.seed!r}>"

    def plan(self, model: Any, epsilon: Number, delta: Number | None = None, **options: Any) -> ScorePlan:
        """Return what a score would cost and how far off it may be, for free."""
        return plan_score(self.rest, scoring_of(model, self.rest), epsilon, delta, **options)

    def score(
        self,
        model: Any,
        epsilon: Number,
        delta: Number | None = None,
        *,
        target: str | None = None,
        where: str | None = None,
        largest_error: Number | None = None,
        even_if_seen: bool = False,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Score:
        """Return how well a model does on the people who were set aside, each measure with its ±: one charge.

        Of two classes: accuracy, log loss, AUC and calibration; of several: all but AUC; of numbers: RMSE, MAE and R².
        A model that has seen these people is refused; with `even_if_seen` it is scored, and the score says so.
        `largest_error` is for numbers: a larger error counts as this one, and the others are measured better.
        """
        scoring = scoring_of(model, self.rest, target)
        is_fresh = self._freshness(scoring, even_if_seen=even_if_seen)
        plan = plan_score(self.rest, scoring, epsilon, delta, where=where, largest_error=largest_error)
        return score_model(self.rest, scoring, plan, is_fresh, analyst=analyst, request_id=request_id)

    def _freshness(self, scoring: Scoring, *, even_if_seen: bool) -> Freshness:
        found = freshness(scoring.fitted_on, rows_used(self.rest))
        if found != "seen" or even_if_seen or scoring.fitted_on is None:
            return found
        raise QueryRefused(
            f"this model was fitted on {scoring.fitted_on.words}, and would be scored on people it was fitted on: the"
            " score would be too good"
            "\nhint: fit it on holdout.training of this very holdout; or score it all the same, even_if_seen=True, and"
            " the score says that it is not fresh"
        )


def units_between(table: Table, purpose: str, first: int, end: int, **dealt: Any) -> Table:
    """Return the units of a table with a place in a range, as a table; they may be dealt to hands.

    The public salt is the same on every day, and another for each purpose and each relation of the table. If rows are
    units, all columns that can be read identify a row, in one order.
    """
    session, declaration = table.session, table.session.declaration
    columns: tuple[str, ...] = ()
    if declaration.unit_column is None:
        columns = tuple(sorted(name for name, facts in declaration.columns.items() if facts.type != "other"))
        if not columns:
            raise QueryRefused("no column of this table can be read\nhint: declare their types, columns={...}")
    mark = "" if session.relation is None else relation_mark(session.relation)
    salt = f"{purpose}\n{declaration.name}\n{declaration.version}\n{mark}"
    source = session.relation or TableRows(declaration.name)
    about = session.about(SomeUnits(source, salt, first, end, columns, **dealt))
    return Table(about, Frame(about.declaration))


def _whole_table(table: object) -> Table:
    """Return a local and whole table, or refuse with the right way."""
    if not isinstance(table, Table):
        raise InvalidParameter(
            f"a holdout is made of a protected table, not of a {type(table).__name__}"
            "\nhint: Holdout(tacit.table(...)); a table on a server is scored there"
        )
    if table.frame != Frame(table.session.declaration):
        raise QueryRefused(
            "a holdout is made of a whole table\nhint: Holdout(table) first, and filters in the question or the fit"
        )
    return table
