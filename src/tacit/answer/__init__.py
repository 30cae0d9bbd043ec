"""Answers: post-processing of noisy integers into columns, error bars and print. Reads no row and no secret."""

from tacit.answer.anchors import lost_more
from tacit.answer.answer import Answer, AnswerInfo, instead_words, loss_record, make_answer, threshold_words
from tacit.answer.bounds_words import filter_line
from tacit.answer.dropped import LEFT_OUT_DIFFERS
from tacit.answer.error_bars import mean_bounds, sum_levels
from tacit.answer.moved_means import moved_by_scaling
from tacit.answer.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.answer.scaled_columns import ScaledOutput, is_scaled, noise_bounds
from tacit.answer.scaled_moments import is_scaled_moment
from tacit.answer.summary import Summary
from tacit.answer.text import cells, closing_lines, html_lines, kept_lines, kept_text
from tacit.answer.united import AsideRelease, BranchRelease, make_compound_answer
from tacit.answer.written.answer_json import answer_from, answer_record
from tacit.answer.written.kept import kept_answer

__all__ = [
    "LEFT_OUT_DIFFERS",
    "Answer",
    "AnswerInfo",
    "AsideRelease",
    "BranchRelease",
    "ScaledOutput",
    "Summary",
    "answer_from",
    "answer_record",
    "cells",
    "closing_lines",
    "filter_line",
    "html_lines",
    "instead_words",
    "is_scaled",
    "is_scaled_moment",
    "kept_answer",
    "kept_lines",
    "kept_text",
    "law_bound",
    "loss_record",
    "lost_more",
    "make_answer",
    "make_compound_answer",
    "mean_bounds",
    "moved_by_scaling",
    "nearest_bound",
    "noise_bounds",
    "sum_levels",
    "threshold_words",
    "weighted_bound",
]
