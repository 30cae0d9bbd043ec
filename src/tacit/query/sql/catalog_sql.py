"""Queries of PostgreSQL's catalog in DuckDB's words, about tables of our own with the same names.

Clients ask the catalog which tables and columns exist. Only queries of these tables are written here, and only with
functions that read nothing else; any other one is refused.
"""

from collections.abc import Collection, Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from tacit.errors import QueryRefused

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
