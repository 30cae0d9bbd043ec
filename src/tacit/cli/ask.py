"""`tacit ask` answers a question from the command line; `tacit plan` shows what the answer would cost and give.

Both take the same options (`options.py`). An answer is charged to the ledger before a row is read. A plan is free
and reads no row.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.options import (
    FORMATS,
    AskOptions,
    TableOptions,
    open_question,
    opening,
    option_of,
    plan_question,
    with_options,
)
from tacit.cli.screen import check_plot, check_writable, connected, say, working, write_text
from tacit.errors import InvalidParameter, json_text

if TYPE_CHECKING:
    from tacit.answer import Answer


EXIT_CHARGED = 4
EXIT_INTERRUPTED = 130


@with_options
def ask(options: AskOptions) -> None:
    """Ask a table in SQL and get a private answer, with an error bar on every cell.

    The charge is kept in the ledger before a row is read; the same question asked again is free.

    With a tacit.toml in the folder (`tacit init` writes one):

    `tacit ask pay "SELECT state, AVG(income) FROM pay GROUP BY state" --epsilon 1 --plot pay.png`

    Without one, for a table that the ledger does not know yet:

    `tacit ask pay.parquet "SELECT state, AVG(income) FROM pay GROUP BY state" --unit person_id --budget 3 --delta 1e-6
    --epsilon 1`

    Of a table on a server, with the token in $TACIT_TOKEN:

    `tacit ask visits "SELECT COUNT(*) FROM visits" --epsilon 1 --server https://data.example.org`

    How much one person may count for is learned by the first question, for a part of its epsilon, and kept.

    Exit codes: 0 answered, 2 refused, 3 the budget has no room, 4 charged and then failed.
    """
    check_output(options)
    try:
        answer = _answer_to(options)
    except KeyboardInterrupt as stopped:
        charged = str(stopped)  # the session's note on a charge that stands
        say(f"\ntacit: {charged or 'interrupted before the charge; no charge was made and no row was read'}", err=True)
        raise typer.Exit(EXIT_CHARGED if charged else EXIT_INTERRUPTED) from None
    write_answer(answer, options)


def _answer_to(options: AskOptions) -> "Answer":
    with working("working"):
        words: dict[str, Any] = {"request_id": options.request_id, **options.flags}
        if options.server is not None:  # which decides whether the question is free
            question = question_there(options)
            return question.answer(**words, **options.spending(is_free=True))  # type: ignore[no-any-return]
        opened = opening()
        plan_question(options, opened)  # a budget is for life: it is not declared by a question that is refused
        question = open_question(options, opened, to_plan=False)
        found: Answer = question.answer(analyst=options.analyst, **words, **options.spending(is_free=question.is_free))
        return found


def question_there(options: AskOptions) -> Any:
    """Return the question to a table on a server, where its curator declares it; the token is in $TACIT_TOKEN."""
    for each in fields(TableOptions):
        if each.name not in ("source", "delta", "between") and getattr(options, each.name) != each.default:
            option = "--try" if each.name == "try_out" else option_of(each.name)
            raise InvalidParameter(
                f"{option} is declared on the server, and cannot be used with --server\nhint: leave it out; "
                "ask the curator"
            )
    words = {name: given or None for name, given in options.sql_words.items()}
    return connected(options.server or "")[options.source].sql(options.sql, **words)


def check_output(options: AskOptions) -> None:
    """Refuse, before the charge, an unknown format, and a file or picture that could not be written."""
    if options.format not in FORMATS:
        raise InvalidParameter(f"--format must be one of {', '.join(FORMATS)}")
    check_plot(options.plot)
    if options.output is None:
        if options.format == "parquet":
            raise InvalidParameter("--format parquet needs a file\nhint: --output answer.parquet")
        return
    check_writable(options.output)


def write_answer(answer: "Answer", options: AskOptions) -> None:
    """Print the answer, or write it to the file asked for; draw it if asked."""
    if options.plot is not None:
        answer.plot(options.plot)
    if options.format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(answer.to_arrow(), options.output)
        return
    from tacit.answer import Answer, text_table

    is_answer = isinstance(answer, Answer)  # a question about public facts needs no other options
    written: dict[str, Callable[[], str]] = {
        "table": partial(text_table, answer, more="More: --format details") if is_answer else answer.__str__,
        "details": answer.details if is_answer else answer.__str__,
        "json": answer.to_json,
        "csv": answer.to_csv,
    }
    write_text(written[options.format](), options.output, is_data=options.format == "csv")


@with_options
def plan(options: AskOptions) -> None:
    """Show the cost and the expected error of an answer: free, and no row is read.

    The options are those of `tacit ask`. With --budget the ledger is not changed, so budgets can be tried;
    without it, the plan uses the budget in the ledger.

    With a tacit.toml in the folder: `tacit plan pay "SELECT COUNT(*) FROM pay" --epsilon 1`

    Without one:

    `tacit plan pay.parquet "SELECT state, AVG(income) FROM pay GROUP BY state" --unit person_id --budget 3 --delta 1e-6
    --epsilon 1`
    """
    check_output(options)
    if options.format not in ("table", "json"):
        raise InvalidParameter("a plan is text, without rows\nhint: --format table or --format json")
    if options.plot is not None:
        raise InvalidParameter("a plan has no numbers to draw\nhint: --plot works with tacit ask")
    is_here = options.server is None
    report = (
        plan_question(options, opening()) if is_here else question_there(options).plan(**options.spending(is_free=True))
    )
    text = str(report)
    if options.format == "json":
        text = json_text({"plan": text.splitlines(), "loss": str(report.loss)})
    write_text(text, options.output)
