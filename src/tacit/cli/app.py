"""The command line's door: the list of commands, `--version`, and how an error reaches a person.

A command's module loads its imports when it runs. An error of ours is its message on stderr and an exit code; of other
errors only the class is printed, since their texts may quote a row.
"""

import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import tacit
from tacit.cli import (
    ask,
    audit,
    budget,
    catalog,
    demo,
    docs,
    explain,
    learn,
    ledger,
    local,
    model,
    people,
    running,
    serve,
    sign_in,
    synthesize,
)
from tacit.cli.outside import Commands
from tacit.cli.screen import say
from tacit.errors import BudgetExceeded, EngineError, LargeEpsilonWarning, NoRandomness, SelfTestFailed, TacitError

GARBAGE_AFTER = 100_000
EXIT_UNEXPECTED = 1
EXIT_REFUSED = 2
EXIT_BUDGET = 3
EXIT_FAILED = 4

app: typer.Typer = typer.Typer(
    name="tacit",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    epilog=(
        "Exit codes: 0 answered, 2 refused (the message says what to write instead), 3 the budget has no room, "
        "4 charged and then failed (the charge stands), 5 an audit refuted a claim, 1 anything unexpected."
    ),
)
app.command(name="demo")(demo.demo)
app.command(name="docs")(docs.docs)
app.command(name="init")(catalog.init)
app.command(name="tables")(catalog.tables)
app.command(name="ask")(ask.ask)
app.command(name="plan")(ask.plan)
app.command(name="learn")(learn.learn)
app.command(name="facts")(learn.facts)
app.command(name="dummy")(learn.dummy)
app.command(name="synthesize")(synthesize.synthesize)
app.add_typer(model.app, name="model")
app.add_typer(running.app, name="running")
app.add_typer(budget.app, name="budget")
app.add_typer(people.app, name="people")
app.add_typer(ledger.app, name="ledger")
app.add_typer(local.app, name="local")
app.command(name="serve")(serve.serve)
app.command(name="mcp")(serve.mcp)
app.command(name="sign-in")(sign_in.sign_in)
app.command(name="certificate")(ledger.certificate)
app.command(name="note")(ledger.note)
app.command(name="explain")(explain.explain)
app.command(name="tradeoff")(explain.tradeoff)
app.add_typer(audit.app, name="audit")
app.command(name="selftest")(audit.selftest)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 (the framework hands it over by position)
    if wanted:
        say(f"tacit {tacit.__version__}")
        raise typer.Exit


@app.callback()
def tacit_command(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Answer questions about a table of people without revealing anyone in it.

    Every answer is differentially private: it would look nearly the same had any one person not been in the table.

    **Start here**

    `tacit demo` shows what it does, in a few seconds and on made-up data.

    `tacit init` writes a tacit.toml that declares a table; `tacit tables` lists what it declares.

    `tacit plan` shows what a question would cost and give, for free; `tacit ask`, with the same words, answers it.

    A question learns the bounds it needs, and keeps them: `tacit facts` shows them, `tacit learn` learns ahead of time.

    `tacit model` learns private models: fit, read, predict, export.

    `tacit ask --help` explains one command; each has examples. `tacit docs` lists the pages that came with it.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command with `arguments`, or with the process's own, and exit with its code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        gc.set_threshold(GARBAGE_AFTER)  # collecting garbage among all the imports took a tenth of a command's time
    try:
        with _warnings_in_words():
            app(args=given, prog_name="tacit")
    except TacitError as error:
        say(f"tacit: {error}", err=True)
        sys.exit(_exit_code(error))
    except Exception as error:
        if os.environ.get("TACIT_DEBUG"):
            raise
        say(
            f"tacit: unexpected {type(error).__name__}; its text is withheld, since it may quote a row\n"
            "hint: set TACIT_DEBUG=1 to see it",
            err=True,
        )
        sys.exit(EXIT_UNEXPECTED)


@contextmanager
def _warnings_in_words() -> Iterator[None]:
    """Write our own warning as one line to stderr, once; others stay as they are."""
    shown: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", LargeEpsilonWarning)
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *position: Any, **more: Any) -> None:
            if not issubclass(category, LargeEpsilonWarning):
                usual(message, category, *position, **more)
            elif str(message) not in shown:
                shown.add(str(message))
                say(f"tacit: warning: {message}", err=True)

        warnings.showwarning = show
        yield


def _exit_code(error: TacitError) -> int:
    if isinstance(error, BudgetExceeded):
        return EXIT_BUDGET
    if isinstance(error, SelfTestFailed):
        return EXIT_UNEXPECTED
    return EXIT_FAILED if isinstance(error, EngineError | NoRandomness) else EXIT_REFUSED
