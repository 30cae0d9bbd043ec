"""Which SQL aggregate is which of ours: a closed table, read by the SQL door."""

from fractions import Fraction

from sqlglot import exp

from tacit.query.nodes import AggregateKind

# A quantile's fraction has a denominator of at most this; a float that is nearly such a fraction means it.
FRACTION_MAX = 1 << 16
NEARLY = Fraction(1, 10**9)

KINDS: dict[type[exp.Expr], AggregateKind] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Variance: "variance",
    exp.VariancePop: "variance",
    exp.Stddev: "std",
    exp.StddevPop: "std",
    exp.StddevSamp: "std",
    exp.CovarPop: "covariance",
    exp.CovarSamp: "covariance",
    exp.Corr: "correlation",
}
FRACTIONS: dict[type[exp.Expr], Fraction] = {
    exp.Min: Fraction(0),
    exp.Median: Fraction(1, 2),
    exp.Max: Fraction(1),
}
PAIRS: tuple[type[exp.Expr], ...] = (exp.CovarPop, exp.CovarSamp, exp.Corr)
AGGREGATES: tuple[type[exp.Expr], ...] = (exp.Count, exp.Quantile, *KINDS, *FRACTIONS)
AGGREGATES_ARE = (
    "the aggregates are COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM(x), AVG(x), VARIANCE(x), STDDEV(x), MEDIAN(x),"
    " QUANTILE(x, 0.9), MIN(x), MAX(x), COVAR_POP(x, y) and CORR(x, y)"
)


def fraction_meant(exact: Fraction) -> Fraction | None:
    """Return the fraction to aim at, or None where none with a small denominator is near: 0.999999 is not 1.

    >>> fraction_meant(Fraction(1 / 3)), fraction_meant(Fraction("0.999999"))
    (Fraction(1, 3), None)
    """
    near = exact.limit_denominator(FRACTION_MAX)
    return near if 0 <= exact <= 1 and abs(near - exact) <= NEARLY else None
