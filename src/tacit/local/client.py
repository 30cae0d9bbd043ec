"""The client's side of a survey: one person's answer goes in, one perturbed report comes out, before anything is sent.

`Randomizer` makes independent reports. `LongitudinalClient` reports over time, with a memo of permanent answers, so
that repeated reports cannot be averaged. The memo belongs to one person and is written before the report leaves: a
client that forgets would draw a new permanent answer, which costs epsilon again. After `values_most` different values
it keeps reporting the last answer, so the loss stays within the stated one and the change is not visible. Clients that
share a memo use it one at a time.
"""

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.domain import Labels
from tacit.local.protocols.protocol import Payloads
from tacit.local.protocols.unary import Permanent, width_of
from tacit.local.survey import VERSION, Survey, make_survey
from tacit.noise import Keystream, fresh_bytes
from tacit.numbers import Words, read_json, whole
from tacit.privacy import PureLoss
from tacit.system import PLAIN, lock_file, sync_folder

# ---- reports ---------------------------------------------------------------------------------------------------------


ID_BYTES = 16


@dataclass(frozen=True)
class Report:
    """A person's report, ready to send: everything in it about the answer is already perturbed.

    `survey` and `epoch` name the collection; `token` names the sender, if the survey uses tokens.
    """

    survey: str
    epoch: str
    id: bytes
    payload: bytes
    token: str | None = None
    version: int = VERSION


@dataclass(frozen=True)
class Reports:
    """Many reports of one survey: ids and payloads as rows of bytes, with tokens if there are any."""

    survey: Survey
    ids: NDArray[np.uint8]
    payloads: Payloads
    tokens: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shapes = (len(self.payloads), ID_BYTES), (len(self.ids), self.survey.protocol.payload_bytes)
        if (self.ids.shape, self.payloads.shape) != shapes:
            raise InvalidParameter(
                f"ids must have shape (n, {ID_BYTES}) and payloads shape (n, {self.survey.protocol.payload_bytes}), "
                "with the same n"
            )
        if self.tokens is not None and len(self.tokens) != len(self.ids):
            raise InvalidParameter("tokens must have one entry for each report")

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Report:
        token = None if self.tokens is None else self.tokens[index]
        return Report(
            self.survey.tag, self.survey.epoch, self.ids[index].tobytes(), self.payloads[index].tobytes(), token
        )

    def __iter__(self) -> Iterator[Report]:
        return (self[index] for index in range(len(self)))


# ---- the client of one survey ----------------------------------------------------------------------------------------


TOKEN_MAX = 128


