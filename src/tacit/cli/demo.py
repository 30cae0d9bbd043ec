"""`tacit demo`: what exists so far, shown on made-up numbers. Everything it prints as private was really drawn."""

import typer

# A made-up survey: how many people in each region said yes. One person is in one region only.
EXACT_COUNTS = {"north": 1_204, "east": 86, "south": 3_377, "west": 0}
EPSILON = 1


def demo() -> None:
    """Show what Tacit does, on made-up data, in a few seconds.

    Example: `tacit demo`
    """
    show_counts()
    show_many_numbers()
    show_losses()
    show_refusal()


def show_counts() -> None:
    """Print private counts beside the exact ones, with their error bars."""
    import tacit

    mechanism = tacit.Laplace(sensitivity=1, epsilon=EPSILON)
    noisy_counts = mechanism.release(list(EXACT_COUNTS.values()))
    bar = mechanism.error(confidence=0.95)
    typer.echo("A made-up survey. Private counts, and the exact ones that are never shown outside a demo:\n")
    typer.echo(f"  {'region':<8} {'private':>9} {'± 95 %':>7} {'(exact)':>9}")
    for (region, exact), noisy in zip(EXACT_COUNTS.items(), noisy_counts, strict=True):
        typer.echo(f"  {region:<8} {noisy:>9,} {bar:>7} {f'({exact:,})':>9}")
    typer.echo(f"\n  spent: {mechanism.loss} for the whole table, since one person is in one region\n")
    typer.echo(indented(mechanism.explain()))


def show_many_numbers() -> None:
    """Print which of the two mechanisms is better where one person touches many numbers."""
    import tacit

    typer.echo(
        "\nWhere one person touches all of k counts, none is off by more than (95 %, ε = 1, Gaussian δ = 1e-6):\n"
    )
    typer.echo(f"  {'k':>5} {'Laplace':>9} {'Gaussian':>9}")
    for k in (1, 4, 25, 100):
        laplace = tacit.Laplace(sensitivity=k, epsilon=EPSILON)
        gaussian = tacit.Gaussian(sensitivity=int(k**0.5), epsilon=EPSILON, delta=1e-6)
        typer.echo(f"  {k:>5} {laplace.error(coordinates=k):>9} {gaussian.error(coordinates=k):>9}")


def show_losses() -> None:
    """Print how losses add, exactly."""
    import tacit

    tenth = tacit.epsilon(0.1)
    typer.echo("\nLosses are exact and add:\n")
    typer.echo(f"  {tenth} three times is {tenth + tenth + tenth}; as floats, 0.1 + 0.1 + 0.1 is {0.1 + 0.1 + 0.1}")


def show_refusal() -> None:
    """Print what a mistake looks like."""
    import tacit

    typer.echo("\nA mistake is refused, with the rule and the way out:\n")
    try:
        tacit.epsilon(1, delta=1)
    except tacit.TacitError as error:
        typer.echo(indented(f"tacit.epsilon(1, delta=1)\n{error}"))


def indented(text: str) -> str:
    """Return the text two spaces in."""
    return "\n".join(f"  {line}" for line in text.splitlines())
