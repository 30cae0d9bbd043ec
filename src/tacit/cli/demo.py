"""`tacit demo`: the whole story on a made-up table, in seconds; every private number that it prints was really drawn.

It works in a folder and a ledger of its own, deleted unless `--keep` is given. All rows are computed from whole
numbers, and are the same on every machine.
"""

import ast
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from tacit.cli.options import argument, flag, option, with_options
from tacit.cli.outside import demo_of
from tacit.cli.screen import check_plot
from tacit.cli.serve import has_server, require_server
from tacit.errors import InvalidParameter

PEOPLE = 100_000
WARDS = ("cardiology", "maternity", "oncology", "paediatrics", "surgery")
# Only four people were in this ward.
RARE_WARD, RARE_PEOPLE = "isolation", 4
# A careless guess about patients: the most visits to a ward, and the most wards.
GUESSED_VISITS, GUESSED_WARDS = 3, 2

# Each `mix` is a multiplication modulo a prime: scattered enough for a demo, and exact. Most patients come one to three
# times; one in twenty has 5 visits or more, one in a hundred 25 or more, and one in five hundred 65 or more.
_VISITS = f"""
    WITH people AS (
        SELECT range AS patient_id, (range * 48271 + 11) % 2147483647 AS mix FROM range({PEOPLE})
    ), often AS (
        SELECT *, CASE WHEN (mix // 4096) % 1000 < 950 THEN 1 + (mix // 64) % 3
                       WHEN (mix // 4096) % 1000 < 990 THEN 5 + (mix // 128) % 20
                       WHEN (mix // 4096) % 1000 < 998 THEN 25 + (mix // 128) % 40
                       ELSE 65 + (mix // 128) % 60 END AS times
        FROM people
    ), each AS (
        SELECT patient_id, mix, unnest(range(times)) AS visit FROM often
    ), visits AS (
        SELECT patient_id, mix, ((mix + 7919 * visit) * 16807) % 2147483647 AS each_mix,
               (((mix // 33) % 17) * ((mix // 33) % 17) // 64 + least(visit, 1)) % {len(WARDS)} AS place
        FROM each
    )
    SELECT patient_id,
           18 + ((mix // 7) % 41) + ((mix // 1009) % 32) AS age,
           CASE WHEN patient_id < {RARE_PEOPLE} THEN '{RARE_WARD}'
                ELSE list_value({", ".join(f"'{ward}'" for ward in WARDS)})[place + 1] END AS ward,
           1 + ((each_mix // 13) % (3 + 2 * ((place * 3) % {len(WARDS)}))) * ((each_mix // 997) % 8) // 5 AS days
    FROM visits
"""  # noqa: S608 (made only of constants)

ASKED = 30_000  # people in the survey
_SURVEY = f"""
    WITH people AS (SELECT (range * 48271 + 11) % 2147483647 AS mix FROM range({ASKED}))
    SELECT list_value('north', 'south', 'east', 'west')[1 + (mix // 64) % 2 + (mix // 4096) % 3] AS region,
           (mix // 7) % 30 + (mix // 1009) % 25 AS hours
    FROM people
"""  # noqa: S608 (made only of constants)


def write_visits(path: Path) -> None:
    """Write the table as Parquet: patient_id, age, ward and days, one row for each visit."""
    _write_table(_VISITS, path)


def _write_table(rows: str, path: Path) -> None:
    _quiet_engine().execute(f"COPY ({rows}) TO $path (FORMAT parquet)", {"path": str(path)})


def true_visits(path: Path) -> Mapping[str, tuple[int, int, float]]:
    """Return the truth, which only a demo may show: each ward's people, visits and mean stay."""
    question = "SELECT ward, count(DISTINCT patient_id), count(*), avg(days) FROM read_parquet(?) GROUP BY ward"
    rows = _quiet_engine().execute(question, [str(path)]).fetchall()
    return {ward: (people, visits, days) for ward, people, visits, days in rows}


def _quiet_engine() -> Any:
    """Return a connection that draws no progress bar into what a demo prints."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


# --- the story ---

SURVEYED = """\
survey = tacit.table("survey.parquet", unit=tacit.ROW, budget=tacit.epsilon(3, delta=1e-6))
survey.group_by("region").agg(people=tacit.count(), hours=tacit.mean("hours")).answer(epsilon=1)"""
DECLARED = 'visits = tacit.table("visits.parquet", unit="patient_id", budget=tacit.epsilon(2, delta=1e-6))'
PLANNED = """\
q = visits.group_by("ward").agg(visits=tacit.count(), stay=tacit.mean("days"))
q.plan(epsilon=1)"""
GUESSED = f"""\
guessed = tacit.table("visits.parquet", unit="patient_id",
                      rows_per_unit={GUESSED_VISITS}, groups_per_unit={GUESSED_WARDS},
                      budget=tacit.epsilon(2, delta=1e-6), ledger=tacit.TRYOUT)
