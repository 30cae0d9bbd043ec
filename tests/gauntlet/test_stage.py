"""The stage itself: what cases are played on does not fail by luck."""

import gc
import os
import weakref

import pytest

from tacit_gauntlet.stage.ledger import in_child


class Connection:
    """Something that is garbage only in a circle, as connections of a case that is over are."""

    def __init__(self) -> None:
        self.myself = self


@pytest.fixture
def collected_by_hand():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collected_by_hand")
def test_a_forked_child_does_not_end_what_its_parent_left():
    left = weakref.ref(Connection())

    def collects(writer: int) -> None:
        own = weakref.ref(Connection())
        gc.collect()
        os.write(writer, f"{left() is not None} {own() is None}".encode())

    assert in_child(collects) == (["True True"], 0)
