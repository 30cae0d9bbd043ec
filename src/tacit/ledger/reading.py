"""Entries in words: a line for an entry, and a charge's cost as its table's budget counts it."""

from collections.abc import Mapping

from tacit.accounting import rule_of
from tacit.ledger.budget import budget_from
from tacit.ledger.entry import Entry, Record, charge_from
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.status import spent_words
from tacit.privacy import from_text, show

# Of a question's words in a line.
WORDS_SHOWN = 100


def entry_line(entry: Entry, tables: Mapping[str, RegisteredTable]) -> str:
    """Return one entry as a line: number, time, kind, and subject."""
    try:
        about = _about(entry.kind, entry.record, tables)
    except (KeyError, TypeError, ValueError, AttributeError):  # a ledger from elsewhere may hold anything
        about = "(cannot be read)"
    kind = "learned" if entry.kind == "fact" else entry.kind
    return f"{entry.number:>7}  {entry.record['time'][:19]}  {kind:8}  {about}"


def _about(kind: str, record: Record, tables: Mapping[str, RegisteredTable]) -> str:
    if kind in {"charge", "answer", "refusal"}:
        table = tables.get(record["table"])
        name = "?" if table is None else table.name
        if kind == "answer":
            return f"{name} for charge {record['charge']}"
        who = f" by {record['analyst']}" if record["analyst"] else ""
        if "denied" in record:
            return f"{name}{who}: {record['denied']}"
        why = f" to learn {record['learns']['words']}" if "learns" in record else ""
        if not why and "about" in record:
            words = record["about"].splitlines()[0]
            why = f": {words}" if len(words) <= WORDS_SHOWN else f": {words[: WORDS_SHOWN - 1]}…"
        return f"{name}{who} {cost_words(record, table)}{why}"
    if kind == "attempt":
        what = "has failed" if record["failed"] else "begins"
        return f"attempt {record['number']} at charge {record['charge']} {what}"
    if kind == "fact":
        table = tables.get(record["table"])
        only = f" (for {record['analyst']} alone)" if record["analyst"] else ""
        return f"{'?' if table is None else table.name} in answer {record['answer']}{only}: {record['words']}"
    if kind == "budget":
        whose = sorted(table.name for table in tables.values() if table.cohort == record["people"])
        return f"{', '.join(whose)} {budget_from(record)} {record['reason']}".strip()
    if kind == "person":
        who = record["name"] or "requests without a name"
        of = "every table" if record["tables"] is None else ", ".join(record["tables"]) or "no table"
        over = ", ended" if record["ended"] else "" if record["until"] is None else f", until {record['until'][:10]}"
        return f"{who}: {record['role']} of {of}{over} {record['reason']}".strip()
    if kind == "token":
        over = ", ended" if record["ended"] else "" if record["until"] is None else f", until {record['until'][:10]}"
        return f"{record['token']} of {record['name']}{over} {record['reason']}".strip()
    if kind == "table":
        return f"{record['name']} version {record['version']}"
    return str(record["ledger"] if kind == "ledger" else record["reason"])


def cost_words(record: Record, table: RegisteredTable | None) -> str:
    """Return a charge in the words of its answer, as the table's budget counts; bare amounts if the answer is
    missing."""
    if table is not None:
        return spent_words(charge_from(record), rule_of(table.budget))
    main = ("ε", record["epsilon"]) if record["epsilon"] is not None else ("ρ", record["rho"])
    parts = [main] + ([("δ", record["delta"])] if record["delta"] != "0" else [])
    return ", ".join(f"{sign} = {show(from_text(amount))}" for sign, amount in parts)
