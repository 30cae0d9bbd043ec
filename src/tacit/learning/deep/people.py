"""PeopleTensors as tensors: one place for each person's rows, in secret. Only `sampling.py` of this folder reads them.

A person has at most `rows` places for rows, and rows beyond them are left out; which ones depends on that person's rows
only. A place without a row is zeros of weight 0. Rows without a person or a target are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter
from tacit.numbers import Integers


@dataclass(frozen=True, repr=False)
class PeopleTensors:
    """The inputs and targets of people, (people, rows, …), and which places hold a row; it prints as "withheld"."""

    inputs: Any
    targets: Any
    is_row: Any

    def __repr__(self) -> str:
        return "PeopleTensors(withheld)"

    def __len__(self) -> int:
        return len(self.is_row)

    def some(self, indices: Integers, places: int) -> "PeopleTensors":
        """Return some people, in the first of this number of places; the others are empty."""
        import torch

        chosen = torch.as_tensor(indices, device=self.is_row.device)

        def placed(values: Any) -> Any:
            found = torch.zeros((places, *values.shape[1:]), dtype=values.dtype, device=values.device)
            found[: len(chosen)] = values.index_select(0, chosen)
            return found

        return PeopleTensors(placed(self.inputs), placed(self.targets), placed(self.is_row))


def people_of(inputs: Any, targets: Any, places: Integers, people: int, rows: int, device: Any) -> PeopleTensors:
    """Return rows as people: `places` has the person of each row, -1 for rows that are left out."""
    import torch

    order = np.argsort(places, kind="stable")
    order = order[places[order] >= 0]
    owner = places[order]
    starts = np.searchsorted(owner, owner, side="left")
    index = np.arange(len(owner)) - starts
    kept = index < rows
    order, owner, index = order[kept], owner[kept], index[kept]
    at, of = torch.as_tensor(owner * rows + index, device=device), torch.as_tensor(order)

    def placed(values: Any) -> Any:
        found = torch.zeros((people * rows, *values.shape[1:]), dtype=values.dtype, device=device)
        found[at] = values.index_select(0, of.to(values.device)).to(device)
        return found.reshape(people, rows, *values.shape[1:])

    return PeopleTensors(placed(inputs), placed(targets), placed(torch.ones(len(inputs), dtype=torch.bool)))


def rows_as_tensors(rows: Any) -> tuple[Any, Any]:
    """Return a pair of tensors, one row of each for a row of a person."""
    import torch

    if not isinstance(rows, tuple | list) or len(rows) != 2:
        raise InvalidParameter(
            "rows are a protected table, or a pair of tensors\nhint: deep.train(module, (inputs, targets), loss, ...)"
        )
    inputs, targets = (torch.as_tensor(each).detach() for each in rows)
    if inputs.dim() < 1 or targets.dim() < 1 or len(inputs) != len(targets):
        raise InvalidParameter("inputs and targets must have one entry for each row")
    return (inputs.float() if inputs.dtype == torch.float64 else inputs), (
        targets.float() if targets.dtype == torch.float64 else targets
    )


def places_of_units(unit: Sequence[Any] | None, rows: int) -> tuple[Integers, int]:
    """Return the place of each row's person among all people, and how many there are; -1 for a row without a person."""
    if unit is None:
        return np.arange(rows, dtype=np.int64), rows
    named = [None if each is None or each != each else each for each in _listed(unit)]
    if len(named) != rows:
        raise InvalidParameter("unit must name the person of every row\nhint: unit=person_ids")
    found: dict[Any, int] = {}
    places = [-1 if each is None else found.setdefault(each, len(found)) for each in named]
    return np.array(places, dtype=np.int64), len(found)


def _listed(values: Any) -> list[Any]:
    for method in ("to_pylist", "tolist"):
        if hasattr(values, method):
            listed: list[Any] = getattr(values, method)()
            return listed
    return list(values)
