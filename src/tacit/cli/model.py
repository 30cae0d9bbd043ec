"""`tacit model`: a private model of a table in one command; its later use is free.

`fit` charges once, before a row is read, and keeps the model as a file of JSON: noisy integers and public facts.
`plan` shows the cost of a fit. `show`, `predict` and `sql` read only that file.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import (
    ANSWER,
    LEDGER,
    REQUEST,
    Repeated,
    TableOptions,
    argument,
    flag,
    open_table,
    opening,
    option,
    required,
    with_options,
)
from tacit.cli.screen import check_plot, check_writable, say, working, write_text
from tacit.errors import InvalidParameter, QueryRefused, json_text

if TYPE_CHECKING:
    from tacit.asking import Table

MODELS = ("additive", "linear")

app: typer.Typer = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, no_args_is_help=True)

Saved = Annotated[str, typer.Argument(metavar="MODEL", help="A file that `tacit model fit --save` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=ANSWER)]
Epsilon = Annotated[str, typer.Option(metavar="E", help="The most that it may cost.", rich_help_panel=ANSWER)]
Request = Annotated[str | None, typer.Option(metavar="ID", help=REQUEST, rich_help_panel=LEDGER)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """A model as a command line asks for it."""

    target: str = required("COLUMN", "The column to predict: public keys, or a public range.")
    features: str | None = option("A,B", ANSWER, "The columns to learn from; all with public facts if left out.")
    where: str | None = option("SQL", ANSWER, "Of which rows.")
    model: str = option("|".join(MODELS), ANSWER, "Terms of any shape, or a straight line.", default="additive")
    counts: bool = flag(ANSWER, "The target counts something, and effects multiply.", name="--counts")
    interaction: Repeated = option("A,B", ANSWER, "Two columns with a term together. Can be repeated.")

    @property
    def words(self) -> dict[str, Any]:
        """What `fit` and `plan` of an estimator take."""
        features = None if self.features is None else [each.strip() for each in self.features.split(",")]
        return {"target": self.target, "features": features, "where": self.where}


@dataclass(frozen=True, kw_only=True)
class KeptOptions:
    """What becomes of a fitted model, as a command line asks for it."""

    holdout: str | None = option("SHARE", ANSWER, "Set this share of people aside; `score` scores it.")
    learn: str | None = option("no", ANSWER, "`no` refuses undeclared columns.")
    save: str | None = option("FILE", ANSWER, "Keep the model, as JSON.")
    plot: str | None = option("FILE", ANSWER, "Draw its terms: .png, .svg or .html.")
    json: bool = flag(ANSWER, "Print JSON.", name="--json")


@app.callback()
def model() -> None:
    """Learn private models of a table: fit once, for a charge; read, predict and export for free.

    `tacit model plan visits --target readmitted --epsilon 1` shows the cost of a fit, for free.

    `tacit model fit visits --target readmitted --epsilon 1 --save model.json` fits and keeps it.

    `tacit model predict model.json rows.csv` predicts for rows that you may see.
    """


@app.command()
@with_options
def fit(
    options: TableOptions, wanted: ModelOptions, kept: KeptOptions, *, epsilon: Epsilon, request_id: Request = None
) -> None:
    """Fit a private model to a table: charged once, before a row is read; the same fit again is free.

    A target with public keys, or of texts, is classified; any other is a number. Undeclared ranges and keys are
    learned first, for a part of epsilon.

    With a tacit.toml in the folder, fitted, drawn and kept, and a fifth of the people set aside to score it:

    `tacit model fit visits --target readmitted --epsilon 1 --holdout 0.2 --plot terms.png --save model.json`

    Without one:

    `tacit model fit adult.parquet --target income --keys 'income=<=50K,>50K' --features age,hours --between age=17:90
    --between hours=1:99 --unit ROW --budget 3 --delta 1e-6 --epsilon 1 --save model.json`
    """
    check_writable(kept.save)
    _check_drawable(kept.plot, wanted.model)
    with working("learning"):
        opened = opening()
        planned, _ = open_table(options, opened, to_plan=True)
        estimator = _estimator(planned, epsilon, wanted)
        words: dict[str, Any] = {**wanted.words, "learn": _learn(kept.learn)}
        estimator.plan(_side(planned, kept.holdout), **words)  # a refused fit declares no budget
        table, _ = open_table(options, opened, to_plan=False)
        estimator.fit(_side(table, kept.holdout), **words, analyst=options.analyst, request_id=request_id)
    _tell(table, estimator, kept)


@app.command()
@with_options
def plan(options: TableOptions, wanted: ModelOptions, *, epsilon: Epsilon, as_json: Json = False) -> None:
    """Show the columns and the cost of a fit: free, and no row is read.

    The options are those of `tacit model fit`. Example: `tacit model plan visits --target readmitted --epsilon 1`
    """
    table, _ = open_table(options, opening(), to_plan=True)
    text = str(_estimator(table, epsilon, wanted).plan(table, **wanted.words))
    say(json_text({"plan": text.splitlines()}) if as_json else text)


@app.command()
@with_options
def score(
    saved: Saved,
    options: TableOptions,
    *,
    epsilon: Epsilon,
    holdout: str = option(
        "SHARE", help="The share that was set aside when it was fitted.", name="--holdout", default="0.2"
    ),
    even_if_seen: bool = flag(help="Score people it was fitted on too, and say so.", name="--even-if-seen"),
    as_json: Json = False,
    request_id: Request = None,
) -> None:
    """Score a saved model on people who were set aside: charged once, every measure with its ±.

    Fit with `--holdout 0.2`, and score with the same share and the same words for the table.

    Example: `tacit model score model.json visits --epsilon 0.5`
    """
    from tacit.learning import Holdout, load

    found = load(saved)
    with working("scoring"):
        table, _ = open_table(options, opening(), to_plan=False)
        scored = Holdout(table, share=holdout).score(
            found, epsilon=epsilon, even_if_seen=even_if_seen, analyst=options.analyst, request_id=request_id
        )
    if as_json:
        measures = {name: {"value": each.value, "margin": each.margin} for name, each in scored.measures.items()}
        say(json_text({"measures": measures, "people": scored.people.value, "fresh": scored.is_fresh}))
    else:
        say(str(scored))


@app.command()
def show(saved: Saved, *, as_json: Json = False) -> None:
    """Show a saved model: its terms with their ±. Free, and reads only the file.

    Example: `tacit model show model.json`
    """
    from tacit.learning import load, model_text

    found = load(saved)
    if as_json:
        typer.echo(model_text(found), nl=False)
    else:
        say(described(found))


@app.command()
@with_options
def predict(
    saved: Saved,
    rows: str = argument("ROWS", "A Parquet or CSV file of rows that you may see."),
    *,
    chances: bool = flag(help="Of classes: the probability of each.", name="--chances"),
    output: str | None = option("FILE", help="Write it to a CSV file."),
    as_json: Json = False,
) -> None:
    """Predict for rows that you may see: free, since the model is already private.

    A prediction for a person's row reveals something about that row: protect predictions like the rows.

    Example: `tacit model predict model.json rows.csv --chances`
    """
    from tacit.learning import load

    check_writable(output)
    found = load(saved)
    frame = _unprotected_rows(rows, [str(each) for each in getattr(found, "feature_names_in_", ())])
    columns = _predicted(found, frame, chances=chances)
    if as_json:
        text = json.dumps([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    else:
        text = _csv(columns)
    write_text(text, output, is_data=True)


@app.command()
@with_options
def sql(
    saved: Saved,
    dialect: str | None = option("DATABASE", help="The SQL dialect: duckdb, postgres, sqlite, spark, ..."),
) -> None:
    """Print a saved model as SQL, escaped for a database: a SELECT, or an expression if the model is linear.

    Example: `tacit model sql model.json --dialect postgres`
    """
    from tacit.learning import load

    found = load(saved)
    if not hasattr(found, "to_sql"):
        raise QueryRefused("this model is not written as SQL\nhint: tacit model predict reads it as it is")
    typer.echo(found.to_sql(dialect=dialect))


def _tell(table: "Table", estimator: Any, kept: KeptOptions) -> None:
    """Keep and draw a fitted model if requested, and print it."""
    if kept.plot is not None:
        estimator.plot(path=kept.plot)
    if kept.save is not None:
        estimator.save(kept.save)
    if kept.json:
        from tacit.learning import model_text

        typer.echo(model_text(estimator), nl=False)
        return
    say(described(estimator))
    if getattr(estimator, "learned_", ""):
        say(estimator.learned_)
    say(_spent(table, estimator))
    if kept.save is not None:
        say(f"kept in {kept.save}: tacit model show {kept.save}; tacit model predict {kept.save} rows.csv")
    if kept.plot is not None:
        say(f"drawn in {kept.plot}")


def described(estimator: Any) -> str:
    """Return a fitted model in words: a summary, or its largest effects and then every bin of every term."""
    return str(estimator.summary()) if hasattr(estimator, "summary") else f"{estimator.explain()}\n\n{estimator.terms_}"


def _estimator(table: "Table", epsilon: str, wanted: ModelOptions) -> Any:
    """Return the estimator that a target's public facts ask for."""
    from tacit.learning import AdditiveClassifier, AdditiveRegressor, LinearRegression

    if wanted.model not in MODELS:
        raise InvalidParameter(f"--model must be one of {', '.join(MODELS)}")
    pairs: list[Any] = [tuple(each.split(",")) for each in wanted.interaction or ()]
    if wanted.model == "linear":
        if pairs or wanted.counts:
            raise InvalidParameter("--interaction and --counts are of additive models\nhint: leave out --model linear")
        return LinearRegression(epsilon)
    facts = table.frame.declaration.columns.get(wanted.target)
    if wanted.counts or (facts is not None and facts.keys is None and facts.type not in ("bool", "text")):
        return AdditiveRegressor(epsilon, loss="poisson" if wanted.counts else "squared", interactions=pairs)
    return AdditiveClassifier(epsilon, interactions=pairs)


