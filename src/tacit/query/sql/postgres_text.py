"""PostgreSQL's SQL as its clients write it: statements of a text, parameters, and the tables that a SELECT names.

A parameter becomes a constant in the parsed tree, never a part of a text. What leaves here is one SELECT in the words
of this language, read and checked later like any other, or a query of the catalog in DuckDB's words.

Queries of PostgreSQL's catalog in DuckDB's words, about tables of our own with the same names.

Clients ask the catalog which tables and columns exist. Only queries of these tables are written here, and only with
functions that read nothing else; any other one is refused.
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
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.query.sql.parse import in_our_words, tokens_of
from tacit.query.typecheck import TOKENS_MAX, limit_text

OWN = "pg"  # the schema of our tables and functions
SCHEMAS = {"pg_catalog": "pg", "information_schema": "info"}
_BARRED = (exp.Repeat, exp.Pad, exp.ReadCSV, exp.ReadParquet, exp.Command)
_OF_NOTHING = ("json_build_object", "row_to_json", "pg_sequence_parameters")  # asked of identities and sequences
_TEXTS = {"NAME", "REGROLE", "CHAR"}
_NUMBERS = {"OID", "XID", "CID"}


def catalog_sql(tree: exp.Expr, own: Collection[str], values: Mapping[str, str], declared: Collection[str]) -> str:
    """Return a query of the catalog in DuckDB's words.

    `own` are the names of our functions, `values` the words that stand for a text, such as current_user, and
    `declared` the tables of which an empty copy may be read.
    """
    if not isinstance(tree, exp.Query | exp.Values):
        raise _barred_query("this statement")
    for node in tree.find_all(*_BARRED):
        raise _barred_query(node.sql_names()[0] if isinstance(node, exp.Func) else "this form")
    if any(each.args.get("recursive") for each in tree.find_all(exp.With)):
        raise _barred_query("WITH RECURSIVE")
    made = tree.copy()
    names = {each.alias_or_name.lower() for each in made.find_all(exp.CTE)}
    known = {each.lower() for each in declared}
    try:
        for select in made.find_all(exp.Select):
            select.set("expressions", [_named(each) for each in select.expressions])
        for node in reversed(list(made.walk())):  # what is inside first
            new = _table(node, names, known) if isinstance(node, exp.Table) else _changed(node, own, values)
            if new is not node:
                node.replace(new)
        return made.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - every error here comes only from the text
        raise _barred_query("this form") from None


def _named(node: exp.Expr) -> exp.Expr:
    """Return a column of a SELECT under the name that PostgreSQL gives it."""
    if isinstance(node, exp.Alias | exp.Column | exp.Star):
        return node
    inner = node
    while isinstance(inner, exp.Cast | exp.Paren | exp.Dot | exp.Collate):
        inner = inner.expression if isinstance(inner, exp.Dot) else inner.this
    name = "?column?"
    if isinstance(inner, exp.Anonymous | exp.Column):
        name = str(inner.name).lower()
    elif isinstance(inner, exp.Func):
        name = "version" if isinstance(inner, exp.CurrentVersion) else inner.sql_names()[0].lower()
    elif isinstance(inner, exp.Literal) and isinstance(node, exp.Cast):
        name = node.to.sql(dialect="postgres").lower().rpartition(".")[2]
    return exp.alias_(node, name, quoted=True)


def _changed(node: exp.Expr, own: Collection[str], values: Mapping[str, str]) -> exp.Expr:
    if isinstance(node, exp.Column) and node.args.get("db") is not None:  # a table's own name is its alias
        node.set("db", None)
        node.set("catalog", None)
    inside = node.this if isinstance(node, exp.Collate) else None
    if isinstance(node, exp.Dot) and str(node.this.name).lower() in SCHEMAS:
        inside = node.expression
    if isinstance(inside, exp.Expr):
        return inside
    if isinstance(node, exp.Operator):
        return _operator(node)
    return _cast_of_postgres(node) if isinstance(node, exp.Cast) else _call(node, own, values)


def _table(node: exp.Table, defined: Collection[str], declared: Collection[str]) -> exp.Expr:
    name, schema = str(node.name).lower(), str(node.db).lower()
    if isinstance(
        node.this, exp.Explode | exp.ExplodingGenerateSeries
    ):  # unnest(list) x: PostgreSQL calls its one column by the same name
        node.set("db", None)
        name, columns = node.alias or "unnest", node.alias_column_names
        own = [exp.to_identifier(each) for each in columns or [name]]
        node.set("alias", exp.TableAlias(this=exp.to_identifier(name), columns=own))
        return node
    if not isinstance(node.this, exp.Identifier):
        raise _barred_query("a function in FROM")
    if not schema and name in defined:
        return node
    if schema in ("", "public") and name in declared:
        place = "public"
    else:
        place = SCHEMAS.get(schema or ("pg_catalog" if name.startswith("pg_") else ""), "")
    if not place:
        raise QueryRefused(f"the table '{name[:60]}' does not exist here\nhint: \\dt lists the tables")
    node.set("catalog", None)
    node.set("db", exp.to_identifier(place))
    node.set("this", exp.to_identifier(name, quoted=True))
    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return node


def _operator(node: exp.Operator) -> exp.Expr:
    sign = str(node.args.get("operator")).rpartition(".")[2]
    matched = exp.RegexpLike(this=node.this, expression=node.expression)
    kinds: dict[str, exp.Expr] = {
        "~": matched,
        "!~": exp.Not(this=matched),
        "=": exp.EQ(this=node.this, expression=node.expression),
        "<>": exp.NEQ(this=node.this, expression=node.expression),
        "~~": exp.Like(this=node.this, expression=node.expression),
    }
    if sign not in kinds:
        raise _barred_query(f"OPERATOR({sign[:5]})")
    return kinds[sign]


def _cast_of_postgres(node: exp.Cast) -> exp.Expr:
    """Return a cast to a type that only PostgreSQL has, by a function of ours."""
    kind = node.to.sql(dialect="postgres").upper().rpartition(".")[2].strip('"')
    if kind in ("REGCLASS", "REGTYPE", "REGPROC", "REGNAMESPACE"):
        is_named = isinstance(node.this, exp.Literal) and node.this.args.get("is_string")
        name = f"to_{kind.lower()}" if is_named else f"{kind.lower()}_name"
        return _own(name, [node.this])
    if kind in _NUMBERS:
        return exp.Cast(this=node.this, to=exp.DataType.build("BIGINT"))
    if kind in _TEXTS or kind == "TEXT":
        return exp.Cast(this=node.this, to=exp.DataType.build("TEXT"))
    if kind in ("REGCLASS[]", "OID[]", "INT2VECTOR", "OIDVECTOR"):
        return exp.Cast(this=node.this, to=exp.DataType.build("BIGINT[]", dialect="duckdb"))
    return node


def _call(node: exp.Expr, own: Collection[str], values: Mapping[str, str]) -> exp.Expr:
    """Return a call of a function of ours, or a text for a word that stands for one; others must be known."""
    if isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted"):
        return exp.Literal.string(values[node.name.lower()]) if node.name.lower() in values else node
    if not isinstance(node, exp.Func):
        return node
    written = [node.name] if isinstance(node, exp.Anonymous) else node.sql_names()
    names = [each.lower() for each in written]
    names += ["version"] if isinstance(node, exp.CurrentVersion) else []
    arguments = list(node.expressions if isinstance(node, exp.Anonymous) else node.iter_expressions())
    if names[0] == "current_setting" and arguments:
        return exp.Literal.string(values.get(f"setting {arguments[0].name.lower()}", ""))
    if names[0] in _OF_NOTHING:
        return exp.Null()
    if named := next((each for each in names if each in values), None):
        return exp.Literal.string(values[named])
    if named := next((each for each in names if each in own), None):
        return _own(named, arguments)
    if isinstance(node, exp.Anonymous):
        raise QueryRefused(
            f"the function '{names[0][:60]}' cannot be called here\nhint: \\dt lists the tables to ask about"
        )
    return node


def _own(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    call = exp.Anonymous(this=name, expressions=arguments)
    return exp.Dot(this=exp.to_identifier(OWN), expression=call)


def _barred_query(what: str) -> QueryRefused:
    words = f"{what} is not among the queries of the catalog that are answered here"
    return QueryRefused(f"{words}\nhint: ask a declared table for an aggregate, such as COUNT(*)")


_END = re.compile(r".+_(low|high)", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*|\S")
WORDS_CHARACTERS = 200  # of a statement, in which its first words are
PUBLIC_SCHEMA = "public"
StatementText = tuple[str, tuple[str, ...], int]  # from its first word on; the words; where it begins
Constant = None | bool | int | float | Fraction | str | date | datetime
_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")  # PostgreSQL takes them as names after AS
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
    """A statement of a client: its text and its tree.

    If it selects ends of intervals by name (`COUNT(*) AS n, n_low`), they are not in the tree: `shown` has a name and
    the column of the answer for each selected column.
    """

    text: str
    tree: exp.Expr
    shown: tuple[tuple[str, str], ...] = ()

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
        words = _tokens(text)
        upper = [*(each.text.upper() for each in words), ""]
        for at in range(len(words) - 1, 0, -1):  # from the end, so that places stay
            if upper[at] in _VERBS and upper[at - 1] == "AS" and upper[at + 1] in ("", ",", ")", "FROM"):
                text = f'{text[: words[at].start]}"{words[at].text}"{text[words[at].end + 1 :]}'
        try:
            tree = sqlglot.parse_one(text, read=DoorSql)
        except (Exception, RecursionError):  # noqa: BLE001 - as above
            raise _unread_sql() from None
        return cls(text, tree, _without_ends(tree))

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
        for ones in list(tree.find_all(exp.Sum)):  # how some tools count
            if isinstance(ones.this, exp.Literal) and ones.this.sql() == "1":
                ones.replace(exp.Count(this=exp.Star()))
        for node in tree.find_all(exp.Table, exp.Column):
            if str(node.args.get("db") or "").strip('"').lower() == PUBLIC_SCHEMA:
                node.set("db", None)
                node.set("catalog", None)
        return in_our_words(tree, "postgres")


def _without_ends(tree: exp.Expr) -> tuple[tuple[str, str], ...]:
    """Take bare names of ends, such as n_low, out of a SELECT that has an n; return the names of all its columns."""
    if not isinstance(tree, exp.Select):
        return ()
    group = tree.args.get("group")
    keys = {each.name for each in ([] if group is None else group.expressions)}
    items = [(each.alias_or_name, each.unalias()) for each in tree.expressions]
    bare = [item.name if isinstance(item, exp.Column) and not item.table else "" for _, item in items]
    computed = {name for (name, _), column in zip(items, bare, strict=True) if not column}
    ends = [_END.fullmatch(column) is not None and column not in keys for column in bare]
    ends = [is_end and column.rpartition("_")[0] in computed for is_end, column in zip(ends, bare, strict=True)]
    if not any(ends):
        return ()
    tree.set("expressions", [each for each, is_end in zip(tree.expressions, ends, strict=True) if not is_end])
    return tuple(
        (name, column if is_end else name) for (name, _), column, is_end in zip(items, bare, ends, strict=True)
    )


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
