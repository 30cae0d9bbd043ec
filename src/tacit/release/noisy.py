"""Noise enters here and nowhere else: from an exact table to noisy integers, and those as text for the ledger.

What is kept for ever are the noisy integers themselves, so that an answer asked for again has the same numbers,
whatever names, order or confidence it is asked with.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import chain
from typing import Any

from tacit.errors import LedgerError
from tacit.exact import UNITS, ExactTable
from tacit.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, IntegerNoise
from tacit.plan import Choice, NoisyRelease, Plan, QuantileDraw
from tacit.privacy import LaplaceLaw, StaircaseLaw, combined
from tacit.selection import Rate, Target, TopK, draw_quantiles

KeyValue = None | bool | int | float | Fraction | str | date | datetime
FORMAT = 1
PLAIN = frozenset({int, str, bool, type(None)})  # what JSON writes as it is


@dataclass(frozen=True)
class NoisyTable:
    """The groups that are shown, and for each release and part the noisy integers, one for each group.

    After the releases come the draws of quantiles, with a low end, a quantile and a high end for each fraction.
    """

    keys: tuple[tuple[KeyValue, ...], ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...]  # [release][part][group]

    def to_json(self, *, stamp: str | None = None) -> str:
        """Return it as text, for the ledger, with what tells the state of the files it was read from."""
        keys: Sequence[Sequence[Any]] = self.keys
        if not set(map(type, chain.from_iterable(keys))) <= PLAIN:
            keys = [[_key_to_json(part) for part in key] for key in keys]
        record = {"format": FORMAT, "keys": keys, "parts": self.parts} | ({} if stamp is None else {"stamp": stamp})
        return json.dumps(record, separators=(",", ":"))

    def with_texts(self, texts: Mapping[str, str]) -> "NoisyTable":
        """Return it with long texts in place of their digests, in the order of its keys."""
        if not texts:
            return self
        keys = [tuple(texts.get(part, part) if isinstance(part, str) else part for part in key) for key in self.keys]
        return _in_order(keys, self.parts)

    @classmethod
    def from_json(cls, text: str) -> "NoisyTable":
        """Return what `to_json` wrote."""
        record = json.loads(text)
        if record.get("format") != FORMAT:
            raise LedgerError("this answer was stored by a newer version of tacit\nhint: update tacit to read it")
        keys = tuple(tuple(_key_from_json(part) for part in key) for key in record["keys"])
        return cls(keys, tuple(tuple(tuple(part) for part in release) for release in record["parts"]))


def stamp_in(text: str) -> str | None:
    """Return the stamp that `to_json` was given, or None."""
    found = json.loads(text).get("stamp")
    return found if isinstance(found, str) else None


def release(plan: Plan, exact_table: ExactTable) -> NoisyTable:
    """Return the plan's noisy integers.

    Privacy: every part of every group gets independent noise of the plan's law, which hides one unit's largest move
    (docs/proofs/sensitivity.md); a group whose key is not public is shown only if its noisy count of units reaches the
    plan's threshold; and shown groups are put in the order of their keys, so that nothing depends on the order of rows.
    A ranking is a choice by the mechanism the plan names, and nothing but the chosen keys.
    """
    if plan.choice is not None:
        return NoisyTable(_chosen(plan.choice, exact_table), ())
    noisy_parts = [_with_noise(each, plan, exact_table) for each in plan.releases]
    if plan.threshold is None:
        everywhere = list(range(len(exact_table)))
        noisy_parts += [_drawn(each, plan, exact_table, everywhere) for each in plan.quantiles]
        return NoisyTable(tuple(map(tuple, exact_table.keys)), tuple(tuple(map(tuple, each)) for each in noisy_parts))
    noisy_counts = noisy_parts[plan.threshold.release][0]
    shown = [place for place in range(len(exact_table)) if noisy_counts[place] >= plan.threshold.least]
    keys = [tuple(exact_table.keys[place]) for place in shown]
    noisy_seen = [[[part[place] for place in shown] for part in each] for each in noisy_parts]
    noisy_seen += [_drawn(each, plan, exact_table, shown) for each in plan.quantiles]  # of hidden groups none is drawn
    return _in_order(keys, noisy_seen)


def joined(tables: Sequence[NoisyTable]) -> NoisyTable:
    """Return the groups of several tables, which were found in parts, as one table in the order of its keys."""
    if len(tables) == 1:
        return tables[0]
    keys = [key for table in tables for key in table.keys]
    releases = range(len(tables[0].parts)) if tables else range(0)
    parts = [
        [list(chain.from_iterable(some)) for some in zip(*(table.parts[place] for table in tables), strict=True)]
        for place in releases
    ]
    return _in_order(keys, parts)


def _in_order(keys: Sequence[tuple[KeyValue, ...]], parts: Sequence[Sequence[Sequence[int]]]) -> NoisyTable:
    order = sorted(range(len(keys)), key=lambda place: tuple([_rank(part) for part in keys[place]]))
    return NoisyTable(
        tuple([keys[place] for place in order]),
        tuple(tuple(tuple([part[place] for place in order]) for part in each) for each in parts),
    )


def _chosen(choice: Choice, exact_table: ExactTable) -> tuple[tuple[KeyValue, ...], ...]:
    """Return the best keys in order; their counts stay secret."""
    top = TopK(k=choice.best, epsilon=choice.epsilon, monotone=choice.monotone, by=choice.by)
    exact_counts = list(exact_table.sums[UNITS])
    return tuple(tuple(exact_table.keys[place]) for place in top.release(exact_counts))


def _with_noise(each: NoisyRelease, plan: Plan, exact_table: ExactTable) -> list[list[int]]:
    size = len(exact_table)
    noise = _noise_of(each).sample(size * len(each.parts))
    return [
        combined((1, exact_table.wholes_of(part, plan)), (1, noise[place * size : (place + 1) * size])).tolist()
        for place, part in enumerate(each.parts)
    ]


def _noise_of(each: NoisyRelease) -> IntegerNoise:
    law = each.law
    if isinstance(law, StaircaseLaw):
        return DiscreteStaircase(law)
    return DiscreteLaplace(law.scale) if isinstance(law, LaplaceLaw) else DiscreteGaussian(law.sigma)


def _drawn(draw: QuantileDraw, plan: Plan, exact_table: ExactTable, shown: list[int]) -> list[list[int]]:
    """Return for each fraction the low end, the quantile and the high end of shown groups, in steps above the low."""
    replace = plan.neighbours == "replace"
    rate, ends_rate = (Rate(each, plan.rows_per_unit, replace) for each in (draw.epsilon, draw.ends_epsilon))
    targets = tuple(Target(fraction, inside, reach) for fraction, inside, reach in draw.targets)
    exact_values = exact_table.values[draw.column].only(shown)
    noisy_drawn = draw_quantiles(
        exact_values.steps,
        targets,
        starts=exact_values.starts,
        ends=exact_values.ends,
        height=plan.measured[draw.column].height,
        rate=rate,
        ends_rate=ends_rate,
    )
    noisy_steps: list[list[int]] = noisy_drawn.reshape(3 * len(targets), len(shown)).tolist()
    return noisy_steps


def _rank(part: KeyValue) -> tuple[int, Any]:
    """NULL first, then by value; the values of one column are of one type."""
    if part is None:
        return (0, 0)
    return (1, part)


def _key_to_json(part: KeyValue) -> Any:
    if isinstance(part, datetime):
        return {"timestamp": part.isoformat()}
    if isinstance(part, date):
        return {"date": part.isoformat()}
    if isinstance(part, Fraction):
        return {"decimal": str(part)}
    if isinstance(part, float):
        return {"float": repr(part)}
    return part


def _key_from_json(part: Any) -> KeyValue:
    if not isinstance(part, dict):
        plain: KeyValue = part
        return plain
    (kind, text), *_ = part.items()
    readers: dict[str, Any] = {
        "timestamp": datetime.fromisoformat,
        "date": date.fromisoformat,
        "decimal": Fraction,
        "float": float,
    }
    read: KeyValue = readers[kind](text)
    return read
