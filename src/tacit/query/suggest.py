"""The name someone probably meant."""

import difflib
from collections.abc import Iterable

NAME_MOST = 200  # what is longer is no name that was mistyped


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest public name, or the list of them where none is near."""
    names = sorted(known)
    folded = {each.lower(): each for each in names}
    near = difflib.get_close_matches(str(name)[:NAME_MOST].lower(), folded, n=1)
    if near:
        return f"\nhint: did you mean '{folded[near[0]]}'?"
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"\nhint: there are {listed}" if names else ""
