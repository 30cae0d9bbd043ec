"""A batch of anything has a total: never below the truth, hardly above what dp-accounting finds, never a raw error."""

import random
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution as peers
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.accounting.amplify import poisson_sample
from tacit.accounting.composition import compose
from tacit.errors import TacitError
from tacit.privacy.loss import (
    ApproximateLoss,
    ExponentialChoice,
    FailureChance,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    PureLoss,
    SubsampledGaussian,
)

STEPS = 10_000  # of the grid that sampled noise is drawn on: fine enough to be as good as continuous


def sampled(sigma: str, rate: str) -> SubsampledGaussian:
    sample = poisson_sample(rate, secret=True, fresh=True)
    return SubsampledGaussian(Fraction(sigma) * STEPS, Fraction(STEPS**2), sample.rate)


def peer_of(event, *, pessimistic):
    words = {"value_discretization_interval": 1e-4, "pessimistic_estimate": pessimistic}
    if isinstance(event, LaplaceNoise):
        return peers.from_discrete_laplace_mechanism(float(1 / event.scale), int(event.sensitivity), **words)
    if isinstance(event, GaussianNoise):
        return peers.from_discrete_gaussian_mechanism(float(event.sigma), 1, **words)
    if isinstance(event, SubsampledGaussian):
        spread = float(event.sigma) / STEPS
        return peers.from_gaussian_mechanism(spread, sampling_prob=float(event.rate), **words)
    del words["pessimistic_estimate"]
    return peers.from_privacy_parameters(
        DifferentialPrivacyParameters(float(event.epsilon), float(event.delta)), **words
    )


def peer_epsilon(counts, delta, *, pessimistic):
    total = None
    for event, count in counts.items():
        each = peer_of(event, pessimistic=pessimistic).self_compose(count)
        total = each if total is None else total.compose(each)
    return total.get_epsilon_for_delta(float(delta))


def drawn_mix(seed: int) -> dict:
    chosen = random.Random(seed)
    kinds = [
        lambda: LaplaceNoise(Fraction(chosen.randint(1, 60), chosen.randint(1, 7)), Fraction(chosen.randint(1, 3))),
        lambda: GaussianNoise(Fraction(chosen.randint(8, 300), 10), Fraction(1), scalar=True),
        lambda: sampled(f"{chosen.randint(8, 40)}/10", f"{chosen.choice([1, 5, 20, 100])}/1000"),
        lambda: ApproximateLoss(Fraction(chosen.randint(1, 20), 20), Fraction(1, 10 ** chosen.randint(7, 9))),
    ]
    return {chosen.choice(kinds)(): chosen.choice([1, 2, 5, 20]) for _ in range(chosen.randint(1, 3))}


@pytest.mark.parametrize(
    "seed", [*range(4), 45, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 200) if seed != 45)]
)
def test_random_mixes_are_no_smaller_than_the_truth_and_hardly_larger_than_the_peers(seed):
    counts, delta = drawn_mix(seed), Fraction(1, 10**5)
    ours = float(compose(counts, delta=delta).loss.epsilon)
    if not any(isinstance(event, ApproximateLoss) for event in counts):  # of which the peers round up alone
        assert ours >= peer_epsilon(counts, delta, pessimistic=False) * (1 - 1e-9)
    assert ours <= peer_epsilon(counts, delta, pessimistic=True) * (1 + 1e-3) + 1e-4


@pytest.mark.parametrize(
    ("rate", "steps"),
    [("0.01", 1), *(pytest.param(*each, marks=pytest.mark.slow) for each in (("0.001", 1), ("0.01", 10), ("0.1", 1)))],
)
def test_a_few_steps_of_sampled_noise_have_a_total(rate, steps):
    found = compose({sampled("1", rate): steps}, delta=1e-6)
    peer = peer_epsilon({sampled("1", rate): steps}, 1e-6, pessimistic=True)
    assert found.way == "numerical"
    assert peer * (1 - 1e-3) - 1e-4 <= found.loss.epsilon <= peer * (1 + 1e-3) + 1e-5


def test_two_promises_fail_together_as_often_as_either_does():
    losses = [tacit.epsilon(1, delta=0.1), tacit.epsilon(2, delta=0.2)]
    assert compose(losses, epsilon=3).loss.delta == Fraction(28, 100)
    assert compose(losses, delta="0.28").loss.epsilon == 3
    many = compose([tacit.epsilon(0.01, delta=1e-3)] * 1000, epsilon=10)
    assert 0 <= many.loss.delta - (1 - Fraction(999, 1000) ** 1000) < Fraction(1, 10**12)


def test_a_loss_is_one_release():
    assert str(compose([tacit.epsilon(1, delta=1e-6)] * 2, delta=1e-5)).startswith("2 releases, ")
    assert str(compose({tacit.epsilon(1, delta=1e-6): 3, tacit.epsilon(2): 2}, delta=1e-5)).startswith("5 releases, ")
    assert str(compose([tacit.Laplace(epsilon=1)], delta=1e-6)).startswith("1 release, ")


def test_thirty_gaussians_of_different_losses_and_many_coprime_scales():
    gaussians = [tacit.Gaussian(epsilon=Fraction(1, 10) + Fraction(k, 97), delta=1e-6) for k in range(30)]
    found = compose(gaussians, delta=1e-5)
    low, high = (peer_epsilon({each.event: 1 for each in gaussians}, 1e-5, pessimistic=up) for up in (False, True))
    assert low <= found.loss.epsilon <= high * (1 + 1e-3)
    primes = [p for p in range(2, 1224) if all(p % q for q in range(2, int(p**0.5) + 1))]
    laplaces = {LaplaceNoise(Fraction(p), Fraction(1)): 1 for p in primes}
    assert len(laplaces) == 200
    many = compose(laplaces, delta=1e-5)
    assert peer_epsilon(laplaces, 1e-5, pessimistic=False) <= many.loss.epsilon < sum(1 / p for p in primes) * 0.75


def test_where_the_grid_would_be_too_fine_the_other_rules_still_answer():
    found = compose({sampled("1", "1e-10"): 3}, delta=1e-6)
    assert found.way == "Rényi"
    assert "numerical         not known" in str(found)


sizes = st.fractions(Fraction(1, 10**6), Fraction(10**3), max_denominator=10**6)
anything = st.one_of(
    st.builds(PureLoss, sizes),
    st.builds(ApproximateLoss, sizes, st.fractions(Fraction(1, 10**12), Fraction(1, 2), max_denominator=10**12)),
    st.builds(LaplaceNoise, sizes, sizes),
    st.builds(GaussianNoise, sizes, sizes, st.booleans()),
    st.builds(KeyThreshold, st.fractions(0, 1)),
    st.builds(FailureChance, st.fractions(0, 1)),
    st.builds(SubsampledGaussian, sizes, sizes, st.fractions(Fraction(1, 10**6), 1)),
    st.builds(PureChoice, st.one_of(sizes, st.sampled_from([Fraction(10) ** p for p in (-4000, -300, 300, 4000)]))),
    st.builds(ExponentialChoice, sizes),
)


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(anything, st.sampled_from([1, 2, 17, 1000, 10**6]), min_size=1, max_size=3),
    st.one_of(st.tuples(st.just("delta"), st.fractions(0, 1)), st.tuples(st.just("epsilon"), sizes)),
)
def test_every_batch_has_a_total_or_words_why_not(events, asked):
    try:
        shown = str(compose(events, **dict([asked])))
    except TacitError as refused:
        shown = str(refused)
    assert "fixed in advance" in shown or "\nhint: " in shown
