"""`tacit ledger` shows, verifies and exports the ledger; `tacit certificate` writes and verifies certificates.

Anyone who has a certificate's file can verify it, without the ledger.
"""

import json
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.options import argument, flag, option, required, with_options
from tacit.cli.screen import (
    LedgerPath,
    ServerAddress,
    connected,
    ledger_here,
    opened_book,
    opened_here,
    say,
    write_text,
)
from tacit.errors import InvalidParameter
from tacit.files import read_small

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.ledger import Entry, Ledger, RegisteredTable
    from tacit.remote import Server


app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False)


@app.callback()
def ledger_command() -> None:
    """Show, verify and export the ledger: every charge, answer, refusal and change of budget."""


@app.command()
@with_options
def show(
    number: int | None = argument("[N]", "One entry, in full.", default=None),
    *,
    last: int = option("N", help="How many entries, from the end.", name="--last", default=20),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Show the last entries, one line each; or one in full: the question, the numbers as released, and the cost.

    Example: `tacit ledger show --last 5`, then `tacit ledger show 12`
    """
    from tacit.ledger import entry_line

    if last < 1:
        raise InvalidParameter("--last must be at least 1")
    if server is not None:
        there = connected(server)
        for line in deque(there.entry_lines(), last) if number is None else in_full_there(there, number):
            say(line)
        return
    with opened_here(ledger) as opened:
        tables = {table.id: table for table in opened.tables()}
        if number is not None:
            say("\n".join(in_full(opened, number, tables)))
            return
        first = max(1, opened.length() - last + 1)
        for entry in opened.entries(first):
            say(entry_line(entry, tables))


@app.command()
def verify(*, ledger: LedgerPath = None) -> None:
    """Recompute the chain, its signature and every total; exit 2 and name the fault if anything is wrong.

    Example: `tacit ledger verify --ledger study.db`
    """
    with opened_here(ledger) as opened:
        found = opened.verify()
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.kinds.items()))
    say(f"whole: {found.entries:,} entries ({kinds})")
    say(f"head {found.hash}, signed by {found.key}")
    for number, key in reversed(found.keys_before):
        say(f"until entry {number} signed by {key}")


@app.command()
@with_options
def export(
    *,
    output: str | None = option("FILE", help="The file to write; the screen if left out."),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Write every entry as a line of JSON, with its number and hashes.

    Example: `tacit ledger export --output ledger.jsonl`
    """
    from tacit.ledger import BEGINNING

    with ExitStack() as stack:
        target = None if output is None else stack.enter_context(Path(output).open("w", encoding="utf-8"))
        if server is not None:
            for found in connected(server).entry_records():
                row = {name: found[name] for name in ("number", "previous", "hash", "body")}
                typer.echo(json.dumps(row), file=target)
            return
        opened = stack.enter_context(opened_here(ledger))
        previous = BEGINNING
        for entry in opened.entries():
            row = {"number": entry.number, "previous": previous, "hash": entry.hash, "body": entry.body}
            typer.echo(json.dumps(row), file=target)
            previous = entry.hash


@app.command()
@with_options
def backup(
    file: str = argument("", "The target: a new file, or a PostgreSQL schema without a ledger."),
    *,
    ledger: LedgerPath = None,
) -> None:
    """Copy the whole ledger, verified, into a new file; answers go on meanwhile. The signing key is not in it.

    Example: `tacit ledger backup ledger-2026-11-16.db`
    """
    from tacit.ledger import back_up

    copied = back_up(ledger_here(ledger), file)
    say(f"copied and verified: {copied.entries:,} entries, with the hashes of tokens, to {file}")


@app.command()
@with_options
def restore(
    file: str = argument("", "The backup."),
    *,
    ledger: LedgerPath = None,
) -> None:
    """Copy a backup to a path without a ledger; both are verified.

    If this machine has answered since, the copy is behind, and is used only after `tacit ledger accept`.

    Example: `tacit ledger restore ledger-2026-11-16.db --ledger ledger.db`
    """
    from tacit.ledger import restore as restored

    say(f"restored and verified: {restored(file, ledger_here(ledger)).entries:,} entries")


@app.command(name="change-key")
@with_options
def change_key(
    *,
    reason: str = required("TEXT", "Why, for the record."),
    output: str | None = option("FILE", help="Where to write the new key, if not in its place in $TACIT_HOME."),
    ledger: LedgerPath = None,
) -> None:
    """Sign the ledger with a fresh key from here on: an entry, signed by the old key, names the new one.

    Old certificates still verify, with the old key's name. Give the new key to every machine that answers from this
    ledger, and publish its name.

    Example: `tacit ledger change-key --reason "the yearly change"`
    """
    from tacit.ledger import change_key as changed

    with opened_here(ledger) as opened:
        old, new, kept = changed(opened, reason, output)
        say(f"signed by {new} from entry {opened.length()} on, and by {old} before")
    say(f"tacit: the old key is still at {kept}: remove it once no other ledger is signed by it", err=True)


@app.command()
@with_options
def accept(
    *,
    reason: str = required("TEXT", "Why this copy is the one to go on with."),
    ledger: LedgerPath = None,
) -> None:
    """Continue with a ledger that is older than the last answer of this machine, for the record.

    Use it only if the newest copy is lost. Answers given since this copy was made are forgotten: lower the budget by
    the most that they may have spent, with `tacit budget grant`.

    Example: `tacit ledger accept --reason "disk lost, restored last night's backup"`
    """
    with opened_here(ledger, accept=reason) as opened:
        say(f"accepted at entry {opened.length()}, for the record")


@app.command()
@with_options
def clock(
    *,
    reason: str = required("TEXT", "Why the clock is right now."),
    ledger: LedgerPath = None,
) -> None:
    """Set a ledger's time to the clock's, for the record.

    Use it after a clock that was far ahead, since its entries close every period until then, or when the ledger was
    not used for more than a year. Charges in a period stay charged to it.

    Example: `tacit ledger clock --reason "the battery was empty, the clock said 2099"`
    """
    with opened_here(ledger) as opened:
        opened.correct_clock(reason)
        say(f"set to the clock at entry {opened.length()}, for the record")


def in_full(ledger: "Ledger", number: int, tables: "Mapping[str, RegisteredTable]") -> list[str]:
    """Return one entry as lines; of a charge or answer: the person, the question, the numbers and the cost."""
    from tacit.ledger import cost_words, entry_line

    entry = ledger.entry(number)
    if entry is None:
        raise InvalidParameter(f"entry {number} does not exist: this ledger has {ledger.length():,}")
    lines = [entry_line(entry, tables).strip(), f"hash {entry.hash}"]
    if entry.kind not in {"charge", "answer"}:
        return lines
    charge = entry if entry.kind == "charge" else next(ledger.entries(entry.record["charge"]))
    answer = entry if entry.kind == "answer" else ledger.answer_of(charge.number)
    if charge is not entry:
        lines += [entry_line(charge, tables).strip()]
    elif answer is not None:
        lines += [entry_line(answer, tables).strip()]
    table = tables.get(charge.record["table"])
    record = charge.record
    shown = None if answer is None else answer.record.get("as_shown")
    lines += ["", *question_lines(record.get("about"), shown)] if "learns" not in record else []
    if answer is None:
        lines.append("no answer was stored: the charge stands")
    lines += ["", f"spent: {cost_words(record, table)}; in the ledger's sums: {_sums(record)}"]
    learned = _learned_first(ledger, answer)
    if learned:
        entries = ", ".join(str(each.number) for each in learned)
        more = ", ".join(cost_words(each.record, table) for each in learned)
        lines.append(
            f"and for the facts that the same call learned first: {more} (entries "
            f"{entries}){_one_epsilon(charge, learned)}"
        )
    if table is not None:
        lines.append(f"left now: {ledger.left(table, record['analyst'])}")
    return lines


def in_full_there(server: "Server", number: int) -> list[str]:
    """Return one entry of a server's ledger as lines; of a charge or answer: the person, the question, the numbers."""
    record = next(server.entry_records(number), None)
    if record is None or record["number"] != number:
        raise InvalidParameter(
            f"this token may not read an entry {number}, or it does not exist\nhint: tacit ledger show --server URL"
        )
    lines = [str(record["text"]), f"hash {record['hash']}"]
    if record["kind"] not in {"charge", "answer"}:
        return lines
    try:
        found = server.certificate(number)
    except InvalidParameter:
        return [*lines, "no answer was stored: the charge stands"]
    if found["number"] != number:
        lines.append(str(next(server.entry_records(found["number"]))["text"]))
    asked = [] if found.get("question") is None else ["", *question_lines(found["question"], found.get("shown"))]
    return [*lines, *asked, "", f"in the ledger's sums: {_sums(found['loss'])}"]


def _learned_first(ledger: "Ledger", answer: "Entry | None") -> "list[Entry]":
    """Return the charges for the facts that the call of an answer learned first: one amount was requested for all."""
    from tacit.release import basis_in

    try:
        basis = None if answer is None else basis_in(answer.record["answer"])
        answers = [next(ledger.entries(int(number))) for number in (basis or {}).get("learned", ())]
        return [next(ledger.entries(int(each.record["charge"]))) for each in answers]
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration):  # an answer of another kind
        return []