guessed.group_by("ward").count().answer(epsilon=1)    # an unchecked bound"""
ADULTS = """\
visits.sql("SELECT COUNT(*) AS visits, AVG(days) AS stay FROM visits WHERE age >= 65")
      .answer(epsilon=0.5)"""
NEXT_SERVED = """\
tacit demo --serve                       the same in a browser: ada is the curator, ben an analyst
"""
NEXT_INSTALLED = """\
pip install 'tacit[server]'              then tacit demo --serve shows the same in a browser
"""
NEXT = """\
tacit demo --keep visits.parquet         keeps the made-up table, to ask it yourself:
tacit plan visits.parquet "SELECT ward, COUNT(*) FROM visits GROUP BY ward" \\
      --unit patient_id --budget 2 --delta 1e-6 --epsilon 1
tacit ask ...                            the same words, for an answer; --plot wards.png draws it
tacit init visits.parquet                declares it once, in a tacit.toml; then: tacit ask visits "SELECT ..." """


@with_options
def demo(
    what: str | None = argument(
        "[overfitting]",
        "Another story: overfitting, of holdouts that are fooled (in the package tacit-classroom).",
        default=None,
    ),
    *,
    keep: Path | None = option("FILE", help="Write the made-up table here too, to ask it yourself."),
    plot: Path | None = option("FILE", help="With overfitting: also draw it, as .png, .svg or .html."),
    serve: bool = flag(
        help="Show it in the browser: links sign in ada, the curator, and ben, an analyst.", name="--serve"
    ),
    port: int = option("N", help="With --serve: the port; 0 is any that is free.", default=8765),
) -> None:
    """Show what Tacit does, on made-up data, in a few seconds.

    Example: `tacit demo`, or `tacit demo --serve` for the browser; `tacit demo overfitting --plot
    overfitting.png` fools a holdout
    """
    if what is not None:
        show_overfitting(what, plot)
        return
    if plot is not None:
        raise InvalidParameter("--plot draws the other story\nhint: tacit demo overfitting --plot overfitting.png")
    if serve:
        require_server()
    with own_folder() as folder:
        path = folder / "visits.parquet"
        write_visits(path)
        if keep is not None:
            keep_table(path, keep)
        if serve:
            serve_visits(folder, port)
            return
        with chdir(folder):
            tell_story()
    say("Try next", (NEXT_SERVED if has_server() else NEXT_INSTALLED) + NEXT)


CATALOG = """\
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "patient_id"
budget = { epsilon = 5, delta = 0.000001 }
hold = "1s"
"""


def serve_visits(folder: Path, port: int) -> None:
    """Serve the made-up table on this machine, with a curator and an analyst; the links sign in."""
    from tacit.cli.serve import listen_at, open_desk

    (folder / "tacit.toml").write_text(CATALOG, encoding="utf-8")
    desk = open_desk(folder / "tacit.toml", Fraction(1), 8, sources=(folder,))
    ledger = desk.ledger
    tokens = {}
    for name, role in (("ada", "curator"), ("ben", "analyst")):
        ledger.add_person(name, role=role, reason="tacit demo --serve")
        tokens[f"{name}, {role}"] = ledger.new_token(name, reason="tacit demo --serve")
    listen_at(desk, port, folder, tokens)


