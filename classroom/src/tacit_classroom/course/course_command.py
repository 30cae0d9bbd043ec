"""`tacit course` writes the notebooks of the course into a folder."""

from pathlib import Path
from typing import Annotated

import typer

from tacit_classroom.course.notebooks import write


def course(folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path("tacit-course")) -> None:
    """Write a course in twelve notebooks, and a page for teachers.

    Each takes 15 minutes and needs no server. Example: `tacit course` then `jupyter lab tacit-course`
    """
    paths = write(folder)
    typer.echo(
        f"{len(paths) - 1} notebooks and a page for teachers are in {folder}; open them with: jupyter lab {folder}"
    )
