"""Every protocol by its public name, and how each is built for a question and an epsilon."""

from collections.abc import Callable
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.local.hadamard import Hadamard
from tacit.local.hashing import LocalHashing
from tacit.local.means import MeanResponse
from tacit.local.protocol import FrequencyProtocol
from tacit.local.response import Response
from tacit.local.subset import Subset
from tacit.local.unary import Unary

AUTO = "auto"

FREQUENCIES: dict[str, Callable[[int, Fraction], FrequencyProtocol]] = {
    "response": Response,
    "subset": Subset,
    "optimised-unary": lambda size, epsilon: Unary(size, epsilon, "optimised"),
    "symmetric-unary": lambda size, epsilon: Unary(size, epsilon, "symmetric"),
    "local-hashing": LocalHashing,
    "hadamard": Hadamard,
}
MEANS: dict[str, Callable[[Fraction], MeanResponse]] = {
    "hybrid": lambda epsilon: MeanResponse(epsilon, "hybrid"),
    "piecewise": lambda epsilon: MeanResponse(epsilon, "piecewise"),
    "duchi": lambda epsilon: MeanResponse(epsilon, "duchi"),
}


def frequency_protocol(name: str, size: int, epsilon: Fraction) -> FrequencyProtocol:
    """Return the protocol of this name for counts of `size` answers."""
    if name not in FREQUENCIES:
        raise _unknown(name, (AUTO, *FREQUENCIES, "longitudinal"))
    return FREQUENCIES[name](size, epsilon)


def mean_protocol(name: str, epsilon: Fraction) -> MeanResponse:
    """Return the protocol of this name for a mean."""
    if name not in MEANS:
        raise _unknown(name, (AUTO, *MEANS))
    return MEANS[name](epsilon)


def _unknown(name: object, known: tuple[str, ...]) -> InvalidParameter:
    shown = repr(name) if isinstance(name, str) and len(name) < 40 else "this"
    return InvalidParameter(
        f"there is no protocol {shown} for this question\nhint: protocol is one of {', '.join(known)}"
    )
