"""Turns: the number of questions that run at once, and the order of the others.

Analysts are served in rotation, so that a thousand questions of one person delay the next person by one. An analyst has
at most half of the turns at once: slow questions of one never take all. A turn lasts until its answer leaves on the
public clock, not until it is ready, so that the start of the next one does not depend on the rows either.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tacit.server.problems import Problem

WAITING_MAX = 100  # of one analyst
WAITING_ALL_MAX = 5_000


class Turns:
    """A number of turns, given to analysts in rotation."""

    def __init__(self, number: int, *, waiting_max: int = WAITING_MAX) -> None:
        self.number = number
        self.each_most: int = max(1, number // 2)
        self._waiting_max = waiting_max
        self._free = number
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, analyst: str) -> AsyncIterator[None]:
        """Hold a turn inside; wait for it first, or refuse where too many wait already."""
        await self._take(analyst)
        try:
            yield
        finally:
            self._give_back(analyst)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def _take(self, analyst: str) -> None:
        own = self._waiting.get(analyst)
        if (own is not None and len(own) >= self._waiting_max) or self.waiting >= WAITING_ALL_MAX:
            raise Problem(
                "too-many",
                429,
                "too many questions wait already",
                "wait for answers before asking more; no charge was made for this one",
                headers={"Retry-After": "1"},
            )
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(analyst, deque()).append(mine)
        self._hand_out()
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._give_back(analyst)
            raise

    def _give_back(self, analyst: str) -> None:
        self._free += 1
        self._held[analyst] -= 1
        if not self._held[analyst]:
            del self._held[analyst]
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free turns to analysts in rotation: an analyst who had one goes to the end."""
        while self._free:
            analyst = next((each for each in self._waiting if self._held[each] < self.each_most), None)
            if analyst is None:
                return
            queue = self._waiting[analyst]
            mine = queue.popleft()
            if queue:
                self._waiting.move_to_end(analyst)
            else:
                del self._waiting[analyst]
            if not mine.done():
                self._free -= 1
                self._held[analyst] += 1
                mine.set_result(None)
