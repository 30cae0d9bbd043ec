"""`tacit explain`: what an epsilon and a delta mean to a person."""

from typing import Annotated

import typer

from tacit.cli.screen import say


def explain(
    *,
    epsilon: Annotated[str, typer.Option(help="The loss, e.g. 1 or 0.1.")],
    delta: Annotated[str, typer.Option(help="The chance that the promise fails, e.g. 1e-6.")] = "0",
    prior: Annotated[list[str] | None, typer.Option(help="A belief before, e.g. 0.1; may be given often.")] = None,
    group: Annotated[list[int] | None, typer.Option(help="The size of a group; may be given often.")] = None,
) -> None:
    """Say what a guarantee means: what anyone could learn about a person, at most.

    Example: `tacit explain --epsilon 1 --delta 1e-6`
    """
    from tacit.accounting import meaning

    found = meaning.explain(
        epsilon, delta=delta, priors=prior or meaning.PRIORS, groups=group if group is not None else meaning.GROUPS
    )
    say(str(found))
