"""`tacit ask --server` and `tacit plan --server`: the same words, asked of a table on a server.

The token is read from TACIT_TOKEN: a command line is seen by every user of the machine.
"""

from typing import TYPE_CHECKING, Any

from tacit.cli.books import connected
from tacit.cli.column_options import named, read_ends, read_matches
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.answer import Answer
    from tacit.cli.options import AskOptions
    from tacit.remote import RemotePlan

# options that are declared on the server by its curator, or follow from the token
DECLARED = {
    "catalog": "--catalog",
    "unit": "--unit",
    "budget": "--budget",
    "same_people_as": "--same-people-as",
    "rows_per_unit": "--rows-per-unit",
    "groups_per_unit": "--groups-per-unit",
    "rows": "--rows",
    "most_rows_per_unit": "--most-rows-per-unit",
    "keys": "--keys",
    "type": "--type",
    "name": "--name",
    "version": "--version",
    "neighbours": "--neighbours",
    "ledger": "--ledger",
    "try_out": "--try",
    "analyst": "--analyst",
}


def ask_server(options: "AskOptions") -> "Answer":
    """Return the answer of a server to the question that these options ask."""
    answer: Answer = _question(options).answer(**_spending(options), request_id=options.request_id, **options.flags)
    return answer


def plan_server(options: "AskOptions") -> "RemotePlan":
    """Return a server's plan of the question that these options ask."""
    plan: RemotePlan = _question(options).plan(**_spending(options))
    return plan


def _question(options: "AskOptions") -> Any:
    for word, option in DECLARED.items():
        if getattr(options, word) not in (None, False):
            raise InvalidParameter(
                f"{option} is declared on the server, and cannot be used with --server\nhint: leave it out; "
                "ask the curator"
            )
    table = connected(options.server or "")[options.source]
    ranges = {name: read_ends(name, ends) for name, ends in named(options.between, "--between", "age=0:120")}
    most = {name: read_matches(number) for name, number in named(options.most, "--most", "wards=2")}
    return table.sql(options.sql, between=ranges or None, dialect=options.dialect, most=most or None)


def _spending(options: "AskOptions") -> dict[str, Any]:
    from tacit.cli.options import spending

    return {
        "delta": options.delta,
        "noise": options.noise,
        "confidence": options.confidence,
        "learn": options.may_learn,
        # without either, the server decides whether the question is free, as public keys are
        **({} if options.epsilon is None and options.error is None else spending(options, None)),
    }
