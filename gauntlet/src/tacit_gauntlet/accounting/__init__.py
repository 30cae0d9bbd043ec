"""Attacks on what a release is said to cost."""
