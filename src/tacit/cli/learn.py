"""`tacit learn` learns ahead of time the facts that questions need; `tacit facts` shows the known facts, free.

Learning ahead is for a curator who chooses the cost, or who plans the errors of questions before the first one.
"""

from tacit.cli.options import (
    TableOptions,
    argument,
    find_entry,
    flag,
    open_table,
    opening,
    option,
    required,
    with_options,
)
from tacit.cli.screen import LedgerPath, check_writable, opened_here, say, working
from tacit.errors import QueryRefused, did_you_mean

Repeated = list[str] | None


@with_options
def learn(
    options: TableOptions,
    *,
    epsilon: str = required("E", "The most that all of it may cost."),
    by: Repeated = option("COLUMN", help="A column that questions will group by. Can be repeated."),
    column: Repeated = option("COLUMN", help="A column that they will add up or average. Can be repeated."),
    again: bool = flag(help="Learn anew what is known, and pay for it again.", name="--again"),
) -> None:
    """Learn how much people have and how large values are, once, so that questions need no bounds.

    The facts are noisy histograms, charged like an answer and kept. Questions that group by the same columns then
    use them free, at any epsilon, in every later version of the table.

    Example: `tacit learn orders --epsilon 0.2 --by item --column amount`, then: `tacit facts orders`
    """
    with working("learning"):
        table, _ = open_table(options, opening(), to_plan=False)
        learned = table.learn(epsilon, columns=column or (), by=by or (), again=again, analyst=options.analyst)
    say(str(learned) if learned else "No charge was made: these facts are known already. tacit facts shows them.")


@with_options
def dummy(
    options: TableOptions,
    *,
    output: str = required("FILE", "The Parquet file to write."),
    count: int = option("N", help="How many rows.", default=1000),
) -> None:
    """Write made-up rows with a table's columns, from public facts only: free, and no row is read.

    A script can be tried on them without spending. They hold no information about the table.

    Example: `tacit dummy orders --output dummy.parquet --count 10000`
    """
    check_writable(output)
    table, _ = open_table(options, opening(), to_plan=True)
    table.dummy(count).to_parquet(output)
    say(f"Wrote {count:,} made-up rows like those of '{table.frame.declaration.name}' to {output}.")


@with_options
def facts(
    table: str = argument("TABLE", "The table's name."),
    *,
    catalog: str | None = option("FILE", help="The catalog, if not ./tacit.toml."),
    analyst: str | None = option("NAME", help="An analyst with a personal budget."),
    ledger: LedgerPath = None,
) -> None:
    """Show what is known of a table, since when and for how much: free, and no row is read.

    Example: `tacit facts orders`
    """
    from tacit.asking import KnownFacts

    if ledger is None and catalog is not None:
        found = find_entry(table, catalog)
        ledger = None if found is None else found.file.ledger
    with opened_here(ledger) as opened:
        known = opened.table(table)
        if known is None:
            names = [each.name for each in opened.tables()]
            raise QueryRefused(f"the ledger does not have a table '{table}'{did_you_mean(table, names)}")
        say(str(KnownFacts(opened.facts(known, analyst))))
