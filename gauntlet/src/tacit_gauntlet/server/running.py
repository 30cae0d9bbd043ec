"""A server that runs: its workers are killed, its clients are slow or many, its disk is full, its replicas race.

W06, W07, W08, W11.
"""

import hashlib
import json
import socket
import time
from collections import Counter
from contextlib import ExitStack
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.racing import Operation, order_faults
from tacit_gauntlet.stage.served import House, Served, disk_is_full, in_threads, postgres_if_here, served, watching
from tacit_gauntlet.stage.server import Reply, Server, limited, servers, token_of
from tacit_gauntlet.stage.statistic import clopper_pearson_upper

PATH = "/api/v1/tables/t/questions"
COUNT = {"sql": "SELECT COUNT(*) AS n FROM t", "epsilon": "1"}
CLIENTS = 8
TURNS = 8
SLOW = 20  # connections


def question(number: int, epsilon: int | str = "0.01") -> dict[str, Any]:
    """Return one of many different questions."""
    return {"sql": f"SELECT COUNT(*) AS n FROM t WHERE x <> {number + 100}", "epsilon": str(epsilon)}


@case("W06", title="workers are killed while they answer: nothing is lost or charged twice", feature="server")
def killed(size: Size) -> Evidence:
    """Each question has a key, and is sent again with it wherever its connection breaks.

    Workers are killed just after a charge. Every question is charged once and delivered, and is found again by its key,
    the same bytes: what a killed worker had in hand, another has carried out.
    """
    number, kills = (40, 2) if size == "quick" else (1000, 5)
    with served(workers=2, turns=TURNS) as house:
        (server,) = house.replicas
        token = house.token("ada")
        given: dict[int, Reply] = {}
        found: dict[int, Reply] = {}
        killed = [0]

        def ask(each: int) -> None:
            given[each] = server.until_told("POST", PATH, token, question(each), {"Idempotency-Key": f"key {each}"})
            if killed[0] < kills and len(given) * (kills + 1) > number * (killed[0] + 1):
                killed[0] += 1
                _wait_for_a_charge(house)
                server.kill_a_worker()

        def find(each: int) -> None:
            found[each] = server.until_told("GET", f"/api/v1/questions/key%20{each}", token)

        for work in (ask, find):
            in_threads([lambda each=each, work=work: work(each) for each in range(number)], CLIENTS)  # type: ignore[misc]
        entries = list(house.ledger.entries())
        faults = house.faults()
    return _nothing_lost(given, found, entries, kills, faults)


def _wait_for_a_charge(house: House) -> None:
    """Wait until a charge is the newest entry of the ledger, a few times: then a worker has one in hand."""
    for _ in range(200):
        newest = house.ledger.entry(house.ledger.length())
        if newest is not None and newest.kind == "charge":
            return


def _nothing_lost(
    given: dict[int, Reply], found: dict[int, Reply], entries: list[Any], kills: int, faults: list[str]
) -> Evidence:
    kinds = Counter(entry.kind for entry in entries)
    wrong = faults + [f"{each}: {reply.status}" for each, reply in given.items() if reply.status != 200]
    wrong += [f"{each} is not found again" for each in given if found[each].body != given[each].body]
    charged = Counter(entry.record["about"] for entry in entries if entry.kind == "charge")
    twice = [words for words, times in charged.items() if times > 1]
    figures = {"requests": len(given), "charged": kinds["charge"], "answered": kinds["answer"], "kills": kills}
    passed = not wrong and not twice and kinds["charge"] == kinds["answer"] == len(given)
    again = {"carried out again": kinds["attempt"], "charged twice": len(twice), "wrong": wrong[:5]}
    return Evidence(passed, {**figures, **again})


@case("W07", title="slow clients, large bodies, too many questions and a full disk: it goes on", feature="server")
def overloaded(size: Size) -> Evidence:
    """Each trouble by itself; health is told all the while, and a question is answered as soon as it is over."""
    found = {**_too_many(50 if size == "quick" else 500), **_full_disk(), **_slow_clients()}
    return Evidence(all(right for right, _ in found.values()), {name: shown for name, (_, shown) in found.items()})


