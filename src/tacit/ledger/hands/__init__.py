"""Carrying a charge out: one process at a time, and another if that one has died."""
