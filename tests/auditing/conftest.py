"""What the gauntlet's tests share: a registry of its own with the tiny gauntlet in it; the real one is untouched."""

import importlib
import sys

import pytest

from tacit.auditing.gauntlet import case, mutant


@pytest.fixture
def tiny_gauntlet(monkeypatch):
    """Register the tiny gauntlet alone, and return its module."""
    monkeypatch.setattr(case, "_cases", {})
    monkeypatch.setattr(mutant, "_mutants", {})
    monkeypatch.setattr("tacit.auditing.gauntlet.MODULES", ())
    monkeypatch.setattr("tacit.auditing.gauntlet.waiting.AWAITED", ())
    sys.modules.pop("tests.auditing.tiny_gauntlet", None)
    return importlib.import_module("tests.auditing.tiny_gauntlet")
