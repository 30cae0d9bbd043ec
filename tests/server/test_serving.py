"""`tacit serve` for real, on a free port of this machine; and where it refuses to listen."""

import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

import tacit
from tacit.errors import InvalidParameter
from tacit.server import Listening, check_listening, own_hosts, serve
from tacit.server.listening import _socket


def test_a_newcomer_gets_an_answer_over_http_and_the_server_stops_when_told(serving: Callable[..., tuple]) -> None:
    address, token, process = serving("--hold", "10ms")
    assert address.startswith("http://127.0.0.1:")
    assert token.startswith("tacit_")
    answer = tacit.connect(address, token=token)["pay"].count().answer(epsilon=1)
    assert len(answer) == 1
    assert answer.facts.durable
    with pytest.raises(InvalidParameter, match="no valid token"):
        list(tacit.connect(address, token=token[:-1] + "?"))
    process.send_signal(signal.SIGTERM)
    assert process.wait() in (0, -signal.SIGTERM)


def test_a_reply_does_not_wait_for_its_head_to_be_acknowledged() -> None:
    with _socket("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        line, _ = listener.accept()
        with line:
            assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_said_to_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Listening(port=other.getsockname()[1])
        with pytest.raises(InvalidParameter, match="the server cannot listen on"):
            serve(None, taken, ready=lambda _: None)


@pytest.mark.parametrize(
    ("listening", "refused"),
    [
        (Listening("127.0.0.1"), False),
        (Listening("::1"), False),
        (Listening("localhost"), False),
        (Listening("0.0.0.0"), True),
        (Listening("::"), True),
        (Listening("10.1.2.3"), True),
        (Listening("example.org"), True),
        (Listening("0.0.0.0", behind_proxy=True), False),
        (Listening("0.0.0.0", certificate=__file__, key=__file__), False),
        (Listening("0.0.0.0", certificate=__file__), True),
        (Listening("127.0.0.1", certificate="/nowhere", key="/nowhere"), True),
    ],
)
def test_beyond_this_machine_it_listens_only_encrypted_or_behind_a_proxy(listening: Listening, refused: bool) -> None:
    if refused:
        with pytest.raises(InvalidParameter, match="hint: "):
            check_listening(listening)
    else:
        check_listening(listening)


@pytest.mark.parametrize(
    ("listening", "host", "own"),
    [
        (Listening(), "localhost:1", True),
        (Listening("127.9.9.9"), "127.9.9.9:8765", True),
        (Listening("::1"), "[::1]:8765", True),
        (Listening(), "data.example.org", False),
        (Listening(host_names=("Data.Example.org",)), "data.example.ORG:443", True),
        (Listening("10.1.2.3", behind_proxy=True, host_names=("data.example.org",)), "10.1.2.3", True),
        (Listening("10.1.2.3", behind_proxy=True), "10.1.2.4", False),
        (Listening("0.0.0.0", behind_proxy=True), "10.1.2.4:8765", True),
        (Listening("0.0.0.0", behind_proxy=True), "evil.example", False),
        (Listening("::", behind_proxy=True), "[fe80::1]", True),
        (Listening(), "127.0.0.1:port", False),
    ],
)
def test_a_server_knows_its_own_hosts(listening: Listening, host: str, own: bool) -> None:
    assert own_hosts(listening).has([(b"Host", host.encode())]) is own


def test_one_host_is_named_and_no_other_beside_it() -> None:
    hosts = own_hosts(Listening())
    assert not hosts.has([])
    assert not hosts.has([(b"host", b"localhost"), (b"host", b"evil.example")])


def test_names_of_the_certificate_are_the_servers_own(tmp_path: Path) -> None:
    key, name, days = (
        Ed25519PrivateKey.generate(),
        x509.Name([]),
        [datetime(year, 1, 1, tzinfo=UTC) for year in (2026, 2027)],
    )
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, *days)
    names = x509.SubjectAlternativeName([x509.DNSName("data.example.org")])
    pem = made.add_extension(names, critical=True).sign(key, None).public_bytes(Encoding.PEM)
    (tmp_path / "server.pem").write_bytes(pem)
    hosts = own_hosts(Listening("0.0.0.0", certificate=str(tmp_path / "server.pem")))
    assert hosts.has([(b"host", b"data.example.org:8765")])
    assert not hosts.has([(b"host", b"evil.example")])


@pytest.mark.parametrize("name", ["http://data.example.org", "data.example.org:443", "*.example.org", "", "a b"])
def test_a_host_name_is_a_name(name: str) -> None:
    with pytest.raises(InvalidParameter, match="hint: --host-names"):
        check_listening(Listening(host_names=(name,)))
