"""The local model: each person perturbs their own answer before sending it, and needs to trust no collector.

`make_survey` fixes the public terms that everyone shares. A `Randomizer` turns one person's answer into a report, on
that person's side. A `Collector` counts reports and estimates totals. `choose` shows which protocol has the least
error. Names load when first used.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.local.central import central_guarantee, estimate_key, guarantee_of
    from tacit.local.choosing import FREQUENCIES, MEANS, choose
    from tacit.local.client import LongitudinalClient, Randomizer, Report, Reports
    from tacit.local.collector import Collector, collect_file, merge_states
    from tacit.local.domain import Labels
    from tacit.local.interval import ReportLaw
    from tacit.local.protocols.protocol import LocalProtocol, Response
    from tacit.local.protocols.unary import Permanent
    from tacit.local.randomized_response import PEOPLE_MOST, RandomizedResponse, gain_of, least_people, share_error
    from tacit.local.survey import Survey, make_survey
    from tacit.local.wire import header_line, read_survey, report_lines, write_reports

__all__ = [
    "FREQUENCIES",
    "MEANS",
    "PEOPLE_MOST",
    "Collector",
    "Labels",
    "LocalProtocol",
    "LongitudinalClient",
    "Permanent",
    "RandomizedResponse",
    "Randomizer",
    "Report",
    "ReportLaw",
    "Reports",
    "Response",
    "Survey",
    "central_guarantee",
    "choose",
    "collect_file",
    "estimate_key",
    "gain_of",
    "guarantee_of",
    "header_line",
    "least_people",
    "make_survey",
    "merge_states",
    "read_survey",
    "report_lines",
    "share_error",
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
    "PEOPLE_MOST": "tacit.local.randomized_response",
    "Permanent": "tacit.local.protocols.unary",
    "RandomizedResponse": "tacit.local.randomized_response",
    "Randomizer": "tacit.local.client",
    "Report": "tacit.local.client",
    "ReportLaw": "tacit.local.interval",
    "Reports": "tacit.local.client",
    "Response": "tacit.local.protocols.protocol",
    "Survey": "tacit.local.survey",
    "central_guarantee": "tacit.local.central",
    "choose": "tacit.local.choosing",
    "collect_file": "tacit.local.collector",
    "estimate_key": "tacit.local.central",
    "gain_of": "tacit.local.randomized_response",
    "guarantee_of": "tacit.local.central",
    "header_line": "tacit.local.wire",
    "least_people": "tacit.local.randomized_response",
    "make_survey": "tacit.local.survey",
    "merge_states": "tacit.local.collector",
    "read_survey": "tacit.local.wire",
    "report_lines": "tacit.local.wire",
    "share_error": "tacit.local.randomized_response",
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
