"""Attacks on choices: the best candidate, the first above a threshold, the top of a ranking."""
