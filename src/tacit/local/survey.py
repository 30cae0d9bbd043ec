"""A survey: the public terms that everyone shares before the first report, and their one-line header.

A header gives the same survey again; one with parameters that do not follow from its epsilon is refused.

Several attributes of one person in one report: split the loss, or sample one of them.

- split: every attribute, each at epsilon divided by the number of attributes;
- sample: one attribute, uniformly chosen and named in the report, at epsilon.

A person who changes all answers changes the sampled one too, so sampling allows no larger epsilon
(docs/proofs/local.md).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.choosing import AUTO, FrequencyProtocol, choose, frequency_protocol, known_protocol
from tacit.local.domain import Labels, Range, Record, Text, read_attributes, read_labels, read_range, read_text
from tacit.local.protocols.hashing import PrefixHashing
from tacit.local.protocols.means import GRID_BITS, MeanResponse
from tacit.local.protocols.protocol import EPSILON_MOST, Payloads, as_payloads, code_type, reveals
from tacit.local.protocols.unary import Permanent
from tacit.noise import Bits, draw_below
from tacit.numbers import Flags, Integers, Number, decimal_meaning, from_text, positive
from tacit.privacy import PureChoice, PureLoss

Method = Literal["split", "sample"]
METHODS: tuple[Method, ...] = ("split", "sample")


@dataclass(frozen=True)
class Attributes:
    """A single report for all attributes; `parts` has a protocol for each, already at its own epsilon.

    Privacy: epsilon-DP for all of a person's attributes at once, even if all of them change.
    """

    epsilon: Fraction
    method: Method
    parts: tuple[FrequencyProtocol, ...]

    name = "attributes"

    @cached_property
    def _which_type(self) -> np.dtype[Any]:
        return code_type(len(self.parts))

    @cached_property
    def _longest(self) -> int:
        return max(part.payload_bytes for part in self.parts)

    @property
    def payload_bytes(self) -> int:
        """All parts, or which one and the longest of them."""
        if self.method == "sample":
            return self._which_type.itemsize + self._longest
        return sum(part.payload_bytes for part in self.parts)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each row of codes.

        Privacy: epsilon-DP for each row, exactly. Which attribute is sampled does not depend on the row.
        """
        if self.method == "split":
            return np.hstack([part.draw(codes[:, index], bits) for index, part in enumerate(self.parts)])
        which = draw_below(len(self.parts), len(codes), bits)
        payloads = np.zeros((len(codes), self.payload_bytes), dtype=np.uint8)
        head = self._which_type.itemsize
        payloads[:, :head] = as_payloads(which.astype(self._which_type))
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(which == index)
            payloads[rows, head : head + part.payload_bytes] = part.draw(codes[rows, index], bits)
        return payloads

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads every part could have made."""
        if self.method != "sample":
            found = np.ones(len(payloads), dtype=np.bool_)
            for part, columns in self._columns():
                found &= part.valid(payloads[:, columns])
            return found
        which = self._which(payloads)
        found = np.zeros(len(payloads), dtype=np.bool_)
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(which == index)
            own, rest = self._split_sampled(payloads[rows], part)
            found[rows] = part.valid(own) & ~rest.any(axis=1)
        return found

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports hold each attribute, then the counters of every part, end to end."""
        if self.method != "sample":
            parts = [part.tally(payloads[:, columns]) for part, columns in self._columns()]
            return np.concatenate([np.full(len(self.parts), len(payloads)), *parts])
        which = self._which(payloads)
        parts = [
            part.tally(self._split_sampled(payloads[which == index], part)[0]) for index, part in enumerate(self.parts)
        ]
        return np.concatenate([np.bincount(which, minlength=len(self.parts)), *parts])

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def split_tally(self, tally: NDArray[Any]) -> list[tuple[int, Integers]]:
        """Return, for each attribute, how many reports hold it and how many support each code."""
        found = []
        start = len(self.parts)
        for index, part in enumerate(self.parts):
            length = len(part.tally(np.empty((0, part.payload_bytes), dtype=np.uint8)))
            found.append((int(tally[index]), part.supports(tally[start : start + length])))
            start += length
        return found

    def parameters(self) -> dict[str, str | int]:
        return {"method": self.method, "parts": ",".join(part.name for part in self.parts)}

    def _columns(self) -> list[tuple[FrequencyProtocol, slice]]:
        found = []
        start = 0
        for part in self.parts:
            found.append((part, slice(start, start + part.payload_bytes)))
            start += part.payload_bytes
        return found

    def _which(self, payloads: Payloads) -> Integers:
        head = np.ascontiguousarray(payloads[:, : self._which_type.itemsize])
        return head.view(self._which_type).reshape(len(payloads)).astype(np.int64)

    def _split_sampled(self, payloads: Payloads, part: FrequencyProtocol) -> tuple[Payloads, Payloads]:
        """Return the part's own bytes, and the bytes after them, which must be zeros."""
        head = self._which_type.itemsize
        return payloads[:, head : head + part.payload_bytes], payloads[:, head + part.payload_bytes :]


