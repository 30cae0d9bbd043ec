"""Every word of the pages is there in German, and what gettext reads is what was translated."""

import pytest

from tests.server.page_words import FOLDERS, compiled, found, german, german_file
from tests.server.test_pages import browser  # noqa: F401 - a fixture


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_word_is_translated_and_compiled(folder):
    kept = german(folder)
    missing = [message.id for message in found(folder) if message.id and not all(_strings(kept.get(message.id)))]
    assert not missing, f"translate these in {german_file(folder)}, after: python -m tests.server.page_words"
    assert german_file(folder).with_suffix(".mo").read_bytes() == compiled(kept)


def _strings(message) -> tuple[str, ...]:
    if message is None:
        return ("",)
    return message.string if isinstance(message.string, tuple) else (message.string,)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_translation_keeps_what_is_filled_in(folder):
    for message in german(folder):
        if message.id and message.python_format:
            assert not [str(error) for error in message.check(german(folder))]


def test_words_and_numbers_are_of_the_visitors_language(browser):  # noqa: F811
    browser.sign_in("tacit_ben")
    german_page = browser.send("GET", "/tables/visits", headers={"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}).text
    assert '<html lang="de">' in german_page
    assert "Den Plan zeigen" in german_page
