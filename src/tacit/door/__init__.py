"""What `tacit.table()` returns: the handle that ties a declared table, the two doors and a session together."""

from tacit.door.asking import Table
from tacit.door.opening import Catalog, catalog, declared, table
from tacit.door.question import PlanReport, Question

__all__ = [
    "Catalog",
    "PlanReport",
    "Question",
    "Table",
    "catalog",
    "declared",
    "table",
]
