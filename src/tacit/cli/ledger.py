"""`tacit ledger` shows, verifies and exports the ledger; `tacit certificate` writes and verifies certificates.

Anyone who has a certificate's file can verify it, without the ledger.
"""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.budget import LedgerPath
from tacit.cli.screen import say
from tacit.errors import InvalidParameter
from tacit.files import read_small

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Entry, RegisteredTable


app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False)


@app.callback()
def ledger_command() -> None:
    """Show, verify and export the ledger: every charge, answer, refusal and change of budget."""


@app.command()
def show(
    *,
    last: Annotated[int, typer.Option("--last", metavar="N", help="How many entries, from the end.")] = 20,
    ledger: LedgerPath = None,
) -> None:
    """Show the last entries, one line each.

    Example: `tacit ledger show --last 5`
    """
    from tacit.ledger import open_ledger

    if last < 1:
        raise InvalidParameter("--last must be at least 1")
    with open_ledger(ledger, create=False) as opened:
        tables = {table.id: table for table in opened.tables()}
        first = max(1, opened.length() - last + 1)
        for entry in opened.entries(first):
            say(line(entry, tables))


@app.command()
def verify(*, ledger: LedgerPath = None) -> None:
    """Recompute the chain, its signature and every total; exit 2 and name the fault if anything is wrong.

    Example: `tacit ledger verify --ledger study.db`
    """
    from tacit.ledger import open_ledger

    with open_ledger(ledger, create=False) as opened:
        found = opened.verify()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.kinds.items()))
    say(f"whole: {found.entries:,} entries ({kinds})")
    say(f"head {found.hash}, signed by {found.key}")


@app.command()
def export(
    *,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Where to; without it, to the screen.")] = None,
    ledger: LedgerPath = None,
) -> None:
    """Write every entry as a line of JSON, with its number and hashes.

    Example: `tacit ledger export --output ledger.jsonl`
    """
    from tacit.ledger import BEGINNING, open_ledger

    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger, create=False))
        target = None if output is None else stack.enter_context(Path(output).open("w", encoding="utf-8"))
        previous = BEGINNING
        for entry in opened.entries():
            row = {"number": entry.number, "previous": previous, "hash": entry.hash, "body": entry.body}
            typer.echo(json.dumps(row), file=target)
            previous = entry.hash


@app.command()
def accept(
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why this copy is the one to go on with.")],
    ledger: LedgerPath = None,
) -> None:
    """Go on with a ledger that is older than what this machine has answered from it, for the record.

    Only when the newest copy is lost. What was answered since this copy was made is forgotten: lower the budget by as
    much as it may have spent, with `tacit budget grant`.

    Example: `tacit ledger accept --reason "disk lost, restored last night's backup"`
    """
    from tacit.ledger import open_ledger

    with open_ledger(ledger, create=False, accept=reason) as opened:
        say(f"accepted at entry {opened.length()}, for the record")


@app.command()
def clock(
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why the clock is right now.")],
    ledger: LedgerPath = None,
) -> None:
    """Set a ledger's time to the clock's, for the record.

    After a clock that was far ahead, whose entries hold every period closed until then, or when nobody has used the
    ledger for more than a year. What was charged in a period stays charged to it.

    Example: `tacit ledger clock --reason "the battery was empty, the clock said 2099"`
    """
    from tacit.ledger import open_ledger

    with open_ledger(ledger, create=False) as opened:
        opened.correct_clock(reason)
        say(f"set to the clock at entry {opened.length()}, for the record")


def line(entry: "Entry", tables: "Mapping[str, RegisteredTable]") -> str:
    """Return one entry as a line: number, time, kind, and what it is about."""
    try:
        about = _about(entry.kind, entry.record, tables)
    except (KeyError, TypeError, ValueError, AttributeError):  # a ledger from elsewhere may hold anything
        about = "(cannot be read)"
    kind = "learned" if entry.kind == "fact" else entry.kind
    return f"{entry.number:>7}  {entry.record['time'][:19]}  {kind:8}  {about}"


