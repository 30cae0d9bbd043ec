"""The collector: counts reports as they arrive, rejects wrong ones for fixed reasons, and estimates totals.

Memory depends on the size of the domain, not on the number of reports, and counters of shards merge in any order. On
request it stores which ids and tokens it has counted (`tally_file.py`). For each report a step happens completely or is
left out.

A uniform sample of the payloads is kept to look for poisoning (the last part): every payload gets a random number
drawn here and the smallest stay, so no sender can arrange to be left out.

Detects maximal-gain poisoning: many reports that support the same several answers at once.

A fake report gains most by supporting all of its targets, which honest reports do only by chance. In one half of a
sample of reports, the answers with the largest counts are searched for the set that is supported together far more
often than in simulated honest reports. The other half is then tested against fresh simulated reports
(docs/proofs/local.md). A report that supports only one answer leaves no such pattern: for those protocols only the
stated worst-case shift holds.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.choosing import FrequencyProtocol
from tacit.local.client import ID_BYTES, Report, Reports
from tacit.local.domain import Range, Record, Text
from tacit.local.estimate import (
    AttributesEstimate,
    Basis,
    Counting,
    FrequencyEstimate,
    MeanEstimate,
    StringsEstimate,
    estimate_counts,
    estimate_mean,
    find_strings,
)
from tacit.local.protocols.hashing import LocalHashing, PrefixHashing
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.protocol import Payloads
from tacit.local.protocols.unary import BitReports
from tacit.local.survey import Attributes, LocalProtocol, Survey, survey_of
from tacit.local.tally_file import TallyFile
from tacit.local.wire import (
    DUPLICATE,
    OUT_OF_RANGE,
    OVER_CAP,
    REASONS,
    check_report,
    mismatch,
    read_pieces,
    read_survey,
)
from tacit.noise import Keystream, draw_below
from tacit.numbers import Flags, Floats, Number, Words, confidence_meaning, read_json, whole

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


# ---- the sample of payloads ------------------------------------------------------------------------------------------


ROWS_MOST = 1 << 16
BYTES_MOST = 1 << 23


@dataclass(frozen=True)
class Sample:
    """Payloads and the random number of each, in parts; payloads with a number of at least `limit` were dropped.

    Privacy: keeps only reports, each already perturbed by its sender.
    """

    payload_bytes: int
    parts: tuple[tuple[Words, Payloads], ...] = ()
    limit: int = 1 << 64

    @property
    def payloads(self) -> Payloads:
        return self._trimmed(rows_most(self.payload_bytes))._joined()[1]

    def with_more(self, payloads: Payloads) -> "Sample":
        numbers = Keystream().words(len(payloads))
        if self.limit < 1 << 64:
            low = np.flatnonzero(numbers < np.uint64(self.limit))
            numbers, payloads = numbers[low], payloads[low]
        if len(numbers) > 2 * rows_most(self.payload_bytes):  # sorted out before anything is copied
            alone = Sample(self.payload_bytes, ((numbers, payloads),), self.limit)._trimmed(
                rows_most(self.payload_bytes)
            )
            return self.merged(alone)
        # trimming partitions all rows: let the sample grow to twice its size first, so most batches only append
        return replace(self, parts=(*self.parts, (numbers, payloads.copy())))._trimmed(
            2 * rows_most(self.payload_bytes)
        )

    def merged(self, other: "Sample") -> "Sample":
        """Return the sample of all payloads that either has seen."""
        limit = min(self.limit, other.limit)
        both = Sample(self.payload_bytes, (*self.parts, *other.parts), limit)
        numbers, payloads = both._joined()
        low = np.flatnonzero(numbers < np.uint64(limit)) if limit < 1 << 64 else np.arange(len(numbers))
        kept = Sample(self.payload_bytes, ((numbers[low], payloads[low]),), limit)
        return kept._trimmed(2 * rows_most(self.payload_bytes))

    def _joined(self) -> tuple[Words, Payloads]:
        if not self.parts:
            return np.empty(0, dtype=np.uint64), np.empty((0, self.payload_bytes), dtype=np.uint8)
        return np.concatenate([part[0] for part in self.parts]), np.concatenate([part[1] for part in self.parts])

    def _trimmed(self, most: int) -> "Sample":
        """Keep only the smallest numbers, if there are more than this."""
        if sum(len(part[0]) for part in self.parts) <= most:
            return self
        numbers, payloads = self._joined()
        count = rows_most(self.payload_bytes)
        order = np.argpartition(numbers, count)
        kept = order[:count]
        return Sample(self.payload_bytes, ((numbers[kept], payloads[kept]),), int(numbers[order[count]]))


def rows_most(payload_bytes: int) -> int:
    """Return how many payloads are kept: 8 MB of them at most."""
    return max(256, min(ROWS_MOST, BYTES_MOST // payload_bytes))


# ---- the collector ---------------------------------------------------------------------------------------------------


Estimate = FrequencyEstimate | MeanEstimate | AttributesEstimate | StringsEstimate

_BATCH = 1 << 16


class Collector:
    """Counts the reports of one survey.

    `deduplicate` counts each id once, and keeps ids on disk; with a path in `store` they survive a restart, and so do
    the counters. `reports_per_person` is a cap, for surveys with tokens in their reports.

    Privacy: sees only reports, each epsilon-DP for its sender; further computation on reports is free.
    """

    def __init__(
        self,
        survey: Survey,
        *,
        deduplicate: bool = False,
        store: str | Path | None = None,
        reports_per_person: int | None = None,
    ) -> None:
        if not isinstance(survey, Survey):
            raise InvalidParameter("survey must be a Survey\nhint: e.g. Collector(randomizer.survey)")
        self.survey = survey
        self.cap: int | None = (
            None if reports_per_person is None else whole(reports_per_person, name="reports_per_person")
        )
        if self.cap is not None and not survey.tokens:
            raise InvalidParameter(
                "reports_per_person needs reports that carry a token\nhint: make_survey(..., tokens=True)"
            )
        if store is not None and isinstance(survey.protocol, PrefixHashing):
            raise InvalidParameter(
                "a store cannot resume a collection of strings: their reports are kept whole, not as counters"
                "\nhint: keep the files of reports, and collect them again"
            )
        self.deduplicate: bool = deduplicate or store is not None
        self.used: int = 0
        self.rejected: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        protocol = survey.protocol
        self._tally: NDArray[Any] = protocol.tally(np.empty((0, protocol.payload_bytes), dtype=np.uint8))
        self._sample = Sample(protocol.payload_bytes)
        self._store = TallyFile(store) if self.deduplicate or self.cap is not None else None
        self._resume()

    def add(self, report: Report) -> str | None:
        """Count one report; return None, or the reason why it was rejected."""
        if not isinstance(report, Report):
            raise InvalidParameter("report must be a Report\nhint: a file's reports are added with add_file")
        reason = check_report(report, self.survey)
        if reason is not None:
            self._reject(Counter({reason: 1}))
            return reason
        before = self.rejected.copy()
        ids = np.frombuffer(report.id, dtype=np.uint8).reshape(1, ID_BYTES)
        payloads = np.frombuffer(report.payload, dtype=np.uint8).reshape(1, -1)
        self.add_all(Reports(self.survey, ids, payloads, None if report.token is None else (report.token,)))
        return next((name for name, count in self.rejected.items() if count > before[name]), None)

    def add_all(self, reports: Reports) -> None:
        """Count many reports of this survey; others are rejected.

        Privacy: only the reports are read.
        """
        reason = mismatch(reports.survey, self.survey)
        if reason is not None:
            self._reject(Counter({reason: len(reports)}))
            return
        for start in range(0, len(reports), _BATCH):
            part = slice(start, start + _BATCH)
            tokens = None if reports.tokens is None else reports.tokens[part]
            self._add_batch(reports.ids[part], reports.payloads[part], tokens)

    def add_file(self, path: str | Path) -> None:
        """Count the reports of a file, in pieces.

        Privacy: only the reports are read.
        """
        for piece in read_pieces(path, self.survey):
            self._reject(piece.rejected)
            self.add_all(piece.reports)

    def merge(self, other: "Collector") -> None:
        """Add another shard's counters to this one's; where ids are remembered no report may be in both."""
        if mismatch(other.survey, self.survey) is not None:
            raise InvalidParameter("only collectors of the same survey and epoch can be merged")
        if (self._store is None) != (other._store is None):
            raise InvalidParameter("a collector that stores ids cannot be merged with one that does not")
        with self._one_change():
            if self._store is not None and other._store is not None:
                if self._store.shares_with(other._store):
                    raise InvalidParameter(
                        "these shards have counted the same report\nhint: send each report to one shard, e.g. by its id"
                    )
                self._store.take_over(other._store)
            self._take(other.used, other.rejected, other._tally)
            self._sample = self._sample.merged(other._sample)

    def estimate(self, confidence: Number = 0.95) -> Estimate:
        """Return estimates about the senders' true answers, with intervals that cover at this confidence."""
        survey, protocol = self.survey, self.survey.protocol
        basis = Basis(survey.loss, self.used, dict(self.rejected), float(confidence_meaning(confidence)))
        if isinstance(protocol, MeanResponse):
            if not isinstance(survey.question, Range):
                raise TypeError("a mean needs a range of numbers")
            return estimate_mean(survey.question, protocol, self._tally, basis)
        if isinstance(protocol, PrefixHashing):
            if not isinstance(survey.question, Text):
                raise TypeError("prefix reports need a question about strings")
            return find_strings(survey.question, protocol, self._tally, basis)
        if isinstance(protocol, Attributes):
            return self._estimate_attributes(protocol, basis)
        supports = protocol.supports(self._tally)
        counting = Counting(protocol.keep, protocol.stray, self.used, self.used)
        values = survey.question.values  # type: ignore[union-attr]
        inspect = partial(find_patterns, protocol, self._sample.payloads)
        return estimate_counts(values, supports, counting, basis, inspect)

    def state(self) -> str:
        """Return the counters as text, to be sent to where shards are merged; ids are not part of it."""
        if isinstance(self.survey.protocol, PrefixHashing):
            raise InvalidParameter(
                "reports of strings are kept whole, without counters to write\nhint: merge their files"
            )
        return json.dumps(
            {
                "header": self.survey.header(),
                "used": self.used,
                "rejected": self.rejected,
                "tally": [int(count) for count in self._tally.tolist()],
            }
        )

    def close(self) -> None:
        """Close the store, if there is one."""
        if self._store is not None:
            self._store.close()

    def _add_batch(self, ids: NDArray[np.uint8], payloads: NDArray[np.uint8], tokens: tuple[str, ...] | None) -> None:
        rejected: Counter[str] = Counter()
        good = self.survey.protocol.valid(payloads)
        rejected[OUT_OF_RANGE] = int(np.count_nonzero(~good))
        if self._store is None:
            self._count(payloads if good.all() else payloads[good], rejected)
            return
        with self._one_change():
            indices = np.flatnonzero(good)
            if self.deduplicate:
                fresh = self._store.first_seen(ids[indices])
                rejected[DUPLICATE] = int(np.count_nonzero(~fresh))
                indices = indices[fresh]
            if self.cap is not None and tokens is not None:
                fitting = self._store.within_cap([tokens[index] for index in indices], self.cap)
                rejected[OVER_CAP] = int(np.count_nonzero(~fitting))
                indices = indices[fitting]
            self._count(payloads[indices], rejected)

    @contextmanager
    def _one_change(self) -> Iterator[None]:
        """Change the counters and the store together, or leave both; a shared store is read again first."""
        before = self.used, self.rejected.copy(), self._tally, self._sample
        if self._store is not None:
            self._store.begin()
        try:
            if self._store is not None and self._store.has_changed():
                self._resume()
            yield
            self._keep()
            if self._store is not None:
                self._store.commit()
        except BaseException:
            self.used, self.rejected, self._tally, self._sample = before
            if self._store is not None:
                self._store.rollback()
            raise

    def _count(self, payloads: NDArray[np.uint8], rejected: Counter[str]) -> None:
        tally = self.survey.protocol.tally(payloads)
        self._take(len(payloads), rejected, tally)
        if leaves_patterns(self.survey.protocol):
            self._sample = self._sample.with_more(payloads)

    def _reject(self, rejected: Counter[str]) -> None:
        if rejected:
            with self._one_change():
                self.rejected.update(rejected)

    def _take(self, used: int, rejected: Counter[str], tally: NDArray[Any]) -> None:
        self._tally = self.survey.protocol.merge(self._tally, tally)
        self.used += used
        self.rejected.update(rejected)

    def _keep(self) -> None:
        """Write the counters beside the ids, in the transaction that is open."""
        if self._store is not None and not isinstance(self.survey.protocol, PrefixHashing):
            self._store.save("counters", self.state())

    def _resume(self) -> None:
        kept = None if self._store is None else self._store.load("counters")
        if kept is None:
            return
        found = _read_state(kept)
        if mismatch(found.survey, self.survey) is not None:
            raise InvalidParameter("this store belongs to another survey or epoch\nhint: give each its own file")
        self.used, self.rejected, self._tally = found.used, found.rejected, found._tally

    def _estimate_attributes(self, protocol: Attributes, basis: Basis) -> AttributesEstimate:
        question = self.survey.question
        if not isinstance(question, Record):
            raise TypeError("attribute reports need a question with several attributes")
        found = {}
        for index, (reports, supports) in enumerate(protocol.split_tally(self._tally)):
            part = protocol.parts[index]
            counting = Counting(part.keep, part.stray, reports, self.used)
            found[question.names[index]] = estimate_counts(question.parts[index].values, supports, counting, basis)
        return AttributesEstimate(found, basis)


