"""Attacks by asking: repeats in other words, reconstruction of everyone's bit, text to be run, and joins."""

import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import count, epsilon
from tacit.errors import BudgetExceeded, TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.language import is_refused
from tacit_gauntlet.stage.table import FrozenBits, protected, stored_answer

VARIANTS = (
    "SELECT g, COUNT(*) AS n FROM t WHERE x > 1 AND y <= 5 GROUP BY g",
    "select G, count(*) as N from T where X > 1 and Y <= 5 group by G",
    "SELECT g, COUNT(*) AS n FROM t WHERE y <= 5 AND x > 1 GROUP BY g",
    "SELECT g, COUNT(1) AS people FROM t WHERE 1 < x AND 5 >= y GROUP BY 1 ORDER BY people DESC LIMIT 2",
    "SELECT COUNT(*) AS n, g FROM t WHERE (x > 1) AND NOT (NOT (y <= 5)) GROUP BY g HAVING n > -100",
    'SELECT "g", COUNT(*) AS n FROM t AS a WHERE a.x > 1.0 AND a.y <= 5 GROUP BY "g" -- again',
)


@case("Q15", title="a question in other words is the same question: one noise, one charge", feature="plan")
def variants(size: Size) -> Evidence:
    rows = pa.table(
        {"id": range(60), "g": ["ab"[n % 2] for n in range(60)], "x": range(60), "y": [n % 9 for n in range(60)]}
    )
    table = protected(rows, columns={"g": {"keys": ["a", "b"]}}, budget=epsilon(1))
    counts: dict[str, set[int]] = {"a": set(), "b": set()}
    free, asked = 0, 0
    for _ in range(2 if size == "quick" else 300):
        for text in VARIANTS:
            asked += 1
            try:
                answer = table.sql(text).answer(epsilon=0.25)
            except BudgetExceeded:
                continue
            free += answer.facts.free
            for row in answer.to_dicts():
                found = {name.lower(): cell for name, cell in row.items()}
                counts[found["g"]].add(found["n"] if "n" in found else found["people"])
    spent = table.session.ledger.spent(table.session.registered).epsilon
    one = all(len(seen) <= 1 for seen in counts.values())
    more = 0
    for extra in range(20):  # what is really another question is charged, until nothing is left
        try:
            table.sql(f"SELECT COUNT(*) AS n FROM t WHERE x > {extra}").answer(epsilon=0.25)
            more += 1
        except BudgetExceeded:
            break
    details = {"asked": asked, "free": free, "spent": str(spent), "others until refused": more}
    return Evidence(passed=one and free == asked - 1 and spent == epsilon(0.25).epsilon and more == 3, details=details)


@case("Q16", title="all the budget does not buy back the secret bits that exact answers give away", feature="release")
def reconstruction(size: Size) -> Evidence:
    """Random subset counts and least squares: exact counts give every bit, private ones about a coin's share.

    With epsilon = 1/10 in all no attack guesses a bit better than 0.525 on average, and beyond that stay but for one
    chance in 10^9 only sqrt(people·ln(10^9)/2) lucky guesses (Hoeffding).
    """
    people, questions = (60, 90) if size == "quick" else (100, 400)
    coins = FrozenBits().words(people * (questions + 1), width=1).astype(bool).reshape(questions + 1, people)
    secret, inside = coins[0], coins[1:]
    exact = inside.astype(int) @ secret
    rows = pa.table({"id": range(people), "slot": range(people), "bit": secret.astype(int)})
    table = protected(rows, rows_per_unit=1, groups_per_unit=1, budget=epsilon("0.1"))
    noisy: list[int] = []
    batch = min(100, questions)
    for start in range(0, questions, batch):
        asked = {}
        for question in range(start, start + batch):
            slots = ", ".join(str(slot) for slot in range(people) if inside[question][slot])
            asked[f"q{question}"] = count(f"CASE WHEN bit = 1 AND slot IN ({slots}) THEN 1 END")
        (row,) = table.agg(**asked).answer(epsilon=Fraction(batch, 10 * questions), accept_noise=True).to_dicts()
        noisy += [row[f"q{question}"] for question in range(start, start + batch)]
    right = {
        name: int((_guess(inside, np.array(answers)) == secret).sum())
        for name, answers in (("exact", exact), ("private", noisy))
    }
    most = 0.525 * people + math.sqrt(people * math.log(10**9) / 2)
    details = {"people": people, "questions": questions, "bits found": right, "most by luck": round(most, 1)}
    return Evidence(passed=right["exact"] == people and right["private"] <= most < people, details=details)


def _guess(inside: Any, answers: Any) -> Any:
    solution, *_ = np.linalg.lstsq(inside.astype(float), answers.astype(float), rcond=None)
    return solution > 0.5


@case("Q19", title="nothing that is read is ever run: expressions, names, keys, stored answers", feature="query")
def nothing_executes(_: Size) -> Evidence:
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "ran"
        code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
        pickled = f"cpathlib\nPath\n(S{str(mark)!r}\ntR."
        payloads = [
            code,
            f"eval({code!r})",
            f"{{{{{code}}}}}",
            f"$({code})",
            f"'; {code}; --",
            pickled,
            f"lambda: {code}",
        ]
        table = protected(pa.table({"id": [1], "g": [code], "x": [1]}))
        calls: list[Any] = []
        for text in payloads:
            calls += [
                lambda text=text: table.where(text).count(),
                lambda text=text: table.derive(k=text).count(),
                lambda text=text: table.sql(text),
                lambda text=text: table.group_by("g", keys=[text]).count().answer(epsilon=1).to_dicts(),
                lambda text=text: protected(text),
                lambda text=text: stored_answer(json.dumps({"format": 1, "keys": [[text]], "parts": []})),
            ]
        untyped = []
        for call in calls:
            try:
                call()
            except TacitError:
                pass
            except Exception as error:
                untyped.append(type(error).__name__)
        ran = mark.exists()
    return Evidence(passed=not ran and not untyped, details={"payloads": len(calls), "ran": ran, "untyped": untyped})


JOINS = (
    "SELECT COUNT(*) FROM visits JOIN visits AS v ON TRUE",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.ward = w.ward",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.patient_id <> w.patient_id",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.patient_id = w.patient_id OR v.age = w.age",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.ward = v.ward)",
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


@case("Q20", title="a join whose rows would belong to two people, or to no one, is refused", feature="query")
def joins(_: Size) -> Evidence:
    """Send every join there is a word for, with tables that are not known and on other things than the unit."""
    sent = [variant for text in JOINS for variant in (text, text.lower(), text.replace(" ", "\n/* x */ "))]
    passed = [text for text in sent if not is_refused(text)]
    return Evidence(not passed, {"joins": len(sent), "not refused": passed[:5]})
