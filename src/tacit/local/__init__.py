"""The local model: each person perturbs their own answer before sending it, and needs to trust no collector.

`make_survey` fixes the public terms that everyone shares. A `Randomizer` turns one person's answer into a report, on
that person's side. A `Collector` counts reports and estimates totals. `choose` shows which protocol has the least
error. Names load when first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.local.central import central_guarantee, release_estimate
    from tacit.local.choosing import FREQUENCIES, MEANS, choose
    from tacit.local.client import LongitudinalClient, Randomizer, Report, Reports
    from tacit.local.collector import Collector, collect_file, merge_states
    from tacit.local.domain import Labels
    from tacit.local.protocols.protocol import LocalProtocol, Response
    from tacit.local.protocols.unary import Permanent
    from tacit.local.randomized_response import RandomizedResponse
    from tacit.local.survey import Survey, make_survey
    from tacit.local.tradeoffs import tradeoff
    from tacit.local.wire import header_line, read_survey, report_lines, write_reports

__all__ = [
    "FREQUENCIES",
    "MEANS",
    "Collector",
    "Labels",
    "LocalProtocol",
    "LongitudinalClient",
    "Permanent",
    "RandomizedResponse",
    "Randomizer",
    "Report",
    "Reports",
    "Response",
    "Survey",
    "central_guarantee",
    "choose",
    "collect_file",
    "header_line",
    "make_survey",
    "merge_states",
    "read_survey",
    "release_estimate",
    "report_lines",
    "tradeoff",
    "write_reports",
]

# name -> the module that has it, loaded when the name is first used
_HOMES = {
    "Collector": "tacit.local.collector",
    "FREQUENCIES": "tacit.local.choosing",
    "Labels": "tacit.local.domain",
    "LocalProtocol": "tacit.local.protocols.protocol",
    "LongitudinalClient": "tacit.local.client",
    "MEANS": "tacit.local.choosing",
    "Permanent": "tacit.local.protocols.unary",
    "RandomizedResponse": "tacit.local.randomized_response",
    "Randomizer": "tacit.local.client",
    "Report": "tacit.local.client",
    "Reports": "tacit.local.client",
    "Response": "tacit.local.protocols.protocol",
    "Survey": "tacit.local.survey",
    "central_guarantee": "tacit.local.central",
    "choose": "tacit.local.choosing",
    "collect_file": "tacit.local.collector",
    "header_line": "tacit.local.wire",
    "make_survey": "tacit.local.survey",
    "merge_states": "tacit.local.collector",
    "read_survey": "tacit.local.wire",
    "release_estimate": "tacit.local.central",
    "report_lines": "tacit.local.wire",
    "tradeoff": "tacit.local.tradeoffs",
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
