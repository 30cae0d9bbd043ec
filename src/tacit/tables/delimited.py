"""CSV files, read so that no row can change what the file is: names and delimiter come from the first line alone.

An engine that guesses a dialect from rows lets one odd row change the columns, or become their names. Here every field
is text; a line with too few fields is filled with NULL, and what no reader could place (bad UTF-8, a line of
megabytes) is left out. Such a line never makes a question fail.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import QueryRefused

DELIMITERS = (",", "\t", ";", "|")
HEADER_BYTES_MAX = 1_000_000


def read_csv(backend: Any, paths: Sequence[str], *, name: str) -> Any:
    """Return CSV files with one header as an Ibis table of text columns."""
    headers = [read_header(path) for path in paths]
    if any(header != headers[0] for header in headers):
        raise QueryRefused("these CSV files do not have the same first line\nhint: give files with the same columns")
    columns, delimiter = headers[0]
    return backend.read_csv(
        list(paths),
        table_name=name,
        columns=dict.fromkeys(columns, "VARCHAR"),
        auto_detect=False,
        header=True,
        delim=delimiter,
        quote='"',
        escape='"',
        ignore_errors=True,
        strict_mode=False,
        null_padding=True,
        parallel=False,
    )


def read_header(path: str) -> tuple[tuple[str, ...], str]:
    """Return the names and the delimiter of a CSV file, from its first line and nothing else."""
    with Path(path).open("rb") as file:
        line = file.readline(HEADER_BYTES_MAX)
    try:
        text = line.decode("utf-8-sig").splitlines()[0]
    except (UnicodeDecodeError, IndexError):
        raise QueryRefused(
            f"{path!r} does not begin with a line of column names\nhint: the first line names the columns, in UTF-8"
        ) from None
    delimiter = max(DELIMITERS, key=text.count)
    names = tuple(next(csv.reader([text], delimiter=delimiter)))
    for place, each in enumerate(names, 1):
        if not each.strip():
            raise QueryRefused(f"column {place} of {path!r} has no name\nhint: the first line names every column")
    seen = [each.lower() for each in names]
    for place, each in enumerate(seen):
        if each in seen[:place]:
            raise QueryRefused(f"the table has two columns named '{names[place]}' (case aside)\nhint: rename one")
    return names, delimiter
