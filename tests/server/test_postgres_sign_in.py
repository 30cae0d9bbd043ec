"""PostgreSQL's protocol: who comes in, how, and how many at once."""

import base64
import hashlib
import hmac
import struct
from dataclasses import replace

import pytest

from tacit.ledger.roles import scram_salt
from tacit_gauntlet.stage.postgres_lines import ScramClient
from tests.server.conftest import House
from tests.server.postgres_client import EPSILON, Port, Reply, charges, packed, report_of, startup, talk

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_the_user_is_a_person_and_the_password_their_token(house: House) -> None:
    async def dialogue(port: Port) -> list[Reply]:
        tried = [("tacit_ada", "ada"), ("tacit_ada", "Ada"), ("tacit_ben", "ada"), ("tacit_wrong", "ada"), ("", "ada")]
        return [await (await port.connect()).sign_in(token, user=user) for token, user in tried]

    right, spelled, others, wrong, empty = talk(house, dialogue)
    assert right.kinds.startswith(b"R")
    assert right.kinds.endswith(b"KZ")
    assert spelled.kinds.endswith(b"KZ")
    for reply in (others, wrong, empty):
        assert (reply.error["S"], reply.error["C"]) == ("FATAL", "28P01")
        assert reply.error == others.error
        assert "token" in reply.error["H"]


def test_wrong_tokens_of_an_address_are_limited_and_a_right_one_still_passes(house: House) -> None:
    async def dialogue(port: Port) -> list[str]:
        found = []
        for number in range(12):
            reply = await (await port.connect()).sign_in(f"tacit_{number}")
            found.append(reply.error["C"] + reply.error["M"])
        assert (await (await port.connect()).sign_in()).kinds.endswith(b"Z")
        return found

    found = talk(house, dialogue)
    assert len(set(found[:10])) == 1
    assert found[10] == found[11] != found[0]
    assert "too many wrong tokens" in found[11]
    assert house.send("GET", "/api/v1/tables", "tacit_x").status_code == 429  # the same count as over HTTP


def test_a_token_that_ends_ends_its_sessions_at_the_next_statement(house: House) -> None:
    people = dict(house.desk.tokens.people)  # type: ignore[attr-defined]
    house.desk.tokens = replace(house.desk.tokens, people=people)  # type: ignore[type-var]

    async def dialogue(port: Port) -> Reply:
        client = await port.signed_in(**EPSILON)
        assert (await client.ask("SELECT 1")).rows == [("1",)]
        del people["tacit_ada"]
        return await client.ask(COUNT)

    reply = talk(house, dialogue)
    assert reply.kinds == b"E"  # and then the connection is closed
    assert reply.error["S"] == "FATAL"
    assert charges(house) == 0


def test_a_server_with_a_certificate_is_asked_from_another_machine_only_inside_tls(
    house: House, monkeypatch: pytest.MonkeyPatch, certificate: dict[str, str]
) -> None:
    monkeypatch.setattr("tacit.server.postgres.transport.ClientWire.address", "10.1.2.3")

    async def dialogue(port: Port) -> Reply:
        client = await port.connect()
        client.writer.write(startup(user="ada"))
        return Reply([await client.message()])

    reply = talk(house, dialogue, **certificate)
    assert reply.kinds == b"E"  # before any proof was asked for
    assert "sslmode=require" in reply.error["H"]
    assert talk(house, dialogue).kinds == b"R"  # behind a proxy it has none; the token is not sent either way


def test_a_token_is_proved_and_never_sent_and_a_proof_is_good_once(house: House) -> None:
    scram = ScramClient()

    async def dialogue(port: Port) -> list[bytes]:
        client = await port.connect()
        client.writer.write(startup(user="ada"))
        assert (await client.message())[1][:4] == struct.pack("!i", 10)
        client.writer.write(scram.first())
        asked = (await client.message())[1][4:]
        proof = scram.last(asked, "tacit_ada")
        client.writer.write(proof)
        last = (await client.message())[1]
        salted = hashlib.pbkdf2_hmac("sha256", b"tacit_ada", scram_salt("ada"), 4096)
        key = hmac.digest(salted, b"Server Key", "sha256")
        said = f"n=,r={scram.nonce},{asked.decode()},".encode() + proof[5:].rpartition(b",p=")[0]
        assert last == struct.pack("!i", 12) + b"v=" + base64.b64encode(hmac.digest(key, said, "sha256"))
        found = []
        for wrong in (proof, scram.last(asked, "tacit_ada")[:-6] + b"AAAA==", proof[:-4], packed(b"p", b"c=biws")):
            again = await port.connect()
            again.writer.write(startup(user="ada") + scram.first() + wrong[:1] + struct.pack("!i", len(wrong) - 1))
            again.writer.write(wrong[5:])
            await again.message()
            await again.message()
            found.append((await again.message())[0])
        return found

    assert talk(house, dialogue) == [b"E"] * 4


