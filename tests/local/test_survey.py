"""A survey is the same for everyone: its header says all of it, and contradicts nothing. Bad input has its words."""

import json

import numpy as np
import pytest

from tacit import local
from tacit.errors import InvalidParameter
from tacit.local.survey import survey_of
from tacit.local.wire import header_line, read_header

SURVEYS = {
    "labels": lambda: local.make_survey(["a", "b", "ü"], epsilon="0.3"),
    "numbers as labels": lambda: local.make_survey([3, 1, 2], epsilon=1),
    "size": lambda: local.make_survey(1000, epsilon=1, protocol="local-hashing", epoch="2026-W46"),
    "mean": lambda: local.make_survey(between=(-0.1, 99.5), epsilon=2),
    "attributes": lambda: local.make_survey(attributes={"a": 2, "b": ["x", "y", "z"]}, method="split", epsilon=1),
    "sampled": lambda: local.make_survey(attributes={"a": 2, "b": 7}, epsilon=1),
    "strings": lambda: local.make_survey(alphabet="abc", length=5, step=2, epsilon=3),
    "longitudinal": lambda: local.make_survey(5, epsilon=2, epsilon_first=1, tokens=True),
}

BAD = {
    "no question": ({"epsilon": 1}, "asks one question"),
    "two questions": ({"domain": 3, "between": (0, 1), "epsilon": 1}, "asks one question"),
    "empty domain": ({"domain": [], "epsilon": 1}, "at least two answers, not 0"),
    "one answer": ({"domain": ["yes"], "epsilon": 1}, "at least two answers, not 1"),
    "repeated answer": ({"domain": ["yes", "yes"], "epsilon": 1}, "lists an answer twice"),
    "text as domain": ({"domain": "yes", "epsilon": 1}, "must be a list"),
    "odd label": ({"domain": [1.5, 2.5], "epsilon": 1}, "text or a whole number"),
    "zero epsilon": ({"domain": 2, "epsilon": 0}, "epsilon must be above 0"),
    "nan epsilon": ({"domain": 2, "epsilon": float("nan")}, "finite"),
    "huge epsilon": ({"domain": 2, "epsilon": 50}, "gives no protection"),
    "tiny epsilon": ({"domain": 2, "epsilon": 1e-17}, "no information"),
    "unknown protocol": ({"domain": 2, "epsilon": 1, "protocol": "olh"}, "one of auto, response"),
    "mean protocol for counts": ({"domain": 2, "epsilon": 1, "protocol": "duchi"}, "'duchi' is not a protocol"),
    "empty range": ({"between": (1, 1), "epsilon": 1}, "lower to a higher"),
    "infinite range": ({"between": (0, float("inf")), "epsilon": 1}, "finite"),
    "one end": ({"between": (1,), "epsilon": 1}, "two numbers"),
    "one attribute": ({"attributes": {"a": 2}, "epsilon": 1}, "two or more"),
    "unknown method": ({"attributes": {"a": 2, "b": 2}, "epsilon": 1, "method": "all"}, "split, sample"),
    "more protocols than attributes": (
        {"attributes": {"a": 2, "b": 2}, "epsilon": 1, "protocol": "subset,subset,subset"},
        "3 names for 2 attributes",
    ),
    "first loss above all": ({"domain": 3, "epsilon": 1, "epsilon_first": 2}, "below epsilon"),
    "long epoch": ({"domain": 3, "epsilon": 1, "epoch": "x" * 100}, "epoch"),
    "alphabet twice": ({"alphabet": "aa", "length": 3, "epsilon": 1}, "different characters"),
}


@pytest.mark.parametrize("make", SURVEYS.values(), ids=SURVEYS)
def test_a_header_gives_the_same_survey_again(make):
    survey = make()
    again = read_header(header_line(survey).encode())
    assert again == survey
    assert again.tag == survey.tag


@pytest.mark.parametrize("make", SURVEYS.values(), ids=SURVEYS)
def test_a_header_that_contradicts_itself_is_refused(make):
    for key, wrong in (
        ("parameters", {"keep": "3/4"}),
        ("version", 2),
        ("format", "x"),
        ("protocol", 7),
        ("epsilon", ""),
    ):
        with pytest.raises(InvalidParameter):
            survey_of(make().header() | {key: wrong})


