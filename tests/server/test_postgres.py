"""PostgreSQL's protocol: who comes in, what each statement gives, and what it costs."""

import asyncio
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tacit.server.postgres.settings import Settings
from tacit.server.watching import Watching
from tests.server.conftest import House
from tests.server.postgres_client import (
    BOOL,
    DATE,
    EPSILON,
    FLOAT8,
    INT8,
    NUMERIC,
    TEXT,
    Port,
    Reply,
    ask,
    bind,
    charges,
    packed,
    parse,
    talk,
    text,
)

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


async def until_charged(house: House) -> None:
    while not charges(house):  # noqa: ASYNC110 - the charge is made in another thread
        await asyncio.sleep(0.01)


# ---- what a statement gives ------------------------------------------------------------------------------------------


def test_a_select_gives_intervals_and_the_lines_below_as_notices(house: House) -> None:
    (reply,) = ask(house, COUNT)
    assert reply.columns == [("ward", TEXT), ("n", INT8), ("n_low", INT8), ("n_high", INT8)]
    assert [row[0] for row in reply.rows] == ["A", "B", "C"]
    assert all(int(low) <= int(n) <= int(high) for _, n, low, high in reply.rows)
    assert reply.tags == ["SELECT 3"]
    assert "95 % probability" in reply.notices[0]
    assert reply.notices[-1].startswith("Spent ε 1; ε 19 is left")


def test_the_same_select_again_is_free_and_has_the_same_numbers_at_each_door(house: House) -> None:
    first, second = ask(house, COUNT, COUNT.lower().replace("as n", "n"))
    over_http = house.ask({"sql": COUNT, "epsilon": "1"}).json()
    assert second.rows == first.rows
    assert [[str(cell) for cell in row] for row in over_http["cells"]["rows"]] == [list(row) for row in first.rows]
    assert "Free" in second.notices[-1]
    assert charges(house) == 1


def test_an_outcome_after_a_charge_leaves_at_a_tick_and_a_refusal_at_once(house: House) -> None:
    ask(house, COUNT)
    assert house.clock.slept[-1] > 0
    before = house.clock.time
    ask(house, COUNT)  # a stored answer too
    assert house.clock.time == before + 2
    before = house.clock.time
    ask(house, "SELECT nosuch FROM visits", "SELECT * FROM visits LIMIT 100", "SELECT 1", f"EXPLAIN {COUNT}")
    assert house.clock.time == before


@pytest.mark.parametrize(
    ("sql", "words", "place"),
    [
        ("SELECT * FROM visits LIMIT 100", "* is not in the language", "8"),
        ("SELECT nosuch FROM visits", "there is no column 'nosuch'", "8"),
        ("SELECT 1; SELECT COUNT(*) FROM visits WHERE wardd = 'A'", "there is no column 'wardd'", "45"),
        ("SELECT\n  *\nFROM public.visits", "* is not in the language", ""),
        ("SELECT COUNT(*) FROM nowhere", "the table 'nowhere' does not exist here", ""),
        ("SELECT FROM WHERE", "cannot be read", ""),
        ("DELETE FROM visits", "DELETE is not a statement of this server", ""),
        ("COPY visits TO STDOUT", "COPY is not a statement of this server", ""),
        (f"EXPLAIN ANALYZE {COUNT}", "EXPLAIN ANALYZE would answer the question", ""),
        ("EXPLAIN SELECT 1", "only a question about a declared table has a plan", ""),
        ("SELECT COUNT(*) FROM visits WHERE days > $1", "a parameter needs a value", ""),
        ("SET ROLE ben", "another person cannot be chosen here", ""),
        ("SET tacit.epsilom = 1", "the setting 'tacit.epsilom' is unknown", ""),
        ("SHOW nosuch", "the setting 'nosuch' is unknown", ""),
        ("SELECT pg_read_file('/etc/passwd')", "the function 'pg_read_file' cannot be called", ""),
    ],
)
def test_a_refusal_is_an_error_with_a_hint_and_a_position_and_costs_nothing(
    house: House, sql: str, words: str, place: str
) -> None:
    *_, reply = ask(house, sql)
    assert words in reply.error["M"]
    assert reply.error["S"] == "ERROR"
    assert reply.error["H"]
    assert reply.error.get("P", "") == place
    assert reply.kinds.endswith(b"Z")
    assert charges(house) == 0


