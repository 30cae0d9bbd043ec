"""Parses SQL text with sqlglot, for both doors, and writes SQL of ours, in DuckDB's spelling, for another database.

Databases escape texts and names by different rules. So the written SQL is read again by the other database's grammar,
and is refused unless its texts and names are the same as before.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import sqlglot
from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.nodes import Expression
from tacit.query.sql.expressions import PLAIN_NAMES, Reader
from tacit.query.sql.shorthand import within_group
from tacit.query.typecheck import DEPTH_MAX, SELECTS_MAX, TOKENS_MAX, limit_expression, limit_text


def read_node(reader: Reader, node: exp.Expr) -> Expression:
    """Return what a reader makes of a node; refuse one that is too deep or too large."""
    try:
        expression = reader.read(node)
    except RecursionError:
        raise QueryRefused(
            f"an expression is nested more than {DEPTH_MAX} deep\nhint: split the question, or use IN for a list"
        ) from None
    limit_expression(expression)
    return expression


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of one statement; refuse a text with too many tokens, or with a second statement."""
    tokens = _all_tokens(text)
    for token in tokens[:-1]:
        if token.token_type == TokenType.SEMICOLON:
            raise QueryRefused(
                f"there is more than one statement (line {token.line}, column {token.col})\nhint: ask one at a time"
            )
    return tokens


def statements(text: str) -> list[str]:
    """Return the statements of a text, which end with semicolons."""
    ends = [token for token in _all_tokens(text) if token.token_type == TokenType.SEMICOLON]
    starts = [0, *(token.end + 1 for token in ends)]
    found = [text[start:end] for start, end in zip(starts, [*(token.start for token in ends), len(text)], strict=True)]
    return [each for each in found if each.strip()]


def _all_tokens(text: str) -> list[Token]:
    limit_text(text)
    try:
        tokens = sqlglot.tokenize(text, read=TacitSql)
    except Exception as error:  # noqa: BLE001 - every error here comes only from the question's text
        raise _unreadable(error) from None
    if len(tokens) > TOKENS_MAX:
        raise QueryRefused(f"the question has more than {TOKENS_MAX} words\nhint: ask several smaller questions")
    if sum(token.token_type == TokenType.SELECT for token in tokens) > SELECTS_MAX:
        raise QueryRefused(f"the question has more than {SELECTS_MAX} SELECTs\nhint: ask several smaller questions")
    return tokens


def parsed(text: str, into: type[exp.Expr] | None = None) -> exp.Expr:
    """Return sqlglot's tree of a text, or refuse it."""
    try:
        return sqlglot.parse_one(text, read=TacitSql, into=into) if into else sqlglot.parse_one(text, read=TacitSql)
    except Exception as error:  # noqa: BLE001 - see tokens_of
        raise _unreadable(error) from None


def from_dialect(text: str, dialect: str) -> str:
    """Return a question of another engine in the words of this language; functions mean what the catalogue says."""
    known = sorted(name for name in Dialect.classes if name and name not in _OURS)
    if not isinstance(dialect, str) or dialect.lower() not in known:
        raise QueryRefused(f"there is no dialect '{str(dialect)[:40]}'\nhint: the dialects are {', '.join(known)}")
    limit_text(text)
    try:
        statements = [each for each in sqlglot.parse(text, read=dialect.lower()) if each is not None]
    except Exception as error:  # noqa: BLE001 - see tokens_of
        raise _unreadable(error) from None
    return "; ".join(in_our_words(each, dialect) for each in statements)


def in_our_words(statement: exp.Expr, dialect: str) -> str:
    """Return a statement of another engine in the words of this language."""
    try:
        return _plain_tokens(statement).sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    except QueryRefused:
        raise
    except UnsupportedError as error:
        raise QueryRefused(
            f"a part of this question cannot be translated from {dialect}: {str(error)[:200]}\nhint: write that "
            "part without dialect=, in the words of this language"
        ) from None
    except Exception as error:  # noqa: BLE001 - see tokens_of
        raise _unreadable(error) from None


# How an engine treats a NULL, a 0 or bytes, where sqlglot would write it out; here the catalogue defines their meaning.
_MANNERS = frozenset(
    {"binary", "negative_length_returns_empty", "null_on_zero_variance", "zero_on_all_null", "zero_start"}
)


def _plain_tokens(statement: exp.Expr) -> exp.Expr:
    """Return a statement of another engine without what sqlglot would write in words that are not in the language."""
    for node in list(statement.walk(bfs=False)):
        for manner in _MANNERS.intersection(node.args):
            node.set(manner, None)
        if isinstance(node, exp.Greatest | exp.Least):
            node.set("ignore_nulls", True)
        elif isinstance(node, exp.WithinGroup):
            node.replace(within_group(node))
        elif isinstance(node, exp.Round) and _is_number_of_any_digits(node.this):
            node.set("this", node.this.this)
    return statement


