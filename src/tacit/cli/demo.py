"""`tacit demo`: what exists so far, shown on made-up numbers."""

import typer


def demo() -> None:
    """Show what Tacit does, on made-up data, in a few seconds.

    Example: `tacit demo`
    """
    import tacit

    exact_count = 1_234
    mechanism = tacit.Laplace(sensitivity=1, epsilon=1)
    typer.echo(f"1,234 people in a made-up table said yes. Three private answers at {mechanism.loss}:")
    for _ in range(3):
        typer.echo(f"  {mechanism.release(exact_count):,}")
    typer.echo()
    typer.echo(mechanism.explain())
    typer.echo()
    typer.echo(tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).explain())