@pytest.mark.parametrize("code", [5679, 5680])
def test_without_a_certificate_a_request_for_encryption_is_answered_no(house: House, code: int) -> None:
    async def dialogue(port: Port) -> bytes:
        client = await port.connect()
        client.writer.write(struct.pack("!ihh", 8, 1234, code))
        answer = await client.reader.readexactly(1)
        assert (await client.sign_in()).kinds.endswith(b"Z")
        return answer

    assert talk(house, dialogue) == b"N"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\x04",
        b"\0\0\0\x08\0\0\0\0",
        b"\x7f\xff\xff\xff\0\3\0\0",
        b"\0\0\0\x09\0\3\0\0x",
        struct.pack("!ii", 8, 2 << 16),
        startup(user="ada")[:-1] + b"x",
        startup(user="ada", replication="true"),
        startup(user="ada", options="tacit.epsilon=1"),
        startup(user="ada", options="-c tacit.epsilom=1"),
        startup(user="ada", client_encoding="LATIN1"),
        struct.pack("!ihh", 8, 1234, 5680) * 5,
    ],
)
def test_what_is_not_a_startup_ends_without_a_session(house: House, sent: bytes) -> None:
    async def dialogue(port: Port) -> bytes:
        client = await port.connect()
        client.writer.write(sent)
        client.writer.write_eof()
        return await client.reader.read()

    found = talk(house, dialogue)
    assert b"R\0\0\0" not in found
    assert b"Z" not in found[:1]


def test_a_half_open_connection_is_closed_and_one_that_is_idle_is_not(house: House) -> None:
    async def dialogue(port: Port) -> list[bytes]:
        silent, half, begun, idle = [await port.connect() for _ in range(4)]
        half.writer.write(startup(user="ada")[:9])
        begun.writer.write(startup(user="ada"))
        await idle.sign_in(**EPSILON)
        stuck = await port.signed_in()
        stuck.writer.write(b"Q\0\0\0\x20SELECT")
        ended = [await each.reader.read() for each in (silent, half, begun, stuck)]
        assert (await idle.ask("SELECT 1")).rows == [("1",)]
        return ended

    ended = talk(house, dialogue, patience=0.3)
    assert ended[:2] == [b"", b""]
    assert ended[2][:1] == b"R"  # asked for the token, which did not come
    assert ended[3] == b""


def test_a_connection_beyond_the_limits_is_told_so(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.postgres.door.EACH_MAX", 2)
    monkeypatch.setattr("tacit.server.postgres.door.CONNECTIONS_MAX", 4)

    async def dialogue(port: Port) -> list[str]:
        for _ in range(2):
            await port.signed_in()
        third = await (await port.connect()).sign_in()
        ben = await port.signed_in("tacit_ben", user="ben")
        silent = [await port.connect() for _ in range(2)]
        for each in silent:
            each.writer.write(b"\0")
        fifth = await (await port.connect()).sign_in("tacit_ben", user="ben")
        assert (await ben.ask("SELECT 1")).rows == [("1",)]
        return [report_of(reply.messages[-1][1])["C"] for reply in (third, fifth)]

    assert talk(house, dialogue) == ["53300", "53300"]


def test_a_person_has_a_usual_epsilon_that_a_connection_overrides(house: House) -> None:
    people = dict(house.desk.tokens.people)  # type: ignore[attr-defined]
    people["tacit_ada"] = replace(people["tacit_ada"], usual_epsilon="0.5")
    house.desk.tokens = replace(house.desk.tokens, people=people)  # type: ignore[type-var]

    async def dialogue(port: Port) -> None:
        client = await port.signed_in()
        for asked, shown in (("", "0.5"), ("SET tacit.epsilon = 0.25", "0.25"), ("RESET ALL", "0.5")):
            await client.ask(asked)
            assert (await client.ask("SHOW tacit.epsilon")).rows == [(shown,)]
        assert "Spent ε 0.5" in (await client.ask(COUNT)).notices[-1]
        await client.ask("SET tacit.error = '10%'")
        assert (await client.ask("SHOW tacit.epsilon")).rows == [("",)]
        people["tacit_ada"] = replace(people["tacit_ada"], usual_epsilon=None)
        await client.ask("RESET ALL")
        refused = await client.ask("SELECT COUNT(*) FROM visits")
        assert "has not said how much" in refused.error["M"]

    talk(house, dialogue)
    assert charges(house) == 1
