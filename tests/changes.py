"""The files that differ from the main branch, and the day: by them a run of the tests chooses what it runs.

On main itself the files are those of the last commit. Without git no file has changed. All workers of one run must
agree, though a file may change or a day end meanwhile: the first process looks, and those that it starts read what it
found in their environment.
"""

import os
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
KEPT_FILES, KEPT_DAY = "TACIT_TESTS_CHANGED", "TACIT_TESTS_DAY"
MAIN = ("origin/main", "main")


def changed_files() -> frozenset[str]:
    """Return the paths, from the root of the project, of files that were added, changed, moved or removed."""
    if KEPT_FILES not in os.environ:
        os.environ[KEPT_FILES] = "\n".join(sorted(_look()))
    return frozenset(os.environ[KEPT_FILES].split("\n")) - {""}


def today() -> date:
    """Return the day of this run, in UTC."""
    return date.fromisoformat(os.environ.setdefault(KEPT_DAY, datetime.now(UTC).date().isoformat()))


def _look(project: Path = PROJECT) -> set[str]:
    def git(*words: str) -> str | None:
        try:
            ran = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=False)
        except OSError:
            return None
        return ran.stdout.strip() if ran.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    bases = (git("merge-base", "HEAD", main) for main in MAIN)
    base = next((each for each in bases if each), None)
    if head is None or base is None:
        return set()
    if base == head:
        base = git("rev-parse", "HEAD^") or head
    differing = git("diff", "--name-only", "--no-renames", base) or ""
    untracked = git("ls-files", "--others", "--exclude-standard") or ""
    return {*differing.split("\n"), *untracked.split("\n")} - {""}
