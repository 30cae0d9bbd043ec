"""Answers: post-processing of noisy integers into columns, error bars and print. Reads no row and no secret."""

from tacit.answer.answer import Answer, AnswerInfo, instead_words, loss_record, make_answer, threshold_words
from tacit.answer.error_bars import mean_bounds, sum_levels
from tacit.answer.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.answer.scaled_columns import LOST_MORE, ScaledOutput, is_scaled, noise_bounds
from tacit.answer.text import html_lines

__all__ = [
    "LOST_MORE",
    "Answer",
    "AnswerInfo",
    "ScaledOutput",
    "html_lines",
    "instead_words",
    "is_scaled",
    "law_bound",
    "loss_record",
    "make_answer",
    "mean_bounds",
    "nearest_bound",
    "noise_bounds",
    "sum_levels",
    "threshold_words",
    "weighted_bound",
]
