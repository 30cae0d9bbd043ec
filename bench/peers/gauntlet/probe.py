"""One case on one library, in that library's environment: `python probe.py LIBRARY CASE FOLDER` prints JSON.

What is printed is what was seen; the verdict is judge.py's. Draws too many to print go to files in the folder.
"""

import array
import json
import math
import os
import random
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from subjects import SUBJECTS

ODD_INPUTS = (0.0, 0.1, 1 / 3, 12345.678, 2.0**-1074)
EXPONENTS = (8, 16, 24, 32, 40, 48, 51, 52, 53, 54)


def draws(subject, value, count):
    """Return that many Laplace releases of a value at epsilon 1, sensitivity 1."""
    release = subject.laplace(1.0, 1.0)
    return np.array([release(value) for _ in range(count)])


def n01(subject):
    """The finest digit of the outputs of each input, as an exponent of two."""
    finest = {}
    for value in ODD_INPUTS:
        digits = [_finest(float(noisy)) for noisy in draws(subject, value, 4000)]
        finest[f"{value:.6g}"] = [min(digits), max(digits)]
    return {"finest": finest}


def _finest(number):
    """The exponent of the lowest binary digit of a float that is set."""
    if number == 0 or not math.isfinite(number):
        return 0
    numerator, denominator = number.as_integer_ratio()
    return -(denominator.bit_length() - 1) if denominator > 1 else (numerator & -numerator).bit_length() - 1


def n02(subject):
    """How many outputs are finer than each power of two, for inputs 0 and 1, anywhere and near zero."""
    count = 20_000
    noisy = [draws(subject, value, count) for value in (0.0, 1.0)]
    events = []
    for near in (math.inf, 0.25):
        for exponent in EXPONENTS:
            finer = []
            for values in noisy:
                scaled = values[np.abs(values) < near] * 2.0**exponent
                finer.append(int(np.count_nonzero(np.rint(scaled) != scaled)))
            events.append({"finer than": exponent, "within": str(near), "counts": finer})
    return {"draws": count, "events": events}


def n06(subject):
    """The mean size of the noise over the one promised, which is 1."""
    count = 26_000
    sizes = np.abs(draws(subject, 0.0, count))
    return {"draws": count, "ratio": float(sizes.mean())}


def n07(subject):
    """The correlation of the time a release takes with its noise, and with its size."""
    count = 6_000
    release = subject.laplace(1.0, 50.0)
    took, noise = np.empty(count), np.empty(count)
    for place in range(count):
        start = time.perf_counter_ns()
        noisy = release(0.0)
        took[place] = time.perf_counter_ns() - start
        noise[place] = noisy
    took = np.minimum(took, np.quantile(took, 0.9))
    found = max(abs(np.corrcoef(took, noise)[0, 1]), abs(np.corrcoef(took, np.abs(noise))[0, 1]))
    return {"releases": count, "correlation": float(found)}


def n11(subject):
    """Fifty sums, each after seeding Python's and numpy's generators alike: how many are different."""
    seen = []
    for _ in range(50):
        random.seed(0)
        np.random.seed(0)
        seen.append(float(subject.sum([5.0] * 1000, (0.0, 10.0), 1, False)))
    return {"releases": len(seen), "different": len(set(seen))}


def n12(subject, folder):
    """Four forked processes and the one they came from draw three numbers each: how many are different."""
    release = subject.laplace(1.0, 1.0)
    release(0.0)  # whatever state there is exists before the fork
    seen = []
    for child in range(4):
        path = Path(folder, f"child{child}")
        pid = os.fork()
        if pid == 0:
            path.write_text(json.dumps([release(0.0) for _ in range(3)]))
            os._exit(0)
        os.waitpid(pid, 0)
        seen += json.loads(path.read_text())
    seen += [release(0.0) for _ in range(3)]
    return {"draws": len(seen), "different": len(set(seen))}


def s03(subject):
    """How far one more row moves a sum of 64-bit integers near their ends, over the bound of a row."""
    top = 2**62
    shapes = {
        "one row more beyond the top": ([top] * 1, [top] * 2, (0, top)),
        "one row more beyond the bottom": ([-top] * 2, [-top] * 3, (-top, 0)),
        "from far above": ([top] * 9, [top] * 10, (0, top)),
        "up and down": ([top, top, top, -top], [top, top, top], (-top, top)),
    }
    found = {}
    for name, (rows, more, bounds) in shapes.items():
        moves = []
        for _ in range(8):
            sums = [answer_or_error(partial(subject.sum, each, bounds, 10**6, True)) for each in (rows, more)]
            refused = any(isinstance(each, str) for each in sums)
            moves.append(None if refused else abs(sums[0] - sums[1]) / top)
        found[name] = moves
    return {"moved, of the bound": found}


