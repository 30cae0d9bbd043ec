"""A made-up table for the demo: hospital visits of 100,000 people, the same on every machine.

It is made of whole-number arithmetic alone, so nothing in it comes from anyone, and nothing from chance.
"""

from collections.abc import Mapping
from pathlib import Path

PEOPLE = 100_000
VISITS_MOST = 3
WARDS_MOST = 2
WARDS = ("cardiology", "maternity", "oncology", "paediatrics", "surgery")
# Four people were in a ward that nobody else saw.
RARE_WARD, RARE_PEOPLE = "isolation", 4

# Each `mix` is a multiplication modulo a prime: scattered enough for a demo, and exact.
_VISITS = f"""
    WITH people AS (
        SELECT range AS patient_id, (range * 48271 + 11) % 2147483647 AS mix FROM range({PEOPLE})
    ), visits AS (
        SELECT patient_id, mix, ((mix + 7919 * visit) * 16807) % 2147483647 AS each_mix,
               (((mix // 33) % 17) * ((mix // 33) % 17) // 64 + least(visit, 1)) % {len(WARDS)} AS place
        FROM people, (SELECT range AS visit FROM range({VISITS_MOST}))
        WHERE visit <= (mix // 64) % {VISITS_MOST}
    )
    SELECT patient_id,
           18 + ((mix // 7) % 41) + ((mix // 1009) % 32) AS age,
           CASE WHEN patient_id < {RARE_PEOPLE} THEN '{RARE_WARD}'
                ELSE list_value({", ".join(f"'{ward}'" for ward in WARDS)})[place + 1] END AS ward,
           1 + ((each_mix // 13) % (3 + 2 * ((place * 3) % {len(WARDS)}))) * ((each_mix // 997) % 8) // 5 AS days
    FROM visits
"""  # noqa: S608 (made of constants alone)


def write_visits(path: Path) -> None:
    """Write the table as Parquet: patient_id, age, ward and days, one row for each visit."""
    import duckdb

    duckdb.connect().execute(f"COPY ({_VISITS}) TO $path (FORMAT parquet)", {"path": str(path)})


def exact_visits(path: Path) -> Mapping[str, tuple[int, float]]:
    """Return the truth, which only a demo may show: each ward's people and their mean stay."""
    import duckdb

    question = "SELECT ward, count(DISTINCT patient_id), avg(days) FROM read_parquet(?) GROUP BY ward"
    rows = duckdb.connect().execute(question, [str(path)]).fetchall()
    return {ward: (people, days) for ward, people, days in rows}
