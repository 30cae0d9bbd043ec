"""The page's sections and pictures, one for each subject that was measured."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.peers.charts import BASELINE_COLOUR, OURS_COLOUR, PEER_COLOUR, Bar, Panel, write_chart
from bench.peers.figures import BASELINES, OTHER_PROMISE, OURS, OURS_ON_SPARK, Figures, at_least, name
from bench.peers.learned import CASES
from bench.peers.learning.subject import ADULT, EPSILONS, MODELS, case_of
from bench.peers.targets import targets
from bench.peers.words import (
    ACCOUNTING,
    BOUNDS,
    GROUPBY,
    HOW,
    KEYS,
    LEARNING,
    LINES,
    LOCAL,
    NOISE,
    ON_SPARK,
    ONE,
    REASONS,
    SIZE,
    START,
    SYNTHETIC,
)
from bench.run import seconds

GROUPED = ("groupby6", "groupby7", "groupby7wide")
PERSON = "duckdb, by person"


def all_sections(figures: Figures) -> Iterator[str]:
    """Yield the text of every section that has figures."""
    made = {
        "groupby": groupby, "spark7": on_spark, "noise": noise, "one": one, "keys": keys, "bounds": bounds,
        "learning": learning, "synthetic": synthetic, "accounting": accounting, "start": start, "lines": lines,
        "local": local,
    }  # fmt: skip
    for subject, make in made.items():
        if any(figures.cases(each) for each in (GROUPED if subject == "groupby" else (subject,))):
            yield from make(figures)
    yield HOW
    yield why_not(figures)


def why_not(figures: Figures) -> str:
    """Return which targets are missed, and why."""
    missed = [each for each in targets(figures) if each.met is False]
    told = [f"- *{each.name}*, {each.measured}: {REASONS.get(each.name, 'not yet understood.')}" for each in missed]
    said = told or ["- No target that was measured is missed."]
    return "\n".join(["## Where a target is missed, and why\n", *said, f"- {SIZE}"])


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines_of = ["| " + " | ".join(row) + " |" for row in (head, tuple("---" for _ in head), *rows)]
    return "\n".join(lines_of)


def shown(record: dict[str, Any], write: Callable[[float], str]) -> str:
    """Return a record's value, or how it failed."""
    if record["value"] is None:
        return f"> {at_least(record):.0f} s" if at_least(record) else record["failed"]
    return write(record["value"])


def groupby(figures: Figures) -> Iterator[str]:
    """Seconds, times ours, times DuckDB, and memory."""
    yield GROUPBY
    for subject in GROUPED:
        for case in figures.cases(subject):
            ours = figures.value(subject, case, OURS, "seconds")
            bare = figures.value(subject, case.replace("private", "public"), PERSON, "seconds")
            rows = []
            for record in sorted(figures.all(subject, case, "seconds"), key=lambda each: at_least(each) or 1e9):
                took = at_least(record)
                against = ["–" if took is None or not base else f"{took / base:.3g}" for base in (ours, bare)]
                memory = record["facts"].get("mebibytes")
                memory_shown = "–" if not memory else f"{memory / 1024:.1f} GiB"
                rows.append((name(record["library"]), shown(record, seconds), *against, memory_shown, record["note"]))
            yield f"### {case}\n"
            yield table(("", "time", "× Tacit's", "× DuckDB's by item and person", "memory", ""), rows) + "\n"


def on_spark(figures: Figures) -> Iterator[str]:
    """Seconds, processor seconds, times ours, and memory."""
    yield ON_SPARK
    for case in figures.cases("spark7"):
        rows = []
        for record in figures.all("spark7", case, "seconds"):
            library, cells = record["library"], []
            for quantity in ("seconds", "processor seconds"):
                ours, took = (figures.value("spark7", case, each, quantity) for each in (OURS_ON_SPARK, library))
                cells.append("–" if took is None else seconds(took))
                cells.append("–" if took is None or not ours else f"{took / ours:.3g}")
            memory = record["facts"].get("mebibytes")
            taken = f"{memory / 1024:.1f} GiB" if memory else record["failed"]
            rows.append((name(library), *cells, taken, record["note"]))
        yield f"### {case}, on Spark\n"
        yield table(("", "time", "× ours", "processor time", "× ours", "memory", "runs on"), rows) + "\n"


