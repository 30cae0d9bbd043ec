"""The home folder: where the signing key, the anchors and, by default, the ledger live."""

import os
from pathlib import Path

from tacit.errors import LedgerError


def home_folder() -> Path:
    """Return $TACIT_HOME, or the folder for programs' state; it is made, for its owner alone, if there is none."""
    named = os.environ.get("TACIT_HOME")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(named) if named else Path(state) / "tacit"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LedgerError(
            f"the folder {folder} cannot be made ({error.strerror})\nhint: set TACIT_HOME to a folder you may write"
        ) from error
    return folder.absolute()


def default_ledger() -> Path:
    """Return where the ledger is when none is named."""
    return home_folder() / "ledger.db"


def key_file() -> Path:
    """Return where the signing key is."""
    return home_folder() / "signing.key"


def anchors_folder() -> Path:
    """Return where the anchors are, one file for each ledger."""
    return home_folder() / "anchors"
