"""Plans: from a question and public facts alone, what will be read, bounded, noised and charged."""

from tacit.plan.bernstein import indices, weights_of_part
from tacit.plan.plan import (
    Choice,
    Measured,
    NoiseKind,
    NoisyRelease,
    Part,
    PartKind,
    Plan,
    PlannedOutput,
    Product,
    QuantileDraw,
    Sensitivity,
    Spend,
    question_key,
)
from tacit.plan.planner import make_plan, make_spend, plan_of_other_noise, plan_with_room
from tacit.plan.sensitivity import whole_of
from tacit.plan.split import read_weights

__all__ = [
    "Choice",
    "Measured",
    "NoiseKind",
    "NoisyRelease",
    "Part",
    "PartKind",
    "Plan",
    "PlannedOutput",
    "Product",
    "QuantileDraw",
    "Sensitivity",
    "Spend",
    "indices",
    "make_plan",
    "make_spend",
    "plan_of_other_noise",
    "plan_with_room",
    "question_key",
    "read_weights",
    "weights_of_part",
    "whole_of",
]
