"""Whole gradients: each person's clipped gradient as whole numbers of a public grid, checked in whole numbers, added.

A person's vector is put on the grid towards zero. Whatever floats did before, the squares of its whole numbers are
added up, and the person counts only if they are within the bound: so the bound rests on no float but that sum, with
an error inside a margin (docs/proofs/sampled-rounds.md). Sums of whole numbers below 2^53 are exact in any order.
"""

from typing import Any

# The bound of a person's vector in steps of the grid, and the part of its square that float sums may be off by.
STEP_BITS = 30
BOUND = 1 << STEP_BITS
MARGIN = 2.0**-20
# Vectors are scaled to a little inside of the bound, so that rounding leaves them there.
INSIDE = 1 - 2.0**-10
# The input's share, of a row of one token, of the grid's bits; the rest is the gradient's at the output.
INPUT_BITS = 13


def weights_of(norms_squared: Any, clip: float, live: Any) -> Any:
    """Return each person's factor to steps of the grid: at most BOUND steps; 0 for a person who is not live."""
    import torch

    norms = norms_squared.double().clamp(min=0).sqrt()
    factor = torch.clamp(clip * INSIDE / norms.clamp(min=1e-300), max=1.0) * (BOUND / clip)
    return torch.where(live & torch.isfinite(norms), factor, torch.zeros_like(factor))


def on_grid(vectors: Any, weights: Any) -> Any:
    """Return vectors of people, (people, …), times their weights, in whole steps towards zero."""
    import torch

    scaled = vectors * weights.to(vectors.dtype).reshape(-1, *[1] * (vectors.dim() - 1))
    return torch.nan_to_num_(scaled, nan=0.0, posinf=0.0, neginf=0.0).trunc_()


def squared(steps: Any) -> Any:
    """Return the sum of squares of each person's steps, (people,), in floats of 53 bits."""
    import torch

    flat = steps.flatten(1)
    return torch.linalg.vector_norm(flat, dim=1, dtype=torch.float64).square()


def within(steps_squared: Any) -> Any:
    """Return which people are within the bound, with any rounding of the sum."""
    return steps_squared <= float(BOUND) ** 2 * (1 - MARGIN)


def added(steps: Any, counted: Any) -> Any:
    """Return the exact sum of the steps of the people who count, as whole numbers of 64 bits."""
    import torch

    kept = torch.where(counted.reshape(-1, *[1] * (steps.dim() - 1)), steps, torch.zeros_like(steps))
    return kept.sum(0, dtype=torch.float64).to(torch.int64).flatten()
