"""An answer opens few files, plans twice, reads the ledger three times, and its noise is near its beginning.

The page that explains the story quotes its code.
"""

import inspect
import re
import textwrap
from pathlib import Path

import pytest

from tacit.asking.request import Request
from tests.walk import ANSWER, NOISE, Walk, learned_answer

# A limit only falls.
LIMITS = {
    "files executed": 79,
    "plans made": 2,
    "transactions that read the ledger": 3,
    "transactions that write it": 2,
    "frames from the answer to its noise": 8,
}


@pytest.fixture(scope="module")
def walk():
    return learned_answer()


@pytest.mark.parametrize("figure", LIMITS)
def test_a_learned_answer_stays_within_its_limits(walk, figure):
    assert 0 < walk.figures[figure] <= LIMITS[figure]


def test_the_walk_is_of_a_whole_answer(walk):
    """It would hold any limit if it saw nothing."""
    files = {name.rpartition("/")[2] for name in walk.files}
    assert {"request.py", "planner.py", "charging.py", "engine.py", "noisy.py", "answer.py"} <= files
    assert walk.calls[NOISE] == 1
    assert walk.calls[ANSWER] == 1
    assert not Walk().follow(lambda: Walk().figures).files


def test_the_architecture_page_quotes_the_story():
    page = (Path(__file__).parent.parent / "docs" / "ARCHITECTURE.md").read_text()
    (quoted,) = re.findall(r"```python\n(def answer\(.*?)\n```", page, re.DOTALL)
    code = textwrap.dedent(inspect.getsource(Request.answer)).strip()
    assert quoted == re.sub(r'\n    """.*?"""', "", code, count=1, flags=re.DOTALL)