FORMAT = "tacit local reports"
VERSION = 1
EPOCH_MAX = 64

Question = Labels | Range | Record | Text
LocalProtocol = FrequencyProtocol | MeanResponse | Attributes | PrefixHashing


@dataclass(frozen=True)
class Survey:
    """The public terms of a collection of reports; make one with `make_survey`."""

    question: Question
    protocol: LocalProtocol
    epoch: str = ""
    tokens: bool = False

    @property
    def epsilon(self) -> Fraction:
        """The cost of one report; for longitudinal reports, all reports on one value."""
        return self.protocol.epsilon

    @property
    def loss(self) -> PureLoss:
        """The loss that one report costs its sender."""
        return PureLoss(self.epsilon)

    @property
    def event(self) -> PureChoice:
        """The event that records one report."""
        return PureChoice(self.epsilon)

    def draw_payloads(self, values: Any, bits: Bits) -> Payloads:
        """Return a payload for each answer; an answer outside the question is refused before any draw.

        Privacy: epsilon-DP for each answer.
        """
        drawing: Any = self.protocol  # its codes are those that the question reads
        drawn: Payloads = drawing.draw(self.question.read(values, bits), bits)
        return drawn

    @property
    def linkable(self) -> bool:
        """Whether two reports of one person can be linked: by a token, or by a permanent answer."""
        return self.tokens or isinstance(self.protocol, Permanent)

    def in_epoch(self, epoch: str) -> "Survey":
        """Return the same survey in another epoch."""
        return replace(self, epoch=_epoch(epoch))

    def header(self) -> dict[str, Any]:
        """Return the header: the first line of a file of reports."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self.protocol.name,
            "epsilon": str(self.epsilon),
            "question": self.question.header_fields(),
            "parameters": self.protocol.parameters(),
            "tokens": self.tokens,
            "epoch": self.epoch,
        }

    @cached_property
    def tag(self) -> str:
        """Sixteen digits that distinguish this survey from others, at every epoch; every report carries them."""
        fields = {name: value for name, value in self.header().items() if name != "epoch"}
        return hashlib.sha256(json.dumps(fields, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def make_survey(
    domain: Any = None,
    *,
    epsilon: Number,
    protocol: str = AUTO,
    between: Any = None,
    attributes: Mapping[str, Any] | None = None,
    method: str = "sample",
    alphabet: str | None = None,
    length: int | None = None,
    step: int = 1,
    epsilon_first: Number | None = None,
    epoch: str = "",
    tokens: bool = False,
) -> Survey:
    """Return a survey of one question: a `domain` of answers, a number `between` two ends, several `attributes`
    (answered by `method`: split or sample), or strings of an `alphabet` up to a `length`.

    `protocol` is a name from `choose`'s table, or auto for the one that errs least; with `epsilon_first` the survey is
    longitudinal: epsilon is the cost of all reports on one value and epsilon_first that of one report.

    >>> make_survey(["yes", "no"], epsilon=1).protocol.name
    'response'
    """
    exact = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if exact > EPSILON_MOST:  # for every protocol: powers of it would fill the memory
        raise reveals(exact)
    given = [name for name, value in _questions(domain, between, attributes, alphabet).items() if value is not None]
    if len(given) != 1:
        raise InvalidParameter(
            f"a survey asks one question, not {len(given)}\nhint: give one of domain, between, attributes and alphabet"
        )
    question: Question
    built: LocalProtocol
    if given == ["between"]:
        question = read_range(between, GRID_BITS)
        known_protocol(MeanResponse.name if protocol == AUTO else protocol, MeanResponse.name)
        built = MeanResponse(exact)
    elif given == ["attributes"]:
        question = read_attributes(attributes)
        built = _attributes(question, method, protocol, exact)
    elif given == ["alphabet"]:
        if protocol not in (AUTO, PrefixHashing.name):
            raise InvalidParameter("strings of an alphabet are collected by prefix\nhint: leave protocol out")
        question = read_text(alphabet, length, step)
        built = PrefixHashing(exact, question.length, len(question.alphabet), question.step)
    else:
        question = read_labels(domain)
        built = _frequency(question, protocol, exact, epsilon_first)
    return Survey(question, built, _epoch(epoch), bool(tokens))


def survey_of(header: object) -> Survey:
    """Return the survey that a header describes, or refuse one that is not ours, is newer, or contradicts itself."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InvalidParameter(
            "this is not a header of local reports\nhint: the first line of the file must be its header"
        )
    if header.get("version") != VERSION:
        raise InvalidParameter(
            "these reports were written by another version\nhint: use the version of tacit that made them"
        )
    try:
        survey = _from_header(header)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParameter("this header of local reports is damaged\nhint: ask for the file again") from None
    if survey.header() != header:
        raise InvalidParameter(
            "the parameters in this header do not follow from its protocol and epsilon\nhint: ask for the file again"
        )
    return survey


