"""Engines: read rows and add up exact, bounded integers. They never see noise."""

from tacit.engine.engine import FAILED, Engine, ExecutionPath
from tacit.engine.kernel.compiled import interpreted_kernel

__all__ = [
    "FAILED",
    "Engine",
    "ExecutionPath",
    "interpreted_kernel",
]
