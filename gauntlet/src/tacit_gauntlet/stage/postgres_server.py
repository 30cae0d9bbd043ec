"""A PostgreSQL server of the tests' own, on a private socket, gone when they are."""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A socket's path is short, and the server's user must be let in: TMPDIR may be long, or another user's alone.
SHORT = "/tmp"


def server_programs() -> Path | None:
    """Return the folder of the newest server's programs on this machine, if there is one."""
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).parent
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in installed), key=lambda path: int(path.parent.name), default=None)


def is_here() -> bool:
    """Return whether a server can be started here, and read."""
    clients = ("psycopg", "adbc_driver_postgresql")
    return server_programs() is not None and all(importlib.util.find_spec(each) is not None for each in clients)


@contextmanager
def server(programs: Path) -> Iterator[str]:
    """Yield the address of a server that listens on a socket in a folder of its own; fsync is on."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir=SHORT if os.path.isdir(SHORT) else None))
    # the server refuses to run as root
    as_owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_owner:
        shutil.chown(folder, "postgres", "postgres")
    data, options = str(folder / "data"), f"-c listen_addresses='' -k {folder}"

    def run(program: str, *words: str) -> None:
        subprocess.run([*as_owner, str(programs / program), *words], check=True, capture_output=True, cwd="/")

    run("initdb", "-A", "trust", "--no-sync", "-U", "tacit", "-D", data)
    run("pg_ctl", "-w", "-t", "600", "-D", data, "-o", options, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql://tacit@/postgres?host={folder}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run("pg_ctl", "-w", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def fresh_schema(address: str) -> str:
    """Return the address of an empty schema of its own on the server."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as link:
        link.execute(f"CREATE SCHEMA {name}")
    return f"{address}&options=-csearch_path%3D{name}"
