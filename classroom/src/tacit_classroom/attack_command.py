"""`tacit attack`: the classic attacks on published numbers, tried on exact answers and on ours.

All of them run on made-up people. `reconstruct` also takes the curator's own table, and then prints its true values;
it reads only that file, with a ledger in memory, and charges nothing.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tacit.errors import InvalidParameter, json_text, printable

if TYPE_CHECKING:
    from tacit_classroom.attacks import People

app = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, no_args_is_help=True)

Epsilon = Annotated[str, typer.Option(metavar="E", help="The budget our side has, for all questions together.")]
Seed = Annotated[
    int, typer.Option(metavar="N", help="Made-up people and chosen questions follow from it; noise never.")
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also draw it: a path that ends in .png, .svg or .html.")
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]

WHY_CURATOR = (
    "an attack on your own table prints how much of its secret column comes back, which is computed from the exact "
    "rows and is not a private answer"
    "\nhint: if you may see these rows and keep the output to yourself, add --i-am-the-curator"
)


class AttackResult(Protocol):
    """The common result of all attacks."""

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        ...

    def plot(self, path: str | Path) -> Path:
        """Draw it."""
        ...


@app.callback()
def attack() -> None:
    """Try the classic attacks on published numbers: on exact answers, and on ours.

    Attacks make their own tables, use no ledger and cost nothing.
    """


@app.command()
def reconstruct(
    table: Annotated[
        Path | None, typer.Argument(metavar="TABLE", help="Your own Parquet or CSV file; made-up people if left out.")
    ] = None,
    *,
    secret: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of yes and no to rebuild, or COLUMN=VALUE for a yes."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="The columns that are public, e.g. postcode,age,sex."),
    ] = None,
    i_am_the_curator: Annotated[
        bool, typer.Option("--i-am-the-curator", help="You may see these rows: this prints what is true of them.")
    ] = False,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="How many people: 2000 made-up ones, or the first 10,000 of yours.")
    ] = None,
    questions: Annotated[int, typer.Option(metavar="N", help="How many counts are asked for every block.")] = 100,
    epsilon: Epsilon = "1",
    k: Annotated[int, typer.Option("--k", metavar="K", help="The k-anonymous tables hide groups under K people.")] = 5,
    noise: Annotated[int, typer.Option(metavar="N", help="The fixed small noise is up to this, up or down.")] = 2,
    solver: Annotated[str | None, typer.Option(metavar="NAME", help="squares or linear; both if left out.")] = None,
    seed: Seed = 1,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Rebuild a secret column from counts about it (Dinur and Nissim).

    Every question counts the yeses in a random half of each block of 20 neighbours. The same questions are answered
    exactly, by k-anonymous tables, with a little noise, and through a budget.

    Examples: `tacit attack reconstruct --plot reconstruct.png`;
    `tacit attack reconstruct people.parquet --secret ill --by postcode,age,sex --i-am-the-curator`
    """
    from tacit_classroom.attacks import reconstruct as run

    people = _own_people(table, secret, by, rows, allowed=i_am_the_curator)
    words: dict[str, Any] = {} if rows is None else {"rows": rows}
    with _shown(plot) as progress:
        found = run(
            people,
            **words,
            questions=questions,
            epsilon=epsilon,
            k=k,
            spread=noise,
            solver=solver,
            seed=seed,
            curves=plot is not None or as_json,
            progress=progress,
        )
    _say(found, plot, as_json=as_json)


@app.command()
def average(
    *,
    epsilon: Epsilon = "1",
    repeats: Annotated[int, typer.Option(metavar="N", help="How often the unbudgeted side is asked.")] = 10_000,
    seed: Seed = 1,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Ask the same question again and again, and average the noise away.

    Without an account of past answers the attack works. Here a repeated question gets the same answer, however it is
    worded, and other questions are charged until the budget ends.

    Example: `tacit attack average --plot average.png`
    """
    from tacit_classroom.attacks import average as run

    with _shown(plot) as progress:
        found = run(epsilon=epsilon, repeats=repeats, seed=seed, progress=progress)
    _say(found, plot, as_json=as_json)


@app.command()
def difference(
    *,
    epsilon: Epsilon = "1",
    streets: Annotated[int, typer.Option(metavar="N", help="In how many streets it is tried.")] = 2_000,
    seed: Seed = 1,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Subtract two counts that differ by one person.

    Example: `tacit attack difference --epsilon 1`
    """
    from tacit_classroom.attacks import difference as run

    with _shown(plot) as progress:
        found = run(epsilon=epsilon, streets=streets, seed=seed, progress=progress)
    _say(found, plot, as_json=as_json)


@app.command()
def membership(
    *,
    epsilon: Epsilon = "1",
    members: Annotated[int, typer.Option(metavar="N", help="How many people the averages are about.")] = 100,
    facts: Annotated[int, typer.Option(metavar="N", help="How many facts are averaged.")] = 2_000,
    trials: Annotated[int, typer.Option(metavar="N", help="How often one mean is tried.")] = 2_000,
    seed: Seed = 1,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Find out whether one person is in the data, from averages of many facts or from one mean.

    The advantage over a coin is shown along epsilon, beside the most that any attack can expect.

    Example: `tacit attack membership --plot membership.png`
    """
    from tacit_classroom.attacks import membership as run

    with _shown(plot) as progress:
        found = run(epsilon=epsilon, members=members, facts=facts, trials=trials, seed=seed, progress=progress)
    _say(found, plot, as_json=as_json)


@app.command(name="name-and-shame")
def name_and_shame(
    *,
    rows: Annotated[int, typer.Option(metavar="N", help="How many people there are.")] = 10_000,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Publish each row in the clear with probability delta, which keeps the promise: so delta must be tiny.

    Example: `tacit attack name-and-shame --rows 10000`
    """
    from tacit_classroom.attacks import name_and_shame as run

    with _shown(plot) as progress:
        found = run(rows=rows, progress=progress)
    _say(found, plot, as_json=as_json)


def _own_people(
    table: Path | None, secret: str | None, by: str | None, rows: int | None, *, allowed: bool
) -> "People | None":
    """Return the people of the curator's own table, None for made-up ones; refused before a row is read."""
    if table is None:
        if secret is not None or by is not None:
            raise InvalidParameter("--secret and --by need a table\nhint: tacit attack reconstruct FILE.parquet ...")
        return None
    if secret is None or by is None:
        raise InvalidParameter(
            "--secret (the secret column) and --by (the public columns) are both needed"
            "\nhint: tacit attack reconstruct people.parquet --secret ill --by postcode,age,sex --i-am-the-curator"
        )
    if not allowed:
        raise InvalidParameter(WHY_CURATOR)
    from tacit_classroom.attacks import read_people

    columns = [name.strip() for name in by.split(",") if name.strip()]
    return read_people(table, secret=secret.strip(), by=columns, **({} if rows is None else {"rows": rows}))


@contextmanager
def _shown(plot: Path | None) -> Iterator[Callable[[str, float], None]]:
    """Refuse a picture that cannot be written before the work, and show progress, only on a terminal."""
    if plot is not None:
        from tacit.pictures import check_path

        check_path(plot)
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("attacking", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _say(found: AttackResult, plot: Path | None, *, as_json: bool) -> None:
    # names come from a file that others wrote
    typer.echo(printable(json_text(found.record()) if as_json else str(found), keeping="\n"))
    if plot is not None:
        typer.echo(printable(f"drawn: {found.plot(plot)}"), err=True)  # the sentence stays last
