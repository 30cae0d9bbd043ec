"""`tacit serve`: the tables of a tacit.toml over HTTP, for people with a token.

`tacit mcp`: an agent's door on standard input and output, to the tables of a server.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tacit.cli.options import flag, option, required, with_options
from tacit.cli.screen import own_token, say
from tacit.errors import InvalidParameter, LargeEpsilonWarning, TacitError

if TYPE_CHECKING:
    from tacit.remote import Server
    from tacit.server import Desk, Listening, Visits


FIRST = "curator"


@with_options
def serve(
    *,
    catalog: str = option("FILE", help="The catalog of the tables to serve.", default="tacit.toml"),
    host: str = option(
        "ADDRESS", help="The address to listen at; the default is reached only from this machine.", default="127.0.0.1"
    ),
    port: int = option("N", help="The port; 0 is any that is free.", default=8765),
    postgres: int | None = option(
        "PORT", help="Speak PostgreSQL's protocol too, on this port, for psql, notebooks and BI tools."
    ),
    certificate: str | None = option("FILE", help="A TLS certificate (PEM), to listen beyond this machine."),
    key: str | None = option("FILE", help="The certificate's key."),
    behind_proxy: bool = flag(help="A proxy encrypts: listen beyond this machine without TLS.", name="--behind-proxy"),
    host_names: list[str] | None = option(
        "NAME", help="A name that clients use, such as a proxy's; can be repeated.", name="--host-names"
    ),
    hold: str = option("T", help="When answers leave, for tables that declare no hold: 2s, 500ms.", default="2s"),
    turns: int = option("N", help="How many questions run at once.", default=8),
    workers: int = option("N", help="How many processes answer; 0 chooses a number for this machine.", default=0),
    sources: list[str] | None = option(
        "DIR", help="A folder of files that a curator may declare over HTTP; can be repeated.", name="--sources"
    ),
    log: bool = option(help="Log each request to standard error, as JSON.", name="--log/--no-log", default=True),
    failures: str | None = option(
        "FILE", help="Write the kind of error of failed questions here, only for the curator."
    ),
) -> None:
    """Answer questions about the tables of a tacit.toml over HTTP.

    The first time it makes a curator and prints their token, this once; `tacit people` makes others. Give a token to
    tacit.connect, or to `tacit ask --server`.

    Answers leave on a public clock, so that their time does not reveal the rows.
    """
    require_server()
    from tacit.hold import read_hold
    from tacit.server import Listening, check_listening, log_failures_to, log_to_stderr

    listening = Listening(
        host, port, certificate, key, behind_proxy, host_names=tuple(host_names or ()), postgres=postgres
    )
    check_listening(listening)
    warnings.simplefilter("ignore", LargeEpsilonWarning)
    every = read_hold(hold, name="--hold")
    if every is None or turns < 1:
        raise InvalidParameter("--turns must be at least 1\nhint: leave it out")
    folders = source_folders(sources or [])
    make_catalog(Path(catalog), may_be_empty=bool(folders))
    if log:
        log_to_stderr()
    if failures is not None:
        log_failures_to(failures)
    _serve(Path(catalog), listening, partial(open_desk, Path(catalog), every, sources=folders), turns, workers)


def has_server() -> bool:
    """Return whether the packages of the server extra are installed; the packages are not loaded."""
    return all(
        find_spec(name) is not None
        for name in ("fastapi", "uvicorn", "jinja2", "python_multipart", "altair", "joserfc")
    )


def require_server() -> None:
    """Refuse to serve without the server extra, and name the command that installs it."""
    if not has_server():
        raise InvalidParameter("the server is not installed\nhint: pip install 'tacit[server]'")


def _serve(catalog: Path, listening: "Listening", desk: "Callable[..., Desk]", turns: int, workers: int) -> None:
    """Serve a catalog in several processes until this one is stopped; all turns are shared among them."""
    from tacit.server import WORKERS_MAX, Visits, share_of, usual_workers
    from tacit.server import serve as listen

    if not 0 <= workers <= WORKERS_MAX:
        raise InvalidParameter(f"--workers must be at most {WORKERS_MAX}\nhint: leave it out")
    if workers > 1 and not hasattr(os, "fork"):
        raise InvalidParameter("this system cannot fork worker processes\nhint: leave --workers out, or serve on Linux")
    number = min(workers or usual_workers(), turns)  # every worker has a turn
    visits = Visits(prepare(catalog))  # the same for all workers, and for replicas with the same key
    with TemporaryDirectory(prefix="tacit-counts-") as counts:
        listen(
            lambda: opened(desk(share_of(turns, number), number), visits, listening, Path(counts)),
            listening,
            ready=lambda where: say(f"serving {catalog} at {where.url}{_door_words(where)}"),
            workers=number,
        )


def _door_words(where: "Listening") -> str:
    return "" if where.postgres is None else f"\nPostgreSQL's protocol at {where.postgres_url}"


def listen_at(desk: "Desk", port: int, folder: Path, tokens: Mapping[str, str]) -> None:
    """Serve a desk on this machine until it is stopped, and print a link that signs in each of these people once.

    `tokens` has a token for each name, with the role, as it is printed.
    """
    from tacit.server import Listening, Visits
    from tacit.server import serve as listen

    visits = Visits(desk.ledger.secret_for("cookies of pages"))

    def ready(where: Listening) -> None:
        say(f"serving {folder} at {where.url}; Ctrl-C stops it and deletes its files")
        for name, secret in tokens.items():
            say(f"sign in as {name}: {where.url}/sign-in/{visits.link(secret)}")

    listening = Listening(port=port)
    listen(lambda: opened(desk, visits, listening), listening, ready=ready)


@contextmanager
def opened(desk: "Desk", visits: "Visits", listening: "Listening", counts: Path | None = None) -> Iterator[Any]:
    """Yield the application of a desk, its tables open; at the end questions that run are finished."""
    from tacit.server import Watching, make_app, own_hosts

    watching = Watching(counts)
    desk.warm(watching.note_warm)
    try:
        yield make_app(desk, visits, watching, own_hosts(listening))
    finally:
        desk.close()


def make_catalog(catalog: Path, *, may_be_empty: bool) -> None:
    """Make a catalog without tables if it is missing and tables may be declared in the browser; refuse otherwise."""
    from tacit.catalog_file import read_catalog

    if may_be_empty and not catalog.exists():
        catalog.write_text('ledger = "ledger.db"\n', encoding="utf-8")
        say(f"made {catalog}: tables are declared in the browser")
    read_catalog(catalog, may_be_empty=may_be_empty)


def prepare(catalog: Path) -> bytes:
    """Make the ledger and its first curator if they are missing; the token is printed, this once.

    Return the secret that seals cookies.
    """
    from tacit.catalog_file import read_catalog
    from tacit.ledger import open_ledger

    file = read_catalog(catalog, may_be_empty=True)
    with open_ledger(file.ledger) as ledger:
        if not ledger.has_people() and not file.people:
            ledger.add_person(FIRST, role="curator", reason="tacit serve, the first time")
            secret = ledger.new_token(FIRST, reason="tacit serve, the first time")
            say(f"token of '{FIRST}', shown this once: {secret}")
        return ledger.secret_for("cookies of pages")


def open_desk(catalog: Path, hold: Fraction, turns: int, workers: int = 1, sources: tuple[Path, ...] = ()) -> "Desk":
    """Return the desk of a catalog and its ledger, for one of several processes that serve it."""
    from tacit.catalog_file import read_catalog
    from tacit.ledger import open_ledger
    from tacit.server import Desk, Provider

    file = read_catalog(catalog, may_be_empty=True)
    ledger = open_ledger(file.ledger)
    provider = None if file.sign_on is None else Provider(file.sign_on, ledger)
    return Desk(file, ledger, ledger, hold, turns, workers, provider, sources)


def source_folders(named: list[str]) -> tuple[Path, ...]:
    """Return the folders from which tables may be declared over HTTP."""
    for folder in named:
        if not Path(folder).is_dir():
            raise InvalidParameter(f"--sources {folder!r} is not a folder\nhint: --sources data")
    return tuple(Path(folder).resolve() for folder in named)


INTERNAL_ERROR, PARSE_ERROR = -32603, -32700


@with_options
def mcp(
    server: str = required("URL", "The server; the token is in $TACIT_TOKEN."),
) -> None:
    """Let an agent list, describe, plan and ask the tables of a server, within the budget of a token (MCP, stdio).

    An agent's own settings start it. The tools do not return rows and cannot grant. Over HTTP the same door is at /mcp.

    Example: `tacit mcp --server https://data.example.org`
    """
    from tacit.remote import connect

    opened = connect(server, token=own_token())
    for line in sys.stdin:
        reply = forwarded(opened, line)
        if reply is not None:
            sys.stdout.write(reply + "\n")
            sys.stdout.flush()


def forwarded(server: "Server", line: str) -> str | None:
    """Return the server's reply to one message, as a line; None if the message needs no reply."""
    if not line.strip():
        return None
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return _fault(None, PARSE_ERROR, "this is not JSON")
    id = message.get("id") if isinstance(message, dict) else None
    try:
        body = server.agent(line.encode("utf-8", "replace"))
    except TacitError as problem:
        return None if id is None else _fault(id, INTERNAL_ERROR, str(problem))
    return body.decode("utf-8") if body else None


def _fault(id: Any, code: int, words: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}})
