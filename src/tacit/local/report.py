"""A report, and many at once: a random id and a payload of fixed length, with what survey and epoch they belong to."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.protocol import Payloads
from tacit.local.survey import VERSION, Survey

ID_BYTES = 16


@dataclass(frozen=True)
class Report:
    """One person's report, ready to send: it says nothing that its sender has not perturbed.

    `survey` and `epoch` say what it belongs to; `token`, where the survey uses them, whose it is.
    """

    survey: str
    epoch: str
    id: bytes
    payload: bytes
    token: str | None = None
    version: int = VERSION


@dataclass(frozen=True)
class Reports:
    """Many reports of one survey: ids and payloads as rows of bytes, tokens where there are any."""

    survey: Survey
    ids: NDArray[np.uint8]
    payloads: Payloads
    tokens: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shapes = (len(self.payloads), ID_BYTES), (len(self.ids), self.survey.protocol.payload_bytes)
        if (self.ids.shape, self.payloads.shape) != shapes:
            raise InvalidParameter(
                "ids and payloads must be rows of bytes, as many of each and as long as they should be"
            )
        if self.tokens is not None and len(self.tokens) != len(self.ids):
            raise InvalidParameter("there must be as many tokens as reports")

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: int) -> Report:
        token = None if self.tokens is None else self.tokens[place]
        return Report(
            self.survey.tag, self.survey.epoch, self.ids[place].tobytes(), self.payloads[place].tobytes(), token
        )

    def __iter__(self) -> Iterator[Report]:
        return (self[place] for place in range(len(self)))
