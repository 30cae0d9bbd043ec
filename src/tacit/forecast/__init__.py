"""Forecasts before a question is asked: a plan in words, the epsilon for a wanted error, trade-offs by population."""

from tacit.forecast.closer import closer_words
from tacit.forecast.plan_text import plan_in_words
from tacit.forecast.scaled_text import learning_in_words
from tacit.forecast.solving import Solved, Wanted, group_rows, refuse_useless, solve_epsilon
from tacit.forecast.tradeoffs import tradeoff

__all__ = [
    "Solved",
    "Wanted",
    "closer_words",
    "group_rows",
    "learning_in_words",
    "plan_in_words",
    "refuse_useless",
    "solve_epsilon",
    "tradeoff",
]
