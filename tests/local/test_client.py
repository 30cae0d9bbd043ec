"""Reports over time cost what is stated, however many there are, across restarts and changes of value."""

import copy
import os
import subprocess
import sys
from fractions import Fraction

import pytest

from tacit import local
from tacit.errors import InvalidParameter
from tacit.local.protocols.unary import Permanent

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
    with pytest.raises(InvalidParameter, match="so no report is made"):
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


# ---- shared memos --------------------------------------------------------------------------------------------------

REPORT_ONCE = """
import sys
from tacit import local
survey = local.make_survey([f"a{i}" for i in range(40)], epsilon=2, epsilon_first=1)
client = local.LongitudinalClient(survey, memo=sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
print(client._permanent(client._labels.read_one("a3")).tolist())
"""


def forty():
    return local.make_survey([f"a{i}" for i in range(40)], epsilon=2, epsilon_first=1)


def test_clients_opened_before_any_answered_share_the_first_ones_answer(tmp_path):
    clients = [local.LongitudinalClient(forty(), memo=tmp_path / "memo") for _ in range(6)]
    assert len({client._permanent(3).tobytes() for client in clients}) == 1
    assert {client.loss_so_far.epsilon for client in clients} == {2}


def test_processes_that_share_a_memo_have_one_answer(tmp_path):
    memo = str(tmp_path / "memo")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", REPORT_ONCE, memo],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(3)
    ]
    assert [process.stdout.readline() for process in running] == ["open\n"] * 3  # all have found no memo
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = {process.communicate()[0] for process in running}
    assert len(answers) == 1
    assert [process.returncode for process in running] == [0] * 3


def test_clients_that_share_a_memo_keep_to_its_limit_together(tmp_path):
    clients = [local.LongitudinalClient(forty(), memo=tmp_path / "memo", values_most=2) for _ in range(4)]
    answers = {client._permanent(code).tobytes() for code, client in enumerate(clients)}
    assert len(answers) == 2
    assert all(client.loss.epsilon == 4 for client in clients)


def test_a_memo_is_kept_for_one_limit(tmp_path):
    local.LongitudinalClient(SURVEY, memo=tmp_path / "memo", values_most=2).report("a")
    with pytest.raises(InvalidParameter, match="values_most=2"):
        local.LongitudinalClient(SURVEY, memo=tmp_path / "memo")


def test_a_memo_deleted_under_a_client_is_written_again_not_drawn_anew(tmp_path):
    client = local.LongitudinalClient(SURVEY, memo=tmp_path / "memo")
    answer = client._permanent(1)
    (tmp_path / "memo").unlink()
    assert (client._permanent(1) == answer).all()
    assert (local.LongitudinalClient(SURVEY, memo=tmp_path / "memo")._permanent(1) == answer).all()


def test_a_link_to_a_memo_is_the_same_memo_and_a_second_name_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "memo")
    linked = local.LongitudinalClient(SURVEY, memo=tmp_path / "link")
    answer = linked._permanent(1)
    assert (local.LongitudinalClient(SURVEY, memo=tmp_path / "memo")._permanent(1) == answer).all()
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "name").hardlink_to(tmp_path / "memo")
    with pytest.raises(InvalidParameter, match="two names"):
        local.LongitudinalClient(SURVEY, memo=tmp_path / "name")


def test_no_file_of_a_known_name_is_written_through(tmp_path):
    (tmp_path / "other").write_text("kept")
    for name in ("memo.new", "memo.lock"):
        (tmp_path / name).symlink_to(tmp_path / "other")
    with pytest.raises(InvalidParameter, match="so no report is made"):
        local.LongitudinalClient(SURVEY, memo=tmp_path / "memo").report("a")
    (tmp_path / "memo.lock").unlink()
    local.LongitudinalClient(SURVEY, memo=tmp_path / "memo").report("a")
    assert (tmp_path / "other").read_text() == "kept"


def test_a_client_without_a_memo_answers_in_its_own_process_and_is_not_copied(monkeypatch):
    client = local.LongitudinalClient(SURVEY)
    with pytest.raises(TypeError):
        copy.deepcopy(client)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(InvalidParameter, match="give it a memo"):
        client.report("a")


def test_collectors_that_share_a_store_count_every_report_once(tmp_path):
    client = local.Randomizer(["a", "b"], epsilon=1)
    batches = [client.reports(["a", "b"] * 50) for _ in range(4)]
    one, other = (local.Collector(client.survey, store=tmp_path / "store") for _ in range(2))
    for batch in batches:
        for each in (one, other):  # each is sent to both
            each.add_all(batch)
    one.close()
    other.close()
    again = local.Collector(client.survey, store=tmp_path / "store")
    assert (again.used, again.rejected["duplicate"]) == (400, 400)
    assert (tmp_path / "store").stat().st_mode & 0o077 == 0
    again.close()
