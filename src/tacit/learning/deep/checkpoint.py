"""Checkpoints: a run's released parameters and its optimizer, written whole or not at all, and read without code.

A checkpoint holds neither rows nor secrets. Which rounds were begun is in the ledger only: a copy of a checkpoint gains
no round.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.noise import fresh_bytes

FORMAT = 1
RUN_BYTES = 16


@dataclass(frozen=True)
class KeptRun:
    """A run by its id and its recipe, with both states, and the file that they are kept in, if any."""

    run: str
    recipe: str
    path: Path | None
    model: Any
    optimising: Any

    @classmethod
    def of(cls, path: Path | None, recipe: str, model: Any, optimising: Any) -> "KeptRun":
        """Return a new run, or go on with the one at the path: both states are set to its own.

        A new one is written before anything is charged, so that a charged run can be resumed.
        """
        if path is not None and path.exists():
            found = _read_run(path, recipe)
            model.load_state_dict(found["module"])
            optimising.load_state_dict(found["optimizer"])
            return cls(found["run"], recipe, path, model, optimising)
        made = cls(fresh_bytes(RUN_BYTES).hex(), recipe, path, model, optimising)
        made.save(0)
        return made

    def save(self, rounds: int) -> None:
        """Write the states after a number of rounds."""
        if self.path is None:
            return
        import torch

        states = {"module": self.model.state_dict(), "optimizer": self.optimising.state_dict()}
        beside = self.path.with_name(f"{self.path.name}.part")
        with beside.open("wb") as file:
            torch.save({"format": FORMAT, "run": self.run, "recipe": self.recipe, "rounds": rounds, **states}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def _read_run(path: Path, recipe: str) -> dict[str, Any]:
    """Return the checkpoint at a path; refuse one of another run."""
    import torch

    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        is_own = found["format"] == FORMAT and found["recipe"] == recipe and isinstance(found["run"], str)
    except Exception:  # noqa: BLE001 - whatever is in the file
        raise InvalidParameter(f"'{path}' is not a checkpoint of deep.train\nhint: name another file") from None
    if not is_own:
        raise InvalidParameter(
            f"'{path}' is the checkpoint of another run: of another module, table, epsilon or plan"
            "\nhint: resume with the arguments of its start, or name another file"
        )
    return found
