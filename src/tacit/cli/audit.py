"""`tacit audit`: tries to refute the privacy claim of a mechanism, a question or any callable; it spends nothing.

`tacit selftest`: whether this installation works, in seconds.
"""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tacit.cli.ask import check_output
from tacit.cli.options import AskOptions, argument, flag, open_question, option, required, with_options
from tacit.cli.screen import check_plot, say, working, write_text
from tacit.errors import InvalidParameter, SelfTestFailed, json_text

if TYPE_CHECKING:
    from tacit.auditing import AuditResult


EXIT_VIOLATED = 5
MECHANISM = "mechanism"
SURE = "0.999999"

Draws = Annotated[int | None, typer.Option(metavar="N", help="How many draws of each input.")]
Confidence = Annotated[str, typer.Option(metavar="P", help="How sure a refutation must be.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the finding as JSON.")]
Plot = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Draw both histograms and the loss, as .png, .svg or .html by its ending."),
]


class _MechanismFirst(TyperGroup):
    """A group that takes an unknown command as a mechanism: `tacit audit laplace`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Read `laplace --epsilon 1` as `mechanism laplace --epsilon 1`."""
        return super().resolve_command(ctx, args if args[0] in self.commands else [MECHANISM, *args])


app: typer.Typer = typer.Typer(cls=_MechanismFirst, no_args_is_help=True, rich_markup_mode="markdown")


def _list_mechanisms(wanted: bool) -> None:  # noqa: FBT001 (the framework hands it over by position)
    if wanted:
        from tacit.auditing import SUBJECTS

        width = max(map(len, SUBJECTS))
        for subject in SUBJECTS.values():
            loss = f"δ = {float(subject.delta):g}; " if subject.delta else ""
            say(f"{subject.name:<{width}}  {loss}{subject.inputs}")
        raise typer.Exit


@app.callback()
def audit(
    *,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the mechanisms and stop.", callback=_list_mechanisms, is_eager=True),
    ] = False,
) -> None:
    """Look for a loss above the claim, by what comes out: on inputs the audit makes, spending nothing.

    `tacit audit laplace --epsilon 1` audits a mechanism of ours (`tacit audit --list` names them), and
    `tacit audit laplace --epsilon 1 --shortage 0.1` one with 10 % too little noise, which it must see.

    `tacit audit ask visits.parquet "SELECT ..." --unit patient_id ...` takes the words of `tacit ask` and audits that
    question on made-up neighbouring tables: none of your rows is read, and the audit is free.

    `tacit audit callable mine:noisy_count --d0 '[1, 2]' --d1 '[1]' --epsilon 1` audits your function.

    Exit codes: 0 no loss above the claim was found, 5 the claim is violated.
    """


