"""Parses SQL text with sqlglot, and reads one row expression from its text: the part that both doors share.

Any error of sqlglot becomes a refusal. Only the nodes that `expressions.py` lists are kept. Nothing here reads a row.
"""

from collections.abc import Mapping
from typing import ClassVar

import sqlglot
from sqlglot import exp, parser
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.query.expressions import PLAIN_NAMES, Reader, column_resolver
from tacit.query.limits import DEPTH_MAX, TOKENS_MAX, limit_expression, limit_text
from tacit.query.nodes import Expression
from tacit.query.typecheck import canonical, column_kinds
from tacit.tables import Declaration


def parse_expression(
    text: str, declaration: Declaration, *, derived: Mapping[str, Expression] | None = None
) -> Expression:
    """Return a row expression about a declared table, such as the condition of a WHERE.

    A name in `derived` stands for its expression; derived names are never names of columns.
    """
    if not isinstance(text, str):
        raise QueryRefused(f'an expression must be text, not {type(text).__name__}\nhint: e.g. "age >= 18"')
    tokens = tokens_of(text)
    if not tokens or tokens[-1].token_type == TokenType.SEMICOLON:
        raise QueryRefused('this is not one expression\nhint: e.g. "age >= 18", without a semicolon')
    reader = Reader(column_resolver(declaration, frozenset((declaration.name,)), derived or {}))
    return row_expression(reader, parsed(text, exp.Condition), declaration)


def row_expression(reader: Reader, node: exp.Expr, declaration: Declaration) -> Expression:
    """Return a node as an expression about the table's rows, in its canonical form."""
    expression = read_node(reader, node)
    limit_expression(expression)
    return canonical(expression, column_kinds(declaration))


def read_node(reader: Reader, node: exp.Expr) -> Expression:
    """Return what a reader makes of a node; refuse one that is nested too deeply to be read."""
    try:
        return reader.read(node)
    except RecursionError:
        raise QueryRefused(
            f"an expression is nested more than {DEPTH_MAX} deep\nhint: split the question, or use IN for a list"
        ) from None


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of one statement; refuse a text with too many tokens, or with a second statement."""
    limit_text(text)
    try:
        tokens = sqlglot.tokenize(text, read=TacitSql)
    except Exception as error:  # noqa: BLE001 - any error here comes from the question's text alone
        raise _unreadable(error) from None
    if len(tokens) > TOKENS_MAX:
        raise QueryRefused(f"the question has more than {TOKENS_MAX} words\nhint: ask several smaller questions")
    for token in tokens[:-1]:
        if token.token_type == TokenType.SEMICOLON:
            raise QueryRefused(
                f"there is more than one statement (line {token.line}, column {token.col})\nhint: ask one at a time"
            )
    return tokens


def parsed(text: str, into: type[exp.Expr] | None = None) -> exp.Expr:
    """Return sqlglot's tree of a text, refused where it has none."""
    try:
        return sqlglot.parse_one(text, read=TacitSql, into=into) if into else sqlglot.parse_one(text, read=TacitSql)
    except Exception as error:  # noqa: BLE001 - see tokens_of
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> QueryRefused:
    where = ""
    if isinstance(error, RecursionError):
        return QueryRefused("the question is nested too deeply\nhint: split it, or use IN for a list of values")
    if isinstance(error, SqlglotError) and getattr(error, "errors", None):
        first = error.errors[0]  # type: ignore[attr-defined]
        width = max(len(str(first.get("highlight") or "")), 1)
        where = f" (line {first.get('line')}, column {max(1, int(first.get('col') or 1) - width + 1)})"
    return QueryRefused(
        f"the question cannot be read as SQL{where}\nhint: write text in 'single quotes', odd names in \"double\""
    )


class TacitSql(Dialect):
    """Standard SQL, without any engine's own syntax, and with NULL last in every ORDER BY."""

    NULL_ORDERING = "nulls_are_last"

    class Parser(parser.Parser):
        """sqlglot's parser without the functions whose arguments it would reorder."""

        FUNCTIONS: ClassVar = {name: made for name, made in parser.Parser.FUNCTIONS.items() if name not in PLAIN_NAMES}
