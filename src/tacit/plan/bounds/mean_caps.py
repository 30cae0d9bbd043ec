"""Choosing the two caps of a mean, rows and sums about a centre, which have one weight; and how they share the loss.

To down-weight people with many rows hardly moves a mean: it is then more about the others, who are much alike. To
down-weight people who are far from the centre moves every group's mean to the centre. All of this is planned from
profiles; nothing here touches privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.plan.bounds.caps import KEPT_LEAST, Cap, NoiseTerms, UnitSizes
from tacit.plan.bounds.chosen import MISMATCH_BY_ROWS, OFF_CENTRE
from tacit.plan.bounds.profiles import Floats

# Which part of the loss of a mean its rows get: each is tried.
ROWS_SHARES = tuple(Fraction(percent, 100) for percent in (6, 10, 15, 25, 35, 50))


@dataclass(frozen=True)
class MeanCaps:
    """The caps of the rows and of the sums of a mean, and which part of their loss is for the rows."""

    rows: Cap
    sums: Cap
    rows_share: Fraction


@dataclass(frozen=True)
class Pair:
    """Rows and sums about a centre, with one weight: by rank, and what noise they get."""

    rows: UnitSizes
    sums: UnitSizes
    rows_terms: NoiseTerms
    sums_terms: NoiseTerms
    share: Fraction  # of the call's loss, for both
    rows_shares: Sequence[Fraction]  # which part of it rows may get
    others: Floats | None = None  # what people count for already, because of further vectors with the same weight
    has_sum: bool = False  # the sum is asked too, in which all that is cut is missing


def best_mean_caps(pair: Pair, cells: float) -> MeanCaps:
    """Return the caps, and the share of rows, of least error in a group of mean size."""
    rows, sums = pair.rows, pair.sums
    of_sums = np.array(sums.ends())
    by_sums = np.minimum(1.0, of_sums[:, None] / sums.length[None, :])
    if pair.others is not None:
        by_sums = np.minimum(by_sums, pair.others[None, :])
    found: tuple[float, MeanCaps] | None = None
    for size in rows.ends():
        by_rows = rows.weights(size)
        weights = np.minimum(by_sums, by_rows[None, :])
        kept_rows, kept_sums = _kept_part(rows, weights), _kept_part(sums, weights)
        cut_by_rows = 1 - sums.kept(by_rows)
        by_rows_wrong = (1.0 if pair.has_sum else MISMATCH_BY_ROWS) * cut_by_rows
        wrong = by_rows_wrong + np.maximum(1 - cut_by_rows - kept_sums, 0.0)
        for share in pair.rows_shares:
            of_rows = size * pair.rows_terms.width(float(pair.share * share)) * cells / rows.mass
            noise = of_sums * pair.sums_terms.width(float(pair.share * (1 - share))) * cells / sums.mass
            errors = np.hypot(noise, OFF_CENTRE * of_rows) / kept_rows + wrong
            place = int(np.argmin(errors))
            if found is None or errors[place] < found[0]:
                caps = (
                    Cap(size, Fraction(0), 0.0),
                    Cap(float(of_sums[place]), Fraction(0), float(errors[place]) * sums.mass / cells),
                )
                found = float(errors[place]), MeanCaps(*caps, share)
    if found is None:
        raise ValueError("there is no cap or share to try")
    return found[1]


def _kept_part(sizes: UnitSizes, weights: Floats) -> Floats:
    """Return, for each row of weights, about which share of all that people have is left."""
    had = sizes.people * sizes.total
    return np.maximum(weights @ had / np.sum(had), KEPT_LEAST)
