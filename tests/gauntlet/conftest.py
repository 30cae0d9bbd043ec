"""What the gauntlet's tests share: a registry of its own with the tiny gauntlet in it; the real one is untouched."""

import importlib
import sys

import pytest

from tacit_gauntlet.frame import case, mutant
from tests.cli.conftest import tacit_command

__all__ = ["tacit_command", "tiny_gauntlet"]


@pytest.fixture
def tiny_gauntlet(monkeypatch):
    """Register the tiny gauntlet alone, and return its module."""
    monkeypatch.setattr(case, "_cases", {})
    monkeypatch.setattr(mutant, "_mutants", {})
    monkeypatch.setattr("tacit_gauntlet.MODULES", ())
    monkeypatch.setattr("tacit_gauntlet.frame.waiting.AWAITED", ())
    sys.modules.pop("tests.gauntlet.tiny_gauntlet", None)
    return importlib.import_module("tests.gauntlet.tiny_gauntlet")
