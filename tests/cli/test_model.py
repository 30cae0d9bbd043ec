"""`tacit model`: one command fits and keeps a model; reading, predicting and exporting it are free."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tacit.learning import load

DECLARED = (
    *("--unit", "person", "--budget", "2", "--delta", "1e-6"),
    *("--between", "age=18:90", "--keys", "sex=f,m", "--features", "age,sex"),
)
# The table of the fit in the words of a score: what is declared of it is the same.
TABLE = (*DECLARED[:-2], "--keys", "buys=no,yes")
BUYS = ("--target", "buys", "--keys", "buys=no,yes", "--epsilon", "1")


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Several rows a person: older ones buy."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    age, sex = rng.integers(18, 91, 3000), rng.choice(["f", "m"], 3000)
    rows = pa.table(
        {
            "person": np.arange(3000) // 2,
            "age": age,
            "sex": sex,
            "buys": np.where(rng.random(3000) < 1 / (1 + np.exp((50 - age) / 8)), "yes", "no"),
            "stays": np.minimum(rng.poisson(age / 20), 20),
        }
    )
    parquet.write_table(rows, "people.parquet")
    csv.write_csv(rows.slice(0, 5), "some.csv")
    return "people.parquet"


def test_one_command_fits_shows_and_keeps_a_model(tacit_command, people):
    fitted = tacit_command("model", "fit", people, *BUYS, *DECLARED, "--save", "model.json")
    assert fitted.code == 0, fitted.err
    assert "log-odds" in fitted.out
    assert "left: ε = 1" in fitted.out
    kept = load("model.json")
    assert kept.classes_.tolist() == ["no", "yes"]
    shown = tacit_command("model", "show", "model.json")
    assert shown.out.strip() in fitted.out


def test_the_same_fit_again_is_free_and_the_same(tacit_command, people):
    fits = [tacit_command("model", "fit", people, *BUYS, *DECLARED, "--json").out for _ in range(2)]
    assert fits[0] == fits[1]
    assert json.loads(fits[0])["kind"] == "AdditiveClassifier"


def test_a_plan_is_free_and_declares_nothing(tacit_command, people):
    planned = tacit_command("model", "plan", people, *BUYS, *DECLARED)
    assert "24 rounds" in planned.out
    assert json.loads(tacit_command("model", "plan", people, *BUYS, *DECLARED, "--json").out)["plan"]
    assert tacit_command("budget").code == 2  # there is no ledger yet


def test_rows_are_predicted_from_the_file_alone(tacit_command, people):
    tacit_command("model", "fit", people, *BUYS, *DECLARED, "--save", "model.json")
    predicted = tacit_command("model", "predict", "model.json", "some.csv")
    lines = predicted.out.split()
    assert lines[0] == "prediction"
    assert set(lines[1:]) <= {"no", "yes"}
    assert len(lines) == 6
    chances = tacit_command("model", "predict", "model.json", people, "--chances", "--json")
    assert np.allclose([sum(each.values()) for each in json.loads(chances.out)], 1)


@pytest.mark.parametrize("more", [("--model", "linear"), (), ("--counts",)])
def test_a_number_is_a_regression(tacit_command, people, more):
    words = ("--target", "stays", "--between", "stays=0:20", "--epsilon", "1", *DECLARED, *more)
    fitted = tacit_command("model", "fit", people, *words, "--save", "model.json")
    assert fitted.code == 0, fitted.err
    kept = load("model.json")
    assert type(kept).__name__ == ("LinearRegression" if "linear" in more else "AdditiveRegressor")
    assert tacit_command("model", "predict", "model.json", "some.csv", "--output", "out.csv").code == 0
    assert csv.read_csv("out.csv").num_rows == 5


def test_a_line_is_exported_as_sql(tacit_command, people):
    words = ("--target", "stays", "--between", "stays=0:20", "--epsilon", "1", *DECLARED, "--model", "linear")
    tacit_command("model", "fit", people, *words, "--save", "model.json")
    assert '"age"' in tacit_command("model", "sql", "model.json").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "buys", "--epsilon", "1", *DECLARED, "--learn", "no"), "'buys'"),
        ((*BUYS, *DECLARED, "--plot", "terms.txt"), ".png"),
        ((*BUYS, *DECLARED, "--features", "age,sexx"), "did you mean 'sex'"),
        ((*BUYS, *DECLARED, "--save", "/nowhere/model.json"), "cannot be written"),
        ((*BUYS, *DECLARED, "--model", "deep"), "--model must be one of"),
    ],
)
def test_what_is_refused_says_why_and_declares_no_budget(tacit_command, people, words, said):
    refused = tacit_command("model", "fit", people, *words)
    assert refused.code == 2
    assert said in refused.err
    assert tacit_command("budget").code == 2


def test_a_model_is_fitted_and_drawn_in_one_command_and_scored_on_people_set_aside(tacit_command, people):
    fitted = tacit_command(
        "model", "fit", people, *BUYS, *DECLARED, "--holdout", "0.2", "--plot", "terms.svg", "--save", "model.json"
    )
    assert "drawn in terms.svg" in fitted.out
    scored = tacit_command("model", "score", "model.json", people, "--epsilon", "0.5", *TABLE)
    assert "fresh: the people scored on were not used" in scored.out
    seen = tacit_command("model", "score", "model.json", people, "--epsilon", "0.5", "--holdout", "0.4", *TABLE)
    assert "would be scored on people it was fitted on" in seen.err


def test_a_budget_that_has_no_room_refuses_with_its_own_code(tacit_command, people):
    assert tacit_command("model", "fit", people, *BUYS, *DECLARED).code == 0
    assert tacit_command("model", "fit", people, *BUYS[:-1], "1.9", *DECLARED).code == 3


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "tacit model 1", "kind": "os.system"}', "\x00"])
def test_a_file_that_is_no_model_is_refused(tacit_command, people, text):
    with open("other.json", "w") as file:
        file.write(text)
    refused = tacit_command("model", "show", "other.json")
    assert refused.code == 2
    assert "not a model" in refused.err