def merge_states(states: Iterable[str]) -> Collector:
    """Return a collector with the counters of several shards, from the text that `state` gave."""
    found: Collector | None = None
    for text in states:
        shard = _read_state(text)
        if found is None:
            found = shard
        else:
            found.merge(shard)
    if found is None:
        raise InvalidParameter("merge_states needs at least one state")
    return found


def _read_state(text: str) -> Collector:
    try:
        state = read_json(text)
        shard = Collector(survey_of(state["header"]))
        rejected = {str(reason): whole(count, name="count", least=0) for reason, count in state["rejected"].items()}
        used = whole(state["used"], name="used", least=0)
        tally = np.array([_counter(count) for count in state["tally"]], dtype=shard._tally.dtype)
        fits = set(rejected) <= set(REASONS) and tally.shape == shard._tally.shape
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        fits = False
    if not fits:
        raise InvalidParameter("this text is not a collector's state, or it is damaged\nhint: ask for it again")
    shard._take(used, Counter(rejected), tally)
    return shard


def _counter(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("a counter must be a whole number")
    return value


def collect_file(path: str | Path, *, deduplicate: bool = True) -> Collector:
    """Return a collector of the reports in one file, of the survey its header describes."""
    collector = Collector(read_survey(path), deduplicate=deduplicate)
    collector.add_file(path)
    return collector
