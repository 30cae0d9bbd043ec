"""A function is one record, one spelling and one translation; each table that lacks a function is named."""

import re

import pytest
from sqlglot import exp

from tacit.engine.translations import TRANSLATIONS
from tacit.errors import QueryRefused
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.functions import Function
from tacit.query.nodes import FLOAT, Call, Column
from tacit.query.sql import expressions
from tacit.query.sql.expressions import SPELLINGS, show
from tacit.query.sql.questions import parse_query
from tacit.query.sql.refusals import instead
from tests.query.functions_page import PAGE, START
from tests.query.test_sql import VISITS
from tests.query.trees import FORMS

HINT = instead(exp.Anonymous(this="nonesuch"))


def word_of(function):
    """How the hint about unknown functions names this one; operators are not in it."""
    if function.notation.is_operator:
        return {"case": "CASE", "add_interval": "INTERVAL"}.get(function.name, "")
    return re.match(r"[A-Z_]+", function.form).group()


def lacking(functions):
    """Return, for each table that is to have every function, those that it lacks or has too many."""
    page = PAGE.read_text().split(START)[1]
    return {
        "spelling": set(functions) ^ set(SPELLINGS),
        "translation": set(functions) ^ set(TRANSLATIONS),
        "form that the gauntlet tries": set(functions) ^ set(FORMS),
        "hint": {name for name, function in functions.items() if word_of(function) not in HINT},
        "guide": {name for name, function in functions.items() if function.form.replace("|", "\\|") not in page},
    }


def test_every_table_has_every_function():
    assert {table: names for table, names in lacking(FUNCTIONS).items() if names} == {}


def test_a_new_function_is_missed_by_every_table_until_it_is_everywhere():
    new = Function("cube_root", "CUBE_ROOT(a)", "the number whose cube is a", lambda _kinds, _where: FLOAT, abs)
    assert set(map(frozenset, lacking({**FUNCTIONS, new.name: new}).values())) == {frozenset({"cube_root"})}


@pytest.mark.parametrize("table", [SPELLINGS, TRANSLATIONS], ids=["spelling", "translation"])
def test_a_function_that_only_one_table_has_is_found(table, monkeypatch):
    monkeypatch.setitem(table, "cube_root", table["abs"])
    assert {"cube_root"} in lacking(FUNCTIONS).values()


def test_a_record_has_a_form_a_meaning_and_the_name_it_is_found_by():
    for name, function in FUNCTIONS.items():
        assert name == function.name
        assert function.form
        assert function.meaning


def test_each_spelling_is_of_one_function():
    marks = [mark for each in SPELLINGS.values() for mark in (*each.nodes, *each.types, *each.words)]
    assert len(marks) == len(set(marks))
    assert all((*each.nodes, *each.types, *each.words) for each in SPELLINGS.values())


def nested(name, depth):
    expression = Column("x")
    for _ in range(depth):
        expression = Call(name, (expression,))
    return expression


@pytest.mark.parametrize("name", ["abs", "negate", "cast_int", "not", "is_null", "lower", "unknown"])
def test_each_part_of_an_expression_is_written_once(name, monkeypatch):
    written = []
    monkeypatch.setattr(expressions, "show_name", lambda column: written.append(column) or column)
    assert show(nested(name, 12)).count("x") == 1
    assert written == ["x"]


def test_a_sum_too_long_to_read_is_refused_in_having_by_name():
    for number in (60, 900):
        with pytest.raises(QueryRefused, match="deep"):
            parse_query(f"SELECT COUNT(*) AS n FROM visits HAVING {'+'.join(['n'] * number)} > 1", VISITS)


def test_a_deep_expression_is_refused_in_having_at_once():
    deep = "n"
    for _ in range(25):
        deep = f"CAST(CAST({deep} AS TEXT) AS INT)"
    with pytest.raises(QueryRefused, match="deep"):
        parse_query(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING {deep} = 1", VISITS)
