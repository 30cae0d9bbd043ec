"""A course in twelve notebooks, each 15 minutes: `tacit course` writes them into a folder.

`lessons/` holds them as Markdown, to be read and changed as text; `notebooks.py` makes notebooks of them; their cells
call `claims.py`. A claim shows the notes' number beside the one computed here, and stops if they differ; the check
of an exercise prints only whether an answer is right.
"""

from tacit_classroom.course.claims import check, claim, teaching
from tacit_classroom.course.notebooks import lessons, notebook, write

__all__ = ["check", "claim", "lessons", "notebook", "teaching", "write"]
