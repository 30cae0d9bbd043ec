"""Planted bugs fit the code as it is now: what they take, what they use of their object, and what they call.

A bug whose code moved on breaks by itself, and nobody notices the bug. All are looked at here without running a case;
what a case raises that the bug does not name is no kill either (frame/mutant.py).
"""

import ast
import dis
import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import tacit_gauntlet as gauntlet
from tacit_gauntlet import targets
from tacit_gauntlet.frame.mutant import all_mutants
from tacit_gauntlet.targets import original

gauntlet.load()

BUGS = all_mutants()  # other tests add their own, which are no part of it
FILES = sorted(Path(gauntlet.__file__).parent.rglob("*mutants.py"))


@pytest.fixture
def replacements(monkeypatch):
    """Plant every bug once, and return (bug, module or class, attribute, what stood there, what was planted)."""
    found, replaced = [], targets.replaced

    def noted(owner: Any, name: str, replacement: Any) -> Any:
        found.append((bug.name, owner, name, vars(owner)[name], replacement))
        return replaced(owner, name, replacement)

    monkeypatch.setattr(targets, "replaced", noted)
    for bug in BUGS:
        with bug.plant():
            pass
    return found


def test_a_planted_function_takes_what_the_code_gives_to_the_one_that_stood_there(replacements):
    wrong = [(bug, name, why) for bug, _, name, before, after in replacements if (why := misfit(before, after))]
    assert wrong == []


def test_a_planted_method_uses_what_its_object_has(replacements):
    wrong = [(bug, owner, missing(owner, after)) for bug, owner, _, _, after in replacements if missing(owner, after)]
    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_a_bug_calls_takes_what_the_bug_gives(path):
    assert list(wrong_calls(path.read_text())) == []


def plain(what: Any) -> Any:
    """The function that a descriptor of a class calls, or what was given."""
    if isinstance(what, staticmethod | classmethod):
        return what.__func__
    if isinstance(what, cached_property):
        return what.func
    return what.fget if isinstance(what, property) else what


def misfit(before: Any, after: Any) -> str:
    """Why a replacement cannot be called as what it replaces; everything it may be given is given."""
    signatures = [signature_of(plain(each)) for each in (before, after)]
    if None in signatures:
        return "" if callable(plain(before)) == callable(plain(after)) else "one of the two is no function"
    taken = signatures[0].parameters.values()
    in_order = [each.name for each in taken if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    by_name = {each.name: None for each in taken if each.kind is each.KEYWORD_ONLY}
    try:
        signatures[1].bind(*in_order, **by_name)
    except TypeError as error:
        return str(error)
    return ""


def signature_of(what: Any) -> inspect.Signature | None:
    """How something is called; None where it is not, or does not say."""
    try:
        return inspect.signature(what)
    except (TypeError, ValueError):
        return None


def missing(owner: Any, planted: Any) -> list[str]:
    """The attributes of its object that a planted method reads and that the class does not have."""
    function = plain(planted)
    if not (isinstance(owner, type) and inspect.isfunction(function) and function.__code__.co_argcount):
        return []
    read = set(attributes_read(function.__code__, function.__code__.co_varnames[0]))
    return sorted(name for name in read if not hasattr(owner, name) and name not in set_on_objects(owner))


def attributes_read(code: Any, of: str) -> Iterator[str]:
    """The names read of one variable, in a function and in those inside it."""
    loaded: Any = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and loaded == of:
            yield step.argval
        loaded = step.argval if step.opname.startswith("LOAD_") else None
        loaded = loaded[-1] if isinstance(loaded, tuple) else loaded  # newer Pythons load two at once
    for inner in code.co_consts:
        if inspect.iscode(inner) and of in inner.co_freevars:
            yield from attributes_read(inner, of)


def set_on_objects(owner: type) -> set[str]:
    """The attributes that a class declares, or that its methods set."""
    found: set[str] = set()
    for each in owner.__mro__[:-1]:
        found |= set(inspect.get_annotations(each))
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(each)))
        found |= {
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
    return found


def wrong_calls(source: str) -> Iterator[str]:
    """The calls of originals, by seam or by the name one was given in the same function, that do not fit them."""
    tree = ast.parse(source)
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        named = {name: seam for node in scope.body if isinstance(node, ast.Assign) for name, seam in given_names(node)}
        for node in ast.walk(scope):
            seam = None if not isinstance(node, ast.Call) else seam_of(node.func) or named.get(ast.unparse(node.func))
            if seam is not None and (why := misgiven(original(seam), node)):
                yield f"{ast.unparse(node)}: {why}"


def given_names(node: ast.Assign) -> Iterator[tuple[str, str]]:
    """The names that an assignment gives to originals, with their seams."""
    (target,) = node.targets
    several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
    pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]
    for name, value in pairs:
        if (seam := seam_of(value)) is not None:
            yield ast.unparse(name), seam


def seam_of(node: ast.AST) -> str | None:
    """The seam of `original("seam")`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "original" and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value)
    return None


def misgiven(function: Callable[..., Any], call: ast.Call) -> str:
    """Why a call does not fit a function; what is in * or ** may be anything."""
    signature = signature_of(function)
    if signature is None:
        return ""
    given = [each for each in call.args if not isinstance(each, ast.Starred)]
    named = {each.arg: each for each in call.keywords if each.arg is not None}
    is_whole = len(given) == len(call.args) and len(named) == len(call.keywords)
    try:
        (signature.bind if is_whole else signature.bind_partial)(*given, **named)
    except TypeError as error:
        return str(error)
    return ""


class Session:
    """What the examples of bugs that do not fit are planted in."""

    def __init__(self) -> None:
        self.rows = 7

    def answer(self, query: str, *, learn: bool = True, show: bool = False) -> int:
        return self.rows if learn or show else len(query)


def test_a_function_that_does_not_take_what_is_given_is_seen():
    def answer(self: Any, query: str, *, learn: bool) -> int:
        return 1

    assert misfit(Session.answer, answer) == "got an unexpected keyword argument 'show'"
    assert misfit(Session.answer, lambda *_, **__: 1) == ""
    assert misfit(Session.answer, 1) == "one of the two is no function"


def test_an_attribute_that_is_gone_is_seen():
    def answer(self: Any, query: str) -> Any:
        return [self._release(each) for each in query], self.rows, self.answer, (lambda: self.plan)

    assert missing(Session, answer) == ["_release", "plan"]


def test_a_call_that_does_not_fit_is_seen():
    source = """
def plant():
    renew, link = original("refuse_float"), original("link")

    def late(*args):
        return renew("1", "2"), link(*args, **{}), original("refuse_float")(text=1), original("refuse_float")("1")
"""
    assert set(wrong_calls(source)) == {
        "renew('1', '2'): too many positional arguments",
        "original('refuse_float')(text=1): missing a required argument: 'written'",
    }
