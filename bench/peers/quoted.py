"""The sentences that the README quotes from the page, made from the results: on grouped questions, and on noise."""

import textwrap
from pathlib import Path

from bench.peers.figures import OURS, Figures

CASE, LARGE = "1,000,000 rows, 1,000 public keys", "10,000,000 rows, 1,000 public keys"
DISCRETE, FLOATING = "discrete Laplace, 10", "Laplace, 10"
BEGIN, END = "<!-- quoted from docs/benchmarks.md by make bench-peers -->\n", "<!-- end of quote -->\n"
WORDS = """
A grouped count, sum and mean of a million rows, with every person bounded, noise on every cell and the charge on disk,
takes {small:.1g} times the time of DuckDB's bare `GROUP BY item, person` on the same Parquet file, and {large:.1g}
times at ten million rows, where OpenDP takes {peer:.0f} times the time of Tacit. The first runs use SQL and take
{sql:.1g} times DuckDB's time, until the kernel is compiled. A million exact discrete-Laplace draws, from a cipher's
keystream, take {numpy:.1g} times the time of numpy's floating and predictable `laplace`; the fastest peer's take
{fastest:.0f} times Tacit's. [Beside its peers](docs/benchmarks.md) has every figure and how it was measured:
`make bench-peers`.
"""


def quoted(figures: Figures) -> str:
    """Return the sentences, or an empty text if a figure is missing."""

    def time(subject: str, case: str, library: str, quantity: str = "seconds") -> float:
        return figures.value(subject, case, library, quantity) or 0.0

    bare, bare_large = (time(*where, "duckdb, by person") for where in (("groupby6", CASE), ("groupby7", LARGE)))
    ours, ours_large = time("groupby6", CASE, OURS), time("groupby7", LARGE, OURS)
    draw, numpy = time("noise", DISCRETE, OURS, "seconds a draw"), time("noise", FLOATING, "numpy", "seconds a draw")
    peers = [float(each["value"]) for each in figures.peers("noise", DISCRETE, "seconds a draw")]
    sql, peer = time("groupby6", CASE, "tacit, in SQL"), time("groupby7", LARGE, "opendp")
    if not all((bare, bare_large, ours, ours_large, draw, numpy, sql, peer, peers)):
        return ""
    said = WORDS.format(
        small=ours / bare,
        large=ours_large / bare_large,
        peer=peer / ours_large,
        sql=sql / bare,
        numpy=draw / numpy,
        fastest=min(peers) / draw,
    )
    return textwrap.fill(" ".join(said.split()), 118, break_long_words=False, break_on_hyphens=False) + "\n"


def quote(figures: Figures, readme: Path) -> None:
    """Put the sentences into the README, between its marks."""
    text, words = readme.read_text(), quoted(figures)
    if words and BEGIN in text:
        before, rest = text.split(BEGIN)
        readme.write_text(before + BEGIN + words + END + rest.split(END)[1])