def _one_epsilon(charge: "Entry", learned: "Sequence[Entry]") -> str:
    """Return what a call was asked for as one epsilon, where all of it has one."""
    from tacit.numbers import from_text, show

    amounts = [each.record["epsilon"] for each in (charge, *learned)]
    return "" if None in amounts else f"; together ε = {show(sum(map(from_text, amounts), from_text('0')))}"


def question_lines(words: str | None, shown: str | None) -> list[str]:
    """Return a question's words and its numbers with their error bars; of older entries, that they are not kept."""
    from tacit.answer import kept_lines

    lines = ["asked: unknown; this entry is of an older version"] if words is None else [f"asked: {words}"]
    if shown is None:
        return lines
    try:
        return [*lines, *kept_lines(shown)]
    except (KeyError, TypeError, ValueError):  # signed by its ledger's key, but another person's
        return [*lines, "(its numbers cannot be read)"]


def _sums(record: dict[str, Any]) -> str:
    """Return what a charge adds to each of the ledger's sums."""
    from tacit.numbers import from_text, show

    signs = {"epsilon": "ε", "rho": "ρ", "delta": "δ of thresholds", "delta_noise": "δ of noise"}
    found = {sign: from_text(record[name]) for name, sign in signs.items() if record[name] is not None}
    return ", ".join(f"{sign} = {show(amount)}" for sign, amount in found.items() if amount)


