"""PostgreSQL's SQL as its clients write it: statements of a text, parameters, and the tables that a SELECT names.

A parameter becomes a constant in the parsed tree, never a part of a text. What leaves here is one SELECT in the words
of this language, read and checked later like any other, or a query of the catalog in DuckDB's words.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.query.limits import TOKENS_MAX, limit_text
from tacit.query.sql.catalog_sql import catalog_sql
from tacit.query.sql.parse import in_our_words, tokens_of

_WORD = re.compile(r"[^\W\d]\w*|\S")
WORDS_CHARACTERS = 200  # of a statement, in which its first words are
PUBLIC_SCHEMA = "public"
StatementText = tuple[str, tuple[str, ...], int]  # from its first word on; the words; where it begins
Constant = None | bool | int | float | Fraction | str | date | datetime
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike)
_CAST_TO = {
    **dict.fromkeys((exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT), "int"),
    **dict.fromkeys((exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT), "float"),
    **dict.fromkeys((exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ), "timestamp"),
    exp.DataType.Type.DECIMAL: "decimal",
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.BOOLEAN: "bool",
}


class DoorSql(Postgres):
    """PostgreSQL's SQL with $1 as a parameter, also beside another; texts between dollars are not read."""

    class Tokenizer(Postgres.Tokenizer):
        """sqlglot's words."""

        HEREDOC_STRINGS: ClassVar = []
        SINGLE_TOKENS: ClassVar = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}
        VAR_SINGLE_TOKENS: ClassVar = set()


def _tokens(text: str) -> list[Token]:
    limit_text(text)
    try:
        found = sqlglot.tokenize(text, read=DoorSql)
    except Exception:  # noqa: BLE001 - every error here comes only from the text
        raise _unread_sql() from None
    if len(found) > TOKENS_MAX:
        raise QueryRefused(f"the question has more than {TOKENS_MAX} words\nhint: ask several smaller questions")
    return list(found)


def _unread_sql() -> QueryRefused:
    return QueryRefused("this cannot be read as PostgreSQL's SQL\nhint: send one SELECT, with text in 'single quotes'")


@dataclass(frozen=True)
class PostgresSelect:
    """A statement of a client: its text and its tree."""

    text: str
    tree: exp.Expr

    @staticmethod
    def statements(text: str) -> list[StatementText]:
        """Return the statements of a text, each with its first words in capitals and its beginning; no empty ones."""
        found: list[StatementText] = []
        words: list[Token] = []
        for token in [*_tokens(text), None]:
            if token is not None and token.token_type != TokenType.SEMICOLON:
                words.append(token)
            elif words:
                start = words[0].start
                own = text[start : words[-1].end + 1]
                first = tuple(each.upper() for each in _WORD.findall(own[:WORDS_CHARACTERS])[:4])
                found.append((own, first, start))
                words = []
        return found

    @staticmethod
    def setting(text: str) -> tuple[str, str] | None:
        """Return the name and the value of a SET; None if it has another form. DEFAULT is an empty value."""
        words = _tokens(text)
        if (
            words
            and words[0].text.upper() == "SET"
            and len(words) > 1
            and words[1].text.upper() in ("SESSION", "LOCAL")
        ):
            del words[1]
        at = next((at for at, each in enumerate(words) if each.text.upper() == "TO" or each.text == "="), None)
        if at is None or at == len(words) - 1:
            return None
        name = "".join(each.text for each in words[1:at]).lower()
        is_default = words[at + 1].token_type != TokenType.STRING and words[at + 1].text.upper() == "DEFAULT"
        value = "" if is_default else "".join(each.text for each in words[at + 1 :] if each.text != ";")
        return name, value

    @classmethod
    def read(cls, text: str) -> Self:
        """Return one statement as a tree; refuse a text that is not SQL."""
        _tokens(text)
        try:
            tree = sqlglot.parse_one(text, read=DoorSql)
        except (Exception, RecursionError):  # noqa: BLE001 - as above
            raise _unread_sql() from None
        return cls(text, tree)

    @property
    def is_empty(self) -> bool:
        """Whether it gives no row for any rows: LIMIT 0, or WHERE FALSE. Tools ask for columns with it."""
        limit, where = self.tree.args.get("limit"), self.tree.args.get("where")
        is_nothing = isinstance(limit, exp.Limit) and limit.expression.sql() == "0"
        condition = None if where is None else where.this.sql(dialect="postgres").replace(" ", "").upper()
        return isinstance(self.tree, exp.Select) and (is_nothing or condition in ("FALSE", "1=0", "0=1", "1=2"))

    def catalog_sql(
        self,
        constants: Sequence[Constant],
        own: Collection[str],
        words: Mapping[str, str],
        declared: Collection[str],
    ) -> str:
        """Return it as a query of the catalog in DuckDB's words."""
        return catalog_sql(self.with_constants(constants), own, words, declared)

    @property
    def is_query(self) -> bool:
        """Whether it is a SELECT, with or without WITH, UNION or VALUES."""
        return isinstance(self.tree, exp.Query | exp.Values)

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """The tables that it names, each with its schema; names that its WITH defines are left out."""
        own = {each.alias_or_name.lower() for each in self.tree.find_all(exp.CTE)}
        named = [(str(each.db).lower(), str(each.name)) for each in self.tree.find_all(exp.Table)]
        return tuple(dict.fromkeys(each for each in named if each[0] or each[1].lower() not in own))

    @property
    def parameters(self) -> int:
        """How many parameters it has: the largest of their numbers."""
        return max((_place_of(each) for each in self.tree.find_all(exp.Parameter)), default=0)

    def parameter_types(self, columns: Mapping[str, str]) -> list[str]:
        """Return the type that each parameter is compared with or cast to, by the types of columns; text otherwise."""
        found = ["text"] * self.parameters
        for each in self.tree.find_all(exp.Parameter):
            found[_place_of(each) - 1] = _expected(each, columns) or found[_place_of(each) - 1]
        return found

    def in_our_words(self, constants: Sequence[Constant] = ()) -> str:
        """Return it as a SELECT of this language; the client's own text if that has the same words.

        No constant can change the other words: those are the same with 'x' in place of each text.
        """
        if not self.parameters:
            return self._own_words
        written = self._written(constants)
        plain = self._written(["x" if isinstance(each, str) else each for each in constants])
        texts = {token.text for token in tokens_of(written) if token.token_type == TokenType.STRING}
        used = {each for each in constants[: self.parameters] if isinstance(each, str)}
        if _word_kinds(written) != _word_kinds(plain) or not used <= texts:
            raise QueryRefused("a parameter cannot be read safely here\nhint: write the value itself")
        return written

    @cached_property
    def _own_words(self) -> str:
        written = self._written(())
        return self.text if _words(self.text) == _words(written) else written

    def with_constants(self, constants: Sequence[Constant]) -> exp.Expr:
        """Return its tree with a constant in place of each parameter."""
        if len(constants) < self.parameters:
            raise QueryRefused(f"the statement has {self.parameters} parameters\nhint: send a value for each")
        if any(isinstance(each, str) and "\0" in each for each in constants):
            raise QueryRefused("a parameter has a NUL character\nhint: leave it out")

        def constant(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Cast) and isinstance(node.this, exp.Parameter):
                value = constants[_place_of(node.this) - 1]
                return _node(value) if _is_of(value, node.to.this) else node  # LIMIT takes a number, not a cast
            return _node(constants[_place_of(node) - 1]) if isinstance(node, exp.Parameter) else node

        return self.tree.transform(constant)

    def _written(self, constants: Sequence[Constant]) -> str:
        tree = self.with_constants(constants)
        for node in tree.find_all(exp.Table, exp.Column):
            if str(node.args.get("db") or "").strip('"').lower() == PUBLIC_SCHEMA:
                node.set("db", None)
                node.set("catalog", None)
        return in_our_words(tree, "postgres")


