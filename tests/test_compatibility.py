"""The promise of docs/compatibility.md: names, commands and saved models of an earlier version are there today."""

import json
from pathlib import Path

import pytest

import tacit
from tacit import learning, local
from tacit.cli.app import app
from tacit.learning.model_file import load

KEPT = Path(__file__).parent / "kept"
NAMES = json.loads((KEPT / "names.json").read_text())
MODELS = sorted((KEPT / "models").glob("*.json"))


def names_now():
    """Return today's names: `python -c "from tests.test_compatibility import write; write()"` keeps them."""
    commands = [command.name for command in app.registered_commands] + [group.name for group in app.registered_groups]
    return {
        "tacit": sorted(tacit.__all__),
        "tacit.local": sorted(local.__all__),
        "tacit.learning": sorted(learning.__all__),
        "commands": sorted(commands),
    }


def write():
    (KEPT / "names.json").write_text(json.dumps(names_now(), indent=1) + "\n")


@pytest.mark.parametrize("room", NAMES)
def test_no_public_name_is_gone(room):
    gone = set(NAMES[room]) - set(names_now()[room])
    assert not gone, "a name that goes warns for a minor version first (docs/compatibility.md)"


def test_public_names_that_are_new_are_kept_from_now_on():
    assert names_now() == NAMES, 'python -c "from tests.test_compatibility import write; write()"'


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_saved_model_predicts_what_it_did(path):
    asked, predicted = json.loads(path.with_suffix(".rows").read_text())
    assert list(load(path).predict(asked)) == pytest.approx(predicted, abs=1e-12)


def test_there_are_saved_models_of_an_earlier_version():
    assert {path.stem for path in MODELS} == {"additive-0.2.0", "linear-0.2.0"}
