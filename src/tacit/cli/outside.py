"""Commands and demos that other packages bring, by entry points in `tacit.commands` and `tacit.demos`.

A command is a function with Typer's annotations, or a Typer app; a demo returns a story to print and to plot. An
expected command is listed without its package too, and explains how to install it. Other packages cannot replace our
commands, or an expected one, or one that two packages bring.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from tacit.errors import InvalidParameter

GROUP, DEMOS = "tacit.commands", "tacit.demos"
CLASSROOM = "from a checkout of tacit, run: pip install ./classroom"

# name of a command -> its only allowed entry point, its description, and how to install its package
EXPECTED = {
    "gauntlet": (
        "tacit_gauntlet.command:gauntlet",
        "Try every published attack on this installation, one line each; exit 1 if any succeeds.",
        "from a checkout of tacit, run: pip install ./gauntlet",
    ),
    "attack": (
        "tacit_classroom.attack_command:app",
        "Try the classic attacks on published numbers: on exact answers, and on ours.",
        CLASSROOM,
    ),
}
EXPECTED_DEMOS = {"overfitting": "tacit_classroom.overfitting:overfitting_story"}


class Commands(TyperGroup):
    """Our own commands, then those of other packages; a name of ours is never replaced."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, ours first."""
        ours = super().list_commands(ctx)
        others = {*EXPECTED, *(point.name for point in entry_points(group=GROUP))}
        return [*ours, *sorted(others - set(ours))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return super().get_command(ctx, cmd_name) or command_of(cmd_name)


def command_of(name: str) -> Any:
    """Return the command that another package brings under `name`, a command that explains how to get it, or None."""
    found = {point.value: point for point in entry_points(group=GROUP, name=name)}  # one package may appear twice
    if name in EXPECTED:
        value, what, how = EXPECTED[name]
        if value not in found:
            message = f"'tacit {name}' is in a separate package that is not installed\nhint: {how}"
            return _refusing(name, f"{what} (Not installed: {how}.)", message)
        return _loaded(found[value])
    if len(found) > 1:
        message = f"'tacit {name}' is brought by more than one package: {', '.join(sorted(found))}"
        return _refusing(name, "(More than one package brings it.)", f"{message}\nhint: uninstall all but one of them")
    for point in found.values():
        return _loaded(point)
    return None


def demo_of(name: str) -> Callable[[], Any]:
    """Return the demo that another package brings; refuse a name that no package of ours has."""
    if name not in EXPECTED_DEMOS:
        raise InvalidParameter(f"the demo '{name}' does not exist\nhint: tacit demo, or tacit demo overfitting")
    for point in entry_points(group=DEMOS, name=name):
        if point.value == EXPECTED_DEMOS[name]:
            story: Callable[[], Any] = point.load()
            return story
    raise InvalidParameter(f"'tacit demo {name}' is in a separate package that is not installed\nhint: {CLASSROOM}")


def _loaded(point: EntryPoint) -> Any:
    """Return the command of an entry point; a command that cannot be loaded prints the reason."""
    try:
        return _as_command(point.name, point.load())
    except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever another package raises, our own commands stay)
        kind = type(error).__name__
        message = f"'tacit {point.name}' cannot be loaded: {point.value} raised {kind}"
        how = "install its package again, at the version of tacit"
        return _refusing(point.name, f"(Cannot be loaded: {kind}.)", f"{message}\nhint: {how}")


def _refusing(name: str, what: str, message: str) -> Any:
    """Return a command that takes any words and refuses with `message`."""

    def refuse() -> None:
        raise InvalidParameter(message)

    refuse.__doc__ = what
    return _as_command(name, refuse, allow_extra_args=True, ignore_unknown_options=True)


def _as_command(name: str, found: Any, **settings: bool) -> Any:
    app = found
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
        app.command(name=name, context_settings=settings)(found)
    command = typer.main.get_command(app)
    command.name = name
    return command
