"""CSV files, read so that no row can change the structure of the file or another row.

Names and delimiter come only from the first line. Every later line is a row by itself, however the first one ends: a
quote that is never closed ends with its own line. A line counts if it has the first line's number of fields and its
quotes are closed; any other is left out, and so is one that is not UTF-8 or is megabytes long. Every field is text, an
empty one NULL. A line break inside a field therefore breaks its row (docs/sharp-edges.md).
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import QueryRefused
from tacit.tables.cells import TEXT_BYTES_MAX
from tacit.tables.source import refuse_duplicates
from tacit.typed_sql import quoted, text_of

DELIMITERS = (",", "\t", ";", "|")
HEADER_BYTES_MAX = 1_000_000
LINE_BYTES_MAX = 2_000_000
# A delimiter that never occurs: without a delimiter or a quote to find, the engine returns whole lines.
NEVER = "\x01\x02\x03\x04"
# Both \r and \n end a line. With \r\n, the engine would take \r and any one character after it for a line end.
LINE_END = r"'\n'"


def read_csv(backend: Any, paths: Sequence[str], *, name: str) -> None:
    """Make the view `name` of CSV files with one header: a column of text for each of its names."""
    headers = [read_header(path) for path in paths]
    if any(header != headers[0] for header in headers):
        raise QueryRefused("these CSV files do not have the same first line\nhint: give files with the same columns")
    names, delimiter = headers[0]
    backend.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {_fields(_lines(paths), names, delimiter)}")


def read_header(path: str) -> tuple[tuple[str, ...], str]:
    """Return the names and the delimiter of a CSV file, only from its first line."""
    with Path(path).open("rb") as file:
        line = file.readline(HEADER_BYTES_MAX)
    try:
        text = line.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or "\r" in text:
        raise QueryRefused(
            f"{path!r} does not begin with a line of column names\nhint: write the names of the columns, in UTF-8, in"
            " the first line, and end it with a newline"
        )
    delimiter = max(DELIMITERS, key=text.count)
    names = tuple(next(csv.reader([text], delimiter=delimiter)))
    for number, each in enumerate(names, 1):
        if not each.strip():
            raise QueryRefused(f"column {number} of {path!r} lacks a name\nhint: name every column in the first line")
    refuse_duplicates(names)
    return names, delimiter


def _lines(paths: Sequence[str]) -> str:
    """Every line as it stands; a line that is too long or not UTF-8 is left out by itself."""
    options = {
        "columns": "{'line': 'VARCHAR'}",
        "auto_detect": "false",
        "header": "true",
        "delim": text_of(NEVER),
        "quote": "''",
        "escape": "''",
        "comment": "''",
        "new_line": LINE_END,
        "max_line_size": str(LINE_BYTES_MAX),
        "ignore_errors": "true",
        "strict_mode": "false",
        "null_padding": "false",
        "hive_partitioning": "false",  # a folder named line=5 would be a column
    }
    listed = ", ".join(text_of(path) for path in paths)
    return f"read_csv([{listed}], {', '.join(f'{option} = {value}' for option, value in options.items())})"


def _fields(lines: str, names: Sequence[str], delimiter: str) -> str:
    """Lines as fields: split if there is no quote, otherwise parsed by a pattern."""
    between = "\\|" if delimiter == "|" else delimiter  # as a pattern writes it
    field = f'"(?:[^"]|"")*"|[^"{delimiter}][^{delimiter}]*|'
    pattern = text_of("^" + between.join([f"({field})"] * len(names)) + "$")
    shape = text_of("^" + between.join([f"(?:{field})"] * len(names)) + "$")
    fields_taken = ", ".join(f"'f{index}'" for index in range(len(names)))
    divided = text_of(delimiter)
    counted = f"length(line) - length(replace(line, {divided}, '')) = {len(names) - 1}"
    has_quote = "contains(line, '\"')"
    # patterns are slow, and each CASE keeps them from lines without a quote
    taken = f"CASE WHEN {has_quote} THEN regexp_extract(line, {pattern}, [{fields_taken}]) END AS taken"
    split = f"CASE WHEN NOT {has_quote} THEN string_split(line, {divided}) END AS split"
    whole = f"line <> '' AND CASE WHEN {has_quote} THEN regexp_matches(line, {shape}) ELSE {counted} END"
    columns = []
    for index, name in enumerate(names):
        bare = f"replace(taken.f{index}[2:-2], '\"\"', '\"')"
        of_quoted = f"CASE WHEN taken.f{index}[1] = '\"' THEN {bare} ELSE taken.f{index} END"
        columns.append(
            f"nullif(CASE WHEN split IS NULL THEN {of_quoted} ELSE split[{index + 1}] END, '') AS {quoted(name)}"
        )
    fields = f"SELECT {taken}, {split} FROM {lines} WHERE {whole}"  # noqa: S608 - of names, quoted
    read = f"SELECT {', '.join(columns)} FROM ({fields})"  # noqa: S608 - of names, quoted
    capped = [f"CASE WHEN strlen({each}) <= {TEXT_BYTES_MAX} THEN {each} END AS {each}" for each in map(quoted, names)]
    return f"SELECT {', '.join(capped)} FROM ({read})"  # noqa: S608 - of names, quoted
