"""Bugs of models: what is clipped, weighed, counted and noised too little, and numbers that leave without noise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted

Wrong = Callable[[list[Any], list[Any]], list[Any]]


@contextmanager
def _counting(wrong: Wrong) -> Iterator[None]:
    """Let a fit's noisy counts be made with what the exact ones tell."""

    def counts(self: Any, columns: Any = None) -> Any:
        exact = self._rows.counts(columns).values
        noisy = original("Rounds.counts")(self, columns)
        return wrong(noisy, np.split(exact, np.cumsum([len(each) for each in noisy])[:-1]))

    with planted("Rounds.counts", counts):
        yield


@mutant("bins from exact counts", killed_by="M02", published="quantile bins of the data, under a private model")
@contextmanager
def exact_bins() -> Iterator[None]:
    with _counting(lambda _, exact: exact):
        yield


@mutant("centres that begin at rows", killed_by="M02", published="k-means++ on the rows, under a private Lloyd's round")
@contextmanager
def centres_of_rows() -> Iterator[None]:
    def counts(self: Any, asked: Any) -> Any:
        noisy = original("Rounds.grid_counts")(self, asked)
        return np.where(self._rows.grid_counts(asked).values > 0, noisy, 0)

    with planted("Rounds.grid_counts", counts):
        yield


