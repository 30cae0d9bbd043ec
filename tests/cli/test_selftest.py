"""`tacit selftest`: one line for each check, exit code 1 and a plain message where one fails."""

from tacit.auditing import selftest


def test_every_check_has_a_line_with_a_tick(tacit_command):
    ran = tacit_command("selftest")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == [f"✓ {name}" for name in selftest.CHECKS]


def test_a_check_that_fails_is_said_plainly_and_the_others_still_run(tacit_command, monkeypatch):
    monkeypatch.setattr(selftest, "keystream_is_as_published", lambda: False)
    ran = tacit_command("selftest")
    assert ran.code == 1
    assert "✗ randomness: the keystream is not that of AES-256 in counter mode" in ran.out
    assert ran.out.count("✓") == len(selftest.CHECKS) - 1
    assert ran.err.startswith("tacit: 1 of the checks failed")
    assert "hint: install tacit again" in ran.err


def test_the_help_says_what_it_is_for_and_what_the_exit_codes_mean(tacit_command):
    ran = tacit_command("selftest", "--help")
    assert ran.code == 0
    assert "Run it after an install or an update" in " ".join(ran.out.split())
    assert "Exit codes" in ran.out
