"""Make the peers' environments: `python bench/peers/environments.py [NAME...]`, all of them where none is named.

Each peer gets a folder in .peers/ with a Python of its own and the versions that requirements/NAME.txt pins. What is
below that file's line of comment is what the bench needs beside the peer, and is not part of its size. A stamp in the
folder makes a second run start at once. A peer that does not install is named with the reason, and the others go on.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = Path(os.environ.get("TACIT_PEERS_HOME", HERE.parent.parent / ".peers"))
NAMES = (
    "opendp",
    "smartnoise-sql",
    "pipeline-dp",
    "tmlt.analytics",
    "diffprivlib",
    "python-dp",
    "dp-accounting",
    "multi-freq-ldpy",
    "pure-ldp",
    "interpret-core",
    "opacus",
    "dpmm",
    "opendp-mbi",
)
JAVA = "it needs Java 17 (on Debian: apt-get install openjdk-17-jre-headless)"
# Two libraries on one Spark: Tumult takes Spark 4 on Python 3.12 and later, so both have that Python and that Spark.
ON_SPARK = OURS_ON_SPARK, TUMULT_ON_SPARK = "tacit-on-spark", "tmlt.analytics-on-spark"
ON_SPARK_PYTHON = "3.12"
NEEDS_JAVA = ("tmlt.analytics", *ON_SPARK)
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Environment:
    """A peer that is installed: its Python, its version, and how much of a disk it takes beyond a bare environment."""

    name: str
    python: str
    version: str
    mebibytes: float


class NotInstalled(Exception):
    """A peer could not be installed here; the text says why."""


def environment(name: str) -> Environment:
    """Return a peer's environment, made where it is not there yet; NotInstalled where it cannot be."""
    if name in NEEDS_JAVA and shutil.which("java") is None:
        raise NotInstalled(JAVA)
    base = python_named(ON_SPARK_PYTHON) if name in ON_SPARK else sys.executable
    text = requirements(name)
    folder = HOME / name
    stamp = folder / "installed.json"
    mark = hashlib.sha256(text.encode()).hexdigest()
    if stamp.exists():
        kept = json.loads(stamp.read_text())
        if kept.pop("mark") == mark and Path(kept["python"]).exists():
            return Environment(**kept)
    print(f"installing {name} into {folder} (once)", file=sys.stderr, flush=True)
    made = install(name, folder, text, base)
    stamp.write_text(json.dumps({**asdict(made), "mark": mark}))
    return made


def requirements(name: str) -> str:
    """Return what an environment has: what its file pins, or Tacit as it is here with Tumult's Spark."""
    if name != OURS_ON_SPARK:
        return (HERE / "requirements" / f"{name}.txt").read_text()
    return f"-e {HERE.parent.parent}[spark] pyspark=={version('pyspark', requirements(TUMULT_ON_SPARK))}"


def python_named(wanted: str) -> str:
    """Return a Python of a version: one on the path, or one that pyenv has; NotInstalled where there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(map(str, root.glob(f"versions/{wanted}.*/bin/python")))
    for python in filter(None, (sys.executable, shutil.which(f"python{wanted}"), *reversed(kept))):
        told = subprocess.run(
            [python, "-c", "import ensurepip, sys; print(*sys.version_info[:2], sep='.')"],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if told.stdout.strip() == wanted:  # a name on the path may lead nowhere
            return python
    way = f"on Debian: apt-get install python{wanted}-venv; or: pyenv install {wanted}"
    raise NotInstalled(f"it needs Python {wanted} with venv ({way})")


def ours() -> Environment:
    """Return an environment with Tacit and what it needs, as `pip install .` makes it: for its size."""
    folder, project = HOME / "tacit", HERE.parent.parent
    stamp = folder / "installed.json"
    mark = hashlib.sha256((project / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists():
        kept = json.loads(stamp.read_text())
        if kept.pop("mark") == mark:
            return Environment(**kept)
    print(f"installing tacit into {folder} (once)", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(folder)])
    bare, python = size(folder), folder / "bin" / "python"
    run([str(python), "-m", "pip", "-qq", "--disable-pip-version-check", "install", str(project)])
    told = subprocess.check_output([str(python), "-c", "import tacit; print(tacit.__version__)"], text=True).strip()
    made = Environment("tacit", str(python), told, round((size(folder) - bare) / MEBIBYTE, 1))
    stamp.write_text(json.dumps({**asdict(made), "mark": mark}))
    return made


def install(name: str, folder: Path, text: str, base: str) -> Environment:
    """Make the folder anew with a Python, and install what the text pins."""
    shutil.rmtree(folder, ignore_errors=True)
    run([base, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    bare = size(folder)
    peer, _, beside = text.partition("\n#")
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    run([*pip, *peer.split()])
    mebibytes = (size(folder) - bare) / MEBIBYTE
    if beside:
        run([*pip, *beside.split("\n", 1)[1].split()])
    told = "as it is here" if name == OURS_ON_SPARK else version(name.removesuffix("-on-spark"), peer)
    return Environment(name, str(python), told, round(mebibytes, 1))


def version(name: str, text: str) -> str:
    """Return the version that a text of requirements pins for a name."""
    distribution = name.removesuffix("-mbi")
    return next(line.split("==")[1] for line in text.splitlines() if line.split("==")[0] == distribution)


def size(folder: Path) -> int:
    """Return the bytes of all files in a folder, each once."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run(command: list[str]) -> None:
    """Run a command; where it fails, its last line is shown here and NotInstalled says what failed.

    That line may name hosts and folders of this machine, so it does not go on the page.
    """
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip() or "no message").splitlines()[-1]
        print(said, file=sys.stderr, flush=True)
        known = "no version that is pinned is to be had for this Python" if "No matching distribution" in said else ""
        raise NotInstalled(known or f"its installer ended with exit code {ran.returncode}")


def main(wanted: list[str]) -> int:
    """Make the wanted environments and print a line for each; 1 where one is missing."""
    names = (*NAMES, *ON_SPARK)
    unknown = set(wanted) - set(names)
    if unknown:
        print(f"no peer named {', '.join(sorted(unknown))}; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    missing = 0
    for name in wanted or names:
        try:
            made = environment(name)
        except NotInstalled as error:
            missing += 1
            print(f"{name}: not installed: {error}", flush=True)
        else:
            print(f"{name} {made.version}: {made.mebibytes:.0f} MiB, {made.python}", flush=True)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
