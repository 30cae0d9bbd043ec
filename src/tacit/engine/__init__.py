"""Engines: read rows and add up exact, bounded integers. They never see noise."""

from tacit.engine.engine import FAILED, Engine, ExecutionPath

__all__ = [
    "FAILED",
    "Engine",
    "ExecutionPath",
]
