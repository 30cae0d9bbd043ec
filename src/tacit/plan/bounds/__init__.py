"""Bounds that are learned: facts, caps and one weight a person; and totals of what bounds by hand cut."""
