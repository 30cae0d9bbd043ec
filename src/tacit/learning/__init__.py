"""Models that pay through a session: rows stay in the engine, and a model is made of noisy integers and public facts.

Each name loads its module when it is first used: scikit-learn is imported only when an estimator is made.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.learning.additive import AdditiveClassifier, AdditiveRegressor
    from tacit.learning.linear import LinearRegression
    from tacit.learning.model_file import load, model_text
    from tacit.learning.pca import PCA
    from tacit.learning.price import noise_for
    from tacit.learning.rounds import Rounds, train
    from tacit.learning.scoring.holdout import Holdout
    from tacit.learning.scoring.judge import Score
    from tacit.learning.scoring.overfitting import overfitting_story
    from tacit.learning.scoring.scorable import Scorable, Scoring, SqlModel
    from tacit.learning.scoring.sides import RowsUsed, rows_used
    from tacit.learning.scoring.tuning import Tuned, tune
    from tacit.learning.teachers import Student, Teachers, Votes
    from tacit.learning.terms import unmatched

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Holdout",
    "LinearRegression",
    "Rounds",
    "RowsUsed",
    "Scorable",
    "Score",
    "Scoring",
    "SqlModel",
    "Student",
    "Teachers",
    "Tuned",
    "Votes",
    "load",
    "model_text",
    "noise_for",
    "overfitting_story",
    "rows_used",
    "train",
    "tune",
    "unmatched",
]

_HOMES = {
    "PCA": "tacit.learning.pca",
    "AdditiveClassifier": "tacit.learning.additive",
    "AdditiveRegressor": "tacit.learning.additive",
    "LinearRegression": "tacit.learning.linear",
    "Holdout": "tacit.learning.scoring.holdout",
    "RowsUsed": "tacit.learning.scoring.sides",
    "Scorable": "tacit.learning.scoring.scorable",
    "Score": "tacit.learning.scoring.judge",
    "Scoring": "tacit.learning.scoring.scorable",
    "SqlModel": "tacit.learning.scoring.scorable",
    "Student": "tacit.learning.teachers",
    "Teachers": "tacit.learning.teachers",
    "Votes": "tacit.learning.teachers",
    "Tuned": "tacit.learning.scoring.tuning",
    "tune": "tacit.learning.scoring.tuning",
    "overfitting_story": "tacit.learning.scoring.overfitting",
    "rows_used": "tacit.learning.scoring.sides",
    "Rounds": "tacit.learning.rounds",
    "load": "tacit.learning.model_file",
    "model_text": "tacit.learning.model_file",
    "noise_for": "tacit.learning.price",
    "train": "tacit.learning.rounds",
    "unmatched": "tacit.learning.terms",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit.learning' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
