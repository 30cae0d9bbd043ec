"""The figures of a run, looked up: one value by subject, case, library and quantity, and the best of the peers'."""

from dataclasses import dataclass
from typing import Any

OURS, OURS_ON_SPARK = "tacit", "tacit, on Spark"
BASELINES = ("numpy", "duckdb", "duckdb, by person")
# n is public there and floats fail the precision attack: not the promise that the others make
OTHER_PROMISE = ("diffprivlib",)
NAMES = {
    "tacit": "Tacit",
    "tacit, with all that a table needs": "Tacit, with all that a table needs",
    "tacit, in SQL": "Tacit, in SQL",
    "tacit, on Spark": "Tacit, on Spark",
    "opendp": "OpenDP",
    "smartnoise-sql": "SmartNoise",
    "pipeline-dp": "PipelineDP",
    "tmlt.analytics": "Tumult",
    "diffprivlib": "diffprivlib",
    "python-dp": "python-dp",
    "dp-accounting": "dp-accounting",
    "multi-freq-ldpy": "multi-freq-ldpy",
    "pure-ldp": "pure-ldp",
    "interpret-core": "interpret's DP-EBM",
    "tacit-within": "Tacit, whole budget",
    "opacus-logistic": "Opacus, logistic",
    "opacus-network": "Opacus, network",
    "sklearn-trees": "boosted trees (not private)",
    "sklearn-logistic": "logistic (not private)",
    "numpy": "numpy (not private)",
    "duckdb": "DuckDB by item (not private)",
    "duckdb, by person": "DuckDB by item and person (not private)",
}
TIMED_OUT = "more than "


@dataclass(frozen=True)
class Figures:
    """The records of a run."""

    records: tuple[dict[str, Any], ...]

    def all(self, subject: str, case: str, quantity: str) -> list[dict[str, Any]]:
        """Return every library's record of one thing, in the order they were measured."""
        return [
            record
            for record in self.records
            if (record["subject"], record["case"], record["quantity"]) == (subject, case, quantity)
        ]

    def value(self, subject: str, case: str, library: str, quantity: str) -> float | None:
        """Return a library's value; of a time that was cut short, where it was cut; None where there is none."""
        values = [at_least(each) for each in self.all(subject, case, quantity) if each["library"] == library]
        return next((value for value in values if value is not None), None)

    def cases(self, subject: str) -> list[str]:
        """Return the subject's cases, in order."""
        return list(dict.fromkeys(record["case"] for record in self.records if record["subject"] == subject))

    def peers(self, subject: str, case: str, quantity: str, *, same_promise: bool = False) -> list[dict[str, Any]]:
        """Return the peers' records that have a value."""
        left_out = (OURS, *BASELINES, *(OTHER_PROMISE if same_promise else ()))
        found = [each for each in self.all(subject, case, quantity) if each["value"] is not None]
        return [each for each in found if not each["library"].startswith(OURS) and each["library"] not in left_out]


def at_least(record: dict[str, Any]) -> float | None:
    """Return a record's value, or the seconds after which it was cut short."""
    if record["value"] is None and record["failed"].startswith(TIMED_OUT):
        return float(record["failed"].removeprefix(TIMED_OUT).split()[0])
    value: float | None = record["value"]
    return value


def name(library: str) -> str:
    """Return a library's name as people write it."""
    return NAMES.get(library, library)
