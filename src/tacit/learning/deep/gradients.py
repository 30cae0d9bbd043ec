"""Sums of people's clipped gradients, two ways: by layer with one pass backwards, or each gradient by itself.

The first is for modules with all trainable parameters in linear, embedding and norm layers; the second, by
`torch.func`, for all others. Which one is decided on made-up rows, before anything is charged: it must agree with
torch's own gradients, and one person must bring the same whole numbers in any place, beside any others.
"""

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.deep.layers import layers_of, whole_sums
from tacit.learning.deep.people import PeopleTensors
from tacit.learning.deep.whole import BOUND, added, on_grid, squared, weights_of, within
from tacit.numbers import Integers

Loss = Callable[[Any, Any], Any]
# How far two ways may be apart on made-up rows, of the bound.
ALIKE = 1e-3
MADE_UP = 4


class Gradients:
    """A module's exact sums: whole numbers for each trainable parameter, one after the other."""

    def __init__(self, module: Any, loss: Loss, clip: float, *, by_layer: bool, at_once: int) -> None:
        self.module, self.loss, self.clip, self.at_once = module, loss, clip, at_once
        self.names = [name for name, each in module.named_parameters() if each.requires_grad]
        self.sizes = [each.numel() for each in module.parameters() if each.requires_grad]
        self.layers = layers_of(module) if by_layer else None

    def sum_of(self, people: PeopleTensors, indices: Integers) -> Any:
        """Return the exact sum over some people, as a tensor where they are.

        A person adds zeros if the loss of their rows fails; only the person's own rows decide this.
        """
        total = self._zeros(people.is_row.device)
        for start in range(0, len(indices), self.at_once):
            total += self._sum(people, indices[start : start + self.at_once])
        return total

    def _sum(self, people: PeopleTensors, indices: Integers) -> Any:
        try:
            return self.of_batch(people.some(indices, self.at_once))
        except (RuntimeError, IndexError, ValueError, TypeError, ArithmeticError):
            total = self._zeros(people.is_row.device)
            if len(indices) > 1:
                for at in range(len(indices)):
                    total += self._sum(people, indices[at : at + 1])
            return total

    def _zeros(self, device: Any) -> Any:
        import torch

        return torch.zeros(sum(self.sizes), dtype=torch.int64, device=device)

    def of_batch(self, batch: PeopleTensors) -> Any:
        """Return the exact sum over a batch of a fixed shape; an empty place adds zeros."""
        import torch

        live = batch.is_row.any(1)
        if self.layers is None:
            sums = self._each(batch, live)
        else:
            sums = whole_sums(self.layers, lambda: self.losses(batch), live, self.clip)
        parts = [
            sums.get(name, torch.zeros(size, dtype=torch.int64, device=live.device))
            for name, size in zip(self.names, self.sizes, strict=True)
        ]
        return torch.cat(parts)

    def losses(self, batch: PeopleTensors) -> Any:
        """Return each person's mean loss over their rows, in one pass of all rows."""
        people, rows = batch.is_row.shape
        outputs = self.module(batch.inputs.flatten(0, 1))
        losses = _row_losses(self.loss, outputs, batch.targets.flatten(0, 1)).reshape(people, rows)
        return _mean(losses, batch.is_row)

    def _each(self, batch: PeopleTensors, live: Any) -> dict[str, Any]:
        """Return the sums of gradients that are made one for each person, with rows of that person only."""
        import torch
        from torch.func import functional_call, grad, vmap

        trained = {name: each.detach() for name, each in self.module.named_parameters() if each.requires_grad}
        fixed = {name: each.detach() for name, each in self.module.named_parameters() if not each.requires_grad}
        fixed |= dict(self.module.named_buffers())

        def loss_of(parameters: Any, inputs: Any, targets: Any, is_row: Any) -> Any:
            outputs = functional_call(self.module, (parameters, fixed), (inputs,))
            return _mean(_row_losses(self.loss, outputs, targets)[None], is_row[None])[0]

        with torch.no_grad():
            made = vmap(grad(loss_of), in_dims=(None, 0, 0, 0), randomness="different")(
                trained, batch.inputs, batch.targets, batch.is_row
            )
            weights = weights_of(sum(squared(each) for each in made.values()), self.clip, live)
            steps = {name: on_grid(each, weights) for name, each in made.items()}
            counted = within(sum(squared(each) for each in steps.values())) & live
            return {name: added(each, counted) for name, each in steps.items()}


def _row_losses(loss: Loss, outputs: Any, targets: Any) -> Any:
    """Return the loss of each row by itself."""
    from torch.func import vmap

    def one(output: Any, target: Any) -> Any:
        return loss(output[None], target[None]).sum()

    return vmap(one, randomness="different")(outputs, targets)


def _mean(losses: Any, is_row: Any) -> Any:
    import torch

    kept = torch.where(is_row, losses, torch.zeros_like(losses))
    return kept.sum(1) / is_row.sum(1).clamp(min=1)


# ---- the way that is taken -------------------------------------------------------------------------------------------


