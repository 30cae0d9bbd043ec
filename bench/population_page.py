"""Write docs/benchmarks/population.md: levels, coverage and power of numbers about the population, and a peer's levels.

`python -m bench.population_page` measures everything, which takes about an hour of one core. `--kept` writes the page
again from docs/benchmarks/population.json, and `--part NAME` measures the cells whose name has this text anew.

Power is beside the plain test on exact rows and, of cross-tables, Pearson's statistic on noisy counts (Gaboardi and
others 2016) with the same simulated null. DPrivStats is R's package; its formulas (version 0.1.0) are simulated here
with exact sizes and variances, in its favour.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from bench import population as bench
from tacit.answer.significance import chi_square, fitted, kruskal_wallis

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "population.md"
KEPT = PAGE.with_suffix(".json")
MANY = 2_000
SIZES = (500, 5_000)
EPSILONS = ("0.1", "0.3", "1")
EVEN = np.outer([0.4, 0.3, 0.3], [0.25] * 4)
CORNERS = np.array([[1.0, 0, 0, -1], [0, 0, 0, 0], [-1, 0, 0, 1]]) / 4


def main(words: Sequence[str]) -> None:
    """Measure what is asked, keep it, and write the page."""
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {"cells": [], "power": [], "peer": []}
    if "--kept" not in words:
        only = words[words.index("--part") + 1] if "--part" in words else ""
        cells = {(each["name"], each["epsilon"], each["size"]): each for each in kept["cells"]}
        cells |= {(each.name, each.epsilon, each.size): asdict(each) for each in bench.measured(only)}
        kept["cells"] = list(cells.values())
        if not only:
            kept |= {"power": list(powers(np.random.default_rng(5))), "peer": list(peer(np.random.default_rng(9)))}
        KEPT.write_text(json.dumps(kept, indent=0) + "\n")
    PAGE.write_text(page(kept))


# ---- power


def powers(rng: Any) -> Iterator[dict[str, Any]]:
    """Yield how often an effect is found at 5 %: ours, the plain test on exact rows, and Pearson's on noisy counts."""
    for size, epsilon in ((size, epsilon) for size in SIZES for epsilon in EPSILONS):
        apart = {500: 0.1, 5_000: 0.03}[size]
        for name, sides in (
            (f"two shares, 0.3 and {0.3 + apart:g}", np.array([[0.7, 0.3], [0.7 - apart, 0.3 + apart]]) / 2),
            (f"3 × 4 counts, {2 * apart * 4:g} in the corners", EVEN * (1 + 2 * apart * 4 * CORNERS * 4)),
            (f"ranks, two groups, 8 bins, tilted by {2 * apart:g}", _tilted(2 * apart)),
        ):
            yield {"effect": name, "size": size, "epsilon": epsilon} | _power(rng, name, sides, size, epsilon)


def _tilted(part: float) -> Any:
    tilt = part * np.linspace(-1, 1, 8)
    return np.stack([1 + tilt, 1 - tilt]) / 16


def _power(rng: Any, name: str, masses: Any, size: int, epsilon: str) -> dict[str, float]:
    counts = rng.multinomial(size, masses.ravel() / masses.sum(), size=MANY).reshape(MANY, *masses.shape).astype(float)
    law = bench._laplace(1 / float(epsilon))
    noise = float(law.variance()[0])
    noisy = np.maximum(counts + np.rint(rng.laplace(0.0, 1 / float(epsilon), counts.shape)), 0.0)
    ours = kruskal_wallis if "ranks" in name else chi_square
    found = {"ours": _found(rng, noisy, law, noise, ours), "plain": _plain(counts, ranked="ranks" in name)}
    if "ranks" not in name:
        found["Pearson of noisy counts"] = _found(rng, noisy, law, noise, pearson)
    return found


def pearson(tables: Any, noise: float) -> Any:
    """Return Pearson's statistic, which does not know of the noise."""
    total, down, across = fitted(tables, noise)
    expected = total * down * across
    return ((tables - expected) ** 2 / expected).sum((-1, -2))


def _found(rng: Any, noisy: Any, law: Any, noise: float, statistic: Any) -> float:
    total, down, across = fitted(noisy, noise)
    drawn = rng.poisson(total * down * across, (199, *noisy.shape)).astype(float)
    drawn += np.rint(law.drawn(rng.random(drawn.shape))) * rng.choice([-1.0, 1.0], drawn.shape)
    larger = (statistic(np.maximum(drawn, 0.0), noise) >= statistic(noisy, noise) * (1 - 1e-12)).sum(0)
    return float(np.mean((1 + larger) / 200 <= 0.05))


def _plain(counts: Any, *, ranked: bool) -> float:
    freedom = (counts.shape[1] - 1) * (1 if ranked else counts.shape[2] - 1)
    value = kruskal_wallis(counts, 1e-9) if ranked else pearson(counts, 1e-9)
    return float(np.mean(stats.chi2.sf(value, freedom) <= 0.05))


# ---- DPrivStats