def test_without_an_amount_the_hint_is_in_the_words_of_this_door(house: House) -> None:
    (reply,) = ask(house, COUNT, options="")
    assert "SET tacit.epsilon" in reply.error["H"]
    assert charges(house) == 0


def test_amounts_are_settings_of_a_connection(house: House) -> None:
    replies = ask(
        house,
        "SET tacit.epsilon = 0.5; SHOW tacit.epsilon",
        COUNT,
        "SET tacit.error TO 100; SHOW tacit.epsilon; SHOW tacit.error",
        COUNT,
        "RESET ALL; SHOW tacit.error",
    )
    assert replies[0].rows == [("0.5",)]
    assert "Spent ε 0.5" in replies[1].notices[-1]
    assert replies[2].rows == [("",), ("100",)]
    assert not replies[3].error
    assert replies[4].rows == [("",)]


def test_explain_is_the_plan_that_http_gives(house: House) -> None:
    (reply,) = ask(house, f"EXPLAIN {COUNT}")
    plan = house.send("POST", "/api/v1/tables/visits/plan", json={"sql": COUNT, "epsilon": "1"}).json()
    assert "\n".join(line for (line,) in reply.rows) == plan["text"]
    assert charges(house) == 0


def test_transactions_and_harmless_settings_do_nothing(house: House) -> None:
    async def dialogue(port: Port) -> list[bytes]:
        client = await port.signed_in(**EPSILON)
        said = ["BEGIN", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a", "SELECT nosuch FROM visits", "COMMIT", "DISCARD ALL"]
        said += ["SET extra_float_digits = 3", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", ""]
        return [(await client.ask(each)).all(b"Z")[0] for each in said]

    assert talk(house, dialogue) == [b"T", b"T", b"T", b"T", b"I", b"I", b"I", b"I", b"I"]


def test_a_person_sees_and_asks_only_their_own_tables(house: House) -> None:
    for sql in ("SELECT COUNT(*) AS n FROM pay", "SELECT COUNT(*) FROM visits JOIN pay USING (patient)"):
        own, absent = ask(house, sql, sql.replace("pay", "nowhere"), token="tacit_ben", user="ben")
        assert own.error["M"].replace("pay", "nowhere") == absent.error["M"]
    listed = "SELECT relname FROM pg_class WHERE relkind = 'r'"
    assert ask(house, listed, token="tacit_ben", user="ben")[0].rows == [("visits",)]
    assert ask(house, listed)[0].rows == [("visits",), ("pay",)]
    (reply,) = ask(house, COUNT, token="tacit_audit", user="dora")
    assert "auditor" in reply.error["M"]
    assert charges(house) == 0


# ---- prepared statements ---------------------------------------------------------------------------------------------


def prepare(house: House, sql: str, *values: bytes | None, **given: Any) -> Reply:
    async def dialogue(port: Port) -> Reply:
        client = await port.signed_in(**EPSILON)
        return await client.prepared(sql, values, **given)

    return talk(house, dialogue)


def test_a_prepared_question_is_described_before_it_is_charged(house: House) -> None:
    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        sql = "SELECT ward, AVG(days) AS m FROM visits WHERE days > $1 AND ward <> $2 GROUP BY ward LIMIT $3"
        reply = await client.send(parse(sql, "s"), packed(b"D", b"S" + text("s")))
        assert struct.unpack("!h3I", reply.all(b"t")[0])[1:] == (INT8, TEXT, INT8)
        assert reply.columns == [("ward", TEXT), ("m", FLOAT8), ("m_low", FLOAT8), ("m_high", FLOAT8)]
        assert charges(house) == 0
        execute = packed(b"E", text("") + struct.pack("!i", 0))
        first = await client.send(bind([b"1", b"A", b"2"], "s"), execute)
        again = await client.send(bind([b"1", b"A", b"2"], "s"), execute)
        assert [row[0] for row in first.rows] == ["A", "B"]
        assert again.rows == first.rows
        assert "Free" in again.notices[-1]

    talk(house, dialogue)
    assert charges(house) == 1


@pytest.mark.parametrize(
    ("value", "type", "binary"),
    [
        (b"2", INT8, False),
        (struct.pack("!q", 2), INT8, True),
        (struct.pack("!i", 2), 23, True),
        (struct.pack("!h", 2), 21, True),
        (b"2", 0, False),
        (b"2.0", NUMERIC, False),
        (struct.pack("!hhhhh", 1, 0, 0, 0, 2), NUMERIC, True),
    ],
)
def test_a_parameter_is_the_same_constant_in_each_of_its_forms(
    house: House, value: bytes, type: int, binary: bool
) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE days = $1"
    reply = prepare(house, sql, value, types=[type], formats=[int(binary)])
    over_http = house.ask({"sql": sql.replace("$1", "2"), "epsilon": "1"}).json()
    assert [str(cell) for cell in over_http["cells"]["rows"][0]] == list(reply.rows[0])
    assert over_http["facts"]["free"] or charges(house) == 1


@pytest.mark.parametrize(
    "value",
    [
        "A' OR '1'='1",
        "A'; DROP TABLE visits; --",
        "'",
        "\\'",
        "\\",
        "--",
        "/*",
        "$1",
        '"',
        "é\u2028",
        "A\nB",
        "%",
        "x" * 900,
    ],
)
def test_a_text_parameter_is_never_more_than_a_text(house: House, value: str) -> None:
    reply = prepare(house, "SELECT COUNT(*) AS n FROM visits WHERE ward = $1", value.encode())
    assert not reply.error
    assert int(reply.rows[0][0]) < 100  # such a ward has no rows, and all have 600: wrong with probability e^-100
    entry = [each for each in house.desk.ledger.entries() if each.kind == "charge"][-1]
    assert entry.record["about"].count("COUNT") == 1
    assert "OR" not in entry.record["about"].replace(value, "").replace(value.replace("'", "''"), "")


@pytest.mark.parametrize(
    ("value", "type", "binary"),
    [
        (b"x", INT8, False),
        (b"xx", INT8, True),
        (b"9" * 500, NUMERIC, False),
        (b"NaN", FLOAT8, False),
        (b"\xff", TEXT, True),
        (b"A\0B", TEXT, False),
        (b"2020-02-30", DATE, False),
        (b"maybe", BOOL, False),
        (b"1", 3802, False),
    ],
)
def test_a_parameter_that_is_not_of_its_type_is_refused(house: House, value: bytes, type: int, binary: bool) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE ward = $1"

    async def dialogue(port: Port) -> Reply:
        client = await port.signed_in(**EPSILON)
        execute = packed(b"E", text("") + struct.pack("!i", 0))
        return await client.send(parse(sql, types=[type]), bind([value], formats=[int(binary)]), execute)

    reply = talk(house, dialogue)
    assert "parameter" in reply.error["M"]
    assert reply.kinds.endswith(b"Z")
    assert charges(house) == 0


def test_cells_leave_in_binary_if_they_are_wanted_so(house: House) -> None:
    async def dialogue(port: Port) -> list[list[bytes | None]]:
        client = await port.signed_in(**EPSILON)
        sql = "SELECT ward, COUNT(*) AS n, AVG(days) AS m FROM visits GROUP BY ward"
        plain = await client.prepared(sql)
        packed_ = await client.prepared(sql, results=[1])
        from tests.server.postgres_client import row_of

        for row, cells in zip(plain.rows, (row_of(body) for body in packed_.all(b"D")), strict=True):
            assert cells[0] == row[0].encode()
            assert struct.unpack("!q", cells[1] or b"")[0] == int(row[1])
            assert struct.unpack("!d", cells[4] or b"")[0] == float(row[4])
        return []

    talk(house, dialogue)


def test_rows_come_in_portions_if_they_are_wanted_so(house: House) -> None:
    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        await client.ask("BEGIN")
        two = packed(b"E", text("p") + struct.pack("!i", 2))
        first = await client.send(parse(COUNT), bind(portal="p"), two)
        rest = await client.send(two)
        assert (first.kinds, rest.kinds) == (b"12NNDDsZ", b"DCZ")
        assert charges(house) == 1
        assert (await client.ask("COMMIT")).all(b"Z") == [b"I"]
        assert "an open result" in (await client.send(two)).error["M"]

    talk(house, dialogue)


def test_a_cursor_is_charged_when_its_first_rows_are_fetched_and_ends_with_its_transaction(house: House) -> None:
    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        await client.ask("BEGIN")
        made = await client.ask(f'DECLARE "my c" NO SCROLL CURSOR WITHOUT HOLD FOR {COUNT}')
        assert (made.tags, charges(house)) == (["DECLARE CURSOR"], 0)
        first = await client.ask('FETCH FORWARD 2 FROM "my c"')
        assert (first.tags, len(first.rows), charges(house)) == (["FETCH 2"], 2, 1)
        assert "95 % probability" in first.notices[0]
        assert [(await client.ask('fetch "my c"')).tags, (await client.ask('FETCH ALL IN "my c"')).tags] == [
            ["FETCH 1"],
            ["FETCH 0"],
        ]
        await client.ask(f"DECLARE held CURSOR WITH HOLD FOR {COUNT}")
        await client.ask("COMMIT")
        assert "an open result" in (await client.ask('FETCH "my c"')).error["M"]
        assert (await client.ask("MOVE 1 FROM held")).tags == ["MOVE 1"]
        assert len((await client.prepared("FETCH ALL FROM held")).rows) == 2
        assert (await client.ask("CLOSE held")).tags == ["CLOSE CURSOR"]
        assert "an open result" in (await client.ask("FETCH held")).error["M"]
        assert charges(house) == 1

    talk(house, dialogue)


CURSORS = [
    "DECLARE c CURSOR FOR SET tacit.epsilon = 1",
    "DECLARE c CURSOR FOR DECLARE d CURSOR FOR SELECT 1",
    "DECLARE c CURSOR FOR FETCH c",
    f"DECLARE c BINARY CURSOR FOR {COUNT}",
    f"DECLARE c CURSOR FOR EXPLAIN {COUNT}",
    "DECLARE c CURSOR FOR ",
    f"DECLARE c {'CURSOR ' * 9000} {COUNT}",
    "FETCH BACKWARD 1 FROM c",
    f"FETCH {' ' * 90_000}!",
    "FETCH",
]


@pytest.mark.parametrize("sql", CURSORS, ids=[each[:40] for each in CURSORS])
def test_a_cursor_of_something_else_is_refused(house: House, sql: str) -> None:
    *_, reply = ask(house, "BEGIN", sql)
    assert reply.error["H"]
    assert charges(house) == 0


def test_a_fetch_of_itself_ends(house: House) -> None:
    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        await client.ask("BEGIN")
        run = packed(b"E", text("p") + struct.pack("!i", 0))
        reply = await client.send(parse("FETCH 1 FROM p"), bind(portal="p"), run)
        assert "a cursor is of a SELECT" in reply.error["M"]

    talk(house, dialogue)


def test_a_sum_of_ones_counts_and_verbs_are_names_after_as(house: House) -> None:
    counted, summed, named = ask(house, COUNT, COUNT.replace("COUNT(*)", "SUM(1)"), "SELECT 1 AS select, 2 AS update")
    assert summed.rows == counted.rows
    assert [name for name, _ in named.columns] == ["select", "update"]


def test_after_an_error_messages_are_left_unread_until_sync(house: House) -> None:
    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        execute = packed(b"E", text("") + struct.pack("!i", 0))
        reply = await client.send(parse("SELECT nosuch FROM"), bind(), execute, parse(COUNT), bind(), execute)
        assert reply.kinds == b"EZ"
        assert charges(house) == 0
        assert (await client.send(parse(""), bind(), execute)).kinds == b"12IZ"
        assert (await client.send(packed(b"C", b"S" + text("none")))).kinds == b"3Z"

    talk(house, dialogue)


def test_too_many_prepared_statements_are_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.postgres.dialogue.KEPT_MAX", 3)

    async def dialogue(port: Port) -> list[bytes]:
        client = await port.signed_in()
        return [(await client.send(parse("SELECT 1", f"s{number}"))).kinds for number in range(5)]

    assert talk(house, dialogue) == [b"1Z", b"1Z", b"1Z", b"EZ", b"EZ"]


# ---- cancelling, and other connections -------------------------------------------------------------------------------


def test_a_cancelled_statement_ends_at_once_and_its_question_is_charged_and_then_free(house: House) -> None:
    let = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await let.wait()

    house.desk.sleep = sleep

    async def dialogue(port: Port) -> None:
        client, other = await port.signed_in(**EPSILON), await port.signed_in("tacit_cleo", user="cleo")
        client.writer.write(packed(b"Q", text(COUNT)))
        await until_charged(house)
        assert (await other.ask("SELECT 1")).rows == [("1",)]  # no wait of one connection is another's
        for secret in (b"\0\0\0\0", client.key[4:]):
            canceller = await port.connect()
            canceller.writer.write(struct.pack("!ihh", 16, 1234, 5678) + client.key[:4] + secret)
            assert await canceller.reader.read() == b""
        reply = await client.until()
        assert (reply.error["C"], reply.kinds) == ("57014", b"EZ")
        let.set()
        again = await client.ask(COUNT)
        assert "Free" in again.notices[-1]

    talk(house, dialogue)
    assert charges(house) == 1


def test_a_client_that_goes_away_was_charged_once(house: House) -> None:
    let = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await let.wait()

    house.desk.sleep = sleep

    async def dialogue(port: Port) -> None:
        client = await port.signed_in(**EPSILON)
        client.writer.write(packed(b"Q", text(COUNT)))
        await until_charged(house)
        await client.close()
        let.set()
        again = await (await port.signed_in(**EPSILON)).ask(COUNT)
        assert len(again.rows) == 3

    talk(house, dialogue)
    assert charges(house) == 1


def test_statements_are_counted_and_logged_like_requests_and_no_word_of_them_is(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    watching = Watching()
    caplog.set_level("INFO", logger="tacit.server.requests")

    async def dialogue(port: Port) -> None:
        await (await port.connect()).sign_in("tacit_wrong")
        client = await port.signed_in(**EPSILON)
        for each in (COUNT, "SELECT nosuch FROM visits", "SELECT 'secret words'"):
            await client.ask(each)

    talk(house, dialogue, watching=watching)
    counts = watching.text()
    assert 'tacit_requests_total{method="any",route="postgres",status="200"} 3' in counts
    assert 'tacit_requests_total{method="any",route="postgres",status="401"} 1' in counts
    assert 'tacit_problems_total{kind="refused"} 1' in counts
    assert "secret words" not in caplog.text
    assert "tacit_ada" not in caplog.text


def test_settings_are_few_and_short() -> None:
    settings = Settings()
    with pytest.raises(Exception, match="too long"):
        settings.set("application_name", "x" * 2_000)
    for number in range(100):
        settings.set(f"a.b{number}", "x")
    with pytest.raises(Exception, match="one too many"):
        settings.set("a.b100", "x")


def test_no_rows_at_all_look_like_any_rows(open_house: Callable[..., House], folder: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"patient": pa.int64(), "ward": pa.string(), "days": pa.int64()}
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in kinds.items()}), folder / "visits.parquet")
    (reply,) = ask(open_house(), COUNT)
    assert reply.columns == [("ward", TEXT), ("n", INT8), ("n_low", INT8), ("n_high", INT8)]
    assert len(reply.rows) == 3
    assert Fraction(reply.rows[0][2] or 0) <= 0


