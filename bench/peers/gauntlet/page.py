"""The side-by-side page: a table of verdicts, the figure behind each, and what the libraries promise differently."""

TITLES = {
    "N01": "outputs lie on a grid that does not depend on the input",
    "N02": "how precise an output is tells nothing about the input",
    "N06": "the spread of the noise is the one promised",
    "N07": "the time a release takes tells nothing about its noise",
    "N11": "seeding a global generator changes nothing",
    "N12": "forked processes draw different noise",
    "S03": "64-bit sums at their ends: one row moves them by its bound at most",
    "S05": "NaN, infinities, −0 and subnormals give a finite answer",
    "S06": "impossible parameters are refused",
    "S15": "bounds left out are refused, or found privately",
    "L01": "many callers and a budget for three",
    "L06": "ten charges of 0.1 are 1",
    "audit": "`tacit.audit` on the Laplace mechanism, claimed ε = 1",
}

INTRO = """\
# Side by side

Some of [the gauntlet](ARCHITECTURE.md#how-it-is-kept-honest)'s cases can be put to other libraries too. This page is
what they did, measured and written by `make side-by-side`; nothing on it is taken from elsewhere. All that was seen is
in [side-by-side.json](side-by-side.json).

"""

HOW = """
Each library runs in an environment of its own, used as its documentation shows
([subjects.py](../bench/peers/gauntlet/subjects.py)); the same probe and the same rule judge all four
([probe.py](../bench/peers/gauntlet/probe.py), [judge.py](../bench/peers/gauntlet/judge.py)). Statistical verdicts are
wrong with chance at most one in a million. *Fails* means that what was seen breaks the sentence on the left, on the
calls that were made; *holds* means that this look found nothing. A dash means that the library has no such part.
"""

PROMISES = """
## What is promised differently

By their own documentation; nothing in this section was measured here but what the cases above show.

- **tacit** answers questions about declared tables, counts what one unit can do to an answer itself, and charges a
  ledger on disk that processes share. Its floating noise is on a coarse public grid.
- **opendp** is a set of parts with proofs. Its floating noise is exact on a grid of 2^-1074 and rounded to floats
  afterwards, which is why N01 finds no coarse grid, and no leak in N02 either. It takes a scale, not an ε: an ε of 0
  has none, and where a parameter gives no finite loss its map says so; both are counted as refusals here. Rows with NaN
  are outside the domain of a sum unless an imputing step comes first, as it does here. Its budgets (a filter over an
  odometer) are one process's, and losses are floats rounded up, so that ten tenths are more than one: safe, and one
  answer fewer.
- **diffprivlib** is made for numpy and scikit-learn users. Its sum and mean take the number of rows as public, and its
  accountant is an object in memory.
- **python-dp** wraps Google's C++ library, whose noise is on a grid of its own. It leaves budgets to its caller.
- A fork copies a process's memory, generators and budgets included; whoever forks workers after the first draw meets
  N12 and L01 as they are tried here.
"""


def page_of(record):
    """Return the page as Markdown."""
    versions = record["versions"]
    names = list(versions)
    heads = " | ".join(f"{name} {versions[name]}" for name in names)
    lines = [INTRO + f"Measured on {record['date']}: {record['machine']}.\n", f"| case | {heads} |"]
    lines.append("|---|" + "---|" * len(names))
    for case, row in record["cases"].items():
        verdicts = " | ".join(_verdict(row.get(name)) for name in names)
        lines.append(f"| {_name(case)} {TITLES[case]} | {verdicts} |")
    lines += [HOW, "## The figures behind it\n"]
    for case, row in record["cases"].items():
        lines.append(f"**{_name(case)} {TITLES[case]}**\n" if case != "audit" else f"**{TITLES[case]}**\n")
        lines += [f"- {name}: {_escaped(row[name]['figure'])}" for name in names if name in row]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n" + PROMISES


def _name(case):
    return "" if case == "audit" else case


def _verdict(entry):
    if entry is None:
        return "not run"
    return f"**{entry['verdict']}**" if entry["verdict"] == "fails" else entry["verdict"]


def _escaped(text):
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
