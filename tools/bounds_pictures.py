"""Draw the pictures of docs/guide/bounds.md: `python -m tools.bounds_pictures`, in a folder that has visits.parquet.

`tacit demo --keep visits.parquet` writes that table. Every run draws fresh noise, so the pictures differ a little; the
true numbers in them are there because the table is made up.
"""

from pathlib import Path
from typing import Any

import duckdb

import tacit
from tacit.pictures import BLUE, PALE, RED, Spec, page, write

SOURCE = "visits.parquet"
IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
OCTAVES = 10
BY_HAND = ((3, 2), (10, 5), (100, 5))
BY_HAND_KIND, LEARNED = "by hand", "learned"
SHOWN_WARDS = ("maternity", "oncology", "surgery")


def visits(**bounds: Any) -> tacit.Table:
    """Return the demo's table under a budget that ends with this process."""
    budget = tacit.epsilon(3, delta=1e-6)
    return tacit.table(SOURCE, unit="patient_id", budget=budget, ledger=tacit.TRYOUT, **bounds)


def bounds_picture(path: Path) -> None:
    """Draw counts by ward under bounds that somebody guessed, and under the learned one, beside the truth."""
    true = dict(duckdb.sql(f"SELECT ward, count(*) FROM '{SOURCE}' GROUP BY ward").fetchall())
    rows: list[Spec] = []
    order: list[str] = []

    def add(words: str, kind: str, answer: tacit.Answer) -> None:
        order.append(words)
        rows.extend(
            {"bounds": words, "kind": kind, "ward": row["ward"], "count": row["count"], "low": row["count_low"]}
            | {"high": row["count_high"], "true": true[row["ward"]]}
            for row in answer.to_dicts()
            if row["ward"] in SHOWN_WARDS
        )

    for rows_per_unit, groups_per_unit in BY_HAND:
        bounds = {"rows_per_unit": rows_per_unit, "groups_per_unit": groups_per_unit}
        answer = visits(**bounds).group_by("ward", keys=sorted(true)).count().answer(epsilon=1)
        add(f"{rows_per_unit} × {groups_per_unit}", BY_HAND_KIND, answer)
    add("learned", LEARNED, visits().group_by("ward").count().answer(epsilon=1))
    y = {"field": "bounds", "type": "ordinal", "sort": order, "title": "rows × groups of a patient"}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": [BY_HAND_KIND, LEARNED], "range": [RED, BLUE]},
        "legend": {"title": None},
    }
    x: Spec = {
        "type": "quantitative",
        "title": "count",
        "scale": {"zero": True},
        "axis": {"format": "~s", "tickCount": 4},
    }
    across = {"x": {"field": "low"} | x, "x2": {"field": "high"}, "y": y, "color": colour}
    layer = [
        {
            "mark": {"type": "rule", "color": PALE, "strokeDash": [4, 3]},
            "encoding": {"x": {"field": "true", "aggregate": "max"} | x},
        },
        {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": across},
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {"x": {"field": "count"} | x, "y": y, "color": colour},
        },
    ]
    body = {
        "data": {"values": rows},
        "facet": {"column": {"field": "ward", "type": "nominal", "sort": list(SHOWN_WARDS), "title": None}},
        "spec": {"width": 190, "height": 200, "layer": layer},
        "resolve": {"scale": {"x": "independent"}},
    }
    notes = ["Each point is an answer at ε = 1 with its interval. Dashed: the truth, which only a made-up table shows."]
    title = "Visits by ward: guessed bounds, and the learned one"
    write(page(body, title=title, notes=notes, letters=(80, 110)), path)


if __name__ == "__main__":
    bounds_picture(IMAGES / "bounds-by-hand.png")
