"""Releases: add noise to exact sums, and say how far off each cell may be. They never see rows."""

from tacit.release.noisy import NoisyTable, joined, release, stamp_in

__all__ = [
    "NoisyTable",
    "joined",
    "release",
    "stamp_in",
]
