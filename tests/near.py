"""`make near`: the tests of the rooms that differ from the main branch, and the gauntlet's cases that look at them.

A room's tests are those in its folder of tests/, or test_ROOM.py; a test that changed is run itself. Rooms above may
break too: `make test` before a commit runs their tests.
"""

import subprocess
import sys
from pathlib import Path, PurePosixPath

from tests.changes import PROJECT, changed_files
from tests.gauntlet.turns import tests_near

# rooms whose tests are in a folder of another name
TESTS_OF = {"asking": "tests/door", "catalog_file": "tests/tables", "remote": "tests/server"}
ALWAYS = ("tests/test_tidy.py", "tests/test_house.py")


def paths_near(changed: frozenset[str], project: Path = PROJECT) -> list[str]:
    """Return the folders, files and tests to give to pytest."""
    found = set(ALWAYS)
    for path in map(PurePosixPath, changed):
        room = path.parts[2].removesuffix(".py") if path.parts[:2] == ("src", "tacit") else ""
        if room:
            found |= {TESTS_OF.get(room, f"tests/{room}"), f"tests/test_{room}.py", str(path)}  # and its examples
        elif path.parts[0] == "tests":
            found.add(str(path) if path.name.startswith("test_") else str(path.parent) if len(path.parts) > 2 else "")
        elif path.parts[0] == "gauntlet":
            serves_all = path.parts[3:4] in (("frame",), ("stage",))
            found |= (
                {"tests/gauntlet"} if serves_all else {f"tests/gauntlet/test_{each}.py" for each in ("targets", "fit")}
            )
        elif path.parts[0] == "classroom":
            found |= {"tests/classroom", "classroom/src"}
        elif path.suffix == ".md":
            found.add("tests/test_docs.py")  # of pages it runs the first ones, and those that changed
    there = {each for each in found - {""} if (project / each.partition("::")[0]).exists()}
    # a file of a folder that is run anyway would be run twice
    return sorted(each for each in there if not any(str(above) in there for above in PurePosixPath(each).parents))


def main(words: list[str]) -> int:
    """Run pytest with what is near, and with the words given."""
    changed = changed_files()
    chosen = paths_near(changed)
    if "tests/gauntlet" not in chosen:
        chosen += tests_near(changed)
    # a process of its own: pytest rewrites modules as they are imported, and the gauntlet has imported some by now
    return subprocess.run([sys.executable, "-m", "pytest", *words, *chosen], cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