def test_the_ends_of_an_interval_can_be_selected_by_name_as_a_chart_does(house: House) -> None:
    sql = "SELECT n_high AS top, ward, COUNT(*) AS n, n_low FROM public.visits GROUP BY ward ORDER BY n DESC LIMIT 9"

    async def dialogue(port: Port) -> list[Reply]:
        client = await port.signed_in(**EPSILON)
        simple = [await client.ask(each) for each in (COUNT, sql)]
        wrong = "SELECT MODE(ward) AS m, m_low FROM visits"
        return [*simple, await client.prepared(sql), await client.ask("EXPLAIN " + sql), await client.ask(wrong)]

    first, named, prepared, plan, wrong = talk(house, dialogue)
    assert named.columns == prepared.columns == [("top", INT8), ("ward", TEXT), ("n", INT8), ("n_low", INT8)]
    assert sorted(named.rows) == sorted((high, ward, n, low) for ward, n, low, high in first.rows)
    assert len(prepared.rows) == 3
    assert plan.columns == [("QUERY PLAN", TEXT)]
    assert "m_low" in wrong.error["M"]
    assert charges(house) == 1  # a wrong name is refused before a charge


def test_a_text_is_read_once_for_a_person_and_again_for_another(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.query import PostgresSelect

    read: list[str] = []
    usual = PostgresSelect.read
    monkeypatch.setattr(PostgresSelect, "read", lambda text: [read.append(text), usual(text)][1])
    monkeypatch.setattr("tacit.server.postgres.statements.READ_MAX", 4)

    async def dialogue(port: Port) -> None:
        ada, ben = await port.signed_in(), await port.signed_in("tacit_ben", user="ben")
        for client in (ada, ada, ben, ben):
            assert (await client.ask("SELECT 1")).rows == [("1",)]
        assert len(read) == 2
        for number in range(9):
            await ada.ask(f"SELECT {number}")
        kept = port.door.statements._read
        assert len(kept) == 4
        await ada.ask(f"SELECT '{'x' * 5_000}'")
        assert all(len(text) < 100 for _, _, text in kept)

    talk(house, dialogue)
