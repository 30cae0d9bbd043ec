"""What every library is asked in the group-by task, how it is timed, and how it reports.

Count, sum and mean of amount by item: epsilon 1, delta 1e-6 for a person, at most 5 items and 2 rows in each. A script
is started with one JSON argument and prints one JSON line. `answer` returns what gives columns of items, counts, sums
and means in Python's own numbers; giving them is not part of the time.
"""

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
from processor import processor_seconds

EPSILON, DELTA = 1.0, 1e-6
ITEMS_PER_PERSON, ROWS_PER_ITEM = 5, 2
LOW, HIGH = 0, 100


def main(answer, *, warm_up=None, says=None):
    """Time `answer(asked)` as often as is asked, and print seconds, what came out, and how many groups were shown.

    `says` is printed with it: what a library runs on, as it says itself.
    """
    asked = json.loads(sys.argv[1])
    if warm_up is not None:
        warm_up(asked)
    seconds, processor, answers = [], [], []
    for _ in range(asked["repeats"]):
        start, used = time.perf_counter(), processor_seconds()
        give = answer(asked)
        seconds.append(time.perf_counter() - start)
        processor.append(processor_seconds() - used)
        answers.append(give())
    shown = [len(each["item"]) for each in answers]
    kept = answers if asked["answers"] else None
    said = {"seconds": seconds, "processor seconds": processor, "shown": shown, "answers": kept, **(says or {})}
    print(json.dumps(said))


def columns(item, count, total, mean=None):
    """Return an answer; a mean that a library does not give itself is its sum over its count, inside the range."""
    item, count, total = [int(each) for each in item], [float(each) for each in count], [float(each) for each in total]
    if mean is None:
        mean = [each / max(how_many, 1.0) for each, how_many in zip(total, count, strict=True)]
    mean = [(LOW + HIGH) / 2 if each is None else min(max(float(each), LOW), HIGH) for each in mean]
    return {"item": item, "n": count, "total": total, "mean": mean}
