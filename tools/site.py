"""The site: `make docs` builds the pages of docs/ with Sphinx into build/site, and checks every link between them.

Pages stay as they are in docs/, plain Markdown. Here they get doors by reader, a search, a version, and formulas: what
stands in a proof between `$` is mathematics. Links to files that are not pages become plain words.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
DOCS, SOURCE, SITE = PROJECT / "docs", PROJECT / "build" / "site-source", PROJECT / "build" / "site"
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
CONF = """
project, author, release = "Tacit", "The Tacit developers", "{version}"
extensions = ["myst_parser"]
html_theme, html_title = "furo", f"Tacit {{release}}"
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
mathjax3_config = {{"tex": {{"inlineMath": [["$", "$"]]}}}}
suppress_warnings = ["misc.highlighting_failure", "toc.not_included"]
exclude_patterns = []
"""
DOORS = {
    "Analyse": (
        "guide/first-answers guide/sql guide/functions guide/bounds guide/engines guide/databases guide/models "
        "guide/synthetic guide/running coming-from"
    ),
    "Publish": "guide/released-table guide/publish guide/calendar benchmarks/answers sharp-edges",
    "Curate": "guide/curator guide/server guide/operation guide/pages compatibility",
    "Teach": (
        "guide/students guide/names guide/composition guide/local-or-central guide/attacks guide/overfitting "
        "guide/audit glossary"
    ),
    "Build": "reference ARCHITECTURE decisions guide/gauntlet benchmarks side-by-side",
}


def shown(text: str, page: Path) -> str:
    """Return a page whose links lead to pages and pictures of the site; others become plain words."""

    def link(found: re.Match[str]) -> str:
        mark, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        path = (page.parent / target).resolve()
        if path == PROJECT / "README.md":
            return f"[{words}]({'../' * len(page.relative_to(DOCS).parent.parts)}index.md)"
        inside = path.is_relative_to(DOCS) and path.is_file()
        return f"{mark}[{words}]({target}{anchor})" if inside else words

    return LINK.sub(link, text)


def write_source(version: str) -> None:
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(DOCS, SOURCE)
    for path in DOCS.rglob("*.md"):
        (SOURCE / path.relative_to(DOCS)).write_text(shown(path.read_text(encoding="utf-8"), path), encoding="utf-8")
    readme = (PROJECT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    readme = re.sub(r"<!--.*?-->\n?", "", readme, flags=re.DOTALL)
    listed = {page for pages in DOORS.values() for page in pages.split()}
    rest = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")} - listed
    proofs = sorted(page for page in rest if page.startswith("proofs/"))
    doors = {**DOORS, "Proofs": " ".join(proofs), "More": " ".join(sorted(rest - {*proofs}))}
    trees = "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {door}\n\n{chr(10).join(pages.split())}\n```\n"
        for door, pages in doors.items()
    )
    (SOURCE / "index.md").write_text(shown(readme, DOCS / "index.md") + trees, encoding="utf-8")
    (SOURCE / "conf.py").write_text(CONF.format(version=version))


def main() -> None:
    found = re.search(r'^__version__ = "([^"]+)"', (PROJECT / "src/tacit/__init__.py").read_text(), re.MULTILINE)
    write_source(found[1] if found else "")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", str(SOURCE), str(SITE)]
    if subprocess.run(command, check=False).returncode:
        sys.exit("the site has faults, which are listed above")
    print(f"the site is in {SITE}: open {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
