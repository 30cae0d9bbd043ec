"""`tacit budget`: each table's budget, its spending and the rest; `grant` and `revoke` change it, for the record."""

from fractions import Fraction
from typing import TYPE_CHECKING

import typer

from tacit.cli.options import argument, flag, option, with_options
from tacit.cli.screen import LedgerPath, ServerAddress, connected, opened_here, say
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.ledger import BudgetStatus, Ledger, RegisteredTable
    from tacit.privacy import Loss

BAR = 20
NO_TABLES = "no table that this token may ask"

app: typer.Typer = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def budget(context: typer.Context, *, ledger: LedgerPath = None, server: ServerAddress = None) -> None:
    """Show, for each table and analyst, the budget, the spending and the rest; on a server, the rest for a token.

    Example: `tacit budget --ledger study.db`
    """
    context.obj = ledger
    if server is not None:
        if context.invoked_subcommand is not None or ledger is not None:
            raise InvalidParameter("--server stands after the command\nhint: tacit budget grant ... --server URL")
        say("\n".join(f"{name}: left: {table.left}" for name, table in connected(server).items()) or NO_TABLES)
    elif context.invoked_subcommand is None:
        with opened_here(ledger) as opened:
            say(describe(opened))


@app.command()
@with_options
def grant(
    context: typer.Context,
    table: str = argument("", "The table's name."),
    *,
    epsilon: str | None = option("E", help="The new budget's epsilon."),
    delta: str = option("D", help="Its delta.", default="0"),
    rho: str | None = option("R", help="Or a budget in rho (zCDP)."),
    analyst: str | None = option("NAME", help="For one analyst; '*' for each."),
    period: str | None = option("P", help="Per day, month or year; without it, for life."),
    population: int | None = option("N", help="How many people the data is about."),
    accept_large_delta: bool = flag(help="Accept a delta that is too large.", name="--accept-large-delta"),
    reason: str = option("TEXT", help="Why, for the record.", default=""),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Set a budget from now on, with the curator's key and for the record; spent budget stays spent.

    Example: `tacit budget grant pay --epsilon 5 --delta 1e-6 --reason "the board agreed"`
    """
    loss = read_loss(epsilon=epsilon, delta=delta, rho=rho)
    if server is not None:
        if population is not None or accept_large_delta:
            raise InvalidParameter(
                "these options need the ledger itself and cannot be used with --server\nhint: leave them out"
            )
        said = connected(server).grant(table, loss, analyst=analyst, period=period, reason=reason)
        _warn_if_large(loss)
        say(said)
        return
    with opened_here(ledger or context.obj) as opened:
        given = opened.grant(
            table,
            loss,
            analyst=analyst,
            period=period,
            population=population,
            accept_large_delta=accept_large_delta,
            reason=reason,
        )
        granted = opened.table(table)
        statuses = () if granted is None or analyst == "*" else opened.budget_status(granted, analyst)
        unknown = analyst not in (None, "*") and opened.has_people() and opened.person(analyst) is None
        left = "".join(f"; left: {one.words_left}" for one in statuses if one.budget == given)
    _warn_if_large(loss)
    say(f"{table}: {given} from now on{left}")
    if unknown:
        say(f"tacit: '{analyst}' is not among this ledger's people yet: tacit people add {analyst}", err=True)


@app.command()
@with_options
def revoke(
    context: typer.Context,
    table: str = argument("", "The table's name."),
    *,
    analyst: str | None = option("NAME", help="One analyst's budget; '*' is each analyst's."),
    period: str | None = option("P", help="The one per day, month or year."),
    reason: str = option("TEXT", help="Why, for the record.", default=""),
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Stop all further spending under a budget, from now on and for the record; `grant` opens it again.

    Example: `tacit budget revoke pay --analyst ben --reason "ben has left"`
    """
    if server is not None:
        say(connected(server).revoke(table, analyst=analyst, period=period, reason=reason))
        return
    with opened_here(ledger or context.obj) as opened:
        closed = opened.revoke(table, analyst=analyst, period=period, reason=reason)
    say(f"{table}: {closed}, from now on; spent budget stays spent")


@app.command(name="list")
def list_grants(context: typer.Context, *, ledger: LedgerPath = None, server: ServerAddress = None) -> None:
    """List every budget that was declared, granted or revoked, in order, with its reason.

    Example: `tacit budget list`
    """
    from tacit.ledger import budget_from

    if server is not None:
        for record in connected(server).entry_records():
            if record["kind"] == "budget":
                say(record["text"])
        return
    with opened_here(ledger or context.obj) as opened:
        names: dict[str, list[str]] = {}
        for table in opened.tables():
            names.setdefault(table.cohort, []).append(table.name)
        for entry in opened.entries():
            if entry.kind == "budget":
                given = budget_from(entry.record)
                whose = ", ".join(sorted(names.get(given.cohort, ["?"])))
                about = f"{whose}: {given}  {entry.record['reason']}".rstrip()
                say(f"{entry.number:>7}  {entry.record['time'][:19]}  {about}")


def _warn_if_large(loss: "Loss") -> None:
    from tacit.privacy import large_words

    large = large_words(getattr(loss, "epsilon", Fraction(0)))
    if large is not None:
        say(f"tacit: warning: {large}", err=True)


def read_loss(*, epsilon: str | None, delta: str, rho: str | None) -> "Loss":
    """Return the loss that a command line's words mean."""
    from tacit import privacy

    if (epsilon is None) == (rho is None):
        raise InvalidParameter("give the budget as --epsilon or as --rho\nhint: --epsilon 3 --delta 1e-6")
    return privacy.epsilon(epsilon, delta=delta) if epsilon is not None else privacy.rho(str(rho), delta=delta)


def describe(ledger: "Ledger") -> str:
    """Return every table's budgets as text, the tables in order of their names."""
    lines: list[str] = []
    tables = ledger.tables()
    alike: dict[str, list[str]] = {}
    for table in tables:
        alike.setdefault(table.cohort, []).append(table.name)
    for table in tables:
        lines += [*_describe_table(ledger, table, [name for name in alike[table.cohort] if name != table.name]), ""]
    return "\n".join(lines).rstrip() or "no table is registered in this ledger yet"


def _describe_table(ledger: "Ledger", table: "RegisteredTable", shared: list[str]) -> list[str]:
    from tacit.accounting import rule_of
    from tacit.ledger import spent_words

    title = f"{table.name} (version {table.version})" + (f", same people as {', '.join(shared)}" if shared else "")
    rows = []
    rule = rule_of(table.budget)
    for who in (None, *ledger.analysts(table)):
        statuses = [one for one in ledger.budget_status(table, who) if (one.budget.analyst is None) == (who is None)]
        rows += [(who or "everyone", _describe(status)) for status in statuses]
        if who is not None and not statuses:
            rows.append((who, f"{' ' * BAR}  of everyone's: spent {spent_words(ledger.spent(table, who), rule)}"))
    if table.period is not None:
        whole = f"one person in all {table.period}s"
        rows.append((whole, f"may have lost {spent_words(ledger.spent(table), rule)} so far"))
    width = max(len(who) for who, _ in rows)
    return [title, *(f"  {who:{width}}  {text}" for who, text in rows)]


def _describe(status: "BudgetStatus") -> str:
    budget = status.budget
    share = float(status.share_spent)
    figures = f"spent {status.words_spent if status.charges else 'nothing'}, left {status.words_left}"
    filled = min(BAR, max(round(BAR * share), int(share > 0)))
    if status.questions is None:
        more = ", not asked yet" if not status.charges else ", any number of questions like the last"
    else:
        more = f", about {status.questions:,} more like the last" if status.questions else ""
    return f"{'█' * filled}{'░' * (BAR - filled)}  of {budget.loss}{_per(status)}: {figures}{more}"


def _per(status: "BudgetStatus") -> str:
    period = status.budget.period
    if period != "block":
        return f" per {period}" if period else ""
    return f" in block {status.block}" if status.block else " in every other block"
