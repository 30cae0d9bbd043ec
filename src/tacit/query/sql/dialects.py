"""Writes SQL of ours, in DuckDB's spelling, for another database: texts and names are escaped by its rules.

Rules differ: in some databases a backslash escapes inside a text, and a name in double quotes is a text. The written
SQL is read again by the other database's grammar: its texts and names have to be the same as before, or the SQL is
refused. DuckDB, PostgreSQL, SQLite and Spark run such SQL in the tests; the other grammars only read it.
"""

from collections import Counter

from tacit.errors import QueryRefused, did_you_mean

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
    import sqlglot
    from sqlglot import errors, exp

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
        written: str = read.sql(dialect=dialect, unsupported_level=errors.ErrorLevel.RAISE)
        same = _texts_and_names(sqlglot.parse_one(written, read=dialect)) == _texts_and_names(read)
    except errors.SqlglotError:
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
    from sqlglot import exp

    if not isinstance(tree, exp.Expr):
        return Counter(), set(), set()
    texts = Counter(str(each.this) for each in tree.find_all(exp.Literal) if each.is_string)
    names = {str(each.this) for each in tree.find_all(exp.Identifier)}
    return texts, names, {each.name for each in tree.find_all(exp.Table)}
