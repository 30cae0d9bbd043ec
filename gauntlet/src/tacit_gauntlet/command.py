"""`tacit gauntlet`: every published attack that fits what is built, tried here; or every published bug, planted."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit_gauntlet.frame.case import Size
    from tacit_gauntlet.frame.course import Finding, Job
    from tacit_gauntlet.frame.record import Record
    from tacit_gauntlet.frame.waiting import Awaited

EXIT_FAILED = 1
_FIGURE_WIDTH_MAX = 300

Say = Callable[[str, str], None]


def gauntlet(
    *,
    engine: Annotated[
        str,
        typer.Option(
            help="Where rows are: duckdb (read in SQL), kernel (in compiled loops), postgres or spark, started here."
        ),
    ] = "duckdb",
    case: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this case, or a letter for all of its; repeatable.")
    ] = None,
    mutants: Annotated[bool, typer.Option("--mutants", help="Plant each published bug: its case must fail.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes, in about a third of the time.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with the evidence of each.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the evidence as JSON.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="How many at a time; two unless said.")] = None,
) -> None:
    """Try every published attack on this installation, one line each; exit 1 if any succeeds.

    The whole run takes at most 15 minutes on two cores. It uses tables and ledgers of its own and spends nothing.

    Examples: `tacit gauntlet --quick`; `tacit gauntlet --case N02 --case L`;
    `tacit gauntlet --mutants --html bugs.html`
    """
    import tacit_gauntlet as course_of
    from tacit_gauntlet.frame.case import all_cases
    from tacit_gauntlet.frame.course import check_engine, run_course, workers_by_default
    from tacit_gauntlet.frame.mutant import all_mutants
    from tacit_gauntlet.frame.record import Record, Setting

    check_engine(engine)
    check_writable(html, json)
    course_of.load()
    jobs, waits = chosen(case, mutants=mutants, quick=quick)
    size: Size = "quick" if quick or mutants else "full"
    setting = Setting(size=size, engine=engine, workers=workers or workers_by_default())
    typer.echo(f"{setting}\n")
    if engine == "kernel":
        from tacit.engine.kernel.compiled import compile_now

        compile_now()
    start = time.perf_counter()
    with told(len(jobs) + len(waits)) as say:
        findings = tell(run_course(jobs, workers=setting.workers, engine=engine), say)
        for each in waits:
            say(*line_of_wait(each))
    found = sorted(findings, key=lambda finding: (finding.job.kind, jobs.index(finding.job)))
    record = Record(setting, tuple(found), waits, time.perf_counter() - start, all_cases(), all_mutants())
    typer.echo("\n" + in_words(record))
    write(record, html=html, json=json)
    if not record.passed:
        raise typer.Exit(EXIT_FAILED)


def chosen(wanted: Sequence[str] | None, *, mutants: bool, quick: bool) -> "tuple[list[Job], tuple[Awaited, ...]]":
    """Return what is to run, and what waits; an id that is neither is refused."""
    from tacit_gauntlet.frame.case import all_cases, find
    from tacit_gauntlet.frame.course import job_of_case, job_of_mutant
    from tacit_gauntlet.frame.mutant import all_mutants
    from tacit_gauntlet.frame.waiting import AWAITED, waiting

    registered = [each.id for each in all_cases()]
    known = [*registered, *(each.id for each in AWAITED)]
    ids = set(known) if not wanted else {id for word in wanted for id in named(word, known)}
    waits = waiting(registered, ids)
    if mutants:
        bugs = [bug for bug in all_mutants() if bug.killed_by in ids]
        return [job_of_mutant(bug, find(bug.killed_by)) for bug in bugs], ()
    size: Size = "quick" if quick else "full"
    return [job_of_case(find(id), size) for id in sorted(set(registered) & ids)], waits


def named(word: str, known: Sequence[str]) -> list[str]:
    """Return the ids that a word names: an id, or the letter of several."""
    found = [id for id in known if id.upper() == word.upper() or (len(word) == 1 and id.startswith(word.upper()))]
    if not found:
        raise InvalidParameter(
            f"the gauntlet has no case {word}\nhint: the cases are: {', '.join(sorted(set(known)))}; "
            "a letter alone stands for all of its"
        )
    return found


def tell(findings: "Iterable[Finding]", say: Say) -> "list[Finding]":
    """Say each finding as it comes, and return them all."""
    seen = []
    for finding in findings:
        seen.append(finding)
        say(*line_of(finding))
    return seen


def line_of(finding: "Finding") -> tuple[str, str]:
    """Return a finding as a line, and its colour; a failure has its evidence below it."""
    from tacit_gauntlet.frame.case import SECONDS_MAX, find
    from tacit_gauntlet.frame.mutant import all_mutants

    late = f", over {SECONDS_MAX:g} s" if finding.is_late else ""
    took = f"{finding.seconds:5.1f} s{late}"
    colour = "green" if finding.passed else "red"
    if finding.job.kind == "case":
        verdict = "pass" if finding.passed else "FAIL"
        figures = [f"{name}: {value}" for name, value in finding.figures.items()]
        below = [] if finding.passed else [*figures, finding.how]
        head = f"{finding.job.name:4} {verdict}  {took}  {find(finding.job.name).title}"
    else:
        (killer,) = (bug.killed_by for bug in all_mutants() if bug.name == finding.job.name)
        fate = f"killed by {killer}" if finding.passed else f"SURVIVED {killer}"
        below = [] if finding.passed else [finding.how]
        head = f"{fate:13}  {took}  {finding.job.name}"
    shown = [text[:_FIGURE_WIDTH_MAX] for text in below if text]
    return "\n".join([head, *(f"     {text}" for text in shown)]), colour


def line_of_wait(each: "Awaited") -> tuple[str, str]:
    """Return what a case waits for as a line, and its colour; one that is due and not there is a failure."""
    if each.is_due:
        return f"{each.id:4} FAIL  missing, though {each.needs} is there: {each.title}", "red"
    return f"{each.id:4} waits for: {each.needs}  {each.title}", "yellow"


def in_words(record: "Record") -> str:
    """Return the summary by letter and the verdict."""
    lines = [f"{'':14} {'passed':>7} {'failed':>7} {'wait':>5} {'seconds':>8}"]
    for name, passed, failed, waits, seconds in record.summary():
        lines.append(f"{name:14} {passed:7} {failed:7} {waits:5} {seconds:8.0f}")
    failed = sum(not finding.passed for finding in record.findings) + len(record.missing)
    late = sum(finding.is_late for finding in record.findings)
    what = "planted bugs killed" if any(f.job.kind == "mutant" for f in record.findings) else "cases passed"
    passed = sum(finding.passed for finding in record.findings)
    verdict = f"{passed} of {len(record.findings)} {what} in {record.seconds:.0f} s"
    return "\n".join([*lines, "", f"{verdict}; {failed} failed, {late} late"])


@contextmanager
def told(jobs: int) -> Iterator[Say]:
    """Yield what says a line: in colour under a progress bar on a terminal, plain otherwise."""
    if not sys.stdout.isatty():
        yield lambda text, _: typer.echo(text)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
    from rich.text import Text

    progress = Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=Console(highlight=False), transient=True
    )
    with progress:
        bar = progress.add_task("", total=jobs)

        def say(text: str, colour: str) -> None:
            progress.console.print(Text(text, style="" if colour == "green" else colour))
            progress.advance(bar)

        yield say


def check_writable(*paths: Path | None) -> None:
    """Refuse a file whose folder is not there, before minutes are spent."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise InvalidParameter(f"there is no folder for {path}\nhint: make it, or name another file")


def write(record: "Record", *, html: Path | None, json: Path | None) -> None:
    """Write the page and the JSON where they are wanted, and say so."""
    from tacit_gauntlet.frame.record import page_of

    if html is not None:
        html.write_text(page_of(record), encoding="utf-8")
        typer.echo(f"written: {html}")
    if json is not None:
        json.write_text(record.to_json(), encoding="utf-8")
        typer.echo(f"written: {json}")
