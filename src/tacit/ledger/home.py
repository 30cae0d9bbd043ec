"""The home folder: where the signing key, the anchors and, by default, the ledger live."""

import os
from pathlib import Path

from tacit.errors import LedgerError
from tacit.ownership import make_folder, others_may_write


def home_folder() -> Path:
    """Return $TACIT_HOME, or the folder for programs' state; it is made, for its owner alone, if there is none."""
    return _ours(_named_folder(), "put another key or ledger there").absolute()


def default_ledger() -> Path:
    """Return where the ledger is when none is named."""
    return home_folder() / "ledger.db"


def has_default_ledger() -> bool:
    """Whether there is a ledger where one is looked for when none is named; nothing is made."""
    return (_named_folder() / "ledger.db").exists()


def key_file() -> Path:
    """Return where the signing key is."""
    return home_folder() / "signing.key"


def anchors_folder() -> Path:
    """Return where the anchors are, one file for each ledger."""
    folder = home_folder() / "anchors"
    return _ours(folder, "take away what tells an old ledger from the newest") if folder.exists() else folder


def _ours(folder: Path, danger: str) -> Path:
    """Return a folder, made if there is none; one that others may write to is refused."""
    try:
        make_folder(folder)
        shared = others_may_write(folder.stat())
    except OSError as error:
        raise LedgerError(
            f"the folder {folder} cannot be made ({error.strerror})\nhint: set TACIT_HOME to a folder you may write"
        ) from error
    if shared:
        raise LedgerError(f"others may write to {folder}, so they could {danger}\nhint: chmod go-w {folder}")
    return folder


def _named_folder() -> Path:
    named = os.environ.get("TACIT_HOME")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(named) if named else Path(state) / "tacit"
