"""`tacit explain` explains the meaning of an epsilon and a delta for a person; `tacit tradeoff` links people, error
and epsilon.

`tradeoff` computes any one of the three from the other two. Both are free and read no data.
"""

from tacit.cli.options import argument, option, required, with_options
from tacit.cli.screen import check_plot, say


@with_options
def explain(
    *,
    epsilon: str = required("", "The loss, e.g. 1 or 0.1."),
    delta: str = option(help="The probability that the promise fails, e.g. 1e-6.", default="0"),
    prior: list[str] | None = option(help="A belief before the answer, e.g. 0.1; can be repeated."),
    group: list[int] | None = option(help="The size of a group; can be repeated."),
) -> None:
    """Explain a guarantee: the most that an attacker could learn about a person.

    Example: `tacit explain --epsilon 1 --delta 1e-6`
    """
    from tacit import accounting

    found = accounting.explain(
        epsilon,
        delta=delta,
        priors=prior or accounting.PRIORS,
        groups=group if group is not None else accounting.GROUPS,
    )
    say(str(found))


@with_options
def tradeoff(
    kind: str = argument("", "mean, fraction, counts or maximum."),
    *,
    people: int | None = option(help="How many people there are."),
    error: str | None = option(help="The largest error allowed, as a share, e.g. 0.01 or 1%."),
    epsilon: str | None = option(help="The loss, e.g. 1."),
    k: int = option(help="How many counts or options.", name="--k", default=1),
    touched: int | None = option(help="How many of the k one person can be in."),
    delta: str = option(help="The probability that Gaussian noise's promise fails.", default="1e-6"),
    confidence: str = option(help="How often the error holds.", default="0.95"),
    plot: str | None = option(help="Also draw it: a path that ends in .png, .svg or .html."),
) -> None:
    """Show what people, error and epsilon cost each other, central and local side by side. Leave one of them out.

    Examples: `tacit tradeoff fraction --error 1% --epsilon 1` computes the people;
    `tacit tradeoff counts --k 100 --people 100000 --epsilon 1` computes the error.
    """
    from tacit.local import tradeoff as solve

    check_plot(plot)
    share = error
    if error is not None and error.strip().endswith("%"):
        from tacit.numbers import decimal_meaning

        share = str(decimal_meaning(error.strip().rstrip("%"), name="error") / 100)
    found = solve(
        kind,  # type: ignore[arg-type]
        people=people,
        error=share,
        epsilon=epsilon,
        k=k,
        touched=touched,
        delta=delta,
        confidence=confidence,
    )
    say(str(found))
    if plot is not None:
        say(f"drawn: {found.plot(plot)}")
