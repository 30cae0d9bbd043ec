"""What is measured side by side, subject by subject. Each yields records: one library, one case, one quantity.

A record has a value or says how the library failed; nothing that a peer does ends the run. Order is by importance, so
that a run that is cut short has the lines that matter.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench.peers import environments
from bench.peers.asking import HERE, HERE_TOO, Said, ask, our_python, start_seconds
from bench.peers.groupby.tables import exact, write_orders

MILLION = 10**6


@dataclass(frozen=True)
class Record:
    """One figure: of which library, in which case, what it is, and how many times it was measured."""

    subject: str
    case: str
    library: str
    quantity: str
    value: float | None
    failed: str = ""
    note: str = ""
    facts: dict[str, float] = field(default_factory=dict)


def python_of(library: str) -> str:
    """Return the library's Python; NotInstalled where it has none here."""
    return our_python() if library in HERE_TOO else environments.environment(library).python


def asked(library: str, script: str, *arguments: str, timeout: float = 300.0, folder: Path | None = None) -> Said:
    """Ask a library, or say that it is not installed."""
    try:
        python = python_of(library)
    except environments.NotInstalled as error:
        return Said(None, f"not installed: {error}", 0.0)
    return ask(python, script, *arguments, timeout=timeout, folder=folder)


def noise() -> Iterator[Record]:
    """Seconds for one draw."""
    libraries = ("tacit", "numpy", "opendp", "python-dp", "diffprivlib", "tmlt.analytics")
    for library, case, value in in_turns(libraries, "noise.py"):
        number = value if isinstance(value, float) else None
        yield Record("noise", case, library, "seconds a draw", number, "" if number else str(value))


def in_turns(libraries: tuple[str, ...], script: str) -> Iterator[tuple[str, str, Any]]:
    """Ask each library twice, in turns, and yield the shorter of its times: a slow moment then hits none alone."""
    found: dict[tuple[str, str], Any] = {}
    for library in libraries * 2:
        said = asked(library, script, library)
        for case, value in (said.facts or {"": said.failed}).items():
            before = found.setdefault((library, case), value)
            if isinstance(value, float) and isinstance(before, float):
                found[library, case] = min(before, value)
            elif isinstance(value, dict):
                found[library, case] = {**value, "seconds": min(before["seconds"], value["seconds"])}
    for (library, case), value in found.items():
        yield library, case, value


# library -> its script, and how often it answers at 10^6 and at 10^7 rows
GROUPERS = {
    "duckdb": ("duckdb", 7, 5),
    "duckdb, by person": ("duckdb", 7, 5),
    "tacit": ("tacit", 9, 5),
    "tacit, in SQL": ("tacit", 5, 1),
    "opendp": ("opendp", 1, 1),
    "tmlt.analytics": ("tumult", 1, 1),
    "pipeline-dp": ("pipeline_dp", 1, 1),
    "smartnoise-sql": ("smartnoise", 1, 1),
}
# asked before and after the slow ones, so that a slow moment of the machine counts for neither side
BARE = ("duckdb", "duckdb, by person")
TWICE = ("duckdb", "duckdb, by person", "tacit", "opendp")
GROUP_NOTES = {
    "opendp": "of a person's 5 groups it keeps 4, the lowest",
    "smartnoise-sql": "bounds 10 rows of a person, not groups",
    "tmlt.analytics": "Spark already started and warm",
    "tacit, in SQL": "until the kernel is compiled, or without it",
}


def by_groups(subject: str, rows: int, sizes: tuple[int, ...], only: Collection[str] = ()) -> Iterator[Record]:
    """Seconds from the Parquet file to the answer, and memory, for public and private keys; of some libraries alone."""
    for items in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "orders.parquet"
            write_orders(path, rows, items)
            for public in (True, False):
                words = question(path, rows, items, public=public, repeats=1)
                yield from in_order(subject, words, [each for each in only or GROUPERS if public or each not in BARE])


def in_order(subject: str, words: dict[str, Any], libraries: Collection[str]) -> Iterator[Record]:
    """Yield the records of one table: the quick libraries are asked before and after the others."""
    first = {library: grouped(subject, library, words) for library in libraries if library in TWICE}
    yield from (grouped(subject, library, words) for library in libraries if library not in TWICE)
    yield from (shorter(one, grouped(subject, library, words)) for library, one in first.items())


