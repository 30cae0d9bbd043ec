"""What was seen of a library, as a verdict and a figure. The same rule judges every library, ours too."""

import array
import math
from pathlib import Path

import numpy as np

from tacit_gauntlet.stage.statistic import (
    FALSE_ALARM,
    clopper_pearson_lower,
    clopper_pearson_upper,
    correlation_upper,
)

HOLDS, FAILS, ABSENT = "holds", "fails", "–"
BUDGET = 3


def n01(seen):
    """One grid for every input whose digits are small enough to show it."""
    finest = {value: digits[0] for value, digits in seen["finest"].items()}
    small = [finest[value] for value in finest if abs(float(value)) < 1]
    if min(small) == max(small) <= min(finest.values()):
        return HOLDS, f"every output is a multiple of 2^{min(small)}"
    return "no grid", "finest digit " + ", ".join(f"2^{digit} at {value}" for value, digit in finest.items())


def n02(seen):
    """No event of precision is more than e times likelier for one input than for its neighbour."""
    draws, alpha = seen["draws"], FALSE_ALARM / (4 * len(seen["events"]))
    worst, proof = 1.0, None
    for event in seen["events"]:
        low_count, high_count = sorted(event["counts"])
        if high_count <= math.e * low_count:
            continue
        low = clopper_pearson_lower(high_count, draws, alpha=alpha)
        high = clopper_pearson_upper(low_count, draws, alpha=alpha)
        if low / high > max(worst, math.e):
            worst, proof = low / high, event
    if proof is None:
        return HOLDS, f"no event beyond e in {draws:,} outputs of each input"
    fewer, more = sorted(proof["counts"])
    near = "" if proof["within"] == "inf" else f" and within {proof['within']} of zero"
    finer = f"finer than 2^-{proof['finer than']}{near}"
    return FAILS, f"{more / draws:.1%} of one input's outputs are {finer}, and {fewer / draws:.1%} of its neighbour's"


def n06(seen):
    """The mean size of the noise, within 5 % and 5.1 standard errors."""
    error = 1 / math.sqrt(seen["draws"])
    verdict = HOLDS if abs(seen["ratio"] - 1) <= min(5.1 * error, 0.05) else FAILS
    return verdict, f"{seen['ratio']:.3f} ± {error:.3f} of the promised"


def n07(seen):
    """A correlation of time with noise that is proved to be beyond 0.05."""
    least = -correlation_upper(-seen["correlation"], seen["releases"], alpha=FALSE_ALARM)
    return HOLDS if least < 0.05 else FAILS, f"correlation {seen['correlation']:.3f} in {seen['releases']:,} releases"


def n11(seen):
    """All different, whatever was seeded."""
    return _all_different(seen["different"], seen["releases"], "seeded alike")


def n12(seen):
    """All different, in whichever process."""
    return _all_different(seen["different"], seen["draws"], "in five processes")


def _all_different(different, draws, how):
    return HOLDS if different == draws else FAILS, f"{different} of {draws} different, {how}"


def s03(seen):
    """One row moves a sum by its bound at most, going around where the integers do; a refusal is as good."""
    shapes = seen["moved, of the bound"].values()
    moves = [move for shape in shapes for move in shape if move is not None]
    if not moves:
        return HOLDS, "all refused"
    # a sum that wraps is as private as the numbers on a clock: 2^64 is 4 bounds
    farthest = max(min(move, abs(4 - move)) for move in moves)
    words = f"one row moved a sum by {farthest:.2f} of its bound at most"
    words += ", sums wrap around at 2^63" if any(move > 2 for move in moves) else ""
    refused = sum(None in shape for shape in shapes)
    words += f", {refused} of {len(shapes)} refused" if refused else ""
    return (HOLDS if farthest < 1.01 else FAILS), words


def s05(seen):
    """A finite number whatever the row; an error that a row alone causes tells of it."""
    odd = {name: said for name, said in seen["with"].items() if isinstance(said, str) or not math.isfinite(said)}
    if not odd:
        return HOLDS, f"finite for {', '.join(seen['with'])}"
    return FAILS, "; ".join(f"{name} gives {said}" for name, said in odd.items())


def s06(seen):
    """Every impossible parameter refused."""
    accepted = seen["accepted"]
    if not accepted:
        return HOLDS, f"{seen['calls']} of {seen['calls']} refused"
    return FAILS, f"{len(accepted)} of {seen['calls']} answered: " + ", ".join(
        f"{name} → {said}" for name, said in accepted.items()
    )


def s15(seen):
    """Bounds left out are refused or found privately, and not read off the rows."""
    if all(isinstance(said, str) for said in seen["said"]):
        return HOLDS, "refused"
    if "PrivacyLeakWarning" in seen["warned"]:
        return FAILS, "takes the rows' own bounds, with a PrivacyLeakWarning"
    return "not judged", "answers without a warning; its documentation says that it finds bounds privately"


def l01(seen):
    """Never more than three admitted to a budget of three."""
    if not seen:
        return ABSENT, "keeps no budget"
    most, processes = max(seen["admitted in threads"]), seen["admitted in two processes"]
    words = f"{most} of {BUDGET} admitted in 16 threads, {processes} in two processes"
    if most > BUDGET:
        return FAILS, words
    return (HOLDS, words) if processes <= BUDGET else ("in one process", words)


def l06(seen):
    """Ten tenths are one."""
    if not seen:
        return ABSENT, "keeps no budget"
    words = f"a budget of 1 admits {seen['admitted']} charges of 0.1"
    if seen["admitted"] < 10:
        return "safe, not exact", words
    return (HOLDS if seen["admitted"] == 10 else FAILS), words


def audit(seen, folder):
    """Let `tacit.audit` look at the Laplace mechanism's draws."""
    from tacit.auditing.function_audit import audit as audited

    drawn = [_read(Path(folder, f"draws{value}")) for value in (0, 1)]
    result = audited(lambda side, n: drawn[side][:n], 0, 1, epsilon=1, draws=seen["draws"], batch=True)
    return (
        FAILS if result.violated else HOLDS,
        f"ε ≥ {result.demonstrated:.2f} demonstrated of 1 claimed ({result.event})",
    )


def _read(path):
    held = array.array("d")
    held.frombytes(path.read_bytes())
    return np.array(held)


JUDGES = {each.__name__.upper(): each for each in (n01, n02, n06, n07, n11, n12, s03, s05, s06, s15, l01, l06)}
