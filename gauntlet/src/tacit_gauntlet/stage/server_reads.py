"""The stage for rows that a PostgreSQL server keeps: tables there, several connections, and changes midway."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tacit_gauntlet.frame.case import NotTried
from tacit_gauntlet.stage.postgres_rows import writer
from tacit_gauntlet.stage.postgres_server import server, server_programs
from tacit_gauntlet.stage.table import SALT, Question, plan_of, protected
from tacit_gauntlet.targets import planted, standing


class Desk:
    """A server of a case's own, and a connection that writes to it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._link = writer(address)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run statements, and return the rows of the last one."""
        found = self._link.execute(sql)
        return found.fetchall() if found.description else []

    def ask(self, sql: str, name: str = "t") -> Question:
        """Return a question about a table of the server; bounds are wide, so that every row counts."""
        wide = {"rows_per_unit": 10**6, "groups_per_unit": 100, "columns": {"x": {"between": (0, 9)}}}
        return protected(f"{self._address}&table=public.{name}", name=name, **wide).sql(sql)

    def end_reader(self) -> None:
        """End one connection that sends rows."""
        sending = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%' ORDER BY pid LIMIT 1"
        if not self.run(f"SELECT pg_terminate_backend(pid) FROM ({sending}) AS readers"):
            raise NotTried("no connection was sending rows any more")

    def close(self) -> None:
        """Let go of the server."""
        self._link.close()


@contextmanager
def desk() -> Iterator[Desk]:
    """Lend a server of this case's own."""
    programs = server_programs()
    if programs is None:
        raise NotTried("PostgreSQL is not installed here")
    with ExitStack() as stack:
        try:
            found = Desk(stack.enter_context(server(programs)))
        except Exception as problem:  # for any reason, there is no server
            raise NotTried("PostgreSQL does not start here") from problem
        stack.callback(found.close)
        yield found


def exact_of(question: Question) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """Return the exact sums of each group."""
    found = question.session.engine.aggregate(plan_of(question), SALT)
    return {key: tuple(int(found.sums[name][at]) for name in sorted(found.sums)) for at, key in enumerate(found.keys)}


@contextmanager
def several_readers(connections: int) -> Iterator[None]:
    """Have each table read by so many connections, however small it is and whatever the machine has."""
    with (
        planted("bytes of a batch", 1 << 15),  # so that the server has more to send when the first one is read
        planted("pages of a reader", 1),
        planted("cores of a reader", 1),
        planted("readers at most", connections),
        planted("os.cpu_count", lambda: connections),
    ):
        yield


@contextmanager
def at_the_first_batch(act: Callable[[], object]) -> Iterator[list[bool]]:
    """Do something once, between the first batch of a read and the next; yield whether it was done."""
    done: list[bool] = []
    stream = standing("Snapshot.stream")

    def disturbed(snapshot: Any, select: str) -> Iterator[Any]:
        for batch in stream(snapshot, select):
            if not done:
                done.append(True)
                act()
            yield batch

    with planted("Snapshot.stream", disturbed):
        yield done


@contextmanager
def before_the_pages(act: Callable[[], object]) -> Iterator[list[bool]]:
    """Do something once, after the snapshot was taken and before a row of it is read."""
    done: list[bool] = []
    parts = standing("Snapshot.parts")

    def disturbed(snapshot: Any, table: str) -> Any:
        if not done:
            done.append(True)
            act()
        return parts(snapshot, table)

    with planted("Snapshot.parts", disturbed):
        yield done


@contextmanager
def server_sends_all() -> Iterator[None]:
    """Have the server send every row, whatever is asked of them."""
    with planted("wanted_rows", lambda *_: None):
        yield


def rows_sent(question: Question) -> int:
    """Return how many rows the server sends for a question."""
    sent: list[int] = []
    stream = standing("Snapshot.stream")

    def counted(snapshot: Any, select: str) -> Iterator[Any]:
        for batch in stream(snapshot, select):
            sent.append(len(batch))
            yield batch

    with planted("Snapshot.stream", counted):
        exact_of(question)
    return sum(sent)
