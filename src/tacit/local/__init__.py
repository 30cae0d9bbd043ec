"""The local model: each person perturbs their own answer before sending it, and trusts nobody with the truth.

`make_survey` fixes what everyone agrees on; a `Randomizer` turns one person's answer into a report, on that person's
side; a `Collector` counts reports and estimates the whole; `choose` shows which protocol errs least. Names load when
first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.local.central import central_guarantee, release_estimate
    from tacit.local.choosing import choose
    from tacit.local.client import LongitudinalClient, Randomizer, Report, Reports
    from tacit.local.collector import Collector, collect_file, merge_states
    from tacit.local.survey import Survey, make_survey
    from tacit.local.wire import read_survey, write_reports

__all__ = [
    "Collector",
    "LongitudinalClient",
    "Randomizer",
    "Report",
    "Reports",
    "Survey",
    "central_guarantee",
    "choose",
    "collect_file",
    "make_survey",
    "merge_states",
    "read_survey",
    "release_estimate",
    "write_reports",
]

_HOMES = {
    "Collector": "tacit.local.collector",
    "LongitudinalClient": "tacit.local.client",
    "Randomizer": "tacit.local.client",
    "Report": "tacit.local.client",
    "Reports": "tacit.local.client",
    "Survey": "tacit.local.survey",
    "central_guarantee": "tacit.local.central",
    "choose": "tacit.local.choosing",
    "collect_file": "tacit.local.collector",
    "make_survey": "tacit.local.survey",
    "merge_states": "tacit.local.collector",
    "read_survey": "tacit.local.wire",
    "release_estimate": "tacit.local.central",
    "write_reports": "tacit.local.wire",
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
