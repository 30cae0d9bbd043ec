"""Models that pay through a session: rows stay in the engine, and a model is made of noisy integers and public facts.

scikit-learn is imported only when an estimator is made.
"""

from tacit.asking import noise_for
from tacit.learning.additive import AdditiveClassifier, AdditiveRegressor
from tacit.learning.clusters import KMeans
from tacit.learning.linear import PCA, LinearRegression
from tacit.learning.model_file import load, model_text
from tacit.learning.rounds import Rounds, train
from tacit.learning.scorable import Holdout, RowsUsed, Scorable, Score, Scoring, SqlModel, rows_used
from tacit.learning.synthetic.made_rows import MadeRows
from tacit.learning.teachers import Student, Teachers, Votes
from tacit.learning.tuning import Tuned, tune

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Holdout",
    "KMeans",
    "LinearRegression",
    "MadeRows",
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
    "rows_used",
    "train",
    "tune",
]
