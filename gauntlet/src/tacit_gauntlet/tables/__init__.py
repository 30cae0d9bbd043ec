"""Attacks on answers about tables: bounds, cells, files, sizes, refusals and what an answer may tell."""
