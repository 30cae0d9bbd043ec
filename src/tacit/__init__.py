"""Tacit answers questions about a table of people without revealing anyone in it.

A map of all rooms, in the order of an answer:

- `asking` opens a table and takes a question to its answer; in it is the only way to pay.
- `cli` is the `tacit` command, which does the same in a terminal.
- `server` takes questions over HTTP; `remote` asks there. `json_wire` is how they travel, with their
  `options`; `hold` is when answers leave.
- `tables` holds a table's declaration (what is protected, what is public) and its source of rows;
  `catalog_file` reads them from a curator's `tacit.toml`.
- `query` reads SQL or Python into one tree.
- `plan` decides bounds, sensitivities, noise and cost, from public facts only.
- `forecast` predicts errors and costs before anything is asked.
- `ledger` stores charges and answers durably; `accounting` computes what events cost together.
- `engine` reads rows into bounded integers, and fills the table in `exact`, which is secret.
- `release` adds noise to it: `noise` draws the noise, and `selection` makes private choices.
- `answer` turns noisy integers into numbers with intervals; `pictures` draws them.

Beside that path, `local` is for people who randomize their own report, and `auditing` tries to prove our claims wrong.
Below it, `privacy` holds what all rooms share (losses, events, exact distributions); then come `errors`, `files` and
`memory`. Imports point downward only (docs/ARCHITECTURE.md draws it).

The names here are the whole public surface, with those of `tacit.local`. Each
name loads its module when it is first used, so `import tacit` is quick.

Docstrings cite proofs and other pages as docs/proofs/laplace.md; `tacit docs proofs/laplace` prints one.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.accounting import amplified, compose, explain, parallel, poisson_sample, shuffled
    from tacit.answer import Answer
    from tacit.asking import Question, Table, catalog, public, table
    from tacit.auditing import audit, audit_model, audit_question, bet_on
    from tacit.errors import (
        BudgetExceeded,
        EngineError,
        InvalidParameter,
        LargeEpsilonWarning,
        LedgerError,
        NoRandomness,
        NotAllowed,
        QueryRefused,
        TacitError,
    )
    from tacit.ledger import TRYOUT
    from tacit.local import RandomizedResponse, release_estimate, tradeoff
    from tacit.noise import Gaussian, Laplace
    from tacit.privacy import epsilon, rho
    from tacit.query import (
        col,
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
    from tacit.remote import connect
    from tacit.selection import AboveThreshold, Exponential, NoisyMax, PermuteAndFlip, TopK
    from tacit.tables import ROW

__version__ = "0.2.0"

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
    "NotAllowed",
    "PermuteAndFlip",
    "QueryRefused",
    "Question",
    "RandomizedResponse",
    "Table",
    "TacitError",
    "TopK",
    "amplified",
    "audit",
    "audit_model",
    "audit_question",
    "bet_on",
    "catalog",
    "col",
    "compose",
    "connect",
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
    "parallel",
    "poisson_sample",
    "public",
    "quantile",
    "release_estimate",
    "rho",
    "shuffled",
    "std",
    "sum",
    "table",
    "tradeoff",
    "variance",
]

# public name -> the module it lives in
_HOMES = {
    name: f"tacit.{room}"
    for room, names in (
        ("accounting", "amplified compose explain parallel poisson_sample shuffled"),
        ("answer", "Answer"),
        ("asking", "Question Table catalog public table"),
        ("auditing", "audit audit_model audit_question bet_on"),
        ("errors", "BudgetExceeded EngineError InvalidParameter LargeEpsilonWarning LedgerError"),
        ("errors", "NoRandomness NotAllowed QueryRefused TacitError"),
        ("ledger", "TRYOUT"),
        ("local", "RandomizedResponse release_estimate tradeoff"),
        ("noise", "Gaussian Laplace"),
        ("privacy", "epsilon rho"),
        ("query", "col correlation count count_distinct count_units covariance max mean median min"),
        ("query", "quantile std sum variance"),
        ("remote", "connect"),
        ("selection", "AboveThreshold Exponential NoisyMax PermuteAndFlip TopK"),
        ("tables", "ROW"),
    )
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a public name from its module, once (PEP 562)."""
    if name in ("local", "test"):  # with names of their own: tacit.local.choose, tacit.test.means
        return importlib.import_module("tacit.local" if name == "local" else "tacit.answer.significance")
    home = _HOMES.get(name)
    if home is None:
        from tacit.errors import UnknownName, did_you_mean

        if name.startswith("_"):  # protocols of Python
            raise AttributeError(f"module 'tacit' has no attribute '{name}'")
        raise UnknownName(f"tacit has no '{name}'{did_you_mean(name, __all__)}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


def load_ipython_extension(shell: object) -> None:
    """Add `%tacit` and `%%tacit` to a notebook: what `%load_ext tacit` calls."""
    from tacit.remote import load_notebook

    load_notebook(shell)
