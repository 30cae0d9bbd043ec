"""Attacks on subqueries: a unit's rows are made of its own rows alone, and nothing mixes people before the noise."""

from itertools import cycle
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.language import asked, is_refused
from tacit_gauntlet.stage.relations import INNER, WORLD, ByUnit, Kept, worlds_of

MIXING = (
    "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits)",
    "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM (SELECT ward FROM visits) GROUP BY ward)",
    "SELECT AVG(n) FROM (SELECT patient_id % 2 AS k, COUNT(*) AS n FROM visits GROUP BY k)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 1)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 1)",
    "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id ORDER BY n LIMIT 1)",
    "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id LIMIT 1)",
    "WITH v AS (SELECT * FROM visits ORDER BY age LIMIT 1) SELECT COUNT(*) FROM v",
    "WITH RECURSIVE v AS (SELECT * FROM visits) SELECT COUNT(*) FROM v",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER () AS r FROM visits) WHERE r = 1",
    "SELECT COUNT(*) FROM (SELECT age - AVG(age) OVER (PARTITION BY ward) AS d FROM visits) WHERE d > 9",
    "SELECT COUNT(*) FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER () = 1)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits USING SAMPLE 1)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits EXCEPT SELECT * FROM visits)",
    "SELECT COUNT(*) FROM (SELECT *, (SELECT MAX(age) FROM visits) AS top FROM visits) WHERE age = top",
    "SELECT COUNT(*) FROM (SELECT patient_id, ANY_VALUE(note) AS a FROM visits GROUP BY patient_id) WHERE a = 'x'",
    "SELECT COUNT(*) FROM (SELECT patient_id, FIRST(age) AS a FROM visits GROUP BY patient_id) WHERE a = 1",
    "SELECT COUNT(*) FROM (SELECT patient_id, STRING_AGG(note, ',') AS a FROM visits GROUP BY patient_id)",
    "SELECT COUNT(*) FROM (SELECT patient_id, age FROM visits GROUP BY patient_id)",
    "SELECT p, COUNT(*) FROM (SELECT patient_id AS p, COUNT(*) AS n FROM visits GROUP BY patient_id) GROUP BY p",
    "SELECT COUNT(*) FROM (SELECT patient_id AS p FROM visits) WHERE p = 7",
    "SELECT COUNT(*) FROM (SELECT patient_id, MAX(patient_id) AS p FROM visits GROUP BY patient_id) WHERE p = 7",
    "SELECT k, COUNT(*) FROM (SELECT patient_id % 9 AS k FROM visits) GROUP BY k",
)
ANSWERED = (
    "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, ward FROM visits)",
    "WITH v AS (SELECT * FROM visits WHERE age > 17) SELECT ward, COUNT(*) FROM v GROUP BY ward",
)


@case("Q50", title="what would mix people inside a subquery is refused, whatever it is called", feature="query")
def mixing(_: Size) -> Evidence:
    """Send every way to make a row of several people's, and what no one else's rows are needed for."""
    sent = [variant for text in MIXING for variant in (text, text.lower(), text.replace(" ", "\n/* x */ "))]
    passed = [text for text in sent if not is_refused(text)]
    lost = [text for text in ANSWERED if asked(text) is None]
    return Evidence(not passed and not lost, {"sent": len(sent), "not refused": passed[:5], "refused": lost})


@case("S50", title="a unit's rows of a subquery are made of its own rows alone, in any order", feature="engine")
def own_rows_alone(size: Size) -> Evidence:
    """Take every unit away in turn, and put the rest in other orders: what each one has stays as it is, bit for bit.

    Many small worlds are asked at once, each with people of its own: one of them goes from every world.
    """
    pairs, broken = 0, list[str]()
    tables, worlds = (2, 1) if size == "quick" else (5, 24)
    people = [None, *range(12 if size == "quick" else 24)]
    for inner in INNER:
        kept = Kept(inner)
        for table in range(tables):
            rows = worlds_of(people, range(table * worlds, (table + 1) * worlds))
            kept.fill(rows)
            everybody = kept.by_unit()
            broken += ["rows of nobody are somebody's"] if None in everybody else []
            for unit in people:
                with kept.without(unit):
                    broken += _moved(everybody, kept.by_unit(), unit, f"{inner} without {unit}")
                pairs += worlds
            kept.fill(rows[::-1])
            broken += _moved(everybody, kept.by_unit(), None, f"{inner} in another order")
            if table < 2:
                broken += _moved(everybody, kept.by_unit(on_disk=True), None, f"{inner} on disk")
    broken += _by_threads(1 << (14 if size == "quick" else 19))
    return Evidence(not broken, {"pairs": pairs, "moved": broken[:5]})


def _moved(before: ByUnit, after: ByUnit, gone: Any, what: str) -> list[str]:
    left = {unit: rows for unit, rows in before.items() if gone is None or unit is None or unit % WORLD != gone}
    return [] if left == after else [what]


def _by_threads(count: int) -> list[str]:
    """Few people with many rows each: as floats, a sum depends on which of them a thread adds first."""
    values = (1e17, 0.1, -1e17, 3.14e-9, 1.0)
    turn = cycle(values)
    rows = [(place % 7, "a", 1, next(turn) * (1 + place % 11)) for place in range(count)]
    seen: list[ByUnit] = []
    for threads, order in ((1, rows), (8, rows[::-1]), (3, sorted(rows, key=lambda row: row[3]))):
        kept = Kept(INNER[0], threads=threads)
        kept.fill(order)
        seen.append(kept.by_unit())
    return [] if all(each == seen[0] for each in seen) else ["threads and orders show in a sum"]
