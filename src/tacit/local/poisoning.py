"""Detects maximal-gain poisoning: many reports that support the same several answers at once.

A fake report gains most by supporting all of its targets, which honest reports do only by chance. In one half of a
sample of reports, the answers with the largest counts are searched for the set that is supported together far more
often than in simulated honest reports. The other half is then tested against fresh simulated reports
(docs/proofs/local.md). A report that supports only one answer leaves no such pattern: for those protocols only the
stated worst-case shift holds.
"""

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.choosing import FrequencyProtocol
from tacit.local.protocols.hashing import LocalHashing
from tacit.local.protocols.protocol import Payloads
from tacit.local.protocols.unary import BitReports
from tacit.local.survey import LocalProtocol
from tacit.noise import Keystream, draw_below
from tacit.privacy import Flags, Floats

LOOKED_AT = 24
ROWS_LEAST = 200
# The probability that honest reports raise a flag.
FALSE_FLAG = 1e-4


def leaves_patterns(protocol: LocalProtocol) -> bool:
    """Whether fakes of this protocol can support several answers at once, and so be seen."""
    return isinstance(protocol, BitReports | LocalHashing)


def find_patterns(protocol: FrequencyProtocol, payloads: Payloads, counts: Floats) -> tuple[str, ...]:
    """Return a line for a set of answers that reports support together too often, or an empty text."""
    rows = len(payloads) // 2
    codes = np.argsort(-counts, kind="stable")[: min(LOOKED_AT, protocol.size)]
    if rows < ROWS_LEAST or len(codes) < 3 or not counts.sum() > 0:
        return ()
    order = np.argsort(Keystream().words(2 * rows))
    seen = [protocol.supporting(payloads[order[part]], codes) for part in (slice(rows), slice(rows, 2 * rows))]
    honest = [protocol.supporting(_honest(protocol, counts, rows), codes) for _ in range(2)]
    chosen, least = _stands_out(seen[0], honest[0])
    together, expected = (int(np.count_nonzero(each[1][:, chosen].sum(axis=1) >= least)) for each in (seen, honest))
    if _at_least_half(together, together + expected) > FALSE_FLAG:
        return ()
    share = (together - expected) / rows
    return (
        f"warning: about {share:.1%} of reports support {least} or more of the same {len(chosen)} answers at once, "
        "more than honest reports would: fake reports may push these answers",
    )


def _honest(protocol: FrequencyProtocol, counts: Floats, rows: int) -> Payloads:
    """Return simulated reports of people with answers that follow the estimate."""
    edges = np.cumsum(np.floor(counts / counts.sum() * (1 << 40)).astype(np.int64))
    answers = np.searchsorted(edges, draw_below(int(edges[-1]), rows, Keystream()), side="right")
    return protocol.draw(answers.astype(np.int64), Keystream())


def _stands_out(seen: Flags, honest: Flags) -> tuple[list[int], int]:
    """Return the answers supported together most often beyond expectation, and the number of them per report.

    Answers are taken in the order of their weight in the excess of pairs (the leading direction of that matrix, in
    which a pushed set stands out even if no pair does); the best beginning of that order is found.
    """
    together = [each.astype(np.float32).T @ each.astype(np.float32) for each in (seen, honest)]
    pairs = _excess(together[0], together[1])
    np.fill_diagonal(pairs, 0.0)
    weights = np.linalg.eigh(pairs)[1][:, -1]
    order = [int(index) for index in np.argsort(-weights * np.sign(weights.sum() or 1.0))]
    best, found = -np.inf, (order[:2], 2)
    for count in range(2, len(order) + 1):
        held = [np.bincount(each[:, order[:count]].sum(axis=1), minlength=count + 1) for each in (seen, honest)]
        # tails[i]: how many reports support at least i of the chosen answers
        tails = [np.cumsum(counts[::-1])[::-1].astype(np.float64) for counts in held]
        scores = _excess(tails[0], tails[1])
        scores[:2] = -np.inf
        if scores.max() > best:
            best, found = float(scores.max()), (order[:count], int(np.argmax(scores)))
    return found


def _excess(seen: NDArray[Any], honest: NDArray[Any]) -> Floats:
    """Return how many deviations the seen counts are above the honest ones."""
    return np.asarray((seen - honest) / np.sqrt(seen + honest + 1), dtype=np.float64)


def _at_least_half(successes: int, trials: int) -> float:
    """Return the probability of at least `successes` heads in fair tosses, or Hoeffding's bound for many tosses."""
    if trials > 1000:
        excess = max(successes / trials - 0.5, 0.0)
        return float(np.exp(-2 * trials * excess**2))
    return float(Fraction(sum(comb(trials, heads) for heads in range(successes, trials + 1)), 2**trials))
