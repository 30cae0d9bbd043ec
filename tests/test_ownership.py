"""A path is ours where nobody else can change what is found there, on the whole way to it."""

import os

import pytest

from tacit.errors import LedgerError
from tacit.ledger.home import home_folder
from tacit.system import fault_of, make_folder


@pytest.fixture
def ours(tmp_path):
    folder = tmp_path / "a" / "b" / "c"
    make_folder(folder)
    return folder


def test_a_folder_made_here_is_ours_and_so_is_one_not_made_yet(ours):
    assert fault_of(ours) is None
    assert fault_of(ours / "not yet" / "there") is None
    assert [folder.stat().st_mode & 0o777 for folder in (ours, ours.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_folder_on_the_way_may_be_written_to_by_others(ours, level):
    step = [ours, *ours.parents][level]
    step.chmod(0o777)
    assert "others may write" in fault_of(ours)
    step.chmod(0o1777)  # as /tmp: others can add to it, not rename what is ours
    assert (fault_of(ours) is None) == (level > 0)


def test_links_are_followed_by_the_same_rule(ours):
    link = ours.parent / "link"
    link.symlink_to(ours)
    assert fault_of(link) is None
    (ours.parent / "up").symlink_to("../b/c")
    assert fault_of(ours.parent / "up") is None
    ours.chmod(0o777)
    assert "others may write" in fault_of(link)
    assert "others may write" in fault_of(ours.parent / "up")
    (ours.parent / "round").symlink_to(ours.parent / "round")
    assert "too many" in fault_of(ours.parent / "round")


def test_what_belongs_to_another_user_is_not_ours(ours, monkeypatch):
    nobody = 54321
    if os.geteuid() == 0:
        os.chown(ours.parent, nobody, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: nobody)
    assert "another user" in fault_of(ours)


def test_a_home_that_others_may_write_to_is_refused(ours, monkeypatch):
    monkeypatch.setenv("TACIT_HOME", str(ours))
    assert home_folder() == ours
    ours.chmod(0o777)
    with pytest.raises(LedgerError, match="chmod go-w"):
        home_folder()
