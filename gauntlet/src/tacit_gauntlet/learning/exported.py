"""A model as SQL, in the spelling of each database: its texts and names are read back by a reader of our own.

A listed value is a text that a stranger may have written. In a database where a backslash escapes, doubled quotes are
not enough: the rest of the value would be read as SQL, wherever the model is scored.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tacit.learning import AdditiveRegressor, LinearRegression
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import BUDGET
from tacit_gauntlet.stage.table import protected_here


@dataclass(frozen=True)
class Spelling:
    """How a database writes texts and names, from its manual."""

    name_quote: str
    backslash_in_texts: bool
    backslash_in_names: bool = False
    doubled_in_texts: bool = True  # '' is a quote inside of a text; Spark and BigQuery begin another text there


SPELLINGS = {
    "duckdb": Spelling('"', False),
    "postgres": Spelling('"', False),
    "sqlite": Spelling('"', False),
    "spark": Spelling("`", True, doubled_in_texts=False),
    "snowflake": Spelling('"', True),
    "bigquery": Spelling("`", True, True, doubled_in_texts=False),
    "mysql": Spelling("`", True),
}
KEYS = (
    "x\\",
    ") THEN 1e0 ELSE (SELECT MAX(pay) FROM vault) END) --",
    "it's",
    "\\' OR 1=1 --",
    'dou"ble',
    "back`tick",
    "two\nlines\tand \\n",
    "plain",
)
COLUMNS = ('wa"rd', "na`me", "pa\\th")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@case(
    "M20", title="a model's SQL has only its own texts and names, in the spelling of each database", feature="learning"
)
def exported(_: Size) -> Evidence:
    strange: list[str] = []
    for column in COLUMNS:
        for model in _models(column):
            for dialect, spelling in SPELLINGS.items():
                found = list(_parts(model.to_sql(dialect=dialect), spelling))
                texts = {text for kind, text in found if kind == "text"}
                names = {text for kind, text in found if kind == "name"}
                rest = " ".join(text for kind, text in found if kind == "rest")
                if texts - {"nan"} != set(KEYS) or not names <= {column, "people"} or column not in names:
                    strange.append(f"{dialect}: {sorted(texts ^ set(KEYS))[:2]} {sorted(names)}")
                elif re.search(r"vault|--|['\"`\\]", rest):
                    strange.append(f"{dialect}: {rest[:80]}")
    return Evidence(not strange, {"databases": len(SPELLINGS), "values": len(KEYS), "strange": strange[:5]})


def _models(column: str) -> list[Any]:
    """Return models of a column whose values are written to break out of a text; each value has an effect."""
    each = 300
    rows = pa.table(
        {
            "id": pa.array(range(each * len(KEYS)), pa.int64()),
            column: pa.array([key for key in KEYS for _ in range(each)]),
            "days": pa.array([float(place + 1) for place in range(len(KEYS)) for _ in range(each)]),
        }
    )
    declared = {column: {"keys": list(KEYS)}, "days": {"between": (0, 10)}}
    kinds: list[Any] = [AdditiveRegressor(epsilon=50, rounds=4), LinearRegression(epsilon=50)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so large an epsilon protects no person
        table = protected_here(rows, columns=declared, budget=BUDGET, rows_per_unit=None, groups_per_unit=None)
        return [kind.fit(table, target="days", features=[column]) for kind in kinds]


def _parts(sql: str, spelling: Spelling) -> Iterator[tuple[str, str]]:
    """Read SQL as texts, names and the rest, by a database's own rules."""
    at, rest = 0, ""
    while at < len(sql):
        quote = sql[at]
        if quote not in ("'", '"', "`"):
            at, rest = at + 1, rest + quote
            continue
        yield "rest", rest
        is_name = quote == spelling.name_quote
        kind = "name" if is_name else "text"
        escapes = spelling.backslash_in_names if is_name else spelling.backslash_in_texts
        doubles = not spelling.backslash_in_names if is_name else spelling.doubled_in_texts
        at, rest, text = at + 1, "", ""
        while (at < len(sql) and sql[at] != quote) or (doubles and sql[at : at + 2] == quote * 2):
            if escapes and sql[at] == "\\":
                text += ESCAPES.get(sql[at + 1 : at + 2], sql[at + 1 : at + 2])
                at += 2
            elif sql[at] == quote:
                text, at = text + quote, at + 2
            else:
                text, at = text + sql[at], at + 1
        yield kind if at < len(sql) else "rest", text if at < len(sql) else quote + text
        at += 1
    yield "rest", rest
