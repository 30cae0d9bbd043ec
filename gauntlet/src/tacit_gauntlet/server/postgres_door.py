"""PostgreSQL's door: lock-out, parameters, the clock, browsing and made-up messages (W23 to W26)."""

import asyncio
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.postgres_lines import Draw, Line, at_the_door, cells, packed, prepared, words
from tacit_gauntlet.stage.server import ROWS, Server, T, engine_takes, servers, token_of

COUNT = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
SPENDS = {"options": "-c tacit.epsilon=0.1"}
TABLES = dict.fromkeys(("t", "u"), ROWS)
# texts that would change a SELECT if they were pasted into it
HOSTILE = (
    "a' OR '1' = '1",
    "a' OR 1=1 --",
    "\\' OR 1=1 --",
    "\\",
    "'",
    "''",
    "a''b",
    "a'; SELECT COUNT(*) FROM t; --",
    "') OR ('a' = 'a",
    "$1",
    "/*",
    "*/ OR 1=1 --",
    "a\n' OR 1=1 --",
    "%' OR g LIKE '%",
    '" OR "g" = "g',
    "E'a' || 'b'",
    "$$ OR $$",
    "\u2028' OR 1=1 --",
    "\u02bc OR 1=1 --",
    "x" * 900,
)
# statements that tools send by themselves, or people while they look around
BROWSING = (
    "SELECT 1",
    "SELECT version()",
    "SELECT current_schema()",
    "SHOW transaction_isolation",
    "BEGIN",
    "SELECT * FROM t LIMIT 100",
    "SELECT id FROM t",
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM public.t WHERE 1=0",
    "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'v')",
    "SELECT table_name, column_name FROM information_schema.columns",
    f"EXPLAIN {COUNT}",
    f"EXPLAIN ANALYZE {COUNT}",
    f"CREATE TABLE x AS {COUNT}",
    f"COPY ({COUNT}) TO STDOUT",
    f"DECLARE c CURSOR FOR {COUNT}",
    "MOVE 0 IN nosuch",
    "CLOSE c",
    f"PREPARE p AS {COUNT}",
    "COMMIT",
)


@case("W23", title="PostgreSQL's door: wrong tokens are limited, an ended one ends its sessions", feature="server")
def lock_out(_: Size) -> Evidence:
    """Guess tokens, take another's name, send a proof that was overheard, and end a token in a session."""
    wrong: list[str] = []
    with servers(TABLES) as (server,):
        ben, ada = token_of(server, "ben", tables=["t"]), token_of(server, "ada", "curator")

        async def script(door: Any) -> None:
            guesses = []
            for number in range(12):
                line = Line(door).open()
                await line.sign_in("ben", f"tacit_{number:016x}_{'A' * 43}")
                guesses.append(line.refused)
            wrong.extend([] if "too many wrong tokens" in guesses[-1] else [f"guess 12: {guesses[-1]}"])
            session = Line(door).open()
            wrong.extend(
                [] if (await session.sign_in("ben", ben, **SPENDS)).endswith(b"Z") else ["a right token is out"]
            )
            if (await Line(door).open().sign_in("ada", ben)).endswith(b"Z"):
                wrong.append("another's name was taken")
            wrong.extend(["a proof was taken twice"] if await _replayed(door, ada) else [])
            own = [words(await session.ask(f"SELECT COUNT(*) FROM {name}")) for name in ("u", "nowhere")]
            wrong.extend([] if own[0].replace("'u'", "'nowhere'") == own[1] else [f"a table of others: {own}"])
            listed = cells(await session.ask("SELECT relname FROM pg_class WHERE relkind = 'r'"))
            wrong.extend([] if len(listed) == 1 else [f"tables in the catalog: {listed}"])
            server.ledger.end_token(ben)
            after = await session.ask(COUNT)
            wrong.extend([] if not cells(after) and session.is_closed else ["a session outlived its token"])

        at_the_door(server, script)
        charges = server.charges()
    return Evidence(not wrong and not charges, {"wrong": wrong[:5], "charges": charges})


async def _replayed(door: Any, token: str) -> bool:
    """Return whether what a client has sent to sign in also signs in another; the token itself is never sent."""
    first = Line(door).open()
    await first.sign_in("ada", token)
    if token.split("_", 2)[2].encode() in first.sent:
        return True
    second = Line(door).open()
    second.send(bytes(first.sent))
    return any(kind == b"Z" for kind, _ in await second.settled(b"Z"))


@case("W24", title="PostgreSQL's door: a parameter is a constant, whatever its text", feature="server")
def parameters(_: Size) -> Evidence:
    """Send hostile texts as parameters; each question is the one over HTTP with the same constant, and no other."""
    texts = [*HOSTILE]
    wrong: list[str] = []
    with servers(most=9) as (server,):
        token = token_of(server, "ada", "curator")

        async def script(door: Any) -> None:
            line = Line(door).open()
            await line.sign_in("ada", token, options="-c tacit.epsilon=0.01")
            for text in texts:
                replies = await line.prepare("SELECT COUNT(*) AS n FROM t WHERE g = $1", [text])
                wrong.extend([f"{text[:30]!r}: {words(replies)[:80]}"] if len(cells(replies)) != 1 else [])

        at_the_door(server, script)
        charged = server.charges()
        for text in dict.fromkeys(texts):
            constant = text.replace("'", "''")
            asked = {"sql": f"SELECT COUNT(*) AS n FROM t WHERE g = '{constant}'", "epsilon": "0.01"}
            reply = server.ask(token, asked)
            if reply.status != 200 or not reply.record["facts"]["free"]:
                wrong.append(f"{text[:30]!r} was another question")
        wrong += [] if charged == len(set(texts)) else [f"{charged} charges for {len(set(texts))} texts"]
    return Evidence(not wrong, {"texts": len(texts), "wrong": wrong[:5]})


