"""`tacit tables`: what a catalog declares of each table, held against its schema, and what its budget has left.

No row is read. A table that could not be asked is listed with the reason, and the command then exits with 2.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.catalog import known_table
from tacit.cli.screen import say
from tacit.errors import LedgerError, TacitError

MISTAKEN = "  mistake:   "
CHECKED = ("unit", "columns", "neighbours", "rows_per_unit", "groups_per_unit", "population", "version")

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger
    from tacit.tables.catalog import CatalogEntry


def tables(
    *,
    catalog: Annotated[
        str | None, typer.Option(metavar="FILE", help="The catalog, if not ./tacit.toml.", show_default=False)
    ] = None,
) -> None:
    """List the tables of the tacit.toml: unit, bounds, what is public, budget and what is left of it.

    Example: `tacit tables`
    """
    from tacit.ledger.opening import open_ledger
    from tacit.tables.catalog import FILE_NAME, read_catalog

    file = read_catalog(FILE_NAME if catalog is None else catalog)
    try:
        with open_ledger(file.ledger, create=False) as ledger:
            shown = [describe(entry, ledger) for entry in file.tables.values()]
    except LedgerError:
        if file.ledger is not None and "://" in file.ledger:
            raise  # it should be there
        shown = [describe(entry, None) for entry in file.tables.values()]
    say("\n\n".join(shown))
    if any(MISTAKEN in each for each in shown):
        raise typer.Exit(2)


def describe(entry: "CatalogEntry", ledger: "Ledger | None") -> str:
    """Return what a catalog and a ledger say of one table."""
    import tacit

    words = entry.words
    unit = "each row" if words["unit"] is tacit.ROW else f"all rows of one {words['unit']}"
    lines = [
        f"{entry.name}: {entry.source}",
        f"  protected: {unit}; neighbours: {words.get('neighbours', 'add-remove')}",
        f"  bounds:    {_bounds(words)}",
    ]
    facts = [text for column, said in words["columns"].items() if (text := _facts(column, said))]
    if facts:
        lines.append(f"  public:    {'; '.join(facts)}")
    lines.append(f"  budget:    {_budget(entry, ledger)}")
    mistake = _mistake(entry)
    return "\n".join([*lines, f"{MISTAKEN}{mistake}"] if mistake else lines)


def _mistake(entry: "CatalogEntry") -> str:
    """Return why the table cannot be asked as it is declared, or nothing; its schema is read, and no row."""
    from tacit.door.opening import declared

    try:
        declared(entry.source, **{name: said for name, said in entry.words.items() if name in CHECKED})
    except TacitError as problem:
        return str(problem).replace("\n", "\n             ")
    return ""


def _bounds(words: Any) -> str:
    rows, groups = words.get("rows_per_unit"), words.get("groups_per_unit")
    parts = [f"at most {rows} rows of a unit in a group" if rows else "rows_per_unit is not set"]
    parts.append(f"in at most {groups} groups" if groups else "groups_per_unit is not set, which GROUP BY needs")
    return ", ".join(parts)


def _facts(column: str, said: Any) -> str:
    parts = []
    if said.get("between") is not None:
        parts.append(f"from {said['between'][0]} to {said['between'][1]}")
    if said.get("keys") is not None:
        parts.append(f"{len(said['keys'])} keys")
    if said.get("type") is not None:
        parts.append(f"read as {said['type']}")
    return f"{column} {', '.join(parts)}" if parts else ""


def _budget(entry: "CatalogEntry", ledger: "Ledger | None") -> str:
    table = None if ledger is None else known_table(ledger, entry.name)
    if table is None or ledger is None:
        declared = entry.words.get("budget")
        return "not set, and the first question needs one" if declared is None else f"{declared}, nothing asked yet"
    left = ledger.left(table)
    return f"{table.budget}; left: {left}"
