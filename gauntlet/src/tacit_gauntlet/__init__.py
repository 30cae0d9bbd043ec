"""The gauntlet: published attacks as cases registered by id, and the published bugs that show the cases can fail.

`load()` imports the modules listed here, which register what they hold. A new module of cases or mutants is added to
the list by hand, so that what runs can be read in one place.
"""

import importlib

MODULES = (
    "tacit_gauntlet.accounting.cases",
    "tacit_gauntlet.accounting.mutants",
    "tacit_gauntlet.learned.fact_mutants",
    "tacit_gauntlet.learned.keys",
    "tacit_gauntlet.learned.notes",
    "tacit_gauntlet.learned.profiles",
    "tacit_gauntlet.learned.reuse",
    "tacit_gauntlet.learned.scaling",
    "tacit_gauntlet.learned.scaling_mutants",
    "tacit_gauntlet.learned.vote_mutants",
    "tacit_gauntlet.learned.votes",
    "tacit_gauntlet.ledger.counting",
    "tacit_gauntlet.ledger.damage",
    "tacit_gauntlet.ledger.disk",
    "tacit_gauntlet.ledger.filter",
    "tacit_gauntlet.ledger.kills",
    "tacit_gauntlet.ledger.mutants",
    "tacit_gauntlet.ledger.races",
    "tacit_gauntlet.ledger.sampled",
    "tacit_gauntlet.ledger.signed",
    "tacit_gauntlet.ledger.trust_mutants",
    "tacit_gauntlet.local.clients",
    "tacit_gauntlet.local.estimates",
    "tacit_gauntlet.local.mutants",
    "tacit_gauntlet.noise.laws",
    "tacit_gauntlet.noise.mutants",
    "tacit_gauntlet.noise.randomness",
    "tacit_gauntlet.noise.staircase",
    "tacit_gauntlet.query.asking",
    "tacit_gauntlet.query.language",
    "tacit_gauntlet.query.mutants",
    "tacit_gauntlet.query.work",
    "tacit_gauntlet.selection.cases",
    "tacit_gauntlet.selection.mutants",
    "tacit_gauntlet.tables.access",
    "tacit_gauntlet.tables.aggregate_mutants",
    "tacit_gauntlet.tables.aggregates",
    "tacit_gauntlet.tables.answer_mutants",
    "tacit_gauntlet.tables.answers",
    "tacit_gauntlet.tables.file_mutants",
    "tacit_gauntlet.tables.files",
    "tacit_gauntlet.tables.mutants",
    "tacit_gauntlet.tables.refusals",
    "tacit_gauntlet.tables.replay",
    "tacit_gauntlet.tables.sensitivity",
    "tacit_gauntlet.tables.sizes",
    "tacit_gauntlet.tables.values",
)


def load() -> None:
    """Register every case and mutant."""
    for module in MODULES:
        importlib.import_module(module)
