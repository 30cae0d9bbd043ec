"""Bounds: facts, caps that are learned or given by hand, and one weight a person."""