def peer(rng: Any) -> Iterator[dict[str, Any]]:
    """Yield how many true hypotheses the formulas of R's DPrivStats 0.1.0 reject at 5 %: laws without the noise."""
    many, deviation = 4_000, 0.15
    for size in (200, 2_000, 50_000):
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            half = size // 2
            error = deviation * np.sqrt(2 / half)
            apart = rng.normal(0, error, many) + rng.laplace(0, 3 / epsilon / half, (2, many)).sum(0)
            t_test = 2 * stats.t.sf(np.abs(apart) / error, size - 2)
            tables = rng.multinomial(size, EVEN.ravel(), size=many) + rng.laplace(0, 1 / epsilon, (many, 12))
            tables = np.rint(np.maximum(tables, 0)).reshape(many, 3, 4)
            expected = tables.sum(2, keepdims=True) * tables.sum(1, keepdims=True)
            expected = expected / np.maximum(tables.sum((1, 2), keepdims=True), 1)
            squares = np.where(expected > 0, (tables - expected) ** 2 / np.where(expected > 0, expected, 1), 0)
            curves = np.cumsum(rng.multinomial(half, [0.01] * 100, size=(2, many)), -1) / half
            curves = np.clip(curves + rng.laplace(0, 2 / epsilon / half, curves.shape), 0, 1)
            distance = np.abs(curves[0] - curves[1]).max(-1) * np.sqrt(half / 2)
            levels = {
                "t-test": t_test,
                "chi-square, 3 × 4": stats.chi2.sf(squares.sum((1, 2)), 6),
                "Kolmogorov-Smirnov": special.kolmogorov(distance),
            }
            for name, p in levels.items():
                yield {"test": name, "size": size, "epsilon": epsilon, "level": float(np.mean(p <= 0.05))}


# ---- the page


def page(kept: dict[str, Any]) -> str:
    """Return the page."""
    cells = kept["cells"]
    lines = [
        "# About the population: levels, coverage and power",
        "",
        "`python -m bench.population_page` writes this page. Samples are drawn from known laws and read by the "
        "product's own code; one row a person. A dash was not measured.",
        "",
        "## Coverage of 95 % intervals",
        "",
        f"In %, {_range(cells, 'interval')} samples a cell (standard error 0.3 to 0.5). The limits are 94 and 97.5.",
        "",
        *_grid([each for each in cells if each["kind"] == "interval"], lambda each: f"{100 * each['found'][0]:.1f}"),
        "",
        "## True hypotheses that are rejected",
        "",
        "P(p ≤ 0.05) and P(p ≤ 0.01) in %. The limits are 5.5 and 1.3. True hypotheses drawn, over all cells: "
        + "; ".join(f"{name} {many:,}" for name, many in _drawn(cells).items())
        + ". The standard error of a share of 5 % is 0.49 at 2,000 in a cell, 0.22 at 10,000 and 0.10 at 50,000.",
        "",
        *_grid(
            [each for each in cells if each["kind"] == "test"],
            lambda each: " / ".join(f"{100 * level:.2f}" for level in each["found"]),
        ),
        "",
        *_outside(cells),
        "## Power",
        "",
        f"How often an effect is found at 5 %, of {MANY:,} samples. *Plain* is the test on exact rows. Pearson's "
        "statistic on noisy counts (Gaboardi and others 2016) has the same simulated null as ours.",
        "",
        "| effect | people | ε | plain | ours | Pearson of noisy counts |",
        "|---|--:|--:|--:|--:|--:|",
        *(
            f"| {each['effect']} | {each['size']:,} | {each['epsilon']} | {each['plain']:.2f} | {each['ours']:.2f} | "
            + (f"{each['Pearson of noisy counts']:.2f} |" if "Pearson of noisy counts" in each else "– |")
            for each in kept["power"]
        ),
        "",
        "## R's DPrivStats",
        "",
        "How many true hypotheses the formulas of its version 0.1.0 reject at 5 %, in %, simulated with exact sizes "
        "and variances, in its favour (4,000 a cell). Its null laws do not have the noise. Its Kolmogorov-Smirnov "
        "test adds noise for one point of a curve of which one person may move all 100, so it spends more than ε by "
        "our reading.",
        "",
        *_grid(
            [each | {"name": each["test"], "epsilon": f"{each['epsilon']:g}"} for each in kept["peer"]],
            lambda each: f"{100 * each['level']:.0f}",
        ),
    ]
    return "\n".join(lines) + "\n"


def _outside(cells: Sequence[dict[str, Any]]) -> list[str]:
    """Return the cells that are outside of the limits, in words."""
    found = [
        f"{each['name']}, {each['size']:,} people, ε {each['epsilon']} ({100 * each['found'][0]:.2f})"
        for each in cells
        if (not 0.94 <= each["found"][0] <= 0.975 if each["kind"] == "interval" else each["found"][0] > 0.055)
        or (each["kind"] == "test" and each["found"][1] > 0.013)
    ]
    return [f"Outside of the limits: {'; '.join(found)}." if found else "All cells are within the limits.", ""]


def _range(cells: Sequence[dict[str, Any]], kind: str) -> str:
    many = sorted({each["many"] for each in cells if each["kind"] == kind})
    return " to ".join(f"{each:,}" for each in dict.fromkeys((many[0], many[-1]))) if many else "0"


def _drawn(cells: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return how many true hypotheses each test was asked."""
    found: dict[str, int] = {}
    for each in cells:
        if each["kind"] == "test":
            found[each["name"]] = found.get(each["name"], 0) + each["many"]
    return found


def _grid(cells: Sequence[dict[str, Any]], word: Any) -> list[str]:
    """Return a table with a line for each name and size, and a column for each epsilon."""
    epsilons = sorted({each["epsilon"] for each in cells}, key=float)
    lines = ["| | people | " + " | ".join(f"ε {each}" for each in epsilons) + " |"]
    lines.append("|---|--:" + "|--:" * len(epsilons) + "|")
    for name, size in dict.fromkeys((each["name"], each["size"]) for each in cells):
        mine = {each["epsilon"]: word(each) for each in cells if (each["name"], each["size"]) == (name, size)}
        lines.append(f"| {name} | {size:,} | " + " | ".join(mine.get(each, "–") for each in epsilons) + " |")
    return lines


if __name__ == "__main__":
    main(sys.argv[1:])
