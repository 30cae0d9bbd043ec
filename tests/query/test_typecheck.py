"""One tree for one meaning: canonical forms are stable, mean the same, and come back from their own text."""

import pyarrow as pa
import sqlglot
from hypothesis import given, settings
from sqlglot import exp

from tacit import typed_sql as sql
from tacit.engine.expression import to_sql
from tacit.query.check import check
from tacit.query.language.catalogue import FUNCTIONS, written_forms
from tacit.query.nodes import TEXT, Aggregate, Call, Column, Output, Query, columns_of, functions_of, value_of
from tacit.query.sql.expressions import show
from tacit.query.sql.rows import parse_expression
from tacit.query.typecheck import canonical, kind_of, type_of
from tacit_gauntlet.stage import cells
from tacit_gauntlet.stage.cells import same_cell
from tacit_gauntlet.stage.payloads import hostile_texts
from tacit_gauntlet.stage.reference import meaning
from tests.query.trees import CELLS, FORMS, nested, rows


@given(nested())
def test_canonical_twice_is_canonical_once(expression):
    assert canonical(expression, cells.KINDS) == expression


@given(nested())
def test_an_expression_comes_back_from_its_own_text(expression):
    assert parse_expression(show(expression), CELLS) == expression


@settings(max_examples=20)
@given(rows)
def test_a_canonical_form_means_what_was_written(made_up):
    column, flag = Column("i"), Column("b")
    one, two = value_of(1), value_of(2)
    for written in [
        Call("and", (flag, Call("and", (Column("c"), flag)))),
        Call("or", (flag, Call("or", (Column("c"), flag)))),
        Call("not", (Call("not", (flag,)),)),
        Call("<=", (one, column)),
        Call(">", (column, Column("j"))),
        Call("in", (column, two, one, two)),
        Call("in", (column, one)),
        Call("negate", (value_of(0.5),)),
        Call("<", (Column("f"), two)),
        Call("<", (Column("price"), value_of(0.1))),
    ]:
        for row in map(cells.plain, made_up):
            expected = meaning(written, row, cells.KINDS)
            assert same_cell(meaning(canonical(written, cells.KINDS), row, cells.KINDS), expected)


def test_a_checked_question_is_checked_already():
    asked = Query("cells", (Output("n", Aggregate("count")),), where=Call(">", (value_of(1), Column("i"))))
    once = check(asked, CELLS)
    assert once.where == Call("<", (Column("i"), value_of(1)))
    assert check(once, CELLS) == once


def test_types_columns_and_functions_of_an_expression():
    expression = parse_expression("CASE WHEN i > 1 THEN price * 2 ELSE 0 END", CELLS)
    assert type_of(expression, CELLS) == "decimal"
    assert columns_of(expression) == {"i", "price"}
    assert functions_of(expression) == {"case", ">", "*"}


def test_the_catalogue_says_how_each_function_is_written_and_what_it_means():
    assert set(FORMS) == set(FUNCTIONS)
    assert all(entry.form in written_forms() and entry.meaning for entry in FUNCTIONS.values())


@given(nested())
def test_every_digit_a_result_can_need_fits(expression):
    assert kind_of(expression, cells.KINDS).digits <= 38


def test_hostile_names_and_texts_come_back_whole_from_sql():
    hostile = [text for text in hostile_texts(500) if "\x00" not in text]
    table = sql.Lent(pa.schema([(name, pa.string()) for name in hostile]).empty_table())
    kinds = dict.fromkeys(hostile, TEXT)
    each = {f"x{n}": to_sql(Call("=", (Column(text), value_of(text))), table, kinds) for n, text in enumerate(hostile)}
    (statement,) = sqlglot.parse(sql.sql_of(table.select(**each)), read="duckdb")
    compared = [node.this.this for node in statement.expressions]  # each stands in parentheses
    assert [node.expression.this for node in compared] == hostile
    assert [node.this.name for node in compared] == hostile
    assert len(list(statement.find_all(exp.Literal))) == len(hostile)