@pytest.mark.parametrize("name", ["hadamard", "optimised-unary", "symmetric-unary"])
def test_a_header_of_a_protocol_that_is_not_collected_is_refused_by_name(name):
    with pytest.raises(InvalidParameter, match=f"'{name}' is not a protocol for this question"):
        survey_of(SURVEYS["labels"]().header() | {"protocol": name})


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"null", b'{"format":1}', b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_header_is_refused(line):
    with pytest.raises(InvalidParameter):
        read_header(line)


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_bad_words_are_refused_by_name(words, said):
    with pytest.raises(InvalidParameter, match=said):
        local.make_survey(**words)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ({"domain": ["a", "b"]}, ["c", 0, None, 1.0, True, ["a"]]),
        ({"domain": 3}, [3, -1, True, "0", 0.0, None]),
        ({"between": (0, 10)}, [11, -1, float("nan"), "3", None, True, float("inf")]),
        ({"attributes": {"a": 2, "b": 2}}, [{"a": 0}, {"a": 0, "b": 2}, 3, {"a": 0, "b": 0, "c": 0}]),
        ({"alphabet": "abc", "length": 3}, ["abca", "d", 3, None]),
    ],
)
def test_an_answer_outside_the_question_is_refused_and_never_quoted(words, values):
    client = local.Randomizer(epsilon=1, **words)
    for value in values:
        with pytest.raises(InvalidParameter) as refused:
            client.report(value)
        assert repr(value) not in str(refused.value) or isinstance(value, int | bool)
        with pytest.raises(InvalidParameter):
            client.reports([value])


def test_arrays_and_lists_mean_the_same():
    client = local.Randomizer(["a", "b", "c"], epsilon=5)
    for values in (["a"] * 50, np.array(["a"] * 50), np.array(["a"] * 50, dtype=object)):
        assert len(client.reports(values)) == 50
    with pytest.raises(InvalidParameter, match="list or an array"):
        client.reports("abc")


def test_choose_shows_the_least_variance_and_the_table():
    choice = local.choose(50, epsilon=1, people=1000)
    assert choice.table[0].variance == min(row.variance for row in choice.table)
    assert choice.protocol == choice.table[0].protocol == "subset"
    assert "<- chosen" in str(choice)
    assert {row.protocol for row in choice.table} == {
        "response", "subset", "local-hashing",
    }  # fmt: skip


def test_choose_prefers_the_shortest_report_among_equals_and_one_that_fits():
    assert local.choose(10_000, epsilon=1).protocol == "local-hashing"
    assert local.choose(50, epsilon=1, report_bytes_max=2).protocol == "response"
    assert local.choose(3, epsilon=2).protocol == "response"
    assert local.choose(between=(0, 1), epsilon=1).protocol == "hybrid"
    with pytest.raises(InvalidParameter, match="fits"):
        local.choose(50, epsilon=1, report_bytes_max=0)


def test_the_header_is_plain_json_with_labels():
    said = json.loads(header_line(local.make_survey(["x", "y"], epsilon=1, epoch="w1")))
    assert said["question"] == {"labels": ["x", "y"]}
    assert (said["protocol"], said["epsilon"], said["epoch"]) == ("response", "1", "w1")


@pytest.mark.parametrize("text", ["1e20000", "1000000000", "1e99999999", "1/0", "9" * 10**5, 1])
@pytest.mark.parametrize("kind", ["labels", "mean", "strings", "longitudinal"])
def test_a_header_with_an_epsilon_that_would_take_for_ever_is_refused(kind, text):
    with pytest.raises(InvalidParameter):
        survey_of(SURVEYS[kind]().header() | {"epsilon": text})


def test_a_range_beyond_every_float_is_refused():
    for between in (("0", "1e400"), ("-1e400", "0"), ("1e308", "1.0000000000000000001e308")):
        with pytest.raises(InvalidParameter, match="lower to a higher"):
            local.make_survey(between=between, epsilon=1)
