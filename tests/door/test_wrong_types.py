"""Every public name and method, given values of a wrong type: refused in our words, or by Python's own signature."""

import copy
import inspect
import traceback
import warnings
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import tacit
import tacit.learning
import tacit.local


class Odd:
    """An object that nothing here knows."""


JUNK = [None, True, -1, 0, 2.5, float("nan"), "", "x", "１", b"x", [], ["x"], {}, {"x": 1}, (1, 2), {1}, object(), Odd]
JUNK += [Odd(), pa.table({"a": [1]}), Fraction(1, 3), lambda *_: 1, 10**30, range(3), [[1]], {"x": "mean"}]


def rows():
    return pa.table({"id": [1, 1, 2, 3], "g": ["a", "b", "a", "b"], "x": [1.0, 2.0, 3.0, 4.0]})


def table(**more):
    declared = {"x": {"between": (0, 5)}, "g": {"keys": ["a", "b"]}}
    given = {"name": "t", "unit": "id", "budget": tacit.epsilon(9, delta=1e-6), "ledger": tacit.TRYOUT}
    return tacit.table(rows(), **{**given, "columns": declared, **more})


def is_of_the_signature(problem):
    """Whether Python itself refused the call: its arguments do not fit, so that no frame of ours was entered."""
    frames = traceback.extract_tb(problem.__traceback__)
    return isinstance(problem, TypeError) and not any("/src/tacit/" in each.filename for each in frames)


def refused_well(call):
    """Return what is wrong with how a call was refused, or None; a call may also succeed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except tacit.TacitError:
        return None
    except Exception as problem:
        if is_of_the_signature(problem):
            return None
        last = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__}: {str(problem)[:80]} ({Path(last.filename).name}:{last.lineno})"
    return None


def calls_of(function, fitting):
    """Yield calls with junk in one parameter, those before it fitting, and with junk everywhere."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    must = [each.name for each in named if each.default is each.empty]
    for junk in JUNK:
        yield f"({type(junk).__name__} {junk!r:.30})", lambda junk=junk: function(junk)
        for each in named:
            given = {name: fitting[name] for name in must if name in fitting} | {each.name: junk}
            yield f"({each.name}={type(junk).__name__} {junk!r:.30})", lambda given=given: function(**given)


# Arguments that fit, by a parameter's name: with them the call reaches the parameter that does not.
FITTING = {
    "epsilon": 1,
    "sensitivity": 1,
    "column": "x",
    "left": "x",
    "right": "x",
    "name": "x",
    "text": "SELECT COUNT(*) AS n FROM t",
    "source": rows(),
    "unit": "id",
    "budget": tacit.epsilon(1),
    "other": None,
    "on": "id",
    "loss": tacit.epsilon(1),
    "rate": "0.1",
    "q": 0.5,
    "k": 2,
    "bins": 4,
    "between": (0, 5),
}
NOT_CALLED = {"TacitError", "LargeEpsilonWarning", "audit_model", "bet_on", "audit"}  # errors; minutes of work


def failures(owner, names, fitting, skipped=()):
    found = {}
    for name in names:
        function = getattr(owner, name)
        if (
            not callable(function)
            or name in skipped
            or (isinstance(function, type) and issubclass(function, Warning | Exception))
        ):
            continue
        for shown, call in calls_of(function, fitting):
            said = refused_well(call)
            if said is not None:
                found[f"{name}{shown}"] = said
    return found


def methods(owner):
    return [name for name in dir(owner) if not name.startswith("_")]


def test_root_names():
    found = failures(tacit, tacit.__all__, FITTING, NOT_CALLED)
    assert not found, "\n".join(f"{call}: {said}" for call, said in found.items())


def test_methods_of_a_table():
    found = failures(table(), [name for name in methods(table()) if name not in ("session", "frame")], FITTING)
    assert not found, "\n".join(f"{call}: {said}" for call, said in found.items())


def test_methods_of_a_question_and_its_answer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = table().group_by("g").mean("x")
    found = failures(question, [name for name in methods(question) if name not in ("session", "query")], FITTING)
    answer = question.answer(epsilon=1)
    found |= failures(answer, methods(answer), FITTING)
    assert not found, "\n".join(f"{call}: {said}" for call, said in found.items())


def test_a_name_that_other_libraries_have_is_answered_with_the_word_for_it():
    asked = table()
    for name, word in [
        ("groupby", "group_by"),
        ("head", "rows are protected"),
        ("budget", r"\.left"),
        ("pivot_table", "pivot the answer"),
        ("dtypes", r"describe\(\)"),
        ("dropna", "IS NOT NULL"),
        ("sort_values", "sort the answer"),
        ("summarise", "agg"),
        ("x", r"it with \.mean\('x'\)"),
        ("cuont", "count"),
    ]:
        with pytest.raises(tacit.TacitError, match=word):
            getattr(asked, name)
        assert not hasattr(asked, name)  # protocols go on working
    with pytest.raises(tacit.TacitError, match="mean"):
        asked["x"]
    with pytest.raises(tacit.TacitError, match="picked out"):
        list(asked)
    with pytest.raises(tacit.TacitError, match="answer"):
        asked.count().collect()
    with pytest.raises(tacit.TacitError, match=r"(?s)an Answer has no .*to_pandas"):
        asked.count().answer(epsilon=1).df()
    with pytest.raises(tacit.TacitError, match="Laplace"):
        tacit.Laplce  # noqa: B018
    assert copy.deepcopy(asked.frame) == asked.frame
    assert copy.copy(asked).columns == asked.columns


def test_agg_says_how_aggregates_are_written():
    for given in ({"amount": "mean"}, "mean", ("n", tacit.count())):
        with pytest.raises(tacit.InvalidParameter, match=r"agg\(tacit.mean"):
            table().agg(given)
    with pytest.raises(tacit.InvalidParameter, match=r"agg\(tacit.mean\('amount'\), tacit.max\('x'\)\)"):
        table().agg({"amount": "mean", "x": ["max", "first"], 3: []})
    with pytest.raises(tacit.InvalidParameter, match="must be an aggregate, not a str"):
        table().agg(x="mean")


def test_a_rate_is_no_sample():
    with pytest.raises(tacit.InvalidParameter, match="poisson_sample"):
        tacit.amplified(tacit.epsilon(1), 0.01)
