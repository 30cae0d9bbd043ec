"""Makes notebooks of the lessons: Markdown between ```python blocks becomes text cells, each block a code cell."""

import json
import re
from importlib.resources import files
from pathlib import Path

from tacit.errors import InvalidParameter

BLOCK = re.compile(r"^```python\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
TEACHER = "teacher.md"


def lessons() -> dict[str, str]:
    """Return the text of each lesson by its name, in the order of the course."""
    found = {path.name: path.read_text(encoding="utf-8") for path in (files(__package__) / "lessons").iterdir()}
    return {name.removesuffix(".md"): found[name] for name in sorted(found) if name != TEACHER}


def notebook(text: str) -> dict[str, object]:
    """Return a lesson as a notebook, without output."""
    cells: list[dict[str, object]] = []
    for index, part in enumerate(BLOCK.split(text)):
        source = part.strip("\n")
        if source:
            code: dict[str, object] = {"cell_type": "code", "execution_count": None, "outputs": []}
            kind = code if index % 2 else {"cell_type": "markdown"}
            cells.append({"id": f"cell-{len(cells)}", "metadata": {}, "source": source, **kind})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path) -> list[Path]:
    """Write all notebooks and the teacher's page into a folder; refuse to write over any file."""
    texts = {f"{name}.ipynb": json.dumps(notebook(text), indent=1) + "\n" for name, text in lessons().items()}
    texts[TEACHER] = (files(__package__) / "lessons" / TEACHER).read_text(encoding="utf-8")
    there = [name for name in texts if (folder / name).exists()]
    if there:
        raise InvalidParameter(f"{folder / there[0]} exists already\nhint: name another folder: tacit course FOLDER")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