@app.command(name=MECHANISM, hidden=True)
@with_options
def mechanism(
    name: str = argument("", "A mechanism; `tacit audit --list` names them."),
    *,
    epsilon: str = required("E", "The loss that is claimed."),
    delta: str | None = option("D", help="The delta that is claimed, for those with one."),
    shortage: str = option("S", help="Plant a fault: this fraction of the noise missing.", default="0"),
    draws: Draws = None,
    confidence: Confidence = SURE,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Audit one of our mechanisms on a pair of inputs that tries it.

    Example: `tacit audit laplace --epsilon 1 --shortage 0.1`
    """
    from tacit.auditing import audit_mechanism

    check_plot(plot)
    with working("drawing"):
        found = audit_mechanism(
            name, epsilon=epsilon, delta=delta, shortage=shortage, draws=draws, confidence=confidence
        )
    _show(found, as_json=as_json, plot=plot)


@app.command(name="all")
@with_options
def audit_all(
    *,
    epsilon: str = option("E", help="The loss that is claimed.", default="1"),
    draws: Draws = None,
    as_json: AsJson = False,
) -> None:
    """Audit every mechanism we ship, one line each; a minute or two.

    Example: `tacit audit all --epsilon 1`
    """
    from tacit.auditing import SUBJECTS, audit_mechanism

    violated, records = False, {}
    width = max(map(len, SUBJECTS))
    for name in SUBJECTS:
        found = audit_mechanism(name, epsilon=epsilon, draws=draws)
        violated, records[name] = violated or found.violated, found.to_dict()
        if not as_json:
            word = "VIOLATED" if found.violated else "ok"
            say(
                f"{name:<{width}}  {word:<8}  demonstrated ε ≥ {found.demonstrated:.3f} of ε = {found.claimed:g}"
                f" in {found.draws:,} draws"
            )
    if as_json:
        say(json_text(records))
    raise typer.Exit(EXIT_VIOLATED if violated else 0)


@app.command(name="ask")
@with_options
def audit_ask(options: AskOptions) -> None:
    """Audit your question on made-up neighbouring tables: no row is read, and the audit is free.

    The options are those of `tacit ask`. First the plan runs without noise on tables that differ by one made-up
    person, which must not move any part farther than declared; then the noisy answers are drawn many times.

    `tacit audit ask visits.parquet "SELECT ward, COUNT(*) FROM visits GROUP BY ward" --unit patient_id
    --rows-per-unit 3 --groups-per-unit 2 --budget 2 --delta 1e-6 --epsilon 1`
    """
    from tacit.auditing import audit_plan
    from tacit.numbers import confidence_meaning

    check_output(options)
    if options.format not in ("table", "json"):
        raise InvalidParameter("an audit is text, without rows\nhint: --format table or --format json")
    with working("auditing"):
        question = open_question(options, to_plan=True)
        plan = question.plan(**options.spending(is_free=question.is_free))
        found = audit_plan(
            plan.only_plan,
            question.session.declaration,
            question.query,
            draws=None,
            confidence=confidence_meaning(SURE),
        )
    if options.plot is not None:
        found.plot(options.plot)
    write_text(found.to_json() if options.format == "json" else str(found), options.output)
    if found.violated:
        raise typer.Exit(EXIT_VIOLATED)


@app.command(name="callable")
@with_options
def audit_callable(
    target: str = argument("MODULE:FUNCTION", "A function of one input."),
    *,
    d0: str = required("JSON", "One input, as JSON; other input is read as text."),
    d1: str = required("JSON", "A neighbouring input."),
    epsilon: str = required("E", "The loss that is claimed."),
    delta: str = option("D", help="The delta that is claimed.", default="0"),
    draws: Draws = None,
    confidence: Confidence = SURE,
    seconds: float = option("S", help="The seconds to audit a function that is too slow for all draws.", default=60.0),
    batch: bool = flag(help="The function takes (input, n) and returns n outputs.", name="--batch"),
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Audit any function that can be imported from here.

    Example: `tacit audit callable mine:noisy_count --d0 '[1, 2]' --d1 '[1]' --epsilon 1`
    """
    import tacit

    check_plot(plot)
    found = tacit.audit(
        _import_function(target),
        _read_input(d0),
        _read_input(d1),
        epsilon=epsilon,
        delta=delta,
        draws=120_000 if draws is None else draws,
        confidence=confidence,
        seconds=seconds,
        batch=batch,
    )
    _show(found, as_json=as_json, plot=plot)


def _import_function(target: str) -> Any:
    import importlib
    import sys

    module, _, name = target.partition(":")
    if not module or not name.isidentifier():
        raise InvalidParameter("a callable is named MODULE:FUNCTION\nhint: e.g. mine:noisy_count for mine.py here")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in this folder, as `python -m` would find it
    importlib.invalidate_caches()  # the module may be newer than Python's cache of the folder
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError as missing:
        raise InvalidParameter(
            f"'{module}' cannot be imported: {type(missing).__name__}\nhint: run this in the folder that holds it"
        ) from missing
    if found is None:
        raise InvalidParameter(f"'{module}' does not define '{name}'\nhint: check the name after the colon")
    return found


def _read_input(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or nested too deep to be an input
        return text


def _show(found: "AuditResult", *, as_json: bool, plot: str | None) -> None:
    if plot is not None:
        found.plot(plot)
    say(found.to_json() if as_json else str(found))
    if found.violated:
        raise typer.Exit(EXIT_VIOLATED)


@with_options
def selftest(
    *,
    compiled: bool = flag(help="also check the kernel's machine code, if it is compiled", name="--compiled"),
) -> None:
    """Check that this installation works: randomness, noise tables, engine and ledger. The check takes a few seconds,
    uses made-up rows and a ledger in memory, and spends no budget.

     Run it after an install or an update, and before
    the first answer on a new machine. A check that is impossible here is reported as skipped.

    Exit codes: 0 all is well, 1 a check failed: then do not answer questions with this installation.

    Example: `tacit selftest`; from Python, `tacit.auditing.run_selftest()` yields the same findings.
    """
    from tacit.auditing import run_selftest

    failed = 0
    for finding in run_selftest(compiled=compiled):
        say(str(finding))
        failed += not finding.passed
    if failed:
        raise SelfTestFailed(
            f"{failed} of the checks failed, so no answer of this installation can be relied on"
            "\nhint: install tacit again, with its dependencies, and run `tacit selftest`; if it still fails, report it"
        )
