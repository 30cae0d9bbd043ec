"""Choosing the two caps of a mean, rows and sums about a centre, which have one weight; and how they share the loss.

Who has many rows may count for less and the mean hardly moves: it is then more about the others, who are much alike.
Who is far from the centre may not: cutting them moves every group's mean to the centre. So rows are cut and sums hardly
are. Whether those who are cut differ from the others is measured where the profiles say that it can be told well: by
totals of the sums, in which nobody counts for more than a tail that may be below the tail cap. All of this is planned
from profiles; nothing here touches privacy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import hypot, sqrt
from statistics import NormalDist

import numpy as np

from tacit.plan.bounds.caps import (
    ANCHOR_SHARES,
    KEPT_LEAST,
    MISMATCH,
    MISMATCH_POWER,
    Cap,
    Sizes,
    Terms,
    caps_tried,
)
from tacit.plan.bounds.profiles import Floats

# Of the sums about the centre that are cut, this part is wrong in a group's mean: where people are cut because they
# have many rows (more where little is kept, as of counts), and where because they are far from the centre.
MISMATCH_BY_ROWS = 1 / 16
MISMATCH_BY_VALUES = 1.0
# About how many people, in scales of the noise of their profile, have far values and are not seen, and how many times
# the tail cap they have.
HIDDEN = 1.0
HIDDEN_FAR = 2.0
# About how far a group's mean is from the centre, in mean distances of rows from it.
OFF_CENTRE = 1 / 2
# A group has a mean where its noisy rows are above about this many mean sizes of their noise (Gaussian 4.9, Laplace 6).
KNOWN_FROM = 5.0
# A mean that is not known is as bad as one that is off by this many mean distances of rows from the centre.
NOT_KNOWN = 1 / 2
# As many people, in scales of a profile's noise, are seen in it wherever they are.
SEEN_FROM = 8.0
# Ranks are moved to this many places each; they are tied no more than this.
DRAWN = 8
TIED_MOST = 0.8
# Caps are tried in steps of half an octave: there are two to choose.
CAPS_PER_OCTAVE = 2
# Which part of the loss of its sums goes to their totals, and how often the tail is halved to find the best.
TOTALS_SHARES = (Fraction(1, 20), Fraction(1, 10))
HALVINGS = 10
# Totals are measured if they tell the shift of all means within this part of the sums that are cut, and if cutting may
# move a mean by more than this part of the reach of its noise. A bar's reach is about so many mean sizes of the noise.
TOLD_WITHIN = 0.4
WORTH_FROM = 0.5
REACH = {"laplace": 3.0, "gaussian": 2.5}
# Which part of the loss of a mean its rows get.
ROWS_SHARES = tuple(Fraction(percent, 100) for percent in (3, 6, 10, 15, 25, 35, 50))


@dataclass(frozen=True)
class MeanCaps:
    """The caps of the rows and of the sums of a mean, and which part of their loss is for the rows."""

    rows: Cap
    sums: Cap
    rows_share: Fraction


@dataclass(frozen=True)
class Pair:
    """Rows and sums about a centre, with one weight: by rank, what noise they get, and what else is asked of rows."""

    rows: Sizes
    sums: Sizes
    rows_terms: Terms
    sums_terms: Terms
    share: Fraction  # of the call's loss, for both
    rows_shares: Sequence[Fraction]  # which part of it rows may get
    counts: float = 0.0  # how much the error of the count itself weighs against that of the mean; 0: it is not asked
    others: Floats | None = None  # what people count for already, because of further vectors with the same weight


def with_tails(sizes: Sizes) -> Sizes:
    """Return people whose lengths go on with their totals where the profile of lengths has too few of them to be seen.

    That profile has more noise than the one of totals, and ends earlier. People beyond its end are as long, for what
    they have in all, as those just below it.
    """
    reading = sizes.told.length
    if reading is None:
        return sizes
    above = np.cumsum(sizes.people[::-1])[::-1]
    seen = np.flatnonzero(above >= SEEN_FROM * reading.scale)
    if not len(seen) or seen[-1] + 1 >= len(sizes.length):
        return sizes
    end = int(seen[-1])
    longer = sizes.total * (sizes.length[end] / sizes.total[end])
    beyond = np.arange(len(sizes.length)) > end
    return replace(sizes, length=np.where(beyond, np.maximum(sizes.length, longer), sizes.length))


def loosely(pair: Pair) -> Pair:
    """Return the same people, of whom those with many rows have large sums only so far as the profiles make it likely.

    By rank alone whoever has the most rows has the largest sum, and a cap on sums would never cut anybody whom a cap on
    rows does not. As if the distance of a person's rows from the centre had nothing to do with their number, the
    logarithms of rows and sums have a correlation of the ratio of their spreads: ranks are moved by that much.
    """
    rows, sums = pair.rows, pair.sums
    spread = [_spread_of_logarithms(each) for each in (rows, sums)]
    tied = min(spread[0] / spread[1], TIED_MOST) if spread[1] > 0 else TIED_MOST
    ranks = np.cumsum(rows.people) / np.sum(rows.people)
    middles = np.clip(ranks - rows.people / np.sum(rows.people) / 2, 1e-12, 1 - 1e-12)
    steps = _normal((np.arange(DRAWN) + 0.5) / DRAWN)
    moved = (tied * _normal(middles)[:, None] + sqrt(1 - tied * tied) * steps[None, :]).ravel()
    order = np.lexsort((np.repeat(middles, DRAWN), moved))
    risen = np.cumsum(np.repeat(rows.people, DRAWN)[order])
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.searchsorted(ranks, risen / risen[-1] * (1 - 1e-12))
    each_row, each_sum = (np.repeat(each.people, DRAWN) / DRAWN for each in (rows, sums))
    return replace(
        pair,
        rows=replace(rows, people=each_row, total=np.repeat(rows.total, DRAWN), length=np.repeat(rows.length, DRAWN)),
        sums=replace(sums, people=each_sum, total=sums.total[places], length=sums.length[places]),
        others=None if pair.others is None else np.repeat(pair.others, DRAWN),
    )


def _normal(ranks: Floats) -> Floats:
    inverse = NormalDist().inv_cdf
    return np.array([inverse(rank) for rank in ranks.tolist()])


def _spread_of_logarithms(sizes: Sizes) -> float:
    logarithms = np.log(sizes.total)
    mean = np.average(logarithms, weights=sizes.people)
    return sqrt(float(np.average((logarithms - mean) ** 2, weights=sizes.people)))


def best_mean_caps(pair: Pair, cells: float) -> MeanCaps:
    """Return the caps, and the share of rows, of least error in a group of mean size.

    With one group both caps are the tail caps, which cut nothing that is believed.
    """
    pair = loosely(pair)
    rows, sums = pair.rows, pair.sums
    if cells > 1:
        tried = [np.array(list(caps_tried(each, CAPS_PER_OCTAVE))) for each in (rows, sums)]
        tried = [np.append(each, sizes.tail_cap) for each, sizes in zip(tried, (rows, sums), strict=True)]
    else:
        tried = [np.array([each.tail_cap]) for each in (rows, sums)]
    by_sums = np.minimum(1.0, tried[1][:, None] / sums.length[None, :])
    if pair.others is not None:
        by_sums = np.minimum(by_sums, pair.others[None, :])
    found: tuple[float, MeanCaps] | None = None
    for size in tried[0].tolist():
        weights = np.minimum(by_sums, rows.weights(size)[None, :])
        for share in pair.rows_shares:
            means = _mean_errors(pair, cells, size, tried[1], weights, share)
            anchors, counts = _count_errors(pair, cells, size, weights, share)
            place = int(np.argmin(means + pair.counts * counts))
            error = float(means[place] + pair.counts * counts[place])
            if found is None or error < found[0]:
                mean_rows, mean_sums = rows.mass / cells, sums.mass / cells
                of_rows = Cap(size, anchors[place], float(counts[place]) * mean_rows if pair.counts else 0.0)
                of_sums = Cap(float(tried[1][place]), Fraction(0), float(means[place]) * mean_sums)
                found = error, MeanCaps(of_rows, of_sums, share)
    if found is None:
        raise ValueError("there is no share to try")
    return replace(found[1], sums=_with_totals(pair, found[1], cells))


def _with_totals(pair: Pair, caps: MeanCaps, cells: float) -> Cap:
    """Return the cap of the sums with the tail and the share of their totals, where these tell enough to be measured.

    The noise on the totals falls with the tail, and what people have beyond the tail is not in them.
    """
    rows, sums, cap = pair.rows, pair.sums, caps.sums
    by_rows = rows.weights(caps.rows.size)
    weights = np.minimum(by_rows, sums.weights(cap.size))
    weights = weights if pair.others is None else np.minimum(weights, pair.others)
    lost, by_values = 1 - sums.kept(weights), max(sums.kept(by_rows) - sums.kept(weights), 0.0)
    cap = replace(cap, by_values=by_values)
    share, reach = float(pair.share * (1 - caps.rows_share)), REACH[pair.sums_terms.noise]
    noise = reach * cap.size * pair.sums_terms.width(share) * cells / max(rows.kept(weights), KEPT_LEAST)
    if cells <= 1 or lost * sums.mass <= WORTH_FROM * noise:
        return cap
    # beside totals of rows, which are up to the tail cap, those of sums are too
    tails = [sums.tail_cap / 2**halving for halving in range(1 if pair.counts else HALVINGS)]
    for anchor in TOTALS_SHARES:
        width = reach * pair.sums_terms.width(share * float(anchor))
        off, tail = min((hypot(width * tail, sums.beyond(tail)), tail) for tail in tails)
        if off <= TOLD_WITHIN * lost * sums.mass:
            return replace(cap, anchor=anchor, tail=tail)
    return cap


def _mean_errors(pair: Pair, cells: float, size: float, caps: Floats, weights: Floats, share: Fraction) -> Floats:
    """Return for each cap of the sums about how far off a mean is, in mean distances of rows from the centre."""
    rows, sums = pair.rows, pair.sums
    distance = sums.mass / rows.mass
    of_rows, of_sums = float(pair.share * share), float(pair.share * (1 - share))
    kept_rows = np.maximum(_kept(rows, weights), KEPT_LEAST) * rows.mass / cells
    noisy_rows = size * pair.rows_terms.width(of_rows) / kept_rows
    noisy_sums = caps * pair.sums_terms.width(of_sums) / kept_rows / distance
    by_rows, by_both = sums.kept(rows.weights(size)), _kept(sums, weights)
    wrong = MISMATCH_BY_ROWS * (1 - by_rows) / max(by_rows, KEPT_LEAST) ** MISMATCH_POWER
    wrong = wrong + MISMATCH_BY_VALUES * (np.maximum(by_rows - by_both, 0.0) + _hidden(pair, size, caps))
    unknown = -np.expm1(-KNOWN_FROM * noisy_rows)  # as if groups were of exponentially different sizes
    return np.asarray(np.hypot(noisy_sums, OFF_CENTRE * noisy_rows) + wrong + NOT_KNOWN * unknown)


def _hidden(pair: Pair, size: float, caps: Floats) -> Floats:
    """Return for each cap of the sums about which part of them is cut of people too few to be seen, with far values.

    They are taken to have more than the tail cap, and as many rows as others. Cutting everyone because of many rows
    costs little, and leaves them what they have for each row.
    """
    rows, sums = pair.rows, pair.sums
    beyond = HIDDEN_FAR * sums.tail_cap
    far = beyond * sums.length[-1] / sums.total[-1]
    by_rows = rows.weights(size)
    lost = by_rows[None, :] - np.minimum(by_rows[None, :], (caps / far)[:, None])
    people = HIDDEN * sums.told.total.scale / np.sum(rows.people)
    return np.asarray(lost @ rows.people * people * beyond / sums.mass)


def _count_errors(
    pair: Pair, cells: float, size: float, weights: Floats, share: Fraction
) -> tuple[list[Fraction], Floats]:
    """Return for each cap of the sums the best share of the count's totals, and its error as a part of the count."""
    rows = pair.rows
    none = [Fraction(0)] * len(weights)
    if not pair.counts:
        return none, np.zeros(len(weights))
    kept, mean, of_rows = np.maximum(_kept(rows, weights), KEPT_LEAST), rows.mass / cells, float(pair.share * share)
    if cells <= 1:
        return none, size * pair.rows_terms.width(of_rows) / mean + 0 * kept
    wrong = MISMATCH * (1 - kept) / kept**MISMATCH_POWER
    errors = []
    for anchor in ANCHOR_SHARES:
        totals = rows.tail_cap * pair.rows_terms.totals_width(of_rows * float(anchor)) + rows.excess
        noise = size * pair.rows_terms.width(of_rows * float(1 - anchor)) / kept
        errors.append(noise / mean + wrong + totals / rows.mass)
    # without totals nothing is scaled back
    errors.append(size * pair.rows_terms.width(of_rows) / mean + (1 - kept))
    best = np.argmin(np.array(errors), axis=0)
    anchors = (*ANCHOR_SHARES, Fraction(0))
    return [anchors[each] for each in best.tolist()], np.min(np.array(errors), axis=0)


def _kept(sizes: Sizes, weights: Floats) -> Floats:
    """Return, for each row of weights, about which share of all that people have is left."""
    had = sizes.people * sizes.total
    return np.asarray(weights @ had / np.sum(had))
