"""The words of the pages: found in templates and forms, kept in German beside them, compiled for gettext.

`python -m tests.server.page_words` adds new words to the German file, for somebody to translate, and compiles it.
"""

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PROJECT = Path(__file__).parents[2]
# the server's pages, and those of the classroom, which have their words beside them
FOLDERS = (
    PROJECT / "src" / "tacit" / "server" / "pages",
    PROJECT / "classroom" / "src" / "tacit_classroom" / "theory",
)
METHODS = [("templates/**.html", "jinja2"), ("**.py", "python")]


def found(folder: Path) -> Catalog:
    """Return every word that the pages of a folder show."""
    catalog = Catalog()
    for name, line, message, comments, context in extract_from_dir(folder, METHODS, keywords=KEYWORDS):
        catalog.add(message, None, [(name, line)], auto_comments=comments, context=context)
    return catalog


KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}


def german_file(folder: Path) -> Path:
    """Return the file of a folder's German words."""
    return folder / "words" / "de" / "LC_MESSAGES" / "pages.po"


def german(folder: Path) -> Catalog:
    """Return the German words as they are kept."""
    with german_file(folder).open("rb") as file:
        return read_po(file, locale="de")


def compiled(catalog: Catalog) -> bytes:
    """Return a catalog as gettext reads it."""
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def main() -> None:
    """Bring the German files up to what the pages show, and compile them."""
    for folder in FOLDERS:
        path = german_file(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = Catalog(locale="de", project="Tacit", header_comment="# The pages' words.")
        kept = german(folder) if path.exists() else fresh
        kept.update(found(folder), no_fuzzy_matching=True)
        kept.obsolete.clear()
        with path.open("wb") as file:
            write_po(file, kept, width=120, sort_output=True, no_location=True, omit_header=False)
        path.with_suffix(".mo").write_bytes(compiled(german(folder)))


if __name__ == "__main__":
    main()
