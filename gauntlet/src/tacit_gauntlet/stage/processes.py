"""Draw noise in other processes: forks, a pool, a pre-forked server, nested PID namespaces and raw clones.

Each function returns the numbers each process drew, as JSON through a pipe. A process that hangs is ended.
"""

import ctypes
import json
import multiprocessing
import os
import platform
import select
import signal
import socket
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager

import tacit
from tacit.errors import TacitError

Numbers = list[int]

# A process that is silent for so long hangs; one that waits for a busy machine does not.
SECONDS_MAX = 150.0
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
_CLONE_CALL = {"x86_64": 56, "aarch64": 220}


def wide_numbers(_: object = None) -> Numbers:
    """Return 8 numbers that two draws share with a chance below 2^-40: noise on zeros, by both mechanisms."""
    laplace = tacit.Laplace(sensitivity=2**50, epsilon=1).release([0] * 4)
    gaussian = tacit.Gaussian(sensitivity=2**50, epsilon=1, delta="1e-6").release([0] * 4)
    return [int(value) for value in (*laplace, *gaussian)]


def in_forks(count: int, job: Callable[[], Numbers] = wide_numbers) -> list[Numbers]:
    """Return what `count` forks of this process draw."""
    return [numbers for read, pid in [_start(job) for _ in range(count)] for numbers in [_collect(read, pid)]]


def in_pool(count: int) -> list[Numbers]:
    """Return what the workers of a forking multiprocessing pool draw, one task each."""
    with _quiet_forks(), multiprocessing.get_context("fork").Pool(count) as pool:
        drawn = pool.map(wide_numbers, range(count), chunksize=1)
        pool.close()  # the workers end by themselves, before the pool would end them
        pool.join()
    return drawn


def in_prefork_server(count: int) -> list[Numbers]:
    """Return what the workers of a server answer that were forked before the first request."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(count)

        def serve() -> Numbers:
            connection, _ = door.accept()
            with connection:
                connection.sendall(json.dumps(wide_numbers()).encode())
            return []

        workers = [_start(serve) for _ in range(count)]
        answers = []
        for _ in range(count):
            with socket.create_connection(door.getsockname(), timeout=SECONDS_MAX) as connection:
                answers.append(json.loads(_read_all(connection.recv)))
        for read, pid in workers:
            _collect(read, pid)
    return answers


def in_nested_namespaces() -> tuple[list[Numbers], str]:
    """Return what a process and its fork draw that both have process id 1, and how that was arranged.

    The first is process 1 of a PID namespace; after it has drawn, it enters another and forks a child that is process 1
    too. Where the system does not permit it, os.getpid is replaced by a constant before the fork.
    """
    outcome = in_forks(1, _namespaced_pair)[0]
    if outcome:
        return _halves(outcome), "nested PID namespaces"
    return _halves(in_forks(1, _same_pid_pair)[0]), "not permitted here; os.getpid made constant instead"


def in_raw_clones(count: int) -> tuple[list[Numbers], str]:
    """Return what raw clones of one process draw: no handler that a fork would call has run in them."""
    call = _CLONE_CALL.get(platform.machine()) if platform.system() == "Linux" else None
    if call is None:
        return in_forks(count), "raw clone is not known for this machine; forks instead"

    def clones() -> Numbers:
        wide_numbers()  # so that there is a state to repeat
        started = [_start(wide_numbers, fork=lambda: _raw_clone(call)) for _ in range(count)]
        return [number for read, pid in started for number in _collect(read, pid)]

    drawn = in_forks(1, clones)[0]
    return [drawn[start : start + 8] for start in range(0, len(drawn), 8)], "raw clone"


def _namespaced_pair() -> Numbers:
    """In a process of its own: return the pair's numbers, or nothing where namespaces are not permitted."""
    if not _enter_pid_namespace():
        return []
    read, pid = _start(_process_one)
    return _collect(read, pid)


def _process_one() -> Numbers:
    wide_numbers()
    if os.getpid() != 1 or not _enter_pid_namespace():
        return []
    read, pid = _start(lambda: [os.getpid(), *wide_numbers()])
    mine = wide_numbers()
    inner_pid, *theirs = _collect(read, pid)
    return mine + theirs if inner_pid == 1 else []


def _same_pid_pair() -> Numbers:
    os.getpid = lambda: 1  # in a process that ends right after
    wide_numbers()
    read, pid = _start(wide_numbers)
    return wide_numbers() + _collect(read, pid)


def _enter_pid_namespace() -> bool:
    """Arrange that the next child is process 1 of a new PID namespace; return whether that is permitted."""
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (AttributeError, OSError):
        return False
    return bool(unshare(CLONE_NEWPID) == 0 or unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0)


def _raw_clone(call: int) -> int:
    pid = ctypes.PyDLL(None, use_errno=True).syscall(call, signal.SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise TacitError("the raw clone failed")
    return int(pid)


def _start(job: Callable[[], Numbers], fork: Callable[[], int] = os.fork) -> tuple[int, int]:
    """Run `job` in a child; return the pipe its numbers come through, and its process id."""
    read, write = os.pipe()
    with _quiet_forks():
        pid = fork()
    if pid:
        os.close(write)
        return read, pid
    try:  # the child: whatever happens, it ends here
        os.close(read)
        os.write(write, json.dumps(job()).encode())
        os._exit(0)
    finally:
        os._exit(1)


def _collect(read: int, pid: int) -> Numbers:
    def next_part(size: int) -> bytes:
        ready, _, _ = select.select([read], [], [], SECONDS_MAX)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        return os.read(read, size)

    text = _read_all(next_part)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if status or not text:
        raise TacitError(f"a process that should have drawn noise ended with status {status}")
    numbers: Numbers = json.loads(text)
    return numbers


def _read_all(next_part: Callable[[int], bytes]) -> bytes:
    text = b""
    while part := next_part(1 << 16):
        text += part
    return text


def _halves(numbers: Numbers) -> list[Numbers]:
    middle = len(numbers) // 2
    return [numbers[:middle], numbers[middle:]]


def _quiet_forks() -> AbstractContextManager[object]:
    """Forking beside threads is warned about by newer Pythons; it is what these cases are about."""
    return warnings.catch_warnings(action="ignore", category=DeprecationWarning)
