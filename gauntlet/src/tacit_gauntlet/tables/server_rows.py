"""Rows that a PostgreSQL server keeps (S64, S65): one moment, each row once, and none left out that counts.

The server changes and breaks while it is read; what it need not send is checked against what it could. Where
PostgreSQL is not installed these cases wait.
"""

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.postgres_server import is_here

QUESTION = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t WHERE LENGTH(w) > 0 GROUP BY g"
MANY = """CREATE TABLE t (id int, g int, x int, w text);
    INSERT INTO t SELECT i % 900, i % 4, i % 7, repeat('w', 120) FROM generate_series(1, {rows}) i"""
CHANGE = "DELETE FROM t WHERE id % 2 = 0; INSERT INTO t SELECT -i, 1, 9, 'new' FROM generate_series(1, 999) i"
ODD = """CREATE TABLE t (id int, x int, b bool, d date, w text, y float8);
    INSERT INTO t SELECT i, nullif(i % 6, 4), (ARRAY[true, false, NULL])[i % 3 + 1],
    (ARRAY['2000-01-01', 'infinity', '-infinity', NULL, '4000-01-01', '20000-01-01', '0044-03-15 BC']::date[]
    )[i % 7 + 1],
    (ARRAY['a', 'A', 'é', NULL, 'it''s', repeat('x', 40000)])[i % 6 + 1], nullif(i % 5, 3)
    FROM generate_series(1, 420) i"""
FILTERS = (
    *("x = 3", "x <> 3", "x < 3 OR x >= 5", "x IN (1, 2, 40000000000)", "x IS NULL", "b", "b IS NULL OR x = 1"),
    *("d IS NULL", "d IS NOT NULL", "d >= DATE '2000-01-01'", "w = 'A'", "w IN ('a', 'é', 'it''s')"),
    *("w = 'a' OR y > 1", "(x = 1 OR x = 2) AND y > 1", "NOT (x = 1) AND b"),
)


def one_moment(size: Size) -> Evidence:
    """Change the table and end connections while it is read; the integers are those of before."""
    from tacit_gauntlet.stage import server_reads as stage

    broken: list[str] = []
    rows = 60_000 if size == "quick" else 400_000
    with stage.desk() as desk:
        desk.run(MANY.format(rows=rows))
        question = desk.ask(QUESTION)

        def ends() -> None:
            desk.run("DELETE FROM t WHERE id % 3 = 1")
            desk.end_reader()

        for readers in (1, 3):
            calm = stage.exact_of(question)
            with stage.several_readers(readers):
                if stage.exact_of(question) != calm:
                    broken.append(f"{readers} readers")
                for name, disturbed, act in (
                    ("changed before rows are read", stage.before_the_pages, lambda: desk.run(CHANGE)),
                    ("changed while rows are read", stage.at_the_first_batch, lambda: desk.run(CHANGE)),
                    ("a reader ended", stage.at_the_first_batch, ends),
                ):
                    before = stage.exact_of(question)
                    with disturbed(act) as done:
                        found = stage.exact_of(question)
                    if not done or found != before:
                        broken.append(f"{name}, {readers} readers")
    return Evidence(passed=not broken, details={"rows": rows, "other integers": broken})


def nothing_left_out(_: Size) -> Evidence:
    """Ask filters over odd cells, with and without what the server leaves out."""
    from tacit_gauntlet.stage import server_reads as stage

    lost: list[str] = []
    with stage.desk() as desk:
        desk.run(ODD)
        fewer = 0
        for text in FILTERS:
            question = desk.ask(f"SELECT COUNT(*) AS n FROM t WHERE {text}")
            found = stage.exact_of(question)
            fewer += stage.rows_sent(question) < 420
            with stage.server_sends_all():
                lost += [] if stage.exact_of(question) == found else [text]
    return Evidence(passed=not lost and fewer > 0, details={"filters": len(FILTERS), "fewer sent": fewer, "lost": lost})


if is_here():
    case("S64", title="a server's rows are those of one moment, each once, whatever breaks", feature="tables")(
        one_moment
    )
    case("S65", title="what a server need not send is no row that counts", feature="tables")(nothing_left_out)
