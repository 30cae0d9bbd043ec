"""Gradients of people by layer: one pass backwards, then each layer's from its inputs and its outputs' gradient.

A linear layer's gradient of a row of one token is a product of two vectors. Both are put on grids, so that
the product is whole, its length is known from the two lengths, and the sum over people is one exact product of
matrices. All other gradients of a person are made and put on the grid as they are.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tacit.learning.deep.whole import INPUT_BITS, added, on_grid, squared, weights_of, within

FLOAT_TINY = 1e-30


@dataclass
class LayerPass:
    """The inputs and outputs of a layer in one pass, each use of the layer after the other."""

    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)


def layers_of(module: Any) -> dict[str, Any] | None:
    """Return the layers that have all of a module's trainable parameters; None if other layers have some."""
    import torch

    kinds = (torch.nn.Linear, torch.nn.Embedding, torch.nn.LayerNorm)
    found: dict[str, Any] = {}
    known: set[int] = set()
    for name, layer in module.named_modules():
        own = [each for each in layer.parameters(recurse=False) if each.requires_grad]
        if not own:
            continue
        if type(layer) not in kinds or getattr(layer, "max_norm", None) or getattr(layer, "scale_grad_by_freq", False):
            return None
        if isinstance(layer, torch.nn.LayerNorm) and len(layer.normalized_shape) != 1:
            return None
        if known & set(map(id, own)):  # one parameter in two layers
            return None
        known |= set(map(id, own))
        found[name] = layer
    return found


@contextmanager
def watched(layers: dict[str, Any]) -> Iterator[dict[str, LayerPass]]:
    """Yield the inputs and outputs of each layer in the passes inside; the hooks are gone afterwards."""
    seen = {name: LayerPass() for name in layers}

    def hook(name: str) -> Callable[[Any, Any, Any], Any]:
        def keep(_: Any, given: Any, output: Any) -> Any:
            kept = output if output.requires_grad else output.detach().requires_grad_()
            seen[name].inputs.append(given[0].detach())
            seen[name].outputs.append(kept)
            return kept

        return keep

    handles = [layer.register_forward_hook(hook(name)) for name, layer in layers.items()]
    try:
        yield seen
    finally:
        for each in handles:
            each.remove()


class LayerGradients:
    """A layer's gradients of people: their squared lengths first, then their whole steps and the sum of those."""

    def __init__(self, layer: Any, inputs: Any, gradient: Any) -> None:
        """Take the inputs and the gradient at the outputs: (people, tokens, …) of each."""
        self.layer, self.inputs, self.gradient = layer, inputs, gradient

    @classmethod
    def of(cls, layer: Any, seen: LayerPass, gradients: list[Any], people: int) -> "LayerGradients":
        import torch

        kinds = {
            torch.nn.Linear: LinearGradients,
            torch.nn.Embedding: EmbeddedGradients,
            torch.nn.LayerNorm: NormGradients,
        }
        dims = 0 if isinstance(layer, torch.nn.Embedding) else 1

        def by_person(values: Any, dims: int) -> Any:
            return values.reshape(people, -1, *values.shape[values.dim() - dims :])

        inputs = torch.cat([by_person(each, dims) for each in seen.inputs], 1)
        together = torch.cat([by_person(each, 1) for each in gradients], 1)
        made: LayerGradients = kinds[type(layer)](layer, inputs, together)
        return made

    def norms_squared(self) -> Any:
        raise NotImplementedError

    def steps_squared(self, weights: Any) -> Any:
        """Put the gradients on the grid; return the squared lengths of people's steps."""
        raise NotImplementedError

    def sums(self, counted: Any) -> dict[str, Any]:
        """Return the exact sums over the people who count, by the layer's parameter."""
        raise NotImplementedError