def tell_story() -> None:
    """Tell the story in this folder: the code that a step shows is the code that it runs."""
    import tacit

    names: dict[str, Any] = {"tacit": tacit}
    _write_table(_SURVEY, Path("survey.parquet"))
    say(
        f"1. A survey of {ASKED:,} made-up people: one row each, and every number is close to the table's own",
        f"{SURVEYED}\n\n{run(SURVEYED, names)}\n\nBeside the truth, which only a demo may show:\n{true_survey()}",
    )
    run(DECLARED, names)
    columns = names["visits"].frame.declaration.columns.items()
    say(
        f"2. People with many rows: hospital visits of {PEOPLE:,} made-up people\n"
        "   Its curator says whose rows they are, and how much may ever be learned of one person. Nothing else.",
        f"{DECLARED}\n\n{', '.join(f'{name} ({facts.type})' for name, facts in columns)}",
    )
    say("3. A plan: free, and no row is read", f"{PLANNED}\n\n{run(PLANNED, names)}")
    answer, exact = run("q.answer(epsilon=1)", names), true_visits(Path("visits.parquet"))
    say("4. An answer: charged first, then read, with an error bar on every cell", f"q.answer(epsilon=1)\n\n{answer}")
    lines = [f"{'ward':<12} {'visits':>7} {'(exact)':>9}   {'stay':>6} {'(exact)':>9}"]
    for row in answer.to_dicts():
        _, visits, stay = exact[row["ward"]]
        shown = "none" if row["stay"] is None else f"{row['stay']:.3f}"
        lines.append(f"{row['ward']:<12} {row['visits']:>7,} {f'({visits:,})':>9}   {shown:>6} {f'({stay:.3f})':>9}")
    rare = f"the ward '{RARE_WARD}', which only {RARE_PEOPLE} people visited"
    lines.append(f"\nNot shown: {rare}. Groups this small are hidden.")
    say("   Beside the truth, which only a demo may show", "\n".join(lines))
    lines = [f"{'ward':<12} {'count':>7} {'± 95 %':>7} {'(exact)':>9}"]
    for row in run(GUESSED, names).to_dicts():
        half, visits = (row["count_high"] - row["count_low"]) // 2, exact[row["ward"]][1]
        lines.append(f"{row['ward']:<12} {row['count']:>7,} {half:>7,} {f'({visits:,})':>9}")
    lines.append("\nThe noise is small and the numbers are wrong: patients who come often lost most of their visits.")
    say("5. The effect of a guessed bound", GUESSED + "\n\n" + "\n".join(lines))
    say(
        "6. The same in SQL; asked again, it is free and has the same numbers",
        f"{ADULTS}\n\n{run(f'({ADULTS})', names)}\n\n{run(f'({ADULTS})', names)}",
    )
    lines = []
    for age in (30, 40, 50):
        lines.append(f"visits.where('age < {age}').count().answer(epsilon=0.4)")
        try:
            row = run(lines[-1], names).to_dicts()[0]
        except tacit.BudgetExceeded as refusal:
            lines.append(f"  {type(refusal).__name__}: " + str(refusal).replace("\n", "\n  "))
            break
        lines.append(f"  {row['count']:,}, from {row['count_low']:,} to {row['count_high']:,} (95 %)")
    say("7. The budget is spent, and no further question is answered", "\n".join(lines))


def true_survey() -> str:
    """Return the survey's truth, a line for each region."""
    true = "SELECT region, count(*), avg(hours) FROM 'survey.parquet' GROUP BY region ORDER BY region"
    rows = _quiet_engine().execute(true).fetchall()
    return "\n".join(f"{region:<6} {people:>7,} people {hours:>6.2f} hours" for region, people, hours in rows)


def run(code: str, names: dict[str, Any]) -> Any:
    """Run lines of Python, and return the value of the last one if it has one."""
    *lines, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        lines, last = [*lines, last], ast.Expr(ast.Constant(None))
    exec(compile(ast.Module(lines, []), "demo", "exec"), names)  # noqa: S102 (constants of this file)
    return eval(compile(ast.fix_missing_locations(ast.Expression(last.value)), "demo", "eval"), names)  # noqa: S307


def keep_table(path: Path, keep: Path) -> None:
    """Copy the made-up table to the folder of --keep."""
    try:
        shutil.copyfile(path, keep)
    except OSError:
        raise InvalidParameter("--keep cannot be written there\nhint: tacit demo --keep visits.parquet") from None


def show_overfitting(what: str, plot: Path | None) -> None:
    """Show that an analyst who asks again and again fools a plain holdout, and not one that answers with noise."""
    story_of_package = demo_of(what)
    check_plot(plot)
    story = story_of_package()
    typer.echo(str(story))
    if plot is not None:
        typer.echo(f"drawn: {story.plot(plot)}", err=True)


@contextmanager
def own_folder() -> Iterator[Path]:
    """Lend a folder for the table, the ledger and its key, and remove it afterwards."""
    before = os.environ.get("TACIT_HOME")
    with tempfile.TemporaryDirectory(prefix="tacit-demo-") as folder:
        os.environ["TACIT_HOME"] = str(Path(folder) / "home")
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["TACIT_HOME"]
            else:
                os.environ["TACIT_HOME"] = before


def say(title: str, text: str) -> None:
    """Print a step of the story: its title, and its lines indented by two spaces."""
    typer.echo(f"\n{title}\n")
    typer.echo("\n".join(f"  {line}".rstrip() for line in text.splitlines()))
