"""Tacit answers questions about a table of people without revealing anyone in it.

A map: `privacy` holds losses, events and the exact laws of the noise, as values; `accounting` says what events cost;
`noise` makes random bits and draws coins and noise from them; `ledger` keeps what was charged, durably; `auditing`
tries to prove us wrong; `cli` is the `tacit` command. Imports point downward only (docs/ARCHITECTURE.md draws it).

The names here are the whole public surface. Each loads its module when first used, so `import tacit` is quick.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.accounting.composition import compose
    from tacit.accounting.meaning import explain
    from tacit.answer.answer import Answer
    from tacit.auditing.function_audit import audit
    from tacit.auditing.question_audit import audit_question
    from tacit.door import catalog, table
    from tacit.errors import (
        BudgetExceeded,
        EngineError,
        InvalidParameter,
        LargeEpsilonWarning,
        LedgerError,
        NoRandomness,
        QueryRefused,
        TacitError,
    )
    from tacit.forecast.tradeoff import tradeoff
    from tacit.ledger.home import TRYOUT
    from tacit.local.randomized_response import RandomizedResponse
    from tacit.noise.mechanism import Gaussian, Laplace
    from tacit.privacy.loss import epsilon, rho
    from tacit.query.frame import (
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        max,  # noqa: A004
        mean,
        median,
        min,  # noqa: A004
        quantile,
        std,
        sum,  # noqa: A004
        variance,
    )
    from tacit.selection.selection import Exponential, NoisyMax, PermuteAndFlip
    from tacit.selection.sparse_vector import AboveThreshold
    from tacit.selection.top_k import TopK
    from tacit.tables.schema import ROW

__version__ = "0.1.0"

__all__ = [
    "ROW",
    "TRYOUT",
    "AboveThreshold",
    "Answer",
    "BudgetExceeded",
    "EngineError",
    "Exponential",
    "Gaussian",
    "InvalidParameter",
    "Laplace",
    "LargeEpsilonWarning",
    "LedgerError",
    "NoRandomness",
    "NoisyMax",
    "PermuteAndFlip",
    "QueryRefused",
    "RandomizedResponse",
    "TacitError",
    "TopK",
    "audit",
    "audit_question",
    "catalog",
    "compose",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "epsilon",
    "explain",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "rho",
    "std",
    "sum",
    "table",
    "tradeoff",
    "variance",
]

# public name -> the module it lives in
_HOMES = {
    "AboveThreshold": "tacit.selection.sparse_vector",
    "Answer": "tacit.answer.answer",
    "BudgetExceeded": "tacit.errors",
    "EngineError": "tacit.errors",
    "Exponential": "tacit.selection.selection",
    "Gaussian": "tacit.noise.mechanism",
    "InvalidParameter": "tacit.errors",
    "Laplace": "tacit.noise.mechanism",
    "LargeEpsilonWarning": "tacit.errors",
    "LedgerError": "tacit.errors",
    "NoRandomness": "tacit.errors",
    "NoisyMax": "tacit.selection.selection",
    "PermuteAndFlip": "tacit.selection.selection",
    "QueryRefused": "tacit.errors",
    "ROW": "tacit.tables.schema",
    "RandomizedResponse": "tacit.local.randomized_response",
    "TRYOUT": "tacit.ledger.home",
    "TacitError": "tacit.errors",
    "TopK": "tacit.selection.top_k",
    "audit": "tacit.auditing.function_audit",
    "audit_question": "tacit.auditing.question_audit",
    "catalog": "tacit.door",
    "compose": "tacit.accounting.composition",
    "correlation": "tacit.query.frame",
    "count": "tacit.query.frame",
    "count_distinct": "tacit.query.frame",
    "count_units": "tacit.query.frame",
    "covariance": "tacit.query.frame",
    "epsilon": "tacit.privacy.loss",
    "explain": "tacit.accounting.meaning",
    "max": "tacit.query.frame",
    "mean": "tacit.query.frame",
    "median": "tacit.query.frame",
    "min": "tacit.query.frame",
    "quantile": "tacit.query.frame",
    "rho": "tacit.privacy.loss",
    "std": "tacit.query.frame",
    "sum": "tacit.query.frame",
    "table": "tacit.door",
    "tradeoff": "tacit.forecast.tradeoff",
    "variance": "tacit.query.frame",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module, once (PEP 562)."""
    if name == "local":  # a room with names of its own: tacit.local.choose, tacit.local.Collector
        return importlib.import_module("tacit.local")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit' has no attribute '{name}'")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
