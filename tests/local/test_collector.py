"""A collector counts each good report once, rejects the rest for a fixed reason, and never half adds one."""

import json

import numpy as np
import pytest

from tacit import local
from tacit.errors import InvalidParameter
from tacit.local.client import Report, Reports
from tacit.local.tally_file import TallyFile
from tacit.local.wire import (
    DUPLICATE,
    MALFORMED,
    NO_TOKEN,
    OUT_OF_RANGE,
    OVER_CAP,
    WRONG_EPOCH,
    WRONG_SURVEY,
    WRONG_VERSION,
)

CLIENT = local.Randomizer(["a", "b", "c"], epsilon=1, epoch="w1")


def counts(collector) -> list[int]:
    return collector._tally.tolist()


def test_one_report_is_counted_or_rejected_with_its_reason():
    collector = local.Collector(CLIENT.survey, deduplicate=True)
    good = CLIENT.report("a")
    tag = CLIENT.survey.tag
    assert collector.add(good) is None
    assert collector.add(good) == DUPLICATE
    assert collector.add(Report(tag, "w2", b"1" * 16, b"\0")) == WRONG_EPOCH
    assert collector.add(Report("0" * 16, "w1", b"1" * 16, b"\0")) == WRONG_SURVEY
    assert collector.add(Report(tag, "w1", b"1" * 16, b"\0", version=2)) == WRONG_VERSION
    assert collector.add(Report(tag, "w1", b"1" * 16, b"\3")) == OUT_OF_RANGE
    assert collector.add(Report(tag, "w1", b"1" * 16, b"\0\0")) == MALFORMED
    assert collector.add(Report(tag, "w1", b"1", b"\0")) == MALFORMED
    assert collector.add(Report(tag, "w1", b"1" * 16, b"\0", token="me")) == MALFORMED
    assert collector.used == sum(counts(collector)) == 1
    assert collector.estimate().rejected == 8


def test_shards_merge_in_any_order():
    reports = [CLIENT.reports(["a"] * n) for n in (5, 7, 11)]
    whole = local.Collector(CLIENT.survey)
    for each in reports:
        whole.add_all(each)
    for order in ((0, 1, 2), (2, 0, 1)):
        shards = [local.Collector(CLIENT.survey) for _ in reports]
        for shard, each in zip(shards, reports, strict=True):
            shard.add_all(each)
        first, second, third = (shards[place] for place in order)
        second.merge(third)
        first.merge(second)
        assert counts(first) == counts(whole)
        assert first.used == 23
        assert counts(local.merge_states([first.state()])) == counts(whole)


def test_shards_that_counted_the_same_report_do_not_merge():
    one, other = (local.Collector(CLIENT.survey, deduplicate=True) for _ in range(2))
    reports = CLIENT.reports(["a"] * 3)
    one.add_all(reports)
    other.add_all(reports)
    with pytest.raises(InvalidParameter, match="same report"):
        one.merge(other)
    assert one.used == 3
    with pytest.raises(InvalidParameter, match="that stores ids cannot be merged"):
        one.merge(local.Collector(CLIENT.survey))
    with pytest.raises(InvalidParameter, match="same survey"):
        one.merge(local.Collector(CLIENT.survey.in_epoch("w2")))


def test_a_restarted_collector_remembers_ids_and_counts(tmp_path):
    reports = CLIENT.reports(["a", "b"] * 10)
    first = local.Collector(CLIENT.survey, store=tmp_path / "seen.db")
    first.add_all(reports)
    first.close()
    again = local.Collector(CLIENT.survey, store=tmp_path / "seen.db")
    again.add_all(reports)
    assert (again.used, again.rejected[DUPLICATE], counts(again)) == (20, 20, counts(first))
    again.close()
    with pytest.raises(InvalidParameter, match="another survey or epoch"):
        local.Collector(CLIENT.survey.in_epoch("w2"), store=tmp_path / "seen.db")
    (tmp_path / "other.txt").write_text("no database, " * 100)
    with pytest.raises(InvalidParameter, match="own file"):
        local.Collector(CLIENT.survey, store=tmp_path / "other.txt")


