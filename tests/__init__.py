"""Tests: a package by its own name, whatever another distribution calls `tests`."""
