"""Numerical totals of batches against dp-accounting's, in the same run: no slower, and no looser."""

from collections.abc import Callable, Iterator
from fractions import Fraction

from bench.measure import Ratio, Result, compare

DELTA = 1e-6
STEPS = 2**20


def results() -> Iterator[Result]:
    """Yield, for each batch, our time against theirs, and our epsilon against theirs."""
    import dp_accounting
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    from tacit.accounting.amplify import sampled_pair
    from tacit.accounting.pair import pair_of
    from tacit.accounting.pld import Total
    from tacit.numbers import working_precision
    from tacit.privacy.loss import GaussianNoise, LaplaceNoise, SubsampledGaussian

    laplace = LaplaceNoise(Fraction(100 * STEPS), Fraction(STEPS))
    gaussian = GaussianNoise(Fraction(30 * STEPS), Fraction(STEPS**2))
    learned = SubsampledGaussian(Fraction(STEPS), Fraction(STEPS**2), Fraction(1, 100))
    their_laplace, their_gaussian = dp_accounting.LaplaceDpEvent(100), dp_accounting.GaussianDpEvent(30)
    their_sampled = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))

    def ours(*events: tuple[object, int]) -> float:
        answers = []
        for adding in (False, True) if any(event is learned for event, _ in events) else (False,):
            with working_precision(128):
                pairs = [(sampled_pair(learned, adding=adding) if e is learned else pair_of(e), n) for e, n in events]
            answers.append(float(Total(pairs).epsilon(Fraction(1, 10**6))))
        return max(answers)

    def theirs(*events: tuple[object, int]) -> float:
        accountant = PLDAccountant()
        for event, count in events:
            accountant.compose(event, count)
        return float(accountant.get_epsilon(DELTA))

    batches: list[tuple[str, Callable[[], float], Callable[[], float], float | None]] = [
        ("1000 Laplace", lambda: ours((laplace, 1000)), lambda: theirs((their_laplace, 1000)), 1.0),
        ("1000 Gaussian", lambda: ours((gaussian, 1000)), lambda: theirs((their_gaussian, 1000)), 1.0),
        (
            "100 Laplace and 100 Gaussian",
            lambda: ours((laplace, 100), (gaussian, 100)),
            lambda: theirs((their_laplace, 100), (their_gaussian, 100)),
            1.0,
        ),
        ("10,000 sampled Gaussian", lambda: ours((learned, 10_000)), lambda: theirs((their_sampled, 10_000)), None),
    ]
    for name, job, baseline, limit in batches:
        yield compare(name, job, baseline, limit=limit, repeats=5 if limit else 2)
        yield Ratio(f"{name}: epsilon, not seconds", job(), baseline(), 1.0)