def _is_number_of_any_digits(node: object) -> bool:
    """Whether a value is cast to NUMERIC without digits, as PostgreSQL needs it to round; here it changes no value."""
    return isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DECIMAL and not node.to.expressions


@contextmanager
def reading_as(text: str, dialect: str | None) -> Iterator[str]:
    """Lend the text to read; a refusal of a text that was translated shows the translation, which its lines are of."""
    if not isinstance(text, str):
        raise QueryRefused(f"a question must be text, not {type(text).__name__}\nhint: sql('SELECT COUNT(*) ...')")
    if dialect is None:
        yield text
        return
    translated = from_dialect(text, dialect)
    try:
        yield translated
    except QueryRefused as error:
        raise QueryRefused(f"{error}\nread from {dialect} as: {translated}") from None


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


_OURS = ("tacitsql", "doorsql")


class TacitSql(Dialect):
    """Standard SQL, without any engine's own syntax, and with NULL last in every ORDER BY."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        """sqlglot's words, and // and ** as operators."""

        KEYWORDS: ClassVar = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV, "**": TokenType.DSTAR}

    class Parser(parser.Parser):
        """sqlglot's parser without the functions with arguments that it would reorder."""

        FUNCTIONS: ClassVar = {name: made for name, made in parser.Parser.FUNCTIONS.items() if name not in PLAIN_NAMES}
        EXPONENT: ClassVar = {**parser.Parser.EXPONENT, TokenType.DSTAR: exp.Pow}


# --- SQL of ours, for other databases ---


# The databases that SQL is written for; in the tests, the first four of them also run it.
DIALECTS = ("duckdb", "postgres", "sqlite", "spark", "snowflake", "bigquery", "mysql")
# Spark puts a setting's value in place of this before it reads a statement, also inside a text.
_SPARK_SETTING = "${"


def quoted_name(name: str) -> str:
    """Return a name in double quotes, as DuckDB, PostgreSQL, SQLite and Snowflake read it."""
    return '"' + name.replace('"', '""') + '"'


def in_dialect(sql: str, dialect: str | None) -> str:
    """Return SQL of DuckDB as another database reads it; refuse text that cannot be escaped safely there.

    None means an unknown database: a backslash, which databases read in different ways, is refused then.

    >>> in_dialect("name IN ('x\\\\', 'it''s')", "spark")
    "name IN ('x\\\\\\\\', 'it\\\\'s')"
    """
    if dialect is None and "\\" in sql:
        raise QueryRefused(
            "a name or a listed value has a backslash, which databases read in different ways"
            "\nhint: name the database, e.g. dialect='duckdb' or dialect='snowflake' (--dialect snowflake)"
        )
    if dialect is not None:
        refuse_unknown(dialect)
    if "\0" in sql:
        raise QueryRefused("a name or a listed value has a NUL character, which databases cannot read in SQL")
    if dialect in (None, "duckdb"):
        return sql
    if dialect == "spark" and _SPARK_SETTING in sql:
        raise QueryRefused(
            "a name or a listed value contains '${', which Spark replaces by a setting before it reads the SQL"
            "\nhint: predict in Python instead, or rename the value"
        )
    read = sqlglot.parse_one(sql, read="duckdb")
    if dialect == "sqlite" and any("TIMESTAMP" in str(each.to) for each in read.find_all(exp.Cast)):
        raise QueryRefused("SQLite has no type for times, and this model lists some\nhint: predict in Python instead")
    try:
        written: str = read.sql(dialect=dialect, unsupported_level=ErrorLevel.RAISE)
        same = _texts_and_names(sqlglot.parse_one(written, read=dialect)) == _texts_and_names(read)
    except SqlglotError:
        same = False
    if not same:
        raise QueryRefused(f"this model cannot be written safely for {dialect}\nhint: predict in Python instead")
    return written


def refuse_unknown(dialect: object) -> None:
    """Refuse a database with unknown rules."""
    if dialect not in DIALECTS:
        shown = f"'{dialect}'" if isinstance(dialect, str) else f"a {type(dialect).__name__}"
        raise QueryRefused(f"SQL is not written for {shown}{did_you_mean(dialect, DIALECTS)}")


def _texts_and_names(tree: object) -> tuple[Counter[str], set[str], set[str]]:
    """Return the texts of a statement, its names and its tables."""
    if not isinstance(tree, exp.Expr):
        return Counter(), set(), set()
    texts = Counter(str(each.this) for each in tree.find_all(exp.Literal) if each.is_string)
    names = {str(each.this) for each in tree.find_all(exp.Identifier)}
    return texts, names, {each.name for each in tree.find_all(exp.Table)}