def noise(figures: Figures) -> Iterator[str]:
    """Draws a second, and against numpy."""
    yield NOISE
    rows = []
    for case in figures.cases("noise"):
        found = {each["library"]: each for each in figures.all("noise", case, "seconds a draw")}
        if not case or OURS not in found:
            continue
        ours, base = found[OURS]["value"], found.get("numpy", {}).get("value")
        peers = figures.peers("noise", case, "seconds a draw")
        best = min(peers, key=lambda each: float(each["value"]), default=None)
        rest = [shown(found[each], rate) if each in found else "–" for each in NOISE_COLUMNS]
        rows.append(
            (
                case,
                rate(ours),
                *rest,
                "–" if base is None else f"{ours / base:.2g}",
                "–" if best is None else f"{best['value'] / ours:.3g}",
            )
        )
    head = ("noise, scale", "Tacit", *(name(each) for each in NOISE_COLUMNS), "time, × numpy's", "× the fastest peer")
    yield table(head, rows) + "\n"


NOISE_COLUMNS = ("numpy", "python-dp", "diffprivlib", "opendp", "tmlt.analytics")


def rate(seconds_each: float) -> str:
    """Return how many a second, in millions."""
    return f"{1e-6 / seconds_each:.3g} M"


def one(figures: Figures) -> Iterator[str]:
    """Errors, and how sure they are."""
    yield ONE
    rows = []
    for case in figures.cases("one"):
        for record in figures.all("one", case, "error"):
            facts = record["facts"]
            off = f"± {plain(facts['off'])}" if "off" in facts else ""
            answers = f"{facts['answers']:.0f}" if "answers" in facts else ""
            rows.append((case, name(record["library"]), shown(record, plain), off, answers, record["note"]))
    yield table(("", "", "mean absolute error", "standard error", "answers", ""), rows) + "\n"


def keys(figures: Figures) -> Iterator[str]:
    """Keys shown and errors of items."""
    yield KEYS
    for case in figures.cases("keys"):
        quantities = ("shown", "error of n", "error of total", "error of mean")
        found = [each for each in quantities if figures.all("keys", case, each)]
        rows = []
        for first in figures.all("keys", case, found[0]) if found else []:
            same = [
                next(
                    (
                        each
                        for each in figures.all("keys", case, quantity)
                        if (each["library"], each["note"]) == (first["library"], first["note"])
                    ),
                    None,
                )
                for quantity in found
            ]
            values = [first["failed"] or "–" if each is None else shown(each, "{:.4g}".format) for each in same]
            rows.append((name(first["library"]), *values, first["note"]))
        yield table((case, *found, ""), rows) + "\n"


def bounds(figures: Figures) -> Iterator[str]:
    """Errors where nobody declares a bound."""
    yield BOUNDS
    for case in sorted(figures.cases("bounds")):
        rows = [
            (
                name(each["library"]),
                shown(each, "{:,.0f}".format),
                f"{each['facts']['answers']:.0f}" if "answers" in each["facts"] else "",
                each["note"],
            )
            for each in sorted(figures.all("bounds", case, "error"), key=lambda each: each["value"] or float("inf"))
        ]
        measured = {each["library"] for each in figures.all("bounds", case, "error")}
        missing = [library for library, asked in CASES.items() if case in asked and library not in measured]
        rows += [(name(library), "not measured yet", "", "") for library in missing]
        yield table((case, "mean absolute error", "answers", ""), rows) + "\n"


def learning(figures: Figures) -> Iterator[str]:
    """How well models predict, on one table."""
    yield LEARNING
    rows = []
    for model, facts in MODELS.items():
        cases = [case_of(ADULT, epsilon if facts.private else None) for epsilon in EPSILONS]
        found = [figures.value("learning", each, model, "auc") for each in cases]
        rows.append((name(model), *("–" if each is None else f"{each:.3f}" for each in found)))
    yield table(("", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)), rows) + "\n"


def accounting(figures: Figures) -> Iterator[str]:
    """Totals and times."""
    yield ACCOUNTING
    rows = []
    for case in figures.cases("accounting"):
        values = [
            figures.value("accounting", case, library, quantity)
            for quantity in ("epsilon", "seconds")
            for library in (OURS, "dp-accounting")
        ]
        cells = ["–" if value is None else f"{value:.9g}" for value in values[:2]]
        cells += ["–" if value is None else seconds(value) for value in values[2:]]
        rows.append((case, *cells))
    yield table(("batch", "ε, Tacit", "ε, dp-accounting", "time, Tacit", "time, dp-accounting"), rows) + "\n"


def synthetic(figures: Figures) -> Iterator[str]:
    """Made-up rows: how far pairs are off, and the time they take."""
    yield SYNTHETIC
    rows = []
    for case in figures.cases("synthetic"):
        times = {(each["library"], each["note"]): each for each in figures.all("synthetic", case, "processor seconds")}
        for record in figures.all("synthetic", case, "mean distance of pairs"):
            took = times.get((record["library"], record["note"]))
            shown_time = "" if took is None else shown(took, "{:.3g} s".format)
            rows.append((case, name(record["library"]), record["note"], shown(record, "{:.4f}".format), shown_time))
    yield table(("", "", "", "mean distance of pairs", "processor time"), rows) + "\n"


