"""A house rule as a function of a tree {path: source}: numbers that were chosen by measurement stand in one module.

It returns what breaks it, as those of tidy_rules.py do.
"""

import ast

from tests.tidy_rules import Tree, parsed

# The module of all numbers that were chosen by measurement, and the rooms that may have no others. Exempt are the
# numerics of exact laws and how numbers are printed; tolerances are tiny or huge.
CHOSEN = "plan/bounds/chosen.py"
CHOSEN_ROOMS = ("plan/bounds/", "answer/", "forecast/")
CHOSEN_MOST = 41  # with the slack of a possible table, which erred least on pairs of a table
CHOSEN_EXEMPT = ("answer/noise_sums.py", "answer/text.py", "answer/disclosure.py")
# What is read about the population is no bound of a question: its two numbers stand beside the law that they are of.
CHOSEN_EXEMPT += ("answer/population.py", "answer/significance.py")
TOLERANCE = 1e-6


def chosen_numbers(tree: Tree) -> list[str]:
    """Numbers that were chosen rather than derived stand in one module, each with a line that says what it moves."""
    broken = []
    for path, source in tree.items():
        if path == CHOSEN:
            broken += _unexplained(source)
        elif path.startswith(CHOSEN_ROOMS) and not path.startswith(CHOSEN_EXEMPT):
            broken += [
                f"{path}:{node.lineno} chooses a number; state it in {CHOSEN}, or derive it"
                for node in parsed(source).body
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_chosen(node.value)
            ]
    return broken


def _unexplained(source: str) -> list[str]:
    lines, found = source.splitlines(), []
    names = 0
    for node in parsed(source).body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            names += len(target.elts) if isinstance(target, ast.Tuple) else 1
            if "  # " not in lines[node.lineno - 1]:
                found.append(
                    f"{CHOSEN}:{node.lineno} says nothing of its number; add what it does and which figure it moves"
                )
    if names > CHOSEN_MOST:
        found.append(f"{CHOSEN} has {names} numbers; {CHOSEN_MOST} are allowed: derive one, or do without it")
    return found


def _is_chosen(value: ast.expr) -> bool:
    """Whether a value is a float or a fraction by itself, a list of such, or whole numbers divided."""
    if isinstance(value, ast.Tuple | ast.List):
        return any(_is_chosen(each) for each in value.elts)
    if isinstance(value, ast.Dict):
        return any(_is_chosen(each) for each in value.values)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return all(isinstance(side, ast.Constant) for side in (value.left, value.right))
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "Fraction":
        return len(value.args) == 2 and all(isinstance(each, ast.Constant) for each in value.args)
    if not isinstance(value, ast.Constant) or not isinstance(value.value, float):
        return False
    return TOLERANCE < abs(value.value) < 1 / TOLERANCE
