"""What a release is made of, built and tried: `make release`, or `python tools/release.py` with the tools of the group.

It builds the three packages, checks what the registry would show, counts typed names, lists every dependency (SBOM and
constraints.txt), and runs the README in a clean environment in which the wheels are installed. Nothing is uploaded.
TACIT_URL and TACIT_EMAIL are the addresses that a publisher gives; without them none is named, and pyroma is asked for
less.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
BUILT = PROJECT / "dist"
SDIST_MOST = 2_000_000
TYPED_LEAST = 99.0
PYROMA_LEAST = 9  # with both addresses; each that nobody gave costs a point
README = "from tests.doc_blocks import run_page; print(run_page(open(sys.argv[1]).read()), 'blocks of the README ran')"


def ran(*command: object, **options: object) -> str:
    words = [str(each) for each in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def tool(name: str, *words: object, **options: object) -> str:
    return ran(Path(sys.executable).with_name(name), *words, **options)


def build() -> tuple[Path, list[Path]]:
    """Build the product as a source distribution and three wheels; return the first and the others."""
    shutil.rmtree(BUILT, ignore_errors=True)
    for folder in (PROJECT, PROJECT / "classroom", PROJECT / "gauntlet"):
        kind = () if folder == PROJECT else ("--wheel",)
        ran(sys.executable, "-m", "build", "--outdir", BUILT, *kind, folder)
    (sdist,) = BUILT.glob("tacit-*.tar.gz")
    if sdist.stat().st_size > SDIST_MOST:
        sys.exit(f"{sdist.name} has {sdist.stat().st_size:,} bytes, more than {SDIST_MOST:,}")
    print(f"built: {sdist.name}, {sdist.stat().st_size:,} bytes")
    return sdist, sorted(BUILT.glob("*.whl"))


def check(sdist: Path, wheels: list[Path]) -> None:
    """Check what the registry would show and what the wheels hold."""
    tool("twine", "check", "--strict", sdist, *wheels)
    for wheel in wheels:
        tool("check-wheel-contents", wheel)
    least = PYROMA_LEAST - sum(not os.environ.get(name) for name in ("TACIT_URL", "TACIT_EMAIL"))
    rating = tool("pyroma", "--min", least, sdist)
    print("twine and check-wheel-contents find nothing; pyroma:", *re.findall(r"rating: (\S+)", rating))


def try_out(wheels: list[Path], folder: Path) -> None:
    """Install the wheels into a clean environment, and let it check itself, answer the README and open its pages."""
    venv.create(folder, with_pip=True, clear=True)
    python, pip = folder / "bin" / "python", (folder / "bin" / "python", "-m", "pip", "-q", "--no-input")
    product = next(each for each in wheels if each.name.startswith("tacit-"))
    ran(*pip, "install", product)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"the core takes {size / 1e6:,.0f} MB, pip among them")
    core = ran(*pip, "freeze", "--exclude", "tacit")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    ran(folder / "bin" / "tacit", "selftest", cwd=folder, env=clean)
    ran(folder / "bin" / "tacit", "docs", "first-answers", cwd=folder, env=clean)
    others = [each for each in wheels if "classroom" in each.name]
    ran(*pip, "install", f"{product}[learn,plots]", "pandas", *others)
    code = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); {README}"
    print(ran(python, "-W", "ignore", "-c", code, PROJECT / "README.md", cwd=folder, env=clean).splitlines()[-1])
    ran(*pip, "install", *(f"{product}[{extra}]" for extra in ("fast", "excel", "postgres", "server", "attacks")))
    pins = ran(*pip, "freeze", "--exclude", "tacit", "--exclude", "tacit-classroom")
    note = "# What the release was tried with: pip install tacit -c constraints.txt\n"
    (BUILT / "constraints.txt").write_text(note + pins)
    print(f"constraints.txt: {len(pins.splitlines())} packages, {len(core.splitlines())} of them the core's")
    tool("cyclonedx-py", "environment", "--output-file", BUILT / "sbom.cdx.json", python)
    print("sbom.cdx.json: CycloneDX")
    types(python)


def types(python: Path) -> None:
    """Count the names whose type a checker knows without guessing."""
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    words = ("--ignoreexternal", "--verifytypes", "tacit")
    command = [str(Path(sys.executable).with_name("pyright")), *words]
    there = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=there)
    (score,) = re.findall(r"completeness score: ([\d.]+)%", done.stdout) or ("0",)
    if float(score) < TYPED_LEAST:
        sys.exit(f"pyright knows the types of {score} % of the names, and {TYPED_LEAST} % are asked for")
    print(f"pyright knows the types of {score} % of the names")


if __name__ == "__main__":
    source, made = build()
    check(source, made)
    try_out(made, PROJECT / "build" / "release")