class LinearGradients(LayerGradients):
    def __init__(self, layer: Any, inputs: Any, gradient: Any) -> None:
        import torch

        parts = [inputs] if layer.weight.requires_grad else []
        if layer.bias is not None and layer.bias.requires_grad:
            parts.append(torch.ones_like(inputs[..., :1]))
        super().__init__(layer, torch.cat(parts, -1), gradient)
        self.is_short = inputs.shape[1] == 1
        if not self.is_short:
            self.made = torch.bmm(gradient.transpose(1, 2), self.inputs)

    def norms_squared(self) -> Any:
        if not self.is_short:
            return squared(self.made)
        return squared(self.inputs) * squared(self.gradient)

    def steps_squared(self, weights: Any) -> Any:
        if not self.is_short:
            self.made = on_grid(self.made, weights)
            return squared(self.made)
        inputs, gradient = self.inputs[:, 0].double(), self.gradient[:, 0].double()
        length = squared(inputs).sqrt()
        share = 2.0**INPUT_BITS / length.clamp(min=FLOAT_TINY)
        self.first = on_grid(inputs, share)
        self.second = on_grid(gradient, weights / share)
        return squared(self.first) * squared(self.second)

    def sums(self, counted: Any) -> dict[str, Any]:
        import torch

        if self.is_short:  # whole numbers below 2^53 throughout
            kept = torch.where(counted[:, None], self.second, torch.zeros_like(self.second))
            total = (kept.T @ self.first).to(torch.int64)
        else:
            total = added(self.made, counted).reshape(self.made.shape[1:])
        found, width = {}, self.layer.in_features if self.layer.weight.requires_grad else 0
        if width:
            found["weight"] = total[:, :width].flatten()
        if total.shape[1] > width:
            found["bias"] = total[:, width].flatten()
        return found


class NormGradients(LayerGradients):
    def norms_squared(self) -> Any:
        import torch

        shape, gradient = self.layer.normalized_shape, self.gradient
        centred = torch.nn.functional.layer_norm(self.inputs, shape, None, None, self.layer.eps)
        parts = {"weight": (centred * gradient).sum(1), "bias": gradient.sum(1)}
        self.parts = {name: parts[name] for name, each in self.layer.named_parameters() if each.requires_grad}
        return sum(squared(each) for each in self.parts.values())

    def steps_squared(self, weights: Any) -> Any:
        self.parts = {name: on_grid(each, weights) for name, each in self.parts.items()}
        return sum(squared(each) for each in self.parts.values())

    def sums(self, counted: Any) -> dict[str, Any]:
        return {name: added(each, counted) for name, each in self.parts.items()}


class EmbeddedGradients(LayerGradients):
    def norms_squared(self) -> Any:
        import torch

        if self.layer.padding_idx is not None:
            self.gradient = self.gradient * (self.inputs != self.layer.padding_idx)[..., None]
        # a person's tokens that are alike share an entry: the first of them has the sum
        order = torch.argsort(self.inputs, dim=1, stable=True)
        entries = torch.gather(self.inputs, 1, order)
        is_first = torch.cat([torch.ones_like(entries[:, :1]), (entries[:, 1:] != entries[:, :-1]).long()], 1)
        place = is_first.cumsum(1) - 1
        values = torch.gather(self.gradient, 1, order[..., None].expand_as(self.gradient))
        self.made = torch.zeros_like(values).scatter_add_(1, place[..., None].expand_as(values), values)
        self.entries = torch.zeros_like(entries).scatter_(1, place, entries)
        return squared(self.made)

    def steps_squared(self, weights: Any) -> Any:
        self.made = on_grid(self.made, weights)
        return squared(self.made)

    def sums(self, counted: Any) -> dict[str, Any]:
        import torch

        kept = torch.where(counted[:, None, None], self.made, torch.zeros_like(self.made)).to(torch.int64)
        total = torch.zeros(self.layer.weight.shape, dtype=torch.int64, device=kept.device)
        total.index_add_(0, self.entries.flatten(), kept.flatten(0, 1))
        return {"weight": total.flatten()}


def whole_sums(layers: dict[str, Any], losses: Callable[[], Any], live: Any, clip: float) -> dict[str, Any]:
    """Return the exact sums of people's clipped gradients by parameter; `losses` is one pass, a loss a person."""
    import torch

    with watched(layers) as seen, torch.enable_grad():
        total = losses().sum()
        names = [name for name in layers if seen[name].outputs]
        outputs = [each for name in names for each in seen[name].outputs]
        gradients = list(torch.autograd.grad(total, outputs, allow_unused=True)) if outputs else []
    with torch.no_grad():
        found, at = {}, 0
        for name in names:
            own = gradients[at : at + len(seen[name].outputs)]
            at += len(own)
            own = [
                torch.zeros_like(out) if each is None else each
                for each, out in zip(own, seen[name].outputs, strict=True)
            ]
            found[name] = LayerGradients.of(layers[name], seen[name], own, len(live))
        lengths = sum(
            (each.norms_squared().double() for each in found.values()),
            torch.zeros(len(live), dtype=torch.float64, device=live.device),
        )
        weights = weights_of(lengths, clip, live)
        steps = sum((each.steps_squared(weights) for each in found.values()), torch.zeros_like(lengths))
        counted = within(steps) & live
        return {
            f"{name}.{each}".lstrip("."): total
            for name, layer in found.items()
            for each, total in layer.sums(counted).items()
        }
