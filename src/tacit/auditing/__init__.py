"""Audits that try to prove our claims wrong: of mechanisms and of questions, with the statistics that judge them."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.auditing.attacks.people import People, read_people
    from tacit.auditing.function_audit import audit
    from tacit.auditing.mechanisms import SUBJECTS, audit_mechanism
    from tacit.auditing.model_audit import audit_model
    from tacit.auditing.question_audit import audit_plan, audit_question
    from tacit.auditing.result import AuditResult
    from tacit.auditing.selftest import run_selftest
    from tacit.auditing.sequential import bet_on

__all__ = [
    "SUBJECTS",
    "AuditResult",
    "People",
    "audit",
    "audit_mechanism",
    "audit_model",
    "audit_plan",
    "audit_question",
    "bet_on",
    "read_people",
    "run_selftest",
]

# name -> the module that has it, loaded when the name is first used
_HOMES = {
    "AuditResult": "tacit.auditing.result",
    "People": "tacit.auditing.attacks.people",
    "SUBJECTS": "tacit.auditing.mechanisms",
    "audit": "tacit.auditing.function_audit",
    "audit_mechanism": "tacit.auditing.mechanisms",
    "audit_model": "tacit.auditing.model_audit",
    "audit_plan": "tacit.auditing.question_audit",
    "audit_question": "tacit.auditing.question_audit",
    "bet_on": "tacit.auditing.sequential",
    "read_people": "tacit.auditing.attacks.people",
    "run_selftest": "tacit.auditing.selftest",
}


def __getattr__(name: str) -> object:
    """Load a name from its module, once (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit.auditing' has no attribute '{name}'")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
