"""A rehearsal: answers about public rows at several ε beside the truth about the same rows, as a table and a picture.

Nothing here is private, and nothing was charged: the caller has made sure that the rows may be seen by everyone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from tacit.answer.text import key_labels
from tacit.files import path_of
from tacit.numbers import Number
from tacit.pictures import BLUE, ORANGE, Axis, Look, as_chart, decades, line_panel, side_by_side, write

if TYPE_CHECKING:
    from tacit.answer.answer import Answer

TREATED_AS_PUBLIC = "The data given as on= is treated as public: no budget protects it, and nothing was charged."
ONE_DRAW = "One draw of the noise for each ε: another draw has other errors."
_LOOKS = {
    "half": Look("half of the numbers err less", BLUE),
    "most": Look("95 % of the numbers err less", ORANGE, shape="square", dash=(4, 2)),
}
_HEAD = ("ε", "number", "half err less than", "95 % err less than", "of the number", "in the interval", "hidden")


@dataclass(frozen=True, repr=False)
class Rehearsal:
    """The errors of answers at several ε against the truth: it prints as a table, and `plot` draws it."""

    rows: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        body = [
            [f"{row['epsilon']:g}", row["number"]]
            + ["–" if row[name] is None else f"{row[name]:,.3g}" for name in ("half", "most")]
            + ["–" if row[name] is None else f"{100 * row[name]:.3g} %" for name in ("relative", "inside", "hidden")]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(_HEAD, *body, strict=True)]
        lines = [
            "   ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (_HEAD, *body)
        ]
        refused = [f"ε = {row['epsilon']:g} is refused: {row['refused']}." for row in self.rows if row["refused"]]
        return "\n".join([*lines, "", *dict.fromkeys(refused), TREATED_AS_PUBLIC, ONE_DRAW])

    __repr__ = __str__

    @classmethod
    def of(cls, answers: Sequence[tuple[Number, "Answer | str"]], truth: "Answer") -> Self:
        """Return how far each answer is from the truth, number by number; a text is why an ε has no answer."""
        known = _by_labels(truth)
        rows = []
        for epsilon, answer in answers:
            found = {} if isinstance(answer, str) else _by_labels(answer)
            compared = known  # others are compared only if they are of the same groups
            if set(found) != set(known):
                others = truth.others
                compared = {
                    labels: row for labels, row in known.items() if all(row[each] is not None for each in others)
                }
            for name in truth.aggregates:
                right = {labels: float(row[name]) for labels, row in compared.items() if row[name] is not None}
                cells = [(found[labels], value) for labels, value in right.items() if labels in found]
                shown = [(row, value) for row, value in cells if row[name] is not None]
                errors = sorted(abs(float(row[name]) - value) for row, value in shown)
                shares = [abs(float(row[name]) / value - 1) for row, value in shown if value]
                inside = [
                    row[f"{name}_low"] <= value <= row[f"{name}_high"]
                    for row, value in shown
                    if row[f"{name}_low"] is not None
                ]
                rows.append(
                    {
                        "epsilon": float(epsilon),
                        "number": name,
                        "half": median(errors) if errors else None,
                        "most": errors[(len(errors) * 95 - 1) // 100] if errors else None,
                        "relative": median(shares) if shares else None,
                        "inside": sum(inside) / len(inside) if inside else None,
                        "hidden": 1 - len(shown) / len(right) if right else None,
                        "refused": answer if isinstance(answer, str) else None,
                    }
                )
        return cls(tuple(rows))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each ε and number."""
        return [dict(row) for row in self.rows]

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of the errors by ε, a panel for each number; with a path, write it there."""
        named = dict.fromkeys(row["number"] for row in self.rows)
        panels = [self._panel(name) for name in named]
        spec = side_by_side(panels, title="What each ε would cost in error", notes=[TREATED_AS_PUBLIC, ONE_DRAW])
        return as_chart(spec) if path is None else write(spec, path_of(path))

    def _panel(self, name: str) -> dict[str, Any]:
        rows = [row for row in self.rows if row["number"] == name]
        points = [(line, row["epsilon"], row[line]) for line in _LOOKS for row in rows if row[line]]
        heights = [height for _, _, height in points] or [1.0]
        epsilons = tuple(sorted({row["epsilon"] for row in rows}))
        x, y = (
            Axis("ε", log=True, values=epsilons),
            Axis(f"error of {name}", log=True, values=decades(min(heights), max(heights))),
        )
        return line_panel(points, _LOOKS, x=x, y=y, title=name)


def _by_labels(answer: "Answer") -> dict[tuple[str, ...], Mapping[str, Any]]:
    keys = [key_labels(answer, name) for name in answer.columns if name not in answer.aggregates]
    return {tuple(labels[at] for labels in keys): row for at, row in enumerate(answer.rows)}
