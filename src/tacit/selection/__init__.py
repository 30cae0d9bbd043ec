"""Selection: choose the best of many candidates by noisy scores, and release only the choice."""

from tacit.selection.quantile import BEYOND, EXTREME_BITS, Rate, Target, draw_quantiles, levels_of, rows_for
from tacit.selection.selection import Exponential, NoisyMax, PermuteAndFlip, Selection, TopK, pick, pick_all
from tacit.selection.sparse_vector import AboveThreshold, answer_runs
