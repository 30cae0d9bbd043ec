"""Files that others may have written: cells, numbers and machine code (S22, S23, F01, F02).

A Parquet file says more than its cells: the least and the greatest of a column, how many are NULL, which values a page
cannot have. Writers leave NaN out of it, and nothing checks it. Two files with the same cells must give the same exact
integers as a frame with these cells, whatever else the files say. A number may be too long to read, and a cache of
machine code may be planted.
"""

import hashlib
import json
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import tacit
import tacit.local as local
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import event_from
from tacit_gauntlet.stage.engine import (
    LIST_OF_COMPILED,
    Way,
    cache_is_used,
    compile_cache,
    kernel_cache,
    load_cache,
    seal_cache,
)
from tacit_gauntlet.stage.file_cells import QUICK, WRITERS, Write, odd_rows, outcomes
from tacit_gauntlet.stage.forgery import exact_number, forged_certificate, read_json, verify_certificate
from tacit_gauntlet.stage.local import survey_from
from tacit_gauntlet.stage.table import Table, pandas, protected, too_far

Json = dict[str, Any]

# Each is, or names, a number longer than any of ours; a reader that takes 1e20000 would take 1e99999999 too.
HOSTILE = (
    "1e20000",
    "-1e20000",
    "1e-20000",
    "9" * 40_000,
    "1/" + "9" * 40_000,
    "1e20000/3",
    "1/0",
    "nan",
    "inf",
    "0x10",
    "",
)
HOSTILE_JSON = ("[" * 100_000, '{"a":' * 100_000, '{"what":' + "9" * 40_000 + "}", '{"what":NaN}', '{"what":Infinity}')


@case("F02", title="a number in a file from others is of a bounded length, or refused", feature="files")
def numbers_in_files_are_bounded(size: Size) -> Evidence:
    """Forge certificates, report headers and collectors' states around hostile numbers, signed where they must be."""
    certificate = _certificate()
    texts = HOSTILE if size == "full" else HOSTILE[:4] + HOSTILE[6:7]
    surfaces: dict[str, Callable[[str], object]] = {
        "exact number": exact_number,
        "event": lambda text: event_from({"kind": "LaplaceNoise", "scale": text, "sensitivity": "1"}),
        "certificate, charge": lambda text: verify_certificate(forged_certificate(certificate, epsilon=text)),
        "certificate, event": lambda text: verify_certificate(
            forged_certificate(certificate, events=[{"kind": "PureChoice", "epsilon": text}])
        ),
        "header, epsilon": lambda text: survey_from(
            local.make_survey(["yes", "no"], epsilon=1).header() | {"epsilon": text}
        ),
        "header, range": lambda text: survey_from(_ranged(text)),
    }
    taken = [f"{name}: {text[:12]}" for name, read in surfaces.items() for text in texts if _is_taken(read, text)]
    nested: dict[str, Callable[[str], object]] = {
        "JSON": read_json,
        "collector's state": lambda text: local.merge_states([text]),
        "certificate, body": lambda text: verify_certificate(forged_certificate(certificate, body=text)),
    }
    taken += [f"{name}: {text[:12]}" for name, read in nested.items() for text in HOSTILE_JSON if _is_taken(read, text)]
    tried = len(surfaces) * len(texts) + len(nested) * len(HOSTILE_JSON)
    return Evidence(passed=not taken, details={"tried": tried, "taken": taken})


