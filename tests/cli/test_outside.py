"""Commands of other packages: found by entry points, listed where they are absent, and no danger to our own."""

from importlib.metadata import EntryPoint

import pytest
import typer

from tacit.cli import outside

hello_app = typer.Typer(help="Say hello in many ways.")


@hello_app.command()
def twice() -> None:
    """Say hello, hello."""
    typer.echo("hello, hello")


@hello_app.command()
def once() -> None:
    """Say hello."""
    typer.echo("hello")


@pytest.fixture
def installed(monkeypatch):
    """Let other packages bring the given commands: name -> module:attribute."""

    def install(**points):
        found = [EntryPoint(name, value, outside.GROUP) for name, value in points.items()]

        def wanted(*, group, name=None):
            return [point for point in found if point.group == group and name in (None, point.name)]

        monkeypatch.setattr(outside, "entry_points", wanted)

    return install


@pytest.mark.parametrize("words", [(), ("--quick", "--case", "N02"), ("anything",)])
def test_without_its_package_the_gauntlet_says_how_to_install_it(tacit_command, installed, words):
    installed()
    ran = tacit_command("gauntlet", *words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 2
    assert "not installed" in ran.err
    assert "pip install ./gauntlet" in ran.err


def test_without_its_package_the_gauntlet_is_still_listed(tacit_command, installed):
    installed()
    ran = tacit_command("--help")
    assert "gauntlet" in ran.out
    assert "pip install ./gauntlet" in " ".join(ran.out.replace("│", " ").split())
    assert tacit_command("gauntlet", "--help").code == 0


def test_with_its_package_the_gauntlet_is_the_packages(tacit_command):
    assert "--mutants" in tacit_command("gauntlet", "--help").out
    assert "Not installed" not in tacit_command("--help").out


def test_a_package_brings_one_command_or_several(tacit_command, installed):
    installed(hello="tests.cli.test_outside:hello_app", again="tests.cli.test_outside:once")
    assert tacit_command("hello", "twice").out == "hello, hello\n"
    assert tacit_command("again").out == "hello\n"
    assert {"hello", "again"} <= set(tacit_command("--help").out.split())


def test_a_package_that_does_not_load_takes_no_command_of_ours_away(tacit_command, installed):
    installed(broken="tests.cli.no_such_module:thing")
    assert tacit_command("--help").code == 0
    ran = tacit_command("broken", "--now")
    assert ran.code == 2
    assert "cannot be loaded" in ran.err
    assert "ModuleNotFoundError" in ran.err


def test_a_package_cannot_replace_a_command_of_ours(tacit_command, installed):
    installed(demo="tests.cli.test_outside:once")
    assert "hello" not in tacit_command("demo", "--help").out.split()


def test_a_name_that_nobody_brings_is_refused(tacit_command, installed):
    installed()
    assert "No such command" in tacit_command("nonsense").err
