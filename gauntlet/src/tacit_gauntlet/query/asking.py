"""Attacks by asking: repeats in other words, reconstruction of everyone's bit, and text that hopes to be run."""

import json
import math
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.errors import BudgetExceeded, TacitError
from tacit.privacy.loss import epsilon
from tacit.query.frame import count
from tacit.release.noisy import NoisyTable
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import FrozenBits, protected

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
            answer = table.sql(text).answer(epsilon=0.25)
            asked += 1
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
    chance in a million only sqrt(people·ln(10^6)/2) lucky guesses (Hoeffding).
    """
    people, questions = (40, 60) if size == "quick" else (100, 400)
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
        (row,) = table.agg(**asked).answer(epsilon=Fraction(batch, 10 * questions)).to_dicts()
        noisy += [row[f"q{question}"] for question in range(start, start + batch)]
    right = {
        name: int((_guess(inside, np.array(answers)) == secret).sum())
        for name, answers in (("exact", exact), ("private", noisy))
    }
    most = 0.525 * people + math.sqrt(people * math.log(10**6) / 2)
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
                lambda text=text: NoisyTable.from_json(json.dumps({"format": 1, "keys": [[text]], "parts": []})),
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