def _too_many(times: int) -> dict[str, tuple[bool, object]]:
    """Send so many times as many questions as there are turns, at once: the queue is bounded, and the rest refused."""
    with servers(turns=2) as (server,):
        token = token_of(server, "ada")
        limited(server, turns=2, waiting=4)
        flood = [("POST", PATH, token, question(each % 5), None) for each in range(2 * times)]
        replies = server.send_all([*flood, ("GET", "/health", None, None, None)])
        statuses = Counter(reply.status for reply in replies[:-1])
        large = server.send("POST", PATH, token, b'{"sql": "' + b"x" * (1 << 21) + b'"}').status
        after = [server.send("GET", "/health").status, server.ask(token, question(7)).status]
    bounded = statuses == {200: 5, 429: 2 * times - 5}
    return {
        "at once": (bounded and replies[-1].status == 200, dict(statuses)),
        "a large body": (large == 413, large),
        "after it": (after == [200, 200], after),
    }


def _full_disk() -> dict[str, tuple[bool, object]]:
    """A disk without room: nothing is charged or answered, and all is well when there is room again."""
    is_full: list[bool] = []
    with servers(connect=watching(lambda statement: disk_is_full(statement) if is_full else None)) as (server,):
        token = token_of(server, "ada")
        server.ask(token, question(0))
        is_full.append(True)
        while_full = [server.ask(token, question(1)).status, server.send("GET", "/health").status]
        is_full.clear()
        charged = server.charges()
        after = server.ask(token, question(1)).status
    return {"a full disk": ((while_full, charged, after) == ([503, 200], 1, 200), [*while_full, charged, after])}


def _slow_clients() -> dict[str, tuple[bool, object]]:
    """Connections whose requests never end: others are answered meanwhile, and the slow ones are closed."""
    with served(workers=1, patience=0.5) as house, ExitStack() as stack:
        (server,) = house.replicas
        token = house.token("ada")
        slow = [stack.enter_context(_unfinished(server, token, each)) for each in range(SLOW)]
        meanwhile = [server.send("GET", "/health").status, server.send("POST", PATH, token, COUNT).status]
        closed = sum(_is_closed(each) for each in slow)
    return {"slow clients": (meanwhile == [200, 200] and closed == SLOW, [*meanwhile, closed])}


def _unfinished(server: Served, token: str, number: int) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n"
    line.sendall((head if number % 2 else head + "\r\n{").encode())
    return line


def _is_closed(line: socket.socket) -> bool:
    try:
        while line.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@case("W08", title="replicas race for one budget: what is admitted fits, in one order in time", feature="server")