class Randomizer:
    """Turns answers into reports of one survey; takes a survey, or the words of `make_survey`.

    Privacy: each report is epsilon-DP for the answer behind it, against everyone, including the collector; its length
    and form are the same for every answer. Two reports on the same answer cost twice (docs/proofs/local.md).

    >>> asking = Randomizer(["yes", "no"], epsilon=1)
    >>> len(asking.report("yes").payload), print(asking.loss)
    ε = 1
    (1, None)
    """

    def __init__(self, domain: Any = None, **words: Any) -> None:
        self.survey: Survey = domain if isinstance(domain, Survey) and not words else make_survey(domain, **words)
        if isinstance(self.survey.protocol, Permanent):
            raise InvalidParameter(
                "longitudinal reports need a client that remembers its permanent answer"
                "\nhint: use LongitudinalClient(survey, memo=path)"
            )

    @property
    def loss(self) -> PureLoss:
        """The loss that one report costs its sender."""
        return self.survey.loss

    def report(self, value: Any, *, token: str | None = None) -> Report:
        """Return a report of one answer, with its sender's token if the survey uses tokens.

        Privacy: epsilon-DP for the answer. An answer outside the domain is refused here, before it is sent.
        """
        self.survey.question.read_one(value)
        payload = self.survey.draw_payloads([value], Keystream())
        tokens = self._tokens(None if token is None else [token], 1)
        return Report(
            self.survey.tag,
            self.survey.epoch,
            fresh_bytes(ID_BYTES),
            payload.tobytes(),
            None if tokens is None else tokens[0],
        )

    def reports(self, values: Any, *, tokens: Sequence[str] | None = None) -> Reports:
        """Return a report of each answer, from a key used only for this call.

        Privacy: epsilon-DP for each answer.
        """
        payloads = self.survey.draw_payloads(values, Keystream())
        return label_reports(self.survey, payloads, self._tokens(tokens, len(payloads)))

    def _tokens(self, tokens: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
        if (tokens is not None) != self.survey.tokens:
            rule = (
                "needs a token that names its sender"
                if self.survey.tokens
                else "must carry no token, so that it cannot be linked"
            )
            raise InvalidParameter(f"the reports of this survey {rule}\nhint: see make_survey(tokens=...)")
        if tokens is None:
            return None
        listed = tuple(tokens)
        if len(listed) != count or not all(is_token(token) for token in listed):
            raise InvalidParameter(f"tokens must be one short text for each value, of 1 to {TOKEN_MAX} characters")
        return listed

    def __repr__(self) -> str:
        return f"Randomizer({self.survey.protocol.name}, {self.loss})"


def label_reports(survey: Survey, payloads: Payloads, tokens: tuple[str, ...] | None = None) -> Reports:
    """Return payloads as reports, each with a random id of 128 bits that is independent of its content."""
    ids = Keystream().words(2 * len(payloads)).view(np.uint8).reshape(len(payloads), ID_BYTES)
    return Reports(survey, ids, payloads, tokens)


def is_token(token: object) -> bool:
    """Whether this may stand for a person: a short printable text."""
    return isinstance(token, str) and 1 <= len(token) <= TOKEN_MAX and token.isprintable()


# ---- the client that reports over time -------------------------------------------------------------------------------


MEMO_BYTES_MAX = 1 << 28

Answers = dict[int, Words]


class LongitudinalClient:
    """A person's side of a longitudinal survey; `memo` is a file that only this person's device has.

    Privacy: all reports that will ever be made with one memo are together epsilon·values_most-DP for all the values
    behind them, and one report is epsilon_first-DP. The memo holds permanent answers by value, so it is as private as
    the value itself. Without a memo that holds only for this client, in the process that made it.
    """

    def __init__(self, survey: Survey, *, memo: str | Path | None = None, values_most: int = 1) -> None:
        if not isinstance(survey.protocol, Permanent) or not isinstance(survey.question, Labels):
            raise InvalidParameter("survey must be longitudinal\nhint: make_survey(domain, epsilon=2, epsilon_first=1)")
        self.survey = survey
        self.values_most: int = whole(values_most, name="values_most")
        self._protocol, self._labels = survey.protocol, survey.question
        # a link is followed once, now: replaced later, it would leave two memos
        self._path = None if memo is None else Path(os.path.realpath(memo))
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._answers: Answers = self._load() or {}

    @property
    def loss(self) -> PureLoss:
        """The most that all reports together may ever cost this person."""
        return PureLoss(self.survey.epsilon * self.values_most)

    @property
    def loss_so_far(self) -> PureLoss:
        """The loss of all reports on the values reported so far, past and future."""
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
        """Return a value's permanent answer: the stored one, a new one stored first, or at the limit the last one."""
        with self._alone():
            # another process may have changed the memo: read it. A deleted memo is rewritten: a new draw costs again
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
        """Hold off other threads, and other processes that use this memo, until the block ends."""
        with self._turn:
            if self._path is None:
                if self._process != os.getpid():
                    raise InvalidParameter(
                        "this client was made in another process, which may have drawn another permanent answer"
                        "\nhint: give it a memo, which processes can share"
                    )
                yield
                return
            try:
                beside = self._path.with_name(self._path.name + ".lock")
                lock = os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT | PLAIN, 0o600))
            except OSError:
                raise _unwritten() from None
            with lock:
                try:
                    lock_file(lock.fileno())
                except OSError:  # a file system without locks
                    raise _unwritten() from None
                yield

    def _save(self, answers: Answers) -> None:
        """Write the memo so that it is there, whole, before any report made from it."""
        if self._path is None:
            return
        memo = {
            "survey": self.survey.tag,
            "values_most": self.values_most,
            "answers": [[code, answer.astype("<u8").tobytes().hex()] for code, answer in answers.items()],
        }
        try:
            descriptor, beside = tempfile.mkstemp(prefix=self._path.name + ".", dir=self._path.parent)
            try:
                with os.fdopen(descriptor, "w") as file:
                    file.write(json.dumps(memo))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, self._path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside)
                raise
            sync_folder(self._path.parent)
        except OSError:
            raise _unwritten() from None

    def _load(self) -> Answers | None:
        """Return the answers in the memo, or None if the memo is missing; a damaged memo is refused, never replaced."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                names = os.fstat(file.fileno()).st_nlink
                memo = read_json(file.read(MEMO_BYTES_MAX))
            tag, most, listed = str(memo["survey"]), memo.get("values_most", self.values_most), list(memo["answers"])
            answers = {whole(code, name="code", least=0): self._words(text) for code, text in listed}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InvalidParameter):
            raise InvalidParameter(
                "the memo is damaged, and a new permanent answer would cost its owner epsilon again"
                "\nhint: restore it, or delete it to accept that loss"
            ) from None
        if tag != self.survey.tag:
            raise InvalidParameter("this memo belongs to another survey\nhint: give every survey a separate memo")
        if most != self.values_most or len(answers) > self.values_most:
            raise InvalidParameter(
                f"this memo was made with another values_most\nhint: give values_most={most}, as agreed with its owner"
            )
        if names > 1:
            raise InvalidParameter(
                "this memo is a file with two names, and each name would become its own memo\nhint: keep one name"
            )
        return answers

    def _words(self, text: str) -> Words:
        words: Words = np.frombuffer(bytes.fromhex(text), dtype="<u8").astype(np.uint64)
        return words.reshape(1, width_of(self._labels.size))


def _unwritten() -> InvalidParameter:
    return InvalidParameter("the memo cannot be written, so no report is made\nhint: check its path")
