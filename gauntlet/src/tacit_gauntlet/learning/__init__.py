"""Attacks on models: what one person moves, what leaves, what is charged, and who is scored."""