def _is_taken(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (TacitError, ValueError):
        return False
    except Exception:  # whatever else comes out was not refused
        return True
    return True


def _certificate() -> Json:
    rows = pa.table({"id": list(range(10))})
    table = tacit.table(rows, name="t", unit="id", rows_per_unit=1, ledger=":memory:", budget=tacit.epsilon(1))
    certificate: Json = json.loads(json.dumps(dict(table.count().answer(epsilon=1).certificate())))
    return certificate


def _ranged(text: str) -> Json:
    header = local.make_survey(between=(0, 1), epsilon=1).header()
    return header | {"question": {"between": ["0", text]}}


Attack = Callable[[Path], object]

NOBODY = 65534

_ran: list[str] = []


def _note(what: str) -> None:
    _ran.append(what)


class _Code:
    """What an attacker's file does when it is unpickled."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return _note, (self.what,)


def _like_numba(folder: Path) -> None:
    """Do what numba does on loading and compiling: unpickle every index that is there, write those that are not."""
    indexes = sorted(folder.rglob("*.nbi"))
    for index in indexes:
        pickle.loads(index.read_bytes())
    if not indexes:
        (folder / "engine").mkdir(exist_ok=True)
        (folder / "engine" / "loops.nbi").write_bytes(pickle.dumps("compiled"))


@case("F01", title="planted or damaged machine code is never unpickled, whoever owns the way to it", feature="files")
def planted_code_never_runs(size: Size) -> Evidence:
    """Give a whole cache away in every way, or damage it; then load it, and compile as the background process does."""
    attacks = _attacks(flips=8 if size == "quick" else 200)
    used, run, failed = [], [], []
    for name, attack in attacks.items():
        with _whole_cache() as folder:
            attack(folder)
            if cache_is_used():
                used.append(name)
            _ran.clear()
            load_cache()
            try:
                compile_cache()
            except Exception:  # what is unpickled raises whatever it likes
                failed.append(name)
            run += [name] * bool(_ran)
    with _whole_cache():
        unharmed = cache_is_used() and load_cache()
    details = {"attacks": len(attacks), "caches used": used, "planted code that ran": run, "unharmed used": unharmed}
    details |= {"not compiled anew": failed}
    return Evidence(passed=not used and not run and not failed and unharmed, details=details)


@contextmanager
def _whole_cache() -> Iterator[Path]:
    """Have a whole cache of ours, whose files note that they were unpickled, in a private folder of its own."""
    with tempfile.TemporaryDirectory() as parent, kernel_cache(_like_numba, parent=parent) as folder:
        (folder / "engine" / "loops.nbi").write_bytes(pickle.dumps(_Code("planted")))
        seal_cache(folder)
        yield folder


def _attacks(*, flips: int) -> dict[str, Attack]:
    found: dict[str, Attack] = {
        "others may write to the folder": lambda folder: folder.chmod(0o777),
        "others may write above it": lambda folder: folder.parent.chmod(0o777),
        "others may write far above it": lambda folder: folder.parents[1].chmod(0o777),
        "others may write to a folder in it": lambda folder: (folder / "engine").chmod(0o777),
        "others may write to a file": lambda folder: (folder / "engine" / "loops.nbi").chmod(0o666),
        "a file is a link": _linked,
        "the folder is a link to one that others may write": _folder_linked,
        "another file": _added,
        "a file of the same size": _same_size,
        "no list of what was compiled": lambda folder: (folder / LIST_OF_COMPILED).unlink(),
    }
    if os.geteuid() == 0:
        found["another owner"] = lambda folder: os.chown(folder, NOBODY, -1)
        found["another owner above"] = lambda folder: os.chown(folder.parent, NOBODY, -1)
        found["another group above"] = _of_another_group
    return found | {f"bit {place} flipped": partial(_flip, place) for place in range(flips)}


def _added(folder: Path) -> None:
    (folder / "engine" / "more.nbi").write_bytes(pickle.dumps(_Code("more")))


def _of_another_group(folder: Path) -> None:
    os.chown(folder.parent, -1, NOBODY)
    folder.parent.chmod(0o770)


def _linked(folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    index.replace(folder.parent / "elsewhere")
    index.symlink_to(folder.parent / "elsewhere")


def _folder_linked(folder: Path) -> None:
    open_to_all = folder.parents[1] / "open"
    open_to_all.mkdir()
    folder.replace(open_to_all / folder.name)
    open_to_all.chmod(0o777)
    folder.symlink_to(open_to_all / folder.name)


def _same_size(folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    index.write_bytes(pickle.dumps(_Code("another")))
    if len(pickle.dumps(_Code("another"))) != len(pickle.dumps(_Code("planted"))):
        raise ValueError("the two should have one size")


def _flip(place: int, folder: Path) -> None:
    index = folder / "engine" / "loops.nbi"
    content = bytearray(index.read_bytes())
    at = int.from_bytes(hashlib.sha256(bytes([place])).digest()[:4], "big") % (8 * len(content))
    content[at // 8] ^= 1 << at % 8
    index.write_bytes(content)


def files_that_tell(size: Size, way: Way = "sql", writers: Mapping[str, Write] | None = None) -> list[str]:
    """Return the writers whose files are not answered as a frame with the same cells is."""
    told, rows = [], odd_rows()
    wanted = outcomes(rows, size, "sql")
    with tempfile.TemporaryDirectory() as folder:
        for name, write in (WRITERS if writers is None else writers).items():
            if size == "quick" and name not in QUICK:
                continue
            path = str(Path(folder) / "rows.parquet")
            write(rows, path)
            if outcomes(path, size, way) != wanted:
                told.append(name)
    return told


@case("S22", title="the same cells are answered alike, whatever else their file says of them", feature="engine")
def same_cells(size: Size) -> Evidence:
    told = files_that_tell(size)
    tried = len(QUICK) if size == "quick" else len(WRITERS)
    return Evidence(passed=not told, details={"ways to write a file": tried, "not answered alike": told})


# Ids that are easily taken for each other, as cells of a frame; no two of one line are one person.
CONFUSABLE: tuple[tuple[Any, Any], ...] = (
    (b"M\xfcller".decode("utf-8", "surrogateescape"), b"M\xe9ller".decode("utf-8", "surrogateescape")),
    ("\udcff", "?"),
    ("\ud800", "\ufffd"),
    ("a\x00b", "a"),
    ("\u00e9", "e\u0301"),
    ("a", "a "),
    (b"\xff", b"\xfe"),
    ([1] * 2000 + [2] + [1] * 2000, [1] * 4001),
    ("z" * 40_000 + "1", "z" * 40_000 + "2"),
)
# Of one person, of another, and three of a third: with those of the second they are as much as one person may add.
XS = [0, -10, 10, 10, 10]


def ids_taken_for_each_other(size: Size) -> list[str]:
    """Return the pairs of ids of which one more person, with three rows, moves a sum by more than one person may."""
    told = []
    for one, other in CONFUSABLE if size == "full" else CONFUSABLE[:3]:
        for cells in ([one, other], [other, one]) if size == "full" else ([one, other],):
            ids = ["p", *cells, *cells[1:] * 2]
            frames = [
                pandas().DataFrame({"id": pandas().Series(ids[:many], dtype=object), "x": XS[:many]}) for many in (2, 5)
            ]
            before, after = (protected(each, rows_per_unit=1).sum("x", between=(-10, 10)) for each in frames)
            if too_far(before, after):
                told.append(repr(cells[0])[:20])
    return told


def times_taken_for_each_other() -> list[str]:
    """Return the types of which two ids are read as one, so that one more person moves a sum by two people's share."""
    told = []
    kinds = {"nanoseconds": pa.timestamp("ns"), "days in milliseconds": pa.date64(), "months": None}
    for name, kind in kinds.items():
        asked = []
        for many in (2, 5):
            cells: dict[str, Any] = {"id": pa.array([10**9, 1, 2, 2, 2][:many], pa.int64()), "x": XS[:many]}
            with suppress(TacitError):  # refused, before any charge
                asked.append(_typed(cells, kind).sum("x", between=(-10, 10)))
        if asked and too_far(*asked):
            told.append(name)
    return told


def _typed(cells: dict[str, Any], kind: pa.DataType | None) -> Table:
    """Protect rows whose ids are times, or a month and thirty days in DuckDB's own intervals."""
    if kind is not None:
        return protected(pa.table({**cells, "id": cells["id"].view(kind)}), rows_per_unit=1)
    link = duckdb.connect()
    link.register("given", pa.table(cells))
    spans = "CASE id WHEN 1 THEN INTERVAL 1 MONTH WHEN 2 THEN INTERVAL 30 DAY ELSE INTERVAL 9 DAY END"
    link.execute(f"CREATE TABLE t AS SELECT {spans} AS id, x FROM given")
    return protected((link, "t"), rows_per_unit=1)


@case("S23", title="ids that look alike are not taken for one person", feature="tables")
def ids_stay_apart(size: Size) -> Evidence:
    told = ids_taken_for_each_other(size) + times_taken_for_each_other()
    return Evidence(passed=not told, details={"taken for one": told})
