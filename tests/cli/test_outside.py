"""Commands of other packages: found by entry points, listed where they are absent, and no danger to our own."""

import sys
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


def __getattr__(name):
    """Stop the process, as a script that was written without a main function does."""
    if name == "leaving":
        sys.exit(3)
    raise AttributeError(name)


@pytest.fixture
def installed(monkeypatch):
    """Let other packages bring the given commands: name -> module:attribute, or pairs of them."""

    def install(*more, **points):
        found = [EntryPoint(name, value, outside.GROUP) for name, value in (*more, *points.items())]

        def wanted(*, group, name=None):
            return [point for point in found if point.group == group and name in (None, point.name)]

        monkeypatch.setattr(outside, "entry_points", wanted)

    return install


PACKAGES = {"gauntlet": "gauntlet", "attack": "classroom"}


@pytest.mark.parametrize("words", [(), ("--quick", "--case", "N02"), ("anything",)])
@pytest.mark.parametrize(("command", "package"), [*PACKAGES.items(), ("demo overfitting", "classroom")])
def test_without_its_package_a_command_says_how_to_install_it(tacit_command, installed, command, package, words):
    installed()
    ran = tacit_command(*command.split(), *(() if command.startswith("demo") else words))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 2
    assert "not installed" in ran.err
    assert f"pip install ./{package}" in ran.err


@pytest.mark.parametrize("command", PACKAGES)
def test_without_its_package_a_command_is_still_listed(tacit_command, installed, command):
    installed()
    ran = tacit_command("--help")
    assert command in ran.out
    assert f"pip install ./{PACKAGES[command]}" in " ".join(ran.out.replace("│", " ").split())
    assert tacit_command(command, "--help").code == 0


def test_with_its_package_the_attacks_are_the_packages(tacit_command):
    assert "reconstruct" in tacit_command("attack", "--help").out


def test_a_package_cannot_pass_for_the_demo_that_is_expected(tacit_command, installed):
    installed(overfitting="tests.cli.test_outside:once")
    assert "not installed" in tacit_command("demo", "overfitting").err
    assert "does not exist" in tacit_command("demo", "nonsense").err


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


def test_a_package_that_stops_the_process_when_it_loads_takes_no_command_of_ours_away(tacit_command, installed):
    installed(leaving="tests.cli.test_outside:leaving")
    assert "SystemExit" in tacit_command("leaving").err
    assert "demo" in tacit_command("--help").out


def test_a_package_cannot_pass_for_the_one_that_is_expected(tacit_command, installed):
    installed(gauntlet="tests.cli.test_outside:once")
    ran = tacit_command("gauntlet")
    assert (ran.code, ran.out) == (2, "")
    assert "not installed" in ran.err
    installed(("gauntlet", "tests.cli.test_outside:once"), gauntlet="tacit_gauntlet.command:gauntlet")
    assert "--mutants" in tacit_command("gauntlet", "--help").out


def test_two_packages_that_bring_one_name_are_refused(tacit_command, installed):
    installed(("hello", "tests.cli.test_outside:once"), ("hello", "tests.cli.test_outside:twice"))
    ran = tacit_command("hello")
    assert (ran.code, ran.out) == (2, "")
    assert "more than one package" in ran.err
    installed(("hello", "tests.cli.test_outside:once"), ("hello", "tests.cli.test_outside:once"))
    assert tacit_command("hello").out == "hello\n"


def test_a_command_of_ours_looks_for_no_other_package(tacit_command, monkeypatch):
    monkeypatch.setattr(outside, "entry_points", lambda **_: pytest.fail("other packages were searched"))
    assert tacit_command("explain", "--epsilon", "1").code == 0


def test_a_name_that_nobody_brings_is_refused(tacit_command, installed):
    installed()
    assert "No such command" in tacit_command("nonsense").err