def _words(text: str) -> list[tuple[TokenType, str]]:
    """Return the words of a text; the case of a word that is not a text does not matter."""
    kept = [token for token in tokens_of(text) if token.token_type != TokenType.SEMICOLON]
    return [(each.token_type, each.text if each.token_type == TokenType.STRING else each.text.upper()) for each in kept]


def _word_kinds(text: str) -> list[TokenType]:
    return [token.token_type for token in tokens_of(text)]


def _place_of(node: exp.Expr) -> int:
    written = str(node.name)
    if not written.isascii() or not written.isdecimal() or not 0 < int(written) <= 1_000:
        raise QueryRefused("a parameter is written as a number, from $1 on\nhint: WHERE x = $1")
    return int(written)


def _expected(node: exp.Expr, columns: Mapping[str, str]) -> str | None:
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _CAST_TO.get(parent.to.this)
    if isinstance(parent, exp.Limit | exp.Offset):
        return "int"
    if isinstance(parent, _COMPARISONS):
        beside = (each for each in parent.find_all(exp.Column) if each.name in columns)
        return next((columns[each.name] for each in beside), None)
    return None


def _is_of(value: Constant, kind: object) -> bool:
    """Return whether a constant has the type that it is cast to already."""
    type = _CAST_TO.get(kind) if isinstance(kind, exp.DataType.Type) else None
    if isinstance(value, bool) or type is None:
        return isinstance(value, bool) and type == "bool"
    return type == "int" and isinstance(value, int)


def _node(value: Constant) -> exp.Expr:
    """Return a constant as a node."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, date):
        kind = exp.DataType.Type.TIMESTAMP if isinstance(value, datetime) else exp.DataType.Type.DATE
        return exp.Cast(this=exp.Literal.string(str(value)), to=exp.DataType(this=kind))
    amount: float | Fraction = -value if value < 0 else value
    written = exp.Literal.number(_digits(amount))
    return exp.Paren(this=exp.Neg(this=written)) if value < 0 else written


def _digits(value: float | Fraction) -> str:
    if not isinstance(value, Fraction):
        return repr(value)
    rest, places = value.denominator, 0
    while rest != 1 and places < 400:  # a decimal has a power of ten that clears its denominator
        places += 1
        rest = (value * 10**places).denominator
    if rest != 1:
        return repr(float(value))
    whole = str(int(value * 10**places)).rjust(places + 1, "0")
    return f"{whole[:-places]}.{whole[-places:]}" if places else whole