def test_a_batch_whose_ids_cannot_be_kept_is_not_counted(tmp_path, monkeypatch):
    collector = local.Collector(CLIENT.survey, store=tmp_path / "seen.db")
    collector.add_all(CLIENT.reports(["a"]))
    reports = CLIENT.reports(["a"] * 5)
    with monkeypatch.context() as broken:
        broken.setattr(TallyFile, "commit", lambda self: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            collector.add_all(reports)
    assert (collector.used, sum(counts(collector))) == (1, 1)
    collector.add_all(reports)  # sent again, it counts once
    assert (collector.used, collector.rejected[DUPLICATE]) == (6, 0)


def test_a_person_s_reports_beyond_the_cap_are_rejected():
    client = local.Randomizer(3, epsilon=1, tokens=True)
    collector = local.Collector(client.survey, reports_per_person=2)
    collector.add_all(client.reports([0, 1, 2, 0], tokens=["ann", "ann", "ann", "bob"]))
    assert (collector.used, collector.rejected[OVER_CAP]) == (3, 1)
    assert collector.add(client.report(1, token="bob")) is None
    assert collector.add(client.report(1, token="bob")) == OVER_CAP
    assert collector.add(Report(client.survey.tag, "", b"1" * 16, b"\0")) == NO_TOKEN


def test_tokens_and_caps_go_together():
    with pytest.raises(InvalidParameter, match="reports that carry a token"):
        local.Collector(CLIENT.survey, reports_per_person=1)
    with pytest.raises(InvalidParameter, match="must carry no token"):
        CLIENT.report("a", token="me")
    with pytest.raises(InvalidParameter, match="needs a token"):
        local.Randomizer(2, epsilon=1, tokens=True).report(1)
    with pytest.raises(InvalidParameter, match="short text"):
        local.Randomizer(2, epsilon=1, tokens=True).report(1, token="x" * 1000)


@pytest.mark.parametrize(
    "words", [{"domain": 3}, {"between": (0, 1)}, {"attributes": {"a": 2, "b": 2}}, {"alphabet": "ab", "length": 2}]
)
def test_no_reports_and_all_rejected_are_a_clear_empty_answer(words):
    survey = local.make_survey(epsilon=1, **words)
    collector = local.Collector(survey)
    for turn in range(2):
        found = collector.estimate()
        assert (found.used, found.rejected) == (0, turn)
        assert "0 reports used" in str(found)
        said = found.to_dict()
        assert (said["used"], said["rejected"]) == (0, turn)
        assert all(row["count"] == 0 for row in said["rows"])
        collector.add(Report("0" * 16, "", b"1" * 16, b"\0"))


def test_strings_have_no_store_since_their_reports_are_kept_whole(tmp_path):
    survey = local.make_survey(alphabet="ab", length=2, epsilon=1)
    with pytest.raises(InvalidParameter, match="kept whole"):
        local.Collector(survey, store=tmp_path / "seen.db")
    assert local.Collector(survey, deduplicate=True).used == 0


def test_reports_must_be_rows_of_the_right_length():
    with pytest.raises(InvalidParameter, match="ids must have shape"):
        Reports(CLIENT.survey, np.zeros((2, 16), np.uint8), np.zeros((2, 9), np.uint8))
    with pytest.raises(InvalidParameter, match="must be a Report"):
        local.Collector(CLIENT.survey).add("report")


def test_the_sample_looked_at_is_of_all_reports_and_bounded(monkeypatch):
    from tacit.local import collector as sampling

    monkeypatch.setattr(sampling, "ROWS_MOST", 300)
    client = local.Randomizer(50, epsilon=1, protocol="local-hashing")
    collector = local.Collector(client.survey)
    for _ in range(30):
        collector.add_all(client.reports(np.arange(50)))
    assert len(collector._sample.payloads) == 300
    assert sum(len(numbers) for numbers, _ in collector._sample.parts) <= 600


def test_every_report_is_as_likely_to_be_looked_at_wherever_it_comes(monkeypatch):
    from tacit.local import collector as sampling

    monkeypatch.setattr(sampling, "ROWS_MOST", 300)
    kept = np.zeros(3, dtype=np.int64)
    for _ in range(20):
        shards = [sampling.Sample(1), sampling.Sample(1)]
        for third in range(3):
            for _ in range(5):
                shards[third % 2] = shards[third % 2].with_more(np.full((100, 1), third, dtype=np.uint8))
        kept += np.bincount(shards[0].merged(shards[1]).payloads.ravel(), minlength=3)
    # 6000 of 30,000, a third from each: 5 deviations are below 180
    assert kept.sum() == 6000
    assert np.abs(kept - 2000).max() < 190


@pytest.mark.parametrize(
    "change",
    [
        {"used": -1},
        {"used": True},
        {"tally": [1]},
        {"tally": ["1", "2"]},
        {"tally": [10**40, 0]},
        {"rejected": {"nonsense": 1}},
        {"rejected": []},
        {"header": {}},
    ],
)
def test_a_damaged_state_is_refused(change):
    state = json.loads(local.Collector(local.make_survey(["a", "b"], epsilon=1)).state())
    with pytest.raises(InvalidParameter):
        local.merge_states([json.dumps(state | change)])
    for text in ("", "[", "9" * 10**5, "[" * 10**5):
        with pytest.raises(InvalidParameter):
            local.merge_states([text])
