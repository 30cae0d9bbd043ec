"""How long `import tacit` takes in a fresh process, beyond what starting Python takes."""

import subprocess
import sys
from collections.abc import Iterator

from bench.measure import Result, Seconds, best_of_each


def results() -> Iterator[Result]:
    """Yield the import's time and its limit."""
    bare, with_tacit = best_of_each(lambda: start("pass"), lambda: start("import tacit"), repeats=5)
    yield Seconds("import tacit", max(0.0, with_tacit - bare), limit=0.2)


def start(code: str) -> None:
    """Run a fresh Python on one line of code."""
    subprocess.run([sys.executable, "-c", code], check=True)
