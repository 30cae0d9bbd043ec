"""`tacit docs` prints a page of the documentation: the package brings its pages, so that they fit its version."""

import sys
from pathlib import Path

import tacit
from tacit.cli.options import argument, with_options
from tacit.cli.screen import say
from tacit.errors import InvalidParameter, did_you_mean

# the package's own copy; or the folder of a checkout
LISTED = "\nhint: `tacit docs` lists them"
FOLDERS = (Path(tacit.__file__).parent / "docs", Path(tacit.__file__).parents[2] / "docs")


def pages() -> dict[str, Path]:
    """Return the path of each page by its topic: guide pages by their name, others by their folder and name."""
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        raise InvalidParameter(
            "the pages are missing from this installation\nhint: install tacit again, from a wheel or a checkout"
        )
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    return {name.removeprefix("guide/").lower(): path for name, path in found.items()}


@with_options
def docs(
    topic: str | None = argument("", "A page, such as first-answers, sql, glossary or proofs/laplace.", default=None),
) -> None:
    """Print a page of the documentation, or list all pages.

    Examples: `tacit docs`, `tacit docs first-answers`, `tacit docs proofs/laplace`
    """
    known = pages()
    if topic is None:
        for name, path in known.items():
            if not name.startswith("proofs/"):
                say(f"{name:<24}{path.read_text(encoding='utf-8').partition(chr(10))[0].lstrip('# ')}")
        proofs = [name.removeprefix("proofs/") for name in known if name.startswith("proofs/")]
        say(f"\nproofs/…: {', '.join(proofs)}\n\ntacit docs TOPIC prints one.")
        return
    name = topic.strip().lower().removeprefix("guide/").removesuffix(".md")
    if name not in known:
        raise InvalidParameter(f"there is no page '{topic}'{did_you_mean(topic, known) or LISTED}")
    text = known[name].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console()
        with console.pager(styles=True):
            console.print(Markdown(text))
    else:
        say(text.rstrip("\n"))
