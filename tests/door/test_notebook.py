"""A notebook, in a real kernel without ipywidgets: what a cell shows, and what an error looks like there."""

import re
from pathlib import Path

import pytest

from tests.doc_blocks import blocks

# one kernel runs the cells of all of them
pytestmark = [pytest.mark.xdist_group("notebook"), pytest.mark.far]
README = Path(__file__).resolve().parents[2] / "README.md"
PYTHON = [block.text for block in blocks(README.read_text()) if block.kind == "python"]
FIRST_BLOCK = PYTHON[0]
WITHOUT_WIDGETS = "import sys; sys.modules['ipywidgets'] = None"  # as if it were not installed, wherever this runs
TAB = """
from IPython.core.completer import provisionalcompleter
answer, plan = question.answer(epsilon=1), question.plan(epsilon=1)
with provisionalcompleter():
    for words in ("survey.", "question.", "answer."):
        for turn in range(20):  # what looks names up gives up silently, and has read more each time
            offered = [each.text for each in get_ipython().Completer.completions(words, len(words))]
            if offered:
                break
        print(words, *offered)
"""
MAGIC_TAB = """
from IPython.core.completer import provisionalcompleter
with provisionalcompleter():
    asked = "%%tacit survey --epsilon 1\\nSELECT "
    for text in ("%%tacit sur", "%%tacit survey --ep", asked + "reg", asked.rstrip("CT ")):
        print(*[each.text for each in get_ipython().Completer.completions(text, len(text))])
"""
SLOW = """
import time
from tacit.remote.notebook import progress
with progress("asking survey"):
    time.sleep(1.2)
"""
CELLS = {
    "no widgets": WITHOUT_WIDGETS,
    "first block": FIRST_BLOCK,
    "text": "text = str(question.answer(epsilon=1))\nprint(repr(text))",
    "bare answer": "question.answer(epsilon=1)",
    "bare plan": "question.plan(epsilon=1)",
    "refused": "def ask():\n    return survey.sum('hours * hours').answer(epsilon=1, learn=False)\nask()",
    "tab": TAB,
    "bare meaning": "tacit.explain(1)",
    "bare left": "survey.left",
    "load": "%load_ext tacit\n%tacit",
    "magic": "%%tacit survey --epsilon 0.5 --to counts\nSELECT region, COUNT(*) AS n FROM survey GROUP BY region",
    "kept": "print(list(counts.to_pandas().columns), counts.facts.loss['text'])",
    "magic plan": "%%tacit survey --plan --epsilon 0.1\nSELECT COUNT(*) AS n FROM survey WHERE hours > 40",
    "magic spends": "%%tacit survey\nSELECT COUNT(*) FROM survey",
    "magic unknown": "%%tacit surveys --epsilon 1\nSELECT COUNT(*) FROM survey",
    "magic tab": MAGIC_TAB,
    "magic progress": SLOW,
    "odd names": "import pandas\nodd = pandas.DataFrame({'person': range(500), '<b>': ['CA', 'NY'] * 250})\n"
    "tacit.table(odd, name='odd', unit='person', ledger=':memory:', budget=tacit.epsilon(9), groups_per_unit=1,\n"
    "            rows_per_unit=1).group_by('<b>', keys=['<i>', '\\x1b[31m']).count().answer(epsilon=1)",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Every cell's outputs, by the cell's name."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        folder = tmp_path_factory.mktemp("notebook")
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(book, timeout=120, kernel_name="python3", allow_errors=True, resources=resources).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, book.cells, strict=True)}


def streamed(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


@pytest.mark.smoke
def test_the_readme_begins_in_a_notebook_without_widgets(shown):
    text = streamed(shown["first block"])
    assert [output.output_type for output in shown["first block"]] == ["stream"]
    for wanted in ("± 95 %", "north", "south", "Spent ε 1"):
        assert wanted in text


def test_the_text_of_an_answer_has_its_table_and_is_not_pushed_to_the_screen(shown):
    (output,) = shown["text"]
    assert output.output_type == "stream"
    assert "north" in output.text
    assert "Free" in output.text


def test_a_bare_answer_is_shown_once_as_text_and_as_html(shown):
    (output,) = shown["bare answer"]
    assert output.output_type == "execute_result"
    assert set(output.data) == {"text/plain", "text/html"}
    assert "<td" in output.data["text/html"]
    assert "north" in output.data["text/plain"]


def test_a_bare_plan_and_a_bare_meaning_are_words(shown):
    (plan,), (meaning,), (left,) = shown["bare plan"], shown["bare meaning"], shown["bare left"]
    assert plan.data["text/plain"].startswith("Plan for survey")
    assert plan.data["text/html"].startswith("<pre")
    assert meaning.data["text/plain"].startswith("ε = 1: the promise to one person")
    assert left.data["text/plain"].startswith("ε = 2")


def test_an_error_is_the_askers_own_lines_and_the_message(shown):
    (output,) = shown["refused"]
    lines = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback)).splitlines()
    assert output.ename == "QueryRefused"
    assert len(lines) <= 7, lines
    assert lines[:2] == ["this cell, line 3", "    ask()"]
    assert lines[-2].startswith("QueryRefused: ")
    assert lines[-1].startswith("hint: ")


def test_tab_offers_what_a_person_can_use(shown):
    offered = {line.split()[0]: set(line.split()[1:]) for line in streamed(shown["tab"]).splitlines()}
    assert {"where", "group_by", "count", "sql", "left"} <= offered["survey."]
    assert offered["question."] == {"answer", "plan"}
    assert {"to_pandas", "to_csv", "certificate", "plot"} <= offered["answer."]
    assert not {"session", "frame", "query", "certify"} & set().union(*offered.values())


def test_names_and_keys_of_others_are_shown_and_neither_run_nor_obeyed(shown):
    (output,) = shown["odd names"]
    assert "&lt;b&gt;" in output.data["text/html"]
    assert "&lt;i&gt;" in output.data["text/html"]
    assert "<b>" not in output.data["text/html"]
    assert "\x1b" not in "".join(output.data.values())
    assert "\\x1b[31m" in output.data["text/plain"]


def test_a_cell_of_sql_is_a_question_with_a_plan_and_an_answer(shown):
    (left,) = shown["load"]
    assert left.data["text/plain"].startswith("survey: ε = ")
    answer = next(output for output in shown["magic"] if output.output_type == "execute_result")
    assert "north" in answer.data["text/plain"]
    assert streamed(shown["kept"]).startswith("['region', 'n', 'n_low', 'n_high'] ε = 0.5")
    (plan,) = shown["magic plan"]
    assert plan.data["text/plain"].startswith("Plan for survey")


def test_a_cell_that_cannot_be_asked_says_how(shown):
    (spends,), (unknown,) = shown["magic spends"], shown["magic unknown"]
    assert spends.ename == unknown.ename == "InvalidParameter"
    assert "--epsilon 1, or --plan, which is free" in spends.evalue
    assert "did you mean 'survey'" in unknown.evalue


def test_tab_in_a_cell_of_sql_offers_tables_options_and_columns(shown):
    assert streamed(shown["magic tab"]).splitlines() == ["survey", "--epsilon", "region", "SELECT"]


def test_a_question_that_takes_long_has_a_line_of_progress_that_goes_away(shown):
    (line,) = [output for output in shown["magic progress"] if output.output_type == "display_data"]
    assert line.data["text/plain"] == ""
