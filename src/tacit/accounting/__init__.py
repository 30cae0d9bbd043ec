"""The cost of events: composition, conversion between notions of loss, and calibration. Knows no samplers."""

from tacit.accounting.amplify import (
    LOCAL_MOST,
    Randomizer,
    amplified,
    binomial_ratios,
    local_epsilon,
    poisson_sample,
    shuffled,
)
from tacit.accounting.calibrate import gaussian_sigma, gaussian_sigma_vector, laplace_scale
from tacit.accounting.composition import compose, parallel
from tacit.accounting.convert import rho_within
from tacit.accounting.cost import continuous_gaussian_delta, noise_delta
from tacit.accounting.filter import (
    FOR_KEYS,
    FOR_NOISE,
    GRAIN,
    Charge,
    NoiseLoss,
    Remaining,
    Rule,
    charge_of,
    covers,
    questions_left,
    remaining,
    rule_of,
    shares_of,
)
from tacit.accounting.meaning import GROUPS, PRIORS, explain, for_group, meaning_line

__all__ = [
    "FOR_KEYS",
    "FOR_NOISE",
    "GRAIN",
    "GROUPS",
    "LOCAL_MOST",
    "PRIORS",
    "Charge",
    "NoiseLoss",
    "Randomizer",
    "Remaining",
    "Rule",
    "amplified",
    "binomial_ratios",
    "charge_of",
    "compose",
    "continuous_gaussian_delta",
    "covers",
    "explain",
    "for_group",
    "gaussian_sigma",
    "gaussian_sigma_vector",
    "laplace_scale",
    "local_epsilon",
    "meaning_line",
    "noise_delta",
    "parallel",
    "poisson_sample",
    "questions_left",
    "remaining",
    "rho_within",
    "rule_of",
    "shares_of",
    "shuffled",
]
