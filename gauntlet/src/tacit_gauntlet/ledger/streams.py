"""Counts that run on: a day has one number whatever is restarted (L43), and one person moves them as charged (L44)."""

import shutil
from datetime import timedelta
from fractions import Fraction

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import private_home
from tacit_gauntlet.stage.streams import (
    BEGIN,
    CAP,
    CROWD,
    DAYS,
    FIRST,
    Rows,
    exact_stream,
    opened_stream,
    refuses_copy,
    running_count,
    stepped_again,
    stepped_at_once,
    totals_of,
)

# A person moves the numbers farthest by rows on the first day.
NEWCOMERS: dict[str, Rows] = {
    "all rows on the first day": [(1, FIRST)] * CAP,
    "hundreds of rows, on every day": [(1, FIRST + timedelta(days=at % DAYS)) for at in range(20 * DAYS)],
    "a row on each day": [(1, FIRST + timedelta(days=at)) for at in range(DAYS)],
    "the last day only": [(1, FIRST + timedelta(days=DAYS - 1))],
    "without a day, and on other days": [(1, None), (1, FIRST - timedelta(days=1)), (1, FIRST + timedelta(days=DAYS))],
    "rows of nobody": [(None, FIRST)] * 9,
}
REPLACED = NEWCOMERS["all rows on the first day"], [(1, FIRST + timedelta(days=DAYS - 1))] * CAP


@case("L43", title="a stream is restarted, copied and stepped twice, and each day keeps one number", feature="ledger")
def one_number_of_a_day(size: Size) -> Evidence:
    """Step, open the ledger again, step at once on two threads, and from a copy: compare what leaves."""
    found: dict[str, object] = {}
    with private_home() as home:
        (home / "here").mkdir()
        place, now = home / "here" / "ledger.db", [BEGIN]
        with opened_stream(place, now) as ledger:
            running_count(ledger).start(epsilon=Fraction(1, 10))
            now[0] += timedelta(days=4)
        shutil.copytree(home / "here", home / "copy")
        with opened_stream(place, now) as ledger:
            first = totals_of(running_count(ledger).step())
        with opened_stream(place, now) as ledger:
            found["restarted"] = stepped_again(ledger) == first
        now[0] += timedelta(days=3)
        second = stepped_at_once(place, now, 2 if size == "quick" else 6)
        found["stepped twice at once"] = len({*second}) == 1 and second[0][: len(first)] == tuple(first)
        with opened_stream(place, now) as ledger:
            found["restarted after a race"] = tuple(stepped_again(ledger)) == second[0]
            ledger.verify()
        found["a copy"] = refuses_copy(home / "copy" / "ledger.db", now)
    return Evidence(all(found.values()), found)


@case("L44", title="one person moves all numbers of a stream together within its charge", feature="ledger")
def moves_of_a_stream(size: Size) -> Evidence:
    """Compare the exact numbers of streams with and without a person, or with another, in one step and in several."""
    farthest, broken = 0.0, list[str]()
    for name, rows in NEWCOMERS.items():
        for crowd in (CROWD, ()) if size == "full" else (CROWD,) if name != "rows of nobody" else ((),):
            for cap in (1, CAP):
                pauses = (DAYS,) if size == "quick" else (DAYS, 1, 5)
                for pause in pauses:
                    one, most = exact_stream([*crowd, *rows], cap, pause)
                    other, _ = exact_stream(crowd, cap, pause)
                    squared = sum((here - there) ** 2 for here, there in zip(one, other, strict=True))
                    farthest = max(farthest, float(squared / most))
                    if squared > most:
                        broken.append(f"{name}, at most {cap} rows: {float(squared / most):.9f} of the charge, squared")
    for cap in (1, CAP):
        (one, most), (other, _) = (exact_stream([*CROWD, *rows], cap, DAYS, "replace") for rows in REPLACED)
        squared = sum((here - there) ** 2 for here, there in zip(one, other, strict=True))
        if not most / 2 < squared <= most:
            broken.append(f"one replaced, at most {cap} rows: {float(squared / most):.9f} of the charge, squared")
    return Evidence(not broken and farthest > 0.999, {"farthest, of the charge": farthest, "broken": broken[:5]})