def shorter(one: Record, other: Record) -> Record:
    """Return the record of the shorter time: the machine is not equally quick at all times."""
    return min((one, other), key=lambda each: each.value or float("inf"))


def grouped(subject: str, library: str, asked_of: dict[str, Any]) -> Record:
    """Return one library's time and memory on one table."""
    script, few, many = GROUPERS[library]
    noise_told = {"duckdb, by person": "by person", "tacit, in SQL": "sql"}.get(library, "laplace")
    words = {**asked_of, "repeats": few if asked_of["rows"] == MILLION else many, "noise": noise_told}
    case = f"{words['rows']:,} rows, {words['items']:,} {'public' if words['public'] else 'private'} keys"
    said = asked(library.split(",", maxsplit=1)[0], f"groupby/with_{script}.py", json.dumps(words))
    value = median(said.facts["seconds"]) if said.facts else None
    facts = {"answers": float(len(said.facts["seconds"])), "mebibytes": said.mebibytes} if said.facts else {}
    return Record(subject, case, library, "seconds", value, said.failed, GROUP_NOTES.get(library, ""), facts)


def on_spark() -> Iterator[Record]:
    """Seconds and processor seconds of libraries that run on Spark, for public keys; ours before and after the other.

    Both have one version of Spark and of Python, with the same cores, memory and partitions.
    """
    scripts = {
        "tacit, on Spark": (environments.OURS_ON_SPARK, "tacit_on_spark", 3),
        "tmlt.analytics": (environments.TUMULT_ON_SPARK, "tumult", 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders"
        path.mkdir()
        write_orders(path / "orders.parquet", 10 * MILLION, 1000)
        words = question(path, 10 * MILLION, 1000, public=True, repeats=1)
        case, best = "10,000,000 rows, 1,000 public keys", {}
        for library in ("tacit, on Spark", "tmlt.analytics", "tacit, on Spark"):
            environment, script, repeats = scripts[library]
            told = json.dumps({**words, "repeats": repeats})
            said = asked(environment, f"groupby/with_{script}.py", told, timeout=900, folder=Path(folder))
            for quantity in ("seconds", "processor seconds"):
                value = median(said.facts[quantity]) if said.facts else None
                facts = {"answers": float(repeats), "mebibytes": said.mebibytes} if said.facts else {}
                note = said.facts["runs on"] if said.facts else ""
                record = Record("spark7", case, library, quantity, value, said.failed, note, facts)
                best[library, quantity] = shorter(best.get((library, quantity), record), record)
    yield from best.values()


def question(path: Path, rows: int, items: int, *, public: bool, repeats: int) -> dict[str, Any]:
    """Return what a group-by script is told."""
    return {
        "path": str(path),
        "rows": rows,
        "items": items,
        "public": public,
        "repeats": repeats,
        "answers": False,
        "bounded": False,
        "noise": "laplace",
        "rho": rho_at_half_delta(),
    }


def rho_at_half_delta() -> float:
    """Return the rho that (1, 5e-7) has room for, for peers that are told a rho."""
    from tacit.accounting.convert import rho_within

    return float(rho_within(Fraction(1), Fraction(1, 2 * 10**6)))


# library -> script, answers with public keys, with private ones, and the noises that it can be told
BOUNDED = {
    "tacit": ("tacit", 10, 10, ("its own choice",)),
    "opendp": ("opendp", 5, 4, ("laplace", "gaussian")),
    "pipeline-dp": ("pipeline_dp", 3, 3, ("laplace", "gaussian-selection")),
    "smartnoise-sql": ("smartnoise", 3, 2, ("laplace",)),
    "tmlt.analytics": ("tumult", 2, 2, ("laplace",)),
}


def keys() -> Iterator[Record]:
    """Each item's error from noise alone, and how many of 1000 private keys are shown, on tables within the bounds."""
    for law, public in (("skewed", False), ("spread", True)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "orders.parquet"
            write_orders(path, MILLION, 1000, law=law, bounded=True)
            truth = exact(path)
            for library, (script, when_public, when_private, noises) in BOUNDED.items():
                repeats = when_public if public else when_private
                for noise_kind in noises[:1] if public else noises:
                    words = question(path, MILLION, 1000, public=public, repeats=repeats)
                    words.update(answers=True, bounded=True, noise=noise_kind)
                    said = asked(library, f"groupby/with_{script}.py", json.dumps(words))
                    yield from judged(library, said, truth, noise_kind, public=public)


def judged(
    library: str, said: Said, truth: dict[int, tuple[float, float, float]], noise_kind: str, *, public: bool
) -> Iterator[Record]:
    """Mean absolute errors over items and answers, and how many items were shown."""
    case = "1000 public keys" if public else "1000 private keys"
    note = "" if noise_kind == "its own choice" or public else f"told {noise_kind}"
    if said.facts is None:
        yield Record("keys", case, library, "shown", None, said.failed, note)
        return
    answers = said.facts["answers"]
    if not public:
        yield Record("keys", case, library, "shown", fmean(len(each["item"]) for each in answers), note=note)
    for place, name in enumerate(("n", "total", "mean")):
        errors = [
            abs(value - truth.get(item, (0.0, 0.0, 50.0))[place])
            for answer in answers
            for item, value in zip(answer["item"], answer[name], strict=True)
        ]
        yield Record("keys", case, library, f"error of {name}", fmean(errors) if errors else None, note=note)


def one() -> Iterator[Record]:
    """Mean absolute error of one number about a million people."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.npy"
        np.save(file, np.random.default_rng(7).lognormal(mean=4, sigma=1, size=MILLION).clip(0, 1000))
        for library in ("tacit", "opendp", "python-dp", "diffprivlib", "smartnoise-sql"):
            said = asked(library, "one.py", library, str(file))
            for case, found in (said.facts or {"count": {"failed": said.failed, "note": ""}}).items():
                facts = {name: found[name] for name in ("off", "answers", "seconds") if name in found}
                note, failed = found["note"], found.get("failed", "")
                yield Record("one", case, library, "error", found.get("error"), failed, note, facts)


def bounds(only: Collection[str] = ()) -> Iterator[Record]:
    """Mean absolute errors where nobody declares a bound; a library that finds none says so."""
    from bench.peers.learned import CASES

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_undeclared(folder)
        for library in only or CASES:
            said = asked(library, "learned.py", library, str(folder), timeout=1800)
            missing = [{"case": case, "note": "", "failed": said.failed} for case in CASES[library]]
            for each in said.facts["records"] if said.facts else missing:
                facts = {"answers": float(each["answers"])} if "answers" in each else {}
                failed = each.get("failed", "")
                yield Record("bounds", each["case"], library, "error", each.get("error"), failed, each["note"], facts)


def write_undeclared(folder: Path) -> None:
    """Write the orders that `learned.py` asks about, each person's total, and what is true."""
    import duckdb

    from bench.learned.tables import zipf_orders

    path = folder / "orders.parquet"
    zipf_orders(path)
    by_item = duckdb.sql(f"SELECT item, count(*), sum(amount) FROM '{path}' GROUP BY item").fetchall()
    people = duckdb.sql(f"SELECT sum(amount) FROM '{path}' GROUP BY user_id").fetchall()
    totals = [float(total) for (total,) in people]
    truth = {
        "count by item": {item: n for item, n, _ in by_item},
        "sum by item": {item: total for item, _, total in by_item},
        "sum of all": {0: sum(totals)},
    }
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "totals.json").write_text(json.dumps(totals))


def accounting() -> Iterator[Record]:
    """The epsilon of batches, and seconds to find it."""
    for library, case, found in in_turns(("tacit", "dp-accounting"), "accounting.py"):
        for quantity in ("epsilon", "seconds"):
            if isinstance(found, dict):
                yield Record("accounting", case, library, quantity, found[quantity])
            else:
                yield Record("accounting", "1000 Laplace", library, quantity, None, str(found))


MODULES = {
    "opendp": "opendp.prelude",
    "smartnoise-sql": "snsql",
    "pipeline-dp": "pipeline_dp",
    "tmlt.analytics": "tmlt.analytics",
    "diffprivlib": "diffprivlib",
    "python-dp": "pydp",
    "dp-accounting": "dp_accounting",
    "multi-freq-ldpy": "multi_freq_ldpy.pure_frequency_oracles.GRR",
    "pure-ldp": "pure_ldp.frequency_oracles",
}


def start() -> Iterator[Record]:
    """Seconds to import, beyond starting Python, and mebibytes installed, beyond a bare environment."""
    made = environments.ours()
    note = "its packages load when first used"
    yield Record("start", "import", "tacit", "seconds", import_seconds(made.python, "import tacit"), note=note)
    loaded = import_seconds(made.python, "import tacit; tacit.table; tacit.Laplace")
    yield Record("start", "import", "tacit, with all that a table needs", "seconds", loaded)
    yield Record("start", "size", "tacit", "mebibytes", made.mebibytes)
    for library, module in MODULES.items():
        try:
            peer = environments.environment(library)
            value: float | None = import_seconds(peer.python, f"import {module}")
            failed, size = "", peer.mebibytes
        except Exception as error:  # noqa: BLE001  not installed, or does not import
            value, failed, size = None, type(error).__name__, None
        yield Record("start", "import", library, "seconds", value, failed)
        yield Record("start", "size", library, "mebibytes", size, failed)


def import_seconds(python: str, code: str) -> float:
    """Return how much longer Python takes with the import."""
    return max(0.0, start_seconds(python, code) - start_seconds(python, "pass"))


SNIPPETS = {
    "tacit": "tacit",
    "opendp": "opendp",
    "pipeline-dp": "pipeline_dp",
    "smartnoise-sql": "smartnoise",
    "tmlt.analytics": "tumult",
}


def lines() -> Iterator[Record]:
    """Lines of code for mean income by state with error bars; each is run, and counts only if it runs."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    people = np.arange(30_000)
    table = pa.table(
        {"person_id": people, "state": ["CA", "NY", "TX"] * 10_000, "income": 20_000 + people * 7919 % 60_000}
    )
    for library, script in SNIPPETS.items():
        folder = Path(tempfile.mkdtemp())
        try:
            pyarrow.parquet.write_table(table, folder / "people.parquet")
            said = asked(library, f"snippets/with_{script}.py", folder=folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        text = (HERE / "snippets" / f"with_{script}.py").read_text()
        value = None if said.facts is None else float(code_lines(text))
        yield Record("lines", "mean income by state, with error bars", library, "lines", value, said.failed)


def code_lines(text: str) -> int:
    """Return how many lines of a text are neither empty nor a comment; the line that says what it is for is one."""
    lines = [line.strip() for line in text.splitlines()]
    described = bool(lines) and lines[0].startswith('"""')
    return sum(bool(line) and not line.startswith("#") for line in lines[described:])


LOCAL_PROTOCOLS = ("response", "subset", "local-hashing")


def local() -> Iterator[Record]:
    """Seconds to make a report, and to estimate from one."""
    from bench.local import POINTS, ours

    for place, domain in enumerate((100, 10_000)):
        for protocol in LOCAL_PROTOCOLS:
            case = f"{protocol}, {domain:,} values"
            for quantity, value in zip(("make", "estimate"), ours(protocol, domain), strict=True):
                yield Record("local", case, "tacit", quantity, value)
            for library in ("multi-freq-ldpy", "pure-ldp"):
                if library == "pure-ldp" and (domain > 100 or protocol == "subset"):
                    continue  # it asks for 13 GB, and has no subsets
                people = str(POINTS[protocol][place])
                said = asked(library, "local.py", library, protocol, str(domain), people, timeout=60)
                for quantity in ("make", "estimate"):
                    value = said.facts[quantity] if said.facts else None
                    yield Record("local", case, library, quantity, value, said.failed)


def learning(only: Collection[str] = ()) -> Iterator[Record]:
    """How well models predict rows that they have not seen, and seconds to train them; of some models alone.

    "linear" is linear regression, of which only ours is measured, beside least squares.
    """
    from bench.peers.learning.subject import NOTES, measured

    models = [each for each in only if each != "linear"]
    for each in measured(asked, environments.HOME / "tables", models) if models or not only else ():
        note, facts = NOTES.get(each.model, ""), {"runs": float(each.runs), "spread of auc": each.spread}
        if each.failed:
            yield Record("learning", each.case, each.model, "auc", None, each.failed, note)
        for quantity, value in each.means.items():
            yield Record("learning", each.case, each.model, quantity, value, note=note, facts=facts)
    if not only or "linear" in only:
        from bench.learning_linear import results

        for line in results():
            ends = {end: getattr(line, end) for end in ("least", "most", "limit") if getattr(line, end, None)}
            value, why = getattr(line, "value", None), getattr(line, "why", "")
            yield Record("learning", line.name, "tacit", "linear", value, why, facts=finite(ends))


def finite(ends: dict[str, float]) -> dict[str, float]:
    """Return the ends that are an end: what may be as large as it likes has none."""
    return {name: end for name, end in ends.items() if abs(end) < float("inf")}


# library -> what its script is told beside the folder and epsilon; "" is the rho of that epsilon
MAKERS = {"dpmm": ("aim", "mst"), "opendp-mbi": ("",)}
# Adult, on which ours was tuned, and two tables that were added when all was chosen
MADE_OF = ("adult", "insured workers", "diamonds")
MADE_SECONDS = 150  # of processor time, for one set of rows; as many are made at once as there are processors


def synthetic() -> Iterator[Record]:
    """How far pairs of made-up columns are from the protected ones, and processor seconds of one thread."""
    from bench.synthetic import EPSILONS, TABLES, made_rows, pair_distance, protected

    asked_of = []
    for name in MADE_OF:
        coded = TABLES[name]()
        made_rows(coded, 1)
        for epsilon in EPSILONS:
            case, table = f"{name}, ε = {epsilon}", protected(coded)
            start = time.process_time()
            rows = made_rows(coded, epsilon, table=table)
            yield Record("synthetic", case, "tacit", "processor seconds", time.process_time() - start)
            yield Record("synthetic", case, "tacit", "mean distance of pairs", pair_distance(coded, rows))
            asked_of += [(each, kind, coded, epsilon, case) for each, kinds in MAKERS.items() for kind in kinds]
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as crew:
        for records in crew.map(lambda each: list(made_by(*each)), asked_of):
            yield from records


def made_by(library: str, kind: str, coded: Any, epsilon: float, case: str) -> Iterator[Record]:
    """Ask a library for made-up rows, and compare them."""
    with tempfile.TemporaryDirectory() as made_in:
        yield from _made_in(Path(made_in), library, kind, coded, epsilon, case)


def _made_in(folder: Path, library: str, kind: str, coded: Any, epsilon: float, case: str) -> Iterator[Record]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    from bench.synthetic import DELTA, pair_distance
    from bench.synthetic_aim import rho_of

    codes = pa.table({name: coded.train[:, at] for at, name in enumerate(coded.names)})
    pyarrow.csv.write_csv(codes, folder / "codes.csv")
    (folder / "sizes.json").write_text(json.dumps(dict(zip(coded.names, coded.sizes, strict=True))))
    words = [library, str(folder), str(epsilon), kind or str(rho_of(float(epsilon), DELTA)), str(MADE_SECONDS)]
    said = asked(library, "made_rows.py", *words, timeout=20.0 * MADE_SECONDS)
    if said.facts is None or "seconds" not in said.facts:
        why = f"more than {MADE_SECONDS} s" if said.failed == "killed" else said.failed
        yield Record("synthetic", case, library, "mean distance of pairs", None, why, kind)
        return
    rows = pyarrow.csv.read_csv(folder / "made.csv")
    # a missing code is the last one, as in ours
    codes_made = [rows[name].cast(pa.float64()).fill_null(size - 1).to_numpy() for name, size in
                  zip(coded.names, coded.sizes, strict=True)]  # fmt: skip
    apart = pair_distance(coded, np.stack(codes_made, 1).astype(np.int64))
    yield Record("synthetic", case, library, "processor seconds", said.facts["seconds"], "", kind)
    yield Record("synthetic", case, library, "mean distance of pairs", apart, "", kind)


SUBJECTS: dict[str, Callable[..., Iterator[Record]]] = {
    "noise": noise,
    "start": start,
    "lines": lines,
    "accounting": accounting,
    "groupby6": partial(by_groups, "groupby6", MILLION, (1000, 100_000)),
    "groupby7": partial(by_groups, "groupby7", 10 * MILLION, (1000,)),
    "spark7": on_spark,
    "local": local,
    "one": one,
    "keys": keys,
    "bounds": bounds,
    "learning": learning,
    "synthetic": synthetic,
    "groupby7wide": partial(by_groups, "groupby7wide", 10 * MILLION, (100_000,)),
}
