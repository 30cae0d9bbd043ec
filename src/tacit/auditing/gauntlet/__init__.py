"""The gauntlet: published attacks as cases registered by id, and the published bugs that show the cases can fail.

`load()` imports the modules listed here, which register what they hold. A new module of cases or mutants is added to
the list by hand, so that what runs can be read in one place.
"""

import importlib
import importlib.util

MODULES = (
    "tacit.auditing.gauntlet.accounting_cases",
    "tacit.auditing.gauntlet.accounting_mutants",
    "tacit.auditing.gauntlet.aggregate_cases",
    "tacit.auditing.gauntlet.aggregate_mutants",
    "tacit.auditing.gauntlet.cache_cases",
    "tacit.auditing.gauntlet.cost_cases",
    "tacit.auditing.gauntlet.disk_cases",
    "tacit.auditing.gauntlet.entitled_cases",
    "tacit.auditing.gauntlet.file_cells",
    "tacit.auditing.gauntlet.file_cases",
    "tacit.auditing.gauntlet.join_cases",
    "tacit.auditing.gauntlet.ledger_arms",
    "tacit.auditing.gauntlet.ledger_cases",
    "tacit.auditing.gauntlet.ledger_clocks",
    "tacit.auditing.gauntlet.ledger_damage",
    "tacit.auditing.gauntlet.ledger_filter",
    "tacit.auditing.gauntlet.ledger_kills",
    "tacit.auditing.gauntlet.ledger_mutants",
    "tacit.auditing.gauntlet.ledger_races",
    "tacit.auditing.gauntlet.ledger_signed",
    "tacit.auditing.gauntlet.ledger_strangers",
    "tacit.auditing.gauntlet.local_cases",
    "tacit.auditing.gauntlet.local_estimates",
    "tacit.auditing.gauntlet.local_memo",
    "tacit.auditing.gauntlet.local_mutants",
    "tacit.auditing.gauntlet.local_response_mutants",
    "tacit.auditing.gauntlet.noise_cases",
    "tacit.auditing.gauntlet.randomness_cases",
    "tacit.auditing.gauntlet.noise_mutants",
    "tacit.auditing.gauntlet.screen_cases",
    "tacit.auditing.gauntlet.selection_cases",
    "tacit.auditing.gauntlet.selection_mutants",
    "tacit.auditing.gauntlet.query_cases",
    "tacit.auditing.gauntlet.query_mutants",
    "tacit.auditing.gauntlet.answer_cases",
    "tacit.auditing.gauntlet.question_attacks",
    "tacit.auditing.gauntlet.ranking_cases",
    "tacit.auditing.gauntlet.refusal_cases",
    "tacit.auditing.gauntlet.replay_cases",
    "tacit.auditing.gauntlet.sensitivity_cases",
    "tacit.auditing.gauntlet.size_cases",
    "tacit.auditing.gauntlet.staircase_cases",
    "tacit.auditing.gauntlet.table_mutants",
    "tacit.auditing.gauntlet.value_cases",
    "tacit.auditing.gauntlet.work_cases",
)

# Modules that need a package of an extra; without it their cases wait, and waiting.py says for what.
NEEDS = {"tacit.auditing.gauntlet.disk_cases": "apsw"}


def load() -> None:
    """Register every case and mutant, but for those whose package is not installed."""
    for module in MODULES:
        if module not in NEEDS or importlib.util.find_spec(NEEDS[module]) is not None:
            importlib.import_module(module)
