"""Tacit answers questions about a table of people without revealing anyone in it.

A map: `privacy` holds losses, events and the exact laws of the noise, as values; `accounting` says what events cost;
`noise` makes random bits and draws coins and noise from them; `ledger` keeps what was charged, durably; `auditing`
tries to prove us wrong; `cli` is the `tacit` command. Imports point downward only (docs/ARCHITECTURE.md draws it).

The names here are the whole public surface. Each loads its module when first used, so `import tacit` is quick.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.accounting import compose, explain
    from tacit.answer import Answer
    from tacit.auditing import audit, audit_question
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
    from tacit.forecast import tradeoff
    from tacit.ledger import TRYOUT
    from tacit.local import RandomizedResponse
    from tacit.noise import Gaussian, Laplace
    from tacit.privacy import epsilon, rho
    from tacit.query import (
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        max,
        mean,
        median,
        min,
        quantile,
        std,
        sum,
        variance,
    )
    from tacit.selection import AboveThreshold, Exponential, NoisyMax, PermuteAndFlip, TopK
    from tacit.session import release_estimate
    from tacit.tables import ROW

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
    "release_estimate",
    "rho",
    "std",
    "sum",
    "table",
    "tradeoff",
    "variance",
]

# public name -> the module it lives in
_HOMES = {
    "AboveThreshold": "tacit.selection",
    "Answer": "tacit.answer",
    "BudgetExceeded": "tacit.errors",
    "EngineError": "tacit.errors",
    "Exponential": "tacit.selection",
    "Gaussian": "tacit.noise",
    "InvalidParameter": "tacit.errors",
    "Laplace": "tacit.noise",
    "LargeEpsilonWarning": "tacit.errors",
    "LedgerError": "tacit.errors",
    "NoRandomness": "tacit.errors",
    "NoisyMax": "tacit.selection",
    "PermuteAndFlip": "tacit.selection",
    "QueryRefused": "tacit.errors",
    "ROW": "tacit.tables",
    "RandomizedResponse": "tacit.local",
    "TRYOUT": "tacit.ledger",
    "TacitError": "tacit.errors",
    "TopK": "tacit.selection",
    "audit": "tacit.auditing",
    "audit_question": "tacit.auditing",
    "catalog": "tacit.door",
    "compose": "tacit.accounting",
    "correlation": "tacit.query",
    "count": "tacit.query",
    "count_distinct": "tacit.query",
    "count_units": "tacit.query",
    "covariance": "tacit.query",
    "epsilon": "tacit.privacy",
    "explain": "tacit.accounting",
    "max": "tacit.query",
    "mean": "tacit.query",
    "median": "tacit.query",
    "min": "tacit.query",
    "quantile": "tacit.query",
    "release_estimate": "tacit.session",
    "rho": "tacit.privacy",
    "std": "tacit.query",
    "sum": "tacit.query",
    "table": "tacit.door",
    "tradeoff": "tacit.forecast",
    "variance": "tacit.query",
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
