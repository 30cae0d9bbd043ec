"""What the command line's tests share: a way to run it, and a small table to ask."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.cli.app import main


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str


@pytest.fixture
def tacit_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `tacit` with some words, in this process."""

    def run(*words: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(word) for word in words])
        shown = capsys.readouterr()
        code = stopped.value.code
        return Ran(code if isinstance(code, int) else int(bool(code)), shown.out, shown.err)

    return run


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """3,000 people with one visit each: ward A or B, floor 1 to 3, days 0 to 9."""
    places = range(3000)
    path = tmp_path / "visits.parquet"
    columns = {
        "patient": list(places),
        "ward": ["A" if place % 3 else "B, west" for place in places],
        "floor": [1 + place % 3 for place in places],
        "urgent": [place % 2 == 0 for place in places],
        "day": [date(2026, 1, 1 + place % 2) for place in places],
        "days": [float(place % 10) for place in places],
    }
    pq.write_table(pa.table(columns), path)
    return path
