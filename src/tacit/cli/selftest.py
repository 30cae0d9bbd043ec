"""`tacit selftest`: whether this installation works, in seconds."""

from typing import Annotated

import typer

from tacit.cli.screen import say
from tacit.errors import SelfTestFailed


def selftest(
    compiled: Annotated[
        bool, typer.Option("--compiled", help="also check the kernel's machine code, if it is compiled")
    ] = False,
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
