"""Pages that other packages bring, found by their entry points in the group `tacit.pages`.

An entry point is an `OutsidePages`. Their templates extend the server's, and their words are translated by catalogs of
their own. Pages are found once, when the first page or route is made.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request

GROUP = "tacit.pages"

Visitor = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class OutsidePages:
    """Pages of another package: a folder with templates/, static/ and words/, a link for the header, and their routes.

    `add` gets the application, and a function that returns a page's values `person` and `visit`: None for a visitor
    who is not signed in.
    """

    folder: Path
    address: str
    title: str
    add: Callable[[FastAPI, Visitor], None]


@cache
def outside_pages() -> tuple[OutsidePages, ...]:
    """Return the pages of all installed packages, by the names of their entry points."""
    found = {(point.name, point.value): point for point in entry_points(group=GROUP)}  # a package may appear twice
    return tuple(found[key].load() for key in sorted(found))
