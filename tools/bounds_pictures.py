"""Draw the pictures of docs/guide/bounds.md: `python -m tools.bounds_pictures`, in a folder that has visits.parquet.

`tacit demo --keep visits.parquet` writes that table. Every run draws fresh noise, so the pictures differ a little; the
true numbers in them are there because the table is made up.
"""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb

import tacit
from tacit.pictures import BLUE, INK, ORANGE, PALE, RED, Spec, page, write

SOURCE = "visits.parquet"
IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
ROW_BIN = 8  # the bin of one row in a profile of rows
OCTAVES = 10
BY_HAND = ((3, 2), (10, 5), (100, 5))
NOT_MEASURED, MEASURED, LEARNED = "by hand, learn=False", "by hand, what was left out measured", "learned"
SHOWN_WARDS = ("maternity", "oncology", "surgery")


def visits(**bounds: Any) -> tacit.Table:
    """Return the demo's table under a budget that ends with this process."""
    budget = tacit.epsilon(3, delta=1e-6)
    return tacit.table(SOURCE, unit="patient_id", budget=budget, ledger=tacit.TRYOUT, **bounds)


def profile_picture(path: Path) -> None:
    """Draw what is learned of the patients' rows, beside the truth, with the cap and the tail cap that follow."""
    table = visits()
    answer = table.group_by("ward").count().answer(epsilon=1)
    scaled = json.loads(answer.to_json())["bounds"]["scaled"][0]
    known = table.facts[0].fact
    noisy = known.parts[0][ROW_BIN : ROW_BIN + OCTAVES]
    names = [f"{2**each:,}" if each == 0 else f"{2**each:,}–{2 ** (each + 1) - 1:,}" for each in range(OCTAVES)]
    by_octave = "SELECT CAST(floor(log2(n)) AS INT), count(*) FROM per_patient GROUP BY 1"
    true = dict(
        duckdb.sql(
            f"WITH per_patient AS (SELECT count(*) AS n FROM '{SOURCE}' GROUP BY patient_id) {by_octave}"
        ).fetchall()
    )
    data = [{"rows": names[each], "noisy": noisy[each], "true": true.get(each, 0)} for each in range(OCTAVES)]
    x = {"field": "rows", "type": "ordinal", "sort": None, "title": "rows of one patient", "axis": {"labelAngle": 0}}
    people: Spec = {
        "type": "quantitative",
        "title": "patients",
        "scale": {"type": "symlog", "constant": 30, "domain": [-100, 100_000]},
        "axis": {"values": [-100, 0, 100, 1_000, 10_000, 100_000], "labelExpr": "format(datum.value, ',')"},
    }
    bars = {
        "mark": {"type": "bar", "color": BLUE, "opacity": 0.55},
        "encoding": {"x": x, "y": {"field": "noisy"} | people},
    }
    truth = {
        "mark": {"type": "tick", "color": INK, "thickness": 2},
        "encoding": {"x": x, "y": {"field": "true"} | people},
    }
    marks: list[Spec] = []
    for size, words, colour, down in (
        (scaled["cap"], [f"cap: {scaled['cap']:.0f} rows", "count in full"], ORANGE, 14),
        (scaled["most"], ["T: nobody counts", f"for more than {scaled['most']:,.0f}"], RED, 14),
    ):
        place = {"data": {"values": [{"rows": names[octave_of(size)]}]}}
        across = {"x": x | {"bandPosition": position_in(size)}}
        marks.append(place | {"mark": {"type": "rule", "color": colour, "strokeWidth": 2.5}, "encoding": across})
        letters = {
            "type": "text",
            "text": words,
            "color": colour,
            "align": "right",
            "dx": -6,
            "y": down,
            "fontSize": 12,
            "fontWeight": "bold",
        }
        marks.append(place | {"mark": letters, "encoding": across})
    body = {"data": {"values": data}, "width": 640, "height": 300, "layer": [bars, truth, *marks]}
    paid = f"ε = {float(known.epsilon):.3f} (noise of scale {float(known.scales[0]):.0f} people)"
    notes = [
        f"Bars: the noisy histogram, learned once for {paid}. Dashes: the truth, which only a made-up table shows."
    ]
    write(page(body, title="How many rows a patient has: the profile", notes=notes, letters=(70, 105)), path)


def octave_of(size: float) -> int:
    """Return the octave that holds a size."""
    return int(size).bit_length() - 1


def position_in(size: float) -> float:
    """Return where in its octave a size is, by its logarithm."""
    return (size / 2 ** octave_of(size)) - 1


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
        words = f"{rows_per_unit} × {groups_per_unit}"
        for kind, learn in ((NOT_MEASURED, False), (MEASURED, None)):
            answer = visits(**bounds).group_by("ward").count().answer(epsilon=1, learn=learn)
            add(f"{words}, {'measured' if learn is None else 'nothing measured'}", kind, answer)
    add("learned", LEARNED, visits().group_by("ward").count().answer(epsilon=1))
    y = {"field": "bounds", "type": "ordinal", "sort": order, "title": "rows × groups of a patient"}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": [NOT_MEASURED, MEASURED, LEARNED], "range": [RED, ORANGE, BLUE]},
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
    chosen = sys.argv[1:] or ["profile", "bounds"]
    if "profile" in chosen:
        profile_picture(IMAGES / "bounds-profile.png")
    if "bounds" in chosen:
        bounds_picture(IMAGES / "bounds-by-hand.png")
