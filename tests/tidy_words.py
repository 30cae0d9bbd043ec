"""House rules about messages: they are written for a colleague whose English is a second language.

They read a tree as `tidy_rules.py` does, and test_tidy.py runs them with the others.
"""

import ast
import re
from collections.abc import Iterator

from tests.tidy_rules import Tree, nodes_of

# What no message has, and what to write instead.
BARRED = {
    r"said": "given, declared or called",
    r"told": "given; told apart: distinguished",
    r"oftener|soonest": "more often, earliest",
    r"just when": "if and only if",
    r"so many|so much": "the number itself, or too many",
    r"(?:is|are|was|were) none": "say what must be there",
    r"(?<!there )(?:is|are) no (?!longer|more|less)[a-z]+": "is not a ..., or must be a ...",
    r"whoever|nobody|somebody": "name them: a person who ..., no other unit",
    r"anew": "again",
    r"what is (?:over|left|asked|there|theirs)": "name the thing",
    r"the chance|that chance": "the probability",
    r"at (?:this |that |its )?place": "at index ...",
}


def words_of_messages(tree: Tree) -> list[str]:
    """Messages of errors and warnings have none of the barred words."""
    return [
        f"{path}:{line} has a message with '{match[0]}'; write {instead}"
        for path, source in tree.items()
        for text, line in messages_in(source)
        for words, instead in BARRED.items()
        for match in re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE)
    ]


def no_files_that_users_lack(tree: Tree) -> list[str]:
    """No text but a docstring names a file of docs/, which a wheel does not have; docstrings may (tacit.__doc__)."""
    broken = []
    for path, source in tree.items():
        docstrings = {
            id(node.body[0].value)
            for node in nodes_of(source)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if node.body and isinstance(node.body[0], ast.Expr)
        }
        broken += [
            f"{path}:{node.lineno} names a file of docs/ in a text that users see; say in words what it says"
            for node in nodes_of(source)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
            if "docs/" in node.value
        ]
    return broken


def messages_in(source: str) -> Iterator[tuple[str, int]]:
    """Every text in a `raise` or in a call of something named warn, with its line; what is put into a text is `…`."""
    for node in nodes_of(source):
        if isinstance(node, ast.Raise) and node.exc is not None:
            yield from texts_in(node.exc)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "warn":
            yield from texts_in(node)


def texts_in(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Every text below a node; a text with parts put into it is one text."""
    if isinstance(node, ast.JoinedStr):
        parts = [str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values]
        yield "".join(parts), node.lineno
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, node.lineno
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from texts_in(child)
