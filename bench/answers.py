"""Everyday questions about tables of which only the unit is declared: errors, intervals, and which groups are shown.

Each run asks a table that was never asked before, so learning is paid for in every one: epsilon 1 (some tables also 0.3
and 3) of a budget three times as large, with delta 1e-6. `python -m bench.questions.summary` prints the same by
question from bench/results/answers.jsonl, and bench/questions/runs.py has the options.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Absent, Result
from bench.questions.figures import figures_of, read
from bench.questions.runs import options_of, run


def results() -> Iterator[Result]:
    """Ask everything, then yield the figures; a table that is not here says so."""
    options = options_of(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        for table, why in run(options, Path(folder)).items():
            yield Absent(table, why)
    yield from figures_of(read(options.file))