def start(figures: Figures) -> Iterator[str]:
    """Import times and sizes."""
    yield START
    sizes = {each["library"]: each for each in figures.all("start", "size", "mebibytes")}
    rows = []
    for record in figures.all("start", "import", "seconds"):
        size = sizes.get(record["library"])
        size_shown = "" if size is None else shown(size, "{:.0f} MiB".format)
        rows.append((name(record["library"]), shown(record, seconds), size_shown))
    yield table(("", "import", "installed"), rows) + "\n"


def lines(figures: Figures) -> Iterator[str]:
    """Lines of code."""
    yield LINES
    (case,) = figures.cases("lines")
    rows = [(name(record["library"]), shown(record, "{:.0f}".format)) for record in figures.all("lines", case, "lines")]
    yield table(("", "lines"), rows) + "\n"


def local(figures: Figures) -> Iterator[str]:
    """Reports made and estimated a second."""
    yield LOCAL
    rows = []
    for case in figures.cases("local"):
        made, estimated = (
            {each["library"]: shown(each, a_second) for each in figures.all("local", case, quantity)}
            for quantity in ("make", "estimate")
        )
        # a page is written after every figure, so either may be missing yet
        rows += [(case, name(library), made.get(library, ""), estimated.get(library, "")) for library in made]
    yield table(("", "", "reports made a second", "estimated a second"), rows) + "\n"


def plain(value: float) -> str:
    """Return a number with two digits, or whole where it is large."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def a_second(value: float) -> str:
    """Return how many a second, in whole numbers."""
    return f"{float(f'{1 / value:.3g}'):,.0f}"


def write_charts(figures: Figures, folder: Path) -> None:
    """Write a picture for each subject that a reader takes in at a glance."""
    panels = [
        Panel(case, bars(figures.all(subject, case, "seconds"), seconds))
        for subject in GROUPED
        for case in figures.cases(subject)
        if "public" in case
    ]
    _write(folder / "groupby.svg", "Count, sum and mean by item: time, logarithmic", panels, logarithmic=True)
    kinds = ("Laplace", "discrete Laplace", "Gaussian", "discrete Gaussian")
    panels = [
        Panel(f"{kind}, scale 10", bars(figures.all("noise", f"{kind}, 10", "seconds a draw"), rate, turned=True))
        for kind in kinds
    ]
    _write(folder / "noise.svg", "Noise: draws a second, logarithmic", panels, logarithmic=True)
    panels = [Panel(case, bars(figures.all("one", case, "error"), plain)) for case in figures.cases("one")]
    title = "One number about a million people, ε = 1: mean absolute error (* another promise)"
    _write(folder / "one.svg", title, panels, logarithmic=False)
    shown_keys = best_of_each(figures.all("keys", "1000 private keys", "shown"))
    panels = [Panel("the best of the settings tried", bars(shown_keys, "{:.0f}".format))]
    _write(folder / "keys.svg", "Private keys shown, of 1000", panels, logarithmic=False)
    panels = [
        Panel("import, seconds (logarithmic)", bars(figures.all("start", "import", "seconds"), seconds)),
    ]
    _write(folder / "start.svg", "Time to import", panels, logarithmic=True)


def _write(path: Path, title: str, panels: list[Panel], *, logarithmic: bool) -> None:
    full = [panel for panel in panels if panel.bars]
    if full:
        write_chart(path, title, full, logarithmic=logarithmic)


def best_of_each(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each library's record with the largest value."""
    best: dict[str, dict[str, Any]] = {}
    for record in records:
        library = record["library"]
        if record["value"] is not None and (library not in best or record["value"] > best[library]["value"]):
            best[library] = record
    return list(best.values())


def bars(records: list[dict[str, Any]], write: Callable[[float], str], *, turned: bool = False) -> tuple[Bar, ...]:
    """Return a bar for each record that has a value; `turned` draws one over it."""
    made = []
    for record in records:
        value = at_least(record)
        if value is None or value <= 0:
            continue
        library = record["library"]
        colour = OURS_COLOUR if library.startswith(OURS) else BASELINE_COLOUR if library in BASELINES else PEER_COLOUR
        star = " *" if library in OTHER_PROMISE and record["subject"] == "one" else ""
        text = write(value) if record["value"] is not None else f"> {value:.0f} s"
        made.append(Bar(name(library) + star, 1 / value if turned else value, text, colour))
    return tuple(sorted(made, key=lambda bar: bar.value))
