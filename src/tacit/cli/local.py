"""`tacit local`: reports from people who send no true answers, and estimates from them.

`choose` shows the protocol with the least error, `report` perturbs answers on people's machines, `estimate` counts
reports.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import argument, flag, option, with_options
from tacit.cli.screen import check_plot, say, working
from tacit.errors import InvalidParameter, json_text
from tacit.files import read_small

if TYPE_CHECKING:
    from tacit.local import Collector, Survey

app: typer.Typer = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, no_args_is_help=True)

Epsilon = Annotated[str, typer.Option(metavar="E", help="The loss of one report for its sender.")]
Domain = Annotated[str | None, typer.Option("--domain", metavar="FILE", help="The public list of answers, one a line.")]
Size = Annotated[int | None, typer.Option("--size", metavar="K", help="Or how many: answers are 0 to K - 1.")]
Between = Annotated[
    str | None, typer.Option("--between", metavar="LOW:HIGH", help="Or a range of numbers, for their mean.")
]

PIECE = 1 << 16
BYTES_MAX = 1 << 30  # of a list of answers


@app.callback()
def local() -> None:
    """Collect from people who do not trust the collector: each answer is perturbed before it is sent."""


@app.command()
@with_options
def choose(
    *,
    epsilon: Epsilon,
    people: int = option("N", help="About how many will report.", default=10_000),
    domain: Domain = None,
    size: Size = None,
    between: Between = None,
    delta: str | None = option("D", help="Also show the central loss, if reports are shuffled."),
) -> None:
    """Show which protocol errs least, and by how much. Free.

    Example: `tacit local choose --size 100 --epsilon 1 --people 10000`
    """
    from tacit.local import choose as choose_protocol

    words = _question(domain, size, between)
    chosen = choose_protocol(epsilon=epsilon, people=people, **words)
    say(str(chosen))
    if delta is not None:
        from tacit.local import central_guarantee, make_survey

        survey = make_survey(epsilon=epsilon, protocol=chosen.protocol, **words)
        guarantee = central_guarantee(survey, reports=people, delta=delta, unlinkable=True)
        say(f"Shuffled, and if reports cannot be linked to their senders: {guarantee.loss} for all of them.")


@app.command()
@with_options
def report(
    values: Path | None = argument("VALUES", "Answers, one a line; else stdin.", default=None),
    *,
    epsilon: Epsilon,
    protocol: str = option("NAME", help="A protocol, or auto for the best.", default="auto"),
    domain: Domain = None,
    size: Size = None,
    between: Between = None,
    epoch: str = option("TEXT", help="The round these reports belong to.", default=""),
    output: Path | None = option(
        "FILE", help="The file to write, .jsonl, .parquet or .bin; JSON lines on stdout if left out."
    ),
) -> None:
    """Turn answers into reports: perturbed here, before anything is sent.

    Example: `tacit local report --protocol auto --epsilon 1 --domain names.txt < values > reports.jsonl`
    """
    from tacit.local import Randomizer, header_line, report_lines, write_reports

    client = Randomizer(epsilon=epsilon, protocol=protocol, epoch=epoch, **_question(domain, size, between))
    answers = _answers(client.survey, _lines(values))
    with working("perturbing"):
        if output is not None:
            write_reports(client.reports(answers), output)
            return
        client.survey.question.read(answers, _NoCoins())  # all are checked before any leaves
        sys.stdout.write(header_line(client.survey) + "\n")
        for start in range(0, len(answers), PIECE):
            sys.stdout.write(report_lines(client.reports(answers[start : start + PIECE])))


@app.command()
@with_options
def estimate(
    files: list[Path] = argument("FILE...", "Files of reports of one survey."),
    *,
    format: str = option("table|json", help="How it is written.", default="table"),
    confidence: str = option("P", help="How often an interval holds the truth.", default="0.95"),
    plot: str | None = option("FILE", help="Also draw it, as .png, .svg or .html."),
    fakes: str | None = option("SHARE", help="Also print how far this share of fakes could move a count."),
    repeats: bool = flag(help="Count a repeated report every time.", name="--repeats"),
) -> None:
    """Estimate from reports what everyone answered, with intervals; a report counts once.

    Example: `tacit local estimate reports.jsonl --format json`
    """
    if format not in ("table", "json"):
        raise InvalidParameter("an estimate is shown as a table or as JSON\nhint: --format table or --format json")
    check_plot(plot)
    with working("counting"):
        collector = _collect(files, deduplicate=not repeats)
        found = collector.estimate(confidence)
        shown = json_text(found.to_dict()) if format == "json" else str(found)
    say(shown)
    if fakes is not None and format == "table":
        say(_worst(found, fakes))
    if plot is not None:
        if not hasattr(found, "plot"):
            raise InvalidParameter("only counts of one question can be drawn\nhint: leave out --plot")
        found.plot(plot)


class _NoCoins:
    """Zeros instead of random bits, to check answers: the randomized rounding is not used."""

    def words(self, n: int, width: int = 64) -> Any:  # noqa: ARG002
        import numpy as np

        return np.zeros(n, dtype=np.uint64)


def _collect(files: Sequence[Path], *, deduplicate: bool) -> "Collector":
    from tacit.local import Collector, read_survey

    collector = Collector(read_survey(files[0]), deduplicate=deduplicate)
    for file in files:
        collector.add_file(file)
    return collector


def _worst(found: Any, fakes: str) -> str:
    from tacit.numbers import decimal_meaning

    share = float(decimal_meaning(fakes, name="fakes"))
    if not 0 <= share <= 1 or not hasattr(found, "poisoning"):
        raise InvalidParameter("--fakes must be a share from 0 to 1, for counts or a mean\nhint: e.g. --fakes 0.01")
    worst = found.poisoning(share)
    return (
        f"If {share:.3g} of the reports were fakes, an estimate could be off by {worst.down:,.6g} to +{worst.up:,.6g}."
    )


def _question(domain: str | None, size: int | None, between: str | None) -> dict[str, Any]:
    if sum(part is not None for part in (domain, size, between)) != 1:
        raise InvalidParameter(
            "the survey's question is missing\nhint: give one of --domain FILE, --size K and --between LOW:HIGH"
        )
    if size is not None:
        return {"domain": size}
    if domain is not None:
        return {"domain": _lines(Path(domain))}
    low, colon, high = str(between).partition(":")
    if not colon:
        raise InvalidParameter("--between needs two ends\nhint: --between 0:100")
    return {"between": (low, high)}


def _answers(survey: "Survey", lines: list[str]) -> Any:
    """Return lines as answers to the question: text, whole numbers or numbers."""
    from tacit.local import Labels

    if isinstance(survey.question, Labels) and survey.question.names is not None:
        return lines
    kind = int if isinstance(survey.question, Labels) else float
    try:
        return [kind(line) for line in lines]
    except ValueError:
        wanted = f"whole numbers from 0 to {survey.question.size - 1}" if kind is int else "numbers"  # type: ignore[union-attr]
        raise InvalidParameter(f"values must be {wanted}, one a line") from None


def _lines(path: Path | None) -> list[str]:
    try:
        text = sys.stdin.read() if path is None else read_small(path, bytes_max=BYTES_MAX)
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(
            "a list of answers cannot be read\nhint: give a file of text, one answer a line"
        ) from None
    return text.splitlines()
