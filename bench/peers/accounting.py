"""What batches cost at delta 1e-6: `python accounting.py LIBRARY` prints epsilon and seconds for each batch.

Numerical totals on both sides: dp-accounting's privacy loss distributions, and ours, whose rounding is bounded too.
"""

import json
import sys
import time

DELTA = 1e-6
# name -> (Laplace of scale 100, Gaussian of sigma 30, Gaussian of sigma 1 on a sample of 1 %)
BATCHES = {
    "1000 Laplace": (1000, 0, 0),
    "1000 Gaussian": (0, 1000, 0),
    "100 Laplace and 100 Gaussian": (100, 100, 0),
    "10,000 sampled Gaussian": (0, 0, 10_000),
}


def tacit():
    """Return what computes a batch's epsilon."""
    from fractions import Fraction

    from tacit.accounting.amplify import sampled_pair
    from tacit.accounting.pair import pair_of
    from tacit.accounting.pld import Total
    from tacit.numbers import working_precision
    from tacit.privacy.loss import GaussianNoise, LaplaceNoise, SubsampledGaussian

    steps = 2**20
    laplace = LaplaceNoise(Fraction(100 * steps), Fraction(steps))
    gaussian = GaussianNoise(Fraction(30 * steps), Fraction(steps**2))
    learned = SubsampledGaussian(Fraction(steps), Fraction(steps**2), Fraction(1, 100))

    def epsilon(laplaces, gaussians, samples):
        found = []
        for adding in (False, True) if samples else (False,):
            with working_precision(128):
                pairs = [(pair_of(laplace), laplaces)] if laplaces else []
                pairs += [(pair_of(gaussian), gaussians)] if gaussians else []
                pairs += [(sampled_pair(learned, adding=adding), samples)] if samples else []
            found.append(float(Total(pairs).epsilon(Fraction(1, 10**6))))
        return max(found)

    return epsilon


def dp_accounting():
    """Return what computes a batch's epsilon by its PLD accountant."""
    import dp_accounting as library
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    def epsilon(laplaces, gaussians, samples):
        accountant = PLDAccountant()
        if laplaces:
            accountant.compose(library.LaplaceDpEvent(100), laplaces)
        if gaussians:
            accountant.compose(library.GaussianDpEvent(30), gaussians)
        if samples:
            accountant.compose(library.PoissonSampledDpEvent(0.01, library.GaussianDpEvent(1.0)), samples)
        return float(accountant.get_epsilon(DELTA))

    return epsilon


def main(library):
    """Print epsilon and the shortest of several times for each batch."""
    epsilon = globals()[library.replace("-", "_")]()
    found = {}
    for name, batch in BATCHES.items():
        epsilon(*batch)
        times = []
        while len(times) < 3 or (sum(times) < 4 and len(times) < 7):
            start = time.perf_counter()
            total = epsilon(*batch)
            times.append(time.perf_counter() - start)
        found[name] = {"epsilon": total, "seconds": min(times)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
