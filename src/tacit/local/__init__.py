"""The local model: each person perturbs their own answer before sending it, and needs to trust no collector.

`make_survey` fixes the public terms that everyone shares. A `Randomizer` turns one person's answer into a report, on
that person's side. A `Collector` counts reports and estimates totals. `choose` shows which protocol has the least
error.
"""

from tacit.local.central import central_guarantee, release_estimate
from tacit.local.choosing import FREQUENCIES, choose
from tacit.local.client import LongitudinalClient, Randomizer, Report, Reports
from tacit.local.collector import Collector, collect_file, merge_states
from tacit.local.domain import Labels
from tacit.local.protocols.means import MeanResponse
from tacit.local.protocols.protocol import Response
from tacit.local.protocols.unary import Permanent
from tacit.local.randomized_response import RandomizedResponse
from tacit.local.survey import LocalProtocol, Survey, make_survey
from tacit.local.tradeoffs import tradeoff
from tacit.local.wire import header_line, read_survey, report_lines, write_reports

__all__ = [
    "FREQUENCIES",
    "Collector",
    "Labels",
    "LocalProtocol",
    "LongitudinalClient",
    "MeanResponse",
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
