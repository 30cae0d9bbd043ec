"""The client: one person's answer in, one report out, perturbed where the person is and before anything is sent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.local.permanent import Permanent
from tacit.local.protocol import Payloads
from tacit.local.report import ID_BYTES, Report, Reports
from tacit.local.survey import Survey, make_survey
from tacit.noise.bits import Keystream, fresh_bytes
from tacit.privacy.loss import PureLoss

TOKEN_MAX = 128


class Randomizer:
    """Turns answers into reports of one survey; takes a survey, or the words of `make_survey`.

    Privacy: each report is epsilon-DP for the answer behind it, against everyone, whoever collects it; its length and
    form are the same for every answer. Two reports on the same answer cost twice (docs/proofs/local.md).

    >>> asking = Randomizer(["yes", "no"], epsilon=1)
    >>> len(asking.report("yes").payload), print(asking.loss)
    ε = 1
    (1, None)
    """

    def __init__(self, domain: Any = None, **words: Any) -> None:
        self.survey = domain if isinstance(domain, Survey) and not words else make_survey(domain, **words)
        if isinstance(self.survey.protocol, Permanent):
            raise InvalidParameter(
                "longitudinal reports need a client that remembers its permanent answer"
                "\nhint: use LongitudinalClient(survey, memo=path)"
            )

    @property
    def loss(self) -> PureLoss:
        """What one report costs the person who sends it."""
        return self.survey.loss

    def report(self, value: Any, *, token: str | None = None) -> Report:
        """Return a report of one answer, with a token of whose it is where the survey uses tokens.

        Privacy: epsilon-DP for the answer. One outside the domain is refused here, before anything is sent.
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
        """Return a report of each answer, from a key used for this call alone.

        Privacy: epsilon-DP for each answer.
        """
        payloads = self.survey.draw_payloads(values, Keystream())
        return label_reports(self.survey, payloads, self._tokens(tokens, len(payloads)))

    def _tokens(self, tokens: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
        if (tokens is not None) != self.survey.tokens:
            rule = (
                "needs a token of whose it is" if self.survey.tokens else "carries no token, so that it is unlinkable"
            )
            raise InvalidParameter(f"each report of this survey {rule}\nhint: see make_survey(tokens=...)")
        if tokens is None:
            return None
        listed = tuple(tokens)
        if len(listed) != count or not all(is_token(token) for token in listed):
            raise InvalidParameter(f"tokens must be a short text for each value, of 1 to {TOKEN_MAX} characters")
        return listed

    def __repr__(self) -> str:
        return f"Randomizer({self.survey.protocol.name}, {self.loss})"


def label_reports(survey: Survey, payloads: Payloads, tokens: tuple[str, ...] | None = None) -> Reports:
    """Return payloads as reports, each with a random id of 128 bits that says nothing about it."""
    ids = Keystream().words(2 * len(payloads)).view(np.uint8).reshape(len(payloads), ID_BYTES)
    return Reports(survey, ids, payloads, tokens)


def is_token(token: object) -> bool:
    """Whether this may stand for a person: a short printable text."""
    return isinstance(token, str) and 1 <= len(token) <= TOKEN_MAX and token.isprintable()
