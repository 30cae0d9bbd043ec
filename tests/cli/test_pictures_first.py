"""A picture that could not be written is refused before the work for it, by every command that draws."""

import pytest

COMMANDS = {
    "attack": ["attack", "average"],
    "audit": ["audit", "laplace", "--epsilon", "1"],
    "callable": ["audit", "callable", "no_such_module:f", "--d0", "1", "--d1", "2", "--epsilon", "1"],
    "local": ["local", "estimate", "no-such-file.jsonl"],
    "tradeoff": ["tradeoff", "fraction", "--error", "1%", "--epsilon", "1"],
}


@pytest.mark.parametrize(
    ("file", "says"), [("no/folder.png", "cannot be written to this path"), ("a.gif", "a picture must end in")]
)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_picture_that_cannot_be_written_is_refused_first(tacit_command, words, file, says):
    ran = tacit_command(*words, "--plot", file)
    assert ran.code == 2
    assert ran.out == ""
    assert says in ran.err