def _from_header(header: dict[str, Any]) -> Survey:
    question, parameters = dict(header["question"]), header["parameters"]
    words: dict[str, Any] = {}
    if "labels" in question or "size" in question:
        words["domain"] = question["labels"] if "labels" in question else question["size"]
        words["epsilon_first"] = parameters.get("epsilon_first")
        words["protocol"] = header["protocol"]
    elif "between" in question:
        words["between"] = [from_text(end) for end in question["between"]]
        words["protocol"] = header["protocol"]
    elif "attributes" in question:
        words["attributes"] = {
            name: part["labels"] if "labels" in part else part["size"] for name, part in question["attributes"].items()
        }
        words["method"] = parameters["method"]
        words["protocol"] = parameters["parts"]
    else:
        words |= {name: question[name] for name in ("alphabet", "length", "step")}
    return make_survey(epsilon=from_text(header["epsilon"]), epoch=header["epoch"], tokens=header["tokens"], **words)


def _questions(domain: Any, between: Any, attributes: Any, alphabet: Any) -> dict[str, Any]:
    return {"domain": domain, "between": between, "attributes": attributes, "alphabet": alphabet}


def _frequency(question: Labels, protocol: str, epsilon: Fraction, epsilon_first: Number | None) -> FrequencyProtocol:
    if epsilon_first is not None or protocol == Permanent.name:
        if epsilon_first is None or protocol not in (AUTO, Permanent.name):
            raise InvalidParameter(
                "longitudinal reports need epsilon_first and no other protocol"
                "\nhint: e.g. protocol='longitudinal', epsilon=2, epsilon_first=1"
            )
        return Permanent(question.size, epsilon, decimal_meaning(epsilon_first, name="epsilon_first"))
    name = choose(question, epsilon).protocol if protocol == AUTO else protocol
    return frequency_protocol(name, question.size, epsilon)


def _attributes(question: Record, method: str, protocol: str, epsilon: Fraction) -> Attributes:
    if method not in METHODS:
        raise InvalidParameter(f"method must be one of {', '.join(METHODS)}")
    kind: Method = method
    sizes = [part.size for part in question.parts]
    each = epsilon / len(sizes) if kind == "split" else epsilon
    names = protocol.split(",") if "," in protocol else [protocol] * len(sizes)
    if len(names) != len(sizes):
        raise InvalidParameter(
            f"protocol lists {len(names)} names for {len(sizes)} attributes\nhint: list one for each"
        )
    chosen = [choose(size, each).protocol if name == AUTO else name for name, size in zip(names, sizes, strict=True)]
    parts = tuple(frequency_protocol(name, size, each) for name, size in zip(chosen, sizes, strict=True))
    return Attributes(epsilon, kind, parts)


def _epoch(epoch: str) -> str:
    if not isinstance(epoch, str) or len(epoch) > EPOCH_MAX or not epoch.isprintable():
        raise InvalidParameter(
            f"epoch must be a short text of at most {EPOCH_MAX} characters\nhint: e.g. epoch='2026-W46'"
        )
    return epoch