def working_copy(module: Any) -> Any:
    """Return a copy of a module to train, without changes in place; refuse one that mixes rows."""
    import torch

    if not isinstance(module, torch.nn.Module):
        raise InvalidParameter(
            f"module must be a torch.nn.Module, not a {type(module).__name__}"
            "\nhint: deep.train(torch.nn.Linear(3, 1), ...)"
        )
    made = copy.deepcopy(module)
    for name, layer in made.named_modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            raise QueryRefused(
                f"'{name}' is a {type(layer).__name__}, which mixes the rows of different people"
                "\nhint: use LayerNorm or GroupNorm"
            )
        if getattr(layer, "inplace", False) is True:
            layer.inplace = False
    if not any(each.requires_grad for each in made.parameters()):
        raise InvalidParameter("no parameter of the module has requires_grad, so it cannot be trained")
    return made


def gradients_for(module: Any, loss: Loss, clip: float, like: PeopleTensors, at_once: int) -> Gradients:
    """Return the way to the sums of a module, tried on made-up rows; before a charge, and without a row of a person."""
    by_layer = Gradients(module, loss, clip, by_layer=True, at_once=at_once)
    batches = list(_made_up_batches(like, at_once))
    expected = [_one_by_one(by_layer, each) for each in batches]  # a mistake in the module or the loss shows here
    if by_layer.layers is not None:
        try:
            found = _batch_sums(by_layer, batches)
        except (RuntimeError, ValueError, TypeError):
            found = []
        if found and all(_is_alike(one, other) for one, other in zip(found, expected, strict=True)):
            return _apart(by_layer, found)
    each = Gradients(module, loss, clip, by_layer=False, at_once=at_once)
    return _apart(each, _batch_sums(each, batches))


def _one_by_one(gradients: Gradients, batch: PeopleTensors) -> Integers:
    """Return about the sum of clipped gradients: each person's by itself, as torch computes it."""
    import torch

    parameters = [each for each in gradients.module.parameters() if each.requires_grad]
    total = np.zeros(sum(gradients.sizes))
    for at in np.flatnonzero(batch.is_row.any(1).numpy(force=True)):
        one = PeopleTensors(*(each[at : at + 1] for each in (batch.inputs, batch.targets, batch.is_row)))
        made = torch.autograd.grad(gradients.losses(one).sum(), parameters, allow_unused=True)
        flat = [torch.zeros_like(p) if each is None else each for each, p in zip(made, parameters, strict=True)]
        vector = torch.cat([each.flatten() for each in flat]).double().numpy(force=True)
        total += vector * min(1.0, gradients.clip / max(float(np.linalg.norm(vector)), 1e-300)) * BOUND / gradients.clip
    return total.astype(np.int64)


def _apart(gradients: Gradients, sums: list[Integers]) -> Gradients:
    """Refuse sums in which one person's part depends on the place or on the others."""
    alone, moved, others, together = sums
    if not (np.array_equal(alone, moved) and np.array_equal(together, others + moved)):
        if gradients.at_once > 1:
            return Gradients(
                gradients.module, gradients.loss, gradients.clip, by_layer=gradients.layers is not None, at_once=1
            )
        raise QueryRefused("the gradient of one person is not the same each time\nhint: leave out its random draws")
    return gradients


def _batch_sums(gradients: Gradients, batches: list[PeopleTensors]) -> list[Integers]:
    import torch

    found = []
    for batch in batches:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found.append(gradients.of_batch(batch).numpy(force=True))
    return found


def _is_alike(one: Integers, other: Integers) -> bool:
    return math.dist(one.tolist(), other.tolist()) <= ALIKE * BOUND * MADE_UP


def _made_up_batches(like: PeopleTensors, places: int) -> Iterator[PeopleTensors]:
    """Yield batches of made-up people: one in the first place; in the last; others; and those with the one."""
    import torch

    rows, device = like.is_row.shape[1], like.is_row.device
    made = torch.Generator().manual_seed(0)

    def values(of: Any, people: int) -> Any:
        shape = (people, rows, *of.shape[2:])
        if of.dtype.is_floating_point:
            return torch.randn(shape, generator=made).to(of.dtype)
        return torch.randint(0, 2, shape, generator=made).to(of.dtype)

    others = min(MADE_UP, places) - 1
    inputs, targets = (values(each, others + 1).to(device) for each in (like.inputs, like.targets))

    def batch(people: list[int], at: list[int]) -> PeopleTensors:
        found = []
        for each in (inputs, targets, torch.ones(others + 1, rows, dtype=torch.bool, device=device)):
            placed = torch.zeros((places, *each.shape[1:]), dtype=each.dtype, device=device)
            placed[at] = each[people]
            found.append(placed)
        return PeopleTensors(*found)

    rest = list(range(1, others + 1))
    yield batch([0], [0])
    yield batch([0], [places - 1])
    yield batch(rest, [each - 1 for each in rest])
    yield batch([*rest, 0], [*(each - 1 for each in rest), places - 1])