def s05(subject):
    """What a sum of floats says with an odd row and without it."""
    odd = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf, "-0": -0.0, "subnormal": 5e-324}
    plain = answer_or_error(lambda: subject.sum([1.0, 2.0], (0.0, 10.0), 1, False))
    said = {
        name: answer_or_error(lambda value=value: subject.sum([1.0, 2.0, value], (0.0, 10.0), 1, False))
        for name, value in odd.items()
    }
    return {"without": plain, "with": said}


def s06(subject):
    """Which impossible parameters are accepted: the call gave a number."""
    wrong = (0.0, -1.0, math.nan, math.inf, "a", None)
    calls = {f"epsilon {value}": lambda value=value: subject.laplace(value, 1.0)(0.0) for value in wrong}
    calls |= {f"sensitivity {value}": lambda value=value: subject.laplace(1.0, value)(0.0) for value in wrong[1:]}
    bounds = ((10.0, 0.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, math.inf), ("a", 1.0))
    calls |= {f"bounds {pair}": lambda pair=pair: subject.sum([1.0], pair, 1, False) for pair in bounds}
    calls |= {
        f"epsilon {value} of a sum": lambda value=value: subject.sum([1.0], (0.0, 1.0), value, False) for value in wrong
    }
    accepted = {}
    for name, call in calls.items():
        said = answer_or_error(call)
        if not isinstance(said, str):
            accepted[name] = repr(said)
    return {"calls": len(calls), "accepted": accepted}


def s15(subject):
    """What is said where a sum is asked for without bounds, at a loss so large that noise hardly matters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = [answer_or_error(lambda: subject.sum([7.0, 8.0], None, 1000, False)) for _ in range(3)]
    return {"said": said, "warned": sorted({each.category.__name__ for each in caught})}


def l01(subject, folder):
    """How many of many callers were admitted to a budget that fits three: threads, and then two forked processes."""
    if subject.budget is None:
        return {}
    sys.setswitchinterval(1e-6)
    threads = []
    for _ in range(20):
        spend = subject.budget(3, 1)
        admitted = []
        gate = threading.Barrier(16)

        def one(turn, spend=spend, admitted=admitted, gate=gate):
            gate.wait()
            if spend(turn):
                admitted.append(turn)

        together = [threading.Thread(target=one, args=(turn,)) for turn in range(16)]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        threads.append(len(admitted))
    return {"admitted in threads": threads, "admitted in two processes": forked(subject.budget(3, 1), folder)}


def forked(spend, folder):
    """Let two forked processes spend from one budget, and return how many charges were admitted in all."""
    children = []
    for child in range(2):
        path = Path(folder, f"spent{child}")
        pid = os.fork()
        if pid == 0:
            path.write_text(str(sum(spend(10 * child + turn) for turn in range(5))))
            os._exit(0)
        children.append((pid, path))
    for pid, _ in children:
        os.waitpid(pid, 0)
    return sum(int(path.read_text()) for _, path in children)


def l06(subject):
    """How many charges of a tenth a budget of one admits."""
    if subject.budget is None:
        return {}
    spend = subject.budget(1, 0.1)
    return {"admitted": sum(spend(turn) for turn in range(14))}


def audit(subject, folder):
    """Laplace releases of 0 and of 1, to a file each."""
    count = 120_000
    for value in (0, 1):
        with Path(folder, f"draws{value}").open("wb") as file:
            array.array("d", draws(subject, float(value), count)).tofile(file)
    return {"draws": count}


def answer_or_error(call):
    """Return the number a call gives, or the class of the error it raises."""
    try:
        answer = call()
    except Exception as error:  # noqa: BLE001 (whatever it raises is what it does)
        return type(error).__name__
    return int(answer) if isinstance(answer, int) else float(answer)


CASES = {each.__name__.upper(): each for each in (n01, n02, n06, n07, n11, n12, s03, s05, s06, s15, l01, l06)}
CASES["audit"] = audit
WANTS_FOLDER = (n12, l01, audit)


def main(library, case, folder):
    """Run one case on one library and print what was seen."""
    subject = SUBJECTS[library]()
    probe = CASES[case]
    seen = probe(subject, folder) if probe in WANTS_FOLDER else probe(subject)
    print(json.dumps({"version": subject.version, "seen": seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
