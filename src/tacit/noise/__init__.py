"""Noise: the only room that makes random bits. Coins, uniform choices and noise are drawn from them exactly."""

from tacit.noise.bits import Bits, Keystream, fresh_bytes, keystream_is_as_published
from tacit.noise.coins import (
    CHANCE_BITS,
    ONE,
    PIECE_WORDS,
    Bernoulli,
    draw_below,
    draw_below_each,
    draw_flips,
    draw_heads,
    draw_heads_each,
    draw_packed_heads,
)
from tacit.noise.gaussian import DiscreteGaussian, gaussian_table
from tacit.noise.grid import SMALL, add_steps, is_float, is_whole
from tacit.noise.laplace import DiscreteLaplace, DiscreteStaircase, laplace_tables
from tacit.noise.mechanism import Gaussian, Laplace, warning
from tacit.noise.threshold import WIDTH, IntegerNoise, ThresholdTable