@case("W25", title="PostgreSQL's door: the clock, free repeats, and browsing that costs nothing", feature="server")
def browsing(_: Size) -> Evidence:
    """Outcomes after a charge leave at ticks, the same SELECT is free, and no probe or refusal is charged."""
    wrong: list[str] = []
    with servers(TABLES) as (server,):
        token = token_of(server, "ada", "curator")

        async def looks(door: Any) -> None:
            line = Line(door).open()
            await line.sign_in("ada", token, **SPENDS)
            for sql in BROWSING:
                await line.ask(sql)
                await line.prepare(sql)
            await line.prepare(COUNT, execute=False)

        at_the_door(server, looks)
        wrong += [f"browsing: {server.charges()} charges"] if server.charges() else []
        wrong += ["browsing took time of the clock"] if server.watch.time else []
        times = [
            _leaves(server, token, takes, fails=fails) for takes, fails in ((0.3, False), (0.9, False), (0.5, True))
        ]
        wrong += [f"left after {times}"] if any(each not in (T, 2 * T) or each != times[0] for each in times) else []
        before = server.charges()

        async def twice(door: Any) -> None:
            lines = [Line(door).open() for _ in range(2)]
            for line in lines:
                await line.sign_in("ada", token, **SPENDS)
            found = [cells(await line.ask(sql)) for line in lines for sql in (COUNT, COUNT.lower())]
            wrong.extend([] if len(found[0]) == 2 and found.count(found[0]) == 4 else ["a repeat has other numbers"])

        at_the_door(server, twice)
        wrong += [] if server.charges() == before + 1 else ["a repeat was charged"]
    return Evidence(not wrong, {"statements": 2 * len(BROWSING), "wrong": wrong[:5]})


def _leaves(server: Server, token: str, takes: float, *, fails: bool) -> float:
    """Return how long a question took by the server's clock, of which rows take so long."""

    async def script(door: Any) -> float:
        line = Line(door).open()
        await line.sign_in("ada", token, **SPENDS)
        began = server.watch.time
        await line.ask(f"SELECT COUNT(*) AS n FROM t WHERE x <> {int(1000 * takes) + 100}")
        return server.watch.time - began

    with engine_takes(server, takes, fails=fails):
        found: float = at_the_door(server, script)
    return found


@case("W26", title="PostgreSQL's door: made-up messages neither crash it nor cost anything", feature="server")
def made_up(size: Size) -> Evidence:
    """Send messages that are random, or right ones with bytes changed: the door still serves, and charges nothing."""
    found = fuzzed(20, 50 if size == "quick" else 500, lengths=0.2)
    passed = not found["charges"] and not found["wrong"] and found["answered"] > found["messages"] // 4
    return Evidence(passed, found)


def fuzzed(sessions: int, each: int, *, lengths: float) -> dict[str, Any]:
    """Send so many messages in each of some sessions at once; of changes of a length, a share is made."""
    unexpected: list[str] = []
    with servers(TABLES) as (server,):
        token = token_of(server, "ada", "curator")

        async def session(door: Any, number: int) -> int:
            draw, answered = Draw(number), 0
            line = Line(door).open()
            await line.sign_in("ada", token)  # no epsilon: a question that is asked by luck is refused
            for _ in range(each):
                line.send(_message(draw, lengths) + packed(b"S"))
                replies = await line.settled(b"Z")
                answered += bool(replies)
                if line.is_closed or not replies:  # its lengths are wrong now: it waits for more, or was closed
                    line.close()
                    line = Line(door).open()
                    if draw.random() < 0.3:
                        line.send(_bytes(draw, 60))
                        await line.settled(b"R")
                        line.close()
                        line = Line(door).open()
                    await line.sign_in("ada", token)
            line.close()
            return answered

        async def script(door: Any) -> int:
            answered = await asyncio.gather(*(session(door, number) for number in range(sessions)))
            good = Line(door).open()
            await good.sign_in("ada", token)
            unexpected.extend([] if len(cells(await good.ask("SELECT 1"))) == 1 else ["the door serves no more"])
            return sum(answered)

        sent, answered = sessions * each, at_the_door(server, script)
        unexpected += [line for line in server.watching.text().splitlines() if 'kind="unexpected"' in line]
        charges = server.charges()
    return {"messages": sent, "answered": answered, "charges": charges, "wrong": unexpected[:3]}


def _message(draw: Draw, lengths: float) -> bytes:
    sql = draw.choice([*BROWSING, COUNT, "FETCH ALL FROM c"])
    garbage = packed(draw.choice([b"Q", b"P", b"B", b"D", b"E", b"C", b"H"]), _bytes(draw, 40))
    message = bytearray(draw.choice([packed(b"Q", sql.encode() + b"\0"), prepared(sql), prepared(sql, ["x"]), garbage]))
    for _ in range(draw.choice((0, 0, 1, 3))):
        at = draw.randrange(len(message))
        if not 1 <= at <= 4 or draw.random() < lengths:  # lengths seldom, so that most messages are read
            message[at] = draw.randrange(256)
    return bytes(message)


def _bytes(draw: Draw, most: int) -> bytes:
    return draw.randbytes(draw.randrange(most))
