"""Answers: post-processing of noisy integers into columns, error bars and print. Reads no row and no secret."""

from tacit.answer.anchors import most_of_groups
from tacit.answer.answer import Answer, AnswerInfo, half_width, loss_record, make_answer
from tacit.answer.answer_json import answer_from, answer_of_certificate, answer_record
from tacit.answer.disclosure import filter_line
from tacit.answer.error_bars import mean_bounds, sum_levels
from tacit.answer.moments import foreseen_moment, is_scaled_moment
from tacit.answer.noise_sums import law_bound, nearest_bound, noise_bounds, weighted_bound
from tacit.answer.panel import svg_for_page
from tacit.answer.rehearsal_table import Rehearsal
from tacit.answer.running_totals import RunningTotals
from tacit.answer.scaled_columns import ScaledOutput, is_scaled
from tacit.answer.summary import Summary
from tacit.answer.text import (
    Printed,
    advised,
    amounts,
    cells,
    closing_lines,
    kept_lines,
    kept_text,
    least_shown,
    protected_words,
    text_table,
)
from tacit.answer.united import AsideRelease, BranchRelease, make_compound_answer
from tacit.answer.workloads import answer_of_parts, fitted_together, shown_as_possible
