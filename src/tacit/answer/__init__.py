"""Post-processing of what was released: columns, error bars, printing. Reads no row and no secret."""

from tacit.answer.answer import Answer, Facts, Rows, loss_record
from tacit.answer.columns import noisy_columns
from tacit.answer.consistency import CONSISTENT, made_consistent
from tacit.answer.error_bars import mean_bounds, sum_levels
from tacit.answer.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.answer.text import html_lines

__all__ = [
    "CONSISTENT",
    "Answer",
    "Facts",
    "Rows",
    "html_lines",
    "law_bound",
    "loss_record",
    "made_consistent",
    "mean_bounds",
    "nearest_bound",
    "noisy_columns",
    "sum_levels",
    "weighted_bound",
]
