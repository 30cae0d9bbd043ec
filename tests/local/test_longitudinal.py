"""Reports over time cost what is stated, however many there are, across restarts and changes of value."""

from fractions import Fraction

import pytest

from tacit import local
from tacit.errors import InvalidParameter
from tacit.local.permanent import Permanent

SURVEY = local.make_survey(["a", "b", "c"], epsilon=2, epsilon_first=1)


def test_a_restarted_client_gives_the_same_permanent_answer(tmp_path):
    first = local.LongitudinalClient(SURVEY, memo=tmp_path / "memo.json")
    first.report("b")
    again = local.LongitudinalClient(SURVEY, memo=tmp_path / "memo.json")
    assert (again._permanent(1) == first._permanent(1)).all()
    assert again.loss_so_far == first.loss_so_far
    assert (tmp_path / "memo.json").stat().st_mode & 0o077 == 0


def test_the_loss_grows_with_values_and_stops_at_the_limit():
    client = local.LongitudinalClient(SURVEY, values_most=2)
    assert client.loss_so_far.epsilon == 0
    for value, so_far in (("a", 2), ("a", 2), ("b", 4), ("c", 4), ("a", 4)):
        client.report(value)
        assert client.loss_so_far.epsilon == so_far
    assert client.loss.epsilon == 4
    assert (client._permanent(2) == client._permanent(1)).all()  # beyond the limit: as the last one within it


def test_a_new_epoch_keeps_the_memo(tmp_path):
    local.LongitudinalClient(SURVEY, memo=tmp_path / "memo.json").report("a")
    later = local.LongitudinalClient(SURVEY.in_epoch("w2"), memo=tmp_path / "memo.json")
    assert later.report("a").epoch == "w2"
    assert len(later._answers) == 1


def test_nothing_is_reported_when_the_memo_cannot_be_kept(tmp_path):
    client = local.LongitudinalClient(SURVEY, memo=tmp_path / "missing" / "memo.json")
    with pytest.raises(InvalidParameter, match="nothing is reported"):
        client.report("a")
    assert client.loss_so_far.epsilon == 0


def test_a_damaged_or_foreign_memo_is_refused_not_drawn_anew(tmp_path):
    path = tmp_path / "memo.json"
    local.LongitudinalClient(SURVEY, memo=path).report("a")
    whole = path.read_text()
    for text in ("", "{}", whole[:-10], whole.replace(SURVEY.tag, "0" * 16)):
        path.write_text(text)
        with pytest.raises(InvalidParameter, match="memo"):
            local.LongitudinalClient(SURVEY, memo=path)


def test_one_report_keeps_the_first_loss_and_all_keep_the_permanent_one():
    protocol = Permanent(4, Fraction(3), Fraction(1))
    assert Fraction(1, 2) < protocol.keep < protocol.permanent_keep < 1
    assert protocol.stray == 1 - protocol.keep


def test_a_plain_randomizer_refuses_a_longitudinal_survey():
    with pytest.raises(InvalidParameter, match="LongitudinalClient"):
        local.Randomizer(SURVEY)
    with pytest.raises(InvalidParameter, match="longitudinal"):
        local.LongitudinalClient(local.make_survey(3, epsilon=1))
