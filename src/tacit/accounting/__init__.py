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
from tacit.accounting.composition import compose, parallel
from tacit.accounting.convert import GROUPS, PRIORS, explain, for_group, meaning_line, rho_within
from tacit.accounting.cost import (
    continuous_gaussian_delta,
    gaussian_sigma,
    gaussian_sigma_vector,
    laplace_scale,
    noise_delta,
    textbook_sigma,
)
from tacit.accounting.filter import (
    FOR_KEYS,
    FOR_NOISE,
    GRAIN,
    BudgetRule,
    Charge,
    NoiseLoss,
    Remaining,
    charge_of,
    covers,
    questions_left,
    remaining,
    rule_of,
    shares_of,
)
from tacit.accounting.sampled import sampled_rounds
