"""Attacks on the noise itself: its laws, its randomness, its time."""
