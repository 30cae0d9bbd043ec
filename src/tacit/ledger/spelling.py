"""The names of people: equal spellings, and allowed names.

Two spellings that differ only in case, or in how an accent is written, are one name: otherwise one person would have
two budgets. A name that people could take for another's is refused.
"""

import unicodedata
from functools import lru_cache

from tacit.errors import InvalidParameter

NAME_MAX = 100

# Besides letters and the digits 0 to 9.
_MARKS = frozenset(" .-_'@+")
# Scripts of living languages; a name keeps to one, except those that are written together.
_SCRIPT_NAMES = """
    ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI HANGUL HEBREW
    HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU THAANA THAI TIBETAN
"""
_SCRIPTS = frozenset(_SCRIPT_NAMES.split())
_TOGETHER = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "HANGUL"},
    {"LATIN", "CJK", "BOPOMOFO"},
)
_LATIN_ENDS, _LATIN_MORE = 0x250, range(0x1E00, 0x1F00)  # beyond them: phonetic letters, which look like others
# What letters of other scripts, and digits, are taken for.
_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝвнкмтзгпьүѵӏАЕОРСУХІЈЅҺԀԚԜВНКМТЗГПЬҮѴӀαβεζηικμνορτυχωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհյցզՕՍՏԼI1|0Oı",
    "aeopcyxijshdqwbhkmt3rnbyvlaeopcyxljshdqwbhkmt3rnbyvlabeznikuvoptuxwyabezhlkmnoptyxonuhjgqousllllooi",
)


def name_key(name: str) -> str:
    """Return the one text for all spellings of a name, in any case and with any form of accents.

    >>> name_key("Ben") == name_key("BEN"), name_key("José") == name_key("JOSE\\u0301")
    (True, True)
    """
    if not isinstance(name, str):
        raise InvalidParameter(f"a person's name must be text, not {type(name).__name__}\nhint: 'ben'")
    return _folded_once(name)


@lru_cache(maxsize=4096)
def _folded_once(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def given_name(name: object) -> str:
    """Return a name as it is kept, or refuse one that could be taken for another, or that a screen would obey."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX:
        raise InvalidParameter(f"a person's name must be a text of 1 to {NAME_MAX} characters\nhint: 'ben'")
    kept = unicodedata.normalize("NFC", name)
    if kept != unicodedata.normalize("NFKC", name) or not all(map(_is_plain, kept)):
        raise InvalidParameter(
            "a person's name is written with letters, the digits 0 to 9, spaces and . - _ ' @ +; this one has another "
            "character, or a form of a letter that only looks like the letter\nhint: 'ben', 'Zoë K.', '陈'"
        )
    if kept != " ".join(kept.split(" ")).strip() or "  " in kept or not any(map(str.isalnum, kept)):
        raise InvalidParameter(
            "a person's name needs a letter, and may have only single spaces, inside it\nhint: 'ben'"
        )
    scripts = {script for script in map(_script, kept) if script is not None}
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        raise InvalidParameter(
            f"a person's name is written in one script, and this one mixes {' and '.join(sorted(scripts)).lower()}: "
            "it could be taken for another's\nhint: write it in one of them"
        )
    return kept


def look(name: str) -> str:
    """Return what a name looks like: names that people could take for each other share it.

    >>> look("ben1") == look("benl"), look("\\u0441\\u043e\\u0440\\u0443") == look("copy"), look("ann") == look("anne")
    (True, True, False)
    """
    plain = unicodedata.normalize("NFKD", name).translate(_ALIKE).casefold()
    return plain.replace("rn", "m").replace("vv", "w")


def _is_plain(letter: str) -> bool:
    if letter in _MARKS or "0" <= letter <= "9":
        return True
    if unicodedata.category(letter) in ("Mn", "Mc"):
        return "VARIATION SELECTOR" not in (called := unicodedata.name(letter, "")) and "JOINER" not in called
    script = _script(letter)
    return script in _SCRIPTS and "FILLER" not in unicodedata.name(letter, "")


def _script(letter: str) -> str | None:
    """Return the script of a letter, the first word of its name; None for characters that all scripts share."""
    if not unicodedata.category(letter).startswith("L"):
        return None
    first = unicodedata.name(letter, "?").split(" ")[0]
    if first == "LATIN" and ord(letter) >= _LATIN_ENDS and ord(letter) not in _LATIN_MORE:
        return "PHONETIC"
    return {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK"}.get(first, first)
