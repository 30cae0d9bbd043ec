"""The client that reports over time: it remembers its permanent answers, so that repeated reports cannot be averaged.

The memo is this person's own and is written before the report leaves: a client that forgets would draw anew, and each
new draw costs epsilon again. After as many different values as allowed it goes on reporting the last one's answer, so
that its loss never grows beyond what was stated and nobody sees the change.
"""

import json
import os
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
from tacit.privacy.number import whole


class LongitudinalClient:
    """One person's side of a longitudinal survey; `memo` is a file that only this person's device has.

    Privacy: all reports it will ever make are together epsilon·values_most-DP for all the values behind them, and one
    report is epsilon_first-DP. The memo holds permanent answers by value, so it is as private as the value itself.
    """

    def __init__(self, survey: Survey, *, memo: str | Path | None = None, values_most: int = 1) -> None:
        if not isinstance(survey.protocol, Permanent) or not isinstance(survey.question, Labels):
            raise InvalidParameter("survey must be longitudinal\nhint: make_survey(domain, epsilon=2, epsilon_first=1)")
        self.survey = survey
        self.values_most = whole(values_most, name="values_most")
        self._protocol, self._labels = survey.protocol, survey.question
        self._path = None if memo is None else Path(memo)
        self._answers: dict[int, Words] = {}
        if self._path is not None and self._path.exists():
            self._answers = self._load(self._path)

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
        if code not in self._answers:
            if len(self._answers) >= self.values_most:
                return next(reversed(self._answers.values()))
            self._answers[code] = self._protocol.draw_permanent(np.array([code]), Keystream())
            try:
                self._save()
            except OSError:
                del self._answers[code]
                raise InvalidParameter(
                    "the memo cannot be written, so nothing is reported\nhint: check its path"
                ) from None
        return self._answers[code]

    def _save(self) -> None:
        """Write the memo so that it is there, whole, before any report made from it."""
        if self._path is None:
            return
        said = {
            "survey": self.survey.tag,
            "answers": [[code, answer.astype("<u8").tobytes().hex()] for code, answer in self._answers.items()],
        }
        beside = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(said))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    def _load(self, path: Path) -> dict[int, Words]:
        """Return the answers of a memo; a damaged one is refused, since drawing anew would cost again."""
        try:
            said = json.loads(path.read_text())
            if said["survey"] != self.survey.tag:
                raise InvalidParameter("this memo belongs to another survey\nhint: give each survey a memo of its own")
            answers = {}
            for code, text in said["answers"]:
                words = np.frombuffer(bytes.fromhex(text), dtype="<u8").astype(np.uint64)
                answers[int(code)] = words.reshape(1, width_of(self._labels.size))
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidParameter(
                "the memo is damaged, and drawing anew would cost its owner epsilon again"
                "\nhint: restore it, or delete it to accept that loss"
            ) from None
        return answers
