"""Audits that try to prove our claims wrong: of mechanisms and of questions, with the statistics that judge them."""

from tacit.auditing.function_audit import audit
from tacit.auditing.lower_bound import bet_on
from tacit.auditing.mechanisms import SUBJECTS, audit_mechanism
from tacit.auditing.model_audit import audit_model
from tacit.auditing.replay import audit_plan, audit_question
from tacit.auditing.result import AuditResult
from tacit.auditing.selftest import run_selftest