@mutant("sums about centres for a quarter", killed_by="M03", published="a bound on one number, for the whole vector")
@contextmanager
def centres_for_a_quarter() -> Iterator[None]:
    with planted("sums about centres", original("step of a unit") ** 2 // 4):
        yield


@mutant("n exact", killed_by="M02", published="interpret-core's DP-EBM uses the number of rows as it is")
@contextmanager
def exact_people() -> Iterator[None]:
    def scaled(noisy: list[Any], exact: list[Any]) -> list[Any]:
        return [
            each + (int(true.sum()) - int(each.sum())) // len(each) for each, true in zip(noisy, exact, strict=True)
        ]

    with _counting(scaled):
        yield


@mutant(
    "categories read from the data",
    killed_by="M02",
    published="interpret-core's DP-EBM takes the categories that occur; synthesizers take domains from the table",
)
@contextmanager
def categories_that_occur() -> Iterator[None]:
    with _counting(lambda noisy, exact: [np.where(true > 0, each, 0) for each, true in zip(noisy, exact, strict=True)]):
        yield


@mutant("a residual that is not clipped", killed_by="M03", published="gradients summed without clipping each example")
@contextmanager
def unclipped() -> Iterator[None]:
    with in_sql(), planted("clipped residuals", lambda residuals, _: residuals):
        yield


@mutant(
    "each class clipped by itself",
    killed_by="M03",
    published="per-layer clipping charged as if the whole gradient were clipped",
)
@contextmanager
def clipped_apart() -> Iterator[None]:
    with in_sql(), planted("clipped residuals", lambda residuals, clip: np.clip(residuals, -clip, clip)):
        yield


@mutant(
    "a person's rows weigh one each",
    killed_by="M03",
    published="per-example clipping sold as user-level privacy (fast-differential-privacy issue 27)",
)
@contextmanager
def rows_undivided() -> Iterator[None]:
    with in_sql(), planted("a row's part of its unit", lambda numbers, _: numbers):
        yield


@mutant(
    "the intercept is not in the sensitivity",
    killed_by="M03",
    published="a bias or an intercept left out of the norm that is clipped and charged",
)
@contextmanager
def intercept_forgotten() -> Iterator[None]:
    def without(session: Any, epsilon: Any, delta: Any, wanted: Any, **more: Any) -> Any:
        counts, (squared, share) = wanted[0], wanted[1]
        fewer = [counts, (squared * 4 // 5, share)]  # the stage's models have three or four terms
        return original("noise for an additive model")(session, epsilon, delta, fewer, **more)

    with (
        planted("noise for an additive model", without),
        planted("Scores.moves_squared", property(lambda self: len(self.columns) * self.clip**2)),
    ):
        yield


@mutant(
    "moments for the low end of a range",
    killed_by="M03",
    published="diffprivlib issues 104 and 105: a sensitivity made of the lower bound twice",
)
@contextmanager
def low_end_twice() -> Iterator[None]:
    with planted("MomentBlock.most", property(lambda _: original("step of a unit") // 4)):
        yield


@mutant("a sixteenth of the noise", killed_by="M04", published="noise multiplier divided by the batch once too often")
@contextmanager
def little_noise() -> Iterator[None]:
    def narrow(exact: Any, event: Any) -> Any:
        return original("noise of a round")(exact, replace(event, sigma=event.sigma / 16))

    with planted("noise of a round", narrow):
        yield


@mutant(
    "the whole loss for every kind of round",
    killed_by="M05",
    published="several releases of the same rows, each with the noise of all of epsilon",
)
@contextmanager
def whole_loss_each() -> Iterator[None]:
    def too_narrow(session: Any, epsilon: Any, delta: Any, wanted: Any, **more: Any) -> Any:
        made, asked = original("noise for an additive model")(session, epsilon, delta, wanted, **more)
        events = [
            original("noise for an additive model")(session, epsilon, delta, [(squared, type(share)(1))], **more)[0][0]
            for squared, share in wanted
        ]
        return tuple(events) if made else made, asked

    with planted("noise for an additive model", too_narrow):
        yield


@mutant(
    "rows of odd cells weigh one each",
    killed_by="M07",
    published="rows with infinite or missing cells summed by a path of their own, without the weight of their person",
)
@contextmanager
def odd_rows_undivided() -> Iterator[None]:
    with in_sql(), planted("a row's part of its unit", lambda numbers, _: numbers):
        yield


@mutant(
    "a clone with a budget of its own",
    killed_by="M08",
    published="accountants that live in the estimator, and start again with each clone",
)
@contextmanager
def fresh_budgets() -> Iterator[None]:
    def fresh(*_: Any) -> Any:
        return original("open_ledger")(":memory:")

    with planted("ledger of a try", fresh):
        yield


@mutant(
    "a search that is not noticed",
    killed_by="M08",
    published="hyper-parameters chosen by cross-validation on the protected rows, for nothing",
)
@contextmanager
def search_unnoticed() -> Iterator[None]:
    with planted("refuse model selection", lambda _: None):
        yield


@mutant(
    "rows are coded before the charge",
    killed_by="M09",
    published="statistics gathered first, and charged once they turn out to be useful",
)
@contextmanager
def run_first() -> Iterator[None]:
    def eager(session: Any, payment: Any, run: Any, *forms: Any) -> Any:
        run()
        return original("paid_for")(session, payment, run, *forms)

    with planted("paid_for", eager):
        yield


@mutant(
    "a model that knows how many rows it saw",
    killed_by="M10",
    published="n_samples_seen_ and its like, exact, in the attributes of private estimators",
)
@contextmanager
def rows_seen() -> Iterator[None]:
    def knows(model: Any, names: Any, rows: Any) -> None:
        original("what scikit-learn asks of a fit")(model, names, rows)
        source = rows.session.engine.source
        model.n_samples_seen_ = source.fetch(source.table).num_rows

    with planted("what scikit-learn asks of a fit", knows):
        yield


@mutant(
    "teachers share people",
    killed_by="M03",
    published="teachers on overlapping parts of the data in six implementations of PATE-GAN",
)
@contextmanager
def teachers_overlap() -> Iterator[None]:
    def overlapping(self: Any, cells: Any) -> Any:
        several = [np.concatenate([each] * 3) for each in cells[:-1]]
        hands = np.concatenate([(cells[-1].astype(int) + step) % self.count for step in range(3)])
        return original("Lesson.counted")(self, [*several, hands])

    with planted("Lesson.counted", overlapping):
        yield


@contextmanager
def _sides(who: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Let sides and teachers be given by something else than the unit's hash."""

    def wrong(relation: Any, source: Any, unit: Any) -> Any:
        table = source.table.mutate(**{"place of a row": who(source.table, original("typed SQL"))})
        kept = original("units of a side")(relation, replace(source, table=table), "place of a row")
        return replace(kept, table=kept.table.drop("place of a row")) if unit is not None else kept

    with planted("units of a side", wrong):
        yield


@mutant(
    "teachers dealt by row",
    killed_by="M11",
    published="parts of a table by rows, where a person has several, so that one person moves many votes",
)
@contextmanager
def dealt_by_row() -> Iterator[None]:
    with _sides(lambda table, _: table["id"].cast("string") + table["ward"].cast("string")):
        yield


@mutant(
    "a holdout by row order",
    killed_by="M12",
    published="the last fifth of the rows held out: who comes first pushes others over the edge",
)
@contextmanager
def held_out_by_order() -> Iterator[None]:
    with _sides(lambda _, sql: sql.row_number()):
        yield


@mutant(
    "a seen row told as fresh",
    killed_by="M13",
    published="a private score on the training rows, reported as how well a model generalises",
)
@contextmanager
def told_as_fresh() -> Iterator[None]:
    with planted("units apart", lambda *_: True):
        yield


@mutant(
    "a merit of each row",
    killed_by="M14",
    published="a noisy max over scores of rows, with noise for one row, where a person has many",
)
@contextmanager
def merit_of_rows() -> Iterator[None]:
    with planted("a row's part of its unit", lambda numbers, _: numbers):
        yield


@mutant(
    "ranges read from the data",
    killed_by="M15",
    published="diffprivlib takes the bounds from the data, with a warning; synthesizers take exact minima and maxima",
)
@contextmanager
def ranges_of_the_data() -> Iterator[None]:
    def as_they_are(session: Any, names: Any, spend: Any, analyst: Any) -> Any:
        found, wanted, facts, unseen = original("ranges of a fit")(session, names, spend, analyst)
        source = session.engine.source
        rows = source.table
        for name in () if wanted else names:
            (ends,) = source.fetch(rows.agg(low=rows[name].min(), high=rows[name].max())).to_pylist()
            low, high = (type(spend.epsilon)(round(max(-1e6, min(1e6, float(ends[each]))))) for each in ("low", "high"))
            found[name] = replace(found[name], between=(low, high + 1))
        return found, wanted, facts, unseen

    with planted("ranges of a fit", as_they_are):
        yield


@mutant(
    "quotes doubled for every database",
    killed_by="M20",
    published="texts escaped by doubling quotes, where a backslash escapes the closing one (SQL injection)",
)
@contextmanager
def quotes_doubled() -> Iterator[None]:
    with planted("SQL of a database", lambda sql, _: sql):
        yield
