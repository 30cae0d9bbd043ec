"""Cases that wait for a part of Tacit that is not built, or for a server that is not here.

A case whose feature is absent waits and says for what. Once the feature is there a case still missing is a failure, so
that nothing is skipped in silence.
"""

import importlib.util
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Awaited:
    """A case, or half of one, that needs something: the module, if any, that shows it is there, and its name."""

    id: str
    title: str
    module: str
    needs: str

    @property
    def is_due(self) -> bool:
        """Whether what it needs is there, so that the case has to be."""
        return bool(self.module) and importlib.util.find_spec(self.module) is not None


_POSTGRES = ("", "PostgreSQL on this machine")
_SAMPLED = ("", "training by sampled batches; every model here reads all rows in every round")
_LAYERS = ("", "networks; a model here adds up rows one by one, so that none is mixed with another")

AWAITED = (
    Awaited(
        "N07h",
        "N07 through HTTP: the time of a response tells nothing about its noise",
        "",
        "a quiet machine; W04 has the ticks",
    ),
    Awaited("L12p", "L12 on PostgreSQL", "", "a server of its own: make test starts one where PostgreSQL is installed"),
    Awaited("S64", "a server's rows are those of one moment, each once, whatever breaks", *_POSTGRES),
    Awaited("S65", "what a server need not send is no row that counts", *_POSTGRES),
    Awaited("W06", "restarts under load: what is charged is delivered or retrievable", "", "workers killed under load"),
    Awaited("W07", "slow clients, overload and a full disk lose no record", "", "a load of its own"),
    Awaited("M01", "Poisson batches follow their law, and empty ones take a noisy step", *_SAMPLED),
    Awaited("M06", "layers that mix examples are refused", *_LAYERS),
)


def waiting(registered: Collection[str], chosen: Collection[str] | None = None) -> tuple[Awaited, ...]:
    """Return the cases that are not registered, of those chosen (all, if none are), by id."""
    return tuple(
        each
        for each in sorted(AWAITED, key=lambda each: each.id)
        if each.id not in registered and (chosen is None or each.id in chosen)
    )
