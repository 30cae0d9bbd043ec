"""Reports made and estimated a second, against multi-freq-ldpy and pure-ldp in an environment of their own.

Each ratio is seconds a report, ours against theirs, measured in this run: making includes ids, and estimating includes
intervals. Ours is timed on 10^6 people where reports fit in memory; theirs on as many as take about a second. Where
they do not install, or do not run, there is no ratio. The error of an estimate is compared with the protocol's formula.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from bench.measure import Figure, Ratio, Result, Seconds, best_of
from tacit import local
from tacit.local.protocols.protocol import spread_of

PEOPLE = 1_000_000
PEERS = ("multi-freq-ldpy", "pure-ldp")
# both hash with seeds that a later xxhash refuses; one imports two more without asking for them
NEEDED = (*PEERS, "xxhash<3.5", "scikit-learn", "statsmodels")
SCRIPT = Path(__file__).parent / "peers" / "local.py"
# protocol -> people that a peer handles in about a second, at domain 100 and at 10,000
POINTS = {
    "response": (100_000, 20_000),
    "subset": (5_000, 100),
    "local-hashing": (5_000, 50),
}
MAKE, ESTIMATE, ESTIMATE_HASHED = 0.1, 0.2, 0.01
MILLION_A_SECOND = 1e-6


def results() -> Iterator[Result]:
    """Yield, for each protocol and domain, our times and their ratios to each peer's, then the errors."""
    python = peers_python()
    for place, domain in enumerate((100, 10_000)):
        for protocol, sizes in POINTS.items():
            make, estimate = ours(protocol, domain)
            fast = domain == 10_000 and protocol == "local-hashing"
            name = f"{protocol}, {domain:,}"
            yield Seconds(f"{name}: make one", make, MILLION_A_SECOND if fast else None)
            yield Seconds(f"{name}: estimate", estimate)
            for peer in PEERS if python is not None else ():
                theirs = peer_times(python, peer, protocol, domain, sizes[place])
                if theirs is not None:
                    limit = ESTIMATE_HASHED if protocol == "local-hashing" else ESTIMATE
                    yield Ratio(f"make / {peer}", make, theirs["make"], MAKE)
                    yield Ratio(f"estimate / {peer}", estimate, theirs["estimate"], limit)
    for protocol in POINTS:
        yield Figure(f"{protocol}: error² / formula", squared_error(protocol), least=0.95, most=1.05)
    for epsilon, least in ((1, 0.09), (2, 0.25), (4, 0.78)):
        found, made_up = frequent_strings(epsilon)
        yield Figure(f"strings at ε {epsilon}: found of the 32 most frequent", found, least=least, most=1)
        yield Figure(f"strings at ε {epsilon}: shown that nobody has", made_up, most=2)


def frequent_strings(epsilon: float) -> tuple[float, int]:
    """Return which share of the 32 most frequent strings of 400,000 people is found, and how many are made up."""
    rng = np.random.default_rng(11)
    words = np.unique(["".join(rng.choice(list(ascii_lowercase), size)) for size in rng.integers(3, 7, 2_000)])
    rng.shuffle(words)
    weights = 1 / np.arange(1, len(words) + 1) ** 1.1
    held = rng.choice(len(words), size=400_000, p=weights / weights.sum())
    client = local.Randomizer(alphabet=ascii_lowercase, length=6, epsilon=epsilon)
    collector = local.Collector(client.survey)
    collector.add_all(client.reports(words[held]))
    shown = set(collector.estimate().strings)
    most = words[np.argsort(-np.bincount(held, minlength=len(words)))[:32]]
    return float(np.mean([word in shown for word in most])), len(shown - set(words))


def ours(protocol: str, domain: int) -> tuple[float, float]:
    """Return our seconds a report, for making and for estimating."""
    wide = domain == 10_000 and protocol == "subset"
    people = 20_000 if wide else 100_000 if domain == 10_000 and protocol == "local-hashing" else PEOPLE
    client = local.Randomizer(domain, epsilon=1, protocol=protocol)
    values = np.arange(people) * 7919 % domain
    reports = client.reports(values)

    def estimate() -> object:
        collector = local.Collector(client.survey)
        collector.add_all(reports)
        return collector.estimate()

    return best_of(lambda: client.reports(values), repeats=5) / people, best_of(estimate, repeats=5) / people


def peers_python() -> str | None:
    """Return the Python of an environment with both peers: made once in the temporary folder, or $TACIT_PEERS."""
    given = os.environ.get("TACIT_PEERS")
    if given:
        return given
    folder = Path(tempfile.gettempdir()) / f"tacit-bench-peers-{os.getuid()}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        commands = (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "-qq", "install", *NEEDED],
        )
        for command in commands:
            if subprocess.run(command, check=False, capture_output=True).returncode:
                print("local: the peers do not install here, so there are no ratios to them", file=sys.stderr)
                return None
        (folder / "ready").touch()
    return str(python)


def peer_times(python: str, peer: str, protocol: str, domain: int, people: int) -> dict[str, float] | None:
    """Return a peer's seconds a report, or None where it has no such protocol or does not run."""
    command = [python, str(SCRIPT), peer, protocol, str(domain), str(people)]
    try:
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None
    if ran.returncode:
        return None
    times: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return times


def squared_error(protocol: str) -> float:
    """Return the mean squared error of raw counts over the formula's, for 1000 answers and 20 surveys."""
    domain, people, surveys = 1000, 20_000, 20
    client = local.Randomizer(domain, epsilon=1, protocol=protocol)
    values = np.arange(people) ** 2 % domain
    truth = np.bincount(values, minlength=domain)
    total = 0.0
    for _ in range(surveys):
        collector = local.Collector(client.survey)
        collector.add_all(client.reports(values))
        total += float(((collector.estimate().counts - truth) ** 2).mean())
    protocol_used = client.survey.protocol
    return total / surveys / (people * spread_of(protocol_used.keep, protocol_used.stray).mean_over(domain))