CERTIFICATE_BYTES_MAX = 1 << 28


@with_options
def certificate(
    what: str = argument("NUMBER|verify", "The answer's entry (or its charge's); or verify."),
    file: str | None = argument("[FILE]", "With verify: the certificate.", default=None),
    *,
    registry: bool = flag(help="Write the fields of the public registry of deployments, as YAML.", name="--registry"),
    output: str | None = option("FILE", help="The file to write; the screen if left out."),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Write the certificate of an answer as JSON, or verify one, without the ledger.

    A certificate has the released numbers, the unit, the neighbours, the noise and the cost, with the entries that
    prove it.

    Example: `tacit certificate 12 --output answer.json`, then anywhere: `tacit certificate verify answer.json`
    """
    if what == "verify":
        if file is None:
            raise InvalidParameter("verify needs a file\nhint: tacit certificate verify answer.json")
        say(verified(Path(file)))
        return
    if not (what.isascii() and what.isdecimal() and len(what) <= 18) or file is not None:
        raise InvalidParameter("give the number of an answer, or verify and a file\nhint: tacit certificate 12")
    from tacit.ledger import deployment

    with opened_book(ledger, server) as opened:
        record = opened.certificate(int(what))
    write_text(deployment(record) if registry else json.dumps(record, indent=2), output)


@with_options
def note(
    number: int = argument("NUMBER", "The answer's entry."),
    *,
    language: str = option("L", help="en or de.", default="en"),
    title: str | None = option("TEXT", help="The published table's title."),
    output: str | None = option("FILE", help="The file to write; the screen if left out."),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Write a note for the public about an answer: what is protected, how large the noise is, how to read the numbers.

    Example: `tacit note 12 --language de --title "Schülerinnen und Schüler 2026" --output note.md`
    """
    from tacit.answer import answer_of_certificate

    with opened_book(ledger, server) as opened:
        text = answer_of_certificate(opened.certificate(number)).note(language, title=title)
    write_text(text, output)


def verified(path: Path) -> str:
    """Return what a certificate certifies, as text, after checking all of it."""
    from tacit.ledger import verify_certificate
    from tacit.numbers import from_text, read_json, show

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
        + "".join(f"\n{each}" for each in ["", *question_lines(found.get("question"), found.get("shown"))])
    )
