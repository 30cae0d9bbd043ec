"""What we set out to reach against the peers, and whether a run reached it; a target without figures is unknown."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.peers.figures import OURS, OURS_ON_SPARK, Figures, name

GROUP_TARGETS = (
    ("groupby7", "10,000,000 rows, 1,000 public keys", "opendp", 30),
    ("groupby7", "10,000,000 rows, 1,000 public keys", "tmlt.analytics", 100),
    ("groupby7", "10,000,000 rows, 1,000 public keys", "pipeline-dp", 200),
    ("groupby6", "1,000,000 rows, 1,000 public keys", "opendp", 40),
)
ON_SPARK, ON_SPARK_TIMES = ("spark7", "10,000,000 rows, 1,000 public keys"), 8
NOISES = ("Laplace", "discrete Laplace", "Gaussian", "discrete Gaussian")
SCALES = (1, 10, 1000)
NOISE_TIMES = 100
IMPORT_PART = 5
# Two errors are told apart when they differ by more than so many standard errors.
STANDARD_ERRORS = 3


@dataclass(frozen=True)
class Target:
    """One target in words, what was measured, and whether it is met; None where it was not measured."""

    name: str
    wanted: str
    measured: str
    met: bool | None


def targets(figures: Figures) -> list[Target]:
    """Return every target."""
    found: list[Target] = []
    for part in (_grouped, _on_spark, _noise, _errors, _keys, _accounting, _import):
        found.extend(part(figures))
    return found


def _grouped(figures: Figures) -> Iterator[Target]:
    for subject, case, peer, times in GROUP_TARGETS:
        ours, theirs = (figures.value(subject, case, library, "seconds") for library in (OURS, peer))
        label, wanted = f"group-by, {case}, against {name(peer)}", f"at least {times}× faster"
        if ours is None or theirs is None:
            yield Target(label, wanted, "not measured", None)
        else:
            yield Target(label, wanted, f"{theirs / ours:.3g}×", theirs / ours >= times)


def _on_spark(figures: Figures) -> Iterator[Target]:
    """Processor seconds and the clock's: on a busy machine the clock counts what others do."""
    for quantity, word in (("seconds", "time"), ("processor seconds", "processor time")):
        ours, theirs = (figures.value(*ON_SPARK, library, quantity) for library in (OURS_ON_SPARK, "tmlt.analytics"))
        label, wanted = f"on one Spark, {ON_SPARK[1]}, {word} against Tumult", f"at least {ON_SPARK_TIMES}× faster"
        if ours is None or theirs is None:
            yield Target(label, wanted, "not measured", None)
        elif len({record["note"] for record in figures.all(*ON_SPARK, quantity)}) > 1:
            yield Target(label, wanted, "not measured on one version of Spark", None)
        else:
            yield Target(label, wanted, f"{theirs / ours:.3g}×", theirs / ours >= ON_SPARK_TIMES)


def _noise(figures: Figures) -> Iterator[Target]:
    for kind in NOISES:
        ratios = []
        for scale in SCALES:
            ours = figures.value("noise", f"{kind}, {scale}", OURS, "seconds a draw")
            peers = figures.peers("noise", f"{kind}, {scale}", "seconds a draw")
            if ours is not None and peers:
                best = min(peers, key=lambda record: float(record["value"]))
                ratios.append((best["value"] / ours, name(best["library"]), scale))
        label, wanted = f"{kind} noise, against the fastest peer", f"at least {NOISE_TIMES}× faster"
        if not ratios:
            yield Target(label, wanted, "not measured", None)
        else:
            ratio, peer, scale = min(ratios)
            yield Target(label, wanted, f"{ratio:.3g}× ({peer}, scale {scale})", ratio >= NOISE_TIMES)


def _errors(figures: Figures) -> Iterator[Target]:
    for case in ("count", "sum", "mean", "variance", "median"):
        label, wanted = f"error of one {case}", "no larger than the best peer's with the same promise"
        ours = next((each for each in figures.all("one", case, "error") if each["library"] == OURS), None)
        peers = figures.peers("one", case, "error", same_promise=True)
        if ours is None or ours["value"] is None or not peers:
            yield Target(label, wanted, "not measured", None)
            continue
        best = min(peers, key=lambda record: float(record["value"]))
        off = (ours["facts"]["off"] ** 2 + best["facts"]["off"] ** 2) ** 0.5
        met = ours["value"] <= best["value"] + STANDARD_ERRORS * off
        shown, theirs = (f"{_plain(each['value'])} ± {_plain(each['facts']['off'])}" for each in (ours, best))
        theirs += f" ({name(best['library'])})"
        yield Target(label, wanted, f"{shown}; {theirs}", met)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _keys(figures: Figures) -> Iterator[Target]:
    wanted = {"shown": "no fewer than the best peer's"}
    lines = [("1000 private keys", "shown")]
    lines += [("1000 public keys", f"error of {each}") for each in ("n", "total", "mean")]
    for case, quantity in lines:
        label = f"{case}: {quantity}"
        ours, peers = figures.value("keys", case, OURS, quantity), figures.peers("keys", case, quantity)
        want = wanted.get(quantity, "no larger than the best peer's")
        if ours is None or not peers:
            yield Target(label, want, "not measured", None)
            continue
        most = quantity == "shown"
        best = (max if most else min)(peers, key=lambda record: float(record["value"]))
        met = ours >= best["value"] if most else ours <= best["value"]
        yield Target(label, want, f"{_plain(ours)}; {_plain(best['value'])} ({name(best['library'])})", met)


def _accounting(figures: Figures) -> Iterator[Target]:
    for case in figures.cases("accounting") or ("batches",):
        for quantity, want, digits in (("epsilon", "no looser than dp-accounting", 8), ("seconds", "faster", 3)):
            ours, theirs = (figures.value("accounting", case, each, quantity) for each in (OURS, "dp-accounting"))
            label = f"{case}: {quantity}"
            if ours is None or theirs is None:
                yield Target(label, want, "not measured", None)
            else:
                yield Target(label, want, f"{ours:.{digits}g}; {theirs:.{digits}g}", ours <= theirs)


def _import(figures: Figures) -> Iterator[Target]:
    ours, theirs = (figures.value("start", "import", library, "seconds") for library in (OURS, "opendp"))
    label, want = "import", "at most a fifth of OpenDP's"
    if ours is None or theirs is None:
        yield Target(label, want, "not measured", None)
    else:
        yield Target(label, want, f"{ours:.2g} s; {theirs:.2g} s", ours * IMPORT_PART <= theirs)
