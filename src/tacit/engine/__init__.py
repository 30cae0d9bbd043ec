"""Engines: read rows and add up exact, bounded integers. Noise is left to other rooms."""

from tacit.engine.coded_rows import CodedRows
from tacit.engine.derived import StoredRows, derived_source, read_public
from tacit.engine.engine import FAILED, Engine, ExecutionPath, open_engine
from tacit.engine.kernel.compiled import interpreted_kernel, is_coming, warm_up, why_off
