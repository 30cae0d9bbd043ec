"""The client that reports over time: it remembers its permanent answers, so that repeated reports cannot be averaged.

The memo is this person's own and is written before the report leaves: a client that forgets would draw anew, and each
new draw costs epsilon again. After as many different values as allowed it goes on reporting the last one's answer, so
that its loss never grows beyond what was stated and nobody sees the change. Clients that share a memo, in threads or
processes, take turns at it: the first to report a value draws its permanent answer, and the others use that one.
"""

import fcntl
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.local.permanent import Permanent
from tacit.local.questions import Labels
from tacit.local.randomizer import label_reports
from tacit.local.report import Report, Reports
from tacit.local.survey import Survey
from tacit.local.unary import width_of
from tacit.noise.bits import Keystream, Words
from tacit.privacy.loss import PureLoss
from tacit.privacy.number import read_json, whole

MEMO_BYTES_MAX = 1 << 28

Answers = dict[int, Words]


class LongitudinalClient:
    """One person's side of a longitudinal survey; `memo` is a file that only this person's device has.

    Privacy: all reports that will ever be made with one memo are together epsilon·values_most-DP for all the values
    behind them, and one report is epsilon_first-DP. The memo holds permanent answers by value, so it is as private as
    the value itself. Without a memo that is true of this client alone, in the process that made it.
    """

    def __init__(self, survey: Survey, *, memo: str | Path | None = None, values_most: int = 1) -> None:
        if not isinstance(survey.protocol, Permanent) or not isinstance(survey.question, Labels):
            raise InvalidParameter("survey must be longitudinal\nhint: make_survey(domain, epsilon=2, epsilon_first=1)")
        self.survey = survey
        self.values_most = whole(values_most, name="values_most")
        self._protocol, self._labels = survey.protocol, survey.question
        # a link is followed once, now: replaced later, it would leave two memos
        self._path = None if memo is None else Path(os.path.realpath(memo))
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._answers: Answers = self._load() or {}

    @property
    def loss(self) -> PureLoss:
        """What all reports together may ever cost this person."""
        return PureLoss(self.survey.epsilon * self.values_most)

    @property
    def loss_so_far(self) -> PureLoss:
        """What reports on the values so far cost, however many there were and will be."""
        return PureLoss(self.survey.epsilon * len(self._answers) if self._answers else Fraction(0))

    def report(self, value: Any, *, token: str | None = None) -> Report:
        """Return a report of the value as it is now.

        Privacy: within `loss`, with every other report of this client.
        """
        tokens = None if token is None else (token,)
        return self.reports(value, 1, tokens=tokens)[0]

    def reports(self, value: Any, times: int, *, tokens: tuple[str, ...] | None = None) -> Reports:
        """Return several reports of one value.

        Privacy: within `loss`, however many they are.
        """
        permanent = self._permanent(self._labels.read_one(value))
        rows = np.repeat(permanent, whole(times, name="times"), axis=0)
        return label_reports(self.survey, self._protocol.draw_instant(rows, Keystream()), tokens)

    def _permanent(self, code: int) -> Words:
        """Return the permanent answer of a value: the one kept, a new one kept first, or at the limit the last."""
        with self._alone():
            # what the memo says now counts; one that was deleted is written again, since drawing anew would cost again
            kept = self._load()
            answers = dict(self._answers if kept is None else kept)
            if code not in answers and len(answers) < self.values_most:
                answers[code] = self._protocol.draw_permanent(np.array([code]), Keystream())
            if kept is None or len(answers) > len(kept):
                self._save(answers)
            self._answers = answers
            return answers[code] if code in answers else next(reversed(answers.values()))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads, and other processes that use this memo, from answering meanwhile."""
        with self._turn:
            if self._path is None:
                if self._process != os.getpid():
                    raise InvalidParameter(
                        "this client was made in another process, where it may have answered otherwise"
                        "\nhint: give it a memo, which processes can share"
                    )
                yield
                return
            try:
                beside = self._path.with_name(self._path.name + ".lock")
                lock = os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            except OSError:
                raise _unwritten() from None
            with lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                except OSError:  # a file system without locks
                    raise _unwritten() from None
                yield

    def _save(self, answers: Answers) -> None:
        """Write the memo so that it is there, whole, before any report made from it."""
        if self._path is None:
            return
        said = {
            "survey": self.survey.tag,
            "values_most": self.values_most,
            "answers": [[code, answer.astype("<u8").tobytes().hex()] for code, answer in answers.items()],
        }
        try:
            descriptor, beside = tempfile.mkstemp(prefix=self._path.name + ".", dir=self._path.parent)
            try:
                with os.fdopen(descriptor, "w") as file:
                    file.write(json.dumps(said))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, self._path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside)
                raise
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError:
            raise _unwritten() from None

    def _load(self) -> Answers | None:
        """Return the answers of the memo, None where there is none; a damaged one is refused, never drawn anew."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                names = os.fstat(file.fileno()).st_nlink
                said = read_json(file.read(MEMO_BYTES_MAX))
            tag, most, listed = str(said["survey"]), said.get("values_most", self.values_most), list(said["answers"])
            answers = {whole(code, name="code", least=0): self._words(text) for code, text in listed}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidParameter):
            raise InvalidParameter(
                "the memo is damaged, and drawing anew would cost its owner epsilon again"
                "\nhint: restore it, or delete it to accept that loss"
            ) from None
        if tag != self.survey.tag:
            raise InvalidParameter("this memo belongs to another survey\nhint: give each survey a memo of its own")
        if most != self.values_most or len(answers) > self.values_most:
            raise InvalidParameter(
                f"this memo is kept for another values_most\nhint: give values_most={most}, as its owner was told"
            )
        if names > 1:
            raise InvalidParameter(
                "this memo is a file of two names, which would become two memos\nhint: keep one of its names"
            )
        return answers

    def _words(self, text: str) -> Words:
        words: Words = np.frombuffer(bytes.fromhex(text), dtype="<u8").astype(np.uint64)
        return words.reshape(1, width_of(self._labels.size))


def _unwritten() -> InvalidParameter:
    return InvalidParameter("the memo cannot be written, so nothing is reported\nhint: check its path")
