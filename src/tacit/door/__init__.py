"""What `tacit.table()` returns: the handle that ties a declared table, the two doors and a session together."""

from tacit.door.asking import Table, travelled_question
from tacit.door.describing import (
    Description,
    asked_of_public_facts,
    described,
    described_as_asked,
    summary_asked,
)
from tacit.door.opening import Catalog, catalog, declared, public, refuse_unapplied_people, table
from tacit.door.plan_report import PlanReport
from tacit.door.question import Question, left_record, warn_if_large, what_is_left
from tacit.door.verbs import Verbs

__all__ = [
    "Catalog",
    "Description",
    "PlanReport",
    "Question",
    "Table",
    "Verbs",
    "asked_of_public_facts",
    "catalog",
    "declared",
    "described",
    "described_as_asked",
    "left_record",
    "public",
    "refuse_unapplied_people",
    "summary_asked",
    "table",
    "travelled_question",
    "warn_if_large",
    "what_is_left",
]
