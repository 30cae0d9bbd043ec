"""The exact law of every local protocol on a small domain: the chance of each payload, by code.

The product never needs a law, since it draws payloads and counts them. A law here follows from the probabilities that
the protocol states; what is drawn is compared with it.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from tacit.local.protocols.hashing import LocalHashing, PrefixHashing
from tacit.local.protocols.means import _TYPE, MeanResponse
from tacit.local.protocols.protocol import Response, as_payloads
from tacit.local.protocols.subset import Subset
from tacit.local.protocols.unary import Permanent, width_of
from tacit.local.survey import Attributes

# The chance of each payload, for one answer
Law = dict[bytes, Fraction]


def law_of(protocol: Any, code: Any) -> Law:
    """Return the chance of every payload of a code; of local hashing under one hash, as it is the same for the rest.

    Prefixes have that of each cell on the first level, of a string that hashes to the cell `code`.
    """
    if isinstance(protocol, Response):
        codes = as_payloads(np.arange(protocol.size).astype(protocol._type))
        return {row.tobytes(): protocol.keep if at == code else protocol.stray for at, row in enumerate(codes)}
    if isinstance(protocol, PrefixHashing):
        other = (1 - protocol.keep) / (protocol.cells - 1)
        return {cell.to_bytes(4, "little"): protocol.keep if cell == code else other for cell in range(protocol.cells)}
    if isinstance(protocol, Permanent):
        return _bit_law([protocol.keep if at == code else protocol.stray for at in range(protocol.size)])
    if isinstance(protocol, Subset):
        return _subset_law(protocol, code)
    if isinstance(protocol, LocalHashing):
        return _hashing_law(protocol, code)
    return _mean_law(protocol, code) if isinstance(protocol, MeanResponse) else _attributes_law(protocol, code)


def permanent_law(protocol: Permanent, code: int) -> Law:
    """Return the chance of every permanent answer."""
    chance = protocol.permanent_keep
    return _bit_law([chance if at == code else 1 - chance for at in range(protocol.size)])


def _bit_law(chances: list[Fraction]) -> Law:
    """Return the chance of every payload with independent bits, given their chances of 1."""
    law = {}
    for bits in product((0, 1), repeat=len(chances)):
        chance = prod((each if bit else 1 - each for bit, each in zip(bits, chances, strict=True)), start=Fraction(1))
        value = sum(bit << at for at, bit in enumerate(bits))
        law[value.to_bytes(8 * width_of(len(chances)), "little")] = chance
    return law


def _subset_law(protocol: Subset, code: int) -> Law:
    within = protocol.keep / comb(protocol.size - 1, protocol.members - 1)
    without = (1 - protocol.keep) / comb(protocol.size - 1, protocol.members)
    return {
        sum(1 << member for member in members).to_bytes(protocol.payload_bytes, "little"): (
            within if code in members else without
        )
        for members in combinations(range(protocol.size), protocol.members)
    }


def _hashing_law(protocol: LocalHashing, code: int) -> Law:
    records = np.zeros(protocol.cells, dtype=protocol._type)
    records["a"] = (1 << 63) + (1 << 31)
    records["cell"] = np.arange(protocol.cells)
    payloads, other = as_payloads(records), (1 - protocol.keep) / (protocol.cells - 1)
    own = protocol.supporting(payloads, np.array([code]))[:, 0]
    return {row.tobytes(): protocol.keep if mine else other for row, mine in zip(payloads, own, strict=True)}


def _mean_law(protocol: MeanResponse, code: int) -> Law:
    places = protocol.steps + protocol.window
    records = np.zeros(2 + places, dtype=_TYPE)
    records["piecewise"][2:] = 1
    records["cell"] = [0, 1, *range(places)]
    slope, start = protocol.bit_line
    one = start + slope * Fraction(code, protocol.steps)
    chances = [(1 - protocol.share) * (1 - one), (1 - protocol.share) * one]
    for cell in range(places):
        favoured = code <= cell < code + protocol.window
        each = protocol.inside / protocol.window if favoured else (1 - protocol.inside) / protocol.steps
        chances.append(protocol.share * each)
    return {row.tobytes(): chance for row, chance in zip(as_payloads(records), chances, strict=True) if chance}


def _attributes_law(protocol: Attributes, codes: tuple[int, ...]) -> Law:
    laws = [law_of(part, code) for part, code in zip(protocol.parts, codes, strict=True)]
    if protocol.method == "sample":
        heads = [at.to_bytes(protocol._which_type.itemsize, "little") for at in range(len(laws))]
        return {
            head + payload.ljust(protocol._longest, b"\0"): chance / len(laws)
            for head, each in zip(heads, laws, strict=True)
            for payload, chance in each.items()
        }
    return {
        b"".join(parts): prod((each[part] for each, part in zip(laws, parts, strict=True)), start=Fraction(1))
        for parts in product(*laws)
    }
