"""One writer for every picture: its forms, its one refusal, and pages that fetch nothing and run nothing they show."""

import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit import audit, local, tradeoff
from tacit.answer.answer import Answer, AnswerInfo
from tacit.errors import InvalidParameter
from tacit.pictures.writer import Spec, as_chart, page, write
from tacit_classroom.attacks import difference

EVIL = "</script><b> <!-- <script>"
Drawn = Callable[[str | Path], Any]


def picture_of(words: str) -> Spec:
    """A picture with words from elsewhere as its title, its note, an axis, a mark's text and a value."""
    body = {
        "data": {"values": [{"x": 1, "words": words}]},
        "mark": {"type": "text", "text": words},
        "encoding": {"x": {"field": "x", "type": "quantitative", "title": words}, "y": {"field": "words"}},
    }
    return page(body, title=words, notes=[words], letters=(60, 100))


PLAIN = picture_of("plain")


def an_answer() -> Drawn:
    row = {"ward": EVIL, "n": 7.0, "n_low": 6.0, "n_high": 8.0}
    loss = {"epsilon": 1.0, "delta": 0.0, "text": "ε = 1"}
    facts = AnswerInfo(
        loss, {}, "each row", "add or remove one", Fraction(19, 20), durable=True, free=False, notes=(EVIL,)
    )
    return Answer([row], ("ward", "n"), {"n": "float"}, ("n",), facts, {"n": "count"}).plot


def an_audit() -> Drawn:
    return audit(lambda d, n: [EVIL] * n if d else ["no"] * n, 0, 1, epsilon=1, draws=400, batch=True).plot


def an_attack() -> Drawn:
    return difference(streets=20).plot


def a_tradeoff() -> Drawn:
    return tradeoff("fraction", error=0.05, epsilon=1).plot


def an_estimate() -> Drawn:
    client = local.Randomizer([EVIL, "y"], epsilon=1)
    collector = local.Collector(client.survey)
    collector.add_all(client.reports([EVIL] * 80 + ["y"] * 20))
    plot = collector.estimate().plot
    return lambda path: plot(str(path))


EVERY = [an_answer, an_audit, an_attack, a_tradeoff, an_estimate]


def ends_of_scripts(text: str) -> int:
    return len(re.findall("</script", text))


def test_no_words_can_end_the_script_of_a_page(tmp_path: Path) -> None:
    plain = write(PLAIN, tmp_path / "plain.html").read_text()
    evil = write(picture_of(EVIL), tmp_path / "evil.html").read_text()
    assert ends_of_scripts(evil) == ends_of_scripts(plain)
    assert evil.count("<!--") == plain.count("<!--")


@pytest.mark.parametrize("made", EVERY)
def test_every_page_is_guarded_and_needs_no_network(made: Callable[[], Drawn], tmp_path: Path) -> None:
    plain = write(PLAIN, tmp_path / "plain.html").read_text()
    made()(tmp_path / "drawn.html")
    drawn = (tmp_path / "drawn.html").read_text()
    assert "vega" in drawn
    assert ends_of_scripts(drawn) == ends_of_scripts(plain)
    assert drawn.count("<!--") == plain.count("<!--")
    assert not re.search(r"<script[^>]+src=", drawn)


@pytest.mark.parametrize("made", EVERY)
def test_a_wrong_ending_is_refused_in_one_wording(made: Callable[[], Drawn], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter) as refused:
        made()(tmp_path / "a.gif")
    assert str(refused.value).splitlines()[0] == "the name of a picture must end in .png, .svg, .html"


def test_the_ending_says_the_form(tmp_path: Path) -> None:
    assert write(PLAIN, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert write(PLAIN, tmp_path / "a.SVG").read_text().startswith("<svg")


@pytest.mark.parametrize("place", ["no/a.png", "folder.png"])
def test_a_place_that_cannot_be_written_is_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InvalidParameter, match="cannot be written"):
        write(PLAIN, tmp_path / place)


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_the_extra_the_error_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InvalidParameter, match=r"pip install 'tacit\[plots\]'"):
        as_chart(PLAIN)


def test_a_notebook_shows_a_picture_without_a_network() -> None:
    shown = as_chart(PLAIN)._repr_mimebundle_(include=None, exclude=None)
    assert set(shown) == {"image/svg+xml", "text/plain"}
    assert shown["image/svg+xml"].startswith("<svg")
