"""Draws a second: `python noise.py LIBRARY` prints, for each kind of noise and scale, the seconds that one draw takes.

A vector where the library has one, a loop over its own call where it has not. numpy's is neither exact nor secret: it
is the baseline.
"""

import json
import sys
import time
import warnings

SCALES = (1, 10, 1000)
KINDS = ("Laplace", "discrete Laplace", "Gaussian", "discrete Gaussian")
# about how long each measurement takes at most
SECONDS = 0.6
MILLION = 10**6


def tacit(kind, scale):
    """The laws that every release draws from; a float's are the same on a fine grid."""
    import numpy as np

    from tacit.noise.gaussian import DiscreteGaussian
    from tacit.noise.laplace import DiscreteLaplace

    steps = 2**20  # a float's grid: so many steps to 1
    if kind in ("Laplace", "Gaussian"):
        law = (DiscreteLaplace if kind == "Laplace" else DiscreteGaussian)(scale * steps)
        return MILLION, lambda: law.sample(MILLION) * np.float64(1 / steps)
    law = (DiscreteLaplace if kind == "discrete Laplace" else DiscreteGaussian)(scale)
    return MILLION, lambda: law.sample(MILLION)


def numpy(kind, scale):
    """numpy's own, in floats, or the difference of two geometric draws."""
    import numpy as np

    generator = np.random.default_rng()
    if kind == "discrete Gaussian":
        return None
    if kind == "discrete Laplace":
        chance = -np.expm1(-1 / scale)
        return MILLION, lambda: generator.geometric(chance, MILLION) - generator.geometric(chance, MILLION)
    draw = generator.laplace if kind == "Laplace" else generator.normal
    return MILLION, lambda: draw(0.0, float(scale), MILLION)


def opendp(kind, scale):
    """A measurement on a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = kind.startswith("discrete")
    domain = dp.vector_domain(dp.atom_domain(T=int) if whole else dp.atom_domain(T=float, nan=False))
    if kind.endswith("Laplace"):
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int if whole else float), scale=float(scale))
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=int if whole else float), scale=float(scale))
    many = 10_000
    zeros = [0 if whole else 0.0] * many
    return many, lambda: measurement(zeros)


def python_dp(kind, scale):
    """Google's mechanisms, one value at a time; on an integer the noise is rounded to one."""
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    if kind == "discrete Gaussian":
        return None
    if kind.endswith("Laplace"):
        mechanism = LaplaceMechanism(1 / scale, 1.0)
    else:
        mechanism = GaussianMechanism(1.0, 1e-6, scale / 4.2)  # sensitivity: sigma is about 4.2 of them
    zero = 0 if kind.startswith("discrete") else 0.0
    add, many = mechanism.add_noise, 20_000
    return many, lambda: [add(zero) for _ in range(many)]


def diffprivlib(kind, scale):
    """Its mechanisms, one value at a time."""
    from diffprivlib import mechanisms

    if kind == "Laplace":
        mechanism = mechanisms.Laplace(epsilon=1 / scale, sensitivity=1)
    elif kind == "discrete Laplace":
        mechanism = mechanisms.Geometric(epsilon=1 / scale, sensitivity=1)
    elif kind == "Gaussian":
        mechanism = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-6, sensitivity=scale / 4.2)
    else:
        mechanism = mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-6, sensitivity=max(1, round(scale / 4.2)))
    zero, many = 0 if kind.startswith("discrete") else 0.0, 200 if kind == "discrete Gaussian" else 5_000
    return many, lambda: [mechanism.randomise(zero) for _ in range(many)]


def tmlt_analytics(kind, scale):
    """Tumult's samplers, one value at a time."""
    if kind == "Laplace":
        from tmlt.core.random.laplace import laplace

        return 500, lambda: [laplace(0.0, float(scale)) for _ in range(500)]
    if kind == "Gaussian":
        from tmlt.core.random.continuous_gaussian import gaussian

        return 500, lambda: [gaussian(0.0, float(scale) ** 2) for _ in range(500)]
    if kind == "discrete Laplace":
        from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise

        measurement = AddGeometricNoise(scale)
        return 500, lambda: [measurement(0) for _ in range(500)]
    from tmlt.core.random.discrete_gaussian import sample_dgauss

    return 500, lambda: [sample_dgauss(scale**2) for _ in range(500)]


def seconds_a_draw(many, draw):
    """Return the shortest time that a draw took, over runs that fill the time."""
    draw()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        draw()
        times.append(time.perf_counter() - start)
        if sum(times) > 10 * SECONDS:
            break
    return min(times) / many


def main(library):
    """Print the seconds for each kind and scale; what fails is named by its class, what is not there is left out."""
    warnings.simplefilter("ignore")
    found = {}
    for kind in KINDS:
        for scale in SCALES:
            try:
                job = globals()[library.replace("-", "_").replace(".", "_")](kind, scale)
                if job is not None:
                    found[f"{kind}, {scale}"] = seconds_a_draw(*job)
            except Exception as error:  # noqa: BLE001  a peer's failure is a result too
                found[f"{kind}, {scale}"] = type(error).__name__
                print(f"{kind}, {scale}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
