"""Attacks through the language: SQL, expressions, their meaning and their work."""