def _side(table: "Table", holdout: str | None) -> "Table":
    """Return the people to learn from: all of them, or those that are not set aside."""
    from tacit.learning import Holdout

    return table if holdout is None else Holdout(table, share=holdout).training


def _learn(written: str | None) -> bool | None:
    if written not in (None, "no"):
        raise InvalidParameter("--learn must be 'no', or left out")
    return None if written is None else False


def _check_drawable(plot: str | None, model: str) -> None:
    """Refuse, before a charge, a picture that could not be drawn."""
    if plot is not None and model == "linear":
        raise InvalidParameter("--plot draws the terms of additive models\nhint: leave out --model linear")
    check_plot(plot)
    check_writable(plot)


def _spent(table: "Table", estimator: Any) -> str:
    left = table.session.ledger.left(table.session.registered)
    words = f"spent: entry {estimator.receipt_.charge} of the ledger; left: {left}"
    if not estimator.receipt_.durable:
        words += "\ntrying out: no record is kept, so the budget does not protect people after this command ends."
    return words


def _unprotected_rows(path: str, names: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        if path.endswith(".parquet"):
            return parquet.read_table(path, columns=names or None)
        return csv.read_csv(path)
    except (OSError, pa.ArrowException, ValueError):
        raise InvalidParameter(
            f"{path} cannot be read as rows\nhint: a Parquet or CSV file with the model's columns: {', '.join(names)}"
        ) from None


def _predicted(found: Any, frame: Any, *, chances: bool) -> dict[str, list[Any]]:
    if chances:
        if not hasattr(found, "predict_proba"):
            raise InvalidParameter("--chances is of classes, and this model predicts a number\nhint: leave it out")
        return {
            str(name): column.tolist()
            for name, column in zip(found.classes_, found.predict_proba(frame).T, strict=True)
        }
    return {"prediction": found.predict(frame).tolist()}


def _csv(columns: dict[str, list[Any]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