def raced(size: Size) -> Evidence:
    """Analysts ask two replicas on one ledger at once, each question a part of the budget; L12's checker reads it."""
    analysts, budget = (8, 9) if size == "quick" else (32, 10)
    with ExitStack() as stack:
        postgres = None if size == "quick" else stack.enter_context(postgres_if_here())
        workers = 1 if size == "quick" else 2
        house = stack.enter_context(served(count=2, workers=workers, budget=budget, postgres=postgres))
        tokens = [house.token(f"analyst {each}") for each in range(analysts)]
        seen: list[tuple[float, float, int, Reply]] = []

        def ask(number: int) -> None:
            analyst, amount = number % analysts, number % 3 + 1
            server = house.replicas[(number // 2) % 2]
            began = time.monotonic()
            reply = server.until_told("POST", PATH, tokens[analyst], question(number, amount))
            seen.append((began, time.monotonic(), amount, reply))

        in_threads([lambda each=each: ask(each) for each in range(2 * analysts)], min(analysts, 16))  # type: ignore[misc]
        operations = [Operation(began, ended, amount, _charge(house, reply)) for began, ended, amount, reply in seen]
        charges, faults = house.charges(), house.faults()
    faults += order_faults(operations, budget, charges)
    faults += [f"a reply is {status}" for *_, reply in seen if (status := reply.status) not in (200, 402)]
    spent = sum(charges.values(), Fraction(0))
    figures = {"questions": len(seen), "charged": len(charges), "spent": f"{spent} of {budget}"}
    return Evidence(not faults, {**figures, "faults": faults[:5]})


def _charge(house: House, reply: Reply) -> int | None:
    if reply.status != 200:
        return None
    stored = house.ledger.stored(json.loads(reply.body)["facts"]["receipt"]["entry"])
    return None if stored is None else stored.receipt.charge


@case(
    "W11",
    title="tokens are guessed over HTTP: one reply, the same steps, ten a minute; a valid one passes",
    feature="server",
)
def guessed(size: Size) -> Evidence:
    """Wrong, ended, unknown and malformed tokens: equal replies after equally many statements to the ledger.

    Then a wrong secret of an id that is there and one of an id that is not, in pairs, in an order by chance: whoever
    guesses from the times of a pair which one is there is right as often as a coin.
    """
    counted: Counter[str] = Counter()
    with servers(connect=watching(lambda _: counted.update(["statements"]))) as (server,):
        held, ended = token_of(server, "ada"), token_of(server, "ben")
        server.ledger.end_token(ended)
        wrong = held[:-1] + ("A" if held[-1] != "A" else "B")
        unknown = [f"tacit_{each:016x}_{'A' * 43}" for each in range(20 if size == "quick" else 10_000)]
        guesses = [wrong, ended, "x", "tacit_", "ü", "y" * 500, *unknown]
        server.send("GET", "/api/v1/tables", wrong)  # what it reads is at hand from here on
        replies, steps = set(), set()
        for token in guesses:
            server.watch.time += 60
            counted.clear()
            reply = server.send("GET", "/api/v1/tables", token)
            replies.add((reply.status, repr(reply.headers), reply.body))
            steps.add(counted["statements"])
        within, looked_at, let_in = _in_one_minute(server, wrong, held, counted)
        # a coin passes by 6 standard deviations or more
        pairs, most = (1000, 0.62) if size == "quick" else (20_000, 0.53)
        told = _told_by_time(server, wrong, pairs)
        server.watch.time += 60
        after = server.send("GET", "/api/v1/tables", held).status
    passed = len(replies) == len(steps) == 1 and min(steps) > 0 and within == [401] * 10 + [429] * 5
    passed = passed and looked_at == steps and let_in == [200] * 35
    seen = {"replies": len(replies), "statements": sorted(steps), "in a minute": within, "valid": let_in.count(200)}
    return Evidence(
        passed and after == 200 and told < most,
        {"tries": len(guesses), **seen, "right by the time, at most": round(told, 4), "of pairs": pairs},
    )


def _told_by_time(server: Server, wrong: str, pairs: int) -> float:
    """Return how often, at most, the times of two wrong tokens tell which one's id is there (95 % sure)."""
    longer = 0
    for each in range(pairs):
        mixed = hashlib.sha256(str(each).encode())
        unknown = f"tacit_{mixed.hexdigest()[:16]}_{wrong.rpartition('_')[2]}"
        order = [wrong, unknown] if mixed.digest()[-1] % 2 else [unknown, wrong]
        took = {}
        for token in order:
            server.watch.time += 60
            began = time.perf_counter()
            server.send("GET", "/api/v1/tables", token)
            took[token] = time.perf_counter() - began
        longer += took[wrong] > took[unknown]
    return clopper_pearson_upper(max(longer, pairs - longer), pairs, alpha=0.05)


def _in_one_minute(
    server: Server, wrong: str, held: str, counted: "Counter[str]"
) -> tuple[list[int], set[int], list[int]]:
    """Send wrong tokens, requests without one, and a valid token, all from one address in one minute.

    Return the statuses of the wrong ones, how many statements each of the late ones took, and the valid one's statuses.
    """
    server.watch.time += 60
    let_in, told, steps = [], [], set()
    for _ in range(20):
        server.send("GET", "/api/v1/tables")
        let_in.append(server.send("GET", "/api/v1/tables", held).status)
    for number in range(15):
        counted.clear()
        told.append(server.send("GET", "/api/v1/tables", wrong).status)
        steps |= {counted["statements"]} if number >= 10 else set()
        let_in.append(server.send("GET", "/api/v1/tables", held).status)
    return told, steps, let_in
