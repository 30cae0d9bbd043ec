"""The words of the pages: found in templates and forms, kept in German beside them, compiled for gettext.

`python -m tests.server.page_words` adds new words to the German file, for somebody to translate, and compiles it.
"""

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PAGES = Path(__file__).parents[2] / "src" / "tacit" / "server" / "pages"
GERMAN = PAGES / "words" / "de" / "LC_MESSAGES" / "pages.po"
METHODS = [("templates/**.html", "jinja2"), ("**.py", "python")]


def found() -> Catalog:
    """Return every word that the pages show."""
    catalog = Catalog()
    for name, line, message, comments, context in extract_from_dir(PAGES, METHODS, keywords=KEYWORDS):
        catalog.add(message, None, [(name, line)], auto_comments=comments, context=context)
    return catalog


KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}


def german() -> Catalog:
    """Return the German words as they are kept."""
    with GERMAN.open("rb") as file:
        return read_po(file, locale="de")


def compiled(catalog: Catalog) -> bytes:
    """Return a catalog as gettext reads it."""
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def main() -> None:
    """Bring the German file up to what the pages show, and compile it."""
    GERMAN.parent.mkdir(parents=True, exist_ok=True)
    kept = german() if GERMAN.exists() else Catalog(locale="de", project="Tacit", header_comment="# The pages' words.")
    kept.update(found(), no_fuzzy_matching=True)
    kept.obsolete.clear()
    with GERMAN.open("wb") as file:
        write_po(file, kept, width=120, sort_output=True, no_location=True, omit_header=False)
    GERMAN.with_suffix(".mo").write_bytes(compiled(german()))


if __name__ == "__main__":
    main()
