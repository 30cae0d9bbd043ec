"""The exact laws of the noise: mass, tails, quantiles and hockey-stick divergence, as balls that hold the true number.

All live on the integers, the steps of a public grid. Nothing here draws noise.
"""

from fractions import Fraction

from tacit.privacy.gaussian_law import GaussianLaw
from tacit.privacy.laplace_law import LaplaceLaw
from tacit.privacy.staircase_law import StaircaseLaw

Law = LaplaceLaw | GaussianLaw | StaircaseLaw

# The scales and sigmas that can be drawn.
SCALE_MIN = Fraction(1, 10**6)
SCALE_MAX = Fraction(2**56)

__all__ = ["SCALE_MAX", "SCALE_MIN", "GaussianLaw", "LaplaceLaw", "Law", "StaircaseLaw"]