def _about(kind: str, record: dict[str, Any], tables: "Mapping[str, RegisteredTable]") -> str:
    if kind in {"charge", "answer", "refusal"}:
        table = tables.get(record["table"])
        name = "?" if table is None else table.name
        if kind == "answer":
            return f"{name} for charge {record['charge']}"
        who = f" by {record['analyst']}" if record["analyst"] else ""
        why = f" to learn {record['learns']['words']}" if "learns" in record else ""
        return f"{name}{who} {_cost(record, table)}{why}"
    if kind == "fact":
        table = tables.get(record["table"])
        only = f" (for {record['analyst']} alone)" if record["analyst"] else ""
        return f"{'?' if table is None else table.name} in answer {record['answer']}{only}: {record['words']}"
    if kind == "budget":
        whose = sorted(table.name for table in tables.values() if table.cohort == record["people"])
        return f"{', '.join(whose)} {_budget(record)} {record['reason']}".strip()
    if kind == "table":
        return f"{record['name']} version {record['version']}"
    return str(record["reason"] if kind in {"override", "clock"} else record["ledger"])


def _cost(record: dict[str, Any], table: "RegisteredTable | None") -> str:
    """Return a charge in the words of its answer, as the table's budget counts; bare amounts where there is none."""
    from tacit.accounting import rule_of
    from tacit.ledger import charge_from, spent_words
    from tacit.privacy import from_text, show

    if table is not None:
        return spent_words(charge_from(record), rule_of(table.budget))
    main = ("ε", record["epsilon"]) if record["epsilon"] is not None else ("ρ", record["rho"])
    parts = [main] + ([("δ", record["delta"])] if record["delta"] != "0" else [])
    return ", ".join(f"{sign} = {show(from_text(amount))}" for sign, amount in parts)


def _budget(record: dict[str, Any]) -> str:
    from tacit.ledger import budget_from

    return str(budget_from(record))


CERTIFICATE_BYTES_MAX = 1 << 28


def certificate(
    what: Annotated[
        str, typer.Argument(metavar="NUMBER|verify", help="The answer's entry (or its charge's); or verify.")
    ],
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="With verify: the certificate.")] = None,
    *,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write the fields of the public registry of deployments, as YAML.")
    ] = False,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Where to; without it, to the screen.")] = None,
    ledger: LedgerPath = None,
) -> None:
    """Write the certificate of an answer as JSON, or verify one, without the ledger.

    It says what was released, the unit, the neighbours, the noise and what it cost, with the entries that prove it.

    Example: `tacit certificate 12 --output answer.json`, then anywhere: `tacit certificate verify answer.json`
    """
    if what == "verify":
        if file is None:
            raise InvalidParameter("verify needs a file\nhint: tacit certificate verify answer.json")
        say(verified(Path(file)))
        return
    if not (what.isdecimal() and len(what) <= 18) or file is not None:
        raise InvalidParameter("give the number of an answer, or verify and a file\nhint: tacit certificate 12")
    from tacit.ledger import deployment, open_ledger, to_yaml

    with open_ledger(ledger, create=False) as opened:
        record = opened.certificate(int(what))
    text = to_yaml(deployment(record)) if registry else json.dumps(record, indent=2)
    if output is None:
        say(text)
    else:
        Path(output).write_text(text + "\n", encoding="utf-8")


def verified(path: Path) -> str:
    """Return what a certificate certifies, as text, after checking all of it."""
    from tacit.ledger import verify_certificate
    from tacit.privacy import from_text, read_json, show

    try:
        record = read_json(read_small(path, bytes_max=CERTIFICATE_BYTES_MAX))
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read ({error.strerror})") from error
    except ValueError:
        record = None
    found = verify_certificate(record)
    loss = found["loss"]
    main = ("ε", loss["epsilon"]) if loss["epsilon"] is not None else ("ρ", loss["rho"])
    delta = from_text(loss["delta"]) + (from_text(loss["delta_noise"]) if loss["epsilon"] is not None else 0)
    cost = f"{main[0]} = {show(from_text(main[1]))}" + (f", δ = {show(delta)}" if delta else "")
    return (
        f"whole: entry {found['number']} of ledger {found['ledger']}, {found['time'][:19]}\n"
        f"table {found['table']['name']} version {found['table']['version']}, unit {found['unit']}, "
        f"neighbours {found['neighbours']}\n"
        f"loss {cost}; {found['software']}; signed by {found['key']} (compare it with the curator's)"
    )
