"""The names of people: equal spellings, allowed names, and the migration of ledgers that counted spellings as people.

Two spellings that differ only in case, or in how an accent is written, are one name: otherwise one person would have
two budgets. A name that people could take for another's is refused. Ledgers of an older layout had an account for each
spelling; their next entry, of kind names, adds those together.
"""

import json
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from tacit.errors import InvalidParameter
from tacit.ledger.chain import canonical
from tacit.ledger.entry import ACCOUNT, Account, account_from, account_name, account_text, scope_of

NAME_MAX = 100
# The prefixes of names in the state: how a name was first written; how an older ledger had spelled it; and the entry
# from which on spellings are one.
WRITTEN = "written "
SPELLED = "spelled "
NAMES = "names"
BUDGETS = "budgets "

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
    """Return the script that a letter is of, by the first word of its name; None for characters that all scripts
    share."""
    if not unicodedata.category(letter).startswith("L"):
        return None
    first = unicodedata.name(letter, "?").split(" ")[0]
    if first == "LATIN" and ord(letter) >= _LATIN_ENDS and ord(letter) not in _LATIN_MORE:
        return "PHONETIC"
    return {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK"}.get(first, first)


# ---- ledgers of an older layout --------------------------------------------------------------------------------------


def folded(values: dict[str, str]) -> dict[str, str]:
    """Return the changes of a state when spellings become one: accounts are added up, and every budget stays.

    Spending under every spelling counts, and if two had a budget, both hold from now on.
    """
    accounts: dict[str, list[str]] = {}
    budgets: dict[str, list[str]] = {}
    spellings: dict[str, set[str]] = {}
    for name in values:
        kind = ACCOUNT if name.startswith(ACCOUNT) else BUDGETS if name.startswith(BUDGETS) else None
        if kind is None:
            continue
        cohort, who, *period = json.loads(name.removeprefix(kind))
        if not who:
            continue
        key = name_key(who)
        spellings.setdefault(key, set()).add(who)
        if kind == ACCOUNT:
            accounts.setdefault(account_name(scope_of(cohort, analyst=key, period=period[0])), []).append(name)
        else:
            budgets.setdefault(kind + canonical([cohort, key]), []).append(name)
    changed = {key for key, some in spellings.items() if some != {key}}
    put = {SPELLED + canonical(key): canonical(sorted(spellings[key] - {key})) for key in changed}
    put |= {WRITTEN + canonical(key): canonical(min(spellings[key])) for key in changed}
    put |= {to: _account_sum(values[name] for name in some) for to, some in accounts.items() if some != [to]}
    return put | {to: _budget_union(values[name] for name in some) for to, some in budgets.items() if some != [to]}


def _account_sum(texts: Iterable[str]) -> str:
    total = Account()
    for account in map(account_from, texts):
        total = Account(total.spent + account.spent, total.charges + account.charges, max(total.last, account.last))
    return account_text(total)


def _budget_union(texts: Iterable[str]) -> str:
    return canonical(sorted((one for text in texts for one in json.loads(text)), key=lambda one: one[1]))
