"""Reports travel: every form gives the same reports back, all are of one length, and odd lines are malformed."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import local
from tacit.errors import InvalidParameter
from tacit.local.wire import (
    MALFORMED,
    NO_TOKEN,
    REASONS,
    WRONG_EPOCH,
    WRONG_SURVEY,
    read_lines,
    read_pieces,
    report_line,
    report_lines,
    to_bytes,
)

CLIENT = local.Randomizer(["a", "b", "c"], epsilon=1, epoch="w1")
GOOD = report_lines(CLIENT.reports(["a", "b", "c"] * 5)).encode().splitlines()


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "bin"])
def test_a_file_gives_the_same_reports_back(tmp_path, ending):
    reports = CLIENT.reports(["a", "b", "c"] * 100)
    path = tmp_path / f"reports.{ending}"
    local.write_reports(reports, path)
    assert local.read_survey(path) == CLIENT.survey
    (piece,) = [piece for piece in read_pieces(path, CLIENT.survey) if len(piece.reports)]
    assert (piece.reports.ids == reports.ids).all()
    assert (piece.reports.payloads == reports.payloads).all()
    assert not piece.rejected


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_tokens_travel_too(tmp_path, ending):
    client = local.Randomizer(3, epsilon=1, tokens=True)
    path = tmp_path / f"reports.{ending}"
    local.write_reports(client.reports([0, 1, 2], tokens=["ann", "bob", 'c"d']), path)
    pieces = [piece.reports.tokens for piece in read_pieces(path, client.survey) if len(piece.reports)]
    assert pieces == [("ann", "bob", 'c"d')]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "bin"])
def test_a_file_of_another_survey_or_epoch_is_counted_as_such(tmp_path, ending):
    path = tmp_path / f"reports.{ending}"
    for words, reason in (({"epoch": "w2"}, WRONG_EPOCH), ({"epoch": "w1", "protocol": "subset"}, WRONG_SURVEY)):
        local.write_reports(local.Randomizer(["a", "b", "c"], epsilon=1, **words).reports(["a"] * 9), path)
        collector = local.Collector(CLIENT.survey)
        collector.add_file(path)
        assert collector.used == 0
        assert collector.rejected[reason] == 9


def test_one_report_and_many_are_written_alike():
    reports = CLIENT.reports(["a", "c"])
    assert report_lines(reports) == "".join(report_line(report) + "\n" for report in reports)


@pytest.mark.parametrize("protocol", ["response", "subset", "local-hashing"])
def test_every_answer_s_report_has_the_same_length(protocol):
    client = local.Randomizer(300, epsilon=1, protocol=protocol)
    lines = report_lines(client.reports(np.arange(300))).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_ids_are_fresh_and_16_bytes_long():
    reports = CLIENT.reports(["a"] * 1000)
    assert len({report.id for report in reports} | {CLIENT.report("a").id}) == 1001
    assert {len(report.id) for report in reports} == {16}


@settings(max_examples=150)
@given(data=st.data())
def test_a_line_with_one_byte_changed_is_rejected_or_is_another_report(data):
    line = bytearray(data.draw(st.sampled_from(GOOD)))
    place = data.draw(st.integers(0, len(line) - 1))
    line[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (line[place], 10)))
    read = read_lines(CLIENT.survey, [bytes(line)])
    assert len(read.reports) + sum(read.rejected.values()) == 1
    assert set(read.rejected) <= set(REASONS)
    if len(read.reports):  # a digit of the id or of the data: what is read is what is written
        assert report_lines(read.reports).encode().rstrip() == bytes(line)


@given(line=st.binary(max_size=200).filter(lambda line: b"\n" not in line))
def test_any_other_line_is_malformed(line):
    assert read_lines(CLIENT.survey, [line]).rejected == {MALFORMED: 1}


def test_a_compact_file_that_is_cut_short_loses_the_last_report_alone(tmp_path):
    path, whole = tmp_path / "reports.bin", to_bytes(CLIENT.reports(["a", "b"]))
    path.write_bytes(whole[:-1])
    (read,) = read_pieces(path, CLIENT.survey)
    assert (len(read.reports), read.rejected) == (1, {MALFORMED: 1})
    for wrong in (b"", b"TACIT", whole[:40]):
        path.write_bytes(wrong)
        with pytest.raises(InvalidParameter):
            local.collect_file(path)


def test_a_compact_file_of_a_survey_with_tokens_has_no_senders_and_is_rejected(tmp_path):
    client = local.Randomizer(["a", "b", "c"], epsilon=1, tokens=True)
    reports = client.reports(["a", "b"], tokens=["ann", "bob"])
    path = tmp_path / "reports.bin"
    path.write_bytes(to_bytes(replace(reports, tokens=None)))
    collector = local.Collector(client.survey, reports_per_person=1)
    collector.add_file(path)
    assert (collector.used, collector.rejected[NO_TOKEN]) == (0, 2)


def test_a_parquet_file_with_odd_cells_has_them_counted(tmp_path):
    path = tmp_path / "odd.parquet"
    local.write_reports(CLIENT.reports(["a"]), path)
    schema = pq.read_schema(path)
    cells = {"id": [b"0" * 16, b"0", None], "data": [b"\1", b"\1", b"\1"]}
    table = pa.table({name: pa.array(values, pa.binary()) for name, values in cells.items()})
    pq.write_table(table.replace_schema_metadata(schema.metadata), path)
    collector = local.Collector(CLIENT.survey)
    collector.add_file(path)
    assert (collector.used, collector.rejected[MALFORMED]) == (1, 2)


def test_files_that_are_none_of_ours_are_refused(tmp_path):
    for name, content in (("a.jsonl", b"hello\n"), ("a.parquet", b"hello"), ("a.bin", b"hello")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidParameter):
            local.collect_file(tmp_path / name)
    with pytest.raises(InvalidParameter, match="no file"):
        local.collect_file(tmp_path / "missing.jsonl")
