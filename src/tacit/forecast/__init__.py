"""Forecasts before a question is asked: a plan in words, and the epsilon for a wanted error."""

from tacit.forecast.plan_text import PEOPLE, ROWS_MOST, errors_in_words, learning_in_words, plan_in_words
from tacit.forecast.solving import (
    Goal,
    Solved,
    Wanted,
    goals_of,
    goals_of_level,
    group_rows,
    least_epsilon,
)
from tacit.forecast.target import closer_words, expected_error, refuse_useless, useless_line
