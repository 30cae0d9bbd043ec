"""`tacit people`: people who may ask, their tables and dates, and the tokens by which a server identifies them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import argument, option, with_options
from tacit.cli.screen import LedgerPath, ServerAddress, opened_book, say
from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.catalog_file import CatalogFile, CatalogPerson
    from tacit.ledger import Ledger, Person, Token

app: typer.Typer = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False)

Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")]
Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="The person's name; case does not matter.")]
Nameless = Annotated[bool, typer.Option("--nameless", help="Requests without a name, instead of a person.")]
Until = Annotated[str | None, typer.Option(metavar="DAY", help="The first day (UTC) without access, e.g. 2027-02-01.")]


@app.callback()
def people_command() -> None:
    """Set who may ask, about which tables and until when; acts are ledger entries with a reason.

    From the first person on, only people may ask; a ledger without people lets everyone ask who can write to the file.
    """


@app.command()
@with_options
def add(
    name: Name = None,
    *,
    role: str = option("R", help="analyst, curator or auditor (reads, cannot ask).", default="analyst"),
    table: list[str] | None = option("T", help="A table they may ask about; can be repeated.", name="--table"),
    until: Until = None,
    usual_epsilon: str | None = option(
        "E", help="The ε of their questions over PostgreSQL's protocol that do not give one.", name="--usual-epsilon"
    ),
    nameless: Nameless = False,
    reason: Reason = "",
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Let a person in, or say anew what they may do. Without --table they may ask about every table.

    Example: `tacit people add ben --table visits --until 2027-02-01 --reason "the ward study"`
    """
    who = _who(name, nameless=nameless)
    with opened_book(ledger, server) as opened:
        usual = {} if usual_epsilon is None else {"usual_epsilon": usual_epsilon}
        person = opened.add_person(who, role=role, tables=table, until=until, **usual, reason=reason)
        known = {each.name for each in opened.tables()} if server is None else set(opened)
    say(person_words(person))
    for each in sorted(set(person.tables or ()) - known):
        say(f"tacit: the ledger does not have a table '{each}' yet", err=True)


@app.command()
def end(
    name: Name = None,
    *,
    nameless: Nameless = False,
    reason: Reason = "",
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Revoke a person's access and all their tokens, at once and for the record. Spent budget stays spent.

    Example: `tacit people end ben --reason "ben has left"`
    """
    with opened_book(ledger, server) as opened:
        say(person_words(opened.end_person(_who(name, nameless=nameless), reason=reason)))


@app.command(name="list")
def list_people(*, ledger: LedgerPath = None, server: ServerAddress = None) -> None:
    """List people, their roles, and their tokens: when made, last used and until when. Secrets are not stored.

    Example: `tacit people list`
    """
    with opened_book(ledger, server) as opened:
        everyone, tokens = opened.people(), opened.tokens()
    if not everyone:
        say("this ledger has no people: anyone who can write to it may ask")
    for person in everyone:
        say(person_words(person))
        for token in tokens:
            if token.name == person.name:
                say(f"  {_token_words(token)}")


@app.command()
@with_options
def token(
    name: str = argument("", "The person's name; or 'end'."),
    ended: str | None = argument("[TOKEN]", "With end: the token's id, or the token.", default=None),
    *,
    until: Until = None,
    reason: Reason = "",
    ledger: LedgerPath = None,
    server: ServerAddress = None,
) -> None:
    """Make a token for a person and print it, this once; or end one, everywhere and at once.

    Example: `tacit people token ben --until 2027-02-01`, and `tacit people token end 4900a7013aa9c4c4`
    """
    with opened_book(ledger, server) as opened:
        if ended is not None:
            if name != "end":
                raise InvalidParameter("to end a token, give the word end and its id\nhint: tacit people token end ID")
            opened.end_token(ended, reason=reason)
            say("ended, for the record")
            return
        secret = opened.new_token(name, until=until, reason=reason)
    say(secret)
    say("tacit: shown this once; the ledger keeps only its hash", err=True)


@app.command()
@with_options
def apply(
    *,
    catalog: str | None = option("FILE", help="The catalog, if not ./tacit.toml.", show_default=False),
    reason: Reason = "as tacit.toml says",
) -> None:
    """Write the people of a tacit.toml, and their budgets, into its ledger, if they differ.

    Revoked people stay revoked, and people who are not in the file do not change.

    Example: `tacit people apply --reason "the board agreed"`
    """
    from tacit.catalog_file import FILE_NAME, read_catalog
    from tacit.ledger import open_ledger

    file = read_catalog(FILE_NAME if catalog is None else catalog)
    with open_ledger(file.ledger) as opened:
        said = [line for person in file.people.values() for line in _applied(opened, file, person, reason)]
    say("\n".join(said) or "everything is so already")


def _applied(ledger: "Ledger", file: "CatalogFile", wanted: "CatalogPerson", reason: str) -> list[str]:
    from tacit.ledger import Person, until_text

    known = ledger.person(wanted.name)
    if known is not None and known.ended:
        return [f"{known.name}: ended in the ledger, and stays so; let them in again with: tacit people add"]
    said = []
    tables = None if wanted.tables is None else tuple(sorted(wanted.tables))
    name = wanted.name if known is None else known.name
    usual = None if known is None else known.usual_epsilon  # the file has none
    wished = Person(name, wanted.role, tables, until_text(wanted.until), usual_epsilon=usual)
    if known is None or known != replace(wished, since=known.since):
        person = ledger.add_person(
            wanted.name, role=wanted.role, tables=wanted.tables, until=wanted.until, usual_epsilon=usual, reason=reason
        )
        said.append(person_words(person))
    if wanted.budget is None:
        return said
    for each in file.tables if wanted.tables is None else wanted.tables:
        table = ledger.table(each)
        if table is None:
            said.append(
                f"{wanted.name}: '{each}' is not in the ledger yet, so its budget is not set; ask about it first"
            )
            continue
        own = [
            status.budget
            for status in ledger.budget_status(table, wanted.name)
            if status.budget.analyst not in (None, "*")
        ]
        if not any(one.loss == wanted.budget and one.period == wanted.period for one in own):
            given = ledger.grant(each, wanted.budget, analyst=wanted.name, period=wanted.period, reason=reason)
            said.append(f"{each}: {given} from now on")
    return said


def person_words(person: "Person") -> str:
    who = person.name or "requests without a name"
    tables = "every table" if person.tables is None else ", ".join(person.tables) or "no table"
    over = ", ended" if person.ended else "" if person.until is None else f", until {person.until[:19]}"
    usual = "" if person.usual_epsilon is None else f", ε {person.usual_epsilon} by PostgreSQL's protocol"
    return f"{who}: {person.role}, {tables}{usual}{over}"


def _token_words(token: "Token") -> str:
    used = "never used" if token.last_used is None else f"last used {token.last_used[:16]}"
    until = "" if token.until is None else f", until {token.until[:19]}"
    return f"token {token.id}: made {token.made[:10]}, {used}{until}{'' if token.holds else ', over'}"


def _who(name: str | None, *, nameless: bool) -> str | None:
    if (name is None) != nameless:
        raise InvalidParameter("give a person's name, or --nameless for those without one\nhint: tacit people add ben")
    return name
