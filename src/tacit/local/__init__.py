"""The local model: each person perturbs their own answer before sending it, and trusts nobody with the truth.

A `Survey` is what everyone agrees on; a `Randomizer` turns one person's answer into a report, on that person's side;
a `Collector` counts reports and estimates the whole; `choose` shows which protocol errs least. Names load when used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.local.attributes import AttributesRandomizer
    from tacit.local.central import CentralGuarantee, central_guarantee
    from tacit.local.choosing import choose
    from tacit.local.collector import Collector
    from tacit.local.longitudinal import LongitudinalClient
    from tacit.local.prefixes import PrefixCollector, PrefixRandomizer
    from tacit.local.randomizer import Randomizer
    from tacit.local.report import Report, Reports
    from tacit.local.survey import Survey

__all__ = [
    "AttributesRandomizer",
    "CentralGuarantee",
    "Collector",
    "LongitudinalClient",
    "PrefixCollector",
    "PrefixRandomizer",
    "Randomizer",
    "Report",
    "Reports",
    "Survey",
    "central_guarantee",
    "choose",
]

_HOMES = {
    "AttributesRandomizer": "tacit.local.attributes",
    "CentralGuarantee": "tacit.local.central",
    "Collector": "tacit.local.collector",
    "LongitudinalClient": "tacit.local.longitudinal",
    "PrefixCollector": "tacit.local.prefixes",
    "PrefixRandomizer": "tacit.local.prefixes",
    "Randomizer": "tacit.local.randomizer",
    "Report": "tacit.local.report",
    "Reports": "tacit.local.report",
    "Survey": "tacit.local.survey",
    "central_guarantee": "tacit.local.central",
    "choose": "tacit.local.choosing",
}


def __getattr__(name: str) -> object:
    """Load a name from its module, once (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit.local' has no attribute '{name}'")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
