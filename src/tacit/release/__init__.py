"""Releases: add noise to exact sums, and say how far off each cell may be. They never see rows."""
