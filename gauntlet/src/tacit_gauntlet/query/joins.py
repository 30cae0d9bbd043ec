"""Joins as a leak: one unit fanned out over another table's rows, a table against itself, another's unit ids (Q20).

There are no joins in the language yet, so every way to write one is refused.
"""

from tacit.errors import QueryRefused
from tacit.query import sql
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.payloads import VISITS

JOINS = (
    "SELECT COUNT(*) FROM visits JOIN visits AS v ON TRUE",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.patient_id = w.patient_id",
    "SELECT COUNT(*) FROM visits v JOIN wards w USING (ward)",
    "SELECT COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*) FROM visits RIGHT JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*) FROM visits FULL OUTER JOIN wards ON visits.ward = wards.ward",
    "SELECT COUNT(*) FROM visits CROSS JOIN wards",
    "SELECT COUNT(*) FROM visits NATURAL JOIN wards",
    "SELECT COUNT(*) FROM visits, wards",
    "SELECT COUNT(*) FROM visits, visits AS v WHERE visits.patient_id <> v.patient_id",
    "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)",
    "SELECT COUNT(*) FROM visits ANTI JOIN wards USING (ward)",
    "SELECT COUNT(*) FROM visits ASOF JOIN wards ON visits.day >= wards.day",
    "SELECT COUNT(*) FROM visits POSITIONAL JOIN wards",
    "SELECT COUNT(*) FROM visits LATERAL JOIN wards",
    "SELECT COUNT(*) FROM visits, LATERAL (SELECT 1) AS one",
    "SELECT COUNT(*) FROM visits, UNNEST([1, 2, 3])",
    "SELECT COUNT(*) FROM visits CROSS JOIN generate_series(1, 1000)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits JOIN wards USING (ward)) AS both",
    "WITH both AS (SELECT * FROM visits JOIN wards USING (ward)) SELECT COUNT(*) FROM both",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward)",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
    "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM wards",
)


@case("Q20", title="every way to write a join is refused until one unit's reach through it is bounded", feature="query")
def joins(_: Size) -> Evidence:
    """Send every join there is a word for, and in other spellings."""
    sent = [variant for text in JOINS for variant in (text, text.lower(), text.replace(" ", "\n/* x */ "))]
    passed = [text for text in sent if not _is_refused(text)]
    return Evidence(not passed, {"joins": len(sent), "not refused": passed[:5]})


def _is_refused(text: str) -> bool:
    try:
        sql.parse_query(text, VISITS)
    except QueryRefused:
        return True
    return False
