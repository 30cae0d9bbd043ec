"""What `tacit.table()` returns: the handle that ties a declared table, the two doors and a session together."""

from tacit.door.opening import Catalog, catalog, table
from tacit.door.question import PlanReport, Question
from tacit.door.table import Table

__all__ = ["Catalog", "PlanReport", "Question", "Table", "catalog", "table"]
